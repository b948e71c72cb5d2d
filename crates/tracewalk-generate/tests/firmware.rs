//! Checks the committed records of the example firmware against their programs.

use std::path::PathBuf;

use tracewalk::ids::{Address, Isa};
use tracewalk::isa::Class;
use tracewalk_generate::elf::{self, Elf};
use tracewalk_generate::path::{Path, Step};
use tracewalk_generate::record::Record;

const PROGRAMS: [&str; 13] = [
    "m3", "a9", "m0-crash", "m0", "m4", "jumps", "a15", "a53", "m33", "kernel-f", "kernel-z", "rust-m3", "rust-a9",
];

fn load(name: &str) -> (Elf, Record) {
    let folder = if name.starts_with("kernel-") { "kernel" } else { name };
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/firmware").join(folder);
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
    for (name, at_least) in [
        ("m3", 50),
        ("a9", 30),
        ("m0-crash", 4),
        ("m0", 15),
        ("m4", 15),
        ("jumps", 15),
        ("a15", 8),
        ("a53", 20),
        ("m33", 25),
        ("kernel-f", 45),
        ("kernel-z", 45),
        ("rust-m3", 12),
    ] {
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
        assert!((5_000..150_000).contains(&instructions), "{name}: {instructions}");
        let failed = path.instructions().filter(|executed| !executed.passed).count();
        assert!(failed * 50 > instructions, "{name}: {failed} of {instructions} failed their condition");
        assert!(path.steps.iter().any(|step| matches!(step, Step::ExceptionReturn)), "{name}");
    }
}

/// A crash ends at the first instruction of the handler, where the debugger stopped.
#[test]
fn crashes_end_in_the_exception_that_ends_them() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/firmware/crash");
    for (core, kind, exception) in [
        ("m0", "null-pointer", 3),
        ("m0", "unaligned", 3),
        ("m0", "missing-handler", 21),
        ("m0", "watchdog", 24),
        ("m3", "null-pointer", 3),
        ("m3", "unaligned", 6),
        ("m3", "missing-handler", 21),
        ("m3", "watchdog", 1),
        ("m4", "null-pointer", 3),
        ("m4", "unaligned", 6),
    ] {
        let elf = elf::read(&std::fs::read(folder.join(format!("crash-{core}.elf"))).unwrap()).unwrap();
        let record = std::fs::read_to_string(folder.join(format!("{core}-{kind}.record"))).unwrap();
        let record = Record::parse(&record).unwrap();
        let path = Path::expand(&record, &elf.program).unwrap();
        assert_eq!(Record::of_path(record.profile, &path), record, "{core} {kind}");
        let Some(Step::Exception(taken)) = path.steps.last() else { panic!("{core} {kind}") };
        assert_eq!(taken.exception.number(), exception, "{core} {kind}");
    }
}

/// Conditions and targets come from different parts of the log, so that each confirms the other.
#[test]
fn execution_goes_where_the_instructions_say() {
    for name in PROGRAMS {
        let (elf, record) = load(name);
        let path = Path::expand(&record, &elf.program).unwrap();
        // The address at which execution must continue, unless an exception comes first.
        let mut expected = None::<Address>;
        for step in &path.steps {
            match step {
                Step::Instruction(executed) => {
                    assert!(
                        expected.is_none_or(|at| at == executed.address),
                        "{name}: {step:x?} {expected:x?}"
                    );
                    let class = executed.classify(&elf.program).unwrap().class;
                    expected = match class {
                        Class::Other | Class::Barrier(_) | Class::Wait | Class::TransactionStart => {
                            Some(executed.end())
                        }
                        Class::Direct(target) if executed.passed => Some(target.address),
                        Class::Indirect if executed.passed => None,
                        Class::Direct(_) | Class::Indirect => Some(executed.end()),
                    };
                }
                Step::Exception(taken) => expected = Some(taken.handler),
                Step::ExceptionReturn => expected = None,
                Step::Access(_) | Step::ContextId(_) | Step::State(_) => {}
            }
        }
    }
}

