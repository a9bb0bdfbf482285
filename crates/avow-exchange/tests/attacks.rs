//! Bundles that somebody made by hand: each is refused, and nothing is written outside the folder.

use std::fs;
use std::path::{Path, PathBuf};

use avow_exchange::bundle::{Bundle, BundleError, Entry, Limits, Manifest, SpecFile, unpack};
use avow_model::digest::{BlobDigest, PlanDigest};
use sha2::{Digest, Sha256};

/// An entry as an attacker writes it.
#[derive(Clone)]
struct Raw {
    local: String,
    central: String,
    bytes: Vec<u8>,
    /// What the headers claim that it unpacks to.
    size: u32,
    method: u16,
    flags: u16,
    mode: u32,
    extra: Vec<u8>,
    checksum: u32,
}

impl Raw {
    fn stored(name: &str, bytes: &[u8]) -> Raw {
        Raw {
            local: name.to_owned(),
            central: name.to_owned(),
            bytes: bytes.to_vec(),
            size: bytes.len() as u32,
            method: 0,
            flags: 0,
            mode: 0o100_644,
            extra: Vec::new(),
            checksum: checksum(bytes),
        }
    }

    fn deflated(name: &str, bytes: &[u8]) -> Raw {
        let mut packed = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::Write::write_all(&mut packed, bytes).expect("memory takes bytes");
        let packed = packed.finish().expect("memory takes bytes");
        Raw { method: 8, size: bytes.len() as u32, checksum: checksum(bytes), ..Raw::stored(name, &packed) }
    }

    fn header(&self, central: bool, offset: u32) -> Vec<u8> {
        let name = if central { &self.central } else { &self.local };
        let mut out = Vec::new();
        let (signature, version): (u32, &[u16]) =
            if central { (0x0201_4b50, &[0x031e, 20]) } else { (0x0403_4b50, &[20]) };
        out.extend(signature.to_le_bytes());
        version.iter().for_each(|v| out.extend(v.to_le_bytes()));
        out.extend(self.flags.to_le_bytes());
        out.extend(self.method.to_le_bytes());
        out.extend([0, 0, 0x21, 0]);
        out.extend(self.checksum.to_le_bytes());
        out.extend((self.bytes.len() as u32).to_le_bytes());
        out.extend(self.size.to_le_bytes());
        out.extend((name.len() as u16).to_le_bytes());
        out.extend((self.extra.len() as u16).to_le_bytes());
        if central {
            out.extend([0; 6]);
            out.extend((self.mode << 16).to_le_bytes());
            out.extend(offset.to_le_bytes());
        }
        out.extend(name.bytes());
        out.extend(&self.extra);
        out
    }
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// An archive of such entries, one behind the other.
fn archive(entries: &[Raw]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for entry in entries {
        directory.extend(entry.header(true, out.len() as u32));
        out.extend(entry.header(false, 0));
        out.extend(&entry.bytes);
    }
    let begin = out.len() as u32;
    out.extend(&directory);
    out.extend(0x0605_4b50u32.to_le_bytes());
    out.extend([0; 4]);
    out.extend((entries.len() as u16).to_le_bytes());
    out.extend((entries.len() as u16).to_le_bytes());
    out.extend((directory.len() as u32).to_le_bytes());
    out.extend(begin.to_le_bytes());
    out.extend([0; 2]);
    out
}

fn listed(name: &str, bytes: &[u8]) -> Entry {
    let sha256 = Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect();
    Entry { name: name.to_owned(), size: bytes.len() as u64, blake3: BlobDigest::of(bytes), sha256 }
}

/// A manifest that lists these, the spec's text first of all.
fn manifest(entries: Vec<Entry>) -> Manifest {
    Manifest {
        anonymous: None,
        kind: "avow-bundle".to_owned(),
        v: 1,
        experiment: "e".to_owned(),
        plan: PlanDigest::from_bytes([7; 32]),
        spec: SpecFile { path: "e.yaml".to_owned(), blob: BlobDigest::of(SPEC) },
        beside: Vec::new(),
        runs: Vec::new(),
        heads: Vec::new(),
        absent: Vec::new(),
        entries,
    }
}

const SPEC: &[u8] = b"avow: 1\nexperiment: e\n";

fn blob(bytes: &[u8]) -> String {
    format!("blobs/{}", BlobDigest::of(bytes))
}

/// A bundle as small as can be, with room for one thing to be wrong.
fn good() -> Vec<Raw> {
    let manifest = manifest(vec![listed(&blob(SPEC), SPEC)]).to_bytes().expect("a manifest has bytes");
    vec![Raw::stored("bundle.json", &manifest), Raw::deflated(&blob(SPEC), SPEC)]
}

struct Bench {
    _folder: tempfile::TempDir,
    root: PathBuf,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().expect("a folder");
        Bench { root: folder.path().to_owned(), _folder: folder }
    }

