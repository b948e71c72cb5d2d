//! Opens captures, infers missing settings, and runs analyses over their sources: the `tracewalk` command as a library.
//!
//! A [`Request`] goes in: a capture, and what the caller knows of it. An open [`Session`] comes out, with [`Notice`]s. Work on one of
//! its [`Source`]s gives an [`Outcome`]: the answer, statistics and losses. The crate prints nothing, ends no process and knows no
//! command line; [`Notice`]s and errors are data, from which `tracewalk-sentences` makes sentences.
//!
//! ```
//! use tracewalk_session::{Follow, Notices, Request, Session};
//!
//! let (mut session, _notices) = Session::open(Request::new("../../testdata/examples/a7-etmv3/capture.toml"))?;
//! let source = session.sources()[0].clone();
//! let outcome = session.coverage(&source, &Follow::default(), "example", &Notices::default())?;
//! assert!(outcome.complete && outcome.statistics.gaps == 0);
//! let (program, covered) = &outcome.found[0];
//! println!("{}: {covered:?}", program.id);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | to | use |
//! |---|---|
//! | run an analysis of your own or of `tracewalk-analysis` | [`Session::run`] |
//! | take each element, with functions and lines | [`Session::run_observed`] with a `FlowSink` of `tracewalk-analysis`: `examples/blocks.rs` |
//! | follow a capture that is still arriving | [`Session::open_arriving`] |
//! | ask many captures | [`Gathering`] |
//! | add up the answers of captures, saved files, directories and lists | [`Gather`] |
//! | step through a recording, or seek | [`Session::index`] |
#![forbid(unsafe_code)]

mod additive;
mod arrange;
mod arrival;
mod axis;
mod beside;
mod code;
mod compare;
mod contents;
mod counted;
mod coverage;
mod covered;
mod error;
mod follow;
mod frames;
mod gather;
mod gathering;
mod infer;
mod info;
mod keep;
mod live;
mod memory;
mod misfits;
mod model;
mod mtb;
mod notice;
mod observer;
mod open;
mod outcome;
mod program;
mod report;
mod reported;
mod request;
mod session;
mod shared;
mod sources;
mod statements;
mod tasks;
mod untraced;
mod values;
mod window;

pub use additive::{Additive, Answered, OfCounts, OfCoverage, OfInterrupts, OfProfile, OfPrograms};
pub use arrival::{Arrival, Begin};
pub use beside::Itms;
pub use compare::{CompareError, Compared, Comparison};
pub use coverage::{
    BaseSources, CoverageBase, CoverageError, CoverageNotice, CoverageRequest, PathMap, Reported, Selects,
};
pub use covered::Covered;
pub use error::{OpenError, RunError, Unstated};
pub use frames::{Frames, Odd, repack};
pub use gather::{
    Gather, GatherFront, Gathered, Places, PlacesError, PlacesErrorKind, PlacesNotice, read_saved,
    saved_kind_of,
};
pub use gathering::{GatherError, Gathering, OfCapture};
pub use infer::mtb_order;
pub use infer::{Answer, Certainty, Change, Correction, Finding};
pub use info::{INFO_TABLES, Info, ItmInfo};
pub use keep::{Keep, Key};
pub use model::{Contents, Dumped, Itm, Source};
pub use notice::{
    Bound, Inferred, ModulesLeftOut, NoContext, Notice, NoticeKind, Question, Remedy, Severity, WrongImage,
};
pub use observer::Watch;
pub use observer::{Late, Notices, Observer};
pub use open::interrupts;
pub use outcome::{Follow, Followed, Losses, Outcome, Trust};
pub use outcome::{Lost, LostPlace, LostPlaces, Why};
pub use program::FollowedProgram;
pub use request::At;
pub use request::Pattern;
pub use request::{MtbStatements, Policy, Request, Statements};
pub use session::{ScopedCode, Session};
pub use shared::Shared;
pub use sources::source_config;
pub use untraced::Untraced;
pub use window::{View, WindowError};

/// The README's example is compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
