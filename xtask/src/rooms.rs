//! `rooms`: whether the modules keep to their rooms, the table of `ARCHITECTURE.md`.
//!
//! A module belongs to the room with the longest name that its path starts with. It may name what its room sees, and
//! what the whole project may name; what needs a permission (files, threads) is listed apart.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::rust_source;
use crate::{Answer, Outcome, workspace};

/// A part of the project with one task.
struct Room {
    /// The path that its modules start with.
    module: &'static str,
    /// The rooms that it may use beside itself and the vocabulary.
    sees: &'static [&'static str],
}

const IDS: &str = "tracewalk::ids";
const SPAN: &str = "tracewalk::span";
const CURSOR: &str = "tracewalk::cursor";
const PLAIN: &str = "tracewalk::plain";
const FRAME: &str = "tracewalk::frame";
const DIRECTIVE: &str = "tracewalk::directive";
const PROTOCOL: &str = "tracewalk::protocol";
const ETMV3: &str = "tracewalk::protocol::etmv3";
const ITM: &str = "tracewalk::protocol::itm";
const MTB: &str = "tracewalk::protocol::mtb";
const PFT: &str = "tracewalk::protocol::pft";
const ISA: &str = "tracewalk::isa";
const PROGRAM: &str = "tracewalk::program";
const FLOW: &str = "tracewalk::flow";
const SOURCE: &str = "tracewalk::source";
const INPUT: &str = "tracewalk_input";
/// Bytes that come over time: the one place that waits, and that connects to a server.
const INPUT_STREAM: &str = "tracewalk_input::capture::stream";
const REPORT: &str = "tracewalk_report";
const GENERATE: &str = "tracewalk_generate";
/// The programs of a package, as against its library.
const CLI_PROGRAM: &str = "tracewalk_cli_program";
/// Finding out what the user did not say, and what that shares with the rest of the command.
const CLI_GUESS: &str = "tracewalk_cli_program::guess";
const CLI_FRAMES: &str = "tracewalk_cli_program::frames";
const CLI_SOURCES: &str = "tracewalk_cli_program::sources";
const GENERATE_PROGRAM: &str = "tracewalk_generate_program";

/// What every room may use.
const VOCABULARY: &[&str] = &[IDS, SPAN, CURSOR, PLAIN];

#[rustfmt::skip]
const ROOMS: &[Room] = &[
    Room { module: "tracewalk", sees: &[] },
    Room { module: IDS, sees: &[] },
    Room { module: SPAN, sees: &[] },
    Room { module: CURSOR, sees: &[] },
    Room { module: PLAIN, sees: &[] },
    Room { module: FRAME, sees: &[] },
    Room { module: PROTOCOL, sees: &[DIRECTIVE] },
    Room { module: ETMV3, sees: &[DIRECTIVE, PROTOCOL] },
    Room { module: PFT, sees: &[DIRECTIVE, PROTOCOL] },
    Room { module: MTB, sees: &[DIRECTIVE, PROTOCOL] },
    Room { module: ITM, sees: &[PROTOCOL] },
    Room { module: DIRECTIVE, sees: &[] },
    Room { module: ISA, sees: &[] },
    Room { module: PROGRAM, sees: &[] },
    Room { module: FLOW, sees: &[DIRECTIVE, ISA, PROGRAM] },
    Room { module: SOURCE, sees: &[FRAME, DIRECTIVE, PROTOCOL, ETMV3, PFT, MTB, ISA, PROGRAM, FLOW] },
    Room { module: INPUT_STREAM, sees: &[INPUT] },
    Room { module: INPUT, sees: &[INPUT_STREAM, FRAME, DIRECTIVE, PROTOCOL, ETMV3, PFT, MTB, ISA, PROGRAM, SOURCE] },
    Room { module: REPORT, sees: &[FRAME, DIRECTIVE, PROTOCOL, ITM, ISA, PROGRAM, FLOW, SOURCE] },
    Room { module: GENERATE, sees: &[INPUT, FRAME, DIRECTIVE, PROTOCOL, ETMV3, PFT, MTB, ISA, PROGRAM, FLOW, SOURCE] },
    Room {
        module: GENERATE_PROGRAM,
        sees: &[GENERATE, INPUT, FRAME, DIRECTIVE, PROTOCOL, ETMV3, PFT, MTB, ISA, PROGRAM, FLOW, SOURCE],
    },
    Room {
        module: CLI_PROGRAM,
        sees: &[
            CLI_GUESS, CLI_FRAMES, CLI_SOURCES,
            INPUT, INPUT_STREAM, REPORT, FRAME, PROTOCOL, ETMV3, PFT, MTB, ISA, PROGRAM, FLOW, SOURCE,
        ],
    },
    Room { module: CLI_SOURCES, sees: &[INPUT, PROTOCOL, ETMV3, PFT, SOURCE] },
    Room { module: CLI_FRAMES, sees: &[CLI_GUESS, FRAME] },
    Room {
        module: CLI_GUESS,
        sees: &[
            CLI_FRAMES, CLI_SOURCES,
            INPUT, REPORT, FRAME, DIRECTIVE, PROTOCOL, ETMV3, PFT, MTB, ITM, PROGRAM, FLOW, SOURCE,
        ],
    },
];

