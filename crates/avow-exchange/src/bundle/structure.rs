//! The structure of the archive, read by ourselves and compared with the one form that is written.
//!
//! Readers of zip archives differ in what they overlook: a second entry of the same name, a local header that
//! says something else than the directory, bytes before, between or behind the entries. So each of these is
//! refused here: entries lie one behind the other from the first byte, the directory follows, its end record ends
//! the file, and both headers of an entry say the same. Layout: PKWARE's APPNOTE 6.3, sections 4.3.7 to 4.5.3.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::error::BundleError;
use super::name;

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const END_64: u32 = 0x0606_4b50;
const LOCATOR_64: u32 = 0x0706_4b50;
/// A value that stands in the extra field of 64-bit sizes.
const ELSEWHERE: u32 = u32::MAX;
/// Bits that say nothing but how the compressor went about it.
const HARMLESS_FLAGS: u16 = 0b110;

/// Where an entry lies and what its headers say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Located {
    /// Its name.
    pub name: String,
    /// Whether it is deflated; stored as it is otherwise.
    pub deflated: bool,
    /// Bytes in the archive.
    pub packed: u64,
    /// Bytes when unpacked, as the headers claim.
    pub size: u64,
    /// The CRC-32 of what it unpacks to: damage by chance shows there also where no digest does, in the manifest.
    pub checksum: u32,
    /// Where its bytes begin.
    pub begin: u64,
}

/// The directory's place.
struct Directory {
    count: u64,
    begin: u64,
    size: u64,
}

/// One header of either kind, without its place.
#[derive(PartialEq, Eq)]
struct Header {
    name: String,
    method: u16,
    checksum: u32,
    packed: u64,
    size: u64,
}

/// Reads the structure; the entries in the order in which they lie.
pub(super) fn entries(file: &File, length: u64, most: u64) -> Result<Vec<Located>, BundleError> {
    let directory = directory(file, length)?;
    if directory.count > most {
        return Err(BundleError::Limit { what: "entries", found: directory.count, limit: most });
    }
    // A header is 46 bytes, a name at most 420, an extra field of sizes at most 28: more is something else.
    if directory.size > directory.count.saturating_mul(512) {
        return refuse("its directory is larger than its entries need");
    }
    let bytes = bytes_at(file, directory.begin, directory.size)?;
    let mut fields = Fields(&bytes);
    let (mut found, mut next) = (Vec::new(), 0);
    for _ in 0..directory.count {
        let (header, offset) = central(&mut fields)?;
        if offset != next {
            return refuse("its entries do not lie one behind the other");
        }
        let begin = local(file, offset, &header)?;
        next = begin.checked_add(header.packed).ok_or_else(|| structure("a size is beyond all bounds"))?;
        if next > directory.begin {
            return refuse("an entry reaches into the directory");
        }
        let Header { name, method, checksum, packed, size } = header;
        found.push(Located { name, deflated: method == 8, packed, size, checksum, begin });
    }
    if next != directory.begin || !fields.0.is_empty() {
        return refuse("there are bytes between its entries and its directory, or behind it");
    }
    Ok(found)
}

fn directory(file: &File, length: u64) -> Result<Directory, BundleError> {
    let Some(place) = length.checked_sub(22) else { return refuse("it is too short") };
    let bytes = bytes_at(file, place, 22)?;
    let mut end = Fields(&bytes);
    if end.u32()? != END {
        return refuse("it does not end with the end record of an archive without comment");
    }
    let (disk, first, here, count) = (end.u16()?, end.u16()?, end.u16()?, end.u16()?);
    let (size, begin, comment) = (end.u32()?, end.u32()?, end.u16()?);
    if disk != 0 || first != 0 || here != count || comment != 0 {
        return refuse("it has several parts, or a comment");
    }
    let large = count == u16::MAX || size == ELSEWHERE || begin == ELSEWHERE;
    let (directory, behind) = if large {
        large_directory(file, place)?
    } else {
        (Directory { count: count.into(), begin: begin.into(), size: size.into() }, place)
    };
    if directory.begin.checked_add(directory.size) != Some(behind) {
        return refuse("its directory does not end where its end record begins");
    }
    Ok(directory)
}

/// The directory's place from the 64-bit records in front of the end record, and where these begin.
fn large_directory(file: &File, end: u64) -> Result<(Directory, u64), BundleError> {
    let Some(record) = end.checked_sub(20 + 56) else { return refuse("it is too short") };
    let bytes = bytes_at(file, record, 76)?;
    let mut fields = Fields(&bytes);
    if fields.u32()? != END_64 || fields.u64()? != 44 {
        return refuse("its 64-bit end record is missing or longer than it should be");
    }
    let _versions = fields.u32()?;
    let (disk, first, here, count) = (fields.u32()?, fields.u32()?, fields.u64()?, fields.u64()?);
    let (size, begin) = (fields.u64()?, fields.u64()?);
    let (locator, of, at, disks) = (fields.u32()?, fields.u32()?, fields.u64()?, fields.u32()?);
    if disk != 0
        || first != 0
        || here != count
        || locator != LOCATOR_64
        || of != 0
        || at != record
        || disks != 1
    {
        return refuse("its 64-bit end records do not belong together");
    }
    Ok((Directory { count, begin, size }, record))
}

