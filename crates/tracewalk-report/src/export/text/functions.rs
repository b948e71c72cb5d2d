//! `flow --functions`: the functions that ran, as a tree of calls.

use std::io::{self, Write};
use std::rc::Rc;

use tracewalk::flow::{Block, Element, EventKind, GapReason};
use tracewalk::ids::{Address, Location};

use super::{gap_text, indent, marked_event, place_name, rule};
use crate::analysis::{Arrival, CallDepth};
use crate::export::{Export, FlowRecord};
use crate::section::Code;
use crate::{Palette, Section};

/// Writes a tree of calls: a line where a function is entered and, if it called others, one where it is left.
#[derive(Debug)]
pub struct FunctionTree<W> {
    out: W,
    palette: Palette,
    code: Rc<Code>,
    calls: CallDepth,
    /// The functions that are running, outermost first.
    open: Vec<Open>,
    /// A function that called nothing, and whose line may still be for several of them.
    leaf: Option<Leaf>,
    first_section: bool,
}

/// The line of a function that called nothing.
#[derive(Debug, PartialEq, Eq)]
struct Leaf {
    line: String,
    /// How often it ran in succession, in the same way.
    times: u64,
}

#[derive(Debug)]
struct Open {
    name: String,
    /// Where the function begins; `None` where no symbol says so.
    start: Option<Address>,
    /// Where it was entered.
    entry: Address,
    depth: usize,
    /// How many instructions it ran, with those of the functions it called.
    instructions: u64,
    /// Whether it handles an exception: what it runs is not the interrupted function's doing.
    interrupts: bool,
    /// Whether its line is printed, because something happened inside it.
    printed: bool,
}

/// Why a function's line is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    Returned,
    /// The trace does not tell what became of it.
    Unknown,
}

impl<W: Write> FunctionTree<W> {
    /// Writes to `out`.
    pub fn new(out: W, palette: Palette) -> Self {
        Self {
            out,
            palette,
            code: Rc::new(Code::unknown()),
            calls: CallDepth::default(),
            open: Vec::new(),
            leaf: None,
            first_section: true,
        }
    }

    fn block(&mut self, block: &Block, arrival: Arrival) -> io::Result<()> {
        if arrival == Arrival::Unknown {
            self.close_deeper_than(None, Left::Unknown)?;
        }
        self.enter(block.start, arrival == Arrival::Exception)?;
        // Code that falls through into another function is rare, but it is another function.
        let mut instructions = 0;
        let mut at = block.start;
        while at.bytes_since(block.start) < block.end.bytes_since(block.start) {
            let same = self.open.last().is_some_and(|open| self.belongs(open, at));
            if !same {
                self.count(std::mem::take(&mut instructions));
                self.enter(at, false)?;
            }
            instructions += 1;
            at = at.plus(self.size(Location::new(at, block.isa)));
        }
        self.count(instructions);
        Ok(())
    }

    fn size(&self, at: Location) -> u32 {
        let code = self.code.program.code(at.address).unwrap_or_default();
        match tracewalk::isa::classify(code, at.address, at.isa) {
            Ok(instruction) => instruction.bytes.into(),
            Err(_) => at.isa.alignment(),
        }
    }

    /// Execution is at `at`, at the call depth that is known now.
    fn enter(&mut self, at: Address, interrupts: bool) -> io::Result<()> {
        let depth = self.calls.depth();
        self.close_deeper_than(Some(depth), Left::Returned)?;
        if let Some(open) = self.open.last()
            && open.depth == depth
        {
            if self.belongs(open, at) {
                return Ok(());
            }
            // A jump into another function, without a call: it takes this one's place.
            self.close()?;
        }
        self.print_open()?;
        let function = self.code.symbols.function(at);
        let start = function.map(|function| function.start);
        let name = function.map_or_else(|| at.to_string(), |function| function.name.to_owned());
        self.open.push(Open { name, start, entry: at, depth, interrupts, instructions: 0, printed: false });
        Ok(())
    }

    fn belongs(&self, open: &Open, at: Address) -> bool {
        match self.code.symbols.function(at) {
            Some(function) => open.start == Some(function.start),
            None => open.start.is_none(),
        }
    }

    fn count(&mut self, instructions: u64) {
        if let Some(open) = self.open.last_mut() {
            open.instructions += instructions;
        }
    }

    /// Prints the lines of the functions that are running and have none yet.
    fn print_open(&mut self) -> io::Result<()> {
        for index in 0..self.open.len() {
            if !self.open[index].printed {
                let line = self.entry_line(&self.open[index]);
                self.line(&line)?;
                self.open[index].printed = true;
            }
        }
        Ok(())
    }

