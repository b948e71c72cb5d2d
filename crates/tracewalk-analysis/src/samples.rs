//! Hand-made records for the tests of analyses and exporters.

use std::sync::Arc;

use tracewalk::flow::{Block, BranchKind, Element, Ending, Event, EventKind, Gap, GapReason};
use tracewalk::ids::{Address, Exception, Isa, Location, TraceId};
use tracewalk::isa::Return;
use tracewalk::program::Program;
use tracewalk::protocol::{Describe, Field};
use tracewalk::source::PacketItem;
use tracewalk::span::{CaptureOffset, Span, StreamOffset};

use crate::record::{FlowRecord, PacketRecord};
use crate::sink::Sink;
use crate::symbols::{Extent, Frame, Function, LineExtent, Symbols};
use crate::{Code, Section};

/// The trace that proves all elements of these samples.
pub const SPAN: Span = Span { start: StreamOffset(3), end: StreamOffset(5) };

/// Hands a section of these elements to a sink.
pub fn export(exporter: &mut impl Sink<FlowRecord>, id: Option<TraceId>, elements: &[Element]) {
    exporter.begin().unwrap();
    exporter.section(&Section { id, protocol: "etmv3", number: 1, code: Arc::new(Code::unknown()) }).unwrap();
    for &element in elements {
        exporter.record(FlowRecord { element, at: CaptureOffset(7) }).unwrap();
    }
    exporter.end_section().unwrap();
}

/// A block of 16-bit Thumb instructions.
pub fn block(start: u32, end: u32, ending: Ending) -> Element {
    Element::Block(Block {
        start: Address::from(start),
        end: Address::from(end),
        isa: Isa::T32,
        instructions: (end - start) / 2,
        last: Address::from(end - 2),
        ending,
        span: SPAN,
    })
}

/// A direct branch that was taken.
pub fn taken() -> Ending {
    Ending::Branch { kind: BranchKind::Direct, taken: true, link: false, returns: None }
}

/// A direct branch that was not taken.
pub fn not_taken() -> Ending {
    Ending::Branch { kind: BranchKind::Direct, taken: false, link: false, returns: None }
}

/// An exception came before the next instruction.
pub fn interrupted() -> Ending {
    Ending::Interrupted
}

/// An event of this kind.
pub fn event(kind: EventKind) -> Element {
    Element::Event(Event { kind, span: SPAN })
}

/// A gap that casts no doubt.
pub fn gap(reason: GapReason) -> Element {
    Element::Gap(Gap { reason, span: SPAN, doubt: false })
}

/// A program of functions of 0x100 bytes each, from 0x100 on, that does nothing: `main`, `sort`, `swap`, `handler` …
pub fn pages() -> Arc<Code> {
    let mut program = Program::new();
    program.add(Address::new(0), &[0; 0x1400]).unwrap();
    Arc::new(Code { program: Arc::new(program), symbols: Box::new(Pages), ..Code::unknown() })
}

/// The same program without symbols.
pub fn pages_without_names() -> Arc<Code> {
    Arc::new(Code { program: Arc::clone(&pages().program), ..Code::unknown() })
}

struct Pages;

const PAGES: [&str; 20] = [
    "zero",
    "main",
    "sort",
    "swap",
    "handler",
    "outer",
    "inner",
    "a",
    "b",
    "c",
    "d",
    "e",
    "setjmp",
    "longjmp",
    "yield",
    "task_a",
    "task_b",
    "vTaskSwitchContext",
    "port_switch",
    "wait",
];

