//! NumPy's `.npy` and `safetensors`.

use safetensors::SafeTensors;

use super::{Content, numbers};
use crate::holdout::npy;

/// One array; its order in memory is part of what must be the same.
pub(super) fn npy(bytes: &[u8]) -> Option<Content> {
    let array = npy::read_any(bytes).ok()?;
    let (kind, swapped) = match array.element.strip_prefix('>') {
        Some(kind) => (kind, true),
        None => (array.element.as_str(), false),
    };
    let numbers = numbers(kind, array.data, swapped)?;
    let elements = array.shape.iter().try_fold(1usize, |all, size| all.checked_mul(*size))?;
    let words = vec![kind.to_owned(), format!("{:?}", array.shape), array.columns_first.to_string()];
    (numbers.len() == elements).then_some(Content { words, numbers })
}

/// Every tensor by its name, and what else the header says.
pub(super) fn safetensors(bytes: &[u8]) -> Option<Content> {
    let (_, header) = SafeTensors::read_metadata(bytes).ok()?;
    let tensors = SafeTensors::deserialize(bytes).ok()?;
    let mut content = Content::default();
    if let Some(said) = header.metadata() {
        let mut said: Vec<String> = said.iter().map(|(key, value)| format!("{key}={value}")).collect();
        said.sort();
        content.words.extend(said);
    }
    let mut names: Vec<_> = tensors.iter().collect();
    names.sort_by_key(|(name, _)| *name);
    for (name, tensor) in names {
        let kind = match format!("{:?}", tensor.dtype()).as_str() {
            "BF16" => "bf2",
            other => npy::element_of(other)?,
        };
        content.words.push(format!("{name} {kind} {:?}", tensor.shape()));
        content.numbers.extend(numbers(kind, tensor.data(), false)?);
    }
    Some(content)
}