/// Something of the world outside that only some rooms may use.
struct Permission {
    what: &'static str,
    /// The paths that use it.
    paths: &'static [&'static str],
    /// The rooms that may, by the start of their names.
    rooms: &'static [&'static str],
}

const PERMISSIONS: &[Permission] = &[
    Permission {
        what: "the standard library",
        paths: &["std"],
        rooms: &[
            INPUT,
            INPUT_STREAM,
            REPORT,
            GENERATE,
            GENERATE_PROGRAM,
            CLI_PROGRAM,
            CLI_GUESS,
            CLI_FRAMES,
            CLI_SOURCES,
        ],
    },
    Permission {
        what: "files",
        paths: &["std::fs", "std::os", "memmap2", "tempfile"],
        rooms: &[INPUT, INPUT_STREAM, GENERATE_PROGRAM, CLI_PROGRAM],
    },
    Permission {
        what: "threads",
        paths: &["std::thread::spawn", "std::thread::scope", "std::thread::Builder", "rayon", "crossbeam"],
        rooms: &[REPORT, INPUT_STREAM],
    },
    Permission { what: "the network", paths: &["std::net"], rooms: &[INPUT_STREAM] },
];

/// A module that uses what it must not.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    line: usize,
    message: String,
}

/// Runs the task.
pub(crate) fn run() -> Answer {
    let root = workspace();
    let mut findings = Vec::new();
    let mut sources = 0;
    for (file, module) in crate_roots(&root)? {
        check_module(&root, &file, &[module], &mut sources, &mut findings)?;
    }
    findings.extend(check_documentation(&root)?);
    if findings.is_empty() {
        Ok(Outcome::Done(format!("{sources} sources keep to {} rooms", ROOMS.len())))
    } else {
        Err(findings.join("\n"))
    }
}

/// The root file of every library and program in `crates`, with the name that stands for it in the tables.
fn crate_roots(root: &Path) -> Result<Vec<(PathBuf, String)>, String> {
    let crates = root.join("crates");
    let entries = fs::read_dir(&crates).map_err(|error| format!("{}: {error}", crates.display()))?;
    let mut roots = Vec::new();
    for entry in entries {
        let folder = entry.map_err(|error| format!("{}: {error}", crates.display()))?.path();
        let package = folder.file_name().unwrap_or_default().to_string_lossy().replace('-', "_");
        let kinds = [("src/lib.rs", package.clone()), ("src/main.rs", format!("{package}_program"))];
        roots.extend(
            kinds.into_iter().map(|(file, name)| (folder.join(file), name)).filter(|(file, _)| file.exists()),
        );
    }
    roots.sort();
    Ok(roots)
}

/// Checks the module in `file` and those that it declares.
fn check_module(
    root: &Path,
    file: &Path,
    module: &[String],
    sources: &mut usize,
    findings: &mut Vec<String>,
) -> Result<(), String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    *sources += 1;
    let source = rust_source::read(&text, module);
    let shown = file.strip_prefix(root).unwrap_or(file).display();
    findings.extend(
        check(module, &source.paths)
            .into_iter()
            .map(|Finding { line, message }| format!("{shown}:{line}: {message}")),
    );
    for child in source.modules {
        let Some(child_file) = file_of(file, module, &child) else {
            findings.push(format!("{shown}: found no file for module {}", child.join("::")));
            continue;
        };
        check_module(root, &child_file, &child, sources, findings)?;
    }
    Ok(())
}

/// The file of the module `child`, which `file`, the file of `module`, declares.
fn file_of(file: &Path, module: &[String], child: &[String]) -> Option<PathBuf> {
    let stem = file.file_stem()?.to_str()?;
    let folder = file.parent()?;
    let mut below = match stem {
        "lib" | "main" | "mod" => folder.to_path_buf(),
        _ => folder.join(stem),
    };
    // Modules with a body in between are folders.
    below.extend(child.get(module.len()..)?);
    [below.with_extension("rs"), below.join("mod.rs")].into_iter().find(|file| file.exists())
}

