//! Traits for consumers of records: [`Sink`] takes them one by one, [`Join`] also in [`Part`]s that threads make and that are
//! joined in the order of the trace.
//!
//! ```
//! use std::io;
//! use tracewalk::flow::Element;
//! use tracewalk_analysis::{Code, Section};
//! use tracewalk_analysis::record::FlowRecord;
//! use tracewalk_analysis::sink::Sink;
//!
//! /// Counts the instructions of each source.
//! #[derive(Default)]
//! struct Instructions(Vec<u64>);
//!
//! impl Sink<FlowRecord> for Instructions {
//!     fn section(&mut self, _: &Section) -> io::Result<()> {
//!         self.0.push(0);
//!         Ok(())
//!     }
//!
//!     fn record(&mut self, record: FlowRecord) -> io::Result<()> {
//!         if let (Element::Block(block), Some(count)) = (record.element, self.0.last_mut()) {
//!             *count += u64::from(block.instructions);
//!         }
//!         Ok(())
//!     }
//! }
//!
//! let mut sink = Instructions::default();
//! sink.section(&Section { id: None, protocol: "etmv3", number: 1, code: Code::unknown().into() })?;
//! assert_eq!(sink.0, [0]);
//! # Ok::<(), io::Error>(())
//! ```

use std::io;

use tracewalk::flow::{Element, Passage};
use tracewalk::span::{CaptureOffset, StreamOffset};

use crate::analysis::{FlowSink, Repeated};
use crate::record::{FlowRecord, ItmRecord};
use crate::table::{Cell, Table, TakeRows};
use crate::{Doubt, Section};

/// A consumer of records, such as an output format.
///
/// The order of calls is `begin (section record* cut? end_section)* finish`. After an error, the output is partial.
pub trait Sink<Record> {
    /// The output begins.
    fn begin(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// A source's records follow.
    fn section(&mut self, section: &Section) -> io::Result<()>;

    /// The source's next record.
    fn record(&mut self, record: Record) -> io::Result<()>;

    /// Whether the sink takes the records of an ITM in the same frames.
    fn shows_itm(&self) -> bool {
        false
    }

    /// Takes a report of an ITM in the same frames, before the source's next record.
    fn itm(&mut self, _record: &ItmRecord) -> io::Result<()> {
        Ok(())
    }

    /// The source's records before the next one are left out; `doubt` is the doubt after them.
    fn go_on(&mut self, _doubt: Doubt) {}

    /// A number of the source's instructions was left out because they are in doubt.
    fn left_out(&mut self, _instructions: u64) {}

    /// The section ends at this byte of the capture, before the trace does: memory ran out, or the capture stopped arriving.
    fn cut(&mut self, _at: CaptureOffset) -> io::Result<()> {
        Ok(())
    }

    /// The source has no more records.
    fn end_section(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// There are no more sources. `complete` is whether the capture was decoded to its end.
    fn finish(&mut self, _complete: bool) -> io::Result<()> {
        Ok(())
    }
}

/// Sinks that are borrowed or boxed.
macro_rules! forward {
    ($E:ident: $sink:ty) => {
        impl<Record, $E: Sink<Record> + ?Sized> Sink<Record> for $sink {
            fn begin(&mut self) -> io::Result<()> {
                (**self).begin()
            }

            fn section(&mut self, section: &Section) -> io::Result<()> {
                (**self).section(section)
            }

            fn record(&mut self, record: Record) -> io::Result<()> {
                (**self).record(record)
            }

            fn shows_itm(&self) -> bool {
                (**self).shows_itm()
            }

            fn itm(&mut self, record: &ItmRecord) -> io::Result<()> {
                (**self).itm(record)
            }

            fn go_on(&mut self, doubt: Doubt) {
                (**self).go_on(doubt);
            }

            fn left_out(&mut self, instructions: u64) {
                (**self).left_out(instructions);
            }

            fn cut(&mut self, at: CaptureOffset) -> io::Result<()> {
                (**self).cut(at)
            }

            fn end_section(&mut self) -> io::Result<()> {
                (**self).end_section()
            }

            fn finish(&mut self, complete: bool) -> io::Result<()> {
                (**self).finish(complete)
            }
        }

        impl<$E: FlowSink + ?Sized> FlowSink for $sink {
            fn passage(&mut self, repeated: &Repeated<'_>) -> io::Result<()> {
                (**self).passage(repeated)
            }

            fn needs_places(&self) -> bool {
                (**self).needs_places()
            }

            fn weighs_doubt(&self) -> bool {
                (**self).weighs_doubt()
            }

            fn doubtful(&mut self, record: FlowRecord) -> io::Result<()> {
                (**self).doubtful(record)
            }
        }
    };
}

forward!(E: &mut E);
forward!(E: Box<E>);

/// A sink of program flow that can also join parts made by other threads.
///
/// The order of calls is `begin (section join* cut? end_section)* finish`.
pub trait Join: FlowSink {
    /// The part that threads make of records.
    type Part: Part;

    /// An empty part of the section that has begun.
    fn part(&self) -> Self::Part;

    /// How parts grow.
    fn growth(&self) -> Growth;

    /// Writes down the next part of a section.
    fn join(&mut self, part: Self::Part) -> io::Result<()>;
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

/// Ignores all records.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl<Record> Sink<Record> for Nothing {
    fn section(&mut self, _: &Section) -> io::Result<()> {
        Ok(())
    }

    fn record(&mut self, _: Record) -> io::Result<()> {
        Ok(())
    }
}

impl Join for Nothing {
    type Part = ();

    fn part(&self) {}

    fn growth(&self) -> Growth {
        Growth::Bounded
    }

    fn join(&mut self, (): ()) -> io::Result<()> {
        Ok(())
    }
}

/// Writes no rows.
impl TakeRows for Nothing {
    fn table(&mut self, _: &Table) -> io::Result<()> {
        Ok(())
    }

    fn row(&mut self, _: &[Cell]) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, _: bool) -> io::Result<()> {
        Ok(())
    }
}

/// Takes the elements of a part.
///
/// Any thread makes parts, as copies of an empty one. Parts are joined in the order of the trace; the result must not depend on
/// the cuts.
pub trait Part: Clone + Send {
    /// An empty part for the same thread, with the thread's tables.
    #[must_use]
    fn with_tables(&mut self) -> Self {
        self.clone()
    }

    /// Takes the thread's tables out of a part that has ended.
    fn take_tables(&mut self, _from: &mut Self) {}

    /// The part begins, with the doubt at the end of the previous parts.
    fn begin(&mut self, _doubt: Doubt) {}

    /// Takes the part's next element. `at` returns the capture offset of the trace that proves it.
    fn element(&mut self, element: &Element, at: impl FnOnce() -> CaptureOffset);

    /// Takes the part's next elements. `at` returns the capture offset of a byte of the source.
    fn passage(&mut self, passage: &Passage<'_>, mut at: impl FnMut(StreamOffset) -> CaptureOffset) {
        passage.elements().for_each(|element| self.element(&element, || at(element.span().start)));
    }
}

/// Discards all elements.
impl Part for () {
    #[inline]
    fn element(&mut self, _: &Element, _: impl FnOnce() -> CaptureOffset) {}

    #[inline]
    fn passage(&mut self, _: &Passage<'_>, _: impl FnMut(StreamOffset) -> CaptureOffset) {}
}
