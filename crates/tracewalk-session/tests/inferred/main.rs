//! Captures of which little is stated, in one binary: dumps of memory, and traces without a description.

mod dumps;
mod guessing;
mod support;
