//! Many small blobs in one body: four bytes of length (big-endian) and so many bytes, one after the other. Names
//! are not sent: who receives a blob computes its name.

use super::protocol::{DecodeError, SMALL};

/// Stands in the place of a blob that has to be asked for by itself.
pub(crate) const ALONE: u32 = u32::MAX;

/// Adds a blob.
pub(crate) fn add(pack: &mut Vec<u8>, blob: &[u8]) {
    let length = u32::try_from(blob.len()).unwrap_or(ALONE);
    pack.extend(length.to_be_bytes());
    pack.extend_from_slice(blob);
}

/// Adds the mark of one that is asked for by itself.
pub(crate) fn add_alone(pack: &mut Vec<u8>) {
    pack.extend(ALONE.to_be_bytes());
}

/// The blobs of a pack, in order; `None` for each that has to be asked for by itself.
///
/// # Errors
/// For a length that is too long, or bytes that end too early.
pub fn blobs(mut pack: &[u8]) -> Result<Vec<Option<&[u8]>>, DecodeError> {
    let mut found = Vec::new();
    while !pack.is_empty() {
        let short = || DecodeError("a pack of blobs that ends too early".to_owned());
        let (length, rest) = pack.split_first_chunk::<4>().ok_or_else(short)?;
        match u32::from_be_bytes(*length) {
            ALONE => {
                found.push(None);
                pack = rest;
            }
            length if u64::from(length) > SMALL => {
                return Err(DecodeError(format!("a blob of {length} bytes in a pack of small ones")));
            }
            length => {
                let (blob, after) = rest.split_at_checked(length as usize).ok_or_else(short)?;
                found.push(Some(blob));
                pack = after;
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_out_again_and_cut_packs_are_refused() {
        let mut pack = Vec::new();
        add(&mut pack, b"one");
        add_alone(&mut pack);
        add(&mut pack, b"");
        assert_eq!(blobs(&pack).unwrap(), [Some(&b"one"[..]), None, Some(&b""[..])]);
        assert!(
            blobs(&pack[..5]).is_err() && blobs(&[0, 0, 1]).is_err() && blobs(&[0, 255, 0, 0, 1]).is_err()
        );
    }
}
