//! `dist`: makes the distribution: an archive with the command, its manual pages, completions and licences,
//! and a wheel.
//!
//! The archive is unpacked into an otherwise empty root with only the C library, and tried there.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::output;
use crate::{Answer, flag, python, target_folder, workspace};

/// The shells that have completions, and the files' names.
const SHELLS: [(&str, &str); 3] =
    [("bash", "tracewalk.bash"), ("zsh", "_tracewalk"), ("fish", "tracewalk.fish")];

/// The texts in the archive.
const TEXTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// The example for trying the command.
const EXAMPLE: &str = "testdata/examples/m3-etmv3";

/// Runs the task. `--built` packs the tests' build of the command and the wheel, for trying, not for
/// distribution.
pub(crate) fn run() -> Answer {
    let built = flag("--built");
    let (triple, version) = (triple()?, env!("CARGO_PKG_VERSION"));
    let command = if built { target_folder().join("debug/tracewalk") } else { release()? };
    let name = format!("tracewalk-{version}-{triple}");
    let folder = target_folder().join("dist");
    let tree = folder.join(&name);
    let _ = fs::remove_dir_all(&folder);
    fill(&tree, &command)?;
    let archive = folder.join(format!("{name}.tar.gz"));
    // The same tree gives the same archive: it contains neither the packer nor the time.
    let same = [
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--mtime=@0",
        "--use-compress-program=gzip -n",
    ];
    output(Command::new("tar").args(same).arg("-cf").arg(&archive).arg("-C").arg(&folder).arg(&name))?;
    let tried = try_in_empty_root(&folder.join("root"), &archive, &name)?;
    let hash =
        output(Command::new("sha256sum").arg(archive.file_name().unwrap_or_default()).current_dir(&folder))?;
    write(&folder.join("SHA256SUMS"), &hash)?;
    let size = fs::metadata(&archive).map_err(|error| format!("{}: {error}", archive.display()))?.len() >> 20;
    let wheel = python::wheel_to_give_away(&folder, built)?;
    Ok(format!("{name}.tar.gz, {size} MiB, {tried}; {wheel}"))
}

/// Builds the command for distribution.
fn release() -> Result<PathBuf, String> {
    let build =
        ["build", "--quiet", "--release", "--locked", "--package", "tracewalk-cli", "--features", "full"];
    output(Command::new(env!("CARGO")).args(build).current_dir(workspace()))?;
    Ok(target_folder().join("release/tracewalk"))
}

/// The target triple of this compiler.
fn triple() -> Result<String, String> {
    let said = output(Command::new("rustc").arg("-vV"))?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc -vV: found no line with the host".to_owned())
}

/// Puts everything into the tree of an archive.
fn fill(tree: &Path, command: &Path) -> Result<(), String> {
    let (binaries, pages) = (tree.join("bin"), tree.join("share/man/man1"));
    let completions = tree.join("share/completions");
    for folder in [&binaries, &pages, &completions] {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let binary = binaries.join("tracewalk");
    // Line tables are only useful to whoever builds the command.
    output(Command::new("strip").arg("-o").arg(&binary).arg(command))?;
    output(Command::new(&binary).args(["--generate", "man", "-o"]).arg(&pages))?;
    for (shell, file) in SHELLS {
        write(
            &completions.join(file),
            &output(Command::new(&binary).args(["--generate", &format!("complete-{shell}")]))?,
        )?;
    }
    for text in TEXTS {
        copy(&workspace().join(text), &tree.join(text))?;
    }
    write(&tree.join("THIRD-PARTY.md"), &licences()?)
}

/// The crates in the command, with their licences and sources.
fn licences() -> Result<String, String> {
    let tree = [
        "tree",
        "--locked",
        "--package",
        "tracewalk-cli",
        "--features",
        "full",
        "--edges",
        "normal",
        "--prefix",
        "none",
    ];
    let format = ["--format", "{p}\t{l}\t{r}"];
    let listed = output(Command::new(env!("CARGO")).args(tree).args(format).current_dir(workspace()))?;
    let mut rows = listed.lines().filter(|line| !line.contains("(*)")).filter_map(row).collect::<Vec<_>>();
    rows.sort_unstable();
    rows.dedup();
    let head = "# What else is in this program\n\nEach library is under its own licence.\n\n| library | licence | source |\n|---|---|---|\n";
    Ok(format!("{head}{}\n", rows.join("\n")))
}

/// A row for a third-party crate.
fn row(line: &str) -> Option<String> {
    let mut fields = line.split('\t');
    let (package, licence, source) = (fields.next()?, fields.next()?, fields.next()?);
    let is_ours = package.starts_with("tracewalk") && package.contains('/');
    (!is_ours).then(|| format!("| {package} | {licence} | {source} |"))
}

/// Unpacks the archive into a root with only the C library, and tries the command there.
fn try_in_empty_root(root: &Path, archive: &Path, name: &str) -> Result<String, String> {
    fs::create_dir_all(root).map_err(|error| format!("{}: {error}", root.display()))?;
    output(Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(root))?;
    let binary = root.join(name).join("bin/tracewalk");
    let needed = output(Command::new("ldd").arg(&binary))?;
    for library in needed.split_whitespace().filter(|word| word.starts_with('/')) {
        copy(Path::new(library), &root.join(library.trim_start_matches('/')))?;
    }
    for file in ["capture.toml", "trace.bin", "m3.elf"] {
        copy(&workspace().join(EXAMPLE).join(file), &root.join("example").join(file))?;
    }
    let inside = format!("/{name}/bin/tracewalk");
    let run = |arguments: &[&str]| {
        let mut command = within(root);
        output(command.arg(&inside).args(arguments).env_remove("HOME"))
    };
    let version = run(&["--version"])?;
    let expected =
        fs::read_to_string(workspace().join(EXAMPLE).join("runs.txt")).map_err(|error| error.to_string())?;
    let flow = run(&["flow", "/example/capture.toml", "--format", "runs", "--quiet"])?;
    let addresses = |text: &str| text.lines().filter(|line| line.starts_with("R ")).count();
    if addresses(&flow) == 0 || addresses(&expected) == 0 {
        return Err(format!("{}: found no flow of the example:\n{flow}", root.display()));
    }
    // A feature of the full build only.
    run(&["coverage", "/example/capture.toml", "--format", "html", "-o", "/coverage.html", "--quiet"])?;
    if !root.join("coverage.html").is_file() {
        return Err(format!("{}: found no page of coverage", root.display()));
    }
    Ok(format!("{} tried in an empty root", version.trim()))
}

/// A command that runs a program with `root` as its root: with `chroot` for the superuser, otherwise in its
/// own namespace.
fn within(root: &Path) -> Command {
    let is_root = output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    let mut command = Command::new(if is_root { "chroot" } else { "unshare" });
    if !is_root {
        command.args(["--map-root-user", "--root"]);
    }
    command.arg::<&OsStr>(root.as_ref());
    command
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{} to {}: {error}", from.display(), to.display());
    to.parent().map_or(Ok(()), fs::create_dir_all).map_err(failed)?;
    fs::copy(from, to).map(drop).map_err(failed)
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_projects_own_crates_are_no_other_programs() {
        let other = row("serde v1.0.228\tMIT OR Apache-2.0\thttps://github.com/serde-rs/serde").unwrap();
        assert_eq!(other, "| serde v1.0.228 | MIT OR Apache-2.0 | https://github.com/serde-rs/serde |");
        assert_eq!(row("tracewalk v0.1.0 (/home/me/tracewalk/crates/tracewalk)\tMIT\t"), None);
    }
}
