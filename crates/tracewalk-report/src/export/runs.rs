//! `runs`: the executed instructions in the smallest form, one item a line (docs/formats.md).

use std::io::{self, Write};

use tracewalk::flow::{Block, Element, EventKind, GapReason};
use tracewalk::ids::{Address, Isa};
use tracewalk::isa::Unclassified;
use tracewalk::span::CaptureOffset;

use super::json::{push_address, push_decimal};
use tracewalk_analysis::Section;
use tracewalk_analysis::analysis::FlowSink;
use tracewalk_analysis::record::FlowRecord;
use tracewalk_analysis::sink::{Growth, Join, Part, Sink};

/// Writes `runs`.
#[derive(Debug)]
pub struct Runs<W> {
    out: W,
    lines: Lines,
    /// Lines are written out once they have this number of bytes.
    enough: usize,
}

/// The lines of a part of a section.
#[derive(Clone, Debug, Default)]
pub struct RunsPart {
    /// The run at the start of the part, which the previous part may have begun.
    first: Option<Run>,
    /// The lines after it; `None` until something ends it.
    rest: Option<Lines>,
}

/// Lines not yet written out, to write them in few calls.
#[derive(Clone, Debug, Default)]
struct Lines {
    text: Vec<u8>,
    /// The run that may still grow, after them.
    open: Option<Run>,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    start: Address,
    end: Address,
    isa: Isa,
}

/// The number of bytes that are worth a call.
const ENOUGH: usize = 1 << 14;

impl<W: Write> Runs<W> {
    /// Writes to `out`.
    pub const fn new(out: W) -> Self {
        Self { out, lines: Lines { text: Vec::new(), open: None }, enough: ENOUGH }
    }

    /// Holds no line back, for a reader that waits for the next one.
    #[must_use]
    pub fn at_once(self) -> Self {
        Self { enough: 1, ..self }
    }

    fn write_out(&mut self) -> io::Result<()> {
        self.out.write_all(&self.lines.text)?;
        self.lines.text.clear();
        Ok(())
    }
}

impl Run {
    /// Makes the run longer, if `next` continues where it ends.
    #[inline]
    fn grow(&mut self, next: Self) -> bool {
        let goes_on = self.end == next.start && self.isa == next.isa;
        if goes_on {
            self.end = next.end;
        }
        goes_on
    }
}

impl From<&Block> for Run {
    #[inline]
    fn from(block: &Block) -> Self {
        Self { start: block.start, end: block.end, isa: block.isa }
    }
}

impl Lines {
    #[inline]
    fn element(&mut self, element: &Element) {
        match element {
            Element::Block(block) => self.run(block.into()),
            Element::Event(event) => self.event(event.kind),
            Element::Gap(gap) => self.gap(gap.reason),
            Element::Proof(_) => {}
        }
    }

    #[inline]
    fn run(&mut self, run: Run) {
        if !self.open.as_mut().is_some_and(|open| open.grow(run)) {
            self.close_run();
            self.open = Some(run);
        }
    }

    // Events and gaps are rare. Out of line, so that the path of blocks stays short and builds no spans.
    #[inline(never)]
    fn event(&mut self, event: EventKind) {
        match event {
            EventKind::TraceOn(_) => self.line(b"O"),
            EventKind::Exception { exception, preferred_return, .. } => {
                self.close_run();
                self.text.extend_from_slice(b"X ");
                match exception {
                    Some(exception) => push_decimal(&mut self.text, exception.number().into()),
                    None => self.text.push(b'-'),
                }
                self.text.push(b' ');
                match preferred_return {
                    Some(address) => push_address(&mut self.text, address, 1),
                    None => self.text.push(b'-'),
                }
                self.text.push(b'\n');
            }
            EventKind::ExceptionReturn => self.line(b"T"),
            // Runs go on through these.
            // The format has no line for other events.
            _ => {}
        }
    }

