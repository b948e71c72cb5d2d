//! All combinations of programs, trace units and modes.

use tracewalk::protocol::ISyncReason;

use super::{Beside, Case, Etmv4, Packing, PathFrom, Unit};
use tracewalk_generate::etmcr::{
    ALTERNATIVE_ETMIDR, BRANCH_BROADCAST, CYCLE_ACCURATE, DATA_ADDRESSES, DATA_VALUES, RETURN_STACK,
    combinations,
};
use tracewalk_generate::etmv3::Cancel;
use tracewalk_generate::etmv4::ContextPlace;
use tracewalk_generate::trace::Pauses;

/// The programs by the profile that runs them.
const M_PROFILE: [&str; 5] = ["m0", "m3", "m4", "jumps", "rust-m3"];
const AR_PROFILE: [&str; 3] = ["a9", "a15", "rust-a9"];
/// Programs for ARMv6-M run on every M-profile processor.
const WITH_MTB: [&str; 6] = ["m0", "m0-crash", "m3", "m4", "jumps", "rust-m3"];

/// A64 programs: one of the examples, and random ones by their seeds.
const A64: [&str; 4] = ["a53", "a64-0", "a64-1", "a64-2"];
/// A program with two security states.
const M_WITH_STATES: [&str; 1] = ["m33"];

/// The number of paths that are wandered through each program.
const WALKS: u32 = 2;

const CANCELS: [Cancel; 3] = [Cancel::Never, Cancel::Multiple, Cancel::Always];
const PACKINGS: [Packing; 3] = [Packing::Raw, Packing::Frames, Packing::Port];

/// Other packets and pauses, in all combinations.
fn besides() -> Vec<Beside> {
    let pauses = |traced, untraced, reason| Some(Pauses { traced, untraced, reason });
    let all_pauses = [
        None,
        pauses(700, 90, ISyncReason::Overflow),
        pauses(53, 31, ISyncReason::Enabled),
        pauses(311, 400, ISyncReason::DebugExit),
    ];
    let mut all = Vec::new();
    for synchronise_every in [None, Some(0), Some(50), Some(1024)] {
        for timestamp_every in [None, Some(100)] {
            for (trigger_every, pauses) in [None, Some(70)].into_iter().zip([all_pauses[0], all_pauses[1]]) {
                all.push(Beside { synchronise_every, timestamp_every, trigger_every, pauses });
            }
        }
        all.push(Beside {
            synchronise_every,
            trigger_every: Some(13),
            pauses: all_pauses[2],
            ..Beside::default()
        });
        all.push(Beside { synchronise_every, pauses: all_pauses[3], ..Beside::default() });
    }
    all
}

fn units_for_m() -> Vec<Unit> {
    let mut units = Vec::new();
    for (cpu, etmidr) in [("cortex-m3", None), ("cortex-m4", None), ("cortex-m3", Some(0x4114_f242))] {
        for etmcr in combinations(&[BRANCH_BROADCAST], &[0]) {
            for cancel in CANCELS {
                for tail_chaining_follows in [false, true] {
                    units.push(Unit::Etmv3 {
                        cpu: cpu.to_owned(),
                        etmcr,
                        etmidr,
                        cancel,
                        tail_chaining_follows,
                        deprecated_exceptions: false,
                    });
                }
            }
        }
    }
    units
}

fn units_for_ar() -> Vec<Unit> {
    let etmv3 = |cpu: &str, etmcr, etmidr, cancel, deprecated_exceptions| Unit::Etmv3 {
        cpu: cpu.to_owned(),
        etmcr,
        etmidr,
        cancel,
        tail_chaining_follows: false,
        deprecated_exceptions,
    };
    let mut units = Vec::new();
    let all = combinations(&[BRANCH_BROADCAST, CYCLE_ACCURATE, DATA_ADDRESSES, DATA_VALUES], &[0, 1, 2, 3]);
    for cancel in CANCELS {
        for etmidr in [None, Some(ALTERNATIVE_ETMIDR)] {
            units.extend(all.iter().map(|&etmcr| etmv3("cortex-a7", etmcr, etmidr, cancel, false)));
        }
        for (cpu, deprecated) in [("cortex-a8", false), ("arm1136", true), ("arm926", false)] {
            let few = combinations(&[BRANCH_BROADCAST, DATA_ADDRESSES | DATA_VALUES], &[0, 3]);
            units.extend(few.iter().map(|&etmcr| etmv3(cpu, etmcr, None, cancel, deprecated)));
        }
    }
    for cpu in ["cortex-a9", "cortex-a15"] {
        let pft = |etmcr, depth| Unit::Pft { cpu: cpu.to_owned(), etmcr, depth };
        let context_ids = [0, 1, 2, 3];
        units.extend(
            combinations(&[CYCLE_ACCURATE, BRANCH_BROADCAST], &context_ids)
                .into_iter()
                .map(|etmcr| pft(etmcr, 1)),
        );
        // Branch broadcast and the return stack together are unpredictable (IHI 0035B, 4.13).
        for etmcr in combinations(&[CYCLE_ACCURATE], &context_ids) {
            units.extend([1, 2, 4, 16].map(|depth| pft(etmcr | RETURN_STACK, depth)));
        }
    }
    units
}

