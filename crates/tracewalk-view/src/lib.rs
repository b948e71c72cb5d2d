//! A recorded trace as a page in the browser, or as one file.
//!
//! ```text
//! Session ─prepare─▶ each source's index, then its overview, profile and coverage
//!                    ─Recording─▶ answers: a window of instructions or of the timeline, a function, a file, a search result
//!                    ─serve─▶ a page on this machine that asks for them     ─export─▶ the same page with answers inside
//! ```
//!
//! The page asks only for windows, so that its data do not grow with the capture. Nobody else can read them: the server
//! listens on this machine only, and answers only requests with the token in the page's address.
//!
//! ```
//! use tracewalk_session::{At, Notices, Request, Session};
//! use tracewalk_view::{Excerpt, Options, write_page};
//!
//! let (mut session, _) = Session::open(Request::new("../../testdata/examples/a7-etmv3/capture.toml"))?;
//! let options = Options { name: "a7-etmv3".to_owned(), threads: 1, ..Options::default() };
//! let mut page = Vec::new();
//! write_page(&mut session, &options, Excerpt { at: At::Last, steps: 100 }, &Notices::default(), &mut page)?;
//! assert!(page.starts_with(b"<!doctype html>"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod answer;
mod bounded;
mod coming;
mod cores;
mod error;
mod export;
mod figures;
mod find;
mod frames;
mod guard;
mod names;
mod options;
mod overview;
mod page;
mod prepare;
mod prepared;
mod query;
mod recording;
mod serve;
mod shown;
mod source;
mod timeline;
mod values;

pub use error::ViewError;
pub use export::{Excerpt, write_page};
pub use options::Options;
pub use serve::{Place, serve};