    #[inline(never)]
    fn gap(&mut self, reason: GapReason) {
        match reason {
            // If an image ends inside an instruction, no image holds the instruction.
            GapReason::NoCode(at) | GapReason::Undecodable(at, Unclassified::Truncated) => {
                self.close_run();
                self.text.extend_from_slice(b"N ");
                push_address(&mut self.text, at.address, 1);
                self.text.push(b'\n');
            }
            GapReason::Unseen { from, instructions, then } => {
                self.close_run();
                self.text.extend_from_slice(b"Q ");
                match from {
                    Some(from) => push_address(&mut self.text, from.address, 1),
                    None => self.text.push(b'-'),
                }
                self.text.push(b' ');
                push_address(&mut self.text, then.address, 1);
                self.text.extend_from_slice(format!(" {}\n", instructions.unwrap_or(0)).as_bytes());
            }
            // For every other reason, the place of execution is unknown.
            _ => self.line(b"U"),
        }
    }

    fn line(&mut self, line: &[u8]) {
        self.close_run();
        self.text.extend_from_slice(line);
        self.text.push(b'\n');
    }

    fn close_run(&mut self) {
        let Some(run) = self.open.take() else { return };
        self.text.extend_from_slice(b"R ");
        push_address(&mut self.text, run.start, 1);
        self.text.push(b' ');
        push_address(&mut self.text, run.end, 1);
        self.text.push(b' ');
        self.text.extend_from_slice(run.isa.word().as_bytes());
        self.text.push(b'\n');
    }
}

impl<W: Write> Sink<FlowRecord> for Runs<W> {
    fn begin(&mut self) -> io::Result<()> {
        self.out.write_all(b"# tracewalk runs 1\n")
    }

    fn section(&mut self, section: &Section) -> io::Result<()> {
        match section.id {
            Some(id) => writeln!(self.out, "S {:02x}", id.get()),
            None => self.out.write_all(b"S -\n"),
        }
    }

    fn record(&mut self, record: FlowRecord) -> io::Result<()> {
        self.lines.element(&record.element);
        if self.lines.text.len() >= self.enough { self.write_out() } else { Ok(()) }
    }

    fn cut(&mut self, at: CaptureOffset) -> io::Result<()> {
        self.lines.line(format!("# cut {:x}", at.0).as_bytes());
        Ok(())
    }

    fn end_section(&mut self) -> io::Result<()> {
        self.lines.close_run();
        self.write_out()
    }
}

impl<W: Write> FlowSink for Runs<W> {}

impl<W: Write> Join for Runs<W> {
    type Part = RunsPart;

    fn part(&self) -> RunsPart {
        RunsPart::default()
    }

    fn growth(&self) -> Growth {
        Growth::Lines
    }

    fn join(&mut self, part: RunsPart) -> io::Result<()> {
        let RunsPart { first, rest } = part;
        if let Some(run) = first {
            self.lines.run(run);
        }
        let Some(Lines { text, open }) = rest else { return Ok(()) };
        self.lines.close_run();
        self.write_out()?;
        self.lines.open = open;
        self.out.write_all(&text)
    }
}

impl Part for RunsPart {
    #[inline]
    fn element(&mut self, element: &Element, _: impl FnOnce() -> CaptureOffset) {
        match &mut self.rest {
            Some(lines) => lines.element(element),
            None => self.begin(element),
        }
    }
}

