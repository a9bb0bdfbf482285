//! The image that a stage's command runs in. What it holds is the image's: this machine's programs, packages and lock
//! files are not asked.

use std::ops::Range;

use avow_model::plan::Image;

use super::environment::UNPINNED;
use crate::diagnostic::Diagnostic;
use crate::lower::Cx;
use crate::lower::outputs::project_path;
use crate::lower::stage::Draft;
use crate::tree::Node;

/// The longest name of an image, in bytes.
const LONGEST: usize = 1000;

/// Fills in the image of a stage; whether it names one, be it rightly or not.
pub(super) fn fill(cx: &Cx<'_>, draft: &mut Draft<'_>) -> bool {
    let Some(environment) = draft.node.get("environment").filter(|node| node.is_map()) else { return false };
    let Some(node) = environment.get("image") else { return false };
    if environment.entries().len() > 1 {
        let message = "a stage runs in an image, or in what a lock file says";
        let hint = "an image is pinned by its digest, and needs no lock file";
        cx.push(Diagnostic::error("environment", environment.span.clone(), message).hint(hint));
        return true;
    }
    if let Some(image) = node.text().and_then(|text| found(cx, node, text)) {
        draft.terms.image = Some(image.name.clone());
        draft.image = Some(image);
    }
    true
}

fn found(cx: &Cx<'_>, node: &Node, text: &str) -> Option<Image> {
    let path = text.trim_start_matches("./").trim_end_matches('/');
    let spelled = text.starts_with("./") || text.ends_with('/') || text.ends_with(".tar");
    if spelled || cx.world.look(path).is_some() {
        let (path, _) = project_path(cx, node, text)?;
        return match cx.world.image(&path) {
            Ok(identity) => Some(Image { name: path, identity }),
            Err(reason) => {
                let message = format!("`{path}` is no image: {reason}");
                let hint = "`podman save --format oci-archive -o image.tar NAME` writes one";
                cx.push(Diagnostic::error("environment", node.span.clone(), message).hint(hint));
                None
            }
        };
    }
    match reference(text) {
        Ok(Some(digest)) => Some(Image { name: text.to_owned(), identity: digest.to_owned() }),
        Ok(None) => {
            open(cx, text, node.span.clone());
            Some(Image { name: text.to_owned(), identity: text.to_owned() })
        }
        Err(message) => {
            let hint = "write `registry/name@sha256:…`, or the path of an OCI archive";
            cx.push(Diagnostic::error("environment", node.span.clone(), message).hint(hint));
            None
        }
    }
}

fn open(cx: &Cx<'_>, text: &str, at: Range<usize>) {
    let message = format!("`{text}` is a tag, which may come to mean another image");
    let hint = "name the image by its digest, `name@sha256:…`; `podman image inspect --format '{{.Digest}}' NAME` prints it";
    cx.push(Diagnostic::warning(UNPINNED, at, message).hint(hint));
}

/// The digest in the name of an image; `None` where it has none. The name is given to a program as an argument of its
/// own, and must not pass for an option there.
fn reference(text: &str) -> Result<Option<&str>, &'static str> {
    let (name, digest) = text.split_once('@').map_or((text, None), |(name, digest)| (name, Some(digest)));
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/:".contains(c);
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if !begins || !name.chars().all(plain) || text.len() > LONGEST || name.contains("//") {
        return Err("this names no image");
    }
    let Some(digest) = digest else { return Ok(None) };
    let hex = digest.strip_prefix("sha256:").unwrap_or_default();
    match hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
        true => Ok(Some(digest)),
        false => Err("the digest of an image is `sha256:` and 64 hexadecimal digits"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_pinned_by_a_whole_digest_and_never_passes_for_an_option() {
        let digest = format!("sha256:{}", "a".repeat(64));
        assert_eq!(reference(&format!("docker.io/library/python@{digest}")), Ok(Some(digest.as_str())));
        assert_eq!(reference(&format!("localhost:5000/python:3.12@{digest}")), Ok(Some(digest.as_str())));
        assert_eq!(reference("python:3.12-slim"), Ok(None));
        let long = "a".repeat(2000);
        for wrong in
            ["", "--privileged", "a b", "x@sha256:12", "x@md5:1", "-x", "x;y", "http://x", "@sha256:1", &long]
        {
            assert!(reference(wrong).is_err(), "{wrong}");
        }
    }
}
