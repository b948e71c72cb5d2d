//! [`Analysis`]: takes the program flow of one source, and gives an answer at its end.
//!
//! The [sink](Analysis::sink) receives elements one by one, in the order of the trace. For an analysis made of [parts](Part),
//! threads make one part for each segment of the trace: a part takes elements, or whole [passages](Part::passage) (stretches that
//! repeat). The answer does not depend on where the trace is cut into segments.
//!
//! `Session::run` of `tracewalk-session` runs an analysis over a source of an open capture. An analysis that takes elements in order
//! alone is a [`Sink`] in [`InOrder`]:
//!
//! ```
//! use tracewalk_analysis::analysis::{Analysis, InOrder};
//! use tracewalk_analysis::sink::Nothing;
//!
//! let mut sink = Nothing;
//! let analysis = InOrder(&mut sink);
//! assert!(analysis.part().is_none());
//! ```

use std::io;
use std::sync::Arc;

use tracewalk::flow::{Element, KeptPassage, Placing, Totals};
use tracewalk::span::{CaptureOffset, StreamOffset};

use crate::log::Named;
use crate::record::FlowRecord;
use crate::sink::{Join, Nothing, Part, Sink};
use crate::{InDoubt, Statistics};

/// Takes the program flow of one source, and has an answer at its end.
pub trait Analysis {
    /// The type that collects a segment's elements: [`NoPart`] for an analysis that takes elements in order alone.
    type Part: Part;

    /// The answer.
    type Found;

    /// Takes elements one by one. Every section begins and ends in this sink, even if parts are used.
    fn sink(&mut self) -> &mut dyn Sink<FlowRecord>;

    /// Takes elements that repeat. By default they go to the sink one by one.
    ///
    /// # Errors
    ///
    /// If an output cannot be written.
    fn passage(&mut self, repeated: &Repeated<'_>) -> io::Result<()> {
        repeated.records().try_for_each(|record| self.sink().record(record))
    }

    /// Whether the analysis needs the elements' offsets in the capture. If not, [`FlowRecord::at`] is valid only for gaps and
    /// proofs, and passages go to [`Analysis::passage`].
    fn needs_places(&self) -> bool {
        true
    }

    /// An empty part of the section that has begun, and how parts grow; `None` if this analysis takes elements only in order.
    fn part(&self) -> Option<(Self::Part, Growth)>;

    /// Takes the next part of the section.
    ///
    /// # Errors
    ///
    /// If an output cannot be written.
    fn join(&mut self, part: Self::Part) -> io::Result<()>;

    /// Whether the analysis also takes elements in doubt, through [`Analysis::doubtful`].
    fn weighs_doubt(&self) -> bool {
        false
    }

    /// Takes an element that is in doubt, if the analysis weighs doubt.
    ///
    /// # Errors
    ///
    /// If an output cannot be written.
    fn doubtful(&mut self, record: FlowRecord) -> io::Result<()> {
        self.sink().record(record)
    }

    /// The answer, now that the source has ended.
    fn finish(self, end: &End) -> Self::Found;

    /// How instructions in doubt were treated, if this analysis weighs doubt.
    fn in_doubt(_found: &Self::Found) -> Option<InDoubt> {
        None
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

/// How parts grow with the trace that they are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// Parts stay small.
    Bounded,
    /// A few times as long as the trace.
    Lines,
    /// Many times as long as the trace.
    LongLines,
}

/// No part: the analysis takes elements only in order.
#[derive(Clone, Copy, Debug)]
pub enum NoPart {}

impl Part for NoPart {
    fn element(&mut self, _: &Element, _: impl FnOnce() -> CaptureOffset) {
        match *self {}
    }
}

/// Takes program flow, and may take repeated elements at once.
pub trait FlowSink: Sink<FlowRecord> {
    /// As [`Analysis::passage`].
    ///
    /// # Errors
    ///
    /// If an output cannot be written.
    fn passage(&mut self, repeated: &Repeated<'_>) -> io::Result<()> {
        repeated.records().try_for_each(|record| self.record(record))
    }

    /// As [`Analysis::needs_places`]. Places of gaps and proofs are always known.
    fn needs_places(&self) -> bool {
        true
    }
}

impl<S: FlowSink + ?Sized> FlowSink for Box<S> {
    fn passage(&mut self, repeated: &Repeated<'_>) -> io::Result<()> {
        (**self).passage(repeated)
    }

    fn needs_places(&self) -> bool {
        (**self).needs_places()
    }
}

impl FlowSink for Nothing {
    fn passage(&mut self, _: &Repeated<'_>) -> io::Result<()> {
        Ok(())
    }

    fn needs_places(&self) -> bool {
        false
    }
}

/// Hands records to a sink in the order of the trace.
pub struct InOrder<'a>(pub &'a mut dyn FlowSink);

impl Analysis for InOrder<'_> {
    type Part = NoPart;
    type Found = ();

    fn sink(&mut self) -> &mut dyn Sink<FlowRecord> {
        self.0
    }

    fn passage(&mut self, repeated: &Repeated<'_>) -> io::Result<()> {
        self.0.passage(repeated)
    }

    fn needs_places(&self) -> bool {
        self.0.needs_places()
    }

    fn part(&self) -> Option<(NoPart, Growth)> {
        None
    }

    fn join(&mut self, part: NoPart) -> io::Result<()> {
        match part {}
    }

    fn finish(self, _: &End) {}
}

/// Hands records to a sink, or parts that grow as stated, which the sink joins.
#[derive(Debug)]
pub struct InParts<'a, J>(pub &'a mut J, pub Growth);

impl<J: Join> Analysis for InParts<'_, J> {
    type Part = J::Part;
    type Found = ();

    fn sink(&mut self) -> &mut dyn Sink<FlowRecord> {
        self.0
    }

    fn part(&self) -> Option<(J::Part, Growth)> {
        Some((self.0.part(), self.1))
    }

    fn join(&mut self, part: J::Part) -> io::Result<()> {
        self.0.join(part)
    }

    fn finish(self, _: &End) {}
}
