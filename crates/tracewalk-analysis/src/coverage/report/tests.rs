use std::collections::BTreeMap;
use std::sync::Arc;

use tracewalk::ids::{Address, Isa};
use tracewalk::program::Program;

use super::*;
use crate::coverage::{
    BlockKey, Conditions, Coverage, Outcome, Part, ProgramCoverage, Recorder, Tally, Tracefile,
};
use crate::programs::{OfProgram, ProgramId};
use crate::symbols::{self, Extent, Frame, SourceFile, Stretch};
use crate::{Code, Doubtful};

/// ```text
/// main   100 movs r0, #1      main.c:10
///        102 cmp r0, #2       main.c:11
///        104 beq 10a          main.c:11
///        106 movs r0, #2      util.h:5   twice() inlined at main.c:12
///        108 nop              util.h:5   twice() inlined at main.c:13
///        10a bx lr            main.c:14
/// twice  10c movs r0, #2      util.h:5
///        10e it ne            util.h:6
///        110 movne r0, #3     util.h:7
///        112 bx lr            util.h:8
/// ```
const CODE: [u16; 10] = [0x2001, 0x2802, 0xd001, 0x2002, 0xbf00, 0x4770, 0x2002, 0xbf18, 0x2003, 0x4770];

struct Known;

impl symbols::Symbols for Known {
    fn function(&self, address: Address) -> Option<symbols::Function<'_>> {
        Some(if address.get() < 0x10c {
            symbols::Function { name: "main", start: Address::new(0x100) }
        } else {
            symbols::Function { name: "twice", start: Address::new(0x10c) }
        })
    }

    fn frames(&self, address: Address) -> Arc<[Frame]> {
        let frame = |function: &str, file: &str, line| Frame {
            function: Some(function.into()),
            file: Some(file.into()),
            line: Some(line),
        };
        let main = |line| frame("main", "main.c", line);
        let twice = |line| frame("twice", "util.h", line);
        let frames = match address.get() {
            0x100 => vec![main(10)],
            0x102 | 0x104 => vec![main(11)],
            0x106 => vec![twice(5), main(12)],
            0x108 => vec![twice(5), main(13)],
            0x10a => vec![main(14)],
            0x10c => vec![twice(5)],
            0x10e => vec![twice(6)],
            0x110 => vec![twice(7)],
            _ => vec![twice(8)],
        };
        frames.into()
    }

    fn source_line(&self, _: &str, _: u32) -> Option<String> {
        None
    }

    fn functions(&self) -> Vec<Extent> {
        let extent = |name: &str, start, end| Extent {
            name: name.to_owned(),
            symbol: name.to_owned(),
            start: Address::from(start),
            end,
            isa: Some(Isa::T32),
        };
        vec![extent("main", 0x100, 0x10c), extent("twice", 0x10c, 0x114)]
    }

    fn stretches(&self) -> Vec<Stretch> {
        vec![Stretch { start: Address::new(0x100), end: 0x114, isa: Some(Isa::T32) }]
    }
}

fn code() -> Code {
    let mut program = Program::new();
    let bytes = CODE.iter().flat_map(|halfword| halfword.to_le_bytes()).collect::<Vec<_>>();
    program.add(Address::new(0x100), &bytes).unwrap();
    Code { program: Arc::new(program), symbols: Box::new(Known), ..Code::unknown() }
}

fn report(conditions: Conditions, blocks: &[(u32, u32, Outcome, u64)], filter: &dyn Filter) -> Report {
    let blocks = blocks.iter().map(|&(start, end, outcome, count)| {
        let (start, end) = (Address::from(start), Address::from(end));
        (BlockKey { start, end, isa: Isa::T32, outcome, conditions }, count)
    });
    let source = Recorder::new(conditions, Doubtful::Drop).finish("a capture", "-", "etmv3", 0).source;
    let mut coverage = Coverage::default();
    let found = ProgramCoverage::of(Part { source, blocks: blocks.collect() });
    coverage.add(ProgramId::Code([0; 32]), ["a.elf".to_owned()], found);
    let code = code();
    let programs = coverage.programs.iter();
    let inputs = programs.map(|(id, OfProgram { images, found })| ProgramInput {
        id,
        images,
        coverage: found,
        code: &code,
    });
    Report::of(&inputs.collect::<Vec<_>>(), filter)
}

fn lines(report: &Report) -> BTreeMap<(&str, u32), (u64, LineState)> {
    let lines = report.files.iter().flat_map(|file| file.lines.iter().map(|line| (file.name.as_str(), line)));
    lines.map(|(file, line)| ((file, line.number), (line.count, line.state))).collect()
}

/// Once through main with the branch not taken.
const MAIN: [(u32, u32, Outcome, u64); 2] =
    [(0x100, 0x106, Outcome::NotTaken, 1), (0x106, 0x10c, Outcome::Taken, 1)];

#[test]
fn lines_are_counted_in_every_place_that_they_were_compiled_into() {
    let report = report(Conditions::OfEvery, &MAIN, &Every);
    let expected = [
        (("main.c", 10), (1, LineState::Covered)),
        (("main.c", 11), (1, LineState::Covered)),
        (("main.c", 14), (1, LineState::Covered)),
        // Two copies in main ran, and the function itself did not.
        (("util.h", 5), (2, LineState::Covered)),
        (("util.h", 6), (0, LineState::Unreached)),
        (("util.h", 7), (0, LineState::Unreached)),
        (("util.h", 8), (0, LineState::Unreached)),
    ];
    assert_eq!(lines(&report), expected.into_iter().collect());
    let copies = &report.files[1].lines[0].copies;
    let inlined = copies.iter().map(|copy| {
        let calls = &report.copies[copy.copy].inlined;
        (calls.iter().map(|call| call.line.unwrap()).collect::<Vec<_>>(), copy.count, copy.state)
    });
    let expected = [
        (vec![12], 1, LineState::Covered),
        (vec![13], 1, LineState::Covered),
        (vec![], 0, LineState::Unreached),
    ];
    assert_eq!(inlined.collect::<Vec<_>>(), expected);
}

