//! Counts as tables.

use tracewalk::ids::{Address, TraceId};

use super::collected::CountedBinary;
use crate::programs::ProgramId;
use crate::table::{Cell, Column, Kind, Table, Tabular};

/// The counts of several binaries.
#[derive(Clone, Debug)]
pub struct CountsReport<'a> {
    /// The binaries.
    pub binaries: Vec<ReportedBinary<'a>>,
    /// Whether every capture was decoded to its end.
    pub complete: bool,
}

/// A binary and its counts.
#[derive(Clone, Debug)]
pub struct ReportedBinary<'a> {
    /// The binary's identity: its build ID, or the hash of its code.
    pub id: &'a ProgramId,
    /// The names of its files; empty if it is known by its ID alone.
    pub name: String,
    /// The counts.
    pub found: &'a CountedBinary,
}

impl CountsReport<'_> {
    /// The names of the tables.
    pub const TABLES: [&'static str; 3] = ["ranges", "branches", "sources"];

    fn table(
        &self,
        name: &'static str,
        columns: impl IntoIterator<Item = Column>,
        rows: impl Fn(&CountedBinary) -> Vec<Vec<Cell>>,
    ) -> Table {
        let text = |name| Column::new(name, Kind::Text);
        let binary = ["build_id", "binary"].map(text);
        let mut table = Table::new(name, 1, binary.into_iter().chain(columns).chain([text("code_hash")]));
        for ReportedBinary { id, name, found } in &self.binaries {
            // Without a build ID, the hash keeps binaries of the same name apart.
            let (hash, build) = (id.code_hash(), id.build_id());
            for row in rows(found) {
                let binary =
                    [build.clone().into(), Some(name.as_str()).filter(|name| !name.is_empty()).into()];
                table.push(binary.into_iter().chain(row).chain([hash.clone().into()]));
            }
        }
        table
    }
}

impl Tabular for CountsReport<'_> {
    fn tables(&self) -> Vec<Table> {
        let column = |name: &'static str, kind| Column::new(name, kind);
        let counts = |name: &'static str, unit| Column::new(name, Kind::Integer).of(unit);
        let ranges = [
            column("first", Kind::Address),
            column("last", Kind::Address),
            column("isa", Kind::Text),
            counts("instructions", "instructions"),
            column("count", Kind::Integer),
        ];
        let ranges = self.table("ranges", ranges, |found| {
            let row = |(range, count): (&super::Range, &u64)| {
                vec![
                    Cell::Address(range.first),
                    Cell::Address(range.last),
                    Cell::Text(range.isa.name().to_owned()),
                    Cell::Integer(range.instructions.into()),
                    Cell::Integer(*count),
                ]
            };
            found.ranges.iter().map(row).collect()
        });
        let branches = [
            column("from", Kind::Address),
            column("to", Kind::Address),
            column("way", Kind::Text),
            column("count", Kind::Integer),
        ];
        let branches = self.table("branches", branches, |found| {
            let address = |address: Option<Address>| address.map_or(Cell::Unknown, Cell::Address);
            let branches = found.branches.iter().map(|((from, to, way), count)| {
                vec![address(*from), address(*to), Cell::Text(way.name().to_owned()), Cell::Integer(*count)]
            });
            branches.collect()
        });
        let sources = [
            column("id", Kind::Integer),
            column("protocol", Kind::Text),
            column("capture", Kind::Text),
            counts("bytes", "bytes"),
            counts("packets", "packets"),
            column("malformed", Kind::Integer),
            counts("followed", "instructions"),
            column("gaps", Kind::Integer),
            counts("left_out", "instructions"),
            counts("unrecorded", "branches"),
            counts("counted", "instructions"),
            counts("uncommitted", "instructions"),
        ];
        let sources = self.table("sources", sources, |found| {
            let sources = found.sources.iter().map(|source| {
                let id = source.source.strip_prefix("0x").and_then(|id| u8::from_str_radix(id, 16).ok());
                let of = [
                    id.and_then(TraceId::new).into(),
                    source.protocol.as_str().into(),
                    source.capture.as_str().into(),
                ];
                let integers = [
                    source.bytes,
                    source.packets,
                    source.malformed,
                    source.followed,
                    source.gaps,
                    source.left_out,
                    source.unrecorded,
                    source.counted,
                    source.uncommitted,
                ];
                of.into_iter().chain(integers.map(Cell::Integer)).collect()
            });
            sources.collect()
        });
        vec![ranges, branches, sources]
    }
}
