//! Witnesses in words.

use avow_audit::witness::{Checked, Outcome, Witness};
use jiff::Timestamp;

/// Who vouches for the order of events.
pub fn vouched(witness: Option<&Witness>) -> String {
    let Some(witness) = witness else {
        return "the order of events is the author's word; no outside witness".to_owned();
    };
    let stamped =
        witness.stamped.as_ref().map(|(time, by)| format!("registered before {} ({by})", date(*time)));
    let signed = (!witness.signed.is_empty()).then(|| format!("signed by {}", witness.signed.join(", ")));
    match (stamped, signed) {
        (Some(stamped), Some(signed)) => format!("{stamped}; {signed}"),
        (Some(stamped), None) => stamped,
        // A signature says who, nothing about when.
        (None, signed) => {
            let signed = signed.unwrap_or_default();
            format!("{signed}; the order of events is the author's word, not stamped")
        }
    }
}

/// Whether a proof proves nothing.
pub fn is_refused(proof: &Checked) -> bool {
    matches!(proof.outcome, Outcome::Refused { .. })
}

/// One proof as one line.
pub fn line(proof: &Checked) -> String {
    let entry = proof.entry.get(..8).unwrap_or(&proof.entry);
    let said = match &proof.outcome {
        Outcome::Signed { by, key, at, touched } => {
            let at = at
                .map_or("as of now, for no stamp is over it".to_owned(), |at| format!("as of {}", date(at)));
            let touched = match touched {
                Some(true) => ", with a touch of the hardware key",
                Some(false) => ", by a hardware key without a touch",
                None => "",
            };
            format!("signed by {by} with {key} (valid {at}{touched})")
        }
        Outcome::Stamped { time, authority, ends, nonce_checked, covers } => {
            let nonce = if *nonce_checked { "" } else { "; nonce not checked, for the request is not there" };
            let covers = covers.as_ref().map_or("", |_| "; over the signature as well");
            format!(
                "stamped before {} by {authority} (its certificate ends {}{covers}{nonce})",
                date(*time),
                date(*ends)
            )
        }
        Outcome::Unknown { why } => format!("well-formed, not verified: {why}"),
        Outcome::Refused { why } => format!("refused: {why}"),
        Outcome::Attached => "kept, not judged here (pending unless verified elsewhere)".to_owned(),
    };
    format!("{entry} {}: {said}", suffix(&proof.file))
}

/// A file's name without the entry's digits.
fn suffix(file: &str) -> &str {
    file.get(64..).map_or(file, |rest| rest.trim_start_matches(".head.json."))
}

/// Seconds since 1970 as a date and a time.
pub fn date(seconds: i64) -> String {
    Timestamp::from_second(seconds).map_or_else(
        |_| format!("second {seconds}"),
        |time| time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
    )
}
