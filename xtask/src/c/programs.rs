//! C and C++ programs that use the library, with and without valgrind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::library::Library;
use super::{Linking, compile, package};
use crate::process::output;
use crate::workspace;

/// The options for detecting memory errors and leaks.
pub(super) const MEMORY: &[&str] = &[
    "--leak-check=full",
    "--show-leak-kinds=definite,indirect,possible",
    "--errors-for-leak-kinds=definite,indirect,possible",
];

/// The options for detecting races.
const RACES: &[&str] = &["--tool=helgrind"];

/// A source of an example, as for `--source`.
const SOURCE: &str = "0x10=etmv4,cpu=cortex-m33,trcconfigr=0x1001";

/// Compiles and runs the example, linked with the shared library.
pub(super) fn smoke(library: &Library, folder: &Path) -> Result<String, String> {
    let (example, program) = (workspace().join("testdata/examples/m33-etmv4"), folder.join("flow"));
    compile(library, &package().join("examples/flow.c"), &program, Linking::Shared)?;
    let files = [example.join("m3.elf"), example.join("trace.bin")];
    let flow = output(Command::new(program).args(files).arg(SOURCE))?;
    match flow.lines().count() {
        0 => Err("flow: found no instructions".to_owned()),
        instructions => Ok(format!("flow ({instructions} instructions) runs")),
    }
}

/// Compiles the header as C and as C++, and compiles and runs the programs.
pub(super) fn run(library: &Library, folder: &Path) -> Result<String, String> {
    header(library)?;
    document()?;
    let examples = workspace().join("testdata/examples");
    let (image, capture) = (examples.join("m33-etmv4/m3.elf"), examples.join("m33-etmv4/trace.bin"));
    let mut flows = Vec::new();
    for linking in [Linking::Shared, Linking::Static] {
        let folder = folder.join(if linking == Linking::Shared { "shared" } else { "static" });
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let program = |name: &str| -> Result<PathBuf, String> {
            let program = folder.join(Path::new(name).file_name().unwrap_or_default());
            compile(library, &package().join(name).with_extension("c"), &program, linking)?;
            Ok(program)
        };
        let (calls, threads, flow) =
            (program("tests/calls")?, program("tests/threads")?, program("examples/flow")?);
        let flow_arguments = [image.as_os_str(), capture.as_os_str(), SOURCE.as_ref()];
        if linking == Linking::Static {
            // The library's code is the same; only linking and starting are new.
            output(Command::new(calls).arg(&examples))?;
            flows.push(output(Command::new(flow).args(flow_arguments))?);
            continue;
        }
        output(valgrind(MEMORY, &calls).arg(&examples))?;
        flows.push(output(valgrind(MEMORY, &flow).args(flow_arguments))?);
        output(valgrind(RACES, &threads).args(flow_arguments).args(["8", "3"]))?;
    }
    let instructions = flows.first().map_or(0, |flow| flow.lines().count());
    if instructions == 0 || flows.iter().any(|flow| Some(flow) != flows.first()) {
        return Err(format!(
            "flow: found {instructions} instructions, expected the same with both libraries"
        ));
    }
    Ok(format!("calls, flow ({instructions} instructions) and threads run, without errors, leaks and races"))
}

/// Checks that docs/c.md shows the code that is compiled.
fn document() -> Result<(), String> {
    let read =
        |path: PathBuf| fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()));
    let (example, document) =
        (read(package().join("examples/flow.c"))?, read(workspace().join("docs/c.md"))?);
    let shown = example.split_once("from here */\n").and_then(|(_, rest)| rest.split_once("/* to here */"));
    let (shown, _) = shown.ok_or("flow.c: found no part that docs/c.md shows")?;
    if document.contains(&format!("```c\n{}\n```", shown.trim_end())) {
        Ok(())
    } else {
        Err("docs/c.md: found other lines than flow.c has from \"from here\" to \"to here\"".to_owned())
    }
}

/// Checks that the header compiles on its own in both languages.
fn header(library: &Library) -> Result<(), String> {
    let header = library.prefix.join("include/tracewalk.h");
    for (compiler, language, standard) in [("cc", "c", "c99"), ("c++", "c++", "c++11")] {
        let mut command = Command::new(compiler);
        command.args([
            "-x",
            language,
            &format!("-std={standard}"),
            "-pedantic",
            "-Wall",
            "-Wextra",
            "-Werror",
        ]);
        output(command.arg("-fsyntax-only").arg(&header))?;
    }
    Ok(())
}

/// Runs a program under valgrind, which fails if it reports an error.
pub(super) fn valgrind(tool: &[&str], program: &Path) -> Command {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--quiet", "--error-exitcode=9"]).args(tool);
    valgrind.arg(format!("--suppressions={}", package().join("tests/valgrind.supp").display()));
    valgrind.arg(program);
    valgrind
}
