//! `rooms`: checks that the modules keep to their rooms, the tables of `ARCHITECTURE.md`, and that every file
//! of tests is run.
//!
//! A module belongs to the room with the longest name that its path starts with. It may name the rooms that
//! its row allows, and the vocabulary. Files, threads, the network, the standard streams, the process and
//! command-line arguments need a permission in the row. Text that this check cannot read is refused.

mod table;

use std::collections::BTreeSet;
use std::fs;

use crate::sources::{Place, Sources};
use crate::{Answer, Outcome, circles, test_files, workspace};
use table::{Room, Rooms};

/// An external resource that only some rooms may use.
struct Permission {
    what: &'static str,
    /// The paths that use it.
    paths: &'static [&'static str],
}

const PERMISSIONS: &[Permission] = &[
    Permission { what: "std", paths: &["std"] },
    Permission { what: "files", paths: &["std::fs", "std::os", "memmap2", "tempfile"] },
    Permission {
        what: "threads",
        paths: &["std::thread::spawn", "std::thread::scope", "std::thread::Builder", "rayon", "crossbeam"],
    },
    Permission { what: "network", paths: &["std::net"] },
    Permission {
        what: "streams",
        paths: &[
            "print!",
            "println!",
            "eprint!",
            "eprintln!",
            "dbg!",
            "std::io::stdin",
            "std::io::stdout",
            "std::io::stderr",
            "anstream",
        ],
    },
    Permission { what: "process", paths: &["std::process", "std::env"] },
    Permission { what: "arguments", paths: &["clap"] },
];

/// Constructs that include text this check does not read.
const UNREAD: [&str; 2] = ["include!", "#[path]"];

/// Runs the task.
pub(crate) fn run() -> Answer {
    let root = workspace();
    let sources = Sources::of_workspace(&root)?;
    let file = root.join("ARCHITECTURE.md");
    let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let rooms = Rooms::of(&text)?;
    let mut findings = findings(&sources, &rooms);
    findings.extend(circles::findings(&sources));
    findings.extend(test_files::undeclared(&root)?);
    if findings.is_empty() {
        Ok(Outcome::Done(format!("{} sources keep to {} rooms", sources.files(), rooms.rooms.len())))
    } else {
        Err(findings.join("\n"))
    }
}

/// The violations of `rooms`, one line each.
fn findings(sources: &Sources, rooms: &Rooms) -> Vec<String> {
    let mut findings = sources.problems.clone();
    let empty = |room: &&Room| !sources.modules.keys().any(|module| starts_with(module, &room.module));
    findings.extend(
        rooms
            .rooms
            .iter()
            .filter(empty)
            .map(|room| format!("ARCHITECTURE.md: found no module {}", room.module)),
    );
    for (path, module) in &sources.modules {
        let Some(room) = rooms.room_of(path).cloned().or_else(|| rooms.front(path)) else {
            let path = path.join("::");
            findings.push(format!(
                "{}: {path} belongs to no room: add a row for it to ARCHITECTURE.md",
                module.file
            ));
            continue;
        };
        // A `use` brought in any name of a single word, and the check looks at every `use`.
        let looked_at = |place, length| match place {
            Place::Use | Place::Reexport => true,
            Place::Code => length > 1,
            Place::Macro => true,
            Place::Method => false,
        };
        let mut said = BTreeSet::new();
        for named in module.named.iter().filter(|named| looked_at(named.place, named.path.len())) {
            if let [word] = named.path.as_slice()
                && UNREAD.contains(&word.as_str())
            {
                let (file, line) = (&module.file, named.line);
                findings.push(format!("{file}:{line}: found {word}, whose text this check does not read"));
            }
            let used = sources.spelled(path, &named.path);
            let Some(what) = rooms.forbidden_room(&room, &used).or_else(|| missing_permission(&room, &used))
            else {
                continue;
            };
            let used = used.join("::");
            if said.insert((named.line, used.clone())) {
                let (file, line, room) = (&module.file, named.line, &room.module);
                findings
                    .push(format!("{file}:{line}: found {used} in room {room}, which must not use {what}"));
            }
        }
    }
    findings
}

impl Rooms {
    /// The room of a crate's root that has rooms below it but is not a room itself: it declares them, and
    /// sees them all.
    fn front(&self, path: &[String]) -> Option<Room> {
        let [name] = path else { return None };
        let below = self.rooms.iter().filter(|room| room.module.starts_with(&format!("{name}::")));
        let world = below.map(|room| room.world.clone()).reduce(|a, b| &a | &b)?;
        let sees = self.rooms.iter().map(|room| room.module.clone()).collect();
        Some(Room { module: name.clone(), is_vocabulary: false, sees, world })
    }

    fn room_of(&self, path: &[String]) -> Option<&Room> {
        let rooms = self.rooms.iter().filter(|room| starts_with(path, &room.module));
        rooms.max_by_key(|room| room.module.len())
    }