/// What of `paths` the module must not name.
fn check(module: &[String], paths: &[rust_source::NamedPath]) -> Vec<Finding> {
    let Some(room) = room_of(module) else {
        let message =
            format!("{} belongs to no room: give it a row in xtask/src/rooms.rs", module.join("::"));
        return vec![Finding { line: 1, message }];
    };
    let findings = paths.iter().filter_map(|named| {
        let what = forbidden_room(room, &named.path).or_else(|| missing_permission(room, &named.path))?;
        let message =
            format!("found {} in room {}, which must not see {what}", named.path.join("::"), room.module);
        Some(Finding { line: named.line, message })
    });
    findings.collect()
}

fn room_of(path: &[String]) -> Option<&'static Room> {
    let module =
        ROOMS.iter().filter(|room| starts_with(path, room.module)).max_by_key(|room| room.module.len());
    // The core's root holds nothing but rooms.
    module.filter(|room| room.module != "tracewalk" || path.len() <= 1)
}

/// The room that `path` leads to, where `room` must not see it.
fn forbidden_room(room: &Room, path: &[String]) -> Option<String> {
    // The root of a crate only declares its rooms.
    if room.module == "tracewalk" {
        return None;
    }
    let may_see = |other: &Room| [&[room.module], VOCABULARY, room.sees].concat().contains(&other.module);
    let reached = ROOMS.iter().filter(|other| brings_in(path, other.module)).chain(room_of(path));
    reached.filter(|other| !may_see(other)).map(|other| other.module.to_owned()).next()
}

/// What `path` uses that `room` has no permission for.
fn missing_permission(room: &Room, path: &[String]) -> Option<String> {
    let needed = PERMISSIONS.iter().filter(|permission| {
        permission.paths.iter().any(|used| starts_with(path, used) || brings_in(path, used))
    });
    let missing = needed.filter(|permission| !permission.rooms.contains(&room.module));
    missing.map(|permission| permission.what.to_owned()).next()
}

/// Whether `path` is a glob with `name` somewhere below it.
fn brings_in(path: &[String], name: &str) -> bool {
    let base = path.split_last().filter(|(last, _)| *last == "*").map(|(_, base)| base.join("::"));
    base.is_some_and(|base| name.strip_prefix(&base).is_some_and(|rest| rest.starts_with("::")))
}

fn starts_with(path: &[String], start: &str) -> bool {
    let mut start = start.split("::");
    path.iter().zip(start.by_ref()).all(|(a, b)| a == b) && start.next().is_none()
}

/// Whether the rooms of the core and the rows of `ARCHITECTURE.md` are the same.
fn check_documentation(root: &Path) -> Result<Vec<String>, String> {
    let file = root.join("ARCHITECTURE.md");
    let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(compare_with_rows(&text))
}

