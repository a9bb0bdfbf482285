//! On which line of a table a record begins.

/// Counts the lines of a table while its records are read in order.
///
/// The reader says that a record begins right behind the carriage return that ended the one before, so that the number
/// it gives is one too small in files of Windows.
pub(crate) struct Lines<'a> {
    table: &'a [u8],
    counted: usize,
    line: usize,
}

impl<'a> Lines<'a> {
    pub(crate) fn of(table: &'a [u8]) -> Lines<'a> {
        Lines { table, counted: 0, line: 1 }
    }

    /// The line, from 1, of a record that the reader saw here; positions come in the order of the table.
    pub(crate) fn at(&mut self, position: Option<&csv::Position>) -> usize {
        let said = position.and_then(|position| usize::try_from(position.byte()).ok());
        let mut begin = said.unwrap_or(self.counted).clamp(self.counted, self.table.len());
        while matches!(self.table.get(begin), Some(b'\r' | b'\n')) {
            begin += 1;
        }
        self.line += self.table[self.counted..begin].iter().filter(|byte| **byte == b'\n').count();
        self.counted = begin;
        self.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_whatever_ends_them() {
        let tables: [&[u8]; 4] = [
            b"x,y\n1,2\n\n\"3\n3\",4\n5,6\n",
            b"x,y\r\n1,2\r\n\r\n\"3\r\n3\",4\r\n5,6\r\n",
            b"x,y\n1,2\r\n\n\"3\n3\",4\r\n5,6",
            b"\n\nx",
        ];
        let expected: [&[usize]; 4] = [&[1, 2, 4, 6], &[1, 2, 4, 6], &[1, 2, 4, 6], &[3]];
        for (table, expected) in tables.into_iter().zip(expected) {
            let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(table);
            let mut lines = Lines::of(table);
            let found: Vec<usize> =
                reader.byte_records().map(|record| lines.at(record.unwrap().position())).collect();
            assert_eq!(found, expected, "{}", String::from_utf8_lossy(table).escape_debug());
        }
    }
}
