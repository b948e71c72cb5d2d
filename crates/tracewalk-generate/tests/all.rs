//! The tests of the generator from outside, in one binary: what they share is linked once.

mod common;
mod etmv3;
mod etmv4;
mod examples;
mod firmware;
mod logs;
mod mtb;
mod mtb_paths;
mod opencsd;
mod pft;
mod pieces;
