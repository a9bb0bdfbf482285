//! Plots as files: what is drawn, in each form, and where it goes.

use std::fs;

use avow_testkit::Sandbox;

const SPEC: &str = "\
avow: 1
experiment: drawn
axes: {width: [1, 2, 4, 8], wd: [0, 0.1], seed: [1, 2, 3, 4]}
stages:
  measure:
    run: [sh, measure.sh, '${axes.width}', '${axes.wd}', '${axes.seed}', '${outputs.result}']
    measurements: {result: result.json}
claims:
  grows: {says: It grows., select: yield, where: {wd: [0]}, rule: {kind: trend, along: width, above: 0}}
  helps: {says: It helps., select: yield, compare: {wd: [0.1, 0]}, per: width, rule: {kind: difference, above: 0}}
";

fn done() -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "").file("spec.yaml", SPEC);
    let script = "awk -v w=$1 -v d=$2 -v s=$3 'BEGIN {printf \"{\\\"yield\\\": %.3f, \\\"spare\\\": %d}\\n\", w + d * 5 + s / 8, s}' > \"$4\"\n";
    sandbox.file("measure.sh", script);
    sandbox.avow(&["run", "-q"]).expect_code(0);
    sandbox
}

#[test]
fn a_claim_and_a_measurement_are_drawn_in_each_form() {
    let sandbox = done();
    for (what, form) in [("grows", "svg"), ("helps", "png"), ("measure.yield", "pdf"), ("spare", "png")] {
        let path = format!("figure.{form}");
        let said = sandbox.avow(&["plot", what, "-o", &path]).with_code(0).stdout;
        assert!(said.starts_with(&format!("wrote `{path}`: ")), "{said}");
        let bytes = fs::read(sandbox.path(&path)).unwrap();
        let begin: &[u8] = match form {
            "svg" => b"<svg ",
            "png" => b"\x89PNG\r\n\x1a\n",
            _ => b"%PDF-",
        };
        assert!(bytes.starts_with(begin), "{what} {form}");
        sandbox.remove(&path);
    }
    // The text of a PDF file is text: it can be searched and copied.
    sandbox.avow(&["plot", "measure.yield", "-o", "figure.pdf"]).expect_code(0);
    if let Ok(read) = sandbox.command("pdftotext").args(["figure.pdf", "-"]).output() {
        let text = String::from_utf8_lossy(&read.stdout).into_owned();
        assert!(read.status.success() && text.contains("yield") && text.contains("wd"), "{text}");
    } else {
        assert!(std::env::var_os("CI").is_none(), "CI needs the program `pdftotext` (poppler-utils)");
    }
    let about = sandbox.command("pdfinfo").arg("figure.pdf").output();
    match about {
        Ok(about) => assert!(
            String::from_utf8_lossy(&about.stdout)
                .lines()
                .any(|l| l.starts_with("Pages:") && l.ends_with(" 1"))
        ),
        Err(_) => assert!(std::env::var_os("CI").is_none(), "CI needs the program `pdfinfo` (poppler-utils)"),
    }
    // Dots per inch are pixels.
    let width = |dpi: &str| {
        sandbox.avow(&["plot", "spare", "-o", "w.png", "--dpi", dpi]).expect_code(0);
        let bytes = fs::read(sandbox.path("w.png")).unwrap();
        u32::from_be_bytes(bytes[16..20].try_into().unwrap())
    };
    assert_eq!(width("300"), 2375);
    assert_eq!(width("96"), 760);
}

#[test]
fn everything_is_drawn_where_nothing_is_named() {
    let sandbox = done();
    sandbox.file("plots/keep", "");
    let drawn = sandbox.avow(&["plot", "-o", "plots", "--format", "svg", "--json"]).with_code(0).json();
    let names = sandbox.list("plots");
    assert_eq!(drawn.as_array().unwrap().len() + 1, names.len(), "{names:?}");
    for name in ["grows.svg", "helps.svg", "helps-2.svg", "measure.spare.svg"] {
        assert!(names.contains(&name.to_owned()), "{names:?}");
    }
    assert!(!names.iter().any(|name| name.starts_with("measure.yield")), "a claim shows it: {names:?}");
    let unknown = sandbox.avow(&["plot", "nothing"]).with_code(2);
    assert!(unknown.stderr.contains("`grows`") && unknown.stderr.contains("hint:"), "{}", unknown.stderr);
    sandbox.avow(&["plot", "grows", "-o", "figure.doc"]).expect_code(2);
}

