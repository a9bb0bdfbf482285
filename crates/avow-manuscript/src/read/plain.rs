//! Text as it is; `{{ avow … }}` is a binding here too.

use super::macros;
use crate::text::Flat;

/// Reads the first file.
pub(super) fn read(flat: &mut Flat) {
    let length = flat.files[0].text.len();
    macros::with_bindings(flat, 0, 0..length);
}
