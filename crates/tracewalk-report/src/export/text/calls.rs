//! `calls`, and `calls`: the functions that ran, as a tree of calls.

mod options;
mod printer;

use std::sync::Arc;

use std::io::{self, Write};

use tracewalk::flow::{Element, EventKind, GapReason};

use super::{gap_text, marked_event, rule};
use crate::words::CUT;
use tracewalk_analysis::analysis::{FlowSink, Repeated};
use tracewalk_analysis::call_stack::{CallStack, FrameKind};
use tracewalk_analysis::record::FlowRecord;
use tracewalk_analysis::sink::Sink;
use tracewalk_analysis::{Code, CodeInContext, Phase, Section, Windowed};

use printer::{Open, Printer};

pub use options::CallTreeOptions;

/// Writes a tree of calls: a line for the entry of each function and, if it called others, one for its exit.
#[derive(Debug)]
pub struct CallTree<W> {
    calls: CallStack<Open>,
    printer: Printer<W>,
    windowed: Windowed,
    first_section: bool,
}

impl<W: Write> CallTree<W> {
    /// Writes to `out`.
    pub fn new(out: W, options: CallTreeOptions) -> Self {
        let code = Arc::new(Code::unknown());
        Self {
            calls: CallStack::new(Arc::clone(&code)),
            windowed: options.window.begin(&code),
            printer: Printer::new(out, options, CodeInContext::new(code)),
            first_section: true,
        }
    }

    /// The window begins: prints the functions that are running.
    fn open_window(&mut self) {
        let mut depth = 0;
        for frame in self.calls.frames_mut() {
            if let FrameKind::Exception(interruption) = &frame.kind
                && self.printer.is_shown(&frame.mark)
            {
                self.printer.exception_line(depth, interruption);
            }
            depth = frame.mark.depth;
            self.printer.print(frame);
        }
    }

    /// The window ends, or the trace does.
    fn close_window(&mut self) {
        self.calls.finish(&mut self.printer);
        self.printer.finish_leaves();
    }

    fn event(&mut self, event: &EventKind) {
        if let (EventKind::TraceOn(_), Some(text)) = (event, marked_event(&self.printer.code, event)) {
            let style = self.printer.options.look.palette.quiet;
            self.printer.line(&format!("{style}{}{style:#}", rule(&text)));
        }
    }

    fn gap(&mut self, reason: GapReason, text: &str) {
        match reason {
            GapReason::NoCode(_) => {
                if let Some(top) = self.calls.innermost_mut() {
                    top.mark.missing = true;
                }
            }
            _ => {
                let style = self.printer.options.look.palette.problem;
                self.printer.line(&format!("{style}{}{style:#}", rule(text)));
            }
        }
    }
}

impl<W: Write> Sink<FlowRecord> for CallTree<W> {
    fn finish(&mut self, complete: bool) -> io::Result<()> {
        if complete { Ok(()) } else { writeln!(self.printer.out, "{CUT}") }
    }

    fn section(&mut self, section: &Section) -> io::Result<()> {
        let head = self.printer.options.look.palette.head;
        if !std::mem::take(&mut self.first_section) {
            writeln!(self.printer.out)?;
        }
        writeln!(self.printer.out, "{head}{section}{head:#}")?;
        self.printer.section(&section.code);
        self.windowed = self.printer.options.window.begin(&section.code);
        self.calls = CallStack::new(Arc::clone(&section.code));
        Ok(())
    }

    fn record(&mut self, record: FlowRecord) -> io::Result<()> {
        let phase = self.windowed.element(&record.element, record.at);
        match (self.printer.phase, phase) {
            (Phase::After, _) => return Ok(()),
            (Phase::Inside, Phase::After) => self.close_window(),
            (Phase::Before, Phase::Inside) => {
                self.printer.phase = phase;
                self.open_window();
            }
            _ => {}
        }
        self.printer.phase = phase;
        if phase == Phase::After {
            return self.printer.result();
        }
        self.printer.see(&record.element);
        self.calls.element(&record.element, &mut self.printer);
        if phase == Phase::Before {
            return Ok(());
        }
        match &record.element {
            Element::Block(_) | Element::Proof(_) => {}
            Element::Event(event) => self.event(&event.kind),
            Element::Gap(gap) => self.gap(gap.reason, &gap_text(gap)),
        }
        self.printer.result()
    }

