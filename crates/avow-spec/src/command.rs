//! What a shell text starts and names, read without running it.
//!
//! Not a shell: quotes, comments, separators, redirections and here-documents are understood well enough to
//! find the first word of each simple command and the words that may be files. Whatever is computed
//! (`$x`, `$(…)`, `${axes.x}`) is marked as such and never guessed at.

use std::ops::Range;

/// A substitution inside the author's own quotes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Quoted {
    /// The reference, in bytes of the text.
    pub reference: Range<usize>,
    /// The quoted part with its quotes.
    pub quotes: Range<usize>,
    /// `'` or `"`.
    pub quote: char,
}

/// One word of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Word {
    /// Its literal text.
    pub text: String,
    /// Whether a part of it is computed.
    pub computed: bool,
    /// Where it stands.
    pub at: Range<usize>,
}

/// Everything that was found.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// The words of each simple command.
    pub commands: Vec<Vec<Word>>,
    /// Names that the text defines as functions.
    pub functions: Vec<String>,
    /// The references that stand in here-documents, in bytes of the text.
    pub in_documents: Vec<Range<usize>>,
    quoted: Vec<Quoted>,
}

/// The references that stand inside quotes.
pub(crate) fn quoted_references(text: &str) -> Vec<Quoted> {
    parse(text).quoted
}

