//! `packages`: checks that each crate is complete outside the workspace.
//!
//! Every crate that can be published is packaged, unpacked elsewhere, and checked there with the other
//! packages in place of their folders. That exposes a file that a package lacks, or a version that it does
//! not name. The target folder is the workspace's, so that libraries are not built again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::output;
use crate::{Answer, Outcome, target_folder, workspace};

/// Members for developers only.
const NOT_PUBLISHED: &[&str] =
    &["xtask", "tracewalk-benches", "tracewalk-capi", "tracewalk-conformance", "tracewalk-python"];

/// Runs the task.
pub(crate) fn run() -> Answer {
    let folder = target_folder().join("packages");
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let mut package = Command::new(env!("CARGO"));
    package.args(["package", "--quiet", "--workspace", "--no-verify", "--allow-dirty", "--target-dir"]);
    package.arg(&folder).current_dir(workspace());
    package.args(NOT_PUBLISHED.iter().flat_map(|name| ["--exclude", name]));
    output(&mut package)?;
    let whole = folder.join("whole");
    let packages = unpack(&folder.join("package"), &whole)?;
    let lacking = packages.iter().filter(|package| !package.join("README.md").is_file());
    let lacking =
        lacking.map(|package| format!("{}: found no README.md", package.display())).collect::<Vec<_>>();
    if !lacking.is_empty() {
        return Err(lacking.join("\n"));
    }
    let names = packages.iter().filter_map(|package| package.file_name()?.to_str()).collect::<Vec<_>>();
    fs::write(whole.join("Cargo.toml"), manifest(&names))
        .map_err(|error| format!("{}: {error}", whole.display()))?;
    fs::copy(workspace().join("Cargo.lock"), whole.join("Cargo.lock"))
        .map_err(|error| format!("{}: {error}", whole.display()))?;
    let mut check = Command::new(env!("CARGO"));
    check.args(["check", "--quiet", "--workspace", "--features", "full", "--target-dir"]);
    check.arg(target_folder()).current_dir(&whole);
    output(&mut check)?;
    Ok(Outcome::Done(format!("{} packages are whole: {}", names.len(), names.join(" "))))
}

/// Unpacks the packages in `from`; returns their folders.
fn unpack(from: &Path, into: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", from.display());
    fs::create_dir_all(into).map_err(failed)?;
    let mut folders = Vec::new();
    for entry in fs::read_dir(from).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        if file.extension().is_some_and(|extension| extension == "crate") {
            // All files in packages have the same date; with that date, changed files would look unchanged
            // since the last check.
            output(Command::new("tar").arg("-xzmf").arg(&file).arg("-C").arg(into))?;
            folders.push(into.join(file.file_stem().unwrap_or_default()));
        }
    }
    folders.sort();
    Ok(folders)
}

/// A workspace of these packages, each named with its version; they replace the registry's.
fn manifest(packages: &[&str]) -> String {
    let members = packages.iter().map(|package| format!("    {package:?},\n")).collect::<String>();
    let patches = packages.iter().filter_map(|package| {
        let (name, _) = package.rsplit_once('-')?;
        Some(format!("{name} = {{ path = {package:?} }}\n"))
    });
    let patches = patches.collect::<String>();
    format!("[workspace]\nresolver = \"3\"\nmembers = [\n{members}]\n\n[patch.crates-io]\n{patches}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_stand_for_what_the_registry_has() {
        let manifest = manifest(&["tracewalk-0.1.0", "tracewalk-input-0.1.0"]);
        assert!(manifest.contains("tracewalk = { path = \"tracewalk-0.1.0\" }\n"), "{manifest}");
        assert!(manifest.contains("tracewalk-input = { path = \"tracewalk-input-0.1.0\" }\n"), "{manifest}");
    }
}
