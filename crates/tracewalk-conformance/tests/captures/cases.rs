//! The captures, and how their bytes are damaged.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tracewalk::frame::Framing;
use tracewalk::ids::TraceId;
use tracewalk::program::Program;
use tracewalk::protocol::{etmv3, pft};
use tracewalk::source::SourceConfig;
use tracewalk_input::image::{ImageLoader, ImageRequest};

use super::reading::{FrameLosses, Reading};

/// A capture, and its sources.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) bytes: Vec<u8>,
    pub(crate) sources: Vec<Source>,
    pub(crate) program: Program,
    /// The losses reported for its frames without damage.
    pub(crate) frames: FrameLosses,
}

/// A source, and its reading without damage.
pub(crate) struct Source {
    pub(crate) id: Option<TraceId>,
    pub(crate) config: SourceConfig,
    pub(crate) whole: Reading,
}

fn etmv3(cpu: &str, etmcr: u32) -> SourceConfig {
    let core = etmv3::Core::named(cpu).expect("a known core");
    let registers = etmv3::Registers { etmcr: Some(etmcr), ..core.registers() };
    SourceConfig::Etmv3(etmv3::Config::from_registers(registers, Some(core)).expect("registers that fit"))
}

fn pft(cpu: &str, etmcr: u32) -> SourceConfig {
    let core = pft::Core::named(cpu).expect("a known core");
    let registers = pft::Registers { etmcr: Some(etmcr), ..core.registers() };
    SourceConfig::Pft(pft::Config::from_registers(registers, Some(core)).expect("registers that fit"))
}

/// All captures of hardware, read once for all tests.
pub(crate) fn cases() -> &'static [Case] {
    static CASES: OnceLock<Vec<Case>> = OnceLock::new();
    CASES.get_or_init(read_cases)
}

/// Captures of the corpus, which is beside the project.
fn real() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/real")
}

fn read_cases() -> Vec<Case> {
    let real = real();
    let case = |name, images: &[&str], sources: &[(u8, SourceConfig)]| {
        let images = images.iter().map(|image| {
            let (address, file) = image.rsplit_once(':').unwrap_or(("", image));
            let file = real.join(file).display().to_string();
            let image = if address.is_empty() { file } else { format!("{address}:{file}") };
            image.parse::<ImageRequest>().expect("an image")
        });
        let memory = ImageLoader::new().memory(&images.collect::<Vec<_>>());
        let program = memory.expect("the corpus is complete").program;
        let bytes = std::fs::read(real.join(name)).expect("the corpus is complete");
        let source = |(id, config): &(u8, SourceConfig)| {
            let (id, config) = (TraceId::new(*id), config.clone());
            let whole = Reading::of(id.map(|_| Framing::Buffer), (id, &config), &bytes, &program);
            assert!(whole.packets.len() > 500 && whole.malformed.is_empty(), "{name}, {id:?}");
            Source { id, config, whole }
        };
        let sources = sources.iter().map(source).collect::<Vec<_>>();
        let is_in_frames = sources.iter().any(|source| source.id.is_some());
        let frames =
            if is_in_frames { FrameLosses::of(Framing::Buffer, &bytes) } else { FrameLosses::default() };
        Case { name, bytes, sources, program, frames }
    };
    vec![
        case("stm32f105/swo.bin", &["stm32f105/trace_example.elf"], &[(2, etmv3("cortex-m3", 0))]),
        case(
            "TC2/cstrace.bin",
            &["0xc0008000:TC2/kernel_dump.bin"],
            &[
                (0x10, etmv3("cortex-a7", 0x1000)),
                (0x11, etmv3("cortex-a7", 0x1000)),
                (0x12, etmv3("cortex-a7", 0x1000)),
                (0x13, pft("cortex-a15", 0x2000_1000)),
            ],
        ),
        // The only capture without frames, and so without an ID.
        case(
            "tc2-ptm-rstk-t32/PTM_0_2.bin",
            &[
                "0x80000000:tc2-ptm-rstk-t32/mem_Cortex-A15_0_0_VECTORS.bin",
                "0x80000278:tc2-ptm-rstk-t32/mem_Cortex-A15_0_1_RO_CODE.bin",
            ],
            &[(0, pft("cortex-a15", 0x2000_0400))],
        ),
    ]
}

impl Case {
    pub(crate) const fn is_in_frames(&self) -> bool {
        matches!(self.sources.as_slice(), [Source { id: Some(_), .. }, ..])
    }

    /// Places spread over the capture, not at its very ends.
    pub(crate) fn places(&self, random: &mut Random, count: usize) -> Vec<usize> {
        (0..count).map(|_| 64 + random.below(self.bytes.len() - 128)).collect()
    }
}

/// Bytes that replace others.
pub(crate) struct Damage {
    pub(crate) bytes: Vec<u8>,
    /// The place in the undamaged capture.
    pub(crate) at: u64,
    /// How many bytes of the capture are lost, and how many are inserted instead.
    pub(crate) lost: u64,
    pub(crate) inserted: u64,
}

impl Damage {
    pub(crate) fn new(whole: &[u8], at: usize, lost: usize, inserted: &[u8]) -> Self {
        let bytes = [&whole[..at], inserted, &whole[at + lost..]].concat();
        Self { bytes, at: at as u64, lost: lost as u64, inserted: inserted.len() as u64 }
    }

    /// The place of an undamaged capture's byte in the damaged one.
    pub(crate) const fn place(&self, original: u64) -> u64 {
        if original < self.at { original } else { (original + self.inserted).saturating_sub(self.lost) }
    }

    /// The first byte after the damage, in the undamaged capture.
    pub(crate) const fn end(&self) -> u64 {
        self.at + self.lost
    }
}

/// Repeatable random numbers.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        usize::try_from(self.0 >> 33).expect("31 bits") % bound
    }
}

/// How many places are damaged in each way.
pub(crate) fn places() -> usize {
    std::env::var("TRACEWALK_DAMAGES").map_or(12, |count| count.parse().expect("a number"))
}
