//! `profile --format pprof`: gzipped files for pprof and compatible tools.
//!
//! The messages are those of `profile.proto` (github.com/google/pprof/tree/main/proto), with the fields that are used here. A
//! sample is a chain of calls and the line in its innermost function; inlined functions are lines of one location, as in pprof.

use std::collections::HashMap;
use std::hash::Hash;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;

use super::profile::ProfileReport;
use crate::words::CUT;
use tracewalk_analysis::Section;
use tracewalk_analysis::clock::{Cost, Unit};
use tracewalk_analysis::profile::{LabelKind, Place, Profile, Tree, TreeNode};

#[derive(Clone, PartialEq, Message)]
struct File {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
    #[prost(int64, repeated, tag = "13")]
    comment: Vec<i64>,
    #[prost(int64, tag = "14")]
    default_sample_type: i64,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    kind: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    /// The innermost first.
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    label: Vec<SampleLabel>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct SampleLabel {
    #[prost(int64, tag = "1")]
    key: i64,
    #[prost(int64, tag = "2")]
    text: i64,
}

/// The program, marked as fully symbolised.
#[derive(Clone, Copy, PartialEq, Message)]
struct Mapping {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "5")]
    filename: i64,
    #[prost(bool, tag = "7")]
    has_functions: bool,
    #[prost(bool, tag = "8")]
    has_filenames: bool,
    #[prost(bool, tag = "9")]
    has_line_numbers: bool,
    #[prost(bool, tag = "10")]
    has_inline_frames: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "2")]
    mapping_id: u64,
    /// The innermost inlined function first, the function itself last.
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
    #[prost(int64, tag = "2")]
    line: i64,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
    #[prost(int64, tag = "4")]
    filename: i64,
    #[prost(int64, tag = "5")]
    start_line: i64,
}

/// Things by their number, from 0.
#[derive(Debug)]
struct Numbered<T> {
    numbers: HashMap<T, u64>,
}

/// Builds the file.
struct Builder<'a> {
    report: &'a ProfileReport,
    units: Vec<Unit>,
    strings: Numbered<String>,
    functions: Numbered<FunctionKey>,
    locations: Numbered<Vec<(u64, u32)>>,
    samples: Vec<Sample>,
}

/// The key by which pprof distinguishes functions.
#[derive(Clone, PartialEq, Eq, Hash)]
struct FunctionKey {
    name: u64,
    file: u64,
    line: u32,
}

/// Writes all sources' chains of calls.
pub fn write_pprof(out: &mut dyn Write, report: &ProfileReport) -> io::Result<()> {
    let has = |unit: &Unit| report.sources.iter().any(|(_, profile)| profile.measures.has(*unit));
    let mut builder = Builder {
        report,
        units: Unit::ALL.into_iter().filter(has).collect(),
        strings: Numbered::default(),
        functions: Numbered::default(),
        locations: Numbered::default(),
        samples: Vec::new(),
    };
    // The format wants the empty string to be number 0.
    builder.string("");
    for source in &report.sources {
        builder.source(source);
    }
    let bytes = builder.finish().encode_to_vec();
    let mut zipped = GzEncoder::new(out, Compression::default());
    zipped.write_all(&bytes)?;
    zipped.finish().map(drop)
}

