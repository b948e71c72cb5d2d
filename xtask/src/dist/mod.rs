//! `dist`: makes the distribution for targets: an archive with the command, its manual pages, completions and licences, a
//! wheel, a Debian package. Each is installed into an otherwise empty place, and tried there.

mod archive;
#[cfg(test)]
mod published;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::output;
use crate::target::{GLIBC, Target};
use crate::{Answer, flag, python, target_folder, words, workspace};
use flate2::Compression;
use sha2::{Digest as _, Sha256};
use trial::Trial;

/// The most bytes of what is distributed.
const LARGEST_COMMAND: u64 = 20_000_000;
const LARGEST_WHEEL: u64 = 12 << 20;

/// The profile of the command.
pub(crate) const OF_COMMAND: &str = "dist-command";

/// The most bytes of the tests' build of the command without symbols, which the gate can measure: it is not optimised, and
/// grows with the code.
const LARGEST_BUILT: u64 = 62_000_000;

/// The shells that have completions, and the files' names.
const SHELLS: [(&str, &str, &str); 4] = [
    ("bash", "tracewalk.bash", "usr/share/bash-completion/completions/tracewalk"),
    ("zsh", "_tracewalk", "usr/share/zsh/vendor-completions/_tracewalk"),
    ("fish", "tracewalk.fish", "usr/share/fish/vendor_completions.d/tracewalk.fish"),
    ("powershell", "_tracewalk.ps1", ""),
];

/// The texts in the archive.
const TEXTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// The targets whose archives Homebrew installs.
const OF_HOMEBREW: [&str; 4] =
    ["aarch64-apple-darwin", "x86_64-apple-darwin", "aarch64-unknown-linux-gnu", "x86_64-unknown-linux-gnu"];

/// The address of the project.
const REPOSITORY: &str = "https://github.com/tracewalk/tracewalk";

/// The version of the distribution.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Runs the task. `--built` packs the tests' build of the command and the wheel, for trying, not for distribution.
pub(crate) fn run() -> Answer {
    let words = words();
    if let Some(at) = words.iter().position(|word| word == "--formula") {
        let folder = words.get(at + 1).ok_or("--formula needs the folder of the archives")?;
        return formula(Path::new(folder));
    }
    let folder = target_folder().join("dist-files");
    let _ = fs::remove_dir_all(&folder);
    let host = Target::host()?;
    let made = if flag("--built") {
        // Everyone's builds are in the folder `debug`.
        vec![make(&folder, &host, &target_folder().join("debug").join(host.program("tracewalk")), true)?]
    } else {
        let mut targets =
            words.iter().map(|triple| Target::installed(triple)).collect::<Result<Vec<_>, _>>()?;
        if targets.is_empty() {
            targets.push(host);
        }
        let make = |target: &Target| make(&folder, target, &target.build(OF_COMMAND)?, false);
        targets.iter().map(make).collect::<Result<_, _>>()?
    };
    Ok(made.join("\n"))
}

/// Makes and tries what is distributed for a target.
fn make(folder: &Path, target: &Target, command: &Path, built: bool) -> Answer {
    let name = name(target);
    let tree = folder.join(&name);
    fill(&tree, target, command, built)?;
    let binary = folder.join(inside(target));
    let mut report = vec![limited(&binary, if built { LARGEST_BUILT } else { LARGEST_COMMAND })?];
    let packed = folder.join(archive_name(target));
    archive::pack(&tree, &packed, if built { Compression::fast() } else { Compression::best() })?;
    report.push(hashed(&packed)?);
    let trial = |name: &str| Trial::new(target_folder().join("dist-trials").join(name));
    let unpacked = trial("archive")?;
    let mut tar = Command::new("python3");
    tar.args(["-m", if target.is_windows() { "zipfile" } else { "tarfile" }, "-e"]);
    output(tar.arg(&packed).arg(unpacked.root()))?;
    report.push(unpacked.of_installed(target, &inside(target))?);
    if let Some(architecture) = target.debian() {
        let package = debian(folder, &tree, architecture, built)?;
        report.push(hashed(&package)?);
        let installed = trial("debian")?;
        let root = installed.root();
        write(&root.join("var/lib/dpkg/status"), "")?;
        let dpkg = ["--force-depends", "--force-architecture", "--force-not-root", "--force-bad-path"];
        let log = format!("--log={}", root.join("log").display());
        output(Command::new("dpkg").args(dpkg).arg(log).arg("--root").arg(root).arg("-i").arg(&package))?;
        report.push(installed.of_installed(target, "usr/bin/tracewalk")?);
    }
    let wheel = python::wheel_to_give_away(target, &binary, folder, built)?;
    if !built {
        report.push(limited(&wheel, LARGEST_WHEEL)?);
    }
    report.push(hashed(&wheel)?);
    let trial = trial("wheel")?;
    if *target == Target::host()? {
        let installed = python::in_empty_environment(&wheel)?;
        report.push(trial.of(&|| Ok(Command::new(&installed)))?);
        if !built {
            report.push(format!("{} by uvx", trial.of(&|| python::uvx(&wheel))?));
        }
    } else {
        // No Python of the other system runs here; the command needs none.
        python::for_other_system(&wheel, &trial.root().join("wheel"))?;
        report.push(trial.of_installed(target, &format!("wheel/bin/{}", target.program("tracewalk")))?);
    }
    Ok(format!("{name}: {}", report.join("; ")))
}

