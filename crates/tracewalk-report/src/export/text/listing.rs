//! `flow`: every instruction that was executed, with its place in the source.

mod output;
mod ready;

use std::io::{self, Write};
use std::rc::Rc;
use std::sync::Arc;

use tracewalk::flow::{Block, BranchKind, Element, Ending, EventKind, Gap, GapReason};
use tracewalk::ids::{Address, Location};

use super::code::{MARGIN, Place, Row, Rows, blanks};
use super::{gap_text, indent, marked_event, quiet_event, rule};
use crate::layout::{Fitted, in_lines, without_middle};
use crate::words::CUT;
use crate::{Look, Palette};
use output::Output;
use ready::{Ready, Way};
use tracewalk_analysis::analysis::{FlowSink, Repeated};
use tracewalk_analysis::call_stack::{Arrival, CallStack, Unobserved};
use tracewalk_analysis::clock::{CycleMeter, Spent};
use tracewalk_analysis::record::{FlowRecord, ItmRecord};
use tracewalk_analysis::sink::Sink;
use tracewalk_analysis::{Code, CodeInContext, Doubt, DoubtChange, Section};

/// Writes a listing.
#[derive(Debug)]
pub struct Listing<W> {
    out: Output<W>,
    options: ListingOptions,
    code: CodeInContext,
    rows: Rows,
    calls: CallStack<()>,
    ready: Ready,
    /// How execution came to the elements of the current passage.
    ways: Vec<Way>,
    /// The call depth of the current element.
    level: usize,
    /// The place of the last instruction; `None` if the next one needs a heading.
    place: Option<Rc<Place>>,
    /// The address after the last instruction.
    next: Option<Address>,
    /// The call depth of the run.
    depth: usize,
    /// Cycles that were spent on the run.
    cycles: u64,
    /// Cycles that were spent on code that could not be followed.
    unfollowed_cycles: u64,
    meter: CycleMeter,
    first_section: bool,
    /// The last report of an ITM, and how often it was repeated.
    itm: Option<(String, u64)>,
    doubt: Doubt,
}

/// The options of a listing.
#[derive(Clone, Copy, Debug)]
pub struct ListingOptions {
    /// The colours and the width.
    pub look: Look,
    /// Lines of source text between the instructions.
    pub source_lines: bool,
}

/// The columns that an instruction has at a width of 80, next to its address and code.
const LEAST_TEXT: usize = 50;

/// The shortest form of a place in the source: its line, in most cases. A place that would be shorter is left out.
const SHORTEST_NOTE: usize = 4;

/// The column at which places in the source are noted after the instructions.
const NOTE_COLUMN: usize = 44;

impl<W: Write> Listing<W> {
    /// Writes to `out`.
    pub fn new(out: W, options: ListingOptions) -> Self {
        let code = Arc::new(Code::unknown());
        Self {
            out: Output::new(Fitted::new(out, options.look.width)),
            options,
            calls: CallStack::new(Arc::clone(&code)),
            ready: Ready::default(),
            ways: Vec::new(),
            level: 0,
            code: CodeInContext::new(code),
            rows: Rows::default(),
            place: None,
            next: None,
            depth: 0,
            cycles: 0,
            unfollowed_cycles: 0,
            meter: CycleMeter::default(),
            first_section: true,
            itm: None,
            doubt: Doubt::default(),
        }
    }

    fn block(&mut self, block: &Block, arrival: Arrival, cycles: u64) -> io::Result<()> {
        // Readers see a branch to the next address as straight code.
        let straight =
            arrival == Arrival::Straight || (arrival == Arrival::Jump && self.next == Some(block.start));
        if !straight {
            self.end_run()?;
        }
        let unfollowed = std::mem::take(&mut self.unfollowed_cycles);
        self.cycles_of(unfollowed, "of code that could not be followed")?;
        self.depth = self.level;
        self.cycles = self.cycles.saturating_add(cycles);
        let mut at = Location::new(block.start, block.isa);
        for _ in 0..block.instructions {
            let Some(row) = self.rows.row(&self.code, &self.options.look.palette, at) else { break };
            self.heading(&row)?;
            let outcome = if at.address == block.last { outcome(block.ending) } else { "" };
            self.instruction(&row, outcome)?;
            self.place = Some(Rc::clone(&row.place));
            at.address = row.next;
        }
        self.next = Some(block.end);
        Ok(())
    }

