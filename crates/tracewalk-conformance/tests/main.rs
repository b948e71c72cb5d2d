//! All conformance tests, in one binary so that the common code is linked once.

automod::dir!("tests");