/// The folder in the archive for a target.
fn name(target: &Target) -> String {
    format!("tracewalk-{VERSION}-{}", target.triple())
}

/// The file name of the archive for a target.
fn archive_name(target: &Target) -> String {
    name(target) + if target.is_windows() { ".zip" } else { ".tar.gz" }
}

/// The command in the archive for a target.
fn inside(target: &Target) -> String {
    format!("{}/bin/{}", name(target), target.program("tracewalk"))
}

/// Puts everything into the tree of an archive.
fn fill(tree: &Path, target: &Target, command: &Path, built: bool) -> Result<(), String> {
    let binary = tree.join("bin").join(target.program("tracewalk"));
    copy(command, &binary)?;
    if built {
        output(Command::new("strip").arg(&binary))?;
    }
    let generate = |kind: &str, place: &Path| {
        let mut command = target.runs(&binary)?;
        output(command.args(["--generate", kind, "-o"]).arg(place).current_dir(tree))
    };
    for folder in ["share/man/man1", "share/completions"] {
        let folder = tree.join(folder);
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    generate("man", Path::new("share/man/man1"))?;
    for (shell, file, _) in SHELLS {
        generate(&format!("complete-{shell}"), &Path::new("share/completions").join(file))?;
    }
    for text in TEXTS {
        let from = workspace().join(text);
        let text = fs::read_to_string(&from).map_err(|error| format!("{}: {error}", from.display()))?;
        // The pages are not in the archive.
        let text = text.replace("](docs/", &format!("]({REPOSITORY}/blob/main/docs/"));
        write(&tree.join(from.file_name().unwrap_or_default()), &text)?;
    }
    write(&tree.join("THIRD-PARTY.md"), &licences(target)?)
}

/// The size of a file, which must not be larger than this.
fn limited(file: &Path, most: u64) -> Answer {
    let size = fs::metadata(file).map_err(|error| format!("{}: {error}", file.display()))?.len();
    let name = file.file_name().unwrap_or_default().display();
    if size <= most {
        Ok(format!("{name} has {size} bytes, at most {most}"))
    } else {
        Err(format!("{}: found {size} bytes, the limit is {most}", file.display()))
    }
}

/// Writes a file's SHA-256 beside it, as `sha256sum` does.
fn hashed(file: &Path) -> Answer {
    let bytes = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let hash = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    write(&file.with_file_name(format!("{name}.sha256")), &format!("{hash}  {name}\n"))?;
    Ok(format!("{name}, {} KiB", bytes.len() >> 10))
}

/// Makes a Debian package of an archive's tree.
fn debian(folder: &Path, tree: &Path, architecture: &str, built: bool) -> Result<PathBuf, String> {
    let root = folder.join("debian");
    let share = tree.join("share");
    copy(&tree.join("bin/tracewalk"), &root.join("usr/bin/tracewalk"))?;
    let pages = share.join("man/man1");
    for page in fs::read_dir(&pages).map_err(|error| format!("{}: {error}", pages.display()))?.flatten() {
        copy(&page.path(), &root.join("usr/share/man/man1").join(page.file_name()))?;
    }
    for (_, file, place) in SHELLS.iter().filter(|(_, _, place)| !place.is_empty()) {
        copy(&share.join("completions").join(file), &root.join(place))?;
    }
    for (file, name) in [
        ("CHANGELOG.md", "changelog"),
        ("LICENSE-MIT", "copyright"),
        ("LICENSE-APACHE", "LICENSE-APACHE"),
        ("THIRD-PARTY.md", "THIRD-PARTY.md"),
    ] {
        copy(&tree.join(file), &root.join("usr/share/doc/tracewalk").join(name))?;
    }
    let values = [("architecture", architecture), ("glibc", GLIBC)];
    write(&root.join("DEBIAN/control"), &filled("control", &values)?)?;
    let package = folder.join(format!("tracewalk_{VERSION}_{architecture}.deb"));
    let mut build = Command::new("dpkg-deb");
    // The same tree gives the same package.
    build.env("SOURCE_DATE_EPOCH", "0").args(["--root-owner-group", if built { "-z1" } else { "-z9" }]);
    build.arg("--build").arg(&root).arg(&package);
    output(&mut build)?;
    fs::remove_dir_all(&root).map_err(|error| format!("{}: {error}", root.display()))?;
    Ok(package)
}

/// Writes the Homebrew formula for the archives in a folder.
fn formula(folder: &Path) -> Answer {
    let read = |name: &str| {
        let path = folder.join(format!("tracewalk-{VERSION}-{name}.tar.gz.sha256"));
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok::<_, String>(text.split(' ').next().unwrap_or_default().to_owned())
    };
    let hashes = OF_HOMEBREW.map(|target| read(target).map(|hash| (target, hash)));
    let hashes = hashes.into_iter().collect::<Result<Vec<_>, _>>()?;
    let values = hashes.iter().map(|(target, hash)| (*target, hash.as_str())).collect::<Vec<_>>();
    write(&folder.join("tracewalk.rb"), &filled("tracewalk.rb", &values)?)?;
    Ok(format!("{} written", folder.join("tracewalk.rb").display()))
}

/// A file of `xtask/packages` with its values.
fn filled(name: &str, values: &[(&str, &str)]) -> Answer {
    let path = workspace().join("xtask/packages").join(name);
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let always = [("version", VERSION), ("repository", REPOSITORY)];
    let fill = |text: String, (key, value): &(&str, &str)| text.replace(&format!("@{key}@"), value);
    Ok(values.iter().chain(&always).fold(text, fill))
}

/// The crates in the command, with their licences and sources.
fn licences(target: &Target) -> Answer {
    let mut tree = Command::new(env!("CARGO"));
    tree.args(["tree", "--locked", "--package", "tracewalk-cli", "--features", "full", "--edges", "normal"]);
    tree.args(["--prefix", "none", "--format", "{p}\t{l}\t{r}", "--target", target.triple()]);
    let listed = output(tree.current_dir(workspace()))?;
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
    let is_ours = package.starts_with("tracewalk") && package.contains(['/', '\\']);
    (!is_ours).then(|| format!("| {package} | {licence} | {source} |"))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{} to {}: {error}", from.display(), to.display());
    to.parent().map_or(Ok(()), fs::create_dir_all).map_err(failed)?;
    fs::copy(from, to).map(drop).map_err(failed)
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", file.display());
    file.parent().map_or(Ok(()), fs::create_dir_all).map_err(failed)?;
    fs::write(file, text).map_err(failed)
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

    #[test]
    fn the_formula_and_the_control_file_have_no_empty_places() {
        let folder = std::env::temp_dir().join(format!("tracewalk-formula-{}", std::process::id()));
        for target in OF_HOMEBREW {
            let name = format!("tracewalk-{VERSION}-{target}.tar.gz.sha256");
            write(&folder.join(name), &format!("hash of {target}  name\n")).unwrap();
        }
        formula(&folder).unwrap();
        let text = fs::read_to_string(folder.join("tracewalk.rb")).unwrap();
        fs::remove_dir_all(folder).unwrap();
        assert!(text.contains("\"hash\"") && !text.contains('@'));
        let control = filled("control", &[("architecture", "amd64"), ("glibc", GLIBC)]).unwrap();
        assert_eq!(control.matches('@').count(), 1, "that of the address: {control}");
    }
}
