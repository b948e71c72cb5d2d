//! `flow --format jsonl`: one object for each element of program flow (docs/formats.md).

use std::io::{self, Write};
use std::sync::Arc;

use tracewalk::directive::TransferValue;
use tracewalk::flow::{Block, BranchKind, DataTransfer, Element, Ending, EventKind, Gap, GapReason};
use tracewalk::ids::{ExceptionLevel, Location, Privilege, TraceId};
use tracewalk::span::CaptureOffset;

use super::itm::write_itm;
use super::json::{Line, Object};
use tracewalk_analysis::analysis::FlowSink;
use tracewalk_analysis::record::{FlowRecord, ItmRecord};
use tracewalk_analysis::sink::{Growth, Join, Part, Sink};
use tracewalk_analysis::{Code, Doubt, DoubtChange, Interrupts, Section};

/// The format's version, in every object.
const VERSION: u64 = 1;

/// Writes JSON lines of flow.
#[derive(Debug)]
pub struct FlowJsonl<W> {
    out: W,
    lines: Lines,
}

/// The lines of a part of a section.
#[derive(Clone, Debug, Default)]
pub struct FlowJsonlPart {
    lines: Lines,
    text: Vec<u8>,
}

/// Makes lines of a section.
#[derive(Clone, Debug, Default)]
struct Lines {
    line: Line,
    id: Option<TraceId>,
    interrupts: Arc<Interrupts>,
    doubt: Doubt,
}

impl<W: Write> FlowJsonl<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self { out, lines: Lines::default() }
    }
}

impl<W: Write> FlowJsonl<W> {
    /// Passes an element without writing it.
    pub(super) fn pass(&mut self, record: &FlowRecord) {
        self.lines.doubt.element(&record.element, || record.at);
    }

    /// Writes a line of another form.
    pub(super) fn line(&mut self, line: &[u8]) -> io::Result<()> {
        self.out.write_all(line)
    }

    /// The source's trace ID, and its doubt.
    pub(super) fn state(&self) -> (Option<TraceId>, &Doubt) {
        (self.lines.id, &self.lines.doubt)
    }
}

impl<W: Write> Sink<FlowRecord> for FlowJsonl<W> {
    fn shows_itm(&self) -> bool {
        true
    }

    fn itm(&mut self, record: &ItmRecord) -> io::Result<()> {
        write_itm(&mut self.out, &mut self.lines.line, record, (&Code::unknown(), None))
    }

    fn section(&mut self, section: &Section) -> io::Result<()> {
        self.lines.id = section.id;
        self.lines.interrupts = Arc::new(section.code.interrupts.clone());
        self.lines.doubt = Doubt::default();
        Ok(())
    }

    fn go_on(&mut self, doubt: Doubt) {
        self.lines.doubt = doubt;
    }

    fn record(&mut self, record: FlowRecord) -> io::Result<()> {
        self.lines.record(&record.element, record.at, &mut self.out)
    }

    fn cut(&mut self, at: CaptureOffset) -> io::Result<()> {
        let mut object = self.lines.line.start(VERSION, at, self.lines.id);
        object.text("element", "cut");
        object.close();
        self.lines.line.end(&mut self.out)
    }
}

impl<W: Write> FlowSink for FlowJsonl<W> {}

impl<W: Write> Join for FlowJsonl<W> {
    type Part = FlowJsonlPart;

    fn part(&self) -> FlowJsonlPart {
        FlowJsonlPart { lines: self.lines.clone(), text: Vec::new() }
    }

    fn growth(&self) -> Growth {
        Growth::LongLines
    }

    fn join(&mut self, part: FlowJsonlPart) -> io::Result<()> {
        self.out.write_all(&part.text)
    }
}

impl Part for FlowJsonlPart {
    fn begin(&mut self, doubt: Doubt) {
        self.lines.doubt = doubt;
    }

    fn element(&mut self, element: &Element, at: impl FnOnce() -> CaptureOffset) {
        // Writing into memory cannot fail.
        let _ = self.lines.record(element, at(), &mut self.text);
    }
}

