//! Import statements in a source text, read without running it.

/// One import statement.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Import {
    /// Leading dots.
    pub(super) level: usize,
    /// The dotted name; may be empty after dots.
    pub(super) module: String,
    /// Names after `from … import`.
    pub(super) names: Vec<String>,
}

/// The import statements of a source text, wherever they stand.
pub(super) fn imports(text: &str) -> Vec<Import> {
    let mut found = Vec::new();
    for statement in statements(text) {
        let mut words = statement.as_str();
        // `try: import x` and `if a: from b import c` stand on one line.
        while let Some((_, tail)) = words.split_once(':').filter(|_| !starts(words)) {
            words = tail.trim_start();
        }
        let words = words.trim();
        if let Some(rest) = words.strip_prefix("import ") {
            for module in rest.split(',') {
                let module = module.split_whitespace().next().unwrap_or_default().to_owned();
                found.push(Import { level: 0, module, names: Vec::new() });
            }
        } else if let Some(rest) = words.strip_prefix("from").filter(|r| r.starts_with([' ', '.'])) {
            found.extend(from(rest.trim_start()));
        }
    }
    found.extend(called(text));
    found
}

/// Modules that are imported by a call with a literal name: `importlib.import_module("a.b")`, `__import__("a")`.
fn called(text: &str) -> impl Iterator<Item = Import> {
    let calls = ["import_module(", "__import__("].into_iter().flat_map(|call| after(text, call));
    calls.filter_map(|rest| {
        let name = literal(rest.trim_start())?;
        let dotted = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let level = name.len() - name.trim_start_matches('.').len();
        let module = name[level..].to_owned();
        name.chars().all(dotted).then_some(Import { level, module, names: Vec::new() })
    })
}

/// What stands behind each occurrence of some words.
fn after<'t>(text: &'t str, words: &'static str) -> impl Iterator<Item = &'t str> {
    text.match_indices(words).map(move |(at, _)| &text[at + words.len()..])
}

/// The content of the plain string that begins here.
fn literal(rest: &str) -> Option<&str> {
    let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let end = rest[1..].find(quote)?;
    Some(&rest[1..=end]).filter(|text| !text.contains(['\\', '\n']))
}

/// A folder that a source puts on its search path.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SearchFolder {
    /// Whether the path begins at the source's own folder, else at the working folder.
    pub(super) beside: bool,
    /// How many folders up.
    pub(super) up: usize,
    /// And from there down.
    pub(super) path: String,
}

/// Folders that a source puts on its search path, as far as they are spelled out: `sys.path.insert(0, "src")`,
/// also with `os.path.join(os.path.dirname(__file__), "src")` or `Path(__file__).parent / "src"`.
pub(super) fn search_folders(text: &str) -> Vec<SearchFolder> {
    let calls = ["sys.path.insert(", "sys.path.append(", "sys.path.extend("];
    let lines = calls.into_iter().flat_map(|call| after(text, call)).filter_map(|rest| rest.lines().next());
    lines.filter_map(search_folder).collect()
}

fn search_folder(line: &str) -> Option<SearchFolder> {
    let (mut parts, mut at) = (Vec::new(), 0);
    while let Some(next) = line[at..].find(['\'', '"']) {
        let start = at + next;
        let part = literal(&line[start..])?;
        parts.extend(part.split('/').filter(|p| !p.is_empty() && *p != "."));
        at = start + part.len() + 2;
    }
    let beside = line.contains("__file__");
    let numbered = after(line, ".parents[").filter_map(|n| n.split(']').next()?.parse::<usize>().ok()).next();
    let steps = line.matches(".parent").count().max(line.matches("dirname(").count()).saturating_sub(1);
    let above = if beside { numbered.unwrap_or(steps) } else { 0 };
    let up = above + parts.iter().filter(|part| **part == "..").count();
    let path: Vec<&str> = parts.into_iter().filter(|part| *part != "..").collect();
    (beside || !path.is_empty()).then(|| SearchFolder { beside, up, path: path.join("/") })
}