    /// Prints the instruction's place, as far as it differs from the previous one's.
    fn heading(&mut self, row: &Row) -> io::Result<()> {
        let place = &row.place;
        if !self.place.as_ref().is_some_and(|last| last.same_scope(place)) {
            let margin = self.margin(self.level);
            let room = self.options.look.width.map(|width| width.saturating_sub(margin.len()));
            let heading = row.heading_within(room, &self.options.look.palette);
            self.write_line(&[margin, &heading])?;
        }
        if self.options.source_lines
            && !self.place.as_ref().is_some_and(|last| last.same_line(place))
            && let Some((line, text)) = self.source_line(place)
        {
            let style = self.options.look.palette.source;
            let margin = self.margin(self.level);
            writeln!(self.out, "{margin}{style}{line:>4} │ {text}{style:#}")?;
        }
        Ok(())
    }

    fn source_line(&self, place: &Place) -> Option<(u32, String)> {
        let line = place.line?;
        Some((line, self.code.symbols.source_line(place.file.as_deref()?, line)?))
    }

    fn instruction(&mut self, row: &Row, outcome: &str) -> io::Result<()> {
        let moved_on = self
            .place
            .as_ref()
            .is_some_and(|last| last.same_scope(&row.place) && !last.same_line(&row.place));
        let note = row.place.file_and_line.as_ref().filter(|_| moved_on && !self.options.source_lines);
        let indent = blanks(self.indent(self.level) + 2);
        if outcome.is_empty() && note.is_none() {
            return self.write_line(&[&row.head, indent, &row.text]);
        }
        let Palette { quiet, skipped, .. } = self.options.look.palette;
        write!(self.out, "{}{indent}{}", row.head, row.text)?;
        let mut width = row.width;
        if !outcome.is_empty() {
            write!(self.out, "  {skipped}{outcome}{skipped:#}")?;
            width += 2 + outcome.len();
        }
        let has_room = |room: &usize| *room >= SHORTEST_NOTE;
        let room =
            self.options.look.width.map(|columns| columns.saturating_sub(MARGIN + indent.len() + width + 4));
        if let Some(position) = note.filter(|_| room.as_ref().is_none_or(has_room)) {
            let position = room.map_or(position.into(), |room| without_middle(position, room));
            let padding = NOTE_COLUMN.saturating_sub(width);
            let padding =
                room.map_or(padding, |room| padding.min(room.saturating_sub(position.chars().count())));
            write!(self.out, "{:padding$}  {quiet}; {position}{quiet:#}", "")?;
        }
        writeln!(self.out)
    }

    /// The indentation of code at this depth: less if lines are short.
    fn indent(&self, depth: usize) -> usize {
        let most =
            self.options.look.width.map_or(usize::MAX, |width| width.saturating_sub(MARGIN + 2 + LEAST_TEXT));
        indent(depth).min(most)
    }

