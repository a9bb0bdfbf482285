//! `avow export in-toto`: statements about results, signed by an SSH key.

use std::path::{Path, PathBuf};

use avow_exchange::statement::{self, MEDIA_TYPE};
use avow_proof::dsse;
use serde_json::json;

use super::account::Exported;
use crate::agent::Signer;
use crate::args::ExportInToto;
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::settings::Settings;
use crate::witnesses;
use crate::words;

/// Writes a statement a line.
pub fn export(args: &ExportInToto, output: &Output) -> Result<Exit, Failure> {
    let exported = Exported::open(args.spec.spec.as_deref(), output)?;
    let (account, exit) = exported.account(args.peek, "statements", output)?;
    let path = args.output.clone();
    let path = path.unwrap_or_else(|| PathBuf::from(format!("{}.intoto.jsonl", account.plan.experiment)));
    let mut signer = if args.unsigned { None } else { Some(signer(args, &exported)?) };
    let (mut lines, mut count) = (Vec::new(), 0_u64);
    for executed in account.standing() {
        let made = statement::of(&exported.reading.blobs, &account, executed).map_err(failure::exchange)?;
        let Some(statement) = made else { continue };
        let payload = statement.to_string();
        let line = match &mut signer {
            Some(signer) => envelope(signer, payload.as_bytes())?,
            None => payload,
        };
        lines.extend_from_slice(line.as_bytes());
        lines.push(b'\n');
        count += 1;
    }
    super::put(&path, &lines)?;
    let key = signer.map(|signer| publish(&path, &signer)).transpose()?;
    if args.json {
        let (file, id) = key.unzip();
        output.json(&json!({"file": path, "statements": count, "key": file, "keyid": id}))?;
        return Ok(exit);
    }
    output.data(format!("wrote `{}` ({})", path.display(), words::count(count, "statement")))?;
    match key {
        Some((file, id)) => {
            output.data(format!("  signed by {id}, whose public key is `{}`", file.display()))?
        }
        None => output.data("  signed by nobody")?,
    }
    Ok(exit)
}

fn signer(args: &ExportInToto, exported: &Exported) -> Result<Signer, Failure> {
    let settings = Settings::of(&exported.spec.project)?;
    let key = args.key.clone().or_else(|| settings.witness.key.as_deref().map(witnesses::at_home));
    let key = match key {
        Some(key) => key,
        None => witnesses::usual_key(exported.spec.project.root())?,
    };
    Signer::open(&key)
}

fn envelope(signer: &mut Signer, payload: &[u8]) -> Result<String, Failure> {
    let signature = signer.sign(&dsse::signed_bytes(MEDIA_TYPE, payload))?;
    let encode = |bytes: &[u8]| avow_proof::base64(bytes);
    Ok(json!({
        "payload": encode(payload), "payloadType": MEDIA_TYPE,
        "signatures": [{"keyid": signer.key().fingerprint(), "sig": encode(&signature)}],
    })
    .to_string())
}

/// Writes the public key beside the statements, in the form that `openssl` and others read.
fn publish(path: &Path, signer: &Signer) -> Result<(PathBuf, String), Failure> {
    let mut name = path.as_os_str().to_owned();
    name.push(".pem");
    let file = PathBuf::from(name);
    super::put(&file, signer.key().pem().as_bytes())?;
    Ok((file, signer.key().fingerprint()))
}