fn starts(words: &str) -> bool {
    let words = words.trim_start();
    words.starts_with("import ") || words.starts_with("from ") || words.starts_with("from.")
}

fn from(rest: &str) -> Option<Import> {
    // The keyword stands by itself: ` import ` or, after dots, `.import `.
    let at = rest.match_indices("import").map(|(at, _)| at).find(|at| {
        let before = rest[..*at].chars().next_back();
        let after = rest[at + "import".len()..].chars().next();
        before.is_some_and(|c| c.is_whitespace() || c == '.')
            && after.is_some_and(|c| c.is_whitespace() || c == '(' || c == '*')
    })?;
    let module: String = rest[..at].chars().filter(|c| !c.is_whitespace()).collect();
    let level = module.len() - module.trim_start_matches('.').len();
    let names = rest[at + "import".len()..].replace(['(', ')'], " ");
    let names =
        names.split(',').filter_map(|name| name.split_whitespace().next()).map(str::to_owned).collect();
    Some(Import { level, module: module[level..].to_owned(), names })
}

/// Logical lines without strings and comments, split at semicolons; brackets and backslashes join lines.
fn statements(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut now = String::new();
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        match c {
            '#' => at += rest.find('\n').unwrap_or(rest.len()),
            '\'' | '"' => {
                at += string_length(rest, c);
                now.push('s');
            }
            '\\' if rest.starts_with("\\\n") => {
                now.push(' ');
                at += 2;
            }
            '\n' | ';' if depth == 0 => {
                all.push(std::mem::take(&mut now));
                at += 1;
            }
            _ => {
                match c {
                    '(' | '[' | '{' => depth += 1,
                    ')' | ']' | '}' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                now.push(if c == '\n' { ' ' } else { c });
                at += c.len_utf8();
            }
        }
    }
    all.push(now);
    all.retain(|statement| !statement.trim().is_empty());
    all
}

/// The bytes of a string literal that begins here, its quotes included.
fn string_length(rest: &str, quote: char) -> usize {
    let triple: String = std::iter::repeat_n(quote, 3).collect();
    let long = rest.starts_with(&triple);
    let close = if long { triple.as_str() } else { &triple[..1] };
    let mut at = close.len();
    while let Some(c) = rest[at..].chars().next() {
        if rest[at..].starts_with(close) {
            return at + close.len();
        }
        if !long && c == '\n' {
            return at;
        }
        at += c.len_utf8();
        if c == '\\' {
            at += rest[at..].chars().next().map_or(0, char::len_utf8);
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_with_a_literal_name_imports() {
        let text = "m = importlib.import_module('a.b')\nn = __import__(\"c\")\nimport_module(name)\n";
        let found: Vec<String> = imports(text).into_iter().map(|import| import.module).collect();
        assert_eq!(found, ["a.b", "c"]);
        let relative = &imports("import_module('.near', __package__)")[0];
        assert_eq!((relative.level, relative.module.as_str()), (1, "near"));
    }

    #[test]
    fn folders_on_the_search_path_are_spelled_out() {
        let of = |line: &str| {
            let found = search_folders(line).into_iter().next();
            found.map(|f| (f.beside, f.up, f.path))
        };
        assert_eq!(of("sys.path.insert(0, 'src')"), Some((false, 0, "src".to_owned())));
        let joined = "sys.path.append(os.path.join(os.path.dirname(__file__), '..', \"lib\"))";
        assert_eq!(of(joined), Some((true, 1, "lib".to_owned())));
        let parent = "sys.path.insert(0, str(Path(__file__).resolve().parent.parent / 'src'))";
        assert_eq!(of(parent), Some((true, 1, "src".to_owned())));
        assert_eq!(of("sys.path.insert(0, str(Path(__file__).parents[1]))"), Some((true, 1, String::new())));
        assert_eq!(of("sys.path.insert(0, where)"), None);
    }
}
