//! All tests of the generator's public API, in one binary so that the common code is linked once.

mod common;
mod etmv3;
mod etmv4;
mod etmv4_beside;
mod examples;
mod firmware;
mod mtb;
mod mtb_paths;
mod opencsd;
mod pft;
mod wander;
