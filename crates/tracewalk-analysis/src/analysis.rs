//! [`FlowSink`] takes the program flow of sources, by elements and by passages; an [`Analysis`] also gives an answer.
//!
//! Elements come one by one, or as whole [passages](Repeated) (stretches that repeat), in the order of the trace. The answer does not
//! depend on how they come. `Session::run` of `tracewalk-session` runs an analysis over a source of an open capture. A borrowed sink
//! is an analysis without an answer.

use std::io;
use std::sync::Arc;

use tracewalk::flow::{Element, KeptPassage, Placing, Totals};
use tracewalk::span::{CaptureOffset, StreamOffset};

use crate::log::Named;
use crate::record::FlowRecord;
use crate::sink::{Nothing, Sink};
use crate::{InDoubt, Statistics};

/// Takes program flow.
pub trait FlowSink: Sink<FlowRecord> {
    /// Takes elements that repeat, by default one by one.
    ///
    /// # Errors
    ///
    /// If an output cannot be written.
    fn passage(&mut self, repeated: &Repeated<'_>) -> io::Result<()> {
        repeated.records().try_for_each(|record| self.record(record))
    }

    /// Whether the elements' offsets in the capture are needed. If not, [`FlowRecord::at`] is 0 for blocks and for elements of
    /// passages, and passages go to [`FlowSink::passage`].
    fn needs_places(&self) -> bool {
        true
    }

    /// Whether elements in doubt are taken too, through [`FlowSink::doubtful`].
    fn weighs_doubt(&self) -> bool {
        false
    }

    /// Takes an element that is in doubt, if the sink weighs doubt.
    ///
    /// # Errors
    ///
    /// If an output cannot be written.
    fn doubtful(&mut self, record: FlowRecord) -> io::Result<()> {
        self.record(record)
    }
}

/// Takes the program flow of one source, and has an answer at its end.
pub trait Analysis: FlowSink {
    /// The answer.
    type Found;

    /// The answer, now that the source has ended.
    fn answer(self, end: &End) -> Self::Found;

    /// How instructions in doubt were treated, if this analysis weighs doubt.
    fn in_doubt(_found: &Self::Found) -> Option<InDoubt> {
        None
    }
}

impl<S: FlowSink + ?Sized> Analysis for &mut S {
    type Found = ();

    fn answer(self, _: &End) {}
}

impl FlowSink for Nothing {
    fn passage(&mut self, _: &Repeated<'_>) -> io::Result<()> {
        Ok(())
    }

    fn needs_places(&self) -> bool {
        false
    }
}

/// A passage: elements that repeat, in order. They are blocks, exceptions, returns from exceptions, cycles, and changes of the
/// exception level or of the security state in a context without context ID and VMID.
#[derive(Clone, Copy, Debug)]
pub struct Repeated<'a> {
    named: &'a Named,
    key: (u32, u32),
    placing: Placing,
}

impl<'a> Repeated<'a> {
    /// The elements with this number, placed in the trace. The key is the set and the number in the set; equal elements have
    /// equal keys.
    pub(crate) const fn new(named: &'a Named, key: (u32, u32), placing: Placing) -> Self {
        Self { named, key, placing }
    }

    /// The set of its number. A new set begins once many numbers have been given out.
    #[inline]
    #[must_use]
    pub const fn set(&self) -> u32 {
        self.key.0
    }

    /// The number in the set. Equal numbers mean equal elements, apart from their places and [`Repeated::waited_cycles`].
    #[inline]
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.key.1
    }

    /// An offset after the start of all elements, close to the end of the passage's trace.
    #[inline]
    #[must_use]
    pub const fn end(&self) -> StreamOffset {
        StreamOffset(self.placing.origin().0 + self.named.bytes)
    }

    /// The number of the first block's cycles that the trace states before the passage.
    #[inline]
    #[must_use]
    pub fn waited_cycles(&self) -> u64 {
        self.placing.waited_cycles()
    }

    /// The totals.
    #[inline]
    #[must_use]
    pub const fn totals(&self) -> Totals {
        self.named.totals
    }

    /// The elements.
    pub fn elements(&self) -> impl Iterator<Item = Element> + use<'a> {
        self.named.passage.placed(self.placing).elements()
    }

    /// The elements as records without valid places.
    pub fn records(&self) -> impl Iterator<Item = FlowRecord> + use<'a> {
        self.elements().map(|element| FlowRecord { element, at: CaptureOffset(0) })
    }

    /// A copy to keep.
    #[must_use]
    pub fn keep(&self) -> Kept {
        let waited = self.placing.waits().then(|| Box::new(self.placing));
        Kept { passage: Arc::clone(&self.named.passage), origin: self.placing.origin(), waited }
    }

    /// The passage without its place.
    pub(crate) const fn passage(&self) -> &Arc<KeptPassage> {
        &self.named.passage
    }

    /// Whether the elements state contexts.
    pub(crate) const fn states_context(&self) -> bool {
        self.named.states_context
    }
}

/// A [`Repeated`] passage that outlives the call that handed it out.
#[derive(Clone, Debug)]
pub struct Kept {
    passage: Arc<KeptPassage>,
    origin: StreamOffset,
    /// The placing, if cycles waited before it. Boxed because many passages are kept, and few have one.
    waited: Option<Box<Placing>>,
}

impl Kept {
    /// The totals.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.passage.totals()
    }

    /// The elements as records without valid places.
    pub fn records(&self) -> impl Iterator<Item = FlowRecord> + '_ {
        let placing = self.waited.as_deref().copied().unwrap_or_else(|| Placing::at(self.origin));
        let elements = self.passage.placed(placing).elements();
        elements.map(|element| FlowRecord { element, at: CaptureOffset(0) })
    }
}

/// How the end of a source was reached.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// The totals.
    pub statistics: Statistics,
    /// Whether the trace ended, not the memory or the allowed time.
    pub complete: bool,
}
