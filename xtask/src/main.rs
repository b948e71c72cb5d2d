//! Automation: `cargo xtask help` lists the tasks.
fn main() {}