    fn end_section(&mut self) -> io::Result<()> {
        self.close_window();
        self.printer.result()
    }
}

impl<W: Write> FlowSink for CallTree<W> {
    fn passage(&mut self, repeated: &Repeated<'_>) -> io::Result<()> {
        if self.printer.phase == Phase::After {
            return Ok(());
        }
        if self.windowed.ahead(repeated) != Some(self.printer.phase) {
            return repeated.records().try_for_each(|record| self.record(record));
        }
        self.windowed.pass(repeated);
        self.calls.passage(repeated, &mut self.printer);
        self.printer.result()
    }

    fn needs_places(&self) -> bool {
        self.printer.options.window.needs_places()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Look;
    use tracewalk::ids::Exception;
    use tracewalk::span::CaptureOffset;
    use tracewalk_analysis::samples::{
        block, call, event, exception, interrupted, page, pages, returns, taken,
    };
    use tracewalk_analysis::{Position, Window};

    fn tree(elements: &[Element]) -> String {
        tree_to(None, elements)
    }

    fn tree_to(depth: Option<usize>, elements: &[Element]) -> String {
        tree_in(Window::default(), depth, elements)
    }

    fn tree_in(window: Window, depth: Option<usize>, elements: &[Element]) -> String {
        let section = Section { id: None, protocol: "mtb", number: 1, code: pages() };
        let mut out = Vec::new();
        let options = CallTreeOptions { look: Look::PLAIN, depth, fold: true, window };
        let mut tree = CallTree::new(&mut out, options);
        tree.section(&section).unwrap();
        for &element in elements {
            tree.record(FlowRecord { element, at: CaptureOffset(0) }).unwrap();
        }
        tree.end_section().unwrap();
        String::from_utf8(out).unwrap()
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
        let text = tree(&[
            block(0x110, 0x114, call()),
            block(0x200, 0x204, taken()),
            block(0x300, 0x302, interrupted()),
            exception(Exception::M(15), Some(0x302), 0x400),
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

    #[test]
    fn what_is_deeper_than_asked_for_is_only_counted() {
        let text = tree_to(
            Some(1),
            &[
                block(0x110, 0x114, call()),
                block(0x200, 0x204, call()),
                block(0x300, 0x308, returns()),
                block(0x204, 0x206, returns()),
                block(0x114, 0x118, taken()),
            ],
        );
        assert_eq!(text, "one source without trace ID, mtb\nmain+0x10\n  sort  7 instructions\n");
    }

    #[test]
    fn a_window_begins_with_the_functions_that_are_running_and_counts_what_is_in_it() {
        let story = [
            block(0x110, 0x114, call()),
            block(0x200, 0x204, interrupted()),
            exception(Exception::M(15), Some(0x204), 0x400),
            block(0x400, 0x402, call()),
            block(0x300, 0x308, returns()),
            block(0x402, 0x404, returns()),
            event(EventKind::ExceptionReturn),
            block(0x204, 0x206, call()),
            block(0x300, 0x308, returns()),
            block(0x206, 0x208, returns()),
        ];
        let window = Window {
            from: Some(Position::Instructions(5).into()),
            to: Some(Position::Instructions(11).into()),
        };
        let expected = "\
one source without trace ID, mtb
main+0x10
  sort
  ▸ SysTick, returns to 0x00000204 <sort+0x4>
    handler
      swap  4 instructions
    └ handler  5 instructions
";
        assert_eq!(tree_in(window, None, &story), expected);
    }

    #[test]
    fn a_supervisor_call_is_counted_to_its_caller_and_an_interrupt_is_not() {
        let interrupted_by = |number| {
            tree(&[
                block(page("main"), page("main") + 2, interrupted()),
                exception(Exception::M(number), Some(page("main") + 2), page("handler")),
                block(page("handler"), page("handler") + 2, returns()),
                event(EventKind::ExceptionReturn),
                block(page("main") + 2, page("main") + 4, returns()),
                block(page("outer") + 2, page("outer") + 4, taken()),
            ])
        };
        assert!(interrupted_by(11).contains("└ main  3 instructions"), "{}", interrupted_by(11));
        assert!(interrupted_by(15).contains("└ main  2 instructions"), "{}", interrupted_by(15));
    }
}
