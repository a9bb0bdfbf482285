//! Finds values that look like secrets: a spec is committed, registered and published.
//!
//! Patterns of well-known credentials anywhere, and long values under keys that say what they are.

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::tree::{Node, What};

/// Prefixes that tell a credential, with the least number of characters that follow.
const PREFIXES: &[(&str, usize, &str)] = &[
    ("AKIA", 16, "an AWS access key"),
    ("ASIA", 16, "an AWS access key"),
    ("ghp_", 30, "a GitHub token"),
    ("gho_", 30, "a GitHub token"),
    ("ghs_", 30, "a GitHub token"),
    ("github_pat_", 30, "a GitHub token"),
    ("glpat-", 18, "a GitLab token"),
    ("hf_", 30, "a Hugging Face token"),
    ("sk-", 30, "an API key"),
    ("xoxb-", 20, "a Slack token"),
    ("xoxp-", 20, "a Slack token"),
    ("AIza", 34, "a Google API key"),
];

/// Words in a key that say its value is secret.
const KEYS: &[&str] =
    &["password", "passwd", "secret", "token", "api_key", "apikey", "private_key", "credential"];

/// Looks at every scalar that the text spells out.
pub(crate) fn check(root: &Node, out: &mut Diagnostics) {
    walk(root, None, out);
}

fn walk(node: &Node, key: Option<&str>, out: &mut Diagnostics) {
    match &node.what {
        What::Map(entries) => entries.iter().for_each(|entry| walk(&entry.value, Some(&entry.key), out)),
        What::List(items) => items.iter().for_each(|item| walk(item, key, out)),
        What::Scalar(scalar) => {
            if let Some(what) = credential(&scalar.text).or_else(|| confessed(key?, &scalar.text)) {
                let message = format!("this looks like {what}, and a spec is no place for a secret");
                let hint = "take it out, and revoke it if the file was ever shared";
                out.push(Diagnostic::error("secret", node.span.clone(), message).hint(hint));
            }
        }
    }
}

fn credential(text: &str) -> Option<&'static str> {
    if text.contains("-----BEGIN ") && text.contains("PRIVATE KEY-----") {
        return Some("a private key");
    }
    let token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    text.split(|c: char| !token(c)).find_map(|word| {
        let hit = |(prefix, least, _): &&(&str, usize, &str)| {
            word.strip_prefix(prefix).is_some_and(|rest| rest.len() >= *least && mixed(rest))
        };
        PREFIXES.iter().find(hit).map(|(_, _, what)| *what)
    })
}

/// Letters and digits together, as generated tokens have them and words do not.
fn mixed(text: &str) -> bool {
    text.bytes().any(|b| b.is_ascii_digit()) && text.bytes().any(|b| b.is_ascii_alphabetic())
}

fn confessed(key: &str, text: &str) -> Option<&'static str> {
    let key = key.to_lowercase().replace('-', "_");
    let named = KEYS.iter().any(|word| key == *word || key.ends_with(&format!("_{word}")));
    (named && text.len() >= 12 && mixed(text) && !text.contains("${") && !text.contains([' ', '/']))
        .then_some("a password or token")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_told_from_words() {
        assert!(credential("x AKIAIOSFODNN7EXAMPLE y").is_some());
        assert!(credential("-----BEGIN RSA PRIVATE KEY-----\nabc").is_some());
        assert!(credential("sk-learn-is-not-a-key-even-if-it-is-long").is_none());
        assert!(confessed("HF_TOKEN", "abcdefgh12345678").is_some());
        assert!(confessed("token", "${params.token_12345}").is_none());
        assert!(confessed("tokens", "abcdefgh12345678").is_none());
        assert!(confessed("token", "short1").is_none());
    }
}