    /// The room that `path` leads to, if `room` must not see it.
    fn forbidden_room(&self, room: &Room, path: &[String]) -> Option<String> {
        let may_see = |other: &Room| {
            other.module == room.module || other.is_vocabulary || room.sees.contains(&other.module)
        };
        let reached =
            self.rooms.iter().filter(|other| brings_in(path, &other.module)).chain(self.room_of(path));
        reached.filter(|other| !may_see(other)).map(|other| other.module.clone()).next()
    }
}

/// A resource that `path` uses without `room` having the permission.
fn missing_permission(room: &Room, path: &[String]) -> Option<String> {
    let needed = PERMISSIONS.iter().filter(|permission| {
        permission.paths.iter().any(|used| starts_with(path, used) || brings_in(path, used))
    });
    let missing = needed.filter(|permission| !room.world.contains(permission.what));
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

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
| room | what it does | may use | must never see |
|---|---|---|---|
| `ids`, `span` | the vocabulary: numbers | nothing | everything else |
| `frame` | frames | vocabulary | |
| `protocol` | the shape of a decoder | `directive` | |
| `protocol::{etmv3,pft}` | one protocol each | `directive`, `protocol` | one another |
| `directive` | meaning | vocabulary | |
| `isa` | code bytes | vocabulary | |
| `program` | code | vocabulary | |
| `flow` | blocks | `directive`, `isa`, `program` | |

| room | what it does | may use | world |
|---|---|---|---|
| `tracewalk-input` | captures | `frame`, `tracewalk-input::stream` | files |
| `tracewalk-input::stream` | over time | `tracewalk-input` | files, threads, network |
| `tracewalk-report` | formats | `protocol`, `flow` | |
| `tracewalk-cli` | the command | `tracewalk-input`, `tracewalk-report` | files, streams, process, arguments |
";

    /// The findings in a module with this text, apart from rooms that have no module.
    fn findings_in(module: &str, text: &str) -> Vec<String> {
        let rooms = Rooms::of(TABLE).unwrap();
        let sources = Sources::of_texts(&[("tracewalk", ""), (module, text)]);
        let found = findings(&sources, &rooms).into_iter();
        found.filter(|line| !line.starts_with("ARCHITECTURE.md: found no module")).collect()
    }

    fn sees(module: &str, text: &str) -> bool {
        findings_in(module, text).is_empty()
    }

    #[test]
    fn a_finding_says_which_line_broke_which_rule() {
        let text = "use crate::ids::Address;\n\nuse crate::protocol::etmv3::Config;";
        let expected = "tracewalk::protocol::pft::decode:3: found tracewalk::protocol::etmv3::Config in room \
                        tracewalk::protocol::pft, which must not use tracewalk::protocol::etmv3";
        assert_eq!(findings_in("tracewalk::protocol::pft::decode", text), [expected]);
    }

    #[test]
    fn protocols_do_not_see_one_another_nor_what_follows_them() {
        let pft = "tracewalk::protocol::pft::lower";
        assert!(sees(pft, "use crate::protocol::{Lower, Step, branch};\nuse crate::directive::Directive;"));
        assert!(sees(pft, "use super::packet::Packet;\nuse crate::span::{self, Span};"));
        for text in [
            "use crate::isa::classify;",
            "use crate::flow;",
            "use super::super::etmv3;",
            "use crate::protocol::{self, etmv3};",
            "use crate::protocol::*;",
            "use crate::*;",
            "fn f() { crate::isa::classify(x) }",
            "fn f() { assert!(crate::isa::classify(x)) }",
            "fn f(x: &crate::isa::Class) {}",
            "use crate::protocol as p;\nfn f() { p::etmv3::decode() }",
            "mod inner { use super::super::super::etmv3; }",
            "fn f() { use crate::isa::classify; }",
        ] {
            assert!(!sees(pft, text), "{text}");
        }
    }

    #[test]
    fn what_is_for_tests_or_is_no_code_names_nothing() {
        let pft = "tracewalk::protocol::pft";
        assert!(sees(pft, "// use crate::isa::A;\nconst A: &str = \"crate::isa::A\";"));
        assert!(sees(pft, "#[cfg(test)]\nmod tests { use crate::isa::A; use std::fs; }"));
        assert!(sees(pft, "#[cfg(test)]\nextern crate std;"));
    }

    #[test]
    fn the_core_has_no_std() {
        assert!(!sees("tracewalk::frame", "use std::vec::Vec;"));
        assert!(!sees("tracewalk::frame", "extern crate std;"));
        assert!(!sees("tracewalk", "extern crate std;"));
        assert!(sees("tracewalk::frame", "use alloc::vec::Vec;"));
    }

    #[test]
    fn only_some_rooms_have_files_threads_and_the_network() {
        assert!(sees("tracewalk_input::file", "use std::fs::File;"));
        assert!(!sees("tracewalk_report::export", "use std::fs;"));
        assert!(!sees("tracewalk_report::export", "use std as s;\nfn f() { s::fs::read(x) }"));
        assert!(sees("tracewalk_input::stream", "use std::{net, thread};\nfn f() { thread::scope(x) }"));
        assert!(sees("tracewalk_cli", "use std::thread;\nfn f() { thread::available_parallelism() }"));
        assert!(!sees("tracewalk_cli", "use std::thread;\nfn f() { thread::spawn(x) }"));
        assert!(!sees("tracewalk_input", "use std::thread::*;\nfn f() { spawn(x) }"));
        assert!(!sees("tracewalk_input", "use std::net::TcpStream;"));
    }

    #[test]
    fn only_the_command_prints_and_asks_for_its_arguments() {
        let (outside, inside) = ("tracewalk_report::export", "tracewalk_cli");
        for text in [
            "fn f() { println!(\"x\") }",
            "fn f() { std::eprintln!(\"x\") }",
            "fn f() { assert!({ dbg!(x) }) }",
            "use std::io;\nfn f() { io::stderr() }",
            "use std::env;",
            "fn f() { std::process::exit(1) }",
            "use clap::Args;",
        ] {
            assert!(!sees(outside, text), "{text}");
            assert!(sees(inside, text), "{text}");
        }
        for text in ["fn println() {}\nfn f() { println() }", "fn f(a: u8) { assert!(print != a) }"] {
            assert!(sees(outside, text), "{text}");
        }
    }

    #[test]
    fn text_that_is_not_read_is_refused_outside_tests() {
        for text in ["include!(\"x.rs\");", "fn f() { include!(\"x.rs\") }", "#[path = \"x.rs\"]\nmod x {}"] {
            assert!(!sees("tracewalk::frame", text), "{text}");
            assert!(sees("tracewalk::frame", &format!("#[cfg(test)]\nmod tests {{ {text} }}")), "{text}");
        }
        assert!(sees("tracewalk::frame", "const A: &str = include_str!(\"x\");"));
    }

    #[test]
    fn walls_between_crates_and_inside_them() {
        assert!(sees("tracewalk_report::export", "use tracewalk::protocol::{Describe, Field};"));
        assert!(!sees("tracewalk_report::export", "use tracewalk::protocol::pft::Packet;"));
        assert!(!sees("tracewalk_report::export", "use tracewalk_input::capture;"));
        assert!(!sees("tracewalk_input::capture", "use tracewalk::flow::Flow;"));
        assert!(!sees("tracewalk_cli", "use tracewalk_input::stream::Live;"));
    }

    #[test]
    fn modules_without_rooms_and_rooms_without_modules_are_found() {
        assert_eq!(findings_in("tracewalk::cellar", "").len(), 1);
        assert_eq!(findings_in("tracewalk_attic", "").len(), 1);
        let rooms = Rooms::of(TABLE).unwrap();
        let lacking = findings(&Sources::of_texts(&[("tracewalk::frame", "")]), &rooms);
        assert_eq!(lacking.len(), rooms.rooms.len() - 1);
    }

    /// The rules that must hold however the tables are edited.
    #[test]
    fn the_tables_of_the_project_keep_its_first_walls() {
        let text = fs::read_to_string(workspace().join("ARCHITECTURE.md")).unwrap();
        let rooms = Rooms::of(&text).unwrap();
        let room = |name: &str| rooms.rooms.iter().find(|room| room.module == name).unwrap();
        let sees = |from: &str, to: &str| room(from).sees.iter().any(|seen| starts_with(&to_path(seen), to));
        for protocol in ["etmv3", "pft", "mtb", "itm"].map(|name| format!("tracewalk::protocol::{name}")) {
            for hidden in
                ["isa", "program", "flow", "source", "protocol::etmv3", "protocol::pft", "protocol::mtb"]
            {
                assert!(!sees(&protocol, &format!("tracewalk::{hidden}")), "{protocol} {hidden}");
            }
        }
        assert!(!sees("tracewalk::flow", "tracewalk::protocol"));
        assert!(!sees("tracewalk_input", "tracewalk::flow"));
        assert!(!sees("tracewalk_report", "tracewalk_input"));
        for library in ["session", "analysis", "report"].map(|name| format!("tracewalk_{name}")) {
            for what in ["streams", "process", "arguments"] {
                assert!(!room(&library).world.contains(what), "{library} {what}");
            }
        }
        assert!(!sees("tracewalk_cli::args", "tracewalk_cli::commands"));
        assert!(!sees("tracewalk_sentences", "tracewalk_cli"));
        assert!(!sees("tracewalk_cli::output", "tracewalk_cli::commands"));
        for room in &rooms.rooms {
            let is_core = room.module.starts_with("tracewalk::");
            assert!(!is_core || room.world.is_empty(), "{} has {:?}", room.module, room.world);
        }
    }

    fn to_path(name: &str) -> Vec<String> {
        name.split("::").map(str::to_owned).collect()
    }
}
