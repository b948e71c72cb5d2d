//! The report from which every format of a profile is made.
use std::borrow::Cow;
use std::sync::Arc;

use tracewalk_analysis::clock::{Cost, Unit};
use tracewalk_analysis::profile::{Measures, Place, Profile, Tree, TreeOptions};
use tracewalk_analysis::table::{Cell, Column, Kind, Table, Tabular};
use tracewalk_analysis::{Code, Section};

use crate::words::{CUT, percent};

/// The rows of a profile's table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProfileTable {
    /// Functions.
    #[default]
    Functions,
    /// Lines of the source.
    Lines,
    /// Callers and what they call.
    Calls,
    /// The files of the code, and the tasks that ran it.
    Binaries,
}

/// The profiles of a capture's sources.
#[derive(Debug)]
pub struct ProfileReport {
    /// Each source and its profile.
    pub sources: Vec<(Section, Profile)>,
    /// The names of the sources' programs, if there are several.
    pub programs: Vec<(Arc<Code>, String)>,
    /// The capture's name, for titles.
    pub name: String,
    /// The unit of cost.
    pub unit: Unit,
    /// The number of cycles or ticks in a second, if known.
    pub frequency: Option<f64>,
    /// Whether inlined functions are functions of their own.
    pub inlined: bool,
    /// Whether every capture was decoded to its end.
    pub complete: bool,
}

/// The best measure that all sources have.
#[must_use]
pub fn best_unit<'a>(profiles: impl IntoIterator<Item = &'a Profile>) -> Unit {
    let ran = profiles.into_iter().filter(|profile| profile.total().instructions > 0);
    let measures = ran.map(|profile| profile.measures).collect::<Vec<_>>();
    let all_have =
        |unit| !measures.is_empty() && measures.iter().all(|measures: &Measures| measures.has(unit));
    [Unit::Cycles, Unit::Time, Unit::Samples]
        .into_iter()
        .find(|unit| all_have(*unit))
        .unwrap_or(Unit::Instructions)
}

impl ProfileReport {
    /// The capture's name, with a note if only a part was decoded.
    pub(crate) fn title(&self) -> Cow<'_, str> {
        match self.complete {
            true => Cow::Borrowed(&self.name),
            false => Cow::Owned(format!("{}. {CUT}", self.name)),
        }
    }

    /// A cost in the report's unit.
    #[must_use]
    pub(crate) const fn value(&self, cost: &Cost) -> u64 {
        cost.in_unit(self.unit)
    }

    /// The tree of a source's profile.
    pub(crate) fn tree(&self, source: &(Section, Profile), sites: bool) -> Tree {
        let options = TreeOptions { inlined: self.inlined, sites };
        Tree::of(&source.1, &source.0.code, options)
    }

    /// The unit in words, for every title, so that instructions are not mistaken for time.
    #[must_use]
    pub fn measure(&self) -> String {
        match self.unit {
            Unit::Instructions => {
                let timed = |(_, profile): &(Section, Profile)| profile.measures.best() != Unit::Instructions;
                let timestamps = self.sources.iter().map(|(_, it)| it.measures.timestamps);
                match (self.sources.iter().any(timed), timestamps.fold(0, u64::saturating_add)) {
                    (true, _) => "instructions".to_owned(),
                    (false, 0) => "instructions (the trace has no time)".to_owned(),
                    (false, count) => {
                        format!(
                            "instructions (no instruction lies between two of the {count} timestamps without a gap)"
                        )
                    }
                }
            }
            Unit::Cycles => "cycles".to_owned(),
            Unit::Samples => "samples of the program counter".to_owned(),
            Unit::Time => {
                let sum = |of: fn(&Profile) -> u64| {
                    self.sources.iter().map(|(_, it)| of(it)).fold(0, u64::saturating_add)
                };
                let timestamps = sum(|profile| profile.measures.timestamps);
                let timed = sum(|profile| profile.measures.timed_instructions);
                let all = sum(|profile| profile.total().instructions);
                format!(
                    "ticks (interpolated between timestamps, of which there are {timestamps}; they cover {} of the \
                     instructions)",
                    percent(timed, all)
                )
            }
        }
    }

    /// Seconds, if the unit's frequency is known. An instruction has no known duration.
    pub(crate) fn seconds(&self, value: u64) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "it is printed with three digits")]
        self.frequency.filter(|_| self.unit.has_frequency()).map(|frequency| value as f64 / frequency)
    }

    /// Nanoseconds, if the unit's frequency is known; otherwise the value unchanged.
    pub(crate) fn in_nanoseconds(&self, value: u64) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is not negative; the conversion saturates, and fractions of a nanosecond are not kept"
        )]
        self.seconds(value).map_or(value, |seconds| (seconds * 1e9).round() as u64)
    }

    /// The name of a source, if several share an output.
    pub(crate) fn source_name(&self, section: &Section) -> Option<String> {
        (self.sources.len() > 1).then(|| self.name_of(section))
    }

    /// The name of a source.
    pub(crate) fn name_of(&self, section: &Section) -> String {
        let source = section.id.map_or_else(|| "one source".to_owned(), |id| format!("trace ID {id}"));
        let is_other =
            |(other, _): &(Section, Profile)| other.id == section.id && other.protocol != section.protocol;
        let protocol = self.sources.iter().any(is_other).then(|| format!(", {}", section.protocol));
        source + &section.suffix() + &protocol.unwrap_or_default() + &self.of_program(section)
    }

    /// ` of m3.elf` if a source of another program has the same trace ID; otherwise empty.
    pub(crate) fn of_program(&self, section: &Section) -> String {
        of_program(section, &self.sources, &self.programs)
    }
}

