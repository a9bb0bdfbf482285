//! Every committed seed through its target, on any compiler: what a fuzzer once found stays found.

use std::fs;
use std::path::Path;

#[test]
fn every_seed_keeps_the_promises_of_its_target() {
    for (name, target) in avow_fuzz::TARGETS.iter().copied() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(name);
        let mut seeds = 0;
        for entry in fs::read_dir(&folder).expect("every target has seeds") {
            let path = entry.expect("the folder is readable").path();
            println!("{}", path.display());
            target(&fs::read(&path).expect("a seed is readable"));
            seeds += 1;
        }
        assert!(seeds >= 3, "`{name}` has {seeds} seeds");
    }
}
