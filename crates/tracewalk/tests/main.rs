//! The tests of the core from outside, in one binary, so that shared code is linked once.

automod::dir!("tests");
mod support;
