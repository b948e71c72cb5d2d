//! Infers missing settings.
//!
//! Bytes and the program come in. Out come answers, each with what was counted for it, the next best answer, and how
//! certain it is. Every answer rests on decoding a part of the capture in each possible way and counting what speaks
//! against it: stretches that are no packets, packets that contradict themselves, execution that contradicts the program.
//!
//! ```text
//! packing    the container, and where its frames stand
//! source     the protocol, the trace unit, and how it was set up
//! processor  which trace units come into question for a program
//! settings   what may be set up in a trace unit, question by question
//! reading    one way to read a source, and what speaks against it
//! check      contents of packets that are impossible
//! etmv4      the same of ETMv4 and ETE
//! times      whether timestamps go on as time does
//! itm        whether a source is an ITM
//! image      where in memory an image of raw bytes stood
//! mtb        where a Micro Trace Buffer's packets are, by a program or without one
//! mtb_order  which packets of a dump continue each other
//! story      the execution that a reading gives
//! traced     the program that a source traced, and what others learned of it
//! seam       where a buffer that wrapped has its oldest byte
//! ```
//!
//! The caller decides what to do with an answer. This room does not know statements, notices and sessions.

mod check;
mod etmv4;
mod finding;
mod image;
mod itm;
mod mtb;
pub mod mtb_order;
mod packing;
mod processor;
mod reading;
mod seam;
mod settings;
mod source;
mod story;
mod times;
mod traced;

pub use finding::{Answer, Certainty, Finding};
pub(crate) use image::{Place, RawImage, place};
pub(crate) use itm::itm;
pub(crate) use mtb::{misses_program, mtb, mtb_narrowed, mtb_place, speaks_for_trace};
pub(crate) use packing::{Packing, packing, port};
pub(crate) use processor::{Unit, units};
pub(crate) use reading::first_error;
pub(crate) use seam::{Seam, seam};
pub use source::{Change, Correction};
pub(crate) use source::{FoundSource, Search};
pub(crate) use traced::{Learning, Traced};
