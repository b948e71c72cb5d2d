//! The tests of conformance, in one binary: what they share is linked once.

mod cursor;
mod damage;
mod doubt;
mod matrix;
mod protocols;
