//! From a request to an answer.

use std::sync::Arc;
use std::time::Duration;

use avow_model::attempt::AttemptId;
use avow_model::digest::ActionDigest;
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::AUTHORIZATION;
use hyper::{Method, Request};

use super::answer::{Answer, blocking, json, nothing, refusal};
use super::{Shared, attempts, blobs};
use crate::cancel::Level;
use crate::worker::demand::Demand;
use crate::worker::protocol::{
    Beat, DIGESTS_LIMIT, MESSAGE_LIMIT, PACK_LIMIT, ROOT, Refusal, Stop, WORDS_LIMIT, decode, encode,
    is_attempt,
};

/// The answer to one request.
pub(super) async fn answer(shared: &Arc<Shared>, request: Request<Incoming>) -> Answer {
    let answer = if permitted(shared, &request) { route(shared, request).await } else { Err(Refusal::Token) };
    answer.unwrap_or_else(|why| refusal(&why))
}

fn permitted(shared: &Shared, request: &Request<Incoming>) -> bool {
    let given = request.headers().get(AUTHORIZATION).map(|value| value.as_bytes());
    given.and_then(|value| value.strip_prefix(b"Bearer ")).is_some_and(|token| shared.token.matches(token))
}

async fn route(shared: &Arc<Shared>, request: Request<Incoming>) -> Result<Answer, Refusal> {
    let path = request.uri().path().strip_prefix(ROOT).ok_or(Refusal::Unknown)?.to_owned();
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    let method = request.method().clone();
    match (&method, segments.as_slice()) {
        (&Method::GET, ["worker"]) => Ok(json(&shared.description)),
        (&Method::POST, ["programs"]) => programs(shared, request).await,
        (&Method::POST, ["loads"]) => loads(shared, request).await,
        (&Method::POST, ["blobs"]) => blobs::put_pack(shared, whole(request, PACK_LIMIT).await?).await,
        (&Method::POST, ["blobs", "lacking"]) => {
            blobs::lacking(shared, whole(request, DIGESTS_LIMIT).await?).await
        }
        (&Method::POST, ["blobs", "pack"]) => {
            blobs::get_pack(shared, whole(request, DIGESTS_LIMIT).await?).await
        }
        (&Method::PUT, ["blobs", name]) => blobs::put(shared, blobs::named(name)?, request.into_body()).await,
        (&Method::GET, ["blobs", name]) => blobs::get(shared, blobs::named(name)?).await,
        (&Method::GET, ["checkpoints", project, action]) => checkpoint(shared, project, action).await,
        (&Method::POST, ["attempts", id]) => {
            let id = attempt(id)?;
            attempts::submit(shared, id, &whole(request, MESSAGE_LIMIT).await?).await
        }
        (&Method::POST, ["attempts", id, "stop"]) => {
            let id = attempt(id)?;
            stop(shared, &id, &whole(request, 64).await?)
        }
        (&Method::POST, ["sessions", name]) => {
            let name = session(name)?;
            let beat: Beat = decode(&whole(request, MESSAGE_LIMIT).await?)?;
            shared.same_instance(&beat.instance)?;
            shared.table.hear(&name);
            shared.table.forget(&name, &beat.done);
            Ok(nothing())
        }
        (&Method::DELETE, ["sessions", name]) => {
            shared.table.end_session(&session(name)?);
            Ok(nothing())
        }
        _ => Err(Refusal::Unknown),
    }
}

fn attempt(text: &str) -> Result<AttemptId, Refusal> {
    let malformed = || Refusal::Malformed { reason: "an attempt has 32 hexadecimal digits".to_owned() };
    is_attempt(text).then(|| AttemptId(text.to_owned())).ok_or_else(malformed)
}

/// Sessions have the same kind of names.
fn session(text: &str) -> Result<String, Refusal> {
    attempt(text).map(|id| id.0)
}

fn stop(shared: &Shared, id: &AttemptId, body: &[u8]) -> Result<Answer, Refusal> {
    let level = match decode(body)? {
        Stop::Politely => Level::Stop,
        Stop::AtOnce => Level::Kill,
    };
    if shared.table.cancel(id, level) { Ok(nothing()) } else { Err(Refusal::Unknown) }
}

async fn programs(shared: &Arc<Shared>, request: Request<Incoming>) -> Result<Answer, Refusal> {
    let words: Vec<String> = decode(&whole(request, MESSAGE_LIMIT).await?)?;
    if words.len() > WORDS_LIMIT {
        return Err(Refusal::TooLarge { limit: WORDS_LIMIT as u64 });
    }
    let shared = Arc::clone(shared);
    let found =
        blocking(move || Ok(words.iter().map(|word| shared.program(word)).collect::<Vec<_>>())).await?;
    Ok(super::answer::bytes(encode(&found), "application/cbor"))
}

/// Whether the next attempt at an action can go on from what an earlier one left here.
async fn checkpoint(shared: &Arc<Shared>, project: &str, action: &str) -> Result<Answer, Refusal> {
    let kept = shared.project.checkpoints().join(session(project)?);
    let action = ActionDigest::from_bytes(*blobs::named(action)?.as_bytes());
    let waiting = blocking(move || {
        crate::waiting_checkpoint(&kept, action)
            .map_err(|error| Refusal::Machine { reason: error.to_string() })
    });
    if waiting.await?.is_some() { Ok(nothing()) } else { Err(Refusal::Unknown) }
}

async fn loads(shared: &Arc<Shared>, request: Request<Incoming>) -> Result<Answer, Refusal> {
    let demand: Demand = decode(&whole(request, MESSAGE_LIMIT).await?)?;
    let shared = Arc::clone(shared);
    let found = blocking(move || Ok(shared.loads(&demand, Duration::ZERO))).await?;
    Ok(super::answer::bytes(encode(&found), "application/cbor"))
}

/// The whole body, as long as it is not too long.
async fn whole(request: Request<Incoming>, limit: usize) -> Result<Bytes, Refusal> {
    let too_large = Refusal::TooLarge { limit: limit as u64 };
    let body = request.into_body();
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large);
    }
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(too_large),
        Err(error) => Err(Refusal::Malformed { reason: format!("the body ended too early: {error}") }),
    }
}

impl Shared {
    /// A message for an earlier worker at this address is not for this one.
    pub(super) fn same_instance(&self, instance: &str) -> Result<(), Refusal> {
        if instance == self.description.instance {
            Ok(())
        } else {
            Err(Refusal::OtherInstance { instance: self.description.instance.clone() })
        }
    }
}
