//! Whose keys a reader allows, for what, and when: the file `allowed_signers` of `ssh-keygen(1)`.
//!
//! The file is the reader's own. One that travels with what it is to check is a claim of the sender. Times without
//! `Z` are read as UTC, where `ssh-keygen` takes the local time.

use ssh_key::PublicKey;

use crate::Refusal;
use crate::sshsig::{Signature, fingerprint};

/// The lines of such a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signers(Vec<Line>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    principals: String,
    namespaces: Option<String>,
    /// Seconds since 1970.
    after: Option<i64>,
    before: Option<i64>,
    /// The key signs keys, not messages.
    authority: bool,
    key: PublicKey,
}

impl Signers {
    /// Reads a file. Empty lines and comments are skipped; anything else must be understood.
    pub fn read(text: &str) -> Result<Signers, Refusal> {
        let mut lines = Vec::new();
        for (index, text) in text.lines().enumerate() {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let line = line(text).map_err(|why| Refusal::Malformed(format!("line {}: {why}", index + 1)))?;
            lines.push(line);
        }
        Ok(Signers(lines))
    }

    /// Whether nobody is allowed anything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Who made a signature, of those that the reader allows it at this time (seconds since 1970). With a principal,
    /// only that one will do.
    pub fn allows(&self, signature: &Signature, principal: Option<&str>, at: i64) -> Result<String, Refusal> {
        let key = fingerprint(&signature.key);
        let of_key: Vec<&Line> = self
            .0
            .iter()
            .filter(|line| !line.authority && line.key.key_data() == signature.key.key_data())
            .collect();
        if of_key.is_empty() {
            return Err(Refusal::UnknownKey(key));
        }
        let named: Vec<&Line> = of_key
            .into_iter()
            .filter(|line| principal.is_none_or(|principal| listed(&line.principals, principal)))
            .collect();
        if named.is_empty() {
            return Err(Refusal::Principal { key, principal: principal.unwrap_or_default().to_owned() });
        }
        let mut refusal = None;
        for line in named {
            match line.judge(&signature.namespace, at, &key) {
                Ok(()) => return Ok(principal.unwrap_or(&line.principals).to_owned()),
                Err(why) => refusal = refusal.or(Some(why)),
            }
        }
        Err(refusal.unwrap_or(Refusal::UnknownKey(key)))
    }
}

impl Line {
    fn judge(&self, namespace: &str, at: i64, key: &str) -> Result<(), Refusal> {
        if self.namespaces.as_deref().is_some_and(|allowed| !listed(allowed, namespace)) {
            return Err(Refusal::Purpose { key: key.to_owned(), namespace: namespace.to_owned() });
        }
        if self.after.is_some_and(|after| at < after) {
            return Err(Refusal::NotYetValid(key.to_owned()));
        }
        if self.before.is_some_and(|before| at > before) {
            return Err(Refusal::Expired(key.to_owned()));
        }
        Ok(())
    }
}

fn line(text: &str) -> Result<Line, String> {
    let (principals, rest) = word(text)?;
    let principals = principals.trim_matches('"').to_owned();
    let without =
        |key| Line { principals, namespaces: None, after: None, before: None, authority: false, key };
    if let Ok(key) = PublicKey::from_openssh(rest) {
        return Ok(without(key));
    }
    let (options, key) = word(rest)?;
    let key = PublicKey::from_openssh(key).map_err(|error| format!("no key is readable in it ({error})"))?;
    let mut line = without(key);
    split(options).into_iter().try_for_each(|option| option_of(&mut line, option))?;
    Ok(line)
}

fn option_of(line: &mut Line, option: &str) -> Result<(), String> {
    let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
    let value = value.map(|value| value.trim_matches('"'));
    match (name.to_ascii_lowercase().as_str(), value) {
        ("cert-authority", None) => line.authority = true,
        ("namespaces", Some(list)) => line.namespaces = Some(list.to_owned()),
        ("valid-after", Some(time)) => line.after = Some(seconds(time)?),
        ("valid-before", Some(time)) => line.before = Some(seconds(time)?),
        _ => return Err(format!("the option `{name}` is unknown")),
    }
    Ok(())
}

/// The first word, in which quotes protect blanks, and what follows it.
fn word(text: &str) -> Result<(&str, &str), String> {
    let mut quoted = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            c if c.is_whitespace() && !quoted => return Ok((&text[..at], text[at..].trim())),
            _ => {}
        }
    }
    if quoted { Err("a quote is not closed".to_owned()) } else { Ok((text, "")) }
}

/// The options between commas that no quotes protect.
fn split(options: &str) -> Vec<&str> {
    let (mut quoted, mut start, mut all) = (false, 0, Vec::new());
    for (at, c) in options.char_indices() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => {
                all.push(&options[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    all.push(&options[start..]);
    all
}

/// Whether a word matches a list of patterns with `*`, `?` and a leading `!`, as in `ssh_config(5)`: one that is
/// negated wins.
fn listed(patterns: &str, word: &str) -> bool {
    let mut found = false;
    for pattern in patterns.split(',') {
        match pattern.strip_prefix('!') {
            Some(negated) if matches(negated.as_bytes(), word.as_bytes()) => return false,
            Some(_) => {}
            None => found |= matches(pattern.as_bytes(), word.as_bytes()),
        }
    }
    found
}

/// Whether a pattern covers a text, in time proportional to their product.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == b'?' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    p = at + 1;
                    t = taken + 1;
                    star = Some((at, t));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

/// `YYYYMMDD`, `YYYYMMDDHHMM` or `YYYYMMDDHHMMSS`, with or without `Z`, in seconds since 1970.
fn seconds(text: &str) -> Result<i64, String> {
    let bad = || format!("`{text}` is no time");
    let digits = text.strip_suffix('Z').unwrap_or(text);
    if !matches!(digits.len(), 8 | 12 | 14) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(bad());
    }
    let part =
        |from: usize, to: usize| digits.get(from..to).map_or(Ok(0), str::parse::<i64>).map_err(|_| bad());
    let (year, month, day) = (part(0, 4)?, part(4, 6)?, part(6, 8)?);
    let (hour, minute, second) = (part(8, 10)?, part(10, 12)?, part(12, 14)?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = [31, 28 + i64::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let length = usize::try_from(month - 1).ok().and_then(|month| days.get(month)).ok_or_else(bad)?;
    if !(1..=*length).contains(&day) || hour > 23 || minute > 59 || second > 60 || year < 1970 {
        return Err(bad());
    }
    let before = |year: i64| year * 365 + year / 4 - year / 100 + year / 400;
    let of_year: i64 = days.iter().take(usize::try_from(month - 1).unwrap_or(0)).sum();
    let whole = before(year - 1) - before(1969) + of_year + day - 1;
    Ok(whole * 86_400 + hour * 3_600 + minute * 60 + second)
}