    /// The blanks before text at this depth.
    fn margin(&self, depth: usize) -> &'static str {
        blanks(MARGIN + self.indent(depth))
    }

    /// A line that marks an event or a gap, without the middle of its text if that is too long.
    fn rule(&self, text: &str) -> String {
        let room = self.options.look.width.map(|width| width.saturating_sub("── ".chars().count() + 1));
        rule(&room.map_or(text.into(), |room| without_middle(text, room)))
    }

    /// Joins prepared parts, because formatting takes longer than writing.
    fn write_line(&mut self, parts: &[&str]) -> io::Result<()> {
        parts.iter().try_for_each(|part| self.out.write_all(part.as_bytes()))?;
        self.out.write_all(b"\n")
    }

    fn event(&mut self, event: &EventKind) -> io::Result<()> {
        if let Some(text) = marked_event(&self.code, event) {
            self.end_run()?;
            let style = match event {
                EventKind::TraceOn(_) => self.options.look.palette.quiet,
                _ => self.options.look.palette.exception,
            };
            writeln!(self.out, "{style}{}{style:#}", self.rule(&text))?;
        }
        if let Some(text) = quiet_event(event) {
            self.quiet(&text)?;
        }
        Ok(())
    }

    fn gap(&mut self, gap: &Gap) -> io::Result<()> {
        self.end_run()?;
        match gap.reason {
            // Without any image, this is the normal case and not a problem.
            GapReason::NoCode(at) if self.code.program.is_empty() => {
                writeln!(self.out, "{at:#}", at = Target(at))
            }
            _ => {
                let style = self.options.look.palette.problem;
                writeln!(self.out, "{style}{}{style:#}", self.rule(&gap_text(gap)))
            }
        }
    }

    /// Prints that doubt begins or ends.
    fn doubt(&mut self, change: DoubtChange) -> io::Result<()> {
        self.end_run()?;
        let text = match change {
            DoubtChange::Begins { from, .. } => {
                format!("in doubt: what was decoded from {from} on, and what follows")
            }
            DoubtChange::Ends(_) => "no longer in doubt".to_owned(),
        };
        let style = self.options.look.palette.problem;
        writeln!(self.out, "{style}{}{style:#}", self.rule(&text))
    }

    /// Prints the last report of an ITM, once for all repetitions.
    fn end_itm(&mut self) -> io::Result<()> {
        match self.itm.take() {
            None => Ok(()),
            Some((text, 1)) => self.quiet(&text),
            Some((text, times)) => self.quiet(&format!("{text} ({times} times)")),
        }
    }

    fn quiet(&mut self, text: &str) -> io::Result<()> {
        self.quiet_at(self.level, text)
    }

    fn quiet_at(&mut self, depth: usize, text: &str) -> io::Result<()> {
        let quiet = self.options.look.palette.quiet;
        let margin = self.margin(depth);
        let room = self.options.look.width.map_or(usize::MAX, |width| width.saturating_sub(margin.len() + 2));
        let mut sign = "·";
        for line in in_lines(text, room) {
            writeln!(self.out, "{margin}{quiet}{sign} {line}{quiet:#}")?;
            sign = " ";
        }
        Ok(())
    }

    /// The next instruction does not follow the last one.
    fn end_run(&mut self) -> io::Result<()> {
        self.place = None;
        self.next = None;
        match std::mem::take(&mut self.cycles) {
            0 => Ok(()),
            1 => self.quiet_at(self.depth, "1 cycle"),
            cycles => self.quiet_at(self.depth, &format!("{cycles} cycles")),
        }
    }

    /// Cycles that belong to no run.
    fn cycles_of(&mut self, cycles: u64, what: &str) -> io::Result<()> {
        match cycles {
            0 => Ok(()),
            1 => self.quiet(&format!("1 cycle {what}")),
            cycles => self.quiet(&format!("{cycles} cycles {what}")),
        }
    }

    /// Assigns cycles; returns those of the current block.
    fn spend(&mut self, spent: Option<Spent>) -> io::Result<u64> {
        match spent {
            Some(Spent::OnBlock(cycles)) => return Ok(cycles),
            Some(Spent::OnCancelled(cycles)) => self.cycles = self.cycles.saturating_add(cycles),
            Some(Spent::OnUnfollowed(cycles)) => {
                self.unfollowed_cycles = self.unfollowed_cycles.saturating_add(cycles);
            }
            Some(Spent::Untraced(cycles)) => {
                self.end_run()?;
                self.cycles_of(cycles, "that were not traced")?;
            }
            None => {}
        }
        Ok(0)
    }
}

/// The outcome of a block's last instruction, if its text does not show it.
fn outcome(ending: Ending) -> &'static str {
    match ending {
        Ending::ConditionFailed => "(condition failed)",
        Ending::Branch { kind: BranchKind::Barrier, taken: false, .. } => "(condition failed)",
        Ending::Branch { taken: false, .. } => "(not taken)",
        Ending::Branch { taken: true, .. } | Ending::Interrupted => "",
    }
}

/// A place that execution reached, without further information.
struct Target(Location);

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:08x}  … {}", self.0.address, self.0.isa)
    }
}

impl<W: Write> Sink<FlowRecord> for Listing<W> {
    fn shows_itm(&self) -> bool {
        true
    }

    fn itm(&mut self, record: &ItmRecord) -> io::Result<()> {
        let id = record.id.map_or_else(String::new, |id| format!(" {id}"));
        let text = format!("{}{id}, {}", record.protocol.protocol().to_uppercase(), record.event);
        match &mut self.itm {
            Some((last, times)) if *last == text => *times += 1,
            _ => {
                self.end_itm()?;
                self.itm = Some((text, 1));
            }
        }
        Ok(())
    }

    fn section(&mut self, section: &Section) -> io::Result<()> {
        let head = self.options.look.palette.head;
        if !std::mem::take(&mut self.first_section) {
            writeln!(self.out)?;
        }
        writeln!(self.out, "{head}{section}{head:#}")?;
        self.code = CodeInContext::new(Arc::clone(&section.code));
        self.rows = Rows::default();
        self.ready = Ready::default();
        self.calls = CallStack::new(Arc::clone(&section.code));
        self.level = 0;
        self.meter = CycleMeter::default();
        self.doubt = Doubt::default();
        Ok(())
    }

