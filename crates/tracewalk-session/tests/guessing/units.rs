//! The trace units to try, and all setups of each.

use tracewalk_generate::etmcr::{
    ALTERNATIVE_ETMIDR, BRANCH_BROADCAST, CYCLE_ACCURATE, DATA_ADDRESSES, DATA_VALUES, RETURN_STACK,
    combinations,
};

use crate::support::firmware::Setup;

/// A trace unit with all settings that change its output.
pub(crate) struct Unit {
    /// The unit's name in the tables.
    pub(crate) name: &'static str,
    /// The program that it traces.
    pub(crate) program: &'static str,
    pub(crate) setups: Vec<Setup>,
}

/// Bits of ETMCCER: binary timestamps, 64 bits of them.
const TIMESTAMPS: [u32; 3] = [0b11 << 28, 0b01 << 28, 0];
const BARRIERS: u32 = 1 << 24;
/// Instructions from one timestamp to the next.
const EVERY: u64 = 200;

pub(crate) fn units() -> [Unit; 7] {
    let unit = |name, program, setups| Unit { name, program, setups };
    [
        unit("Cortex-A7, ETMv3.5, original encoding", "a9", etmv3("cortex-a7", None)),
        unit("Cortex-A7, ETMv3.5, alternative encoding", "a9", etmv3("cortex-a7", Some(ALTERNATIVE_ETMIDR))),
        unit("Cortex-A8, ETMv3.3", "a9", etmv3("cortex-a8", None)),
        unit("Cortex-A15, PFTv1.1", "a9", pft("cortex-a15")),
        unit("Cortex-A9, PFTv1.0", "a9", pft("cortex-a9")),
        unit("Cortex-M3, ETMv3.5", "m3", etmv3_of_m_profile("cortex-m3")),
        unit("Cortex-M4, ETMv3.5", "m4", etmv3_of_m_profile("cortex-m4")),
    ]
}

fn etmv3(cpu: &'static str, etmidr: Option<u32>) -> Vec<Setup> {
    let formats = timestamps().filter(|format| cpu != "cortex-a8" || format.is_none());
    let bits = [CYCLE_ACCURATE, DATA_VALUES, DATA_ADDRESSES, BRANCH_BROADCAST];
    let setups = formats.flat_map(|timestamps| {
        settings(&bits, &[0, 1, 2, 3]).into_iter().map(move |etmcr| Setup {
            protocol: "etmv3",
            cpu,
            etmcr,
            etmidr,
            etmccer: timestamps.map(|bits| 0x0440_08f2 | bits),
            timestamps: timestamps.map(|_| EVERY),
        })
    });
    setups.collect()
}

/// ETMs of M profile have no cycle counts, context IDs or data trace (Cortex-M3 TRM, DDI 0337H, 14.3).
fn etmv3_of_m_profile(cpu: &'static str) -> Vec<Setup> {
    let setups = timestamps().flat_map(|timestamps| {
        settings(&[BRANCH_BROADCAST], &[0]).into_iter().map(move |etmcr| Setup {
            protocol: "etmv3",
            cpu,
            etmcr,
            etmidr: None,
            etmccer: timestamps.map(|bits| 0x0854_1800 | bits),
            timestamps: timestamps.map(|_| EVERY),
        })
    });
    setups.collect()
}

fn pft(cpu: &'static str) -> Vec<Setup> {
    let mut setups = Vec::new();
    for (timestamps, barriers) in timestamps().flat_map(|format| [0, BARRIERS].map(|bits| (format, bits))) {
        // Branch broadcast and the return stack together are unpredictable (IHI 0035B, 4.13).
        let alone = [0, BRANCH_BROADCAST, RETURN_STACK];
        let all =
            alone.map(|bit| settings(&[CYCLE_ACCURATE], &[0, 1, 2, 3]).into_iter().map(move |all| all | bit));
        setups.extend(all.into_iter().flatten().map(|etmcr| Setup {
            protocol: "pft",
            cpu,
            etmcr,
            etmidr: None,
            etmccer: Some(0x04c0_1ac2 | barriers | timestamps.unwrap_or(0)),
            timestamps: timestamps.map(|_| EVERY),
        }));
    }
    setups
}

/// The formats of timestamps, and none.
fn timestamps() -> impl Iterator<Item = Option<u32>> {
    TIMESTAMPS.map(Some).into_iter().chain([None])
}

/// Every combination. The context IDs change first, then the first bit: the order decides which of them are tried.
fn settings(bits: &[u32], context_ids: &[u32]) -> Vec<u32> {
    let mut all = combinations(bits, context_ids);
    all.sort_by_key(|etmcr| {
        let set = bits.iter().rev().map(|bit| etmcr & bit != 0);
        (set.collect::<Vec<_>>(), *etmcr)
    });
    all
}
