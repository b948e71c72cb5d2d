//! `calls --format csv` and `json`: calls as a table, one by one or added up by chains.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use tracewalk::ids::{Address, Exception};
use tracewalk_analysis::analysis::{FlowSink, Repeated};
use tracewalk_analysis::call_stack::{
    CallStack, Entry, Frame, FrameKind, FunctionId, Interruption, Left, Observer, Piece, Run,
};
use tracewalk_analysis::record::FlowRecord;
use tracewalk_analysis::sink::Sink;
use tracewalk_analysis::table::{Cell, Column, Kind, Table, TakeRows};
use tracewalk_analysis::{Code, CodeInContext, Phase, Section, Window, Windowed};

use super::function_names::FunctionNames;
use super::profile::{ProfileReport, program};

/// Writes the table `calls`: a row for each call, when it ends.
pub struct CallTable<R> {
    calls: CallStack<Running>,
    rows: Rows<R>,
    window: Window,
    windowed: Windowed,
}

struct Rows<R> {
    rows: R,
    /// The cells that name the source.
    source: [Cell; 3],
    code: CodeInContext,
    phase: Phase,
    /// Deeper functions have no row; they count only in their callers.
    depth: Option<usize>,
    /// How many functions of the source were entered.
    entered: u64,
    names: FunctionNames,
    failed: Option<io::Error>,
}

/// A function that is running.
#[derive(Clone, Copy, Debug)]
struct Running {
    number: u64,
    caller: Option<u64>,
    depth: usize,
    /// The function's entry; `None` if none of it ran yet.
    entry: Option<Address>,
    /// The instructions that it ran, with those of the functions that it called.
    instructions: u64,
    /// Whether code ran in it, or in the functions that it called.
    ran: bool,
}

impl<R: TakeRows> CallTable<R> {
    /// Hands the calls that are in the window, down to this depth, to `rows`.
    pub fn new(rows: R, window: Window, depth: Option<usize>) -> Self {
        let code = Arc::new(Code::unknown());
        let windowed = window.begin(&code);
        Self {
            calls: CallStack::new(Arc::clone(&code)),
            rows: Rows {
                rows,
                source: [const { Cell::Unknown }; 3],
                code: CodeInContext::new(code),
                phase: Phase::Before,
                depth,
                entered: 0,
                names: FunctionNames::default(),
                failed: None,
            },
            windowed,
            window,
        }
    }
}

impl<R: TakeRows> Sink<FlowRecord> for CallTable<R> {
    fn begin(&mut self) -> io::Result<()> {
        let (text, count) = (|name| Column::new(name, Kind::Text), |name| Column::new(name, Kind::Integer));
        let columns = [
            count("call"),
            count("called_by"),
            count("depth"),
            text("kind"),
            text("function"),
            Column::new("address", Kind::Address),
            Column::new("entry", Kind::Address),
            text("file"),
            count("line"),
            count("exception"),
            count("instructions").of("instructions"),
            text("ended"),
        ];
        self.rows.rows.table(&Table::of_sources("calls", 1, columns))
    }

    fn section(&mut self, section: &Section) -> io::Result<()> {
        self.rows.source = section.cells();
        self.rows.code = CodeInContext::new(Arc::clone(&section.code));
        self.rows.phase = Phase::Before;
        self.rows.entered = 0;
        self.rows.names = FunctionNames::default();
        self.windowed = self.window.begin(&section.code);
        self.calls = CallStack::new(Arc::clone(&section.code));
        Ok(())
    }

    fn record(&mut self, record: FlowRecord) -> io::Result<()> {
        let before = self.rows.phase;
        let phase = self.windowed.element(&record.element, record.at);
        match (before, phase) {
            (Phase::After, _) => return Ok(()),
            (Phase::Inside, Phase::After) => self.calls.finish(&mut self.rows),
            _ => {}
        }
        self.rows.phase = phase;
        if phase != Phase::After {
            self.rows.code.element(&record.element);
            self.calls.element(&record.element, &mut self.rows);
        }
        self.rows.failed.take().map_or(Ok(()), Err)
    }

    fn end_section(&mut self) -> io::Result<()> {
        self.calls.finish(&mut self.rows);
        self.rows.failed.take().map_or(Ok(()), Err)
    }

    fn finish(&mut self, complete: bool) -> io::Result<()> {
        self.rows.rows.finish(complete)
    }
}

impl<R: TakeRows> FlowSink for CallTable<R> {
    fn passage(&mut self, repeated: &Repeated<'_>) -> io::Result<()> {
        if self.rows.phase == Phase::After {
            return Ok(());
        }
        if self.windowed.ahead(repeated) != Some(self.rows.phase) {
            return repeated.records().try_for_each(|record| self.record(record));
        }
        self.windowed.pass(repeated);
        self.calls.passage(repeated, &mut self.rows);
        self.rows.failed.take().map_or(Ok(()), Err)
    }

    fn needs_places(&self) -> bool {
        self.window.needs_places()
    }
}

