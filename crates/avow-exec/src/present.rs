//! What is really present on this machine, for the record of an environment.
//!
//! Files are read and nothing is executed. What cannot be read is left out: a fact that is absent says that nobody
//! knows, not that it is not so.

use std::collections::BTreeMap;
use std::fs;

use avow_model::present::Present;

use crate::environment;

/// Features of a processor by which numerical libraries choose their instructions.
const FEATURES: [&str; 30] = [
    "amx_bf16",
    "amx_int8",
    "amx_tile",
    "asimd",
    "asimddp",
    "asimdfhm",
    "avx",
    "avx2",
    "avx512_bf16",
    "avx512_fp16",
    "avx512_vnni",
    "avx512bw",
    "avx512cd",
    "avx512dq",
    "avx512f",
    "avx512vl",
    "avx_vnni",
    "bf16",
    "f16c",
    "fma",
    "fp",
    "i8mm",
    "sse2",
    "sse3",
    "sse4_1",
    "sse4_2",
    "ssse3",
    "sve",
    "sve2",
    "vfpv4",
];

/// This machine, without interpreters.
pub fn machine() -> Present {
    let mut facts = BTreeMap::new();
    let mut fact = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            facts.insert(name.to_owned(), value);
        }
    };
    let host = crate::describe_host();
    let uname = rustix::system::uname();
    fact("kernel", Some(uname.release().to_string_lossy().into_owned()));
    fact("machine", Some(uname.machine().to_string_lossy().into_owned()));
    fact("system", host.system.split(", ").next().map(str::to_owned));
    fact("processor", Some(host.cpu));
    fact("C library", c_library());
    fact("GPU driver", gpu_driver());
    Present {
        facts,
        features: features(),
        gpus: gpus(),
        threads: environment::THREADS.into_iter().map(|name| (name.to_owned(), "1".to_owned())).collect(),
        ..Present::default()
    }
}

/// `glibc 2.36`.
fn c_library() -> Option<String> {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: the function takes nothing and returns a pointer to a constant string of the C library.
        #[expect(unsafe_code, reason = "the C library's own version is known by no other means")]
        let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
        Some(format!("glibc {}", version.to_string_lossy()))
    }
    #[cfg(not(target_env = "gnu"))]
    None
}

fn features() -> Vec<String> {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("flags") || line.starts_with("Features"));
    let words = line.and_then(|line| line.split_once(':')).map(|(_, words)| words).unwrap_or_default();
    let mut all: Vec<String> =
        words.split_whitespace().filter(|word| FEATURES.contains(word)).map(str::to_owned).collect();
    all.sort();
    all.dedup();
    all
}

fn gpu_driver() -> Option<String> {
    let nvidia = fs::read_to_string("/sys/module/nvidia/version").ok();
    let amd = fs::read_to_string("/sys/module/amdgpu/version").ok();
    let named = |name: &str, version: String| format!("{name} {}", version.trim());
    nvidia.map(|version| named("nvidia", version)).or_else(|| amd.map(|version| named("amdgpu", version)))
}

/// The GPUs that the driver lists, in its order.
fn gpus() -> Vec<String> {
    let entries = fs::read_dir("/proc/driver/nvidia/gpus").into_iter().flatten().flatten();
    let mut folders: Vec<_> = entries.map(|entry| entry.path()).collect();
    folders.sort();
    let model = |folder: &std::path::PathBuf| {
        let text = fs::read_to_string(folder.join("information")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("Model:"))?;
        Some(line.trim().to_owned())
    };
    folders.iter().filter_map(model).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_described_without_what_changes_by_itself() {
        let first = machine();
        assert!(first.facts.contains_key("kernel") && first.facts.contains_key("processor"));
        assert_eq!(first, machine());
        assert!(machine().since(&first).is_empty());
    }

    #[test]
    fn the_features_are_sorted() {
        assert!(FEATURES.is_sorted());
    }
}
