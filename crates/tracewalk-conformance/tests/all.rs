//! All conformance tests, in one binary so that the common code is linked once.

mod cursor;
mod damage;
mod doubt;
mod fuzz;
mod matrix;
mod protocols;