    /// The line of a function that is entered.
    fn entry_line(&self, open: &Open) -> String {
        let Palette { function, quiet, .. } = self.palette;
        let margin = indent(open.depth);
        let mut line = format!("{:margin$}{function}{}{function:#}", "", open.name);
        if let Some(offset) =
            open.start.map(|start| open.entry.bytes_since(start)).filter(|offset| *offset != 0)
        {
            line.push_str(&format!("+0x{offset:x}"));
        }
        let frames = self.code.symbols.frames(open.entry);
        if let Some((file, number)) =
            frames.first().and_then(|frame| Some((frame.file.as_deref()?, frame.line?)))
        {
            let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
            line.push_str(&format!("  {quiet}{name}:{number}{quiet:#}"));
        }
        line
    }

    /// Holds back the line of a function that called nothing, for more of them may come.
    fn leaf_line(&mut self, line: String) -> io::Result<()> {
        if let Some(leaf) = self.leaf.as_mut().filter(|leaf| leaf.line == line) {
            leaf.times += 1;
            return Ok(());
        }
        self.finish_leaves()?;
        self.leaf = Some(Leaf { line, times: 1 });
        Ok(())
    }

    fn finish_leaves(&mut self) -> io::Result<()> {
        match self.leaf.take() {
            None => Ok(()),
            Some(Leaf { line, times: 1 }) => writeln!(self.out, "{line}"),
            Some(Leaf { line, times }) => {
                let quiet = self.palette.quiet;
                writeln!(self.out, "{line}  {quiet}×{times}{quiet:#}")
            }
        }
    }

    /// Prints a line of its own.
    fn line(&mut self, line: &str) -> io::Result<()> {
        self.finish_leaves()?;
        writeln!(self.out, "{line}")
    }

    /// Closes the functions above `depth`, or all.
    fn close_deeper_than(&mut self, depth: Option<usize>, left: Left) -> io::Result<()> {
        while self.open.last().is_some_and(|open| depth.is_none_or(|depth| open.depth > depth)) {
            self.close_as(left)?;
        }
        Ok(())
    }

    fn close(&mut self) -> io::Result<()> {
        self.close_as(Left::Returned)
    }

    fn close_as(&mut self, left: Left) -> io::Result<()> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        let quiet = self.palette.quiet;
        let count = match open.instructions {
            1 => "1 instruction".to_owned(),
            count => format!("{count} instructions"),
        };
        if !open.printed {
            let line = self.entry_line(&open);
            self.leaf_line(format!("{line}  {quiet}{count}{quiet:#}"))?;
        } else if left == Left::Returned {
            let margin = indent(open.depth);
            self.line(&format!("{:margin$}{quiet}└ {}  {count}{quiet:#}", "", open.name))?;
        }
        if !open.interrupts {
            self.count(open.instructions);
        }
        Ok(())
    }

    fn event(&mut self, event: &EventKind) -> io::Result<()> {
        let Some(text) = marked_event(&self.code, event) else { return Ok(()) };
        match event {
            EventKind::TraceOn(_) => {
                self.close_deeper_than(None, Left::Unknown)?;
                let style = self.palette.quiet;
                self.line(&format!("{style}{}{style:#}", rule(&text)))
            }
            EventKind::Exception { .. } => {
                let depth = self.calls.depth().saturating_sub(1);
                self.close_deeper_than(Some(depth), Left::Returned)?;
                self.print_open()?;
                let style = self.palette.exception;
                self.line(&format!("{:1$}{style}▸ {text}{style:#}", "", indent(depth)))
            }
            _ => self.close_deeper_than(Some(self.calls.depth()), Left::Returned),
        }
    }

    fn gap(&mut self, reason: GapReason, text: &str) -> io::Result<()> {
        if let GapReason::NoCode(at) = reason {
            self.close_deeper_than(Some(self.calls.depth()), Left::Returned)?;
            self.print_open()?;
            let quiet = self.palette.quiet;
            let margin = indent(self.calls.depth());
            let name = place_name(&*self.code.symbols, at.address);
            return self.leaf_line(format!("{:margin$}{quiet}{name}  not in any image{quiet:#}", ""));
        }
        self.close_deeper_than(None, Left::Unknown)?;
        let style = self.palette.problem;
        self.line(&format!("{style}{}{style:#}", rule(text)))
    }
}

impl<W: Write> Export<FlowRecord> for FunctionTree<W> {
    fn section(&mut self, section: &Section) -> io::Result<()> {
        let head = self.palette.head;
        if !std::mem::take(&mut self.first_section) {
            writeln!(self.out)?;
        }
        writeln!(self.out, "{head}{section}{head:#}")?;
        self.code = Rc::clone(&section.code);
        self.calls = CallDepth::default();
        Ok(())
    }

