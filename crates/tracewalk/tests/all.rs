//! The tests of the core from outside, in one binary, so that shared code is linked once.

mod engines;
mod etmv3_vectors;
mod etmv4_flow;
mod etmv4_vectors;
mod frame_captures;
mod frame_vectors;
mod instruction_accesses;
mod instruction_classes;
mod mtb_flow;
mod mtb_runs;
mod mtb_vectors;
mod packets_example;
mod pft_flow;
mod pft_vectors;
mod rooms;
mod support;
mod two_sources;
