//! The answers about every program whose execution was recorded, against what independent scripts compute from the records.

use std::path::Path;

use crate::support::python::python;
use crate::support::recorded::{Recorded, emulated, firmware};
use crate::{coverage_truth, interrupts, profile_truth};

/// Compares each program's answers, and prints how many figures were compared; a difference fails.
fn assert_records(python: &Path, programs: &[Recorded]) {
    println!("{:38}{:>12}{:>10}{:>12}{:>10}{:>9}", "", "instructions", "coverage", "exceptions", "functions", "calls");
    for of in programs {
        let (instructions, coverage) = coverage_truth::assert_covers(python, of);
        let exceptions = interrupts::assert_exceptions(of);
        let calls = of.stacks.map_or(0, |stacks| profile_truth::assert_calls(python, of, stacks));
        // This script begins with the record, and has no stacks of contexts.
        let simple = of.stacks.filter(|stacks| stacks.is_empty() || **stacks == ["--tasks"]);
        let functions = simple.map_or(0, |stacks| interrupts::assert_functions(python, of, stacks));
        println!("{:38}{instructions:>12}{coverage:>10}{exceptions:>12}{functions:>10}{calls:>9}", of.name);
        assert!(coverage > 100, "{}", of.name);
    }
}

#[test]
#[ignore = "needs the Python packages"]
fn answers_about_the_firmware_are_those_of_its_records() {
    let folder = tempfile::tempdir().expect("room for a folder");
    assert_records(&python(), &firmware(folder.path()));
}

#[test]
#[ignore = "needs the Python packages and the corpus"]
fn answers_about_emulated_programs_are_those_of_their_records() {
    assert_records(&python(), &emulated());
}
