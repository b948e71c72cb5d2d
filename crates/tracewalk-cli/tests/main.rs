//! The tests of the command, in one binary: shared code is linked once.

automod::dir!("tests");
mod support;
