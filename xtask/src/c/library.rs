//! The C library: its header, build, installation and exported symbols.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Linking, package};
use crate::process::output;
use crate::python::OPTIMISED;
use crate::{target_folder, workspace};

/// The version of cbindgen, which generates the header.
const CBINDGEN: &str = "0.29.4";

/// The version of the symbols, as `tracewalk.map` defines it.
const SYMBOLS: &str = "TRACEWALK_0.1";

/// How the library is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Build {
    /// With the tests' own build, so that little is compiled again.
    Tests,
    /// To be installed.
    Release,
}

/// An installed library.
#[derive(Debug)]
pub(super) struct Library {
    pub(super) prefix: PathBuf,
    shared: PathBuf,
}

/// Generates the header, and compares it with the committed one or overwrites that.
pub(super) fn header(write: bool) -> Result<String, String> {
    let (made, committed) = (target_folder().join("c/tracewalk.h"), package().join("include/tracewalk.h"));
    fs::create_dir_all(target_folder().join("c")).map_err(|error| format!("target/c: {error}"))?;
    let mut cbindgen = Command::new(cbindgen()?);
    cbindgen.args(["--quiet", "--crate", "tracewalk-capi", "--config"]);
    cbindgen.arg(package().join("cbindgen.toml")).arg("--output").arg(&made).arg(package());
    output(&mut cbindgen)?;
    let read = |path: &Path| fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    let made = read(&made)?;
    if write {
        fs::write(&committed, made).map_err(|error| format!("{}: {error}", committed.display()))?;
        return Ok("the header is written".to_owned());
    }
    if read(&committed)? != made {
        return Err(format!("{}: found an old header: cargo xtask c --write", committed.display()));
    }
    Ok("the header is current".to_owned())
}

/// cbindgen, which is built once if it is not installed.
fn cbindgen() -> Result<PathBuf, String> {
    let version = |path: &Path| output(Command::new(path).arg("--version"));
    let wanted = format!("cbindgen {CBINDGEN}");
    let tools = target_folder().join("tools");
    for path in [PathBuf::from("cbindgen"), tools.join("bin/cbindgen")] {
        if version(&path).is_ok_and(|found| found.trim() == wanted) {
            return Ok(path);
        }
    }
    let mut install = Command::new(env!("CARGO"));
    install.args(["install", "--quiet", "--locked", "--debug", "--root"]).arg(&tools);
    output(install.arg(format!("cbindgen@{CBINDGEN}")))?;
    Ok(tools.join("bin/cbindgen"))
}

/// Builds the library and installs it below `prefix`.
pub(super) fn install(build: Build, prefix: &Path) -> Result<Library, String> {
    let archive = archive(build)?;
    let failed = |error: std::io::Error| format!("{}: {error}", prefix.display());
    let (include, lib) = (prefix.join("include"), prefix.join("lib"));
    fs::create_dir_all(&include).and_then(|()| fs::create_dir_all(lib.join("pkgconfig"))).map_err(failed)?;
    let prefix = fs::canonicalize(prefix).map_err(failed)?;
    let (include, lib) = (prefix.join("include"), prefix.join("lib"));
    fs::copy(package().join("include/tracewalk.h"), include.join("tracewalk.h")).map_err(failed)?;
    fs::copy(&archive, lib.join("libtracewalk.a")).map_err(failed)?;
    let version = version()?;
    let template = fs::read_to_string(package().join("tracewalk.pc.in")).map_err(failed)?;
    let filled = template.replace("@prefix@", &prefix.display().to_string()).replace("@version@", &version);
    fs::write(lib.join("pkgconfig/tracewalk.pc"), filled).map_err(failed)?;
    let shared = link(build, &archive, &lib, &version)?;
    Ok(Library { prefix, shared })
}

/// Builds the static library.
fn archive(build: Build) -> Result<PathBuf, String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--locked", "--package", "tracewalk-capi"]).current_dir(workspace());
    let profile = match build {
        Build::Release => {
            cargo.arg("--release");
            "release"
        }
        Build::Tests => {
            let optimise =
                |name: &&str| ["--config".to_owned(), format!("profile.dev.package.{name}.opt-level=2")];
            cargo.args(OPTIMISED.iter().flat_map(optimise));
            "debug"
        }
    };
    output(&mut cargo)?;
    Ok(target_folder().join(profile).join("libtracewalk.a"))
}

/// The library's version: `…#tracewalk-capi@0.1.0` or `…/tracewalk-capi#0.1.0`.
fn version() -> Result<String, String> {
    let id = output(Command::new(env!("CARGO")).args(["pkgid", "tracewalk-capi"]).current_dir(workspace()))?;
    let version = id.trim().rsplit(['#', '@']).next().unwrap_or_default();
    Ok(version.to_owned())
}