    fn file(&self, bytes: &[u8]) -> PathBuf {
        let path = self.root.join("bundle.zip");
        fs::write(&path, bytes).expect("a file");
        path
    }

    /// Opens and unpacks; the text of the error and its causes.
    fn refused(&self, bytes: &[u8]) -> String {
        let target = self.root.join("out");
        let _ = fs::remove_dir_all(&target);
        let result = Bundle::open(&self.file(bytes), Limits::default())
            .and_then(|bundle| all(&bundle).and_then(|()| unpack(&bundle, &target)));
        let Err(error) = result else { panic!("the bundle was accepted") };
        assert!(error.is_of_the_bundle(), "{error:?}");
        assert_nothing_escaped(&self.root);
        chain(&error)
    }
}

/// Reads every entry to its end.
fn all(bundle: &Bundle) -> Result<(), BundleError> {
    (0..bundle.entries().count()).try_for_each(|position| bundle.extract(position, &mut std::io::sink()))
}

fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", chain(source)),
        None => error.to_string(),
    }
}

fn assert_nothing_escaped(root: &Path) {
    for entry in fs::read_dir(root).expect("a folder") {
        let name = entry.expect("an entry").file_name().into_string().expect("a name");
        assert!(["bundle.zip", "out"].contains(&name.as_str()), "{name} was written");
    }
    assert!(!Path::new("/tmp/avow-evil").exists());
}

#[test]
fn the_smallest_bundle_is_read() {
    let bench = Bench::new();
    let bundle = Bundle::open(&bench.file(&archive(&good())), Limits::default()).expect("a good bundle");
    all(&bundle).expect("good entries");
    assert_eq!(bundle.manifest().entries.len(), 1);
}

#[test]
fn names_that_no_entry_has_are_refused_and_not_cleaned() {
    let bench = Bench::new();
    for name in [
        "../evil",
        "a\\..\\..\\evil",
        "/tmp/avow-evil",
        "a:b",
        "blobs/../../evil",
        "ledger/CON.jsonl",
        "ledger/a\nb.jsonl",
        "ledger/e\u{301}.jsonl",
        "blobs/",
        "",
    ] {
        let mut entries = good();
        entries.push(Raw::stored(name, b"evil"));
        let said = bench.refused(&archive(&entries));
        assert!(said.contains("no entry may be called"), "{name}: {said}");
    }
}

#[test]
fn what_zip_readers_overlook_is_refused() {
    let bench = Bench::new();
    let whole = archive(&good());
    let with = |change: &dyn Fn(&mut Vec<Raw>)| {
        let mut entries = good();
        change(&mut entries);
        archive(&entries)
    };
    let other = || b"other".to_vec();
    let table: Vec<(&str, Vec<u8>, &str)> = vec![
        ("a second entry of the same name", with(&|e| e.push(e[1].clone())), "does not list it"),
        (
            "an entry that the manifest does not list",
            with(&|e| e.push(Raw::stored(&blob(b"x"), b"x"))),
            "does not list it",
        ),
        ("an entry that is missing", with(&|e| drop(e.pop())), "not in the archive"),
        ("another name in front of the bytes", with(&|e| e[1].local = blob(b"x")), "headers"),
        ("bytes before the archive", [b"MZ".as_slice(), &whole].concat(), "directory"),
        ("bytes behind the archive", [whole.as_slice(), b"tail"].concat(), "end record"),
        ("bytes between the entries", with(&|e| e[0].bytes.extend(b"gap")), "bytes"),
        ("a symbolic link", with(&|e| e[1].mode = 0o120_777), "regular file"),
        ("a folder", with(&|e| e[1].mode = 0o040_755), "regular file"),
        ("an encrypted entry", with(&|e| e[1].flags = 1), "encrypted"),
        ("sizes behind the bytes", with(&|e| e[1].flags = 8), "sizes"),
        ("another compressor", with(&|e| e[1].method = 93), "deflate"),
        ("a foreign extra field", with(&|e| e[1].extra = vec![0x55, 0x54, 1, 0, 0]), "extra field"),
        ("another size than the manifest's", with(&|e| e[1].size += 1), "bytes instead of"),
        (
            "other bytes of the same size",
            with(&|e| e[1] = Raw::stored(&blob(SPEC), &SPEC.to_ascii_uppercase())),
            "digest",
        ),
        ("bytes behind the packed ones", with(&|e| e[1].bytes.extend(b"more")), "belong to nothing"),
        ("packed bytes that are damaged", with(&|e| e[1].bytes[0] ^= 0x7), ""),
        ("no manifest", with(&|e| drop(e.remove(0))), "first entry"),
        ("the manifest last", with(&|e| e.reverse()), "first entry"),
        ("no archive", other(), "too short"),
        ("a text", vec![b'a'; 4096], "end record"),
    ];
    for (what, bytes, words) in table {
        let said = bench.refused(&bytes);
        assert!(said.contains(words), "{what}: {said}");
    }
}