impl Builder<'_> {
    fn source(&mut self, source: &(Section, Profile)) {
        let tree = self.report.tree(source, true);
        let labels = match self.report.sources.len() {
            1 => Vec::new(),
            _ => {
                let name = self.report.name_of(&source.0);
                vec![SampleLabel { key: self.string("source"), text: self.string(&name) }]
            }
        };
        tree.stacks(|path, node| {
            for (place, cost) in node.lines.iter().filter(|(_, cost)| !cost.is_zero()) {
                let location_id = self.chain(&tree, path, place.as_ref());
                let value = self.values(cost);
                self.samples.push(Sample { location_id, value, label: labels.clone() });
            }
        });
    }

    /// The locations of a chain of calls whose innermost function is at `place`.
    fn chain(&mut self, tree: &Tree, path: &[usize], place: Option<&Place>) -> Vec<u64> {
        let mut locations = Vec::new();
        let mut lines = Vec::new();
        let mut place = place;
        for node in path.iter().rev().filter_map(|index| tree.nodes.get(*index)) {
            lines.push(self.line(tree, node, place));
            if tree.label_of(node).kind != LabelKind::Inlined {
                locations.push(1 + self.locations.number(std::mem::take(&mut lines)));
            }
            place = node.site.as_ref();
        }
        locations
    }

    /// A function, and the line in it.
    fn line(&mut self, tree: &Tree, node: &TreeNode, place: Option<&Place>) -> (u64, u32) {
        let label = tree.label_of(node);
        let name = match label.kind {
            // The line's position in the location shows that the function is inlined.
            LabelKind::Inlined => label.name.clone(),
            LabelKind::Function | LabelKind::Exception | LabelKind::Task => label.text(),
        };
        let start = label.place.as_ref();
        // An inlined function has no place of its own; the line is in its file.
        let file = start.or(place).map_or("", |place| &*place.file);
        let key = FunctionKey {
            name: self.strings.number(name),
            file: self.strings.number(file.to_owned()),
            line: start.map_or(0, |place| place.line),
        };
        (1 + self.functions.number(key), place.map_or(0, |place| place.line))
    }

    fn values(&self, cost: &Cost) -> Vec<i64> {
        let value = |unit: &Unit| match unit {
            Unit::Instructions | Unit::Samples => cost.instructions,
            unit => self.worth(*unit, cost.in_unit(*unit)),
        };
        self.units.iter().map(|unit| signed(value(unit))).collect()
    }

    /// In nanoseconds, if the unit's frequency is known.
    fn worth(&self, unit: Unit, value: u64) -> u64 {
        if unit == self.report.unit { self.report.in_nanoseconds(value) } else { value }
    }

    fn string(&mut self, text: &str) -> i64 {
        signed(self.strings.number(text.to_owned()))
    }

    fn finish(mut self) -> File {
        let mut sample_type = Vec::new();
        for unit in self.units.clone() {
            let (name, of) = match unit {
                _ if unit == self.report.unit && self.report.seconds(1).is_some() => ("time", "nanoseconds"),
                _ => (unit.name(), "count"),
            };
            sample_type.push((unit, ValueType { kind: self.string(name), unit: self.string(of) }));
        }
        let default = sample_type.iter().find(|(unit, _)| *unit == self.report.unit);
        let default_sample_type = default.map_or(0, |(_, value)| value.kind);
        let mut comment = vec![self.string(&format!("measured: {}", self.report.measure()))];
        comment.extend((!self.report.complete).then(|| self.string(CUT)));
        let filename = self.string(&self.report.name);
        let totals = self.report.sources.iter().map(|(_, profile)| self.report.value(&profile.total()));
        let total = totals.fold(0, u64::saturating_add);
        let duration_nanos = self.report.seconds(total).map_or(0, |_| self.report.in_nanoseconds(total));
        let function = |(key, id): (FunctionKey, u64)| Function {
            id: id + 1,
            name: signed(key.name),
            system_name: signed(key.name),
            filename: signed(key.file),
            start_line: key.line.into(),
        };
        let location = |(lines, id): (Vec<(u64, u32)>, u64)| Location {
            id: id + 1,
            mapping_id: 1,
            line: lines
                .iter()
                .map(|(function_id, line)| Line { function_id: *function_id, line: (*line).into() })
                .collect(),
        };
        File {
            sample_type: sample_type.into_iter().map(|(_, value)| value).collect(),
            sample: self.samples,
            mapping: vec![Mapping {
                id: 1,
                filename,
                has_functions: true,
                has_filenames: true,
                has_line_numbers: true,
                has_inline_frames: true,
            }],
            location: self.locations.in_order().map(location).collect(),
            function: self.functions.in_order().map(function).collect(),
            string_table: self.strings.in_order().map(|(text, _)| text).collect(),
            duration_nanos: signed(duration_nanos),
            comment,
            default_sample_type,
        }
    }
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { numbers: HashMap::new() }
    }
}

impl<T: Eq + Hash> Numbered<T> {
    fn number(&mut self, thing: T) -> u64 {
        let next = self.numbers.len() as u64;
        *self.numbers.entry(thing).or_insert(next)
    }

    fn in_order(self) -> impl Iterator<Item = (T, u64)> {
        let mut things = self.numbers.into_iter().collect::<Vec<_>>();
        things.sort_by_key(|(_, number)| *number);
        things.into_iter()
    }
}

/// The format's numbers have a sign.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
