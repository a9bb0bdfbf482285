//! The identity of an operation changes with what it is compiled from and with nothing else.

#[path = "../../build/closure.rs"]
mod closure;
#[path = "../../build/identity.rs"]
mod digest;
#[path = "../../build/lock.rs"]
mod lock;

use std::fs;
use std::path::{Path, PathBuf};

use closure::Sources;
use digest::{Machine, Workspace};
use lock::Lock;
use tempfile::TempDir;

/// Two operations: `first` reaches `shared`, `deep` with its child, `value` of the model and `alpha`;
/// `second` only `beta`.
const FILES: &[(&str, &str)] = &[
    ("avow-ops/src/lib.rs", "mod op; mod shared; mod deep; mod alone;"),
    ("avow-ops/src/op.rs", "mod first; mod second;"),
    (
        "avow-ops/src/op/first.rs",
        r##"
        // use crate::alone::Nothing; a comment reaches nothing
        use crate::{shared::{self, Thing}, deep::inner::Leaf};
        use avow_model::value::Value;
        const TEXT: &str = r#"crate::alone::Nothing "quoted" "#;
        fn f<'a>(c: &'a str) -> char { let _ = "\" crate::alone"; if c.is_empty() { '\'' } else { '"' } }
        fn g() { alpha_one::call(); }
        "##,
    ),
    ("avow-ops/src/op/second.rs", "use beta; fn f() { beta::call() }"),
    ("avow-ops/src/shared.rs", "pub struct Thing; pub fn f() { super::deep::go() }"),
    ("avow-ops/src/deep.rs", "mod inner; mod sibling; pub fn go() {}"),
    ("avow-ops/src/deep/inner.rs", "mod tests { use super::super::shared::Thing; } pub struct Leaf;"),
    ("avow-ops/src/deep/sibling.rs", ""),
    ("avow-ops/src/alone.rs", "pub struct Nothing;"),
    ("avow-model/src/lib.rs", "pub mod value; pub mod other;"),
    ("avow-model/src/value.rs", "use crate::unit::Unit; use gamma::Derive;"),
    ("avow-model/src/unit.rs", ""),
    ("avow-model/src/other.rs", ""),
];

const LOCK: &str = r#"
version = 4

[[package]]
name = "alpha-one"
version = "1.0.0"
source = "registry"
checksum = "aaaa"
dependencies = [
 "delta 2.0.0",
]

[[package]]
name = "avow-model"
version = "0.1.0"
dependencies = [
 "gamma",
]

[[package]]
name = "avow-ops"
version = "0.1.0"
dependencies = [
 "alpha-one",
 "avow-model",
 "beta",
]

[[package]]
name = "beta"
version = "1.0.0"
source = "registry"
checksum = "bbbb"

[[package]]
name = "delta"
version = "1.0.0"
source = "registry"
checksum = "d1"

[[package]]
name = "delta"
version = "2.0.0"
source = "registry"
checksum = "d2"

[[package]]
name = "gamma"
version = "1.0.0"
source = "registry"
checksum = "cccc"
"#;

struct Tree {
    folder: TempDir,
    lock: String,
    requirements: String,
    machine: [String; 4],
}

impl Tree {
    fn new() -> Tree {
        let folder = tempfile::tempdir().unwrap();
        for (file, text) in FILES {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Tree {
            folder,
            lock: LOCK.to_owned(),
            requirements: "alpha-one = \"1\"\nbeta = \"1\"\n".to_owned(),
            machine: ["rustc 1", "x86_64", "sse2", "3"].map(str::to_owned),
        }
    }

    fn identity(&self, op: &str) -> String {
        let workspace = Workspace {
            sources: Sources::new(self.folder.path()),
            lock: Lock::parse(&self.lock),
            requirements: self.requirements.clone(),
        };
        let [compiler, target, features, optimisation] = self.machine.clone();
        let machine = Machine { compiler, target, features, optimisation };
        let reached = workspace.sources.reached_from("avow_ops", &["op", op]).unwrap();
        digest::of(&workspace, &reached, &machine).unwrap()
    }

    /// Which of the two operations changes when this is done.
    fn changed_by(change: impl FnOnce(&mut Tree)) -> Vec<&'static str> {
        let mut tree = Tree::new();
        let before = ["first", "second"].map(|op| tree.identity(op));
        change(&mut tree);
        ["first", "second"]
            .into_iter()
            .zip(before)
            .filter(|(op, old)| tree.identity(op) != *old)
            .map(|(op, _)| op)
            .collect()
    }
}

