//! Decodes generated PFT traces with `tracewalk`, which must find the path that the emulator recorded.

use crate::common::{assert_same, decoded, firmware};
use tracewalk::ids::{Address, ContextId, Exception, Isa};
use tracewalk::program::Program;
use tracewalk::protocol::SecurityBits;
use tracewalk::protocol::pft::{Config, Core, Decoder, Lowering, Registers};
use tracewalk_generate::firmware::Firmware;
use tracewalk_generate::found::Found;
use tracewalk_generate::path::{Executed, Path, Step, Taken};
use tracewalk_generate::pft::{Options, encode};
use tracewalk_generate::record::{Profile, Record};
use tracewalk_generate::trace::{EncodeError, Trace};

const BRANCH_BROADCAST: u32 = 1 << 8;
const CYCLE_ACCURATE: u32 = 1 << 12;
const RETURN_STACK: u32 = 1 << 29;

fn config(core: &str, etmcr: u32) -> Config {
    let registers = Registers { etmcr: Some(etmcr), ..Registers::default() };
    Config::from_registers(registers, Core::named(core)).unwrap()
}

/// Encodes and decodes; both must agree on everything that this configuration reports.
fn check(config: &Config, options: &Options) -> (Trace, Found) {
    let firmware = firmware("a9");
    let program = &firmware.elf.program;
    let trace = encode(&firmware.path, program, config, options).unwrap();
    let found = decoded(&trace.bytes, Decoder::new(config), Lowering::new(), config.rules(), program);
    assert_same(firmware.elf.profile, &trace.path, &found.path, &format!("{config:?}, {options:?}"));
    assert!(trace.path.instructions().count() > 10_000);
    (trace, found)
}

#[test]
fn the_a9_program_is_found_whatever_the_options() {
    for core in ["cortex-a9", "cortex-a15"] {
        for etmcr in
            [0, BRANCH_BROADCAST, CYCLE_ACCURATE, RETURN_STACK, RETURN_STACK | CYCLE_ACCURATE, 0xc000]
        {
            for synchronise_every in [None, Some(0), Some(50), Some(1024)] {
                let options = Options { synchronise_every, timestamp_every: Some(100), ..Options::default() };
                check(&config(core, etmcr), &options);
            }
        }
    }
}

#[test]
fn a_handler_that_is_interrupted_before_its_first_instruction_has_one_instruction_set() {
    let mut program = Program::new();
    program.add(Address::new(0x8000), &[0; 0x80]).unwrap(); // MOVS r0, r0
    let taken = |number, preferred_return, handler| {
        let exception = Exception::Ar(number);
        Step::Exception(Taken {
            exception,
            preferred_return: Some(Address::from(preferred_return)),
            handler: Address::from(handler),
        })
    };
    // The path does not show the instruction set of the first handler, and the code before it was Thumb.
    let executed = Executed { address: Address::new(0x8000), isa: Isa::T32, bytes: 2, passed: true };
    let steps = vec![Step::Instruction(executed), taken(14, 0x8002, 0x8060), taken(15, 0x8060, 0x8078)];
    let config = config("cortex-a15", CYCLE_ACCURATE);
    let options = Options { synchronise_every: Some(1), ..Options::default() };
    let trace = encode(&Path { steps }, &program, &config, &options).unwrap();
    let found = decoded(&trace.bytes, Decoder::new(&config), Lowering::new(), config.rules(), &program);
    assert_eq!(found.path.steps.len(), 3);
    assert_eq!(found.gaps, []);
}

#[test]
fn return_stacks_of_every_depth_make_shorter_traces() {
    let bytes = |etmcr, return_stack_depth| {
        let options = Options { return_stack_depth, ..Options::default() };
        check(&config("cortex-a15", etmcr), &options).0.bytes.len()
    };
    let depths = [1, 2, 4, 16].map(|depth| bytes(RETURN_STACK, depth));
    assert!(depths.is_sorted_by(|shallow, deep| shallow >= deep), "{depths:?}");
    assert!(depths[0] < bytes(0, 1));
}

