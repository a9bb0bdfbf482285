//! Parquet tables, row by row. How a table is divided into row groups and pages, how it is compressed, and who wrote it is
//! no part of what it holds.

use std::panic::catch_unwind;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, List, Map, Row};

use super::{Content, MOST};

/// A table. The library is written for files that its users trust: where it gives up in a panic, the file is one that
/// cannot be read.
pub(super) fn read(bytes: &[u8]) -> Option<Content> {
    catch_unwind(|| rows(bytes)).ok().flatten()
}

fn rows(bytes: &[u8]) -> Option<Content> {
    let reader = SerializedFileReader::new(bytes::Bytes::copy_from_slice(bytes)).ok()?;
    let mut content = Content::default();
    let schema = reader.metadata().file_metadata().schema_descr();
    let columns = schema.columns().iter();
    content.words.extend(columns.map(|column| format!("{} {}", column.path(), column.physical_type())));
    for row in reader.get_row_iter(None).ok()? {
        content.row(&row.ok()?);
        if content.numbers.len() > MOST {
            return None;
        }
    }
    Some(content)
}

impl Content {
    fn row(&mut self, row: &Row) {
        row.get_column_iter().for_each(|(_, field)| self.field(field));
    }

    fn field(&mut self, field: &Field) {
        let number = match field {
            Field::Bool(value) => f64::from(u8::from(*value)),
            Field::Byte(value) => f64::from(*value),
            Field::Short(value) => f64::from(*value),
            Field::Int(value) | Field::Date(value) | Field::TimeMillis(value) => f64::from(*value),
            Field::Long(value)
            | Field::TimeMicros(value)
            | Field::TimestampMillis(value)
            | Field::TimestampMicros(value) => *value as f64,
            Field::UByte(value) => f64::from(*value),
            Field::UShort(value) => f64::from(*value),
            Field::UInt(value) => f64::from(*value),
            Field::ULong(value) => *value as f64,
            Field::Float16(value) => f64::from(*value),
            Field::Float(value) => f64::from(*value),
            Field::Double(value) => *value,
            Field::Null => return self.words.push("null".to_owned()),
            Field::Str(text) => return self.words.push(format!("{text:?}")),
            Field::Bytes(bytes) => return self.words.push(format!("{:?}", bytes.data())),
            Field::Decimal(decimal) => {
                return self.words.push(format!("{:?} scaled by {}", decimal.data(), decimal.scale()));
            }
            Field::Group(row) => return self.row(row),
            Field::ListInternal(list) => return self.list(list),
            Field::MapInternal(map) => return self.map(map),
        };
        self.numbers.push(number);
    }

    /// Where a list ends is part of what it says.
    fn list(&mut self, list: &List) {
        self.words.push(format!("[{}]", list.len()));
        list.elements().iter().for_each(|element| self.field(element));
    }

    fn map(&mut self, map: &Map) {
        self.words.push(format!("{{{}}}", map.len()));
        for (key, value) in map.entries() {
            self.field(key);
            self.field(value);
        }
    }
}