    fn record(&mut self, record: FlowRecord) -> io::Result<()> {
        let arrival = self.calls.element(&record.element);
        match &record.element {
            Element::Block(block) => self.block(block, arrival.unwrap_or(Arrival::Unknown)),
            Element::Event(event) => self.event(&event.kind),
            Element::Gap(gap) => self.gap(gap.reason, &gap_text(gap)),
        }
    }

    fn end_section(&mut self) -> io::Result<()> {
        self.close_deeper_than(None, Left::Unknown)?;
        self.finish_leaves()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disassembly::Disassembler;
    use crate::export::samples::{block, event, interrupted, taken};
    use crate::symbols::{Frame, Function, Symbols};
    use std::sync::Arc;
    use tracewalk::flow::{BranchKind, Ending};
    use tracewalk::ids::Exception;
    use tracewalk::ids::Isa;
    use tracewalk::isa::Return;
    use tracewalk::program::Program;
    use tracewalk::span::CaptureOffset;

    /// Functions of 0x100 bytes each, named by their start.
    struct Pages;

    impl Symbols for Pages {
        fn function(&self, address: Address) -> Option<Function<'_>> {
            let names = ["zero", "main", "sort", "swap", "handler"];
            let name = names.get(usize::try_from(address.0 / 0x100).ok()?)?;
            Some(Function { name, start: Address(address.0 & !0xff) })
        }
        fn frames(&self, _: Address) -> Vec<Frame> {
            Vec::new()
        }
        fn source_line(&self, _: &str, _: u32) -> Option<String> {
            None
        }
    }

    fn tree(elements: &[Element]) -> String {
        let mut program = Program::new();
        program.add(Address(0), &[0; 0x800]).unwrap();
        let code = Code {
            program: Arc::new(program),
            symbols: Box::new(Pages),
            interrupts: crate::Interrupts::default(),
            disassembler: Box::new(Disassembler::default()),
        };
        let section = Section { id: None, protocol: "mtb", code: Rc::new(code) };
        let mut out = Vec::new();
        let mut tree = FunctionTree::new(&mut out, Palette::PLAIN);
        tree.section(&section).unwrap();
        for &element in elements {
            tree.record(FlowRecord { element, at: CaptureOffset(0) }).unwrap();
        }
        tree.end_section().unwrap();
        String::from_utf8(out).unwrap()
    }

    fn call() -> Ending {
        Ending::Branch { kind: BranchKind::Direct, taken: true, link: true, returns: None }
    }

    fn returns() -> Ending {
        let returns = Some(Return::Function);
        Ending::Branch { kind: BranchKind::Indirect, taken: true, link: false, returns }
    }

    #[test]
    fn functions_that_call_nothing_take_one_line_and_others_two() {
        let text = tree(&[
            block(0x110, 0x114, call()),
            block(0x200, 0x204, call()),
            block(0x300, 0x308, returns()),
            block(0x204, 0x206, returns()),
            block(0x114, 0x118, taken()),
        ]);
        let expected = "\
one source without trace ID, mtb
main+0x10
  sort
    swap  4 instructions
  └ sort  7 instructions
";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_same_call_again_and_again_takes_one_line() {
        let mut elements = Vec::new();
        for index in 0..3 {
            elements.push(block(0x110 + 4 * index, 0x114 + 4 * index, call()));
            elements.push(block(0x300, 0x308, returns()));
        }
        elements.push(block(0x11c, 0x120, taken()));
        let expected = "one source without trace ID, mtb\nmain+0x10\n  swap  4 instructions  ×3\n";
        assert_eq!(tree(&elements), expected);
    }

    #[test]
    fn a_tail_call_takes_the_place_of_its_caller_and_an_exception_is_marked() {
        let exception = EventKind::Exception {
            exception: Some(Exception::M(15)),
            preferred_return: Some(Address(0x302)),
            handler: Some(Location::new(Address(0x400), Isa::T32)),
        };
        let text = tree(&[
            block(0x110, 0x114, call()),
            block(0x200, 0x204, taken()),
            block(0x300, 0x302, interrupted()),
            event(exception),
            block(0x400, 0x402, returns()),
            event(EventKind::ExceptionReturn),
            block(0x302, 0x304, returns()),
            block(0x114, 0x118, taken()),
        ]);
        let expected = "\
one source without trace ID, mtb
main+0x10
  sort  2 instructions
  swap
  ▸ SysTick, returns to 0x00000302 <swap+0x2>
    handler  1 instruction
  └ swap  2 instructions
";
        assert_eq!(text, expected);
    }
}