/// Reads a shell text.
pub(crate) fn parse(text: &str) -> Script {
    let mut lexer = Lexer {
        text,
        at: 0,
        script: Script::default(),
        command: Vec::new(),
        documents: Vec::new(),
        open: Vec::new(),
        before: 0,
    };
    lexer.run();
    lexer.script
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    script: Script,
    command: Vec<Word>,
    /// Delimiters of here-documents whose bodies follow the current line.
    documents: Vec<String>,
    /// Parentheses that are open here; whether each began a `$(`.
    open: Vec<bool>,
    /// How many commands there were when the current line or list began.
    before: usize,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn run(&mut self) {
        while let Some(c) = self.peek() {
            match c {
                '\n' => {
                    self.at += 1;
                    self.end();
                    self.before = self.script.commands.len();
                    self.skip_documents();
                }
                c if c.is_whitespace() => self.at += c.len_utf8(),
                '\\' if self.rest().starts_with("\\\n") => self.at += 2,
                '#' => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
                ';' | '|' | '&' | '(' | ')' | '`' => self.separator(c),
                '<' | '>' => self.redirection(),
                _ => self.word(),
            }
        }
        self.end();
    }

    fn end(&mut self) {
        if !self.command.is_empty() {
            self.script.commands.push(std::mem::take(&mut self.command));
        }
    }

    fn separator(&mut self, c: char) {
        if c == '(' && self.rest().starts_with("()") {
            self.script.functions.extend(self.command.pop().map(|word| word.text));
            self.at += 2;
            return;
        }
        let assigns = self.text[..self.at].ends_with('=');
        if c == '(' && assigns && self.command.last().is_some_and(|word| word.at.end == self.at) {
            // `list=(a b)`: words of an array.
            return self.parentheses();
        }
        if c == '(' && self.before_pattern() {
            // `(a|b)` in a `case`: this parenthesis opens nothing.
            self.at += 1;
            return;
        }
        self.at += 1;
        match c {
            '(' => self.open.push(self.text[..self.at - 1].ends_with('$')),
            ')' => match self.open.pop() {
                // What is glued to a `$(…)` belongs to the same word.
                Some(true) => self.glued(),
                Some(false) => {}
                // `a|b)` in a `case`: what stands before the parenthesis are patterns, no commands.
                None => {
                    self.command.clear();
                    self.script.commands.truncate(self.before);
                }
            },
            _ => {}
        }
        self.end();
        if c != '|' {
            self.before = self.script.commands.len();
        }
    }

    /// Whether a pattern of a `case` comes next: after `case x in`, and after what ends the commands of another.
    fn before_pattern(&self) -> bool {
        let before = self.text[..self.at].trim_end();
        if before.ends_with(";;") || before.ends_with(";&") {
            return true;
        }
        let command = Some(&self.command).filter(|words| !words.is_empty()).or(self.script.commands.last());
        command.is_some_and(|words| {
            let is = |word: Option<&Word>, text: &str| word.is_some_and(|word| word.text == text);
            is(words.last(), "in")
                && words.last().is_some_and(|word| word.at.end == before.len())
                && words.iter().any(|word| word.text == "case")
        })
    }

    fn redirection(&mut self) {
        // `2>` redirects a descriptor: its number is no argument.
        let digit = self.command.last().is_some_and(|word| {
            word.at.end == self.at && !word.text.is_empty() && word.text.bytes().all(|b| b.is_ascii_digit())
        });
        if digit {
            self.command.pop();
        }
        let document = self.rest().starts_with("<<") && !self.rest().starts_with("<<<");
        let reads = self.rest().starts_with('<') && !document;
        let length =
            self.rest().find(|c| !matches!(c, '<' | '>' | '&' | '|' | '-')).unwrap_or(self.rest().len());
        self.at += length;
        while self.peek().is_some_and(|c| c == ' ' || c == '\t') {
            self.at += 1;
        }
        if self.peek().is_some_and(|c| !c.is_whitespace() && !";|&()<>`#".contains(c)) {
            self.word();
            let target = self.command.pop().unwrap_or_default();
            if document {
                self.documents.push(target.text);
            } else if reads {
                self.command.push(target);
            }
        }
    }

    fn skip_documents(&mut self) {
        for delimiter in std::mem::take(&mut self.documents) {
            while self.at < self.text.len() {
                let line = self.rest().split('\n').next().unwrap_or_default();
                let last = line.trim_start_matches('\t') == delimiter;
                let length = line.len();
                let found: Vec<_> = references(line).map(|r| r.start + self.at..r.end + self.at).collect();
                self.script.in_documents.extend(found);
                self.at = (self.at + length + 1).min(self.text.len());
                if last {
                    break;
                }
            }
        }
    }

    fn word(&mut self) {
        let start = self.at;
        let mut word = Word::default();
        while let Some(c) = self.peek() {
            match c {
                c if c.is_whitespace() || ";|&()<>`".contains(c) => break,
                '\'' | '"' => self.quotes(c, &mut word),
                '\\' => {
                    self.at += 1;
                    if let Some(escaped) = self.peek() {
                        word.text.push(escaped);
                        self.at += escaped.len_utf8();
                    }
                }
                '$' => self.dollar(&mut word),
                c => {
                    if matches!(c, '*' | '?' | '[') {
                        word.computed = true;
                    }
                    word.text.push(c);
                    self.at += c.len_utf8();
                }
            }
        }
        word.at = start..self.at;
        self.command.push(word);
    }

    /// `$x`, `${axes.x}`, `$${x}`, `$(…)`: the first bytes are skipped, the rest reads as it comes.
    fn dollar(&mut self, word: &mut Word) {
        word.computed = true;
        if self.rest().starts_with("$${") {
            self.at += 3;
        } else if self.rest().starts_with("${") {
            self.at += self.rest().find('}').map_or(self.rest().len(), |end| end + 1);
        } else if self.rest().starts_with("$((") {
            self.parentheses();
        } else {
            self.at += 1;
            while self.peek().is_some_and(|c| c.is_alphanumeric() || c == '_') {
                self.at += self.peek().map_or(0, char::len_utf8);
            }
        }
    }

    fn glued(&mut self) {
        let ends = |c: char| c.is_whitespace() || ";|&()<>`".contains(c);
        self.at += self.rest().find(ends).unwrap_or(self.rest().len());
    }

    /// From here to the parenthesis that closes the first one: `$((…))`, an array, a `$(…)` inside quotes.
    fn parentheses(&mut self) {
        let mut depth = 0usize;
        while let Some(c) = self.peek() {
            self.at += c.len_utf8();
            match c {
                '(' => depth += 1,
                ')' if depth == 1 => return,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    fn quotes(&mut self, quote: char, word: &mut Word) {
        let start = self.at;
        self.at += 1;
        let mut references = Vec::new();
        while let Some(c) = self.peek() {
            let literal = self.rest().starts_with("$${");
            match c {
                c if c == quote => {
                    self.at += 1;
                    break;
                }
                '\\' if quote == '"' => {
                    self.at += 1;
                    if let Some(escaped) = self.peek() {
                        word.text.push(escaped);
                        self.at += escaped.len_utf8();
                    }
                }
                '$' if literal => {
                    word.computed = true;
                    self.at += 3;
                }
                // Quoting begins anew inside.
                '$' if quote == '"' && self.rest().starts_with("$(") => {
                    word.computed = true;
                    self.parentheses();
                }
                '$' if self.rest().starts_with("${") => {
                    let end = self.rest().find('}').map_or(self.text.len(), |end| self.at + end + 1);
                    references.push(self.at..end);
                    word.computed = true;
                    self.at = end;
                }
                c => {
                    word.computed |= c == '$' && quote == '"';
                    word.text.push(c);
                    self.at += c.len_utf8();
                }
            }
        }
        let quotes = start..self.at;
        let all = references.into_iter().map(|reference| Quoted { reference, quotes: quotes.clone(), quote });
        self.script.quoted.extend(all);
    }
}

/// The `${…}` of a line that are no `$${…}`.
fn references(line: &str) -> impl Iterator<Item = Range<usize>> {
    line.match_indices("${")
        .filter(|(at, _)| !line[..*at].ends_with('$'))
        .map(|(at, _)| at..line[at..].find('}').map_or(line.len(), |end| at + end + 1))
}

/// Words that only steer the shell; what follows them is a command again.
const KEYWORDS: &[&str] = &["if", "then", "elif", "else", "do", "while", "until", "!", "{", "}", "time"];
/// Words after which no command follows.
const CLOSERS: &[&str] = &["fi", "done", "esac", "for", "case", "in", "function"];
/// Commands that the shell itself carries out.
const BUILTINS: &[&str] = &[
    ":", ".", "[", "alias", "bg", "break", "cd", "continue", "echo", "eval", "exit", "export", "false", "fg",
    "getopts", "hash", "jobs", "kill", "let", "local", "printf", "pwd", "read", "readonly", "return", "set",
    "shift", "source", "test", "times", "trap", "true", "type", "ulimit", "umask", "unalias", "unset",
    "wait",
];
/// Programs that start another one, which is a program too.
const WRAPPERS: &[&str] = &["env", "nice", "nohup", "timeout", "stdbuf", "setsid", "xargs", "taskset"];
/// Wrappers that the shell itself carries out.
const SILENT: &[&str] = &["exec", "command"];

/// The words of a simple command that start something: the program first, then programs it starts in turn.
pub(crate) fn starters(command: &[Word]) -> Vec<&Word> {
    let mut found = Vec::new();
    let mut words = command.iter().peekable();
    let mut wrapped = false;
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        // `[` alone is the command, not a pattern.
        let plain = !word.computed || text == "[";
        // `command -v x` asks for a program and starts none.
        if plain && text == "command" && words.peek().is_some_and(|next| next.text.starts_with('-')) {
            break;
        }
        if assignment(text) || (plain && (KEYWORDS.contains(&text) || SILENT.contains(&text))) {
            continue;
        }
        if wrapped && (text.starts_with('-') || text.starts_with(|c: char| c.is_ascii_digit())) {
            continue;
        }
        if plain && (CLOSERS.contains(&text) || BUILTINS.contains(&text)) {
            break;
        }
        found.push(word);
        let runs = words.peek().is_some_and(|next| next.text == "run");
        if plain && WRAPPERS.contains(&text) {
            wrapped = true;
        } else if plain && matches!(text, "uv" | "poetry" | "pixi" | "hatch") && runs {
            words.next();
            wrapped = true;
        } else {
            break;
        }
    }
    found
}

fn assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// Whether a program is a Python interpreter.
pub(crate) fn is_python(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    let version = name.strip_prefix("python").or_else(|| name.strip_prefix("pypy"));
    version.is_some_and(|v| v.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(text: &str) -> Vec<String> {
        let script = parse(text);
        script.commands.iter().flat_map(|c| starters(c)).map(|w| w.text.clone()).collect()
    }

    #[test]
    fn the_programs_of_a_text_are_found() {
        assert_eq!(started("python3 train.py --wd ${axes.wd}"), ["python3"]);
        assert_eq!(started("cd a && A=1 B=2 make x | tee log; ./run.sh"), ["make", "tee", "./run.sh"]);
        assert_eq!(started("if grep -q x f; then echo hi; else sort f; fi"), ["grep", "sort"]);
        assert_eq!(started("for f in a b; do wc -l $f; done # gone"), ["wc"]);
        assert_eq!(started("nice -n 5 env A=1 python3 x.py"), ["nice", "env", "python3"]);
        assert_eq!(started("uv run python x.py"), ["uv", "python"]);
        assert_eq!(started("x=$(date +%s)\nexec awk '{print}' <in >out 2>&1"), ["date", "awk"]);
        assert_eq!(started("cat <<EOF > f\nrm -rf x\nEOF\nsort f"), ["cat", "sort"]);
        assert_eq!(started("f() { ls; }\nf"), ["ls", "f"]);
        assert_eq!(parse("f() { ls; }\nf").functions, ["f"]);
    }

    #[test]
    fn arithmetic_and_patterns_start_nothing() {
        assert_eq!(started("if [ $(( (3 + 1) % 2 )) = 7 ]; then exit 1; fi; touch o"), ["touch"]);
        assert_eq!(started("i=$((i + 1)); sort a"), ["sort"]);
        assert_eq!(
            started("read start < ${inputs.d}\necho $((start + ${axes.s} * 3)) > ${outputs.o}"),
            [""; 0]
        );
        assert_eq!(started("case $x in\n a|b) sort f;;\n *) wc f;;\nesac"), ["sort", "wc"]);
        assert_eq!(started("case $x in a|b) sort f;; *) wc f;; esac; ls"), ["sort", "wc", "ls"]);
        assert_eq!(started("case $x in (a|b) sort f;; (*) wc f;; esac; ls"), ["sort", "wc", "ls"]);
        assert_eq!(
            started("case $x in\n  (a) sort f ;;\n\n  (b) (wc f) ;;\nesac\n(ls)"),
            ["sort", "wc", "ls"]
        );
        assert_eq!(started("for x in a; do case $x in (a) sort f;; esac; done"), ["sort"]);
        assert_eq!(started("(cd a && make)|tee log"), ["make", "tee"]);
        assert_eq!(started("echo $(date; (ls))"), ["date", "ls"]);
        assert_eq!(started("export FOO=$(pwd)/x; list=(1 2); command -v python3; wc f"), ["wc"]);
        assert!(quoted_references("echo \"$(basename ${inputs.d})\"").is_empty());
        let text = "cat <<EOF > f\nmode = ${axes.a} $${HOME}\nEOF\necho ${axes.a}";
        let inside: Vec<&str> = parse(text).in_documents.into_iter().map(|r| &text[r]).collect();
        assert_eq!(inside, ["${axes.a}"]);
    }

    #[test]
    fn references_inside_quotes_are_found() {
        let text = "echo ${axes.a} \"x ${axes.b}\" '${axes.c}' \"$${HOME}\" \\\"${axes.d}";
        let found = quoted_references(text);
        let refs: Vec<&str> = found.iter().map(|q| &text[q.reference.clone()]).collect();
        assert_eq!(refs, ["${axes.b}", "${axes.c}"]);
        assert_eq!(&text[found[0].quotes.clone()], "\"x ${axes.b}\"");
    }

    #[test]
    fn interpreters() {
        for yes in ["python", "python3", "python3.11", "/usr/bin/python3", "pypy3"] {
            assert!(is_python(yes), "{yes}");
        }
        assert!(!is_python("pythonic") && !is_python("ipython"));
    }
}
