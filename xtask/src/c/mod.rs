//! `c`: builds the C library, installs it into a folder and tries it there.
//!
//! cbindgen generates the header. The task links the shared library from the static one, because rustc would
//! leave its symbols without versions. C programs find both through the pkg-config file, as users' programs
//! do.

mod library;
mod lister;
mod programs;

use std::path::{Path, PathBuf};

use library::{Build, Library};

use crate::process::output;
use crate::{Answer, flag, target_folder, words, workspace};

/// Runs the task. `--smoke` tries one program, without valgrind and OpenCSD; `--write` writes the header; `--prefix DIR` installs the library there without trying it.
pub(crate) fn run() -> Answer {
    let words = words();
    let prefix = words.iter().position(|word| word == "--prefix").and_then(|at| words.get(at + 1));
    let known = |word: &&String| ["--smoke", "--write", "--release", "--prefix"].contains(&word.as_str());
    if let Some(word) = words.iter().find(|word| !known(word) && Some(*word) != prefix) {
        return Err(format!("found {word}, expected --smoke, --write, --release or --prefix DIR"));
    }
    if !cfg!(target_os = "linux") {
        return Err("the shared library is linked for Linux alone".to_owned());
    }
    let header = library::header(flag("--write"))?;
    let build = if flag("--release") || prefix.is_some() { Build::Release } else { Build::Tests };
    if let Some(prefix) = prefix {
        let prefix = PathBuf::from(prefix);
        library::install(build, &prefix)?;
        return Ok(format!("installed in {}", prefix.display()));
    }
    let folder = target_folder().join("c");
    let library = library::install(build, &folder.join("installed"))?;
    let symbols = library.check_symbols()?;
    if flag("--smoke") {
        let tried = programs::smoke(&library, &folder)?;
        return Ok(format!("{header}\n{symbols}\n{tried}"));
    }
    let tried = programs::run(&library, &folder)?;
    let listed = lister::run(&library, &folder)?;
    Ok(format!("{header}\n{symbols}\n{tried}\n{listed}"))
}

/// The crate's folder.
fn package() -> PathBuf {
    workspace().join("crates/tracewalk-capi")
}

/// Compiles a program with the flags that pkg-config gives.
fn compile(library: &Library, source: &Path, program: &Path, linking: Linking) -> Result<(), String> {
    let mut compiler = std::process::Command::new("cc");
    compiler.args(["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-g", "-O1", "-pthread"]);
    compiler.arg("-o").arg(program).arg(source).args(library.flags(linking)?);
    if linking == Linking::Shared {
        compiler.arg(format!("-Wl,-rpath,{}", library.prefix.join("lib").display()));
    }
    output(&mut compiler).map(drop)
}

/// How a program is linked with the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Linking {
    Shared,
    Static,
}
