//! A trace for both decoders.

use std::ops::Range;

use tracewalk::ids::{Location, Profile, TraceId};
use tracewalk::program::Program;
use tracewalk::protocol::{etmv4, pft};
use tracewalk::source::SourceConfig;
use tracewalk_generate::capture::{Capture, Container, File, Unit};

use super::model::Registers;

/// A trace, and everything needed to read it.
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
    /// The program that ran.
    pub program: &'a Program,
    /// The traced instructions, as the generator knows them.
    pub traced: Vec<Location>,
    /// The bytes that need not match the traced path, because they were damaged; empty for a sound trace.
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
            SourceConfig::Etmv4(config) => match config.version() {
                etmv4::Version::Etmv4(minor) | etmv4::Version::Ete(minor) => ("etmv4", minor),
            },
            SourceConfig::Mtb(_) => return Err(Unsuitable("it reads no MTB")),
        };
        let registers = self.registers.named(&self.config, ID);
        // OpenCSD takes only the profile from the name, and whether the instructions of v8.3 exist; it knows
        // no processor before ARMv7, and few of the newest.
        let cpu = match &self.config {
            SourceConfig::Etmv4(config) if config.profile() == Profile::M => "cortex-m33",
            SourceConfig::Etmv4(_) => "arm-aa64",
            _ if self.cpu.starts_with("arm") => "cortex-a8",
            _ => &self.cpu,
        };
        let unit = Unit { protocol, cpu: Some(cpu.to_owned()), id: Some(id), registers: Vec::new() };
        let capture =
            Capture { container: Container::Raw, unit, itm: None, watched: None, bytes: self.bytes.clone() };
        Ok(capture.snapshot(self.program, minor_version, &registers))
    }

    /// Whether OpenCSD follows the flow: it does not if data is traced.
    #[must_use]
    pub const fn has_flow(&self) -> bool {
        match &self.config {
            SourceConfig::Etmv3(config) => !config.data().any(),
            _ => true,
        }
    }
}