#[test]
fn exception_returns_are_traced_from_version_1_1_on() {
    let returns = |core| {
        let (trace, _) = check(&config(core, 0), &Options::default());
        trace.path.steps.iter().filter(|step| matches!(step, Step::ExceptionReturn)).count()
    };
    assert_eq!(returns("cortex-a9"), 0);
    assert_eq!(returns("cortex-a15"), 60);
}

#[test]
fn every_cycle_is_found() {
    let options = Options { timestamp_every: Some(64), ..Options::default() };
    let (trace, decoded) = check(&config("cortex-a15", CYCLE_ACCURATE), &options);
    assert!(trace.cycles > 10_000);
    assert_eq!(decoded.cycles, trace.cycles);
    assert!(decoded.timestamps.is_sorted());
}

#[test]
fn context_ids_are_found_in_every_size() {
    for bits in 0b01..=0b11 {
        let (_, decoded) = check(&config("cortex-a9", bits << 14), &Options::default());
        let mut contexts = decoded.contexts.into_iter().flatten().collect::<Vec<_>>();
        contexts.dedup();
        assert_eq!(contexts, [0, 1, 2, 1, 2].map(ContextId));
    }
}

#[test]
fn security_state_is_sent_with_every_exception() {
    let security = SecurityBits { non_secure: true, hypervisor: false };
    check(&config("cortex-a15", 0), &Options { security, ..Options::default() });
}

#[test]
fn one_path_is_found_in_traces_of_every_form() {
    let runs = |etmcr| {
        let (_, decoded) = check(&config("cortex-a15", etmcr), &Options::default());
        let mut path = decoded.path;
        path.steps.retain(|step| !matches!(step, Step::ContextId(_)));
        Record::of_path(Profile::Ar, &path).runs().to_string()
    };
    let plain = runs(0);
    for etmcr in [BRANCH_BROADCAST, CYCLE_ACCURATE, RETURN_STACK, RETURN_STACK | CYCLE_ACCURATE | 0xc000] {
        assert!(runs(etmcr) == plain, "ETMCR {etmcr:#x}");
    }
}

/// `count` times `movw r0, #0`, then a branch to itself.
fn straight_code(isa: Isa, count: u32) -> (Program, Path) {
    let (load, branch) = match isa {
        Isa::A32 => ([0x00, 0x00, 0x00, 0xe3], [0xfe, 0xff, 0xff, 0xea].as_slice()),
        _ => ([0x40, 0xf2, 0x00, 0x00], [0xfe, 0xe7].as_slice()),
    };
    let start = Address::new(0x8000);
    let mut program = Program::new();
    program.add(start, &[&load.repeat(count as usize), branch].concat()).unwrap();
    let load =
        |index: u32| Executed { address: Address::from(0x8000 + 4 * index), isa, bytes: 4, passed: true };
    let branch = Executed { bytes: branch.len().try_into().unwrap(), ..load(count) };
    let executed = (0..count).map(load).chain([branch, branch]);
    (program, Path { steps: executed.map(Step::Instruction).collect() })
}

/// In Thumb the waypoint update points into the last instruction.
#[test]
fn code_without_waypoints_is_found_however_long_it_is() {
    for isa in [Isa::A32, Isa::T32] {
        for (instructions, updates) in [(1, 0), (1024, 0), (1025, 1), (5000, 1)] {
            let (program, path) = straight_code(isa, instructions);
            let config = config("cortex-a15", 0);
            let trace = encode(&path, &program, &config, &Options::default()).unwrap();
            assert_eq!(trace.path, path);
            let decoded =
                decoded(&trace.bytes, Decoder::new(&config), Lowering::new(), config.rules(), &program);
            assert_same(Profile::Ar, &path, &decoded.path, &format!("{isa}, {instructions}"));
            // A-sync, I-sync, an atom packet; a waypoint update adds a header and at least one byte.
            assert_eq!(trace.bytes.len() > 6 + 6 + 1, updates == 1, "{isa}, {instructions}");
        }
    }
}

#[test]
fn m_profile_paths_are_refused() {
    let Firmware { elf, path } = firmware("m3");
    let error = encode(&path, &elf.program, &config("cortex-a15", 0), &Options::default()).unwrap_err();
    assert!(matches!(error, EncodeError::NoExceptionCode { .. }), "{error}");
}
