//! All tests of the session's public API, in one binary so that the common code is linked once.

automod::dir!("tests");
mod ete;
mod support;
