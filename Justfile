# The list of everything a developer does; CI calls the same recipes.

# Compile nothing, check everything.
check:
    cargo check --workspace --all-targets

fmt:
    cargo fmt --all

lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings

test:
    cargo test --workspace

# The end-to-end tests alone.
e2e:
    cargo test -p avow-cli

# The public programs that judge exports; without them their tests are skipped here, and fail in CI.
validators:
    .ci/validators .validators

# Write schemas/ and docs/keys.md from the key tables.
schemas:
    cargo run -q -p avow-cli -- schema > schemas/experiment.schema.json
    cargo run -q -p avow-cli -- schema --keys > docs/keys.md

# Every committed seed through its fuzz target.
seeds:
    cd fuzz && cargo test --locked

# Every fuzz target for so many seconds, with coverage, on the stable compiler; `just fuzz 600 spec` runs one.
fuzz seconds="10" *targets:
    fuzz/run {{seconds}} {{targets}}

# Measure beside make, ninja, b3sum and cp: `just bench --quick`, `just bench pipeline --sizes 1000`.
# `just bench --write docs/performance.md` keeps the table.
bench *arguments:
    python3 benches/bench.py {{arguments}}

# The driver of the benchmarks works; says nothing about speed.
bench-smoke:
    cargo build -q -p avow-cli
    python3 benches/bench.py --quick --avow target/debug/avow

deny:
    cargo deny check bans licenses sources

doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

ci: validators test lint bench-smoke deny