#[test]
fn a_bundle_cut_anywhere_is_refused() {
    let bench = Bench::new();
    let whole = archive(&good());
    for length in 0..whole.len() {
        bench.refused(&whole[..length]);
    }
}

#[test]
fn a_flipped_bit_anywhere_is_refused_or_changes_nothing() {
    let bench = Bench::new();
    let whole = archive(&good());
    let accepted = (0..whole.len() * 8).filter(|bit| {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let opened = Bundle::open(&bench.file(&bytes), Limits::default());
        opened.is_ok_and(|bundle| {
            let same = bundle.manifest().to_bytes().is_ok_and(|manifest| manifest == good()[0].bytes);
            assert!(same, "bit {bit} changed the manifest");
            all(&bundle).is_ok()
        })
    });
    // Versions, dates and modes in headers are nobody's business; each byte that says something is.
    let accepted = accepted.count();
    assert!(accepted < 8 * 2 * 2 * 16, "{accepted} bits of headers are not looked at");
}

#[test]
fn more_than_was_promised_is_not_unpacked() {
    let bench = Bench::new();
    let zeros = vec![0; 64 << 20];
    let name = blob(b"promised");
    let mut entry = Raw::deflated(&name, &zeros);
    entry.size = 8;
    let mut entries = vec![listed(&blob(SPEC), SPEC), listed(&name, b"promised")];
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    let manifest = manifest(entries.clone()).to_bytes().expect("a manifest has bytes");
    let mut raw = vec![Raw::stored("bundle.json", &manifest)];
    for listed in &entries {
        raw.push(if listed.name == name { entry.clone() } else { Raw::deflated(&listed.name, SPEC) });
    }
    let said = bench.refused(&archive(&raw));
    assert!(said.contains("more than 8 bytes"), "{said}");
}

#[test]
fn limits_hold_before_anything_is_unpacked() {
    let bench = Bench::new();
    let file = bench.file(&archive(&good()));
    for (limits, what) in [
        (Limits { entries: 1, ..Limits::default() }, "entries"),
        (Limits { total: 3, ..Limits::default() }, "bytes"),
        (Limits { manifest: 10, ..Limits::default() }, "bytes of manifest"),
    ] {
        match Bundle::open(&file, limits) {
            Err(BundleError::Limit { what: found, .. }) => assert_eq!(found, what),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_manifest_has_one_form_and_known_keys() {
    let bench = Bench::new();
    let good = manifest(vec![listed(&blob(SPEC), SPEC)]);
    let text = String::from_utf8(good.to_bytes().expect("bytes")).expect("UTF-8");
    let entry = Raw::deflated(&blob(SPEC), SPEC);
    for (what, text) in [
        ("blanks", text.replace(',', ", ")),
        ("an unknown key", text.replacen('{', "{\"a\":1,", 1)),
        ("another kind", text.replace("avow-bundle", "other")),
        ("another version", text.replace("\"v\":1", "\"v\":2")),
        ("a blob under another name", text.replace(&blob(SPEC), &blob(b"x"))),
        ("nesting without end", "[".repeat(100_000)),
        ("nothing", String::new()),
    ] {
        let said = bench.refused(&archive(&[Raw::stored("bundle.json", text.as_bytes()), entry.clone()]));
        assert!(said.contains("manifest") || said.contains("its name is not its digest"), "{what}: {said}");
    }
}

#[test]
fn the_names_of_runs_and_of_the_spec_stay_inside() {
    let bench = Bench::new();
    let journal = b"{}\n";
    let entries = || {
        let mut all =
            vec![listed(&blob(SPEC), SPEC), listed(&format!("journal/{}", BlobDigest::of(journal)), journal)];
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    };
    for run in ["../../evil", "/tmp/avow-evil", ".hidden", "a/b", "a\nb", ""] {
        let mut manifest = manifest(entries());
        manifest.runs =
            vec![avow_exchange::bundle::Run { run: run.to_owned(), journal: BlobDigest::of(journal) }];
        let bytes = manifest.to_bytes().expect("bytes");
        let raw = [
            Raw::stored("bundle.json", &bytes),
            Raw::deflated(&blob(SPEC), SPEC),
            Raw::deflated(&format!("journal/{}", BlobDigest::of(journal)), journal),
        ];
        let said = bench.refused(&archive(&raw));
        assert!(said.contains("no run has the journal"), "{run:?}: {said}");
    }
}
