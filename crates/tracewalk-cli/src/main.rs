//! The `tracewalk` command.
fn main() {}
