//! Decodes generated ETMv4 and ETE traces with `tracewalk`, which must find the executed path.

use crate::common::{assert_same, decoded, firmware};
use tracewalk::ids::{Address, ContextId, Profile, Vmid};
use tracewalk::isa::Class;
use tracewalk::protocol::etmv4::{Config, Core, Decoder, Lowering, Registers};
use tracewalk_generate::a64;
use tracewalk_generate::etmv4::{ContextPlace, Options, encode};
use tracewalk_generate::firmware::Firmware;
use tracewalk_generate::found::{Found, first_difference};
use tracewalk_generate::path::{Executed, Path, Step, Taken};
use tracewalk_generate::trace::Trace;

const CYCLES: u32 = 1 << 4;
const RETURN_STACK: u32 = 1 << 12;

fn config(core: &str, trcconfigr: u32, speculation: u32, trcidr0: Option<u32>) -> Config {
    let core = Core::named(core).unwrap();
    let registers = Registers {
        trcconfigr: Some(1 | trcconfigr),
        trcidr8: Some(speculation),
        trcidr0,
        ..Registers::default()
    };
    Config::from_registers(registers.or_usual_of(core), Some(core.profile())).unwrap()
}

/// Encodes and decodes; both must agree on everything that this configuration reports.
fn check(firmware: &Firmware, config: &Config, options: &Options) -> (Trace, Found) {
    let Firmware { elf, path } = firmware;
    let trace = encode(path, &elf.program, config, options).unwrap();
    let found =
        decoded(&trace.bytes, Decoder::new(config), Lowering::new(config), config.rules(), &elf.program);
    assert_same(elf.profile, &trace.path, &found.path, &format!("{config:?}, {options:?}"));
    assert_eq!(trace.starts, found.starts);
    if config.cycle_counting() && options.pauses.is_none() {
        assert_eq!(trace.cycles, found.cycles);
    }
    (trace, found)
}

/// TRCIDR0 of a Cortex-A53 with COMMOPT 0: cycle counts commit.
const COMMITTING: u32 = 0x0800_0ea1;
/// The same TRCIDR0 with Q elements.
const COMMITTING_Q: u32 = 0x0801_cea1;

/// Every setting that changes the trace, one at a time and in some combinations.
fn all_options() -> Vec<Options> {
    let usual = Options::default();
    let mut all = vec![usual];
    for synchronise_every in [None, Some(0), Some(50)] {
        all.push(Options { synchronise_every, timestamp_every: Some(50), event_every: Some(70), ..usual });
        all.push(Options { synchronise_every, late_addresses: true, exceptions_answer: false, ..usual });
        for late_addresses in [false, true] {
            let keeping = Options { synchronise_every, keeps_returns: true, late_addresses, ..usual };
            all.push(Options { return_stack_depth: 16, ..keeping });
        }
    }
    for (_, contexts) in ContextPlace::ALL {
        all.push(Options { contexts, context_ids: true, vmid: Some(Vmid(7)), non_secure: true, ..usual });
    }
    all.push(Options { branch_broadcast: true, exact_matches: false, ..usual });
    all.push(Options { q_every: Some(3), source_address_every: Some(2), wrong_path_every: None, ..usual });
    all.push(Options {
        q_every: Some(2),
        wrong_path_every: Some(1),
        commit_every: 1,
        cycle_threshold: 0,
        ..usual
    });
    all.push(Options { source_address_every: Some(1), commit_every: 1000, return_stack_depth: 16, ..usual });
    all.push(Options { pauses: "700:90:overflow".parse().ok(), ..usual });
    all.push(Options { pauses: "53:31:enabled".parse().ok(), ..usual });
    all.push(Options { pauses: "311:400:debug".parse().ok(), late_addresses: true, ..usual });
    all
}

fn every_configuration(firmware: &Firmware, cores: &[&str]) {
    for core in cores {
        for trcconfigr in [0, CYCLES, RETURN_STACK, RETURN_STACK | CYCLES] {
            for (speculation, trcidr0) in
                [(0, None), (1, None), (3, Some(COMMITTING_Q)), (30, Some(COMMITTING)), (255, None)]
            {
                for options in all_options() {
                    check(firmware, &config(core, trcconfigr, speculation, trcidr0), &options);
                }
            }
        }
    }
}

