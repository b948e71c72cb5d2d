//! Which room of the core may use which, as ARCHITECTURE.md describes them.

use std::fs;
use std::path::Path;

/// What every room may use.
const VOCABULARY: &[&str] = &["arrays", "cursor", "ids", "plain", "span"];

const PROTOCOLS: &[&str] = &[
    "protocol::etmv3",
    "protocol::etmv4",
    "protocol::itm",
    "protocol::mtb",
    "protocol::pft",
    "protocol::stm",
];

/// The rooms, and what each may use besides itself and the vocabulary.
const ROOMS: &[(&str, &[&str])] = &[
    ("arrays", &[]),
    ("cursor", &[]),
    ("ids", &[]),
    ("plain", &[]),
    ("span", &[]),
    ("frame", &[]),
    ("directive", &[]),
    ("isa", &[]),
    ("program", &[]),
    ("protocol", &["directive"]),
    ("protocol::etmv3", &["directive", "protocol"]),
    ("protocol::etmv4", &["directive", "protocol"]),
    ("protocol::itm", &["protocol"]),
    ("protocol::mtb", &["directive", "protocol"]),
    ("protocol::pft", &["directive", "protocol"]),
    ("protocol::stm", &["protocol"]),
    ("flow", &["directive", "isa", "program"]),
    ("source", &["frame", "directive", "protocol", "PROTOCOLS", "isa", "program", "flow"]),
    ("capture", &["frame", "program", "flow", "source"]),
];

/// The room that a path below the crate leads into.
fn room(path: &str) -> Option<&'static str> {
    let is_in =
        |room: &str| path.strip_prefix(room).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
    ROOMS.iter().map(|(room, _)| *room).filter(|room| is_in(room)).max_by_key(|room| room.len())
}

fn may_use(from: &str, to: &str) -> bool {
    let allowed = ROOMS.iter().find(|(room, _)| *room == from).map_or(&[] as &[_], |(_, allowed)| *allowed);
    from == to
        || VOCABULARY.contains(&to)
        || allowed.contains(&to)
        || allowed.contains(&"PROTOCOLS") && PROTOCOLS.contains(&to)
}

/// The paths that follow `crate::` in a text, with its braces unfolded.
fn paths(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("crate::") {
        unfold("", &text[at + "crate::".len()..], &mut found);
    }
    found
}

/// Adds the paths that `text` begins with, each after `base`; returns what follows them.
fn unfold<'a>(base: &str, text: &'a str, found: &mut Vec<String>) -> &'a str {
    let Some(mut inner) = text.strip_prefix('{') else {
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
        let (path, rest) = (format!("{base}{}", &text[..end]), &text[end..]);
        return match rest.strip_prefix("::") {
            Some(below) => unfold(&format!("{path}::"), below, found),
            None => {
                found.push(path);
                rest
            }
        };
    };
    loop {
        inner = unfold(base, inner.trim_start(), found).trim_start();
        match inner.strip_prefix(',') {
            Some(next) if !next.trim_start().starts_with('}') => inner = next,
            Some(end) => return end.trim_start().trim_start_matches('}'),
            None => return inner.strip_prefix('}').unwrap_or(inner),
        }
    }
}

/// A file's text without comments and its tests at the end.
fn code(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code = lines.collect::<Vec<_>>().join("\n");
    code.split("#[cfg(test)]\nmod ").next().unwrap_or_default().to_owned()
}

/// What the files below `folder` use and may not. `module` is the folder's path in the crate.
fn findings(folder: &Path, module: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let below = if name == "mod" { module.to_owned() } else { format!("{module}::{name}") };
        let below = below.trim_start_matches("::");
        if path.is_dir() && name != "tests" {
            findings(&path, below, found);
        } else if path.is_file() && !name.ends_with("tests") && name != "lib" {
            let room_of_file =
                room(below).unwrap_or_else(|| panic!("{}: no room in the table", path.display()));
            for used in paths(&code(&fs::read_to_string(&path).expect("text"))) {
                if !room(&used).is_some_and(|used| may_use(room_of_file, used)) {
                    found.push(format!("{}: {room_of_file} may not use {used}", path.display()));
                }
            }
        }
    }
}

#[test]
fn rooms_use_only_what_the_table_allows() {
    let mut found = Vec::new();
    findings(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut found);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn what_a_room_must_not_see_is_found() {
    let text = "// crate::flow::A\nuse crate::{ids::Isa, flow::{Element, graph::{Graph, Kept},}, span};\nfn a(b: &crate::isa::Class) {}\n";
    let used = paths(&code(text));
    assert_eq!(
        used,
        ["ids::Isa", "flow::Element", "flow::graph::Graph", "flow::graph::Kept", "span", "isa::Class"]
    );
    let refused = used.iter().filter(|used| !may_use("protocol::pft", room(used).expect("a room")));
    assert_eq!(refused.count(), 4);
    assert!(!may_use("protocol::pft", "protocol::etmv3") && may_use("source", "protocol::etmv3"));
    assert_eq!(room("FlowStream"), None, "a name from the root belongs to no room");
}
