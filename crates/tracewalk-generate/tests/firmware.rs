//! The committed records of the example firmware against the programs they were made from.

use std::path::PathBuf;

use tracewalk_generate::elf::{self, Elf};
use tracewalk_generate::path::{Path, Step};
use tracewalk_generate::record::Record;

const PROGRAMS: [&str; 2] = ["m3", "m0-crash"];

fn load(name: &str) -> (Elf, Record) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/firmware").join(name);
    let elf = elf::read(&std::fs::read(folder.join(format!("{name}.elf"))).unwrap()).unwrap();
    let record = std::fs::read_to_string(folder.join(format!("{name}.record"))).unwrap();
    (elf, Record::parse(&record).unwrap())
}

#[test]
fn records_survive_being_expanded_and_condensed() {
    for name in PROGRAMS {
        let (elf, record) = load(name);
        assert_eq!(record.profile, elf.profile, "{name}");
        let path = Path::expand(&record, &elf.program).unwrap();
        assert_eq!(Record::of_path(record.profile, &path), record, "{name}");
    }
}

#[test]
fn interrupts_hit_the_programs_at_many_places() {
    for (name, at_least) in [("m3", 50), ("m0-crash", 4)] {
        let (_, record) = load(name);
        let mut places = record
            .runs()
            .to_string()
            .lines()
            .filter(|line| line.starts_with("X 15 ") || line.starts_with("X 14 "))
            .map(str::to_owned)
            .collect::<Vec<_>>();
        places.sort();
        places.dedup();
        assert!(places.len() >= at_least, "{name}: {}", places.len());
    }
}

#[test]
fn every_program_executes_thousands_of_instructions_of_both_outcomes() {
    for name in PROGRAMS {
        let (elf, record) = load(name);
        let path = Path::expand(&record, &elf.program).unwrap();
        let instructions = path.instructions().count();
        assert!((5_000..40_000).contains(&instructions), "{name}: {instructions}");
        let failed = path.instructions().filter(|executed| !executed.passed).count();
        assert!(failed * 50 > instructions, "{name}: {failed} of {instructions} failed their condition");
        assert!(path.steps.iter().any(|step| matches!(step, Step::ExceptionReturn)), "{name}");
    }
}