/// Links the shared library, and names it as the loader and the linker expect.
fn link(build: Build, archive: &Path, lib: &Path, version: &str) -> Result<PathBuf, String> {
    let header = package().join("include/tracewalk.h");
    let text = fs::read_to_string(&header).map_err(|error| format!("{}: {error}", header.display()))?;
    let abi = text.lines().find_map(|line| line.strip_prefix("#define TRACEWALK_ABI "));
    let abi = abi.ok_or_else(|| format!("{}: found no TRACEWALK_ABI", header.display()))?;
    let (name, loaded) = (format!("libtracewalk.so.{version}"), format!("libtracewalk.so.{abi}"));
    let shared = lib.join(&name);
    let map = package().join("tracewalk.map");
    let mut linker = Command::new("cc");
    linker.args(["-shared", "-o"]).arg(&shared);
    linker.arg(format!("-Wl,-soname,{loaded},--gc-sections,--version-script={}", map.display()));
    if build == Build::Release {
        linker.arg("-Wl,--strip-debug");
    }
    linker.arg("-Wl,--whole-archive").arg(archive).arg("-Wl,--no-whole-archive");
    linker.args(["-lgcc_s", "-lpthread", "-lm", "-ldl"]);
    output(&mut linker)?;
    for (link, to) in [(&loaded, &name), (&"libtracewalk.so".to_owned(), &loaded)] {
        let link = lib.join(link);
        let _ = fs::remove_file(&link);
        symlink(to, &link).map_err(|error| format!("{}: {error}", link.display()))?;
    }
    Ok(shared)
}

#[cfg(unix)]
fn symlink(to: &str, link: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(to, link)
}

#[cfg(not(unix))]
fn symlink(_: &str, _: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

impl Library {
    /// The compiler's flags, from pkg-config.
    pub(super) fn flags(&self, linking: Linking) -> Result<Vec<String>, String> {
        let mut pkg_config = Command::new("pkg-config");
        pkg_config.env("PKG_CONFIG_PATH", self.prefix.join("lib/pkgconfig")).args(["--cflags", "--libs"]);
        if linking == Linking::Static {
            pkg_config.arg("--static");
        }
        let flags = output(pkg_config.arg("tracewalk"))?;
        // The folder contains both libraries, and the linker prefers the shared one.
        let statically = |flag: &str| match (linking, flag) {
            (Linking::Static, "-ltracewalk") => "-l:libtracewalk.a".to_owned(),
            _ => flag.to_owned(),
        };
        Ok(flags.split_whitespace().map(statically).collect())
    }

    /// Checks that the shared library exports what the header declares, each symbol with its version, and nothing else.
    pub(super) fn check_symbols(&self) -> Result<String, String> {
        let exported = output(Command::new("nm").args(["--dynamic", "--defined-only"]).arg(&self.shared))?;
        let exported = exported.lines().filter_map(|line| line.rsplit(' ').next());
        // The version itself is also among the symbols.
        let exported = exported.filter(|symbol| *symbol != SYMBOLS).collect::<BTreeSet<_>>();
        let header = package().join("include/tracewalk.h");
        let text = fs::read_to_string(&header).map_err(|error| format!("{}: {error}", header.display()))?;
        let declared = declared(&text).map(|name| format!("{name}@@{SYMBOLS}")).collect::<BTreeSet<_>>();
        let declared = declared.iter().map(String::as_str).collect::<BTreeSet<_>>();
        let differs = exported.symmetric_difference(&declared).copied().collect::<Vec<_>>();
        if !differs.is_empty() || declared.is_empty() {
            return Err(format!(
                "{}: found these in only one of the header and the exported symbols, expected them in both: {}",
                self.shared.display(),
                differs.join(" ")
            ));
        }
        let dynamic = output(Command::new("readelf").arg("--dynamic").arg(&self.shared))?;
        let soname = dynamic.lines().find_map(|line| line.split_once("soname: [")?.1.strip_suffix(']'));
        let size = fs::metadata(&self.shared).map_or(0, |metadata| metadata.len());
        Ok(format!(
            "{}, {} MiB, exports {} symbols as {SYMBOLS}",
            soname.unwrap_or("a library without a name"),
            size >> 20,
            exported.len()
        ))
    }
}

/// The functions that a header declares.
fn declared(header: &str) -> impl Iterator<Item = &str> {
    header.lines().filter(|line| !line.starts_with([' ', '#', '/'])).filter_map(|line| {
        let (before, _) = line.split_once('(')?;
        let name = before.rsplit([' ', '*']).next()?;
        (name.starts_with("tracewalk_") && !before.starts_with("typedef")).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_distinguished_from_types() {
        let header = "typedef int (*tracewalk_on_element)(void *user);\nconst char *tracewalk_version(void);\n \
             in tracewalk_comment(x)\ntracewalk_status tracewalk_open(const char *path,\n  int size);\n";
        assert_eq!(declared(header).collect::<Vec<_>>(), ["tracewalk_version", "tracewalk_open"]);
    }
}
