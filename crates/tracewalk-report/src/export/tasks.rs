//! Which tasks ran, as text, CSV and JSON.

use std::collections::BTreeMap;
use std::io::{self, Write};

use tracewalk::ids::Exception;
use tracewalk_analysis::call_stack::Task;
use tracewalk_analysis::table::{Cell, Column, Kind, Table, Tabular};
use tracewalk_analysis::tasks::{Reason, TaskRow, Tasks};
use tracewalk_analysis::{Code, Section};

use super::tables::{write_rows_json, write_tables_text};
use crate::Look;
use crate::words::{CUT, counted, in_doubt};

/// The tasks of all sources.
#[derive(Debug)]
pub struct TaskReport {
    /// The sources.
    pub sources: Vec<(Section, Tasks)>,
    /// Whether every capture was decoded to its end.
    pub complete: bool,
}

/// The tables of tasks, in the order in which they are given.
pub const TASK_TABLES: [&str; 2] = ["tasks", "switches"];

const TASKS: [(&str, Kind); 17] = [
    ("task", Kind::Text),
    ("name", Kind::Text),
    ("entry", Kind::Text),
    ("entry_number", Kind::Integer),
    ("instructions", Kind::Integer),
    ("cycles", Kind::Integer),
    ("share", Kind::Number),
    ("runs", Kind::Integer),
    ("longest", Kind::Integer),
    ("longest_cycles", Kind::Integer),
    ("longest_at", Kind::Integer),
    ("preempted_by", Kind::Text),
    ("preempted", Kind::Integer),
    ("response", Kind::Integer),
    ("response_cycles", Kind::Integer),
    ("response_to", Kind::Text),
    ("response_at", Kind::Integer),
];

const SWITCHES: [(&str, Kind); 4] =
    [("instruction", Kind::Integer), ("from", Kind::Text), ("to", Kind::Text), ("reason", Kind::Text)];

impl Tabular for TaskReport {
    fn tables(&self) -> Vec<Table> {
        let column = |(name, kind): &(&'static str, Kind)| Column::new(*name, *kind);
        let mut tasks = Table::of_sources(TASK_TABLES[0], 1, TASKS.iter().map(column));
        let mut switches = Table::of_sources(TASK_TABLES[1], 1, SWITCHES.iter().map(column));
        for (section, found) in &self.sources {
            for row in &found.rows {
                tasks.push(section.cells().into_iter().chain(self.cells(section, found, row)));
            }
            for switch in &found.switches {
                let label = |task: Option<Task>| task.map(|task| self.label(section, task)).into();
                let reason = match switch.reason {
                    Reason::Start => "start".to_owned(),
                    Reason::Yield => "yield".to_owned(),
                    Reason::Exception(Some(exception)) => format!("exception {}", exception.number()),
                    Reason::Exception(None) => "exception".to_owned(),
                };
                let cells = [switch.at.into(), label(switch.from), label(switch.to), reason.into()];
                switches.push(section.cells().into_iter().chain(cells));
            }
        }
        vec![tasks, switches]
    }
}

impl TaskReport {
    /// A name for the task that no other one has.
    fn label(&self, section: &Section, task: Task) -> String {
        if self.sources.len() > 1 { format!("{task} of {section}") } else { task.to_string() }
    }

