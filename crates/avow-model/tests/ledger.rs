//! The ledger as `sha256sum`, `git merge` and a forger see it.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;

use avow_model::digest::RegistrationDigest;
use avow_model::ledger::{self, Finding, KINDS, Ledger, LedgerError};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn fields(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn nonce(digit: char) -> Value {
    json!({"nonce": digit.to_string().repeat(64)})
}

/// A ledger file under construction.
#[derive(Clone, Default)]
struct File(String);

impl File {
    fn begun() -> File {
        let mut file = File::default();
        file.append("register", nonce('a'));
        file
    }

    /// A chain of this many lines.
    fn chain(lines: usize) -> File {
        let mut file = File::begun();
        (1..lines).for_each(|n| file.note(&format!("note {n}")));
        file
    }

    fn append(&mut self, kind: &str, content: Value) {
        let line = self.read().line(kind, fields(content)).unwrap();
        self.0.push_str(&line);
        self.0.push('\n');
    }

    fn note(&mut self, text: &str) {
        self.append("exposure", json!({"text": text}));
    }

    fn read(&self) -> Ledger {
        Ledger::read(self.0.as_bytes())
    }

    fn lines(&self) -> Vec<&str> {
        self.0.lines().collect()
    }

    fn leaf(&self, line: usize) -> RegistrationDigest {
        ledger::leaf(self.lines()[line].as_bytes())
    }

    /// What `git merge` with `merge=union` makes of two files with a common beginning.
    fn union(&self, other: &File) -> File {
        let (ours, theirs) = (self.lines(), other.lines());
        let shared = ours.iter().zip(&theirs).take_while(|(a, b)| a == b).count();
        let all: Vec<&str> = ours.iter().chain(&theirs[shared..]).copied().collect();
        File(all.join("\n") + "\n")
    }
}

fn reasons(bytes: &[u8]) -> Vec<(usize, String)> {
    let reason = |finding: &Finding| match finding {
        Finding::Torn { bytes } => (*bytes, "torn".to_owned()),
        Finding::Line { line, reason } => (*line, reason.clone()),
    };
    Ledger::read(bytes).findings().iter().map(reason).collect()
}

fn found(expected: &[(usize, &str)]) -> Vec<(usize, String)> {
    expected.iter().map(|(line, reason)| (*line, (*reason).to_owned())).collect()
}

// --- The tree -------------------------------------------------------------------------------------------

#[test]
fn leaves_and_roots_agree_with_another_implementation() {
    let reference: Value = serde_json::from_str(include_str!("data/ledger_reference.json")).unwrap();
    let digests = |key: &str| -> Vec<RegistrationDigest> {
        reference[key].as_array().unwrap().iter().map(|d| d.as_str().unwrap().parse().unwrap()).collect()
    };
    let (leaves, roots) = (digests("leaves"), digests("roots"));
    assert_eq!(leaves.len(), 70);
    for (i, leaf) in leaves.iter().enumerate() {
        assert_eq!(ledger::leaf(format!("entry {i}").as_bytes()), *leaf);
    }
    for (size, expected) in roots.iter().enumerate() {
        assert_eq!(ledger::root(&leaves[..size]), *expected, "over {size} leaves");
    }
}

#[test]
fn each_line_states_the_root_over_the_lines_before_it() {
    let file = File::chain(40);
    let leaves: Vec<_> = (0..40).map(|i| file.leaf(i)).collect();
    let entries = file.read();
    for (i, entry) in entries.entries().into_iter().enumerate() {
        let tree = json!({"root": ledger::root(&leaves[..i]).to_string(), "size": i});
        assert_eq!(entry.fields["tree"], tree);
        assert_eq!((entry.leaf, entry.depth), (leaves[i], i));
    }
}

#[test]
fn the_head_statement_covers_the_entry_itself() {
    let file = File::chain(3);
    let leaves: Vec<_> = (0..3).map(|i| file.leaf(i)).collect();
    let expected = format!(
        r#"{{"chain":"{}","entry":"{}","kind":"avow-head","root":"{}","size":2,"v":1}}"#,
        leaves[0],
        leaves[1],
        ledger::root(&leaves[..2]),
    );
    assert_eq!(file.read().head_statement(leaves[1]).unwrap(), expected);
    assert_eq!(file.read().head_statement(ledger::leaf(b"stranger")), None);
}

#[test]
fn long_chains_are_read_without_recomputing_every_tree() {
    // Quadratic work over this many lines would hash a hundred million nodes.
    let mut leaves: Vec<RegistrationDigest> = Vec::new();
    let mut text = String::new();
    let mut peaks: Vec<(u32, [u8; 32])> = Vec::new();
    for i in 0..16_384 {
        let parents: Vec<_> = leaves.last().map(ToString::to_string).into_iter().collect();
        let mut line = json!({"kind": "exposure", "parents": parents, "v": 1});
        line["tree"] = json!({"root": fold(&peaks), "size": i});
        if i == 0 {
            line["nonce"] = nonce('b')["nonce"].clone();
        }
        let line = ledger::canonical(&line).unwrap();
        let leaf = ledger::leaf(line.as_bytes());
        let mut peak = (0, *leaf.as_bytes());
        while peaks.last().is_some_and(|(height, _)| *height == peak.0) {
            let (_, left) = peaks.pop().unwrap();
            peak = (peak.0 + 1, node(left, peak.1));
        }
        peaks.push(peak);
        leaves.push(leaf);
        text.push_str(&line);
        text.push('\n');
    }
    let ledger = Ledger::read(text.as_bytes());
    assert_eq!(ledger.findings(), []);
    assert_eq!(ledger.heads(), [*leaves.last().unwrap()]);
    assert!(ledger.precedes(leaves[0], *leaves.last().unwrap()));

    // The same lines backwards: order in the file is not order in the chain.
    let backwards: String = text.lines().rev().map(|line| format!("{line}\n")).collect();
    assert_eq!(Ledger::read(backwards.as_bytes()).findings(), []);
}

fn node(left: [u8; 32], right: [u8; 32]) -> [u8; 32] {
    let leaves = [RegistrationDigest::from_bytes(left), RegistrationDigest::from_bytes(right)];
    *ledger::root(&leaves).as_bytes()
}

fn fold(peaks: &[(u32, [u8; 32])]) -> String {
    let root = peaks.iter().map(|(_, digest)| *digest).rev().reduce(|right, left| node(left, right));
    root.map_or_else(|| ledger::root(&[]).to_string(), |r| RegistrationDigest::from_bytes(r).to_string())
}

// --- The canonical form ---------------------------------------------------------------------------------

#[test]
fn text_is_escaped_as_rfc_8785_says() {
    let text = "\u{0}\u{8}\t\n\u{b}\u{c}\r\u{1f}\"\\/\u{7f}é€\u{2028}😀";
    let expected = "\"\\u0000\\b\\t\\n\\u000b\\f\\r\\u001f\\\"\\\\/\u{7f}é€\u{2028}😀\"";
    assert_eq!(ledger::canonical(&json!(text)).unwrap(), expected);
}

#[test]
fn keys_are_sorted_and_ascii() {
    let object = json!({"b": 1, "a": {"z": null, "B": [true, false]}, "": -1, "\n": 0});
    assert_eq!(
        ledger::canonical(&object).unwrap(),
        "{\"\":-1,\"\\n\":0,\"a\":{\"B\":[true,false],\"z\":null},\"b\":1}"
    );
    assert_eq!(ledger::canonical(&json!({"é": 1})), Err(LedgerError::Value("é".to_owned())));
}

#[test]
fn numbers_are_integers_that_every_reader_has() {
    let safe = (1_i64 << 53) - 1;
    assert_eq!(ledger::canonical(&json!([safe, -safe])).unwrap(), format!("[{safe},-{safe}]"));
    for number in [json!(safe + 1), json!(-safe - 1), json!(u64::MAX), json!(1.0), json!(0.5), json!(1e300)] {
        assert!(matches!(ledger::canonical(&number), Err(LedgerError::Value(_))), "{number}");
    }
}

#[test]
fn other_spellings_of_a_line_are_refused() {
    let line = File::begun().0.trim_end().to_owned();
    let spellings = [
        line.replace("\"v\":1", "\"v\":1.0"),
        line.replace("\"v\":1", "\"v\": 1"),
        line.replace("\"v\":1", "\"v\":1,\"v\":1"),
        line.replace("\"kind\"", "\"\\u006bind\""),
        line.replace("{\"kind\":\"register\",", "{").replace("\"v\":1", "\"v\":1,\"kind\":\"register\""),
        format!(" {line}"),
        format!("{line}\r"),
    ];
    for other in spellings {
        assert_ne!(other, line);
        let [(1, reason)] = &reasons(format!("{other}\n").as_bytes())[..] else { panic!("{other}") };
        assert!(reason == "not canonical" || reason == "`1.0` cannot stand in a ledger line", "{reason}");
    }
}

#[test]
fn lines_that_are_no_entries_are_named() {
    let line = File::begun().0.trim_end().to_owned();
    let upper = line.replace("\"parents\":[]", &format!("\"parents\":[\"{}\"]", "A".repeat(64)));
    let pair = format!("\"parents\":[\"{}\",\"{}\"]", "b".repeat(64), "a".repeat(64));
    let cases: [(Vec<u8>, &str); 10] = [
        (b"\xff\xfe".to_vec(), "not UTF-8"),
        (b"".to_vec(), "not JSON"),
        (b"[]".to_vec(), "not an object"),
        (b"{}".to_vec(), "no kind"),
        (line.replace("register", "bless").into(), "unknown kind `bless`"),
        (line.replace("\"v\":1", "\"v\":2").into(), "unknown version"),
        (br#"{"kind":"register","v":1}"#.to_vec(), "no parents"),
        (upper.into(), "a parent is not a digest"),
        (line.replace("\"parents\":[]", &pair).into(), "parents are not sorted"),
        ("[".repeat(100_000).into(), "not JSON"),
    ];
    for (bytes, reason) in cases {
        assert_eq!(reasons(&[&bytes[..], b"\n"].concat()), found(&[(1, reason)]));
    }
}

#[test]
fn the_same_parent_twice_is_refused() {
    let file = File::chain(2);
    let leaf = file.leaf(0);
    let twice = file.0.replace(&format!("[\"{leaf}\"]"), &format!("[\"{leaf}\",\"{leaf}\"]"));
    assert_eq!(reasons(twice.as_bytes()), found(&[(2, "parents are not sorted")]));
}

// --- Forks and merges -----------------------------------------------------------------------------------

#[test]
fn a_fork_has_two_heads_and_the_next_line_joins_them() {
    let base = File::chain(2);
    let (mut ours, mut theirs) = (base.clone(), base.clone());
    ours.note("ours");
    theirs.note("theirs");
    let mut merged = ours.union(&theirs);
    let ledger = merged.read();
    assert_eq!(ledger.findings(), []);
    let heads = BTreeSet::from([ours.leaf(2), theirs.leaf(2)]);
    assert_eq!(ledger.heads(), heads.iter().copied().collect::<Vec<_>>());
    assert!(!ledger.precedes(ours.leaf(2), theirs.leaf(2)));
    assert!(!ledger.precedes(theirs.leaf(2), ours.leaf(2)));

    merged.append("merge", json!({}));
    let ledger = merged.read();
    let [head] = ledger.heads()[..] else { panic!("one head") };
    assert_eq!(ledger.entry(head).unwrap().parents, heads.into_iter().collect::<Vec<_>>());
    assert!(ledger.precedes(ours.leaf(2), head) && ledger.precedes(theirs.leaf(2), head));
    assert!(ledger.precedes(head, head));
    assert_eq!(ledger.entries().len(), 5);
}

/// Both clones merge, in opposite order, each appends `merge`, and the two are merged again.
fn criss_cross() -> File {
    let base = File::chain(2);
    let (mut ours, mut theirs) = (base.clone(), base.clone());
    ours.note("ours");
    theirs.note("theirs");
    let (mut one, mut two) = (ours.union(&theirs), theirs.union(&ours));
    one.append("merge", json!({"by": "ours"}));
    two.append("merge", json!({"by": "theirs"}));
    let mut last = one.union(&two);
    last.append("merge", json!({}));
    last
}

#[test]
fn a_criss_cross_of_merges_ends_in_one_head() {
    let file = criss_cross();
    let ledger = file.read();
    assert_eq!(ledger.findings(), []);
    assert_eq!(ledger.heads().len(), 1);
    let depths: Vec<usize> = ledger.entries().iter().map(|entry| entry.depth).collect();
    assert_eq!(depths, [0, 1, 2, 2, 3, 3, 4]);
    // The union repeats what each side had added already.
    assert!(file.lines().len() > ledger.entries().len());
}

proptest! {
    #[test]
    fn the_order_of_lines_in_the_file_does_not_matter(order in Just((0..9).collect::<Vec<usize>>()).prop_shuffle()) {
        let file = criss_cross();
        let lines = file.lines();
        prop_assert_eq!(lines.len(), 9);
        let shuffled: String = order.iter().map(|i| format!("{}\n", lines[*i])).collect();
        let (ledger, expected) = (Ledger::read(shuffled.as_bytes()), file.read());
        prop_assert_eq!(ledger.findings(), []);
        prop_assert_eq!(ledger.entries(), expected.entries());
        prop_assert_eq!(ledger.heads(), expected.heads());
        prop_assert_eq!(ledger.chain(), expected.chain());
        let next = |ledger: &Ledger| ledger.line("merge", Map::new()).unwrap();
        prop_assert_eq!(next(&ledger), next(&expected));
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        Ledger::read(&bytes);
    }

    #[test]
    fn one_changed_byte_is_always_seen(at in 0usize..2000, to in any::<u8>()) {
        let mut bytes = File::chain(5).0.into_bytes();
        let at = at % bytes.len();
        prop_assume!(bytes[at] != to);
        bytes[at] = to;
        let ledger = Ledger::read(&bytes);
        // The last line's own fields are nobody's parent: only its head, known elsewhere, tells.
        prop_assert!(!ledger.findings().is_empty() || ledger.heads() != File::chain(5).read().heads());
    }
}

#[test]
fn a_root_stated_before_a_merge_still_verifies_after_it() {
    let file = criss_cross();
    let ledger = file.read();
    for entry in ledger.entries() {
        let ancestors = ledger.entries().into_iter().filter(|e| ledger.precedes(e.leaf, entry.leaf));
        let leaves: Vec<_> = ancestors.map(|e| e.leaf).collect();
        let statement: Value = serde_json::from_str(&ledger.head_statement(entry.leaf).unwrap()).unwrap();
        assert_eq!(statement["root"], json!(ledger::root(&leaves)));
        assert_eq!(statement["size"], json!(leaves.len()));
    }
}

#[test]
fn a_repeated_line_counts_once() {
    let file = File::chain(3);
    let doubled = format!("{}{}", file.0, file.0);
    let ledger = Ledger::read(doubled.as_bytes());
    assert_eq!(ledger.findings(), []);
    assert_eq!(ledger.entries().len(), 3);
}

// --- Damage ---------------------------------------------------------------------------------------------

#[test]
fn an_edited_line_orphans_everything_after_it() {
    let file = File::chain(4);
    let edited = file.0.replacen("note 1", "note 7", 1);
    assert_eq!(reasons(edited.as_bytes()), found(&[(3, "unknown parent"), (4, "unknown parent")]));
}

#[test]
fn a_deleted_line_orphans_everything_after_it() {
    let file = File::chain(4);
    let lines = file.lines();
    let without = format!("{}\n{}\n{}\n", lines[0], lines[2], lines[3]);
    assert_eq!(reasons(without.as_bytes()), found(&[(2, "unknown parent"), (3, "unknown parent")]));
}

#[test]
fn lines_cut_from_the_end_are_seen_only_by_who_knows_a_later_head() {
    let file = File::chain(4);
    let lines = file.lines();
    let cut = format!("{}\n{}\n", lines[0], lines[1]);
    let ledger = Ledger::read(cut.as_bytes());
    assert_eq!(ledger.findings(), []);
    assert_eq!(ledger.entry(file.leaf(3)), None);
}

#[test]
fn a_false_tree_is_a_mismatch() {
    let file = File::chain(3);
    let lines = file.lines();
    let lie = lines[2].replace("\"size\":2", "\"size\":3");
    let forged = format!("{}\n{}\n{lie}\n", lines[0], lines[1]);
    assert_eq!(reasons(forged.as_bytes()), found(&[(3, "tree mismatch")]));
}

#[test]
fn carriage_returns_break_every_line() {
    let file = File::chain(3);
    let crlf = file.0.replace('\n', "\r\n");
    assert_eq!(
        reasons(crlf.as_bytes()),
        found(&[(1, "not canonical"), (2, "not canonical"), (3, "not canonical")])
    );
}

#[test]
fn an_unfinished_tail_is_torn_and_what_precedes_it_stands() {
    let file = File::chain(3);
    let whole = file.0.len();
    let second = file.lines()[0].len() + 1 + file.lines()[1].len() + 1;
    for end in second..whole {
        let ledger = Ledger::read(&file.0.as_bytes()[..end]);
        let torn = end - second;
        let expected = if torn == 0 { vec![] } else { vec![Finding::Torn { bytes: torn }] };
        assert_eq!(ledger.findings(), expected);
        assert_eq!(ledger.intact(), second);
        assert_eq!(ledger.heads(), [file.leaf(1)]);
        // A writer cuts the tail and goes on.
        assert!(ledger.line("exposure", Map::new()).is_ok());
    }
}

#[test]
fn nothing_is_built_on_a_damaged_ledger() {
    let file = File::chain(3);
    let edited = file.0.replacen("note 1", "note 7", 1);
    let error = Ledger::read(edited.as_bytes()).line("exposure", Map::new()).unwrap_err();
    assert_eq!(error.to_string(), "the ledger is damaged: line 3: unknown parent");
}

#[test]
fn a_second_beginning_does_not_hide_among_the_lines() {
    let mut other = File::default();
    other.append("register", nonce('c'));
    other.note("a line of the other chain");
    let both = format!("{}{}", File::chain(2).0, other.0);
    assert_eq!(reasons(both.as_bytes()), found(&[(3, "a second beginning"), (4, "unknown parent")]));
    assert_eq!(Ledger::read(both.as_bytes()).chain(), File::chain(2).read().chain());
}

// --- What a writer may not write ------------------------------------------------------------------------

#[test]
fn a_beginning_needs_a_nonce() {
    let empty = Ledger::default();
    assert_eq!(empty.line("register", Map::new()), Err(LedgerError::Nonce));
    assert_eq!(empty.line("register", fields(json!({"nonce": "AB"}))), Err(LedgerError::Nonce));
    let bare = format!(
        r#"{{"kind":"register","parents":[],"tree":{{"root":"{}","size":0}},"v":1}}"#,
        ledger::root(&[])
    );
    assert_eq!(reasons(format!("{bare}\n").as_bytes()), found(&[(1, "a beginning without a nonce")]));
}

#[test]
fn the_ledgers_own_keys_and_unknown_kinds_are_refused() {
    let ledger = File::begun().read();
    for key in ["kind", "parents", "tree", "v"] {
        let error = ledger.line("exposure", fields(json!({key: 1}))).unwrap_err();
        assert_eq!(error, LedgerError::OwnKey(key.to_owned()));
    }
    assert_eq!(ledger.line("bless", Map::new()), Err(LedgerError::Kind("bless".to_owned())));
    assert!(KINDS.iter().all(|kind| ledger.line(kind, Map::new()).is_ok()));
}

#[test]
fn a_value_that_readers_cannot_follow_is_not_written() {
    let mut deep = json!(0);
    for _ in 0..200 {
        deep = json!([deep]);
    }
    let ledger = File::begun().read();
    assert!(matches!(ledger.line("exposure", fields(json!({"deep": deep}))), Err(LedgerError::Value(_))));
    assert!(matches!(ledger.line("exposure", fields(json!({"x": 0.5}))), Err(LedgerError::Value(_))));
}

#[test]
fn before_means_is_an_ancestor_of() {
    let file = File::chain(4);
    let ledger = file.read();
    for (i, j) in (0..4).flat_map(|i| (0..4).map(move |j| (i, j))) {
        assert_eq!(ledger.precedes(file.leaf(i), file.leaf(j)), i <= j);
    }
    let stranger = ledger::leaf(b"stranger");
    assert!(!ledger.precedes(stranger, file.leaf(3)));
    assert!(!ledger.precedes(file.leaf(0), stranger));
    assert!(!ledger.precedes(stranger, stranger));
}
