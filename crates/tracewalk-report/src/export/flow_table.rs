//! `flow --format csv` and `json`: program flow as a table, a row for each element.

use std::io;
use std::sync::Arc;

use tracewalk::directive::TransferValue;
use tracewalk::flow::{Block, BranchKind, DataTransfer, Element, Ending, EventKind, Gap, GapReason};
use tracewalk::ids::{Address, Exception, Location};
use tracewalk::span::CaptureOffset;
use tracewalk_analysis::analysis::FlowSink;
use tracewalk_analysis::record::FlowRecord;
use tracewalk_analysis::sink::Sink;
use tracewalk_analysis::table::{Cell, Column, Kind, Table, TakeRows};
use tracewalk_analysis::values::{Instruction, Proven, Step, ValueSink, ValueSummary};
use tracewalk_analysis::{Code, CodeInContext, Doubt, DoubtChange, Section};

use super::flow_jsonl::{security_name, stated_level};
use super::register_name;

/// Writes the table `flow`. Reports of ITMs are in a table of their own.
#[derive(Debug)]
pub struct FlowTable<R> {
    rows: R,
    /// The cells that name the source.
    source: [Cell; 3],
    code: CodeInContext,
    doubt: Doubt,
}

/// The cells of a row after its source and its offset.
#[derive(Debug, Default)]
struct Row {
    element: &'static str,
    start: Option<Address>,
    end: Option<Address>,
    isa: Option<&'static str>,
    instructions: Option<u64>,
    branch: Option<&'static str>,
    taken: Option<bool>,
    link: Option<bool>,
    returns: Option<bool>,
    condition_failed: Option<bool>,
    exception: Option<u16>,
    name: Option<String>,
    preferred_return: Option<Address>,
    handler: Option<Address>,
    context_id: Option<u32>,
    vmid: Option<u32>,
    security: Option<&'static str>,
    exception_level: Option<u64>,
    timestamp: Option<u64>,
    cycles: Option<u64>,
    address: Option<Address>,
    bytes: Option<u64>,
    value: Option<u64>,
    tag: Option<u64>,
    store: Option<bool>,
    big_endian: Option<bool>,
    reason: Option<&'static str>,
    message: Option<String>,
}

impl<R: TakeRows> FlowTable<R> {
    /// Hands rows to `rows`.
    pub fn new(rows: R) -> Self {
        let code = CodeInContext::new(Arc::new(Code::unknown()));
        Self { rows, source: [const { Cell::Unknown }; 3], code, doubt: Doubt::default() }
    }

    fn row(&mut self, row: Row, at: CaptureOffset, doubt: (Option<u64>, Option<bool>)) -> io::Result<()> {
        let place = row.start.and_then(|start| self.code.symbols.innermost(start));
        let (file, line) = place.map_or((None, None), |frame| (frame.file, frame.line));
        let function =
            row.start.and_then(|start| self.code.symbols.function(start)).map(|function| function.name);
        let [id, protocol, source_number] = self.source.clone();
        self.rows.row(&[
            id,
            protocol,
            source_number,
            at.0.into(),
            row.element.into(),
            row.start.into(),
            row.end.into(),
            row.isa.into(),
            row.instructions.into(),
            function.into(),
            file.as_deref().into(),
            line.into(),
            row.branch.into(),
            row.taken.into(),
            row.link.into(),
            row.returns.into(),
            row.condition_failed.into(),
            row.exception.into(),
            row.name.into(),
            row.preferred_return.into(),
            row.handler.into(),
            row.context_id.into(),
            row.vmid.into(),
            row.security.into(),
            row.exception_level.into(),
            row.timestamp.into(),
            row.cycles.into(),
            row.address.into(),
            row.bytes.into(),
            row.value.into(),
            row.tag.into(),
            row.store.into(),
            row.big_endian.into(),
            row.reason.into(),
            row.message.into(),
            doubt.0.into(),
            doubt.1.into(),
        ])
    }
}

impl<R: TakeRows> Sink<FlowRecord> for FlowTable<R> {
    fn begin(&mut self) -> io::Result<()> {
        self.rows.table(&Table::of_sources("flow", 1, columns()))
    }

    fn section(&mut self, section: &Section) -> io::Result<()> {
        self.source = section.cells();
        self.code = CodeInContext::new(Arc::clone(&section.code));
        self.doubt = Doubt::default();
        Ok(())
    }