/// ` of m3.elf` if one of several sources of another program has the same trace ID; otherwise empty.
pub(crate) fn of_program<T>(
    section: &Section,
    sources: &[(Section, T)],
    programs: &[(Arc<Code>, String)],
) -> String {
    let is_its = |code: &Arc<Code>| Arc::ptr_eq(code, &section.code);
    let is_alike = |(other, _): &(Section, T)| other.id == section.id && !is_its(&other.code);
    let program = programs.iter().find(|(code, _)| is_its(code));
    let program = program.filter(|_| sources.iter().any(is_alike));
    program.map_or_else(String::new, |(_, name)| format!(" of {name}"))
}

/// `0.125 s`, `12.5 ms`, `3.40 µs`
pub(crate) fn duration(seconds: f64) -> String {
    let (value, unit) = match seconds {
        _ if seconds >= 1.0 => (seconds, "s"),
        _ if seconds >= 1e-3 => (seconds * 1e3, "ms"),
        _ if seconds >= 1e-6 => (seconds * 1e6, "µs"),
        _ => (seconds * 1e9, "ns"),
    };
    format!("{value:.3} {unit}")
}

impl Tabular for ProfileReport {
    fn tables(&self) -> Vec<Table> {
        [ProfileTable::Functions, ProfileTable::Lines, ProfileTable::Calls, ProfileTable::Binaries]
            .map(|table| self.table(table))
            .into()
    }
}

impl ProfileReport {
    /// The table of all sources with these rows, the most expensive first.
    #[must_use]
    pub fn table(&self, table: ProfileTable) -> Table {
        match table {
            ProfileTable::Functions => self.functions(),
            ProfileTable::Lines => self.lines(),
            ProfileTable::Calls => self.calls(),
            ProfileTable::Binaries => self.binaries(),
        }
    }

    /// A cost in a table: unknown if the whole tree has none.
    pub(super) fn cell(&self, tree: &Tree, cost: &Cost) -> Cell {
        if self.value(&tree.total()) == 0 { Cell::Unknown } else { self.value(cost).into() }
    }

    /// A number in a table that samples do not show.
    fn followed(&self, number: Cell) -> Cell {
        if self.unit == Unit::Samples { Cell::Unknown } else { number }
    }

