//! Hands on the notes of logs, in order.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use tracewalk::flow::{Element, EventKind, Placing};
use tracewalk::span::StreamOffset;

use super::named::{Entry, Named, PASSAGE};
use super::numbers::Numbers;
use super::{Log, Other};
use crate::analysis::{FlowSink, Repeated};
use crate::record::FlowRecord;
use crate::{Doubt, DoubtChange, Doubtful, Trusted};

/// Hands the notes of logs to an sink, without elements in doubt if these are left out.
///
/// Notes that may still fall into doubt wait. While elements are in doubt, [`Trusted`] takes over.
#[derive(Debug)]
pub struct Reader {
    treatment: Treatment,
    doubt: Doubt,
    /// Whether elements are in doubt, so that everything passes through `trusted`.
    weighs: bool,
    /// The logs that wait, the oldest first.
    waiting: VecDeque<Notes>,
    trusted: Trusted,
    /// The contents of each set of numbers, the newest last.
    names: Vec<Names>,
    /// The number of sets so far.
    generations: u32,
    is_in_context: InContext,
}

/// What happens to elements in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Treatment {
    LeftOut,
    Kept,
    /// Handed on as elements in doubt.
    Marked,
}

/// Whether the last context that the sink took has a context ID or a VMID. Passages that state contexts are then handed on
/// element by element, because they end that context.
#[derive(Clone, Copy, Debug, Default)]
struct InContext(bool);

/// The contents of a set of numbers.
#[derive(Debug)]
struct Names {
    numbers: Arc<Numbers>,
    generation: u32,
    named: Vec<Named>,
}

/// A log that is being read.
#[derive(Debug)]
struct Notes {
    log: Log,
    generation: u32,
    /// The indices of the next entry, and of the next items in the log's other lists.
    entry: usize,
    place: usize,
    other: usize,
    waiting: usize,
}

/// A note.
enum Note<'a> {
    Passage(Repeated<'a>),
    Record(FlowRecord),
}

/// All places.
const EVERYTHING: StreamOffset = StreamOffset(u64::MAX);

/// The furthest before the newest byte that a loss found there may begin.
const LATE: u64 = 1 << 14;

impl Reader {
    /// Nothing was read yet. `weighs_doubt`: whether the sink [takes elements in doubt](FlowSink::doubtful) itself.
    #[must_use]
    pub fn new(doubtful: Doubtful, weighs_doubt: bool) -> Self {
        let treatment = match doubtful {
            _ if weighs_doubt => Treatment::Marked,
            Doubtful::Drop => Treatment::LeftOut,
            Doubtful::Keep => Treatment::Kept,
        };
        Self {
            treatment,
            doubt: Doubt::default(),
            weighs: false,
            waiting: VecDeque::new(),
            trusted: Trusted::default(),
            names: Vec::new(),
            generations: 0,
            is_in_context: InContext::default(),
        }
    }

    /// Takes the next part.
    ///
    /// # Errors
    ///
    /// The first error of the sink.
    pub fn part<S: FlowSink>(&mut self, log: Log, sink: &mut S) -> io::Result<()> {
        let generation = self.update(&log.known.numbers);
        let marks = match self.treatment {
            Treatment::Kept => Vec::new(),
            Treatment::LeftOut | Treatment::Marked => log.marks().collect::<Vec<_>>(),
        };
        self.waiting.push_back(Notes { log, generation, entry: 0, place: 0, other: 0, waiting: 0 });
        for mark in marks {
            self.mark(&mark, sink)?;
        }
        if self.weighs || self.treatment == Treatment::Kept {
            self.hand_on(usize::MAX, EVERYTHING, sink)
        } else {
            self.hand_on_old(sink)
        }
    }

    /// The trace ends here: nothing can put the waiting notes in doubt.
    ///
    /// # Errors
    ///
    /// The first error of the sink.
    pub fn finish<S: FlowSink>(&mut self, sink: &mut S) -> io::Result<()> {
        self.hand_on(usize::MAX, EVERYTHING, sink)
    }

    /// The number of instructions that were left out.
    #[must_use]
    pub const fn left_out(&self) -> u64 {
        self.trusted.left_out()
    }