    fn go_on(&mut self, doubt: Doubt) {
        self.doubt = doubt;
    }

    fn record(&mut self, record: FlowRecord) -> io::Result<()> {
        let FlowRecord { element, at } = &record;
        let was_in_doubt = self.doubt.is_open();
        let change = self.doubt.element(element, || *at);
        self.code.element(element);
        let row = match element {
            Element::Block(block) => range(block),
            Element::Event(event) => self.event(event.kind),
            Element::Gap(found) => gap(found),
            Element::Proof(_) => return Ok(()),
        };
        let from = match change {
            Some(DoubtChange::Begins { from, .. }) => Some(from.0),
            _ => None,
        };
        self.row(row, *at, (from, was_in_doubt.then_some(true)))
    }

    fn finish(&mut self, complete: bool) -> io::Result<()> {
        self.rows.finish(complete)
    }
}

impl<R: TakeRows> FlowSink for FlowTable<R> {}

/// A row for each instruction instead of each range, and after it a row for each access to memory and each register that it wrote.
impl<R: TakeRows> ValueSink for FlowTable<R> {
    fn begin(&mut self) -> io::Result<()> {
        Sink::<FlowRecord>::begin(self)
    }

    fn section(&mut self, section: &Section) -> io::Result<()> {
        Sink::<FlowRecord>::section(self, section)
    }

    fn element(&mut self, record: &FlowRecord) -> io::Result<()> {
        match record.element {
            Element::Block(_) => Ok(()),
            _ => self.record(*record),
        }
    }

    fn pass(&mut self, record: &FlowRecord) {
        self.doubt.element(&record.element, || record.at);
        self.code.element(&record.element);
    }

    fn step(&mut self, at: CaptureOffset, step: &Step, proven: &Proven) -> io::Result<()> {
        let Step::Instruction(Instruction { at: location, bytes, .. }) = step else { return Ok(()) };
        let doubt = (None, self.doubt.is_open().then_some(true));
        let isa = Some(location.isa.name());
        let of = |element| Row { element, start: Some(location.address), isa, ..Row::default() };
        let end = Some(location.after((*bytes).into()).address);
        let condition_failed = proven.executed.map(|executed| !executed);
        self.row(Row { end, instructions: Some(1), condition_failed, ..of("instruction") }, at, doubt)?;
        for access in &proven.accesses {
            let (address, bytes) = (access.address.map(Address::new), Some(access.bytes.into()));
            let (value, store) = (access.value, Some(access.is_store));
            self.row(Row { address, bytes, value, store, ..of("data") }, at, doubt)?;
        }
        for (register, value) in &proven.writes {
            let name = Some(register_name(*register, location.isa));
            self.row(Row { name, value: *value, ..of("write") }, at, doubt)?;
        }
        Ok(())
    }

    fn end_section(&mut self, _: &ValueSummary) -> io::Result<()> {
        Sink::<FlowRecord>::end_section(self)
    }

    fn finish(&mut self, complete: bool) -> io::Result<()> {
        Sink::<FlowRecord>::finish(self, complete)
    }
}

impl<R> FlowTable<R> {
    fn event(&self, kind: EventKind) -> Row {
        let row = |element| Row { element, ..Row::default() };
        match kind {
            EventKind::TraceOn(reason) => Row { reason: Some(reason.name()), ..row("trace_on") },
            EventKind::Exception { exception, preferred_return, handler } => Row {
                exception: exception.map(Exception::number),
                name: exception
                    .map(|exception| self.code.whole().interrupts.name_or_number(exception).into_owned()),
                preferred_return,
                handler: handler.map(|handler| handler.address),
                isa: handler.map(|handler| handler.isa.name()),
                ..row("exception")
            },
            EventKind::ExceptionReturn => row("exception_return"),
            EventKind::Context { context_id, vmid, privilege } => Row {
                context_id: context_id.map(|id| id.0),
                vmid: vmid.map(|id| id.0),
                security: Some(security_name(privilege)),
                exception_level: stated_level(privilege).map(|level| level.number().into()),
                ..row("context")
            },
            EventKind::ClockChanged => row("clock_changed"),
            EventKind::Timestamp(value) => Row { timestamp: Some(value), ..row("timestamp") },
            EventKind::Cycles(count) => Row { cycles: Some(count), ..row("cycles") },
            EventKind::Trigger => row("trigger"),
            EventKind::Events(events) => Row { value: Some(events.into()), ..row("event") },
            EventKind::Instrumentation(written) => Row {
                exception_level: Some(written.level.number().into()),
                value: Some(written.value),
                ..row("instrumentation")
            },
            EventKind::Transaction(transaction) => {
                Row { reason: Some(transaction.name()), ..row("transaction") }
            }
            EventKind::Data(transfer) => data(&transfer),
            // An unknown kind is reported by its text.
            other => Row { message: Some(other.to_string()), ..row("other") },
        }
    }
}

