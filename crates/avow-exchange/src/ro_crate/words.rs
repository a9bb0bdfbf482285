//! How ids and kinds of files are written.

use avow_model::value::Value;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What may stand in a path or a fragment as it is, and means nothing else there (RFC 3986, 2.3, and `/`, `=`).
const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/').remove(b'=');

/// A path of the crate as an id.
pub(super) fn file_id(path: &str) -> String {
    utf8_percent_encode(path, ENCODED).to_string()
}

/// The id of something that is no file.
pub(super) fn id(kind: &str, name: &str) -> String {
    format!("#{kind}-{}", utf8_percent_encode(name, ENCODED))
}

/// The type of a parameter that takes this value.
pub(super) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "Boolean",
        Value::Int(_) => "Integer",
        Value::Float(_) => "Float",
        Value::Text(_) => "Text",
        Value::List(_) | Value::Map(_) => "PropertyValue",
    }
}

/// The kind of a file by the end of its name; `None` where it says nothing.
pub(super) fn format_of(path: &str) -> Option<&'static str> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let (_, ending) = name.rsplit_once('.')?;
    Some(match ending.to_ascii_lowercase().as_str() {
        "txt" | "log" => "text/plain",
        "csv" => "text/csv",
        "tsv" => "text/tab-separated-values",
        "md" => "text/markdown",
        "html" => "text/html",
        "json" | "ipynb" => "application/json",
        "jsonl" | "ndjson" => "application/jsonl",
        "yaml" | "yml" | "cff" => "application/yaml",
        "toml" => "application/toml",
        "py" => "text/x-python",
        "r" => "text/x-r",
        "jl" => "text/x-julia",
        "sh" => "application/x-sh",
        "parquet" => "application/vnd.apache.parquet",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        "jpg" | "jpeg" => "image/jpeg",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        "gz" => "application/gzip",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_the_form_that_readers_ask_for() {
        assert_eq!(file_id("data/a b:c.csv"), "data/a%20b%3Ac.csv");
        assert_eq!(id("axis", "seed"), "#axis-seed");
        assert_eq!((format_of("a/X.CSV"), format_of("a.b/Makefile")), (Some("text/csv"), None));
    }
}