    /// Takes a gap or a proof of the newest part: the notes before it become certain, or fall into doubt.
    fn mark<S: FlowSink>(&mut self, mark: &Other, sink: &mut S) -> io::Result<()> {
        let entry = mark.entry as usize;
        let before = self.doubt;
        let change = self.doubt.element(&mark.element, || mark.at);
        if self.weighs {
            self.hand_on(entry + 1, EVERYTHING, sink)?;
        } else if let Some(DoubtChange::Begins { .. }) = change {
            self.trusted.go_on(before);
            self.weighs = true;
            self.hand_on(entry + 1, EVERYTHING, sink)?;
        } else if matches!(mark.element, Element::Proof(_)) {
            let proven = mark.element.span().start;
            self.hand_on(entry, proven, sink)?;
        }
        self.weighs = self.doubt.is_open();
        Ok(())
    }

    /// Hands on the parts that doubt can no longer reach, so that memory is bounded.
    fn hand_on_old<S: FlowSink>(&mut self, sink: &mut S) -> io::Result<()> {
        let Some(newest) = self.waiting.back().map(|notes| notes.log.newest) else { return Ok(()) };
        let certain = newest.0.saturating_sub(Doubt::REACH + LATE);
        let is_old = |notes: &Notes| notes.log.newest.0 + PASSAGE < certain;
        while self.waiting.front().is_some_and(is_old) {
            self.hand_on_first(usize::MAX, EVERYTHING, sink)?;
        }
        Ok(())
    }

    /// Hands on waiting notes, up to this entry of the newest part, as long as they end by a place.
    fn hand_on<S: FlowSink>(&mut self, entry: usize, up_to: StreamOffset, sink: &mut S) -> io::Result<()> {
        while self.waiting.len() > 1 {
            if !self.hand_on_first(usize::MAX, up_to, sink)? {
                return Ok(());
            }
        }
        self.hand_on_first(entry, up_to, sink).map(drop)
    }

    /// Hands on waiting notes of the oldest part up to this entry, as long as they end by a place. Returns whether all of them do.
    #[inline(never)]
    fn hand_on_first<S: FlowSink>(
        &mut self,
        entry: usize,
        up_to: StreamOffset,
        sink: &mut S,
    ) -> io::Result<bool> {
        let Self { waiting, names, trusted, weighs, treatment, is_in_context, .. } = self;
        let Some(notes) = waiting.front_mut() else { return Ok(true) };
        let known = names.iter().find(|names| names.generation == notes.generation);
        let named = known.map_or(&[][..], |names| &names.named);
        let end = entry.min(notes.log.entries.len());
        while notes.entry < end {
            // Most notes are passages without doubt.
            if !*weighs && notes.log.places.is_empty() {
                let all = notes.hand_on_passages(end, (named, *is_in_context), up_to, sink)?;
                if !all {
                    return Ok(false);
                }
                if notes.entry >= end {
                    break;
                }
            }
            // The others are not compiled for each sink.
            match notes.hand_on_note(named, up_to, (trusted, *weighs, *treatment), is_in_context, sink)? {
                Some(true) => {}
                Some(false) => return Ok(false),
                None => break,
            }
        }
        if notes.entry >= notes.log.entries.len() {
            waiting.pop_front();
        }
        Ok(true)
    }

    /// Updates the contents of a set of numbers. Returns the number of the set.
    fn update(&mut self, numbers: &Arc<Numbers>) -> u32 {
        let known = self.names.iter().position(|names| Arc::ptr_eq(&names.numbers, numbers));
        let index = known.unwrap_or_else(|| {
            let waiting = &self.waiting;
            let newest = self.generations;
            self.names.retain(|names| {
                names.generation == newest || waiting.iter().any(|notes| notes.generation == names.generation)
            });
            self.generations += 1;
            let numbers = Arc::clone(numbers);
            self.names.push(Names { numbers, generation: self.generations, named: Vec::new() });
            self.names.len() - 1
        });
        self.names.get_mut(index).map_or(0, |names| {
            names.numbers.update(&mut names.named);
            names.generation
        })
    }
}

/// Hands on a record near doubt.
fn weigh(
    record: FlowRecord,
    trusted: &mut Trusted,
    treatment: Treatment,
    is_in_context: &mut InContext,
    sink: &mut dyn FlowSink,
) -> io::Result<()> {
    if treatment == Treatment::Marked {
        trusted.weigh(record, &mut |record, is_doubtful| is_in_context.hand_on(record, is_doubtful, sink))
    } else {
        trusted.record(record, &mut |record| is_in_context.hand_on(record, false, sink))
    }
}