fn columns() -> Vec<Column> {
    use Kind::{Address, Flag, Integer, Text, Time};
    let column = |(name, kind): (&'static str, Kind)| match name {
        "instructions" | "cycles" | "bytes" => Column::new(name, kind).of(name),
        _ => Column::new(name, kind),
    };
    let all = [
        ("offset", Integer),
        ("element", Text),
        ("start", Address),
        ("end", Address),
        ("isa", Text),
        ("instructions", Integer),
        ("function", Text),
        ("file", Text),
        ("line", Integer),
        ("branch", Text),
        ("taken", Flag),
        ("link", Flag),
        ("return", Flag),
        ("condition_failed", Flag),
        ("exception", Integer),
        ("name", Text),
        ("preferred_return", Address),
        ("handler", Address),
        ("context_id", Integer),
        ("vmid", Integer),
        ("security", Text),
        ("exception_level", Integer),
        ("timestamp", Integer),
        ("cycles", Time),
        ("address", Address),
        ("bytes", Integer),
        ("value", Integer),
        ("tag", Integer),
        ("store", Flag),
        ("big_endian", Flag),
        ("reason", Text),
        ("message", Text),
        ("in_doubt_from", Integer),
        ("in_doubt", Flag),
    ];
    all.into_iter().map(column).collect()
}

fn range(block: &Block) -> Row {
    let row = Row {
        element: "range",
        start: Some(block.start),
        end: Some(block.end),
        isa: Some(block.isa.name()),
        instructions: Some(block.instructions.into()),
        branch: Some("none"),
        ..Row::default()
    };
    match block.ending {
        Ending::Interrupted => row,
        Ending::ConditionFailed => Row { condition_failed: Some(true), ..row },
        Ending::Branch { kind: BranchKind::Barrier, taken, .. } => {
            Row { branch: Some("barrier"), taken: Some(taken), ..row }
        }
        Ending::Branch { kind, taken, link, returns } => Row {
            branch: Some(if kind == BranchKind::Direct { "direct" } else { "indirect" }),
            taken: Some(taken),
            link: Some(link),
            returns: Some(returns.is_some()),
            ..row
        },
    }
}

fn data(transfer: &DataTransfer) -> Row {
    let row = Row {
        element: "data",
        start: transfer.instruction.map(|instruction| instruction.address),
        address: transfer.address,
        bytes: transfer.bytes.map(u64::from),
        store: transfer.store,
        big_endian: transfer.big_endian.then_some(true),
        ..Row::default()
    };
    match transfer.value {
        TransferValue::Value(value) => Row { value: Some(value.into()), ..row },
        TransferValue::Pending(tag) => Row { tag: Some(tag.into()), ..row },
        TransferValue::NotTraced => Row { reason: Some("not_traced"), ..row },
        TransferValue::StoreFailed => Row { reason: Some("store_failed"), ..row },
        TransferValue::Suppressed => Row { reason: Some("suppressed"), ..row },
    }
}

fn gap(gap: &Gap) -> Row {
    let at: Option<Location> = match gap.reason {
        GapReason::NoCode(at) | GapReason::Undecodable(at, _) => Some(at),
        GapReason::Contradiction(contradiction) => Some(contradiction.location()),
        _ => None,
    };
    Row {
        element: "gap",
        reason: Some(gap.reason.name()),
        bytes: Some(gap.span.bytes()),
        address: at.map(|at| at.address),
        isa: at.map(|at| at.isa.name()),
        message: Some(gap.reason.to_string()),
        ..Row::default()
    }
}
