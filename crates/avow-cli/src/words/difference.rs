//! How two artifacts differ, in words.

use avow_audit::compare::{Difference, How, Numbers};

use crate::words::{bytes, number};

/// One difference of an output as one line.
pub fn words(output: &str, Difference { path, how }: &Difference) -> String {
    let place = if path.is_empty() { output.to_owned() } else { format!("{output}/{path}") };
    format!("{place}: {}", sentence(how))
}

/// How two files differ.
pub fn sentence(how: &How) -> String {
    match how {
        How::Spelling => "the same values, spelled in another way".to_owned(),
        How::Numbers(Numbers { compared, unequal, relative, absolute, .. }) => {
            let largest = match relative.is_finite() {
                true => format!("largest relative difference {}", number(*relative)),
                false => format!("largest difference {}, from 0 or to what is no number", number(*absolute)),
            };
            format!(
                "{unequal} of {compared} numbers {}, {largest}",
                if *unequal == 1 { "differs" } else { "differ" }
            )
        }
        How::Bytes { sizes: [a, b], at } => {
            let sizes = if a == b {
                format!("{} each", bytes(*a))
            } else {
                format!("{} and {}", bytes(*a), bytes(*b))
            };
            let at = at.map(|at| format!(" from byte {at} on")).unwrap_or_default();
            format!("the bytes differ{at} ({sizes})")
        }
        How::Digest => "the digests differ; the contents are not kept".to_owned(),
        How::OnlyOne { reference: true } => "only the first attempt wrote it".to_owned(),
        How::OnlyOne { reference: false } => "the first attempt did not write it".to_owned(),
        How::Kind => "a file of another kind".to_owned(),
    }
}