#[test]
fn functions_know_how_often_they_were_entered_and_what_of_them_ran() {
    let report = report(Conditions::OfEvery, &MAIN, &Every);
    let tally = |covered, found| Tally { found, covered, unrecorded: 0 };
    let [main, twice] = report.functions.as_slice() else { panic!("there are two") };
    assert_eq!((main.name.as_deref(), main.entered, main.line), (Some("main"), 1, Some(10)));
    assert_eq!((main.totals.instructions, main.totals.branches), (tally(6, 6), tally(1, 2)));
    assert_eq!(main.totals.lines, tally(4, 4));
    assert_eq!((twice.entered, twice.totals.instructions, twice.totals.lines), (0, tally(0, 4), tally(0, 4)));
    assert_eq!(report.totals.functions, tally(1, 2));
    assert_eq!(report.totals.lines, tally(4, 7));
    assert_eq!(report.totals.branches, tally(1, 4));
    assert_eq!(report.files[0].totals.functions, tally(1, 1));
    assert_eq!(report.files[1].totals.functions, tally(0, 1));
}

#[test]
fn a_line_whose_condition_failed_did_not_run_and_a_branch_that_was_not_taken_did() {
    let blocks = [(0x10c, 0x112, Outcome::Failed, 3), (0x112, 0x114, Outcome::Taken, 3)];
    let report = report(Conditions::OfEvery, &blocks, &Every);
    assert_eq!(lines(&report)[&("util.h", 7)], (0, LineState::Skipped));
    assert_eq!(lines(&report)[&("util.h", 8)], (3, LineState::Covered));
    let skipped = report.files[1].lines.iter().find(|line| line.number == 7).unwrap();
    let branches = report.branches(skipped).map(|(_, branch)| branch).collect::<Vec<_>>();
    assert_eq!(branches, [Branch { taken: OutcomeCount::Never, not_taken: OutcomeCount::Seen(3) }]);
}

#[test]
fn what_no_trace_records_is_neither_covered_nor_uncovered() {
    let blocks = [(0x10c, 0x114, Outcome::Taken, 3), MAIN[0]];
    let report = report(Conditions::OfBranches, &blocks, &Every);
    assert_eq!(lines(&report)[&("util.h", 7)], (0, LineState::Unrecorded));
    let totals = report.files[1].totals;
    assert_eq!(totals.lines, Tally { found: 3, covered: 3, unrecorded: 1 });
    assert_eq!(totals.branches, Tally { found: 0, covered: 0, unrecorded: 2 });
    // Branches are reported by every trace.
    assert_eq!(report.files[0].totals.branches, Tally { found: 2, covered: 1, unrecorded: 0 });
    let tracefile = Tracefile::of(&report, |_| None);
    assert_eq!(tracefile.files["util.h"].lines.keys().collect::<Vec<_>>(), [&5, &6, &8]);
}

#[test]
fn a_line_of_which_a_part_never_ran_is_partly_covered() {
    // An interrupt came between the comparison and the branch, and execution never came back.
    let report = report(Conditions::OfEvery, &[(0x100, 0x104, Outcome::Passed, 1)], &Every);
    assert_eq!(lines(&report)[&("main.c", 11)], (1, LineState::Partly));
    let lines = report.files.iter().flat_map(|file| &file.lines);
    let covered = lines.filter(|line| line.state.is_covered()).map(|line| line.number).collect::<Vec<_>>();
    assert!(covered.contains(&11), "{covered:?}");
    assert_eq!(report.totals.lines.covered, covered.len() as u64);
}

#[test]
fn code_that_is_not_wanted_is_not_reported() {
    struct Only(&'static str);
    impl Filter for Only {
        fn keeps(&self, file: Option<&str>, functions: &[&str]) -> bool {
            file == Some(self.0) || functions == [self.0]
        }
    }
    let found = report(Conditions::OfEvery, &MAIN, &Only("util.h"));
    assert_eq!(found.files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(), ["util.h"]);
    assert_eq!(found.totals.instructions.found, 6);
    // Only inlined code of `main` is left, so the file of `main` is unknown.
    assert_eq!(found.functions[0].file, None);
    let found = report(Conditions::OfEvery, &MAIN, &Only("twice"));
    assert_eq!(found.totals.instructions.found, 4);
    assert_eq!(found.functions.len(), 1);
}

#[test]
fn a_tracefile_has_the_counts_checksums_and_paths_of_the_sources() {
    let report = report(Conditions::OfEvery, &MAIN, &Every);
    let text = "\n".repeat(9) + "int main() {\r\n";
    let source = |name: &str| {
        (name == "main.c")
            .then(|| SourceFile { path: "/src/main.c".to_owned(), text: text.clone().into_bytes() })
    };
    let tracefile = Tracefile::of(&report, source);
    let main = &tracefile.files["/src/main.c"];
    // `printf 'int main() {' | openssl md5 -binary | base64`, without its padding
    assert_eq!(main.lines[&10].checksum.as_deref(), Some("2dfWUGE6isJvbf4lDXfo6g"));
    assert_eq!(main.lines[&14].checksum, None);
    assert_eq!(main.functions["main"].count, 1);
    assert_eq!(main.branches, [((11, 0, 0), Some(0)), ((11, 0, 1), Some(1))].into_iter().collect());
    assert_eq!(tracefile.files["util.h"].functions["twice"].line, 5);
}