impl InContext {
    /// Hands on a record.
    fn hand_on(&mut self, record: FlowRecord, is_doubtful: bool, sink: &mut dyn FlowSink) -> io::Result<()> {
        if let Element::Event(event) = &record.element
            && let EventKind::Context { context_id, vmid, .. } = event.kind
        {
            self.0 = context_id.is_some() || vmid.is_some();
        }
        if is_doubtful { sink.doubtful(record) } else { sink.record(record) }
    }
}

impl Notes {
    /// Hands on passages with numbers up to this entry, or up to the first other note. Returns whether all of them end by
    /// a place.
    #[inline]
    fn hand_on_passages<S: FlowSink>(
        &mut self,
        end: usize,
        (named, is_in_context): (&[Named], InContext),
        up_to: StreamOffset,
        sink: &mut S,
    ) -> io::Result<bool> {
        let base = self.log.base.map_or(0, |base| base.0);
        for Entry { number, at } in self.log.entries.get(self.entry..end).unwrap_or_default() {
            // Other entries have numbers that no passage has.
            let Some(known) = named.get(*number as usize) else { break };
            if known.states_context && is_in_context.0 {
                break;
            }
            let origin = StreamOffset(base + u64::from(*at));
            let repeated = Repeated::new(known, (self.generation, *number), Placing::at(origin));
            if repeated.end() > up_to {
                return Ok(false);
            }
            sink.passage(&repeated)?;
            self.entry += 1;
        }
        Ok(true)
    }

    /// Hands on the next note; `None` if there is none, false if it ends after a place.
    fn hand_on_note(
        &mut self,
        named: &[Named],
        up_to: StreamOffset,
        (trusted, weighs, treatment): (&mut Trusted, bool, Treatment),
        is_in_context: &mut InContext,
        sink: &mut dyn FlowSink,
    ) -> io::Result<Option<bool>> {
        let Some((note, ends)) = self.peek(named) else { return Ok(None) };
        if ends > up_to {
            return Ok(Some(false));
        }
        let was_in_context = is_in_context.0;
        match note {
            Note::Passage(repeated) if weighs => {
                let mut records = repeated.records();
                records.try_for_each(|record| weigh(record, trusted, treatment, is_in_context, sink))?;
            }
            Note::Record(record) if weighs => weigh(record, trusted, treatment, is_in_context, sink)?,
            Note::Passage(repeated) if was_in_context && repeated.states_context() => {
                let mut records = repeated.records();
                records.try_for_each(|record| is_in_context.hand_on(record, false, sink))?;
            }
            Note::Passage(repeated) => sink.passage(&repeated)?,
            Note::Record(record) => is_in_context.hand_on(record, false, sink)?,
        }
        self.advance();
        Ok(Some(true))
    }

    /// The next note, and a place after the start of all of its elements.
    #[inline]
    fn peek<'a>(&self, named: &'a [Named]) -> Option<(Note<'a>, StreamOffset)> {
        let Entry { number, at } = *self.log.entries.get(self.entry)?;
        let (number, placing) = match number {
            Entry::OTHER => {
                let Other { element, at, .. } = *self.log.others.get(self.other)?;
                let start = element.span().start;
                return Some((Note::Record(FlowRecord { element, at }), StreamOffset(start.0 + 1)));
            }
            Entry::WAITING => *self.log.waiting.get(self.waiting)?,
            number => {
                let base = self.log.base.map_or(0, |base| base.0);
                (number, Placing::at(StreamOffset(base + u64::from(at))))
            }
        };
        let known = named.get(number as usize)?;
        let repeated = Repeated::new(known, (self.generation, number), placing);
        let ends = repeated.end();
        if let Some(at) = self.log.places.get(self.place) {
            let element = repeated.elements().next()?;
            return Some((Note::Record(FlowRecord { element, at: *at }), ends));
        }
        Some((Note::Passage(repeated), ends))
    }

    #[inline]
    fn advance(&mut self) {
        match self.log.entries.get(self.entry).map(|entry| entry.number) {
            Some(Entry::OTHER) => self.other += 1,
            Some(Entry::WAITING) => self.waiting += 1,
            _ => self.place += 1,
        }
        self.entry += 1;
    }
}
