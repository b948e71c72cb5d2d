//! The tables of rooms in `ARCHITECTURE.md`.
//!
//! A table of rooms has a first column that begins with "room" and a column "may use". Names are in
//! backticks: those of the core from its root (`flow`, `protocol::{etmv3,pft}`), others from their crate
//! (`tracewalk-input::capture`). The words between them are for people, apart from "the vocabulary", which
//! begins the description of what every room may use. In a table with a column "world", that column lists
//! which of `files`, `threads` and `network` a room may use, and every room may use the standard library. In
//! a table without that column, no room may.

use std::collections::BTreeSet;

/// A part of the project with one task.
#[derive(Clone, Debug)]
pub(super) struct Room {
    /// The path prefix of its modules.
    pub(super) module: String,
    pub(super) is_vocabulary: bool,
    /// The rooms that it may use besides itself and the vocabulary.
    pub(super) sees: BTreeSet<String>,
    pub(super) world: BTreeSet<String>,
}

#[derive(Debug)]
pub(super) struct Rooms {
    pub(super) rooms: Vec<Room>,
}

impl Rooms {
    /// The rooms of all tables in `text`.
    pub(super) fn of(text: &str) -> Result<Self, String> {
        let mut rooms = Vec::new();
        let mut columns: Option<Columns> = None;
        for line in text.lines() {
            let cells = cells(line);
            match &columns {
                _ if cells.is_empty() => columns = None,
                None => columns = Columns::of(&cells),
                Some(columns) if !cells[0].starts_with('-') => rooms.extend(columns.rooms(&cells)),
                Some(_) => {}
            }
        }
        let rooms = Self { rooms };
        match rooms.problems() {
            problems if problems.is_empty() => Ok(rooms),
            problems => Err(problems.join("\n")),
        }
    }

    /// The contradictory rows.
    fn problems(&self) -> Vec<String> {
        let known = self.rooms.iter().map(|room| room.module.as_str()).collect::<BTreeSet<_>>();
        let mut problems = Vec::new();
        if self.rooms.is_empty() {
            problems.push("ARCHITECTURE.md: found no table of rooms".to_owned());
        }
        if known.len() < self.rooms.len() {
            problems.push("ARCHITECTURE.md: found two rows for one room".to_owned());
        }
        for room in &self.rooms {
            let unknown = room.sees.iter().filter(|seen| !known.contains(seen.as_str()));
            problems.extend(
                unknown.map(|seen| {
                    format!("ARCHITECTURE.md: {} may use {seen}, which is not a room", room.module)
                }),
            );
        }
        problems
    }
}

/// The columns of a table.
struct Columns {
    about: usize,
    may_use: usize,
    world: Option<usize>,
}

impl Columns {
    fn of(header: &[&str]) -> Option<Self> {
        let place = |name: &str| header.iter().position(|cell| *cell == name);
        (header.first() == Some(&"room")).then_some(())?;
        Some(Self { about: place("what it does")?, may_use: place("may use")?, world: place("world") })
    }

    /// The rooms of one row.
    fn rooms(&self, cells: &[&str]) -> Vec<Room> {
        let cell = |place: usize| cells.get(place).copied().unwrap_or_default();
        let sees = names(cell(self.may_use)).collect::<BTreeSet<_>>();
        let world = self.world.map(|world| {
            let words =
                cell(world).split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
            words.chain(["std"]).map(str::to_owned).collect::<BTreeSet<_>>()
        });
        let room = |module| Room {
            module,
            is_vocabulary: cell(self.about).starts_with("the vocabulary"),
            sees: sees.clone(),
            world: world.clone().unwrap_or_default(),
        };
        names(cell(0)).map(room).collect()
    }
}

fn cells(line: &str) -> Vec<&str> {
    let Some(row) = line.strip_prefix('|').and_then(|row| row.trim_end().strip_suffix('|')) else {
        return Vec::new();
    };
    row.split('|').map(str::trim).collect()
}

/// The rooms that a cell names.
fn names(cell: &str) -> impl Iterator<Item = String> {
    cell.split('`').skip(1).step_by(2).flat_map(unfold).map(|name| match name.split_once("tracewalk") {
        Some(("", _)) => name.replace('-', "_"),
        _ => format!("tracewalk::{name}"),
    })
}

/// `a::{b,c}` as `a::b` and `a::c`.
fn unfold(name: &str) -> Vec<String> {
    match name.split_once('{') {
        Some((base, rest)) => {
            rest.trim_end_matches('}').split(',').map(|last| format!("{base}{}", last.trim())).collect()
        }
        None => vec![name.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "text\n\n| room | what it does | may use | must never see |\n|---|---|---|---|\n\
        | `ids`, `span` | the vocabulary: numbers | nothing | everything |\n| `protocol` | a | vocabulary | |\n\
        | `protocol::{etmv3,pft}` | b | vocabulary, `protocol` | one another |\n\n\
        | room | what it does | may use | world |\n|---|---|---|---|\n| `tracewalk-input` | c | `protocol` | files, threads |\n";

    #[test]
    fn rows_are_rooms() {
        let rooms = Rooms::of(TABLE).unwrap().rooms;
        let names = rooms.iter().map(|room| room.module.as_str()).collect::<Vec<_>>();
        let expected = ["ids", "span", "protocol", "protocol::etmv3", "protocol::pft"]
            .map(|name| format!("tracewalk::{name}"));
        assert_eq!(names[..5], expected);
        assert_eq!(names[5..], ["tracewalk_input"]);
        assert_eq!(rooms.iter().filter(|room| room.is_vocabulary).count(), 2);
        assert_eq!(rooms[4].sees, BTreeSet::from(["tracewalk::protocol".to_owned()]));
        assert!(rooms[4].world.is_empty());
        assert_eq!(rooms[5].world, BTreeSet::from(["files", "std", "threads"].map(str::to_owned)));
    }

    #[test]
    fn rows_that_cannot_be_are_refused() {
        assert!(Rooms::of("no table").is_err());
        assert!(Rooms::of(&TABLE.replace("vocabulary, `protocol`", "`cellar`")).is_err());
        assert!(Rooms::of(&TABLE.replace("`ids`, `span`", "`ids`, `ids`")).is_err());
    }
}