/// The preferred return address is the target of the handler's return unless the handler changes it. The
/// example handlers change it for undefined instructions, breakpoints and jumps to addresses without code,
/// which they skip.
#[test]
fn exceptions_return_to_the_preferred_return_address() {
    let none = [].as_slice();
    // The programs that are missing here switch tasks: their handlers return to a task that was interrupted
    // at another time.
    for (name, changed) in [
        ("m3", none),
        ("a9", &[9, 11]),
        ("m0-crash", none),
        ("m0", none),
        ("m33", none),
        ("rust-m3", none),
        ("rust-a9", none),
    ] {
        let (elf, record) = load(name);
        let path = Path::expand(&record, &elf.program).unwrap();
        let mut active = Vec::new();
        let mut returning = None::<Address>;
        for step in &path.steps {
            match step {
                Step::Exception(taken) => {
                    let resumed = returning.take();
                    match taken.preferred_return {
                        // Tail-chaining: the last handler resumes the code that was interrupted first.
                        None => active.push(resumed),
                        Some(at) => {
                            assert!(resumed.is_none_or(|resumed| resumed == at), "{name}: {at}");
                            let changes = changed.contains(&taken.exception.number());
                            active.push((!changes).then_some(at));
                        }
                    }
                }
                Step::ExceptionReturn => returning = active.pop().flatten(),
                Step::Instruction(executed) => {
                    if let Some(at) = returning.take() {
                        assert_eq!(at, executed.address, "{name}");
                    }
                }
                Step::Access(_) | Step::ContextId(_) | Step::State(_) => {}
            }
        }
    }
}

/// QEMU logs the exception level independently of the exceptions and returns that change it.
#[test]
fn exception_levels_change_as_exceptions_and_returns_do() {
    let (elf, record) = load("a53");
    let path = Path::expand(&record, &elf.program).unwrap();
    let mut level = 3;
    let mut changed_by = None::<&Step>;
    let mut levels = [0; 4];
    let mut sets = Vec::new();
    for step in path.steps.iter().skip(1) {
        match step {
            Step::State(state) => {
                match changed_by {
                    Some(Step::Exception(_)) => assert!(state.level > level, "{state:?}"),
                    Some(Step::ExceptionReturn) => assert!(state.level < level, "{state:?}"),
                    step => panic!("{step:?}"),
                }
                assert_eq!(state.non_secure, state.level < 3);
                level = state.level;
            }
            Step::Instruction(executed) => {
                levels[usize::from(level)] += 1;
                sets.push((level, executed.isa));
            }
            _ => {}
        }
        if !matches!(step, Step::Access(_) | Step::ContextId(_)) {
            changed_by = Some(step);
        }
    }
    assert!(levels.iter().all(|&instructions| instructions > 20), "{levels:?}");
    sets.sort();
    sets.dedup();
    let at_0 = [Isa::A32, Isa::T32, Isa::A64].map(|isa| (0, isa));
    assert_eq!(sets, [&at_0[..], &[1, 2, 3].map(|level| (level, Isa::A64))].concat());
}

/// Secure and Non-secure state change by BLXNS, BXNS, SG, the return from a Non-secure function, exceptions and their returns.
#[test]
fn the_security_state_changes_where_an_instruction_or_exception_changes_it() {
    let (elf, record) = load("m33");
    let path = Path::expand(&record, &elf.program).unwrap();
    let is_gateway = |address: Address| (0x1001_0000..0x1002_0000).contains(&address.get());
    let mut ways = std::collections::BTreeMap::<&str, usize>::new();
    for (index, step) in path.steps.iter().enumerate().skip(1) {
        let Step::State(state) = step else { continue };
        let Some(Step::Instruction(next)) = path.steps.get(index + 1) else { panic!("{step:?}") };
        // Everything outside of the Secure aliases is Non-secure memory.
        assert_eq!(state.non_secure, next.address < Address::new(0x1000_0000), "{next:?}");
        let way = match &path.steps[index - 1] {
            Step::Exception(_) => "exception",
            Step::ExceptionReturn => "return",
            Step::Instruction(last) if is_gateway(last.address) => "gateway",
            Step::Instruction(last) => match last.classify(&elf.program).unwrap() {
                branch if branch.link => "call",
                branch if branch.returns.is_some() && state.non_secure => "back",
                _ => "function return",
            },
            step => panic!("{step:?}"),
        };
        *ways.entry(way).or_default() += 1;
    }
    let least = [
        ("back", 15),
        ("call", 10),
        ("exception", 5),
        ("function return", 10),
        ("gateway", 20),
        ("return", 5),
    ];
    assert!(ways.keys().copied().eq(least.iter().map(|(way, _)| *way)), "{ways:?}");
    assert!(least.iter().all(|(way, least)| ways[way] >= *least), "{ways:?}");
}