impl Lines {
    fn record(&mut self, element: &Element, at: CaptureOffset, out: &mut impl Write) -> io::Result<()> {
        let was_in_doubt = self.doubt.is_open();
        let change = self.doubt.element(element, || at);
        if let Element::Proof(_) = element {
            return Ok(());
        }
        let mut object = self.line.start(VERSION, at, self.id);
        match element {
            Element::Block(block) => range(&mut object, block),
            Element::Event(kind) => event(&mut object, kind.kind, &self.interrupts),
            Element::Gap(found) => gap(&mut object, found),
            Element::Proof(_) => {}
        }
        if let Some(DoubtChange::Begins { from, .. }) = change {
            object.number("in_doubt_from", from.0);
        }
        if was_in_doubt {
            object.flag("in_doubt", true);
        }
        object.close();
        self.line.end(out)
    }
}

fn range(object: &mut Object<'_>, block: &Block) {
    object.text("element", "range");
    object.address("start", block.start);
    object.address("end", block.end);
    object.text("isa", block.isa.name());
    object.number("instructions", block.instructions.into());
    let mut branch = object.object("branch");
    match block.ending {
        Ending::Interrupted => branch.text("kind", "none"),
        Ending::ConditionFailed => {
            branch.text("kind", "none");
            branch.flag("condition_failed", true);
        }
        Ending::Branch { kind: BranchKind::Barrier, taken, .. } => {
            branch.text("kind", "barrier");
            branch.flag("taken", taken);
        }
        Ending::Branch { kind, taken, link, returns } => {
            branch.text("kind", if kind == BranchKind::Direct { "direct" } else { "indirect" });
            branch.flag("taken", taken);
            branch.flag("link", link);
            branch.flag("return", returns.is_some());
        }
    }
    branch.close();
}

fn event(object: &mut Object<'_>, kind: EventKind, interrupts: &Interrupts) {
    match kind {
        EventKind::TraceOn(reason) => {
            object.text("element", "trace_on");
            object.text("reason", reason.name());
        }
        EventKind::Exception { exception, preferred_return, handler } => {
            object.text("element", "exception");
            if let Some(exception) = exception {
                object.number("number", exception.number().into());
                object.text("name", &interrupts.name_or_number(exception));
                object.text("profile", exception.profile().name());
            }
            if let Some(address) = preferred_return {
                object.address("preferred_return", address);
            }
            location(object, "handler", "handler_isa", handler);
        }
        EventKind::ExceptionReturn => object.text("element", "exception_return"),
        EventKind::Context { context_id, vmid, privilege } => {
            object.text("element", "context");
            if let Some(context_id) = context_id {
                object.number("context_id", context_id.0.into());
            }
            if let Some(vmid) = vmid {
                object.number("vmid", vmid.0.into());
            }
            object.text("security", security_name(privilege));
            if let Some(level) = stated_level(privilege) {
                object.number("exception_level", level.number().into());
            }
        }
        EventKind::ClockChanged => object.text("element", "clock_changed"),
        EventKind::Timestamp(value) => {
            object.text("element", "timestamp");
            object.number("timestamp", value);
        }
        EventKind::Cycles(count) => {
            object.text("element", "cycles");
            object.number("cycles", count);
        }
        EventKind::Trigger => object.text("element", "trigger"),
        EventKind::Events(events) => {
            object.text("element", "event");
            object.number("event", events.into());
        }
        EventKind::Instrumentation(written) => {
            object.text("element", "instrumentation");
            object.number("exception_level", written.level.number().into());
            // A string, because readers of JSON numbers may round 64 bits.
            object.text("value", &format!("{:#018x}", written.value));
        }
        EventKind::Transaction(transaction) => {
            object.text("element", "transaction");
            object.text("state", transaction.name());
        }
        EventKind::Data(transfer) => data(object, &transfer),
        // An unknown kind is reported by its text.
        other => {
            object.text("element", "other");
            object.text("message", &other.to_string());
        }
    }
}

/// The security state's name in the line formats, in which Hyp mode has its own name.
pub(super) fn security_name(privilege: Privilege) -> &'static str {
    if privilege == Privilege::HYPERVISOR { "hypervisor" } else { privilege.security.name() }
}

/// The exception level that [`security_name`] does not state.
pub(super) fn stated_level(privilege: Privilege) -> Option<ExceptionLevel> {
    privilege.level.filter(|_| privilege != Privilege::HYPERVISOR)
}

fn location(object: &mut Object<'_>, address: &str, isa: &str, location: Option<Location>) {
    if let Some(location) = location {
        object.address(address, location.address);
        object.text(isa, location.isa.name());
    }
}

