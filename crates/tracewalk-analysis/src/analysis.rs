//! What an analysis is: something that takes the program flow of one source, and has an answer at its end.
//!
//! [`Analysis`] is all that whoever runs one knows of it. Elements come to its [sink](Analysis::sink) one by one, in the order of the
//! trace. An analysis that can be put together from [parts](Part) has them made by threads, each of a segment of the trace: a part
//! takes elements, or [passages](Part::passage) (the stretches that repeat) at once. Where segments are cut does not show in the answer.

use std::io;

use tracewalk::flow::Element;
use tracewalk::span::CaptureOffset;

use crate::record::FlowRecord;
use crate::sink::{Join, Part, Sink};
use crate::{InDoubt, Statistics};

/// Takes the program flow of one source, and has an answer at its end.
pub trait Analysis {
    /// What is made of a segment: [`NoPart`] for an analysis that takes elements in order alone.
    type Part: Part;

    /// The answer.
    type Found;

    /// Takes elements one by one. A section begins and ends in it in any case.
    fn sink(&mut self) -> &mut dyn Sink<FlowRecord>;

    /// What parts of the section that has begun are made from, and how they grow; `None` if this analysis takes elements in order
    /// alone.
    fn part(&self) -> Option<(Self::Part, Growth)>;

    /// Takes the next part of the section.
    ///
    /// # Errors
    ///
    /// If an output cannot be written.
    fn join(&mut self, part: Self::Part) -> io::Result<()>;

    /// Whether it takes back by itself what is found to be in doubt. It is then given everything, whatever is to become of that.
    fn weighs_doubt(&self) -> bool {
        false
    }

    /// The answer, now that the source has ended.
    fn finish(self, end: &End) -> Self::Found;

    /// What became of instructions in doubt, if this analysis weighs doubt.
    fn in_doubt(_found: &Self::Found) -> Option<InDoubt> {
        None
    }
}

/// How the end of a source was reached.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// How much there was.
    pub statistics: Statistics,
    /// Whether it is the end of the trace, and not of memory or patience.
    pub complete: bool,
}

/// How parts grow with the trace that they are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// They do not: few of them have to be joined.
    Bounded,
    /// They are a few times as long.
    Lines,
    /// They are many times as long.
    LongLines,
}

/// No part: its analysis takes elements in order alone.
#[derive(Clone, Copy, Debug)]
pub enum NoPart {}

impl Part for NoPart {
    fn element(&mut self, _: &Element, _: impl FnOnce() -> CaptureOffset) {
        match *self {}
    }
}

/// Hands records to a sink in the order of the trace.
pub struct InOrder<'a>(pub &'a mut dyn Sink<FlowRecord>);

impl Analysis for InOrder<'_> {
    type Part = NoPart;
    type Found = ();

    fn sink(&mut self) -> &mut dyn Sink<FlowRecord> {
        self.0
    }

    fn part(&self) -> Option<(NoPart, Growth)> {
        None
    }

    fn join(&mut self, part: NoPart) -> io::Result<()> {
        match part {}
    }

    fn finish(self, _: &End) {}
}

/// Hands records, or parts of them that grow so, to a sink that joins these.
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
