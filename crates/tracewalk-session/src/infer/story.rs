//! The execution that results from a reading, as a hash: readings that agree have equal hashes.

use std::hash::{DefaultHasher, Hash, Hasher};

use tracewalk::flow::{Block, Element, EventKind, GapReason};
use tracewalk::ids::{Address, Exception, Isa};
use tracewalk::isa::Unclassified;

/// The execution and its times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Story {
    /// The instructions that ran, the exceptions that were taken, and the unknown parts.
    pub(super) runs: u64,
    /// The times and contexts as well.
    details: u64,
}

/// Makes a story of elements.
#[derive(Debug, Default)]
pub(super) struct StoryBuilder {
    runs: DefaultHasher,
    details: DefaultHasher,
    /// The run that may still grow.
    open: Option<(Address, Address, Isa)>,
}

/// The steps that a story consists of.
#[derive(Hash)]
enum Mark {
    Run(Address, Address, Isa),
    TraceOn,
    Exception(Option<u16>, Option<Address>),
    ExceptionReturn,
    NoCode(Address),
    Unknown,
}

impl StoryBuilder {
    pub(super) fn element(&mut self, element: &Element) {
        match element {
            Element::Block(block) => self.block(block),
            Element::Event(event) => {
                event.kind.hash(&mut self.details);
                match event.kind {
                    EventKind::TraceOn(_) => self.mark(&Mark::TraceOn),
                    EventKind::Exception { exception, preferred_return, .. } => {
                        let number = exception.map(Exception::number);
                        self.mark(&Mark::Exception(number, preferred_return));
                    }
                    EventKind::ExceptionReturn => self.mark(&Mark::ExceptionReturn),
                    // These events do not end a run.
                    _ => {}
                }
            }
            Element::Gap(gap) => self.mark(&match gap.reason {
                // If an image ends inside an instruction, no image holds the instruction.
                GapReason::NoCode(at) | GapReason::Undecodable(at, Unclassified::Truncated) => {
                    Mark::NoCode(at.address)
                }
                _ => Mark::Unknown,
            }),
            Element::Proof(_) => {}
        }
    }

    pub(super) fn finish(mut self) -> Story {
        self.close();
        Story { runs: self.runs.finish(), details: self.details.finish() }
    }

    fn block(&mut self, block: &Block) {
        if let Some((_, end, isa)) = &mut self.open
            && *end == block.start
            && *isa == block.isa
        {
            *end = block.end;
            return;
        }
        self.close();
        self.open = Some((block.start, block.end, block.isa));
    }

    fn mark(&mut self, mark: &Mark) {
        self.close();
        mark.hash(&mut self.runs);
    }

    fn close(&mut self) {
        if let Some((start, end, isa)) = self.open.take() {
            Mark::Run(start, end, isa).hash(&mut self.runs);
        }
    }
}
