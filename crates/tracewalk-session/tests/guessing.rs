//! Captures without any description: how often they are inferred correctly. The traces are generated from
//! known executions, with every combination of settings that changes their bytes, in every container.
//!
//! `TRACEWALK_EVERY=1 cargo test --release -p tracewalk-session --test all guessing:: -- --nocapture` tries all
//! captures and prints tables of the results; without the variable it tries every Nth. Captures that were not
//! inferred, or only with a warning, are named.

mod captures;
mod case;
mod packing;
mod units;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::OnceLock;

use captures::{Make, Programs};
use case::{Guess, Warning, With, on_file};
use snapbox::{Data, assert_data_eq, file};
use tracewalk_session::{Policy, Request};

use crate::support::Flow;

/// The programs and what they executed, read once for all tests.
fn programs() -> &'static Programs {
    static PROGRAMS: OnceLock<Programs> = OnceLock::new();
    PROGRAMS.get_or_init(Programs::load)
}

/// The counts in one cell of a table.
#[derive(Default)]
struct Counts(BTreeMap<Guess, usize>);

impl Counts {
    fn all(&self) -> usize {
        self.0.values().sum()
    }

    fn of(&self, guess: Guess) -> usize {
        self.0.get(&guess).copied().unwrap_or(0)
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.of(Guess::Quiet), self.all())?;
        for (guess, count) in &self.0 {
            match guess {
                Guess::Quiet => {}
                Guess::Warned(warning) => write!(f, ", {count} warned ({warning})")?,
                Guess::Reported => write!(f, ", {count} wrong and reported")?,
                Guess::Silent => write!(f, ", {count} SILENT")?,
            }
        }
        Ok(())
    }
}

/// The expectations for a table, besides those in its file.
struct Expected {
    /// One in this number of captures is tried, unless the environment overrides it.
    every: usize,
    /// The allowed warnings with a right answer.
    warnings: &'static [Warning],
}