impl Symbols for Pages {
    fn function(&self, address: Address) -> Option<Function<'_>> {
        let name = PAGES.get(usize::try_from(address.get() / 0x100).ok()?)?;
        Some(Function { name, start: Address::new(address.get() & !0xff) })
    }
    fn frames(&self, _: Address) -> Arc<[Frame]> {
        Arc::default()
    }
    fn source_line(&self, _: &str, _: u32) -> Option<String> {
        None
    }
    fn functions(&self) -> Vec<Extent> {
        let extent = |name: &&str| {
            let start = page(name);
            let (name, start, end) = ((*name).to_owned(), Address::from(start), u64::from(start) + 0x100);
            Extent { symbol: name.clone(), name, start, end, isa: Some(Isa::T32) }
        };
        PAGES.iter().map(extent).collect()
    }
    /// `main` comes from lines 1, 2, 7 and again 2 of `src/main.c`.
    fn line_extents(&self, is_wanted: &mut dyn FnMut(&str, u32) -> bool) -> Vec<LineExtent> {
        let rows = [(0, 4, 1), (4, 6, 2), (6, 0x10, 2), (0x10, 0x20, 7), (0x20, 0x24, 2)];
        let wanted = rows.into_iter().filter(|(_, _, line)| is_wanted("/home/user/src/main.c", *line));
        let extent = |(start, end, _)| LineExtent {
            start: Address::from(page("main") + start),
            end: u64::from(page("main") + end),
        };
        wanted.map(extent).collect()
    }
}

/// The start of a function of [`pages`].
pub fn page(name: &str) -> u32 {
    let index = PAGES.iter().position(|page| *page == name).unwrap();
    u32::try_from(index).unwrap() * 0x100
}

/// A taken branch that calls.
pub fn call() -> Ending {
    Ending::Branch { kind: BranchKind::Direct, taken: true, link: true, returns: None }
}

/// A taken indirect branch that has the form of a return.
pub fn returns() -> Ending {
    Ending::Branch { kind: BranchKind::Indirect, taken: true, link: false, returns: Some(Return::Function) }
}

/// An exception that will return to `preferred_return`.
pub fn exception(exception: Exception, preferred_return: Option<u32>, handler: u32) -> Element {
    event(EventKind::Exception {
        exception: Some(exception),
        preferred_return: preferred_return.map(Address::from),
        handler: Some(Location::new(Address::from(handler), Isa::T32)),
    })
}

/// Instructions of a function of [`pages`], from one place in it up to another.
pub fn within(name: &str, from: u32, to: u32, ending: Ending) -> Element {
    block(page(name) + from, page(name) + to, ending)
}

/// An exception of M profile that will return to `returns_to`, and is handled by a function of [`pages`].
pub fn irq(number: u16, returns_to: Option<u32>, handler: &str) -> Element {
    exception(Exception::M(number), returns_to, page(handler))
}

/// IRQ0 comes while SysTick's handler runs.
pub fn nested_interrupts() -> [Element; 9] {
    [
        within("main", 0x10, 0x14, interrupted()),
        irq(15, Some(page("main") + 0x14), "handler"),
        within("handler", 0, 2, interrupted()),
        irq(16, Some(page("handler") + 2), "a"),
        within("a", 0, 4, returns()),
        event(EventKind::ExceptionReturn),
        within("handler", 2, 4, returns()),
        event(EventKind::ExceptionReturn),
        within("main", 0x14, 0x16, taken()),
    ]
}

/// PendSV replaces SysTick's return.
pub fn tail_chained_interrupts() -> [Element; 7] {
    [
        within("main", 0x10, 0x14, interrupted()),
        irq(15, Some(page("main") + 0x14), "handler"),
        within("handler", 0, 4, returns()),
        irq(14, None, "a"),
        within("a", 0, 2, returns()),
        event(EventKind::ExceptionReturn),
        within("main", 0x14, 0x16, taken()),
    ]
}

/// A packet with a field of each kind.
pub struct ISync;

impl Describe for ISync {
    fn name(&self) -> &'static str {
        "i_sync"
    }

    fn fields(&self, visit: &mut dyn FnMut(&'static str, Field<'_>)) {
        visit("reason", Field::Number(1));
        visit("addr", Field::Address(Address::new(0x0800_0306)));
        visit("isa", Field::Text("T32"));
    }
}

/// Exports consecutive packets of a source without ID.
pub fn packets<E>(exporter: &mut E, contents: &[(PacketItem<'_>, &[u8])])
where
    E: for<'a> Sink<PacketRecord<'a>>,
{
    exporter.begin().unwrap();
    exporter
        .section(&Section { id: None, protocol: "etmv3", number: 1, code: Arc::new(Code::unknown()) })
        .unwrap();
    let mut at = CaptureOffset(0);
    for &(content, bytes) in contents {
        exporter.record(PacketRecord { content, at, bytes }).unwrap();
        at.0 += bytes.len() as u64;
    }
    exporter.end_section().unwrap();
}