/// ETMv4 and ETE units for these processors.
fn etmv4_units(cpus: &[&str]) -> Vec<Unit> {
    const BRANCH_BROADCAST: u32 = 1 << 3;
    const CYCLES: u32 = 1 << 4;
    const CONTEXTS: u32 = 1 << 6 | 1 << 7;
    const RETURN_STACK: u32 = 1 << 12;
    /// TRCIDR0: COMMOPT 0, and the same with Q elements.
    const COMMITTING: u32 = 0x0800_0ea1;
    const WITH_Q: u32 = 0x0801_cea1;
    let unit = |cpu: &str, trcconfigr: u32, trcidr0, trcidr8| Etmv4 {
        cpu: cpu.to_owned(),
        trcconfigr: 1 | trcconfigr,
        trcidr0,
        trcidr8,
        depth: 2,
        ..Etmv4::default()
    };
    let mut units = Vec::new();
    for cpu in cpus {
        for trcconfigr in [0, BRANCH_BROADCAST, CYCLES, RETURN_STACK, RETURN_STACK | CYCLES | CONTEXTS] {
            for (trcidr0, trcidr8) in [(None, 0), (None, 1), (Some(COMMITTING), 6), (Some(WITH_Q), 255)] {
                let plain = unit(cpu, trcconfigr, trcidr0, trcidr8);
                let wrong_paths = (trcidr8 > 0).then_some(3);
                units.push(Etmv4 { wrong_paths, keeps_returns: true, ..plain.clone() });
                units.push(Etmv4 { late_addresses: true, keeps_returns: true, depth: 16, ..plain.clone() });
                units.push(Etmv4 {
                    contexts: ContextPlace::After,
                    wrong_paths,
                    source_addresses: Some(2),
                    ..plain.clone()
                });
                units.push(Etmv4 { contexts: ContextPlace::Before, q: Some(3), depth: 1, ..plain });
            }
        }
    }
    units.into_iter().map(Unit::Etmv4).collect()
}

/// ETMv3 has timestamps from version 3.5 on.
fn is_possible(unit: &Unit, beside: &Beside) -> bool {
    let old = unit.etmv3_config().is_some_and(|config| config.minor_version() < 5);
    beside.timestamp_every.is_none() || !old
}

/// Every case, always in the same order.
#[must_use]
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let paths = || std::iter::once(PathFrom::Record).chain((0..WALKS).map(PathFrom::Wander));
    for (programs, units) in [(&M_PROFILE[..], units_for_m()), (&AR_PROFILE[..], units_for_ar())] {
        for program in programs {
            for (path, unit) in paths().flat_map(|path| units.iter().map(move |unit| (path, unit.clone()))) {
                for beside in besides().into_iter().filter(|beside| is_possible(&unit, beside)) {
                    cases.extend(PACKINGS.map(|packing| Case {
                        program: (*program).to_owned(),
                        path,
                        unit: unit.clone(),
                        beside,
                        packing,
                    }));
                }
            }
        }
    }
    for program in WITH_MTB {
        for (path, exponent) in paths().flat_map(|path| (4..20).map(move |exponent| (path, exponent))) {
            cases.extend([false, true].map(|branches_to_next| Case {
                program: program.to_owned(),
                path,
                unit: Unit::Mtb { exponent, branches_to_next },
                beside: Beside::default(),
                packing: Packing::Raw,
            }));
        }
    }
    let etmv4 = [
        (&M_PROFILE[..], etmv4_units(&["cortex-m33"])),
        (&M_WITH_STATES[..], etmv4_units(&["cortex-m33", "cortex-m55"])),
        (&AR_PROFILE[..], etmv4_units(&["cortex-a32"])),
        (&A64[..], etmv4_units(&["cortex-a53", "cortex-a510"])),
    ];
    for (programs, units) in etmv4 {
        for program in programs {
            for (path, unit) in paths().flat_map(|path| units.iter().map(move |unit| (path, unit.clone()))) {
                cases.extend(besides().into_iter().zip(PACKINGS.into_iter().cycle()).map(
                    |(beside, packing)| Case {
                        program: (*program).to_owned(),
                        path,
                        unit: unit.clone(),
                        beside,
                        packing,
                    },
                ));
            }
        }
    }
    cases
}
