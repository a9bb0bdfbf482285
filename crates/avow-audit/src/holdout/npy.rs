//! NumPy's `.npy` format, as far as rows need it: a header that is one Python literal, then the numbers.
//!
//! Format: "A simple file format for NumPy arrays" (NEP 1), versions 1 to 3. The crates that read it bring a parser
//! of Python with them; a header here has three known keys. Refused: objects and records; by [`read`] also columns before rows.

/// An array whose rows lie one after the other.
pub struct Array<'a> {
    /// The kind of number, as NumPy writes it without the mark of little-endian order: `f4`, `>f8`.
    pub element: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// The numbers.
    pub data: &'a [u8],
    /// Whether columns come before rows, which only [`read_any`] gives.
    pub columns_first: bool,
}

const MAGIC: &[u8] = b"\x93NUMPY";

/// Reads a file whose rows lie one after the other; `Err` says what is wrong with it.
pub fn read(bytes: &[u8]) -> Result<Array<'_>, String> {
    let array = read_any(bytes)?;
    if array.columns_first && array.shape.len() > 1 {
        return Err("columns before rows (`fortran_order`)".to_owned());
    }
    Ok(array)
}

/// Reads a file in either order; `Err` says what is wrong with it.
pub fn read_any(bytes: &[u8]) -> Result<Array<'_>, String> {
    let rest = bytes.strip_prefix(MAGIC).ok_or("not a `.npy` file")?;
    let (version, rest) = rest.split_at_checked(2).ok_or("cut off")?;
    let (length, rest) = match version[0] {
        1 => {
            let (length, rest) = rest.split_first_chunk::<2>().ok_or("cut off")?;
            (usize::from(u16::from_le_bytes(*length)), rest)
        }
        2 | 3 => {
            let (length, rest) = rest.split_first_chunk::<4>().ok_or("cut off")?;
            (u32::from_le_bytes(*length) as usize, rest)
        }
        other => return Err(format!("version {other} of the format is not known")),
    };
    let (header, data) = rest.split_at_checked(length).ok_or("cut off")?;
    let header = std::str::from_utf8(header).map_err(|_| "the header is no text")?;
    let element = quoted(value(header, "descr")?).ok_or("an array of records or objects")?;
    if element.contains('O') {
        return Err("an array of objects".to_owned());
    }
    let shape = shape(value(header, "shape")?)?;
    let columns_first = value(header, "fortran_order")?.starts_with("True");
    Ok(Array { element: element.trim_start_matches(['<', '|', '=']).to_owned(), shape, data, columns_first })
}

/// What follows a key of the header.
fn value<'h>(header: &'h str, key: &str) -> Result<&'h str, String> {
    let found = ["'", "\""].into_iter().find_map(|quote| header.split_once(&format!("{quote}{key}{quote}:")));
    found.map(|(_, rest)| rest.trim_start()).ok_or_else(|| format!("the header lacks `{key}`"))
}

fn quoted(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    text[1..].split_once(quote).map(|(inner, _)| inner)
}

fn shape(text: &str) -> Result<Vec<usize>, String> {
    let inner =
        text.strip_prefix('(').and_then(|rest| rest.split_once(')')).ok_or("the shape is no tuple")?.0;
    let sizes = inner.split(',').map(str::trim).filter(|size| !size.is_empty());
    sizes
        .map(|size| size.trim_end_matches('L').parse().map_err(|_| "the shape is no tuple".to_owned()))
        .collect()
}

/// NumPy's word for a kind of number of `safetensors`.
pub fn element_of(dtype: &str) -> Option<&'static str> {
    Some(match dtype {
        "BOOL" => "b1",
        "U8" => "u1",
        "I8" => "i1",
        "U16" => "u2",
        "I16" => "i2",
        "U32" => "u4",
        "I32" => "i4",
        "U64" => "u8",
        "I64" => "i8",
        "F16" => "f2",
        "F32" => "f4",
        "F64" => "f8",
        _ => return None,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A file as NumPy writes it.
    pub fn file(descr: &str, shape: &[usize], data: &[u8]) -> Vec<u8> {
        let sizes: String = shape.iter().map(|size| format!("{size}, ")).collect();
        let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({sizes}), }}");
        while !(MAGIC.len() + 4 + header.len() + 1).is_multiple_of(64) {
            header.push(' ');
        }
        header.push('\n');
        let length = u16::try_from(header.len()).unwrap().to_le_bytes();
        [MAGIC, &[1, 0], &length, header.as_bytes(), data].concat()
    }

    #[test]
    fn a_header_says_what_follows() {
        let bytes = file("<f8", &[2, 3], &[0; 48]);
        let array = read(&bytes).ok().unwrap();
        assert_eq!(
            (array.element.as_str(), array.shape.as_slice(), array.data.len()),
            ("f8", &[2, 3][..], 48)
        );
        assert_eq!(read(&file("|b1", &[], &[1])).ok().unwrap().shape, [0usize; 0]);
        assert_eq!(read(&file(">i2", &[1, 1], &[0, 1])).ok().unwrap().element, ">i2");
    }

    #[test]
    fn what_has_no_rows_is_refused_and_nothing_panics() {
        let refused = |bytes: &[u8]| read(bytes).err().unwrap();
        assert!(refused(b"PK\x03\x04").contains("not a"));
        assert!(refused(&file("|O", &[2, 2], &[])).contains("objects"));
        let columns = String::from_utf8_lossy(&file("<f4", &[2, 2], &[])[10..]).replace("False", "True ");
        let length = u16::try_from(columns.len()).unwrap().to_le_bytes();
        let whole = [MAGIC, &[1, 0], &length, columns.as_bytes()].concat();
        assert!(refused(&whole).contains("fortran_order"));
        let sound = file("<f4", &[2, 2], &[0; 16]);
        for end in 0..sound.len() - 16 {
            assert!(read(&sound[..end]).is_err(), "{end}");
        }
        for header in
            ["{'descr': [('a', '<f4')], 'shape': (1,)}", "{}", "{'descr': '<f4', 'shape': (x,)}", "{'descr':"]
        {
            let length = u16::try_from(header.len()).unwrap().to_le_bytes();
            assert!(read(&[MAGIC, &[1, 0], &length, header.as_bytes()].concat()).is_err(), "{header}");
        }
    }
}