    fn cells(&self, section: &Section, found: &Tasks, row: &TaskRow) -> [Cell; TASKS.len()] {
        let TaskRow { task, name, entry, number, cost, runs, longest, preempted_by, response } = row;
        let code = &section.code;
        let cycles = |cycles: u64| Some(cycles).filter(|_| found.counts_cycles).into();
        let of_capture = || Some(task.name(code)).filter(|name| *name != task.to_string());
        let name = of_capture().or_else(|| name.as_deref().map(str::to_owned));
        [
            self.label(section, *task).into(),
            name.into(),
            entry.map(|entry| entry.name(code)).into(),
            entry.map(|_| *number as u64).into(),
            cost.instructions.into(),
            cycles(cost.cycles),
            share(found, row).into(),
            (*runs).into(),
            longest.cost.instructions.into(),
            cycles(longest.cost.cycles),
            longest.at.into(),
            preempted_by.map(|(by, _)| self.label(section, by)).into(),
            preempted_by.map(|(_, count)| count).into(),
            response.map(|response| response.run.cost.instructions).into(),
            response.map_or(Cell::Unknown, |response| cycles(response.run.cost.cycles)),
            response.and_then(|response| response.exception).map(|to| exception(code, to)).into(),
            response.map(|response| response.run.at).into(),
        ]
    }
}

/// The task's share of all that ran: of the cycles, if they are counted, else of the instructions.
fn share(found: &Tasks, row: &TaskRow) -> Option<f64> {
    let mut whole = found.handlers;
    found.rows.iter().map(|row| row.cost).chain([found.unresolved]).for_each(|cost| whole += cost);
    let (part, whole) = match found.counts_cycles {
        true => (row.cost.cycles, whole.cycles),
        false => (row.cost.instructions, whole.instructions),
    };
    // Both are far below 2^52.
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn exception(code: &Code, exception: Exception) -> String {
    code.interrupts.name_or_number(exception).into_owned()
}

/// Writes the document.
pub fn write_tasks_json(out: &mut dyn Write, report: &TaskReport) -> io::Result<()> {
    write_rows_json(out, &report.tables(), report.complete)
}

/// Writes a table of tasks for people, and why they took over.
pub fn write_tasks_text(out: &mut dyn Write, report: &TaskReport, look: Look) -> io::Result<()> {
    for (index, (section, found)) in report.sources.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        let (head, quiet) = (look.palette.head, look.palette.quiet);
        writeln!(out, "{head}{section}{head:#}\n")?;
        write_tables_text(out, &[for_people(section, found)], look)?;
        let of = |what: &str, instructions: u64| match instructions {
            0 => None,
            _ => Some(format!("{} {what}", counted(instructions, "instruction"))),
        };
        let yields = found.switches.iter().filter(|switch| switch.reason == Reason::Yield).count();
        let switches = counted(found.switches.len() as u64, "switch");
        let notes = [
            Some(format!("{switches}, {yields} by the running task itself")),
            of("in exceptions", found.handlers.instructions),
            of("of tasks that could not be distinguished", found.unresolved.instructions),
            match found.contradictions {
                0 => None,
                times => Some(format!("control block and stack are of two tasks {times} times")),
            },
            in_doubt(found.in_doubt),
        ];
        writeln!(out)?;
        for note in notes.into_iter().flatten() {
            writeln!(out, "{quiet}{note}{quiet:#}")?;
        }
    }
    if report.complete { Ok(()) } else { writeln!(out, "{CUT}") }
}

/// A name for each task: the operating system's, with a number after the first task of that name, or the capture's.
fn names(code: &Code, found: &Tasks) -> BTreeMap<Task, String> {
    let mut uses: BTreeMap<String, u64> = BTreeMap::new();
    let name = |row: &TaskRow| {
        let stated = row.task.name(code);
        let is_known = stated != row.task.to_string();
        let name = row.name.as_deref().filter(|_| !is_known).map_or(stated, str::to_owned);
        let number = uses.entry(name.clone()).or_default();
        *number += 1;
        (row.task, if *number == 1 { name } else { format!("{name}#{number}") })
    };
    found.rows.iter().map(name).collect()
}

fn for_people(section: &Section, found: &Tasks) -> Table {
    let code = &section.code;
    let numbers = ["runs", "longest", "at"].map(|name| (name, Kind::Integer));
    let cost = [("instructions", Kind::Integer), ("share", Kind::Number)];
    let columns = [("task", Kind::Text), ("entry", Kind::Text)].into_iter().chain(cost).chain(numbers);
    let columns = columns.chain([("preempted by", Kind::Text), ("slowest response", Kind::Text)]);
    let mut table = Table::new(TASK_TABLES[0], 1, columns.map(|(name, kind)| Column::new(name, kind)));
    let names = names(code, found);
    for row in &found.rows {
        let entry = row.entry.map(|entry| match row.number {
            1 => entry.name(code),
            number => format!("{}#{number}", entry.name(code)),
        });
        let response = row.response.map(|response| {
            let to = response.exception.map_or_else(|| "an exception".to_owned(), |to| exception(code, to));
            format!("{} to {to} at {}", response.run.cost.instructions, response.run.at)
        });
        table.push([
            names[&row.task].clone().into(),
            entry.into(),
            row.cost.instructions.into(),
            share(found, row).into(),
            row.runs.into(),
            row.longest.cost.instructions.into(),
            row.longest.at.into(),
            row.preempted_by.map(|(by, count)| format!("{} ({count}x)", names[&by])).into(),
            response.into(),
        ]);
    }
    table
}