/// A header of the directory and where it says that the entry lies.
fn central(fields: &mut Fields<'_>) -> Result<(Header, u64), BundleError> {
    if fields.u32()? != CENTRAL {
        return refuse("a header of its directory is damaged");
    }
    let (_made_by, _needed, flags, method) = (fields.u16()?, fields.u16()?, fields.u16()?, fields.u16()?);
    let (_moment, checksum) = (fields.u32()?, fields.u32()?);
    let (packed, size) = (fields.u32()?, fields.u32()?);
    let (name, extra, comment) = (fields.u16()?, fields.u16()?, fields.u16()?);
    let (disk, _text, attributes, offset) = (fields.u16()?, fields.u16()?, fields.u32()?, fields.u32()?);
    let name = entry_name(fields.take(name.into())?)?;
    let mut extra = Large::of(fields.take(extra.into())?)?;
    if comment != 0 || disk != 0 {
        return refuse("an entry has a comment, or lies elsewhere");
    }
    // The upper half is the mode of a Unix file: 0o100000 is a regular one, 0 is nothing said.
    if !matches!((attributes >> 16) & 0o170_000, 0 | 0o100_000) {
        return refuse(&format!("`{name}` is not a regular file"));
    }
    plain(flags, method, &name)?;
    let (size, packed) = (extra.value(size)?, extra.value(packed)?);
    let offset = extra.value(offset)?;
    extra.done()?;
    Ok((Header { name, method, checksum, packed, size }, offset))
}

/// Reads the header in front of an entry's bytes, compares it with the directory's, and returns where they begin.
fn local(file: &File, offset: u64, expected: &Header) -> Result<u64, BundleError> {
    let bytes = bytes_at(file, offset, 30)?;
    let mut fields = Fields(&bytes);
    if fields.u32()? != LOCAL {
        return refuse("an entry is not where its directory says");
    }
    let (_needed, flags, method) = (fields.u16()?, fields.u16()?, fields.u16()?);
    let (_moment, checksum) = (fields.u32()?, fields.u32()?);
    let (packed, size) = (fields.u32()?, fields.u32()?);
    let (name, extra) = (u64::from(fields.u16()?), u64::from(fields.u16()?));
    let bytes = bytes_at(file, offset + 30, name + extra)?;
    let mut rest = Fields(&bytes);
    let name_read = entry_name(rest.take(name as usize)?)?;
    let mut extra_read = Large::of(rest.take(extra as usize)?)?;
    plain(flags, method, &name_read)?;
    let (size, packed) = (extra_read.value(size)?, extra_read.value(packed)?);
    extra_read.done()?;
    if (Header { name: name_read, method, checksum, packed, size }) != *expected {
        return refuse(&format!("the two headers of `{}` differ", expected.name));
    }
    Ok(offset + 30 + name + extra)
}

fn entry_name(bytes: &[u8]) -> Result<String, BundleError> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    match name::place(&text) {
        Some(_) => Ok(text),
        None => refuse(&format!("no entry may be called {text:?}")),
    }
}

fn plain(flags: u16, method: u16, name: &str) -> Result<(), BundleError> {
    if flags & !HARMLESS_FLAGS != 0 {
        return refuse(&format!("`{name}` is encrypted, or its sizes are not in front of it"));
    }
    if !matches!(method, 0 | 8) {
        return refuse(&format!("`{name}` is compressed by another method than deflate"));
    }
    Ok(())
}

/// The extra field of a header: 64-bit values, in their order, for those of 32 bits that are all ones.
struct Large<'a>(Fields<'a>);

impl<'a> Large<'a> {
    fn of(bytes: &'a [u8]) -> Result<Large<'a>, BundleError> {
        let mut fields = Fields(bytes);
        if bytes.is_empty() {
            return Ok(Large(fields));
        }
        let (kind, length) = (fields.u16()?, fields.u16()?);
        if kind != 1 || usize::from(length) != fields.0.len() {
            return refuse("an entry has an extra field that is no 64-bit size");
        }
        Ok(Large(fields))
    }

    fn value(&mut self, short: u32) -> Result<u64, BundleError> {
        if short == ELSEWHERE { self.0.u64() } else { Ok(short.into()) }
    }

    fn done(&self) -> Result<(), BundleError> {
        if self.0.0.is_empty() { Ok(()) } else { refuse("an entry has a 64-bit size that it does not need") }
    }
}

/// Little-endian fields, read one after the other.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], BundleError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(|| structure("a header is cut off"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], BundleError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn u16(&mut self) -> Result<u16, BundleError> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, BundleError> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, BundleError> {
        self.array().map(u64::from_le_bytes)
    }
}

/// Bytes of the archive; all of them, or it is cut off.
fn bytes_at(file: &File, at: u64, count: u64) -> Result<Vec<u8>, BundleError> {
    let mut bytes = vec![0; usize::try_from(count).map_err(|_| structure("a size is beyond all bounds"))?];
    file.read_exact_at(&mut bytes, at).map_err(|_| structure("it is cut off"))?;
    Ok(bytes)
}

fn structure(reason: &str) -> BundleError {
    BundleError::Structure(reason.to_owned())
}

fn refuse<T>(reason: &str) -> Result<T, BundleError> {
    Err(structure(reason))
}
