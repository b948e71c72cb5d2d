//! How programs crashed, as tables.

use tracewalk::ids::{Address, Exception};
use tracewalk_analysis::crash::{Cause, Crash, Evidence, PathItem, Running};
use tracewalk_analysis::table::{Cell, Column, Kind, Table, Tabular};
use tracewalk_analysis::{Code, Section};

use super::{CrashReport, Source, words};

/// The tables of crashes, in the order in which they are given.
pub const CRASH_TABLES: [&str; 6] = ["crashes", "stack", "path", "last", "registers", "proof"];

impl Tabular for CrashReport {
    fn tables(&self) -> Vec<Table> {
        let [crashes, stack, path, last, registers, proof] = CRASH_TABLES;
        let mut tables = [
            table(crashes, &CRASHES),
            table(stack, &STACK),
            table(path, &PATH),
            table(last, &LAST),
            table(registers, &REGISTERS),
            table(proof, &PROOF),
        ];
        for source in self.each() {
            let Source { section, crash, .. } = source;
            let [crashes, stack, path, last, registers, proof] = &mut tables;
            crashes.push(crash_row(source));
            let end = source.shown_end().map(|end| (&end.stack, &end.path, &end.last));
            let shown = end.or_else(|| crash.map(|crash| (&crash.stack, &crash.path, &crash.last)));
            if let Some((running, ran, newest)) = shown {
                stack_rows(section, running, stack);
                path_rows(section, ran, 0, path);
                newest.iter().for_each(|at| last.push(of(section, place(&section.code, Some(*at)))));
            }
            let Some(crash) = crash else { continue };
            register_rows(section, crash, registers);
            for evidence in crash.cause.iter().flat_map(|cause| &cause.proof) {
                proof.push(of(section, evidence_cells(evidence)));
            }
        }
        tables.into()
    }
}

/// A column's name and kind.
type Named = (&'static str, Kind);

const CRASHES: [Named; 18] = [
    ("crashed", Kind::Flag),
    ("exception", Kind::Integer),
    ("name", Kind::Text),
    ("numbered_by_registers", Kind::Flag),
    ("at", Kind::Address),
    ("function", Kind::Text),
    ("file", Kind::Text),
    ("line", Kind::Integer),
    ("handler", Kind::Address),
    ("handler_function", Kind::Text),
    ("cause", Kind::Text),
    ("cause_at", Kind::Address),
    ("cause_function", Kind::Text),
    ("cause_file", Kind::Text),
    ("cause_line", Kind::Integer),
    ("sentence", Kind::Text),
    ("missing", Kind::Text),
    ("doubts", Kind::Text),
];

const STACK: [Named; 8] = [
    ("depth", Kind::Integer),
    ("function", Kind::Text),
    ("at", Kind::Address),
    ("file", Kind::Text),
    ("line", Kind::Integer),
    ("is_handler", Kind::Flag),
    ("exception", Kind::Integer),
    ("name", Kind::Text),
];

const PATH: [Named; 10] = [
    ("depth", Kind::Integer),
    ("kind", Kind::Text),
    ("start", Kind::Address),
    ("last", Kind::Address),
    ("end", Kind::Address),
    ("instructions", Kind::Integer),
    ("function", Kind::Text),
    ("times", Kind::Integer),
    ("exception", Kind::Integer),
    ("returns_to", Kind::Address),
];

const LAST: [Named; 4] =
    [("at", Kind::Address), ("function", Kind::Text), ("file", Kind::Text), ("line", Kind::Integer)];

const REGISTERS: [Named; 4] =
    [("name", Kind::Text), ("address", Kind::Address), ("value", Kind::Integer), ("fields", Kind::Text)];

const PROOF: [Named; 13] = [
    ("kind", Kind::Text),
    ("role", Kind::Text),
    ("name", Kind::Text),
    ("address", Kind::Address),
    ("end", Kind::Address),
    ("to", Kind::Address),
    ("code", Kind::Text),
    ("value", Kind::Integer),
    ("exception", Kind::Integer),
    ("times", Kind::Integer),
    ("holder", Kind::Text),
    ("executed", Kind::Flag),
    ("offset", Kind::Integer),
];

fn table(name: &'static str, columns: &[Named]) -> Table {
    let columns = columns.iter().map(|&(name, kind)| match name {
        "instructions" => Column::new(name, kind).of(name),
        _ => Column::new(name, kind),
    });
    Table::of_sources(name, 1, columns)
}

/// A row of this source.
fn of(section: &Section, cells: impl IntoIterator<Item = Cell>) -> Vec<Cell> {
    section.cells().into_iter().chain(cells).collect()
}

/// An address, its function, its file and its line.
fn place(code: &Code, at: Option<Address>) -> [Cell; 4] {
    let frame = at.and_then(|at| code.symbols.innermost(at));
    let (file, line) = frame.map_or((None, None), |frame| (frame.file, frame.line));
    let function = at.and_then(|at| code.symbols.function(at)).map(|function| function.name);
    [at.into(), function.into(), file.as_deref().into(), line.into()]
}

fn exception(code: &Code, exception: Option<Exception>) -> [Cell; 2] {
    let name = exception.map(|exception| code.interrupts.name_or_number(exception).into_owned());
    [exception.map(Exception::number).into(), name.into()]
}

fn crash_row(source: Source<'_>) -> Vec<Cell> {
    let Source { section, crash, .. } = source;
    let code = &*section.code;
    let mut cells = vec![Cell::from(crash.is_some())];
    match crash {
        Some(crash) => {
            cells.extend(exception(code, crash.exception));
            cells.push(crash.numbered_by_registers.into());
            cells.extend(place(code, crash.at));
            let [handler, function, ..] = place(code, crash.handler);
            cells.extend([handler, function]);
            let cause = crash.cause.as_ref();
            cells.push(cause.map(|cause| words::cause_name(&cause.kind)).into());
            cells.extend(place(code, cause.and_then(|Cause { kind, .. }| words::cause_place(kind))));
            cells.push(cause.map(|cause| words::sentence(code, cause)).into());
            let missing = crash.missing.iter().map(|missing| words::missing_name(*missing));
            cells.push(missing.collect::<Vec<_>>().join(" ").into());
        }
        None => cells.resize(CRASHES.len().saturating_sub(1), Cell::Unknown),
    }
    let doubts = source.doubts().iter().map(words::doubt_name);
    cells.push(doubts.collect::<Vec<_>>().join(" ").into());
    of(section, cells)
}

/// A row for each function that was running.
fn stack_rows(section: &Section, stack: &[Running], table: &mut Table) {
    let code = &*section.code;
    for (depth, running) in (0_u64..).zip(stack) {
        let [at, _, file, line] = place(code, running.at);
        let [number, name] = exception(code, running.handles.flatten());
        let function = running.function.name(code).into();
        let handles = running.handles.is_some().into();
        table.push(of(section, [depth.into(), function, at, file, line, handles, number, name]));
    }
}

/// A row for each item; the row of a loop is followed by those of its body, one level deeper.
fn path_rows(section: &Section, path: &[PathItem], depth: u64, table: &mut Table) {
    for item in path {
        let mut cells = [const { Cell::Unknown }; PATH.len()];
        let [deep, kind, start, last, end, instructions, function, times, exception, returns_to] = &mut cells;
        *deep = depth.into();
        let mut inner = &[][..];
        match item {
            PathItem::Run { start: first, last: newest, end: after, instructions: count } => {
                *kind = "run".into();
                [*start, *last, *end] = [(*first).into(), (*newest).into(), (*after).into()];
                *instructions = (*count).into();
                *function = section.code.symbols.function(*first).map(|function| function.name).into();
            }
            PathItem::Loop { body, times: count } => {
                *kind = "loop".into();
                *times = (*count).into();
                inner = body;
            }
            PathItem::Exception { exception: which, returns_to: at } => {
                *kind = "exception".into();
                *exception = which.map(Exception::number).into();
                *returns_to = (*at).into();
            }
            PathItem::ExceptionReturn => *kind = "exception_return".into(),
            PathItem::Unknown => *kind = "unknown".into(),
            PathItem::NoCode { at } => (*kind, *start) = ("no_code".into(), (*at).into()),
        }
        table.push(of(section, cells));
        path_rows(section, inner, depth.saturating_add(1), table);
    }
}

/// The registers that the exception stacked, and the fault status registers with the names of the fields that are set.
fn register_rows(section: &Section, crash: &Crash, table: &mut Table) {
    if let Some(frame) = crash.frame {
        for ((name, value), offset) in words::STACKED.iter().zip(frame.words).zip((0..).step_by(4)) {
            let address = frame.address.checked_add(offset);
            table.push(of(section, [(*name).into(), address.into(), value.into(), Cell::Unknown]));
        }
    }
    for register in &crash.status {
        let fields = register.fields.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" ");
        let cells = [register.name.into(), register.address.into(), register.value.into(), fields.into()];
        table.push(of(section, cells));
    }
}

