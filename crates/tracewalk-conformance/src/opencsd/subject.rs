//! A trace that both decoders are to read.

use std::ops::Range;

use tracewalk::ids::{Location, TraceId};
use tracewalk::program::Program;
use tracewalk::protocol::pft;
use tracewalk::source::SourceConfig;
use tracewalk_generate::capture::{Capture, Container, File, Unit};

use super::model::Registers;

/// A trace and what it is read with.
#[derive(Debug)]
pub struct Subject<'a> {
    /// The source.
    pub config: SourceConfig,
    /// The registers that OpenCSD reads.
    pub registers: Registers,
    /// The processor.
    pub cpu: String,
    /// The trace.
    pub bytes: Vec<u8>,
    /// What ran.
    pub program: &'a Program,
    /// The instructions that the trace tells of, as the generator knows them.
    pub told: Vec<Location>,
    /// Which bytes need not say what was traced, as whoever damaged them knows; none of a sound trace.
    pub broken: Range<u64>,
}

/// Why OpenCSD cannot read a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsuitable(pub &'static str);

const ID: u8 = 0x10;

impl Subject<'_> {
    /// The files of a snapshot.
    pub fn snapshot(&self) -> Result<Vec<File>, Unsuitable> {
        let id = TraceId::new(ID).ok_or(Unsuitable("no trace ID"))?;
        let (protocol, minor_version) = match &self.config {
            SourceConfig::Etmv3(config) => ("etmv3", config.minor_version()),
            SourceConfig::Pft(config) => ("pft", u8::from(config.version() == pft::Version::V1_1)),
            SourceConfig::Etmv4(_) => return Err(Unsuitable("no trace of it is generated")),
            SourceConfig::Mtb(_) => return Err(Unsuitable("it reads no MTB")),
        };
        let Registers { etmcr, etmidr, etmccer } = self.registers;
        let registers =
            [("ETMCR", etmcr), ("ETMIDR", etmidr), ("ETMCCER", etmccer), ("ETMTRACEIDR", u32::from(ID))];
        // The profile is all that OpenCSD takes from the name, and it knows no processor before ARMv7.
        let cpu = if self.cpu.starts_with("arm") { "cortex-a8" } else { &self.cpu };
        let unit = Unit { protocol, cpu: Some(cpu.to_owned()), id: Some(id), registers: Vec::new() };
        let capture = Capture { container: Container::Raw, unit, itm: None, bytes: self.bytes.clone() };
        Ok(capture.snapshot(self.program, minor_version, &registers))
    }

    /// Whether OpenCSD makes flow of it: not where data is traced.
    #[must_use]
    pub const fn has_flow(&self) -> bool {
        match &self.config {
            SourceConfig::Etmv3(config) => !config.data().any(),
            _ => true,
        }
    }
}
