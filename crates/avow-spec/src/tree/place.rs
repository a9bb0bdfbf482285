//! From a position in a scalar's text back to the source.

use std::ops::Range;

use super::Scalar;

/// The source range of a part of a scalar's text.
pub(super) fn place(source: &str, span: &Range<usize>, scalar: &Scalar, part: Range<usize>) -> Range<usize> {
    let Some(written) = source.get(span.clone()) else { return span.clone() };
    if let Some(shift) = verbatim(written, &scalar.text) {
        return clamp(span.start + shift + part.start..span.start + shift + part.end, span);
    }
    if scalar.literal
        && let Some(start) = literal(written, &scalar.text, part.start)
    {
        let start = span.start + start;
        return clamp(start..start + part.len(), span);
    }
    let wanted = scalar.text.get(part).filter(|wanted| !wanted.is_empty());
    match wanted.and_then(|wanted| Some((written.find(wanted)?, wanted.len()))) {
        Some((at, length)) => span.start + at..span.start + at + length,
        None => span.clone(),
    }
}

fn clamp(range: Range<usize>, span: &Range<usize>) -> Range<usize> {
    range.start.min(span.end)..range.end.min(span.end)
}

/// How far into the written form a text begins that stands there unchanged.
fn verbatim(written: &str, text: &str) -> Option<usize> {
    if written == text {
        return Some(0);
    }
    let inner = written.len().checked_sub(2).and_then(|end| written.get(1..=end))?;
    (inner == text).then_some(1)
}

/// A literal block: line `i` of the text is the end of line `i + 1` of the written form.
fn literal(written: &str, text: &str, offset: usize) -> Option<usize> {
    let before = text.get(..offset)?;
    let line = before.matches('\n').count();
    let column = offset - before.rfind('\n').map_or(0, |at| at + 1);
    let wanted = text.split('\n').nth(line)?;
    // The span may or may not begin with the block's header line.
    let skip = usize::from(written.starts_with('|'));
    let mut start = 0;
    for (number, found) in written.split('\n').enumerate() {
        let bare = found.strip_suffix('\r').unwrap_or(found);
        if number == line + skip {
            return bare.ends_with(wanted).then(|| start + bare.len() - wanted.len() + column);
        }
        start += found.len() + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<'a>(
        source: &'a str,
        span: Range<usize>,
        text: &str,
        literal: bool,
        part: Range<usize>,
    ) -> &'a str {
        let scalar = Scalar { text: text.to_owned(), plain: false, literal };
        &source[place(source, &span, &scalar, part)]
    }

    #[test]
    fn a_part_is_found_where_it_stands() {
        assert_eq!(found("a: b + c", 3..8, "b + c", false, 4..5), "c");
        assert_eq!(found("a: 'b + c'", 3..10, "b + c", false, 4..5), "c");
        assert_eq!(found("a: |\n  one x\n  two x\n", 3..21, "one x\ntwo x\n", true, 10..11), "x");
        let source = "a: |\n  one x\n  two x\n";
        let scalar = Scalar { text: "one x\ntwo x\n".to_owned(), plain: false, literal: true };
        assert_eq!(place(source, &(3..21), &scalar, 10..11), 19..20);
        assert_eq!(found("a: \"b\\tc\"", 3..9, "b\tc", false, 2..3), "c");
    }
}
