//! Finding out what nobody said.
//!
//! Bytes and the program come in; what they probably are comes out, each answer with what was counted for it, the next
//! best answer, and how certain it is. Every answer rests on decoding a part of the capture in each way that comes into
//! question, and counting what speaks against it: stretches that are no packets, packets that contradict themselves,
//! execution that contradicts the program.
//!
//! ```text
//! packing    the container, and where its frames stand
//! source     the protocol, the trace unit, and how it was set up
//! processor  which trace units come into question for a program
//! settings   what may be set up in a trace unit, question by question
//! reading    one way to read a source, and what speaks against it
//! check      what packets say that cannot be
//! itm        whether a source is an ITM
//! image      where in memory an image of raw bytes stood
//! mtb        where a Micro Trace Buffer's packets are
//! sample     the part of a source that is read
//! seam       where a buffer that went round has its oldest byte
//! ```
//!
//! What to do with an answer, and what is said of it, is decided elsewhere: no option and no message is known here.

mod check;
mod finding;
mod image;
mod itm;
mod mtb;
mod packing;
mod processor;
mod reading;
mod sample;
mod seam;
mod settings;
mod source;

pub(crate) use finding::{Answer, Certainty, Finding};
pub(crate) use image::{Place, RawImage, place};
pub(crate) use itm::itm;
pub(crate) use mtb::{misses_program, mtb, speaks_for_trace};
pub(crate) use packing::{Packing, packing, port};
pub(crate) use processor::{Unit, units};
pub(crate) use reading::first_error;
pub(crate) use sample::Sample;
pub(crate) use seam::{Seam, seam};
pub(crate) use source::{Change, Correction, FoundSource, Search};