    fn functions(&self) -> Table {
        let columns = [
            text("function"),
            Column::new("address", Kind::Address),
            text("file"),
            Column::new("line", Kind::Integer),
            Column::new("calls", Kind::Integer),
            Column::new("self", Kind::Time).of(self.unit.name()),
            Column::new("total", Kind::Time).of(self.unit.name()),
            Column::new("self_instructions", Kind::Integer),
            text("kind"),
            text("program"),
        ];
        let mut table = Table::of_sources("functions", 1, columns);
        for source in &self.sources {
            let tree = self.tree(source, false);
            for function in tree.functions(|cost| self.value(cost)) {
                let [id, protocol, source_number] = source.0.cells();
                let label = &tree.labels[function.function.index()];
                let [file, line] = place(label.place.as_ref());
                table.push([
                    id,
                    protocol,
                    source_number,
                    label.name.as_str().into(),
                    label.address.into(),
                    file,
                    line,
                    self.followed(function.calls.into()),
                    self.cell(&tree, &function.own),
                    self.followed(self.cell(&tree, &function.total)),
                    self.followed(
                        (tree.total().instructions > 0).then_some(function.own.instructions).into(),
                    ),
                    label.kind.name().into(),
                    program(&source.0, &self.programs),
                ]);
            }
        }
        table
    }

    fn lines(&self) -> Table {
        let columns = [
            text("function"),
            text("file"),
            Column::new("line", Kind::Integer),
            Column::new("self", Kind::Time).of(self.unit.name()),
            text("kind"),
            text("program"),
        ];
        let mut table = Table::of_sources("lines", 1, columns);
        for source in &self.sources {
            let tree = self.tree(source, true);
            for found in tree.lines(|cost| self.value(cost)) {
                let [file, line] = place(found.place.as_ref());
                let function = &tree.labels[found.function.index()];
                let (name, kind) = (function.name.as_str().into(), function.kind.name().into());
                let own = self.cell(&tree, &found.own);
                let [id, protocol, source_number] = source.0.cells();
                let program = program(&source.0, &self.programs);
                table.push([id, protocol, source_number, name, file, line, own, kind, program]);
            }
        }
        table
    }

    fn calls(&self) -> Table {
        let columns = [
            text("caller"),
            text("callee"),
            text("file"),
            Column::new("line", Kind::Integer),
            Column::new("calls", Kind::Integer),
            Column::new("total", Kind::Time).of(self.unit.name()),
            text("caller_kind"),
            text("callee_kind"),
            text("program"),
        ];
        let mut table = Table::of_sources("calls", 1, columns);
        for source in &self.sources {
            let tree = self.tree(source, true);
            for edge in tree.edges(|cost| self.value(cost)) {
                let [id, protocol, source_number] = source.0.cells();
                let [caller, callee] = [edge.caller, edge.callee].map(|label| &tree.labels[label.index()]);
                let [file, line] = place(edge.site.as_ref());
                table.push([
                    id,
                    protocol,
                    source_number,
                    caller.name.as_str().into(),
                    callee.name.as_str().into(),
                    file,
                    line,
                    self.followed(edge.calls.into()),
                    self.cell(&tree, &edge.total),
                    caller.kind.name().into(),
                    callee.kind.name().into(),
                    program(&source.0, &self.programs),
                ]);
            }
        }
        table
    }
}

impl ProfileReport {
    fn binaries(&self) -> Table {
        let columns = [
            text("task"),
            text("binary"),
            Column::new("self", Kind::Time).of(self.unit.name()),
            Column::new("self_instructions", Kind::Integer),
            text("program"),
        ];
        let mut table = Table::of_sources("binaries", 1, columns);
        for (section, profile) in &self.sources {
            let whole = profile.total();
            for found in profile.binaries(&section.code, |cost| self.value(cost)) {
                let own = if self.value(&whole) == 0 { Cell::Unknown } else { self.value(&found.own).into() };
                let instructions = (whole.instructions > 0).then_some(found.own.instructions);
                let program = program(section, &self.programs);
                let instructions = self.followed(instructions.into());
                let cells = [found.task.into(), found.binary.into(), own, instructions, program];
                table.push(section.cells().into_iter().chain(cells));
            }
        }
        table
    }
}

fn text(name: &'static str) -> Column {
    Column::new(name, Kind::Text)
}

/// The cell that names the program of a source.
pub(super) fn program(section: &Section, programs: &[(Arc<Code>, String)]) -> Cell {
    let found = programs.iter().find(|(code, _)| Arc::ptr_eq(code, &section.code));
    found.map(|(_, name)| name.as_str()).into()
}

pub(super) fn place(place: Option<&Place>) -> [Cell; 2] {
    [place.map(|place| &*place.file).into(), place.map(|place| place.line).into()]
}