fn evidence_cells(evidence: &Evidence) -> [Cell; PROOF.len()] {
    let mut cells = [const { Cell::Unknown }; PROOF.len()];
    let [kind, role, name, address, end, to, bytes, value, exception, times, holder, executed, offset] =
        &mut cells;
    match evidence {
        Evidence::Instruction { role: of, at, bytes: code, executed: by } => {
            *kind = "instruction".into();
            *role = words::role_name(*of).into();
            *address = (*at).into();
            *bytes = words::hex(code).into();
            *executed = by.is_some().into();
            *offset = by.map(|at| at.0).into();
        }
        Evidence::Went { from, to: target, traced_at } => {
            *kind = "went".into();
            [*address, *to, *offset] = [(*from).into(), (*target).into(), traced_at.0.into()];
        }
        Evidence::Taken { exception: which, at, handler, traced_at } => {
            *kind = "taken".into();
            *exception = which.map(Exception::number).into();
            [*address, *to, *offset] = [(*at).into(), (*handler).into(), traced_at.0.into()];
        }
        Evidence::Word { role: of, at, value: word, holder: by } => {
            *kind = "word".into();
            *role = words::role_name(*of).into();
            [*address, *value] = [(*at).into(), (*word).into()];
            *holder = words::holder_name(*by).into();
        }
        Evidence::Register { name: register, value: word } => {
            *kind = "register".into();
            [*name, *value] = [(&**register).into(), (*word).into()];
        }
        Evidence::Proven { name: register, value: word } => {
            *kind = "proven".into();
            [*name, *value] = [(&**register).into(), (*word).into()];
        }
        Evidence::Symbol { name: symbol, start, end: after } => {
            *kind = "symbol".into();
            [*name, *address, *end] = [(&**symbol).into(), (*start).into(), (*after).into()];
        }
        Evidence::Repeated { start, last, times: count } => {
            *kind = "repeated".into();
            [*address, *end, *times] = [(*start).into(), (*last).into(), (*count).into()];
        }
    }
    cells
}