    fn go_on(&mut self, doubt: Doubt) {
        self.doubt = doubt;
    }

    fn finish(&mut self, complete: bool) -> io::Result<()> {
        if complete { Ok(()) } else { writeln!(self.out, "{CUT}") }
    }

    fn record(&mut self, record: FlowRecord) -> io::Result<()> {
        self.end_itm()?;
        self.write_record(&record)
    }

    fn end_section(&mut self) -> io::Result<()> {
        self.end_itm()?;
        let spent = self.meter.finish();
        self.spend(spent)?;
        self.end_run()?;
        let unfollowed = std::mem::take(&mut self.unfollowed_cycles);
        self.cycles_of(unfollowed, "of code that could not be followed")
    }
}

impl<W: Write> FlowSink for Listing<W> {
    fn passage(&mut self, repeated: &Repeated<'_>) -> io::Result<()> {
        if repeated.waited_cycles() > 0 || !self.counts_nothing() {
            return repeated.records().try_for_each(|record| self.record(record));
        }
        self.ways.clear();
        for element in repeated.elements() {
            let arrival = self.calls.element(&element, &mut Unobserved);
            self.ways.push((arrival, self.calls.depth()));
        }
        let Some(lines) = self.ready.find(repeated, (&self.place, self.next), &self.ways) else {
            return self.write_first(repeated);
        };
        self.out.write_all(&lines.text)?;
        self.place.clone_from(&lines.place);
        self.next = lines.next;
        self.level = self.calls.depth();
        if let Some((_, depth)) = self.ways.iter().rfind(|(arrival, _)| arrival.is_some()) {
            self.depth = *depth;
        }
        self.meter.pass(false);
        Ok(())
    }

    fn needs_places(&self) -> bool {
        false
    }
}

impl<W: Write> Listing<W> {
    /// Whether neither cycles nor a report of an ITM wait to be written.
    fn counts_nothing(&self) -> bool {
        self.meter.is_idle()
            && !self.meter.is_lost()
            && self.cycles == 0
            && self.unfollowed_cycles == 0
            && self.itm.is_none()
    }

    /// Writes a passage that the call stack has taken, and keeps the text for the next time.
    #[inline(never)]
    fn write_first(&mut self, repeated: &Repeated<'_>) -> io::Result<()> {
        let (place, next) = (self.place.clone(), self.next);
        let ways = std::mem::take(&mut self.ways);
        self.out.note();
        let mut elements = repeated.records().zip(&ways);
        let result = elements.try_for_each(|(record, (arrival, level))| {
            self.level = *level;
            self.write_element(&record, *arrival)
        });
        let text = self.out.write_noted()?;
        if self.counts_nothing() {
            self.ready.keep((repeated, (&place, next)), &ways, text, (&self.place, self.next));
        }
        self.ways = ways;
        result
    }

    fn write_record(&mut self, record: &FlowRecord) -> io::Result<()> {
        // A gap or an event may change the depth, and is printed at the new one.
        let arrival = self.calls.element(&record.element, &mut Unobserved);
        self.level = self.calls.depth();
        self.write_element(record, arrival)
    }

