//! Everything that was found as one JSON value.

use avow_manuscript::text::Span;
use avow_manuscript::{Class, Finding};
use serde_json::{Value, json};

use super::Told;

impl Told<'_> {
    /// Everything as one JSON value.
    pub fn json(&self) -> Value {
        let flat = &self.manuscript.flat;
        let numbers: Vec<Value> = self.findings.iter().map(|finding| self.number_json(finding)).collect();
        let checks = self.manuscript.checks.iter().map(|check| {
            let mut value = self.place(flat.span(&check.range));
            value["check"] = check.code.word().into();
            value["outcome"] = json!(check.outcome);
            value["stated"] = check.stated.clone().into();
            value["recomputed"] = json!(check.recomputed.map(|(low, high)| [low, high]));
            value
        });
        let stale = self.stale.iter().map(|(index, now)| {
            let mut value = self.place(flat.defined[*index].span);
            value["key"] = flat.defined[*index].key.clone().into();
            value["now"] = now.clone().into();
            value
        });
        let problems = flat.problems.iter().map(|problem| {
            let mut value = problem.span.map_or_else(|| json!({}), |span| self.place(span));
            value["problem"] = problem.what.clone().into();
            value
        });
        json!({
            "files": flat.files.iter().map(|file| &file.path).collect::<Vec<_>>(),
            "experiments": self.stocked.experiments().collect::<Vec<_>>(),
            "hidden": self.stocked.hidden().collect::<Vec<_>>(),
            "numbers": numbers,
            "checks": checks.collect::<Vec<_>>(),
            "stale_macros": stale.collect::<Vec<_>>(),
            "problems": problems.collect::<Vec<_>>(),
        })
    }

    fn place(&self, span: Span) -> Value {
        let flat = &self.manuscript.flat;
        let ((line, column), (end_line, end_column)) =
            (flat.place(span.file, span.start), flat.place(span.file, span.end));
        let file = flat.files.get(span.file).map(|file| file.path.as_str()).unwrap_or_default();
        json!({"file": file, "line": line, "column": column, "end_line": end_line, "end_column": end_column})
    }

    fn number_json(&self, finding: &Finding) -> Value {
        let mut value = self.place(self.span(finding));
        value["printed"] = self.printed(finding).into();
        value["class"] = finding.class.word().into();
        value["role"] = json!(finding.role);
        if let Some(number) = &finding.number {
            value["number"] = json!(number);
        }
        if let Some(rule) = finding.rule {
            value["rule"] = rule.word().into();
        }
        if let Some(key) = &finding.key {
            value["key"] = key.clone().into();
            value["expected"] = json!(finding.expected);
        }
        if !finding.candidates.is_empty() {
            let candidates = finding.candidates.iter().map(|candidate| {
                let mut value = json!(candidate);
                value["key"] = self.stocked.key(candidate.kind, candidate.id).into();
                if finding.class == Class::Matched
                    && let Some(selection) = self.selection(finding, candidate)
                {
                    value["selection"] = json!(selection);
                }
                value
            });
            value["candidates"] = candidates.collect::<Vec<_>>().into();
            value["total"] = finding.total.into();
            value["coarse"] = finding.coarse.into();
        }
        value
    }
}