#[test]
fn programs_in_a64_are_found_whatever_the_options() {
    // The last two seeds are regressions.
    for (seed, core) in
        [(0, "cortex-a53"), (1, "cortex-a510"), (20_672, "cortex-a53"), (48_742, "cortex-a510")]
    {
        let firmware = a64::firmware(seed);
        assert!(firmware.path.steps.len() > 2000);
        every_configuration(&firmware, &[core]);
    }
}

#[test]
fn the_a9_program_is_found_whatever_the_options() {
    every_configuration(&firmware("a9"), &["cortex-a32"]);
}

#[test]
fn the_m3_program_is_found_whatever_the_options() {
    every_configuration(&firmware("m3"), &["cortex-m33"]);
}

#[test]
fn the_a53_program_is_found_whatever_the_options() {
    let mut firmware = firmware("a53");
    // All that the program does begins in the first 10,000 steps;
    // `the_emulators_record_of_a64_is_what_is_found` covers the rest.
    firmware.path.steps.truncate(10_000);
    every_configuration(&firmware, &["cortex-a53"]);
}

#[test]
fn the_m33_program_is_found_whatever_the_options() {
    every_configuration(&firmware("m33"), &["cortex-m33"]);
}

/// The decoder finds what the emulator recorded, apart from what the trace does not show: whether the
/// condition of an AArch32 non-branch failed, undefined instructions, and the steps after the last branch.
#[test]
fn the_emulators_record_of_a64_is_what_is_found() {
    let firmware = firmware("a53");
    let recorded = what_a_trace_says(&firmware);
    for core in ["cortex-a53", "cortex-a57", "cortex-a55", "neoverse-v2"] {
        for (speculation, trcconfigr) in [(0, 0), (0, RETURN_STACK), (30, CYCLES)] {
            let options = Options { context_ids: true, ..Options::default() };
            let (_, found) = check(&firmware, &config(core, trcconfigr, speculation, None), &options);
            let length = found.path.steps.len();
            assert!(recorded.len() - length < 20, "{core}: {length} of {}", recorded.len());
            assert_eq!(
                first_difference(Profile::Ar, &Path { steps: recorded[..length].to_vec() }, &found.path),
                None
            );
            let mut contexts = found.contexts.into_iter().flatten().collect::<Vec<_>>();
            contexts.dedup();
            let traced = firmware.path.steps.iter().filter_map(|step| match step {
                Step::ContextId(context_id) => Some(*context_id),
                _ => None,
            });
            let traced = std::iter::once(ContextId(0)).chain(traced).collect::<Vec<_>>();
            assert_eq!(contexts, traced, "{core}");
        }
    }
}

/// The steps of an emulator's record that an ETMv4 trace shows.
fn what_a_trace_says(firmware: &Firmware) -> Vec<Step> {
    let mut said = Vec::new();
    for step in &firmware.path.steps {
        match *step {
            Step::Instruction(executed) => {
                let is_branch = matches!(
                    executed.classify(&firmware.elf.program).unwrap().class,
                    Class::Direct(_) | Class::Indirect
                );
                said.push(Step::Instruction(Executed { passed: executed.passed || !is_branch, ..executed }));
            }
            Step::Exception(taken) => {
                let is_last = |step: &Step| matches!(step, Step::Instruction(last) if Some(last.address) == taken.preferred_return);
                if said.last().is_some_and(is_last) {
                    said.pop();
                }
                said.push(Step::Exception(Taken { handler: Address::new(0), ..taken }));
            }
            Step::ExceptionReturn => said.push(*step),
            Step::Access(_) | Step::ContextId(_) | Step::State(_) => {}
        }
    }
    said
}

#[test]
fn the_emulators_record_of_two_security_states_is_what_is_found() {
    let firmware = firmware("m33");
    let recorded = what_a_trace_says(&firmware);
    for (core, trcconfigr) in
        [("cortex-m33", 0), ("cortex-m33", RETURN_STACK), ("cortex-m55", RETURN_STACK | CYCLES)]
    {
        let (_, found) = check(&firmware, &config(core, trcconfigr, 0, None), &Options::default());
        let length = found.path.steps.len();
        assert!(recorded.len() - length < 20, "{core}: {length} of {}", recorded.len());
        // An exception that replaces a return keeps the return before it.
        assert_eq!(
            first_difference(Profile::M, &Path { steps: recorded[..length].to_vec() }, &found.path),
            None
        );
    }
}