fn data(object: &mut Object<'_>, transfer: &DataTransfer) {
    object.text("element", "data");
    if let Some(instruction) = transfer.instruction {
        object.address("instruction", instruction.address);
    }
    if let Some(address) = transfer.address {
        object.address("addr", address);
    }
    match transfer.value {
        TransferValue::Value(value) => object.number("value", value.into()),
        TransferValue::Pending(tag) => object.number("tag", tag.into()),
        TransferValue::NotTraced => object.text("missing", "not_traced"),
        TransferValue::StoreFailed => object.text("missing", "store_failed"),
        TransferValue::Suppressed => object.text("missing", "suppressed"),
    }
    if let Some(bytes) = transfer.bytes {
        object.number("bytes", bytes.into());
    }
    if let Some(store) = transfer.store {
        object.flag("store", store);
    }
    if transfer.big_endian {
        object.flag("big_endian", true);
    }
}

fn gap(object: &mut Object<'_>, gap: &Gap) {
    object.text("element", "gap");
    object.text("reason", gap.reason.name());
    object.number("bytes", gap.span.bytes());
    let at = match gap.reason {
        GapReason::NoCode(at) | GapReason::Undecodable(at, _) => Some(at),
        GapReason::Contradiction(contradiction) => Some(contradiction.location()),
        _ => None,
    };
    location(object, "addr", "isa", at);
    object.text("message", &gap.reason.to_string());
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use tracewalk::directive::{Instrumentation, Transaction};
    use tracewalk::flow::Ending;
    use tracewalk::ids::{Address, ContextId, Isa, SecurityState};
    use tracewalk::isa::Return;
    use tracewalk_analysis::samples::{self, SPAN, block, export};

    fn objects(elements: &[Element]) -> Vec<Value> {
        let mut out = Vec::new();
        export(&mut FlowJsonl::new(&mut out), TraceId::new(2), elements);
        let text = String::from_utf8(out).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn a_range_says_how_it_ended() {
        let call = Ending::Branch {
            kind: BranchKind::Indirect,
            taken: true,
            link: true,
            returns: Some(Return::Function),
        };
        let found = objects(&[block(0x100, 0x104, call), block(0x104, 0x106, Ending::ConditionFailed)]);
        let expected = [
            json!({
                "v": 1, "offset": 7, "id": 2, "element": "range", "start": "0x00000100", "end": "0x00000104",
                "isa": "T32", "instructions": 2,
                "branch": { "kind": "indirect", "taken": true, "link": true, "return": true },
            }),
            json!({
                "v": 1, "offset": 7, "id": 2, "element": "range", "start": "0x00000104", "end": "0x00000106",
                "isa": "T32", "instructions": 1, "branch": { "kind": "none", "condition_failed": true },
            }),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn absent_fields_are_left_out() {
        let unknown = EventKind::Exception { exception: None, preferred_return: None, handler: None };
        let context = EventKind::Context {
            context_id: Some(ContextId(0x1234)),
            vmid: None,
            privilege: Privilege::of(SecurityState::NonSecure),
        };
        let found = objects(&[samples::event(unknown), samples::event(context)]);
        let expected = [
            json!({ "v": 1, "offset": 7, "id": 2, "element": "exception" }),
            json!({
                "v": 1, "offset": 7, "id": 2, "element": "context", "context_id": 0x1234,
                "security": "non_secure",
            }),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_a_trace_unit_reports_keeps_all_its_bits() {
        let level = ExceptionLevel::new(2).unwrap();
        let written = Instrumentation { level, value: u64::MAX };
        let found = objects(&[
            samples::event(EventKind::Events(0b1010)),
            samples::event(EventKind::Instrumentation(written)),
            samples::event(EventKind::Transaction(Transaction::Failed)),
        ]);
        let expected = [
            json!({ "v": 1, "offset": 7, "id": 2, "element": "event", "event": 10 }),
            json!({
                "v": 1, "offset": 7, "id": 2, "element": "instrumentation", "exception_level": 2,
                "value": "0xffffffffffffffff",
            }),
            json!({ "v": 1, "offset": 7, "id": 2, "element": "transaction", "state": "failed" }),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_gap_has_its_reason_and_size() {
        let at = Location::new(Address::new(0xc005_8100), Isa::T32);
        let found = objects(&[samples::gap(GapReason::NoCode(at))]);
        assert_eq!(found[0]["reason"], "no_code");
        assert_eq!(found[0]["bytes"], SPAN.bytes());
        assert_eq!(found[0]["addr"], "0xc0058100");
    }
}
