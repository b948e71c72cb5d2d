//! All tests of the generator's public API, in one binary so that the common code is linked once.

automod::dir!("tests");
mod common;