impl<R: TakeRows> Rows<R> {
    fn row(&mut self, frame: &Frame<Running>, how: Left) -> io::Result<()> {
        let Running { number, caller, depth, entry, instructions, .. } = frame.mark;
        let (kind, exception) = match frame.kind {
            FrameKind::Root | FrameKind::Call { .. } => ("function", None),
            FrameKind::Exception(Interruption { exception, .. }) => ("exception", exception),
        };
        let (file, line) = self.names.place(&self.code, frame.function, entry).unzip();
        let name = self.names.name(&self.code, frame.function);
        let end = match how {
            Left::Returned => "returned",
            Left::Replaced => "replaced",
            Left::Unwound => "unwound",
            Left::Lost => "lost",
        };
        let [id, protocol, source_number] = self.source.clone();
        self.rows.row(&[
            id,
            protocol,
            source_number,
            number.into(),
            caller.into(),
            (depth as u64).into(),
            kind.into(),
            (*name).into(),
            frame.function.address().into(),
            entry.into(),
            file.as_deref().into(),
            line.into(),
            exception.map(Exception::number).into(),
            instructions.into(),
            end.into(),
        ])
    }
}

impl<R: TakeRows> Observer for Rows<R> {
    type Mark = Running;

    fn enter(
        &mut self,
        below: Option<&mut Frame<Running>>,
        _: FrameKind,
        _: FunctionId,
        _: Entry,
    ) -> Running {
        self.entered += 1;
        let (caller, depth) = below.map(|below| (below.mark.number, below.mark.depth + 1)).unzip();
        let depth = depth.unwrap_or(0);
        Running { number: self.entered, caller, depth, entry: None, instructions: 0, ran: false }
    }

    fn regain(&mut self, below: Option<&mut Frame<Running>>, frame: &mut Frame<Running>) {
        self.entered += 1;
        let (caller, depth) = below.map(|below| (below.mark.number, below.mark.depth + 1)).unzip();
        let (number, depth) = (self.entered, depth.unwrap_or(0));
        frame.mark = Running { number, caller, depth, instructions: 0, ran: false, ..frame.mark };
    }

    fn run(&mut self, top: &mut Frame<Running>, piece: &Piece) {
        top.mark.entry.get_or_insert(piece.start);
        if self.phase == Phase::Inside {
            top.mark.instructions += u64::from(piece.instructions);
            top.mark.ran = true;
        }
    }

    fn run_all(&mut self, top: &mut Frame<Running>, run: &Run<'_>) {
        let Some(first) = run.pieces.first() else { return };
        self.run(top, &Piece { instructions: run.instructions, ..*first });
    }

    fn leave(&mut self, frame: &mut Frame<Running>, below: Option<&mut Frame<Running>>, how: Left) {
        if self.phase != Phase::Inside || !frame.mark.ran {
            return;
        }
        if self.depth.is_none_or(|deepest| frame.mark.depth <= deepest) && self.failed.is_none() {
            self.failed = self.row(frame, how).err();
        }
        if let Some(below) = below {
            below.mark.ran = true;
            below.mark.instructions += if is_own(frame.kind) { frame.mark.instructions } else { 0 };
        }
    }
}

/// Whether execution in a frame counts to the function below: an interrupt's does not.
pub(super) fn is_own(kind: FrameKind) -> bool {
    match kind {
        FrameKind::Exception(Interruption { exception, .. }) => {
            exception.is_some_and(Exception::is_synchronous)
        }
        FrameKind::Root | FrameKind::Call { .. } => true,
    }
}

/// Writes the table `chains`: a row for each chain of calls, after those of its outer links.
pub fn write_chain_rows(
    rows: &mut dyn TakeRows,
    report: &ProfileReport,
    depth: Option<usize>,
) -> io::Result<()> {
    let (text, count) = (|name| Column::new(name, Kind::Text), |name| Column::new(name, Kind::Integer));
    let cost = |name| Column::new(name, Kind::Time).of(report.unit.name());
    let columns = [
        count("chain"),
        count("outside"),
        count("depth"),
        text("kind"),
        text("name"),
        Column::new("address", Kind::Address),
        text("file"),
        count("line"),
        count("calls"),
        cost("self"),
        cost("total"),
        text("program"),
    ];
    rows.table(&Table::of_sources("chains", 1, columns))?;
    for source in &report.sources {
        let tree = report.tree(source, false);
        let mut numbers = HashMap::new();
        let mut result = Ok(());
        tree.stacks(|path, _| {
            let Some((index, outside)) = path.split_last() else { return };
            let Some(node) = tree.nodes.get(*index) else { return };
            // Code that ran outside the window has no cost.
            let is_shown = depth.is_none_or(|deepest| outside.len() <= deepest)
                && (node.calls > 0 || !node.total.is_zero());
            if result.is_err() || !is_shown {
                return;
            }
            let number = numbers.len() as u64 + 1;
            numbers.insert(*index, number);
            let label = tree.label_of(node);
            let [file, line] = super::profile::place(label.place.as_ref());
            let [id, protocol, source_number] = source.0.cells();
            result = rows.row(&[
                id,
                protocol,
                source_number,
                number.into(),
                outside.last().and_then(|index| numbers.get(index).copied()).into(),
                (outside.len() as u64).into(),
                label.kind.name().into(),
                label.name.as_str().into(),
                label.address.into(),
                file,
                line,
                node.calls.into(),
                report.cell(&tree, &node.own),
                report.cell(&tree, &node.total),
                program(&source.0, &report.programs),
            ]);
        });
        result?;
    }
    rows.finish(report.complete)
}
