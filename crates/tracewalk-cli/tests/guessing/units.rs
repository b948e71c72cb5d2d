//! The trace units that are tried, and in which ways each can be set up.

use crate::support::firmware::Setup;

/// A trace unit with all its settings that change what it sends.
pub(crate) struct Unit {
    /// What it is called in `docs/captures.md`.
    pub(crate) name: &'static str,
    /// The program that it traces.
    pub(crate) program: &'static str,
    pub(crate) setups: Vec<Setup>,
}

/// Bits of ETMCR.
pub(crate) const BROADCAST: u32 = 1 << 8;
pub(crate) const CYCLES: u32 = 1 << 12;
pub(crate) const RETURN_STACK: u32 = 1 << 29;
/// Bits of ETMCCER: binary timestamps, 64 bits of them.
const TIMESTAMPS: [u32; 3] = [0b11 << 28, 0b01 << 28, 0];
const BARRIERS: u32 = 1 << 24;
/// Instructions from one timestamp to the next.
const EVERY: u64 = 200;
/// ETMIDR of a Cortex-A7 with the alternative branch encoding.
pub(crate) const ALTERNATIVE: u32 = 0x411c_f250;

pub(crate) fn units() -> [Unit; 7] {
    let unit = |name, program, setups| Unit { name, program, setups };
    [
        unit("Cortex-A7, ETMv3.5, original encoding", "a9", etmv3("cortex-a7", None)),
        unit("Cortex-A7, ETMv3.5, alternative encoding", "a9", etmv3("cortex-a7", Some(ALTERNATIVE))),
        unit("Cortex-A8, ETMv3.3", "a9", etmv3("cortex-a8", None)),
        unit("Cortex-A15, PFTv1.1", "a9", pft("cortex-a15")),
        unit("Cortex-A9, PFTv1.0", "a9", pft("cortex-a9")),
        unit("Cortex-M3, ETMv3.5", "m3", etmv3_of_m_profile("cortex-m3")),
        unit("Cortex-M4, ETMv3.5", "m4", etmv3_of_m_profile("cortex-m4")),
    ]
}

fn etmv3(cpu: &'static str, etmidr: Option<u32>) -> Vec<Setup> {
    let mut setups = Vec::new();
    let formats = TIMESTAMPS.map(Some).into_iter().chain([None]);
    for timestamps in formats.filter(|format| cpu != "cortex-a8" || format.is_none()) {
        for broadcast in [0, BROADCAST] {
            for data in 0..4 {
                for cycles in [0, CYCLES] {
                    for context_id in 0..4 {
                        setups.push(Setup {
                            protocol: "etmv3",
                            cpu,
                            etmcr: context_id << 14 | cycles | data << 2 | broadcast,
                            etmidr,
                            etmccer: timestamps.map(|bits| 0x0440_08f2 | bits),
                            timestamps: timestamps.map(|_| EVERY),
                        });
                    }
                }
            }
        }
    }
    setups
}

/// These have no cycle counts, context IDs or data trace (Cortex-M3 TRM, DDI 0337H, 14.3).
fn etmv3_of_m_profile(cpu: &'static str) -> Vec<Setup> {
    let formats = TIMESTAMPS.map(Some).into_iter().chain([None]);
    let setups = formats.flat_map(|timestamps| {
        [0, BROADCAST].map(|etmcr| Setup {
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
    for timestamps in TIMESTAMPS.map(Some).into_iter().chain([None]) {
        for barriers in [0, BARRIERS] {
            for more in [0, BROADCAST, RETURN_STACK] {
                for cycles in [0, CYCLES] {
                    for context_id in 0..4 {
                        setups.push(Setup {
                            protocol: "pft",
                            cpu,
                            etmcr: context_id << 14 | cycles | more,
                            etmidr: None,
                            etmccer: Some(0x04c0_1ac2 | barriers | timestamps.unwrap_or(0)),
                            timestamps: timestamps.map(|_| EVERY),
                        });
                    }
                }
            }
        }
    }
    setups
}
