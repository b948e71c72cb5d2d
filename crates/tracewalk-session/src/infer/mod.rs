//! Infers missing settings.
//!
//! Bytes and the program come in; answers come out, each with its evidence, the next best answer, and its certainty.
//! Every answer rests on decoding a part of the capture in each possible way and counting the errors: stretches that
//! are not packets, packets that contradict themselves, execution that contradicts the program.
//!
//! ```text
//! packing    the container, and the start of its frames
//! source     the protocol, the trace unit, and its setup
//! processor  the trace units that are possible for a program
//! settings   the possible setups of a trace unit, question by question
//! reading    one way to read a source, and its errors
//! check      impossible contents of packets
//! etmv4      the same for ETMv4 and ETE
//! times      whether timestamps increase
//! itm        whether a source is an ITM
//! image      the place in memory of an image of raw bytes
//! mtb        the places of a Micro Trace Buffer's packets, with or without a program
//! mtb_order  which packets of a dump continue each other
//! story      the execution that results from a reading
//! traced     the program that a source traced, and the effects that others learned of it
//! seam       the place of the oldest byte in a buffer that wrapped
//! ```
//!
//! The caller decides what to do with an answer. This module does not depend on statements, notices and sessions.

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
pub(crate) use itm::{is_surely_itm, itm};
pub(crate) use mtb::{misses_program, mtb, mtb_continues, mtb_narrowed, mtb_place, speaks_for_trace};
pub(crate) use packing::{Packing, STRANGERS, packing, port};
pub(crate) use processor::{Unit, units};
pub(crate) use reading::first_error;
pub(crate) use seam::{Seam, seam};
pub use source::{Change, Correction};
pub(crate) use source::{FoundSource, Search};
pub(crate) use traced::Traced;