#[test]
fn every_program_is_found() {
    for (names, core) in [
        (&["m0", "m3", "m33", "m4", "jumps", "rust-m3"][..], "cortex-m33"),
        (&["a9", "a15", "a53", "rust-a9"], "cortex-a53"),
    ] {
        for name in names {
            for (speculation, trcidr0) in [(0, None), (30, Some(COMMITTING))] {
                let config = config(core, RETURN_STACK | CYCLES, speculation, trcidr0);
                let (trace, _) = check(&firmware(name), &config, &Options::default());
                assert!(trace.path.instructions().count() > 1000, "{name}");
            }
        }
    }
}

#[test]
fn exceptions_and_returns_are_traced() {
    let (trace, _) = check(&firmware("a9"), &config("cortex-a32", 0, 0, None), &Options::default());
    let count = |is: fn(&Step) -> bool| trace.path.steps.iter().filter(|step| is(step)).count();
    assert_eq!(count(|step| matches!(step, Step::ExceptionReturn)), 60);
    assert_eq!(count(|step| matches!(step, Step::Exception(_))), 60);
}

#[test]
fn return_stacks_of_every_depth_make_shorter_traces() {
    let firmware = firmware("a15");
    let bytes = |trcconfigr, return_stack_depth| {
        let options = Options { return_stack_depth, ..Options::default() };
        check(&firmware, &config("cortex-a53", trcconfigr, 0, None), &options).0.bytes.len()
    };
    let depths = [1, 2, 4, 16].map(|depth| bytes(RETURN_STACK, depth));
    assert!(depths.is_sorted_by(|shallow, deep| shallow >= deep), "{depths:?}");
    assert!(depths[0] < bytes(0, 1));
}

/// The entries from before a trace info packet stay in order after a call between that packet and its
/// address.
#[test]
fn calls_between_a_trace_info_packet_and_its_address_make_no_entries() {
    let firmware = firmware("a15");
    let config = config("cortex-a53", RETURN_STACK, 0, None);
    for synchronise_every in [20, 50, 200] {
        let synchronise_every = Some(synchronise_every);
        let late_addresses = true;
        let forgetful =
            Options { synchronise_every, late_addresses, return_stack_depth: 16, ..Options::default() };
        let keeping = Options { keeps_returns: true, ..forgetful };
        let [forgetful, keeping] =
            [forgetful, keeping].map(|options| check(&firmware, &config, &options).0.bytes.len());
        assert!(keeping < forgetful, "{synchronise_every:?}: {keeping} of {forgetful} bytes");
    }
}

#[test]
fn context_ids_are_found() {
    let options = Options { context_ids: true, ..Options::default() };
    let (_, found) = check(&firmware("a9"), &config("cortex-a53", 0, 0, None), &options);
    let mut contexts = found.contexts.into_iter().flatten().collect::<Vec<_>>();
    contexts.dedup();
    assert_eq!(contexts, [0, 1, 2, 1, 2].map(ContextId));
}

#[test]
fn wrong_paths_change_nothing_but_the_bytes() {
    for firmware in [firmware("m4"), a64::firmware(7)] {
        let core = if firmware.elf.profile == Profile::M { "cortex-m33" } else { "neoverse-n1" };
        let of = |speculation, wrong_path_every| {
            let options = Options { wrong_path_every, ..Options::default() };
            check(&firmware, &config(core, RETURN_STACK, speculation, None), &options).0
        };
        let (certain, speculative) = (of(0, None), of(30, Some(2)));
        assert_eq!(certain.path, speculative.path);
        assert!(speculative.bytes.len() > 2 * certain.bytes.len());
    }
}

#[test]
fn a_trace_that_begins_with_an_exception_begins_where_it_was_taken() {
    let mut firmware = firmware("a9");
    // The test drops the steps before the first exception.
    let first = firmware.path.steps.iter().position(|step| matches!(step, Step::Exception(_)));
    let _ = firmware.path.steps.drain(..first.expect("the program is interrupted"));
    let (_, found) = check(&firmware, &config("cortex-a53", 0, 0, None), &Options::default());
    assert_eq!(found.gaps, []);
}