#[test]
fn a_file_changes_exactly_the_operations_that_reach_it() {
    let changed_by_file = |file: &str| {
        Tree::changed_by(|tree| {
            let path = tree.folder.path().join(file);
            let text = fs::read_to_string(&path).unwrap();
            fs::write(path, text + "\n").unwrap();
        })
    };
    for inside in [
        "avow-ops/src/op/first.rs",
        "avow-ops/src/shared.rs",
        "avow-ops/src/deep.rs",
        "avow-ops/src/deep/inner.rs",
        "avow-ops/src/deep/sibling.rs",
        "avow-model/src/value.rs",
        "avow-model/src/unit.rs",
    ] {
        assert_eq!(changed_by_file(inside), ["first"], "{inside}");
    }
    assert_eq!(changed_by_file("avow-ops/src/op/second.rs"), ["second"]);
    for outside in [
        "avow-ops/src/lib.rs",
        "avow-ops/src/op.rs",
        "avow-ops/src/alone.rs",
        "avow-model/src/lib.rs",
        "avow-model/src/other.rs",
    ] {
        assert_eq!(changed_by_file(outside), [""; 0], "{outside}");
    }
}

#[test]
fn naming_an_item_of_a_root_reaches_the_whole_crate() {
    let mut tree = Tree::new();
    let second = tree.folder.path().join("avow-ops/src/op/second.rs");
    fs::write(second, "use avow_model::Everything;").unwrap();
    let before = tree.identity("second");
    fs::write(tree.folder.path().join("avow-model/src/other.rs"), "struct New;").unwrap();
    assert_ne!(tree.identity("second"), before);
    tree.lock = tree.lock.replace("cccc", "ccc2");
    assert_ne!(tree.identity("second"), before);
}

#[test]
fn a_locked_package_changes_exactly_the_operations_that_reach_it() {
    let replaced = |old: &'static str, new: &'static str| {
        Tree::changed_by(move |tree| tree.lock = tree.lock.replace(old, new))
    };
    assert_eq!(replaced("aaaa", "aaa2"), ["first"]);
    assert_eq!(replaced("d2", "d3"), ["first"], "a dependency of a dependency, in the version it asks for");
    assert_eq!(replaced("d1", "d0"), [""; 0], "the other version");
    assert_eq!(replaced("cccc", "ccc2"), ["first"], "reached through the model");
    assert_eq!(replaced("bbbb", "bbb2"), ["second"]);
}

#[test]
fn features_compiler_target_and_optimisation_count() {
    let asked = Tree::changed_by(|tree| {
        tree.requirements = tree.requirements.replace("beta = \"1\"", "beta = { version = \"1\" }")
    });
    assert_eq!(asked, ["second"]);
    for field in 0..4 {
        assert_eq!(Tree::changed_by(|tree| tree.machine[field].push('0')), ["first", "second"]);
    }
}

#[test]
fn operations_of_this_crate_do_not_reach_each_other() {
    let crates: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned();
    let reached = Sources::new(&crates).reached_from("avow_ops", &["op", "synthetic_gaussian"]).unwrap();
    let modules: Vec<String> =
        reached.files.iter().map(|f| format!("{}::{}", f.krate, f.module.join("::"))).collect();
    assert!(modules.contains(&"avow_ops::random".to_owned()), "{modules:?}");
    assert!(modules.contains(&"avow_model::op".to_owned()), "{modules:?}");
    for absent in
        ["avow_ops::", "avow_ops::network", "avow_ops::cka", "avow_ops::op::mlp_train", "avow_model::"]
    {
        assert!(!modules.contains(&absent.to_owned()), "{absent} in {modules:?}");
    }
    assert!(
        reached.outside.contains(&("avow_ops".to_owned(), "rand_chacha".to_owned())),
        "{:?}",
        reached.outside
    );
    assert!(!reached.outside.iter().any(|(_, name)| name == "candle_core"));
    let trained = Sources::new(&crates).reached_from("avow_ops", &["op", "mlp_train"]).unwrap();
    assert!(trained.outside.contains(&("avow_ops".to_owned(), "candle_core".to_owned())));
    assert!(trained.outside.contains(&("avow_model".to_owned(), "serde_json".to_owned())));
}