/// Infers captures, prints how often that succeeded, and compares the counts with those in a file, which are
/// for one in `every` captures, so that better and worse answers show. `SNAPSHOTS=overwrite` rewrites the
/// file.
fn measure(makes: &[Make<'_>], with: With, expected: &Expected, counts: Data) {
    let every = std::env::var("TRACEWALK_EVERY").ok().and_then(|every| every.parse().ok());
    let mut table = BTreeMap::<(&str, &str), Counts>::new();
    let mut all = Counts::default();
    let mut wrong = Vec::new();
    for make in makes.iter().step_by(every.unwrap_or(expected.every)) {
        let (guess, said) = (make.case)().try_with(with);
        let is_expected = match guess {
            Guess::Quiet | Guess::Reported => true,
            Guess::Warned(warning) => expected.warnings.contains(&warning),
            Guess::Silent => false,
        };
        if guess != Guess::Quiet {
            println!("{said}");
        }
        if !is_expected {
            wrong.push(said);
        }
        for counts in [table.entry((&make.row, make.column)).or_default(), &mut all] {
            *counts.0.entry(guess).or_default() += 1;
        }
    }
    let mut found = String::new();
    for ((row, column), counts) in table {
        writeln!(found, "| {with:?} | {row} | {column} | {counts} |").unwrap();
    }
    writeln!(found, "| {with:?} | all | | {all} |").unwrap();
    print!("{found}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    if every.is_none() {
        assert_data_eq!(found, counts);
    }
}

#[test]
fn what_was_guessed_wrongly_once_is_not_any_more() {
    for (with, expected, case) in programs().lessons() {
        let (guess, said) = case.try_with(with);
        assert_eq!(guess, expected, "{said}");
    }
}

#[test]
fn times_whose_upper_bits_are_not_known_contradict_nothing() {
    let (bytes, request) = programs().gray_times_without_a_whole_one();
    let flow = Flow::of(on_file(&bytes, request).1);
    assert!(flow.is_whole() && !flow.has("statement_contradicted"), "{}", flow.said());
}

/// An FSYNC is not valid data at any alignment, so it outweighs packets that parse.
#[test]
fn frames_stand_where_full_synchronisation_says() {
    let programs = programs();
    for in_front in [0, 1, 7, 14] {
        let (bytes, expected, request) = programs.after_full_sync(in_front);
        for policy in [Policy::Infer, Policy::Strict] {
            let (_folder, request) = on_file(&bytes, Request { policy, ..request.clone() });
            let flow = Flow::of(request);
            assert!(flow.is_whole() && flow.runs == expected, "{in_front}, {policy:?}: {:?}", flow.notices);
        }
    }
}

#[test]
fn with_the_program_every_setting_is_found_out() {
    let expected = Expected { every: 331, warnings: &[] };
    measure(
        &programs().settings(),
        With::Program,
        &expected,
        file!["guessing/tables/settings-with-program.txt"],
    );
}

#[test]
fn without_the_program_every_setting_is_found_out() {
    let expected = Expected { every: 331, warnings: &[] };
    measure(
        &programs().settings(),
        With::Nothing,
        &expected,
        file!["guessing/tables/settings-without-program.txt"],
    );
}

/// All arrangements of frames except wrapped buffers.
const IN_ORDER: Expected = Expected { every: 61, warnings: &[Warning::AnotherAnswer] };

#[test]
fn with_the_program_it_is_found_out_where_frames_stand() {
    measure(
        &programs().arrangements_turned_and_in_order().1,
        With::Program,
        &IN_ORDER,
        file!["guessing/tables/frames-with-program.txt"],
    );
}

#[test]
fn without_the_program_it_is_found_out_where_frames_stand() {
    measure(
        &programs().arrangements_turned_and_in_order().1,
        With::Nothing,
        &IN_ORDER,
        file!["guessing/tables/frames-without-program.txt"],
    );
}

/// The oldest byte of a wrapped buffer is inferred to within a frame or a synchronisation: no result is right
/// byte for byte, and all have a warning.
const TURNED: Expected =
    Expected { every: 11, warnings: &[Warning::AnotherAnswer, Warning::OtherDetails, Warning::Other] };

#[test]
fn with_the_program_it_is_said_what_a_buffer_that_went_round_may_leave_out() {
    measure(
        &programs().arrangements_turned_and_in_order().0,
        With::Program,
        &TURNED,
        file!["guessing/tables/wrapped-with-program.txt"],
    );
}

#[test]
fn without_the_program_it_is_said_what_a_buffer_that_went_round_may_leave_out() {
    measure(
        &programs().arrangements_turned_and_in_order().0,
        With::Nothing,
        &TURNED,
        file!["guessing/tables/wrapped-without-program.txt"],
    );
}

#[test]
fn with_the_program_it_is_found_out_which_ids_carry_what() {
    let expected = Expected { every: 8, warnings: &[] };
    measure(&programs().several(), With::Program, &expected, file!["guessing/tables/ids-with-program.txt"]);
}

#[test]
fn without_the_program_it_is_found_out_which_ids_carry_what() {
    let expected = Expected { every: 8, warnings: &[] };
    measure(
        &programs().several(),
        With::Nothing,
        &expected,
        file!["guessing/tables/ids-without-program.txt"],
    );
}

#[test]
fn with_the_program_the_packets_of_an_mtb_are_put_in_order() {
    let expected = Expected { every: 11, warnings: &[Warning::AnotherOrder, Warning::EndUnknown] };
    measure(&programs().mtbs(), With::Program, &expected, file!["guessing/tables/mtb-with-program.txt"]);
}

#[test]
fn without_the_program_the_packets_of_an_mtb_are_put_in_order() {
    // Many packets of a small program can follow each other without a branch, so the oldest one is seldom evident.
    let expected = Expected { every: 11, warnings: &[Warning::AnotherOrder, Warning::EndUnknown] };
    measure(&programs().mtbs(), With::Nothing, &expected, file!["guessing/tables/mtb-without-program.txt"]);
}

#[test]
fn it_is_found_out_where_an_image_of_raw_bytes_stood() {
    let expected = Expected { every: 23, warnings: &[Warning::ImageMoved] };
    measure(&programs().images(), With::Program, &expected, file!["guessing/tables/raw-images.txt"]);
}
