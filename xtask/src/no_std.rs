//! `no-std`: checks that the core works without std.
//!
//! A target without std would be the best check, but may not be installed. Every host can run `xtask/no-std`:
//! a program with its own panic handler, of which there can be only one, that links the core and follows a
//! trace. In addition, the core's dependencies must be those that are known to work without std, with no
//! feature that needs it.

use std::path::Path;
use std::process::Command;

use crate::process::output;
use crate::{Answer, workspace};

/// Targets without std; those that are installed are tried.
const TARGETS: &[&str] = &["thumbv7em-none-eabi", "thumbv7em-none-eabihf", "wasm32-unknown-unknown"];

/// The core and its allowed dependencies, as `cargo tree` prints them: name and features.
const DEPENDENCIES: &[(&str, &str)] = &[
    ("tracewalk", ""),
    ("hashbrown", ""),
    ("memchr", ""),
    ("rustc-hash", ""),
    ("wide", ""),
    ("safe_arch", "bytemuck,default"),
    ("bytemuck", ""),
];

/// Runs the task.
pub(crate) fn run() -> Answer {
    let root = workspace();
    let mut done = vec![check_dependencies(&root)?, run_program(&root)?];
    let sysroot = output(Command::new("rustc").args(["--print", "sysroot"]))?;
    for target in TARGETS {
        if Path::new(sysroot.trim()).join("lib/rustlib").join(target).join("lib").exists() {
            build_for(&root, target)?;
            done.push(format!("it builds for {target}"));
        } else {
            done.push(format!("not tried: {target} is not installed"));
        }
    }
    Ok(done.join("\n"))
}

fn check_dependencies(root: &Path) -> Result<String, String> {
    let tree = output(
        cargo(root)
            .args(["tree", "--package", "tracewalk", "--edges", "normal", "--prefix", "none"])
            .args(["--format", "{p}|{f}"]),
    )?;
    let unknown = unknown_dependencies(&tree);
    if !unknown.is_empty() {
        return Err(format!(
            "found in the core's dependencies: {}; expected {DEPENDENCIES:?}",
            unknown.join(", ")
        ));
    }
    Ok("the core depends on hashbrown, memchr, rustc-hash and wide alone, without their std".to_owned())
}

/// The lines of a tree that are not known dependencies.
fn unknown_dependencies(tree: &str) -> Vec<&str> {
    let is_known = |line: &&str| {
        let (package, features) = line.split_once('|').unwrap_or((line, ""));
        let name = package.split(' ').next().unwrap_or_default();
        DEPENDENCIES.contains(&(name, features))
    };
    tree.lines().filter(|line| !line.is_empty() && !is_known(line)).collect()
}

fn run_program(root: &Path) -> Result<String, String> {
    let folder = root.join("target/no-std");
    output(
        cargo(root)
            .args(["build", "--manifest-path", "xtask/no-std/Cargo.toml", "--target-dir"])
            .arg(&folder),
    )?;
    output(&mut Command::new(folder.join("debug/tracewalk-no-std")))?;
    Ok("a program without std links the core and follows a trace".to_owned())
}

fn build_for(root: &Path, target: &str) -> Result<String, String> {
    output(cargo(root).args([
        "build",
        "--package",
        "tracewalk",
        "--target",
        target,
        "--target-dir",
        "target/no-std",
    ]))
}

fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_dependencies_without_features_pass() {
        let core = "tracewalk v0.1.0 (/home/x/crates/tracewalk)|\n";
        assert!(unknown_dependencies(&format!("{core}memchr v2.8.3|\n")).is_empty());
        assert_eq!(
            unknown_dependencies(&format!("{core}memchr v2.8.3|alloc,std\n")),
            ["memchr v2.8.3|alloc,std"]
        );
        assert_eq!(unknown_dependencies(&format!("{core}serde v1.0.0|\n")), ["serde v1.0.0|"]);
    }
}
