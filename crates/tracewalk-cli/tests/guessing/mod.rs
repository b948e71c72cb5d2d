//! Captures without any description: how often what they are is found out rightly. Traces are generated from what
//! programs are known to have executed, with every combination of settings that changes their bytes, in every container.
//!
//! `TRACEWALK_EVERY=1 cargo test --release -p tracewalk-cli --test all guessing:: -- --nocapture` tries all and prints the
//! tables of docs/captures.md; without the variable it is every so manieth. What was not found out quietly is kept, with
//! the commands to repeat it.

mod captures;
mod case;
mod packing;
mod units;

use std::collections::BTreeMap;

use captures::{Make, Programs};
use case::{Guess, Warning, With};

/// What was counted in one place of a table.
#[derive(Default)]
struct Counts(BTreeMap<Guess, usize>);

impl Counts {
    fn all(&self) -> usize {
        self.0.values().sum()
    }

    fn of(&self, guess: Guess) -> usize {
        self.0.get(&guess).copied().unwrap_or(0)
    }

    fn right(&self) -> usize {
        self.all() - self.of(Guess::Told) - self.of(Guess::Silent)
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.of(Guess::Quiet), self.all())?;
        for (guess, count) in &self.0 {
            match guess {
                Guess::Quiet => {}
                Guess::Warned(warning) => write!(f, ", {count} warned ({warning})")?,
                Guess::Told => write!(f, ", {count} wrong and told")?,
                Guess::Silent => write!(f, ", {count} SILENT")?,
            }
        }
        Ok(())
    }
}

/// What is expected of a table.
struct Expected {
    /// Every so manieth capture is tried where nobody says otherwise.
    every: usize,
    /// Of a hundred captures so many have to be found out rightly.
    right: usize,
    /// What a right answer may be warned with.
    warnings: &'static [Warning],
}

/// Looks at captures, and prints how often they were found out.
fn measure(makes: &[Make<'_>], with: With, expected: &Expected) {
    let every = std::env::var("TRACEWALK_EVERY").ok().and_then(|every| every.parse().ok());
    let mut table = BTreeMap::<(&str, &str), Counts>::new();
    let mut all = Counts::default();
    let mut wrong = Vec::new();
    for make in makes.iter().step_by(every.unwrap_or(expected.every)) {
        let (guess, said) = (make.case)().try_with(with);
        let is_expected = match guess {
            Guess::Quiet | Guess::Told => true,
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
    for ((row, column), counts) in table {
        println!("| {with:?} | {row} | {column} | {counts} |");
    }
    println!("| {with:?} | all | | {all} |");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(all.right() * 100 >= all.all() * expected.right, "{all}");
}

#[test]
fn what_was_guessed_wrongly_once_is_not_any_more() {
    for (with, expected, case) in Programs::load().lessons() {
        let (guess, said) = case.try_with(with);
        assert_eq!(guess, expected, "{said}");
    }
}

#[test]
fn with_the_program_every_setting_is_found_out() {
    let expected = Expected { every: 331, right: 99, warnings: &[] };
    measure(&Programs::load().settings(), With::Program, &expected);
}

#[test]
fn without_the_program_every_setting_is_found_out() {
    let expected = Expected { every: 331, right: 99, warnings: &[] };
    measure(&Programs::load().settings(), With::Nothing, &expected);
}

/// What may happen to frames, but that a buffer went round.
const IN_ORDER: Expected = Expected { every: 61, right: 80, warnings: &[Warning::AnotherAnswer] };

#[test]
fn with_the_program_it_is_found_out_where_frames_stand() {
    measure(&Programs::load().arrangements_turned_and_in_order().1, With::Program, &IN_ORDER);
}

#[test]
fn without_the_program_it_is_found_out_where_frames_stand() {
    measure(&Programs::load().arrangements_turned_and_in_order().1, With::Nothing, &IN_ORDER);
}

/// Of a buffer that went round the oldest byte is found to within a frame or a synchronisation.
const TURNED: Expected = Expected {
    every: 11,
    right: 0,
    warnings: &[Warning::AnotherAnswer, Warning::OtherDetails, Warning::Other],
};

#[test]
fn with_the_program_it_is_said_what_a_buffer_that_went_round_may_leave_out() {
    measure(&Programs::load().arrangements_turned_and_in_order().0, With::Program, &TURNED);
}

#[test]
fn without_the_program_it_is_said_what_a_buffer_that_went_round_may_leave_out() {
    measure(&Programs::load().arrangements_turned_and_in_order().0, With::Nothing, &TURNED);
}

#[test]
fn with_the_program_it_is_found_out_which_ids_carry_what() {
    let expected = Expected { every: 8, right: 99, warnings: &[] };
    measure(&Programs::load().several(), With::Program, &expected);
}

#[test]
fn without_the_program_it_is_found_out_which_ids_carry_what() {
    let expected = Expected { every: 8, right: 99, warnings: &[] };
    measure(&Programs::load().several(), With::Nothing, &expected);
}

#[test]
fn with_the_program_the_packets_of_an_mtb_are_put_in_order() {
    let expected = Expected { every: 11, right: 90, warnings: &[Warning::AnotherOrder] };
    measure(&Programs::load().mtbs(), With::Program, &expected);
}

#[test]
fn without_the_program_the_packets_of_an_mtb_are_put_in_order() {
    // Which packet a small program can have run to without a branch says little: where the oldest one is shows seldom.
    let expected = Expected { every: 11, right: 30, warnings: &[Warning::AnotherOrder] };
    measure(&Programs::load().mtbs(), With::Nothing, &expected);
}

#[test]
fn it_is_found_out_where_an_image_of_raw_bytes_stood() {
    let expected = Expected { every: 23, right: 90, warnings: &[Warning::ImageMoved] };
    measure(&Programs::load().images(), With::Program, &expected);
}
