//! Decodes generated ETMv3 traces with `tracewalk`, which must find the path that the emulator recorded.

use crate::common::{assert_same, decoded, firmware};
use tracewalk::ids::{Address, ContextId};
use tracewalk::protocol::SecurityBits;
use tracewalk::protocol::etmv3::{Config, Core, Decoder, Lowering, Registers};
use tracewalk_generate::etmv3::{Cancel, Options, encode};
use tracewalk_generate::found::Found;
use tracewalk_generate::path::Step;
use tracewalk_generate::trace::Trace;

fn config(core: &str, etmcr: u32, etmidr: Option<u32>) -> Config {
    let registers = Registers { etmcr: Some(etmcr), etmidr, ..Registers::default() };
    Config::from_registers(registers, Core::named(core)).unwrap()
}

/// Encodes and decodes; both must agree on everything that this configuration reports.
fn check(name: &str, config: &Config, options: &Options) -> (Trace, Found) {
    let firmware = firmware(name);
    let program = &firmware.elf.program;
    let trace = encode(&firmware.path, program, config, options).unwrap();
    let decoded = decoded(&trace.bytes, Decoder::new(config), Lowering::new(config), config.rules(), program);
    let mut expected = trace.path.clone();
    for step in &mut expected.steps {
        if let Step::Access(access) = step {
            access.address = if config.data().addresses { access.address } else { Address::default() };
            access.value = access.value.filter(|_| config.data().values);
        }
    }
    assert_same(firmware.elf.profile, &expected, &decoded.path, &format!("{config:?}, {options:?}"));
    (trace, decoded)
}

#[test]
fn the_m3_program_is_found_whatever_the_options() {
    for etmcr in [0, 0x100] {
        for cancel in [Cancel::Never, Cancel::Multiple, Cancel::Always] {
            for synchronise_every in [None, Some(0), Some(40), Some(1024)] {
                for tail_chaining_cancels in [false, true] {
                    let options = Options {
                        cancel,
                        synchronise_every,
                        tail_chaining_cancels,
                        timestamp_every: Some(100),
                        ..Options::default()
                    };
                    let (trace, _) = check("m3", &config("cortex-m3", etmcr, None), &options);
                    assert!(trace.path.instructions().count() > 17_000);
                }
            }
        }
    }
}

#[test]
fn the_a9_program_is_found_in_both_address_encodings() {
    const ALTERNATIVE: u32 = 0x411c_f250;
    for etmidr in [None, Some(ALTERNATIVE)] {
        for etmcr in [0, 0x100, 0x1000, 0x1100, 0xc000, 0x500c] {
            for cancel in [Cancel::Never, Cancel::Multiple, Cancel::Always] {
                let options = Options { cancel, synchronise_every: Some(200), ..Options::default() };
                check("a9", &config("cortex-a7", etmcr, etmidr), &options);
            }
        }
    }
}

#[test]
fn exception_returns_are_traced_from_version_3_5_on() {
    let returns = |core| {
        let (trace, _) = check("a9", &config(core, 0, None), &Options::default());
        trace.path.steps.iter().filter(|step| matches!(step, Step::ExceptionReturn)).count()
    };
    assert_eq!(returns("cortex-a8"), 0);
    assert_eq!(returns("cortex-a7"), 60);
}

#[test]
fn every_cycle_is_found() {
    for cancel in [Cancel::Never, Cancel::Always] {
        let options = Options { cancel, ..Options::default() };
        let (trace, decoded) = check("a9", &config("cortex-a7", 0x1000, None), &options);
        assert_eq!(decoded.cycles, trace.cycles);
    }
}

#[test]
fn timestamps_rise_with_the_cycles() {
    let options = Options { timestamp_every: Some(50), ..Options::default() };
    let (_, decoded) = check("a9", &config("cortex-a7", 0, None), &options);
    assert!(decoded.timestamps.len() > 100);
    assert!(decoded.timestamps.is_sorted());
    assert_eq!(decoded.timestamps[0], 0x12_3456_0000);
}

#[test]
fn context_ids_are_found_in_every_size() {
    for (bits, bytes) in [(0b01, 1), (0b10, 2), (0b11, 4)] {
        let config = config("cortex-a7", bits << 14, None);
        assert_eq!(config.context_id_size().bytes(), bytes);
        let (_, decoded) = check("a9", &config, &Options::default());
        let mut contexts = decoded.contexts.into_iter().flatten().collect::<Vec<_>>();
        contexts.dedup();
        assert_eq!(contexts, [0, 1, 2, 1, 2].map(ContextId));
    }
}

#[test]
fn data_is_found_with_addresses_values_or_both() {
    for etmcr in [0x4, 0x8, 0xc] {
        let (trace, _) = check("a9", &config("cortex-a7", etmcr, None), &Options::default());
        let accesses = trace.path.steps.iter().filter(|step| matches!(step, Step::Access(_))).count();
        assert!(accesses > 3000);
    }
}

#[test]
fn deprecated_exception_codes_name_the_same_exceptions() {
    let options = Options { deprecated_exceptions: true, ..Options::default() };
    check("a9", &config("arm1136", 0, Some(0x4105_3211)), &options);
}

#[test]
fn security_state_is_sent_with_every_exception() {
    let security = SecurityBits { non_secure: true, hypervisor: false };
    check("a9", &config("cortex-a7", 0, None), &Options { security, ..Options::default() });
}

#[test]
fn old_cores_count_the_halves_of_thumb_pairs() {
    for cancel in [Cancel::Never, Cancel::Multiple, Cancel::Always] {
        let config = config("arm926", 0x100, None);
        assert!(config.two_atoms_per_thumb_pair());
        check("a9", &config, &Options { cancel, synchronise_every: Some(100), ..Options::default() });
    }
}
