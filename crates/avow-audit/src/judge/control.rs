//! Matched controls: whether the arms of a contrast rest on the same but for what their claim names.
//!
//! The plan says most of it ([`avow_model::matched`]) and is walked here again, for every pair. What attempts were
//! seen to read beside it is compared as well, where they were observed: two arms that read the same undeclared
//! file at different contents are not equal.

use avow_model::claim::Part;
use avow_model::expand::Member;
use avow_model::matched::{self, Difference};

use super::reason::Reason;
use super::verdict::Qualifier;
use crate::evidence::{Evidence, Fate, Tried};

/// What a proof of the arms' equality says; nothing where the part is no matched control.
///
/// # Errors
/// [`Reason::Unmatched`] with the first thing that differs.
pub(super) fn proof(evidence: &Evidence<'_>, part: &Part) -> Result<Option<Qualifier>, Reason> {
    let Some(control) = &part.control else { return Ok(None) };
    let mut read = |first, second| reads(evidence, first, second);
    let Some(found) = matched::arms(evidence.plan, part, usize::MAX, &mut read) else { return Ok(None) };
    match found.difference {
        Some(difference) => Err(Reason::Unmatched(told(evidence, &difference))),
        None if found.pairs == 0 => {
            Err(Reason::Unmatched(format!("both arms read the same members of `{}`", control.of)))
        }
        None => Ok(Some(Qualifier::Matched {
            of: control.of.clone(),
            except: control.equal_except.clone(),
            pairs: found.pairs,
        })),
    }
}

fn told(evidence: &Evidence<'_>, difference: &Difference) -> String {
    let (first, second) = (evidence.label(difference.first), evidence.label(difference.second));
    let values = match (&difference.here, &difference.there) {
        (Some(here), Some(there)) => format!(": {here} and {there}"),
        _ => String::new(),
    };
    format!("{first} and {second} also differ in {}{values}", difference.what)
}

/// The first undeclared file that the attempts which stand for two members were seen to read at different contents.
fn reads(evidence: &Evidence<'_>, first: Member, second: Member) -> Option<String> {
    let (here, there) = (standing(evidence, first)?, standing(evidence, second)?);
    let other =
        |(path, digest): (&String, _)| there.undeclared.get(path).is_some_and(|theirs| theirs != digest);
    let path = here.undeclared.iter().find(|read| other(*read))?.0;
    Some(format!("the undeclared file {path}"))
}

fn standing<'e>(evidence: &'e Evidence<'_>, member: Member) -> Option<&'e Tried> {
    let found = evidence.member(member)?;
    let Fate::Stands(stands) = &found.fate else { return None };
    found.attempts.iter().find(|tried| tried.attempt == stands.attempt)
}
