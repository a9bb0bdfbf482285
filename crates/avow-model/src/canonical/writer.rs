//! The canonical bytes of a value, written as serde walks it.
//!
//! Binding a member hashes its action and recording an attempt hashes it, so this is the innermost loop of a run;
//! a tree of values in between would cost five times as much. Sequences and maps are written where they belong; only
//! what turns out to have another length than it said, or keys in another order than the canonical one, is written
//! a second time.

use std::fmt;

use serde::ser::{self, Serialize};

/// What a record cannot hold. Records are made of types that have none of it.
#[derive(Debug)]
pub(super) struct Unwritable(String);

impl fmt::Display for Unwritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unwritable {}

impl ser::Error for Unwritable {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Unwritable(message.to_string())
    }
}

type Written = Result<(), Unwritable>;

/// Appends the canonical bytes of a value.
pub(super) fn write<T: Serialize + ?Sized>(value: &T, out: &mut Vec<u8>) -> Written {
    value.serialize(Writer { out })
}

/// The head and the bytes of a text.
pub(super) fn write_text(text: &str, out: &mut Vec<u8>) {
    head(3, text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}

/// A CBOR head: major type and argument, in the fewest bytes.
pub(super) fn head(major: u8, argument: u64, out: &mut Vec<u8>) {
    let major = major << 5;
    match argument {
        0..=23 => out.push(major | argument as u8),
        24..=0xff => out.extend([major | 24, argument as u8]),
        0x100..=0xffff => {
            out.push(major | 25);
            out.extend((argument as u16).to_be_bytes());
        }
        0x1_0000..=0xffff_ffff => {
            out.push(major | 26);
            out.extend((argument as u32).to_be_bytes());
        }
        _ => {
            out.push(major | 27);
            out.extend(argument.to_be_bytes());
        }
    }
}

/// No finite value has two forms, and no payload of a NaN can carry a message.
fn one_form(x: f64) -> f64 {
    if x.is_nan() {
        f64::from_bits(0x7ff8_0000_0000_0000)
    } else if x == 0.0 {
        0.0
    } else {
        x
    }
}

struct Writer<'o> {
    out: &'o mut Vec<u8>,
}

impl Writer<'_> {
    fn signed(self, value: i64) -> Written {
        // -1 - n of a negative n is its bits inverted.
        if value < 0 {
            head(1, !value as u64, self.out)
        } else {
            head(0, value as u64, self.out)
        }
        Ok(())
    }

    fn unsigned(self, value: u64) -> Written {
        head(0, value, self.out);
        Ok(())
    }

    fn null(self) -> Written {
        self.out.push(0xf6);
        Ok(())
    }
}

macro_rules! integers {
    ($($name:ident $type:ty => $how:ident),*) => {
        $(fn $name(self, value: $type) -> Written { self.$how(value.into()) })*
    };
}

impl<'o> ser::Serializer for Writer<'o> {
    type Ok = ();
    type Error = Unwritable;
    type SerializeSeq = Items<'o>;
    type SerializeTuple = Items<'o>;
    type SerializeTupleStruct = Items<'o>;
    type SerializeTupleVariant = Items<'o>;
    type SerializeMap = Entries<'o>;
    type SerializeStruct = Entries<'o>;
    type SerializeStructVariant = Entries<'o>;

    integers!(
        serialize_i8 i8 => signed, serialize_i16 i16 => signed, serialize_i32 i32 => signed,
        serialize_i64 i64 => signed, serialize_u8 u8 => unsigned, serialize_u16 u16 => unsigned,
        serialize_u32 u32 => unsigned, serialize_u64 u64 => unsigned
    );

    fn serialize_bool(self, value: bool) -> Written {
        self.out.push(if value { 0xf5 } else { 0xf4 });
        Ok(())
    }

    fn serialize_f32(self, value: f32) -> Written {
        self.serialize_f64(value.into())
    }

    fn serialize_f64(self, value: f64) -> Written {
        self.out.push(0xfb);
        self.out.extend(one_form(value).to_be_bytes());
        Ok(())
    }