    /// Writes an element that the call stack has taken.
    fn write_element(&mut self, record: &FlowRecord, arrival: Option<Arrival>) -> io::Result<()> {
        self.code.element(&record.element);
        let spent = self.meter.element(&record.element);
        let cycles = self.spend(spent)?;
        match &record.element {
            Element::Block(block) => self.block(block, arrival.unwrap_or(Arrival::Unknown), cycles)?,
            Element::Event(event) => self.event(&event.kind)?,
            Element::Gap(gap) => self.gap(gap)?,
            Element::Proof(_) => {}
        }
        match self.doubt.element(&record.element, || record.at) {
            Some(change) => self.doubt(change),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tracewalk::ids::{Exception, Isa};
    use tracewalk::program::Program;
    use tracewalk::span::CaptureOffset;
    use tracewalk_analysis::samples::{block, event, gap, interrupted, not_taken, taken};
    use tracewalk_analysis::symbols::{Frame, Function, Symbols};

    /// One function with a line for every four bytes, and another one inlined from 0x108 on.
    struct OneFunction;

    impl Symbols for OneFunction {
        fn function(&self, address: Address) -> Option<Function<'_>> {
            (0x100..0x200)
                .contains(&address.get())
                .then_some(Function { name: "main", start: Address::new(0x100) })
        }

        fn frames(&self, address: Address) -> Arc<[Frame]> {
            let frame = |function: &str| Frame {
                function: Some(function.into()),
                file: Some("/src/main.c".into()),
                line: Some((address.low_word() - 0x100) / 4 + 1),
            };
            if address.get() < 0x108 { [frame("main")].into() } else { [frame("tiny"), frame("main")].into() }
        }

        fn source_line(&self, file: &str, line: u32) -> Option<String> {
            (file == "/src/main.c").then(|| format!("line {line};"))
        }
    }

    fn section(symbols: impl Symbols + 'static) -> Section {
        let mut program = Program::new();
        // movs r0, #1; nop; bne 0x100; nop; ldr r1, [pc, #0]; bx lr; .word 0x12345678
        let code = [1, 0x20, 0, 0xbf, 0xfc, 0xd1, 0, 0xbf, 0, 0x49, 0x70, 0x47, 0x78, 0x56, 0x34, 0x12];
        program.add(Address::new(0x100), &code).unwrap();
        let code = Code {
            program: Arc::new(program),
            symbols: Box::new(symbols),
            profile: tracewalk::ids::Profile::M,
            ..Code::unknown()
        };
        Section { id: None, protocol: "mtb", number: 1, code: Arc::new(code) }
    }

    fn listing(options: ListingOptions, section: &Section, elements: &[Element]) -> String {
        let mut out = Vec::new();
        let mut listing = Listing::new(&mut out, options);
        listing.section(section).unwrap();
        for &element in elements {
            listing.record(FlowRecord { element, at: CaptureOffset(0) }).unwrap();
        }
        listing.end_section().unwrap();
        String::from_utf8(out).unwrap()
    }

    const PLAIN: ListingOptions = ListingOptions { look: Look::PLAIN, source_lines: false };

    #[test]
    fn instructions_have_their_place_and_what_became_of_them() {
        let text = listing(
            PLAIN,
            &section(OneFunction),
            &[block(0x100, 0x106, taken()), block(0x100, 0x106, not_taken()), block(0x106, 0x10c, taken())],
        );
        let expected = "\
one source without trace ID, mtb
                    main  main.c:1
00000100  2001        movs    r0, #1
00000102  bf00        nop
00000104  d1fc        bne     0x100 <main>                          ; main.c:2
                    main  main.c:1
00000100  2001        movs    r0, #1
00000102  bf00        nop
00000104  d1fc        bne     0x100 <main>  (not taken)             ; main.c:2
00000106  bf00        nop
                    main+0x8 › tiny  main.c:3
00000108  4900        ldr     r1, 0x10c = 0x12345678
0000010a  4770        bx      lr
";
        assert_eq!(text, expected);
    }

    #[test]
    fn source_lines_stand_in_front_of_their_instructions() {
        let options = ListingOptions { source_lines: true, ..PLAIN };
        let text = listing(options, &section(OneFunction), &[block(0x102, 0x106, taken())]);
        let expected = "\
one source without trace ID, mtb
                    main+0x2  main.c:1
                       1 │ line 1;
00000102  bf00        nop
                       2 │ line 2;
00000104  d1fc        bne     0x100 <main>
";
        assert_eq!(text, expected);
    }

    #[test]
    fn what_happens_between_instructions_has_lines_of_its_own() {
        let exception = EventKind::Exception {
            exception: Some(Exception::M(3)),
            preferred_return: Some(Address::new(0x206f_6f74)),
            handler: None,
        };
        let text = listing(
            PLAIN,
            &section(OneFunction),
            &[
                event(EventKind::Cycles(3)),
                block(0x106, 0x108, interrupted()),
                event(EventKind::Timestamp(17)),
                event(exception),
                gap(GapReason::NoCode(Location::new(Address::new(0x800), Isa::T32))),
            ],
        );
        let expected = "\
one source without trace ID, mtb
                    main+0x6  main.c:2
00000106  bf00        nop
                    · timestamp 17
                    · 3 cycles
── HardFault, returns to 0x206f6f74 (in no image) ────────────────────────────
── no image holds 0x00000800 (T32) ───────────────────────────────────────────
";
        assert_eq!(text, expected);
    }

    #[test]
    fn without_any_image_the_places_that_the_trace_names_are_no_defects() {
        let section = Section { id: None, protocol: "mtb", number: 1, code: Arc::new(Code::unknown()) };
        let text =
            listing(PLAIN, &section, &[gap(GapReason::NoCode(Location::new(Address::new(0x800), Isa::A32)))]);
        assert_eq!(text, "one source without trace ID, mtb\n00000800  … A32\n");
    }
}
