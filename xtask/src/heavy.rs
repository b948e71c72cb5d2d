//! `heavy`: the checks that take too long for each change, or need much that is not the project's: run before a
//! release, and every night where there is a machine for it.

use std::process::Command;

use crate::{Answer, words, workspace};

/// The checks, each with the shell's commands.
const CHECKS: &[(&str, &str)] = &[
    // Each day other cases: they share no factor with the dimensions of the matrix.
    ("matrix", "cargo xtask matrix --every 97 --from $((10#$(date +%j) % 97))"),
    ("opencsd", "cargo xtask opencsd --every 499"),
    ("seek", "cargo xtask seek"),
    ("check-isa", "cargo xtask check-isa"),
    // `c`, `python` and `spark` compare with the command.
    ("build", "cargo build --package tracewalk-cli --features full --profile test"),
    ("tests", "cargo test --release --features full -- --ignored heavy_"),
    ("python", "TRACEWALK_WHOLE=1 cargo xtask python"),
    ("spark", "cargo xtask spark"),
    ("c", "cargo xtask c"),
    ("dist", "cargo xtask dist x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu x86_64-pc-windows-gnu"),
    ("portable", "cargo xtask portable --full"),
    // Compares with the command of `build`.
    ("windows", "cargo xtask windows"),
    ("packages", "cargo publish --workspace --dry-run --quiet --allow-dirty"),
    (
        "32-bit",
        // Without a loader for this processor the programs have to be linked whole.
        "rustup --quiet target add i686-unknown-linux-gnu; CARGO_TARGET_I686_UNKNOWN_LINUX_GNU_LINKER=i686-linux-gnu-gcc \
        CARGO_TARGET_I686_UNKNOWN_LINUX_GNU_RUSTFLAGS=-Ctarget-feature=+crt-static \
        cargo test --quiet --package tracewalk --lib --tests --target i686-unknown-linux-gnu",
    ),
    (
        "big-endian",
        "rustup --quiet target add s390x-unknown-linux-gnu; CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_LINKER=s390x-linux-gnu-gcc CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_RUNNER=qemu-s390x \
        CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_RUSTFLAGS=-Ctarget-feature=+crt-static \
        cargo test --quiet --package tracewalk --lib --tests --target s390x-unknown-linux-gnu",
    ),
    ("fuzz", "fuzz/run --jobs 2 60"),
    ("benchmarks", "cargo test --quiet --package tracewalk-benches --bench stages"),
    ("comparison", "cargo xtask bench"),
    (
        "records",
        "testdata/firmware/build.sh && testdata/firmware/record.sh && testdata/firmware/record-crash.sh && \
        testdata/firmware/record-hang.sh && \
        git diff --exit-code --stat -- testdata/firmware testdata/crashes testdata/hangs",
    ),
    (
        "dependencies",
        "tools=${CARGO_TARGET_DIR:-target}/tools; PATH=$PATH:$(realpath -m $tools)/bin; \
        cargo deny --version || cargo install --quiet --locked --debug --root $tools cargo-deny@0.20.2; cargo deny check licenses bans",
    ),
];

/// Runs the named checks, or all. After a failure the others still run.
pub(crate) fn run() -> Answer {
    let wanted = words();
    if let Some(unknown) = wanted.iter().find(|name| CHECKS.iter().all(|(known, _)| known != name)) {
        let known = CHECKS.iter().map(|(name, _)| *name).collect::<Vec<_>>();
        return Err(format!("found check {unknown}, expected one of {}", known.join(", ")));
    }
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|word| word == name);
    let (mut passed, mut failed) = (0, Vec::new());
    for (name, commands) in CHECKS.iter().filter(|(name, _)| is_wanted(name)) {
        println!("\n== {name}: {commands}");
        let mut shell = Command::new("bash");
        let start = std::time::Instant::now();
        // A test whose program or captures are missing fails.
        let shell =
            shell.args(["-euo", "pipefail", "-c", commands]).env("CI", "true").current_dir(workspace());
        let status = shell.status();
        let seconds = start.elapsed().as_secs();
        if status.map_err(|error| format!("bash: {error}"))?.success() {
            println!("-- {name}: passed in {seconds} s");
            passed += 1;
        } else {
            println!("-- {name}: FAILED after {seconds} s");
            failed.push(*name);
        }
    }
    match failed.as_slice() {
        [] => Ok(format!("{passed} checks passed")),
        failed => Err(format!("{passed} checks passed, {} failed: {}", failed.len(), failed.join(", "))),
    }
}