    fn serialize_char(self, value: char) -> Written {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Written {
        write_text(value, self.out);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Written {
        head(2, value.len() as u64, self.out);
        self.out.extend_from_slice(value);
        Ok(())
    }

    fn serialize_none(self) -> Written {
        self.null()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Written {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Written {
        self.null()
    }

    fn serialize_unit_struct(self, _: &'static str) -> Written {
        self.null()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Written {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Written {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Written {
        head(5, 1, self.out);
        write_text(variant, self.out);
        value.serialize(self)
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<Items<'o>, Unwritable> {
        Ok(Items { whole: Whole::begin(4, len, self.out), count: 0 })
    }

    fn serialize_tuple(self, len: usize) -> Result<Items<'o>, Unwritable> {
        self.serialize_seq(Some(len))
    }

    fn serialize_tuple_struct(self, _: &'static str, len: usize) -> Result<Items<'o>, Unwritable> {
        self.serialize_seq(Some(len))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Items<'o>, Unwritable> {
        head(5, 1, self.out);
        write_text(variant, self.out);
        self.serialize_seq(Some(len))
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Entries<'o>, Unwritable> {
        let whole = Whole::begin(5, len, self.out);
        Ok(Entries { whole, entries: Vec::with_capacity(len.unwrap_or_default().min(64)) })
    }

    fn serialize_struct(self, _: &'static str, len: usize) -> Result<Entries<'o>, Unwritable> {
        self.serialize_map(Some(len))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Entries<'o>, Unwritable> {
        head(5, 1, self.out);
        write_text(variant, self.out);
        self.serialize_map(Some(len))
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// A sequence or a map that is being written.
struct Whole<'o> {
    out: &'o mut Vec<u8>,
    major: u8,
    /// How long it said that it would be.
    said: Option<usize>,
    /// Where its head begins, and where the head ends.
    at: usize,
    body: usize,
}

impl<'o> Whole<'o> {
    fn begin(major: u8, said: Option<usize>, out: &'o mut Vec<u8>) -> Self {
        let at = out.len();
        head(major, said.unwrap_or_default() as u64, out);
        let body = out.len();
        Whole { out, major, said, at, body }
    }

    /// Writes the head anew, and behind it what `fill` makes of the body.
    fn again(self, count: usize, fill: impl FnOnce(&[u8], &mut Vec<u8>)) {
        let body = self.out.split_off(self.body);
        self.out.truncate(self.at);
        head(self.major, count as u64, self.out);
        fill(&body, self.out);
    }
}

/// The items of a sequence so far.
struct Items<'o> {
    whole: Whole<'o>,
    count: usize,
}

impl Items<'_> {
    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Written {
        self.count += 1;
        write(value, self.whole.out)
    }

    fn finish(self) -> Written {
        if self.whole.said != Some(self.count) {
            self.whole.again(self.count, |body, out| out.extend_from_slice(body));
        }
        Ok(())
    }
}

macro_rules! items {
    ($($trait:ident $name:ident),*) => {
        $(impl ser::$trait for Items<'_> {
            type Ok = ();
            type Error = Unwritable;
            fn $name<T: Serialize + ?Sized>(&mut self, value: &T) -> Written {
                self.item(value)
            }
            fn end(self) -> Written {
                self.finish()
            }
        })*
    };
}
items!(
    SerializeSeq serialize_element, SerializeTuple serialize_element, SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field
);

/// The entries of a map so far: where each begins and its key ends.
struct Entries<'o> {
    whole: Whole<'o>,
    entries: Vec<(usize, usize)>,
}

impl Entries<'_> {
    fn key<T: Serialize + ?Sized>(&mut self, key: &T) -> Written {
        let begin = self.whole.out.len();
        write(key, self.whole.out)?;
        self.entries.push((begin, self.whole.out.len()));
        Ok(())
    }

    fn field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Written {
        self.key(key)?;
        write(value, self.whole.out)
    }

    fn finish(self) -> Written {
        let Entries { whole, entries } = self;
        let key = |entry: &(usize, usize)| &whole.out[entry.0..entry.1];
        let canonical = entries.is_sorted_by(|a, b| key(a) <= key(b));
        if canonical && whole.said == Some(entries.len()) {
            return Ok(());
        }
        let begun = whole.body;
        let ends = entries.iter().skip(1).map(|(begin, _)| *begin).chain([whole.out.len()]);
        let mut spans: Vec<_> = entries.iter().copied().zip(ends).collect();
        spans.sort_by(|(a, _), (b, _)| key(a).cmp(key(b)));
        whole.again(entries.len(), |body, out| {
            for ((begin, _), end) in spans {
                out.extend_from_slice(&body[begin - begun..end - begun]);
            }
        });
        Ok(())
    }
}

impl ser::SerializeMap for Entries<'_> {
    type Ok = ();
    type Error = Unwritable;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Written {
        self.key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Written {
        write(value, self.whole.out)
    }

    fn end(self) -> Written {
        self.finish()
    }
}

macro_rules! entries {
    ($($trait:ident),*) => {
        $(impl ser::$trait for Entries<'_> {
            type Ok = ();
            type Error = Unwritable;
            fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Written {
                self.field(key, value)
            }
            fn end(self) -> Written {
                self.finish()
            }
        })*
    };
}
entries!(SerializeStruct, SerializeStructVariant);

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ciborium::Value as Cbor;
    use serde::Serialize;

    use super::write;

    /// Every shape that serde has.
    #[derive(Clone, Serialize)]
    enum Shape {
        Unit,
        One(Box<Shape>),
        Two(i64, Option<u64>),
        Fields { text: String, a: bool, nested: BTreeMap<String, Shape> },
        Numbers(Vec<f64>),
        Small((u8, i8, f32, char)),
        Nothing(()),
    }

    /// The bytes by way of a tree of values, whose maps are sorted by hand.
    fn by_tree(value: &Cbor) -> Cbor {
        match value {
            Cbor::Array(items) => Cbor::Array(items.iter().map(by_tree).collect()),
            Cbor::Map(entries) => {
                let mut entries: Vec<(Cbor, Cbor)> =
                    entries.iter().map(|(k, v)| (by_tree(k), by_tree(v))).collect();
                entries.sort_by_key(|(key, _)| bytes(key));
                Cbor::Map(entries)
            }
            other => other.clone(),
        }
    }

    fn bytes(value: &Cbor) -> Vec<u8> {
        let mut out = Vec::new();
        ciborium::into_writer(value, &mut out).unwrap();
        out
    }

    #[test]
    fn what_is_written_as_it_goes_is_what_a_sorted_tree_gives() {
        let leaf = Shape::Fields { text: "x".repeat(300), a: true, nested: BTreeMap::new() };
        let nested = BTreeMap::from([("longer".to_owned(), Shape::Unit), ("b".to_owned(), leaf.clone())]);
        let shapes = [
            Shape::Unit,
            Shape::One(Box::new(Shape::Two(-1, None))),
            Shape::Two(i64::MIN, Some(u64::MAX)),
            Shape::Two(23, Some(24)),
            Shape::Two(-24, Some(256)),
            Shape::Two(65_536, Some(1 << 32)),
            Shape::Fields { text: "é".to_owned(), a: false, nested },
            Shape::Small((255, -128, 0.1, 'ß')),
            Shape::Nothing(()),
        ];
        for shape in &shapes {
            let mut written = Vec::new();
            write(shape, &mut written).unwrap();
            let tree: Cbor = ciborium::from_reader(&written[..]).unwrap();
            assert_eq!(tree, by_tree(&Cbor::serialized(shape).unwrap()));
            // Floats apart, which are always written in 64 bits, there is one shortest form.
            if !matches!(shape, Shape::Small(_)) {
                assert_eq!(written, bytes(&tree));
            }
        }
    }

    /// Thirty items, or entries whose keys come in the wrong order, of which it says that they are `said`.
    struct Said {
        said: Option<usize>,
        map: bool,
    }

    impl Serialize for Said {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            use serde::ser::{SerializeMap, SerializeSeq};
            if self.map {
                let mut map = serializer.serialize_map(self.said)?;
                (0..30).rev().try_for_each(|i| map.serialize_entry(&format!("{i:02}"), &i))?;
                return map.end();
            }
            let mut items = serializer.serialize_seq(self.said)?;
            (0..30).try_for_each(|i| items.serialize_element(&i))?;
            items.end()
        }
    }

    #[test]
    fn what_says_no_length_or_a_wrong_one_is_written_with_its_own() {
        let wrapped = |said, map| {
            let mut written = Vec::new();
            write(&("before", Said { said, map }, "after"), &mut written).unwrap();
            written
        };
        for map in [false, true] {
            let right = wrapped(Some(30), map);
            let tree: Cbor = ciborium::from_reader(&right[..]).unwrap();
            assert_eq!(right, bytes(&by_tree(&tree)), "heads and order are canonical");
            for wrong in [None, Some(0), Some(29), Some(1000)] {
                assert_eq!(wrapped(wrong, map), right, "{wrong:?}");
            }
        }
    }

    #[test]
    fn floats_have_one_form_of_nine_bytes() {
        let mut written = Vec::new();
        write(&Shape::Numbers(vec![-0.0, f64::from_bits(0x7ff8_0000_0000_0001), 1.5]), &mut written).unwrap();
        let expected = [
            &b"\xa1\x67Numbers\x83"[..],
            b"\xfb\0\0\0\0\0\0\0\0",
            b"\xfb\x7f\xf8\0\0\0\0\0\0",
            b"\xfb\x3f\xf8\0\0\0\0\0\0",
        ];
        assert_eq!(written, expected.concat());
    }
}