#[test]
fn values_stay_hidden_also_from_plots() {
    let sandbox = done();
    sandbox.replace("spec.yaml", "seed: [1, 2, 3, 4]", "seed: [5, 6, 7, 8]");
    sandbox.avow(&["register", "--accept-warnings"]).expect_code(0);
    sandbox.avow(&["run", "-q", "--only", "measure[seed=5,wd=0,width=1]"]).expect_code(0);
    sandbox.avow(&["plot", "grows"]).expect_code(5);
    assert!(!sandbox.has("grows.svg"));
    sandbox.avow(&["plot", "grows", "--peek", "-q"]).expect_code(0);
    assert!(sandbox.read("registrations/drawn.jsonl").contains("\"command\":\"plot\""));
}

/// Another program's reading of a PNG image: every checksum, the size, and how many pixels are dark.
const READ: &str = "\
import struct, sys, zlib
data = open(sys.argv[1], 'rb').read()
assert data[:8] == b'\\x89PNG\\r\\n\\x1a\\n'
at, packed = 8, b''
while at < len(data):
    (size,) = struct.unpack('>I', data[at:at + 4])
    kind, body = data[at + 4:at + 8], data[at + 8:at + 8 + size]
    assert zlib.crc32(kind + body) == struct.unpack('>I', data[at + 8 + size:at + 12 + size])[0], kind
    if kind == b'IHDR':
        width, height, depth, colour = struct.unpack('>IIBB', body[:10])
    packed += body if kind == b'IDAT' else b''
    at += 12 + size
assert kind == b'IEND' and depth == 8
channels = {2: 3, 6: 4}[colour]
assert len(zlib.decompress(packed)) == (width * channels + 1) * height
print(width, height)
";

#[test]
fn the_null_is_drawn_against_what_was_observed() {
    let sandbox = done();
    sandbox.replace("measure.sh", "s / 8", "s * s * (1 + d) / 8");
    sandbox.avow(&["run", "-q"]).expect_code(0);
    let drawn = sandbox.avow(&["plot", "helps", "-o", "n.png", "--json"]).with_code(0).json();
    let nulls: Vec<_> = drawn
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["caption"].as_str().unwrap().contains("Null against observed"))
        .collect();
    assert_eq!(nulls.len(), 4, "one for each width: {drawn:#}");
    let caption = nulls[0]["caption"].as_str().unwrap();
    assert!(caption.contains("if 0 were true") && caption.contains("q = "), "{caption}");
    let file = nulls[0]["path"].as_str().unwrap();
    let read = sandbox.command("python3").args(["-c", READ, file]).output().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    assert_eq!(String::from_utf8_lossy(&read.stdout).trim(), "2375 750");
    sandbox.avow(&["report", "--html", "page.html"]).expect_code(0);
    let page = sandbox.read("page.html");
    assert!(page.contains("Null against observed") && page.contains("observed: "), "{}", page.len());
    // What is only drawn is no part of a verdict: old copies of verdicts and macro files stay good.
    let verdict = sandbox.avow(&["verdict", "--json"]).with_code(0).json();
    assert!(verdict["verdicts"][0].get("behind").is_none(), "{verdict:#}");
}

/// Beyond the members whose lineage is written out at length there are others; their numbers lead somewhere as well.
#[test]
fn every_number_of_a_page_links_to_where_it_comes_from() {
    let sandbox = done();
    sandbox.replace("spec.yaml", "seed: [1, 2, 3, 4]", "seed: {range: [1, 8]}");
    sandbox.avow(&["run", "-q"]).expect_code(0);
    sandbox.avow(&["report", "--html", "page.html"]).expect_code(0);
    let page = sandbox.read("page.html");
    let links: std::collections::BTreeSet<&str> =
        page.split("href=\"#made-").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(links.len(), 56, "one for each attempt");
    for link in links {
        assert_eq!(page.matches(&format!("id=\"made-{link}\"")).count(), 1, "{link}");
    }
    let (_, table) = page.split_once("Table of measurements").unwrap();
    let rows: Vec<&str> = table.split("<tr>").skip(2).take(112).collect();
    assert!(rows.len() == 112 && rows.iter().all(|row| row.contains("href=\"#made-")), "{}", rows.len());
    assert!(page.contains("as the members of its stage above"));
}
