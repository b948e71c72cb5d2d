//! Generated PFT traces, decoded by `tracewalk`: it has to find what the emulator recorded.

mod common;

use common::{Decoded, Firmware, assert_same};
use tracewalk::ids::{ContextId, SecurityState};
use tracewalk::protocol::pft::{Config, Core, Decoder, Lowering, Registers};
use tracewalk_generate::path::Step;
use tracewalk_generate::pft::{Options, encode};
use tracewalk_generate::trace::Trace;

const BRANCH_BROADCAST: u32 = 1 << 8;
const CYCLE_ACCURATE: u32 = 1 << 12;
const RETURN_STACK: u32 = 1 << 29;

fn config(core: &str, etmcr: u32) -> Config {
    let registers = Registers { etmcr: Some(etmcr), ..Registers::default() };
    Config::from_registers(registers, Core::named(core)).unwrap()
}

/// Encodes and decodes; the two have to agree on everything that this configuration tells.
fn check(config: &Config, options: &Options) -> (Trace, Decoded) {
    let firmware = Firmware::load("a9");
    let program = &firmware.elf.program;
    let trace = encode(&firmware.path, program, config, options).unwrap();
    let decoded = Decoded::of(&trace.bytes, Decoder::new(config), Lowering::new(), config.rules(), program);
    assert_same(firmware.elf.profile, &trace.told, &decoded.path, &format!("{config:?}, {options:?}"));
    assert!(trace.told.instructions().count() > 10_000);
    (trace, decoded)
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
fn exception_returns_are_told_from_version_1_1_on() {
    let returns = |core| {
        let (trace, _) = check(&config(core, 0), &Options::default());
        trace.told.steps.iter().filter(|step| matches!(step, Step::ExceptionReturn)).count()
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
    let security = SecurityState { non_secure: true, hypervisor: false };
    check(&config("cortex-a15", 0), &Options { security, ..Options::default() });
}