fn compare_with_rows(text: &str) -> Vec<String> {
    let section = text.split("\n## ").find(|section| section.starts_with("The rooms")).unwrap_or_default();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let described = rows
        .filter(|cell| cell.contains('`'))
        .flat_map(|cell| cell.split(|c: char| !c.is_ascii_alphanumeric()).filter(|name| !name.is_empty()))
        .collect::<BTreeSet<_>>();
    let checked = ROOMS
        .iter()
        .filter_map(|room| room.module.strip_prefix("tracewalk::"))
        .flat_map(|module| module.split("::"))
        .collect::<BTreeSet<_>>();
    let lacking =
        checked.difference(&described).map(|room| format!("ARCHITECTURE.md: found no row for room {room}"));
    let unknown =
        described.difference(&checked).map(|room| format!("ARCHITECTURE.md: found unknown room {room}"));
    lacking.chain(unknown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The messages about a module with this text.
    fn findings(module: &str, text: &str) -> Vec<String> {
        let module = module.split("::").map(str::to_owned).collect::<Vec<_>>();
        let source = rust_source::read(text, &module);
        check(&module, &source.paths)
            .into_iter()
            .map(|found| format!("{}: {}", found.line, found.message))
            .collect()
    }

    fn sees(module: &str, text: &str) -> bool {
        findings(module, text).is_empty()
    }

    #[test]
    fn a_finding_says_which_line_broke_which_rule() {
        let text = "use crate::ids::Address;\n\nuse crate::protocol::etmv3::Config;";
        let expected = "3: found tracewalk::protocol::etmv3::Config in room tracewalk::protocol::pft, which must not see \
                        tracewalk::protocol::etmv3";
        assert_eq!(findings("tracewalk::protocol::pft::decode", text), [expected]);
    }

    #[test]
    fn protocols_do_not_see_one_another_nor_what_follows_them() {
        let pft = "tracewalk::protocol::pft::lower";
        assert!(sees(
            pft,
            "use crate::protocol::{Lower, Step, branch_address};\nuse crate::directive::Directive;"
        ));
        assert!(sees(pft, "use super::packet::Packet;\nuse crate::cursor::Cursor;"));
        for text in [
            "use crate::isa::classify;",
            "use crate::program::Program;",
            "use crate::flow;",
            "use super::super::mtb;",
            "use crate::protocol::{self, etmv3};",
            "use crate::protocol::*;",
            "use crate::*;",
            "fn f() { crate::isa::classify(x) }",
            "use crate::protocol as p;\nfn f() { p::mtb::decode() }",
        ] {
            assert!(!sees(pft, text), "{text}");
        }
    }

    #[test]
    fn flow_sees_directives_and_never_packets() {
        let flow = "tracewalk::flow::walk";
        assert!(sees(
            flow,
            "use crate::directive::*;\nuse crate::isa::{Class, classify};\nuse crate::program::Program;"
        ));
        assert!(!sees(flow, "use crate::protocol::Malformation;"));
        assert!(!sees(flow, "use crate::source::FlowStream;"));
    }

    #[test]
    fn isa_and_program_know_the_vocabulary_alone() {
        assert!(sees("tracewalk::isa::t32", "use super::bits::field;\nuse crate::ids::Isa;\nuse core::fmt;"));
        assert!(!sees("tracewalk::isa", "use crate::program::Program;"));
        assert!(!sees("tracewalk::program", "use crate::isa::classify;"));
    }

    #[test]
    fn the_core_has_no_std_outside_its_tests() {
        assert!(!sees("tracewalk::frame", "use std::vec::Vec;"));
        assert!(!sees("tracewalk", "extern crate std;"));
        assert!(sees("tracewalk::frame", "use alloc::vec::Vec;\n#[cfg(test)]\nmod tests { use std::fs; }"));
    }

    #[test]
    fn only_some_rooms_have_files_and_threads() {
        assert!(sees("tracewalk_input::file", "use std::fs::File;"));
        assert!(sees("tracewalk_generate_program", "fn f() { std::fs::read(x) }"));
        assert!(!sees("tracewalk_generate::elf", "fn f() { std::fs::read(x) }"));
        assert!(!sees("tracewalk_report::export", "use std::fs;"));
        assert!(sees("tracewalk_report::parallel", "use std::thread;\nfn f() { thread::scope(x) }"));
        assert!(sees(
            "tracewalk_cli_program",
            "use std::thread;\nfn f() { thread::available_parallelism() }"
        ));
        assert!(!sees("tracewalk_cli_program", "use std::thread;\nfn f() { thread::spawn(x) }"));
        assert!(!sees("tracewalk_input", "use std::thread::*;\nfn f() { spawn(x) }"));
    }

    #[test]
    fn reports_see_packets_through_their_description_alone() {
        assert!(sees("tracewalk_report::export", "use tracewalk::protocol::{Describe, Field};"));
        assert!(!sees("tracewalk_report::export", "use tracewalk::protocol::pft::Packet;"));
        assert!(!sees("tracewalk_report::export", "use tracewalk_input::capture;"));
        assert!(!sees("tracewalk_input::capture", "use tracewalk::flow::Walk;"));
    }

    #[test]
    fn a_module_without_a_room_is_found() {
        assert_eq!(findings("tracewalk::cellar", "").len(), 1);
        assert_eq!(findings("tracewalk_attic", "").len(), 1);
    }

    #[test]
    fn rows_and_rooms_are_the_same() {
        let rows = "\n## The rooms\n| room | what |\n| --- | --- |\n\
                    | `ids`, `span`, `cursor`, `plain` | |\n| `frame` | |\n| `protocol` | |\n| `protocol::{etmv3,pft,mtb}` | |\n\
                    | `itm` | |\n| `directive` | |\n| `isa` | |\n| `program` | |\n| `flow` | |\n";
        assert_eq!(compare_with_rows(rows), ["ARCHITECTURE.md: found no row for room source"]);
        let rows = format!("{rows}| `source` | |\n| `cellar` | |\n");
        assert_eq!(compare_with_rows(&rows), ["ARCHITECTURE.md: found unknown room cellar"]);
    }
}