impl RunsPart {
    /// Takes an element before anything has ended the first run.
    fn begin(&mut self, element: &Element) {
        if let Element::Block(block) = element {
            let Some(first) = &mut self.first else {
                self.first = Some(block.into());
                return;
            };
            if first.grow(block.into()) {
                return;
            }
        }
        let mut lines = Lines::default();
        lines.element(element);
        if lines.open.is_some() || !lines.text.is_empty() {
            self.rest = Some(lines);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracewalk::directive::BeginReason;
    use tracewalk::flow::Contradiction;
    use tracewalk::ids::{Exception, Location, TraceId};
    use tracewalk::span::CaptureOffset;
    use tracewalk_analysis::samples::*;

    fn runs(elements: &[Element]) -> String {
        let mut out = Vec::new();
        export(&mut Runs::new(&mut out), TraceId::new(2), elements);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_run_goes_on_through_what_does_not_leave_it() {
        let text = runs(&[
            event(EventKind::TraceOn(BeginReason::Enabled)),
            block(0x100, 0x104, not_taken()),
            event(EventKind::Timestamp(5)),
            block(0x104, 0x108, interrupted()),
            event(EventKind::Cycles(5)),
            event(EventKind::Trigger),
            // A taken branch to the next address does not show.
            block(0x108, 0x10a, taken()),
            block(0x10a, 0x10c, taken()),
            block(0x200, 0x202, taken()),
        ]);
        assert_eq!(text, "# tracewalk runs 1\nS 02\nO\nR 100 10c t32\nR 200 202 t32\n");
    }

    #[test]
    fn a_change_of_instruction_set_ends_a_run() {
        let mut a32 = block(0x104, 0x108, taken());
        let Element::Block(inner) = &mut a32 else { unreachable!("block() makes a block") };
        inner.isa = Isa::A32;
        let text = runs(&[block(0x100, 0x104, taken()), a32]);
        assert_eq!(text, "# tracewalk runs 1\nS 02\nR 100 104 t32\nR 104 108 a32\n");
    }

    #[test]
    fn events_and_gaps_end_runs_even_where_execution_goes_straight_on() {
        let exception = |exception, preferred_return| {
            event(EventKind::Exception { exception, preferred_return, handler: None })
        };
        let at = Location::new(Address::new(0xc005_8100), Isa::T32);
        let text = runs(&[
            block(0x100, 0x102, interrupted()),
            exception(Some(Exception::M(15)), Some(Address::new(0x102))),
            block(0x102, 0x104, taken()),
            event(EventKind::ExceptionReturn),
            block(0x104, 0x106, interrupted()),
            exception(None, None),
            gap(GapReason::NoCode(at)),
            gap(GapReason::AddressUnknown),
            block(0x106, 0x108, interrupted()),
            event(EventKind::TraceOn(BeginReason::Overflow)),
            block(0x108, 0x10a, interrupted()),
            gap(GapReason::Contradiction(Contradiction::UnconditionalFailed(at))),
        ]);
        let expected = "# tracewalk runs 1\nS 02\nR 100 102 t32\nX 15 102\nR 102 104 t32\nT\nR 104 106 t32\nX - -\n\
                        N c0058100\nU\nR 106 108 t32\nO\nR 108 10a t32\nU\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_line_is_written_out_at_once_where_somebody_waits_for_it() {
        let written = |mut runs: Runs<Vec<u8>>| {
            for address in [0x100, 0x200] {
                let Element::Block(block) = block(address, address + 2, taken()) else { unreachable!() };
                let record = FlowRecord { element: Element::Block(block), at: CaptureOffset(0) };
                runs.record(record).unwrap();
            }
            String::from_utf8(runs.out).unwrap()
        };
        assert_eq!(written(Runs::new(Vec::new()).at_once()), "R 100 102 t32\n");
        assert_eq!(written(Runs::new(Vec::new())), "");
    }

    #[test]
    fn a_capture_without_ids_is_one_section_without_an_id() {
        let mut out = Vec::new();
        export(&mut Runs::new(&mut out), None, &[block(0, 2, taken())]);
        assert_eq!(out, b"# tracewalk runs 1\nS -\nR 0 2 t32\n");
    }

    #[test]
    fn cuts_do_not_show() {
        let elements = [
            block(0x100, 0x104, not_taken()),
            event(EventKind::Timestamp(5)),
            block(0x104, 0x108, interrupted()),
            event(EventKind::ExceptionReturn),
            block(0x108, 0x10a, taken()),
            block(0x10a, 0x10c, taken()),
            block(0x200, 0x202, taken()),
            gap(GapReason::TraceLost),
            event(EventKind::Cycles(1)),
        ];
        let whole = runs(&elements);
        for first in 0..=elements.len() {
            for second in first..=elements.len() {
                let mut out = Vec::new();
                let mut runs = Runs::new(&mut out);
                export(&mut runs, TraceId::new(2), &[]);
                for range in [0..first, first..second, second..elements.len()] {
                    let mut part = RunsPart::default();
                    elements[range].iter().for_each(|element| part.element(element, || CaptureOffset(0)));
                    runs.join(part).unwrap();
                }
                runs.end_section().unwrap();
                assert_eq!(String::from_utf8(out).unwrap(), whole, "cut at {first} and {second}");
            }
        }
    }
}
