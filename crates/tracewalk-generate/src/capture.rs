//! A capture as the files of a folder: trace bytes and everything needed to decode them, in the project's own
//! format or as an OpenCSD snapshot.
//!
//! ```
//! use tracewalk_generate::capture::{Capture, Container, Unit};
//!
//! let unit = Unit { protocol: "etmv3", cpu: Some("cortex-m3".to_owned()), id: None, registers: Vec::new() };
//! let capture = Capture { container: Container::Raw, unit, itm: None, watched: None, bytes: vec![0, 0, 0, 0, 0, 0x80] };
//! let names = capture.files(&["m3.elf"]).into_iter().map(|file| file.name).collect::<Vec<_>>();
//! assert!(names.contains(&"capture.toml".to_owned()) && names.contains(&"trace.bin".to_owned()));
//! ```

use std::fmt::Write as _;

use tracewalk::ids::{Address, TraceId};
use tracewalk::program::Program;
use tracewalk_input::capture::{
    Protocol, Snapshot, SnapshotBuffer, SnapshotCore, SnapshotFile, SnapshotSource,
};

use crate::path::Path;
use crate::record::{Profile, Record};

/// A file of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// The file's name.
    pub name: String,
    /// The content.
    pub bytes: Vec<u8>,
}

/// How the bytes are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// CoreSight frames from a buffer.
    Frames,
    /// One source's bytes.
    Raw,
    /// The RAM of an MTB.
    Mtb,
}

/// The trace unit that made the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The protocol's name: `etmv3`, `pft`, `etmv4` or `mtb`.
    pub protocol: &'static str,
    /// The processor, such as `cortex-m3`, if the protocol depends on it.
    pub cpu: Option<String>,
    /// The trace ID, if the unit has one.
    pub id: Option<TraceId>,
    /// Registers that differ from the processor's usual values, by Arm's names in lower case.
    pub registers: Vec<(String, u32)>,
}

/// A capture to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// How the bytes are stored.
    pub container: Container,
    /// The trace unit that sent them.
    pub unit: Unit,
    /// The trace ID of the ITM that shares the capture.
    pub itm: Option<TraceId>,
    /// The address that the comparator 0 of this ITM's DWT watches.
    pub watched: Option<Address>,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// The name of the file of trace bytes.
const TRACE_FILE: &str = "trace.bin";

impl Capture {
    /// `capture.toml` and the trace bytes. `capture.toml` names the images; they are not among the files.
    #[must_use]
    pub fn files(&self, images: &[&str]) -> Vec<File> {
        let container = match self.container {
            Container::Frames => "frames",
            Container::Raw => "raw",
            Container::Mtb => "mtb",
        };
        let mut toml =
            format!("[capture]\nfile = \"{TRACE_FILE}\"\ncontainer = \"{container}\"\n\n[[source]]\n");
        let Unit { protocol, cpu, id, registers } = &self.unit;
        let registers =
            registers.iter().map(|(name, value)| format!("{name} = {value:#x}")).collect::<Vec<_>>();
        // Writing to a string cannot fail.
        let _ = id.map(|id| writeln!(toml, "id = {id}"));
        let _ = writeln!(toml, "protocol = \"{protocol}\"");
        let _ = cpu.as_ref().map(|cpu| writeln!(toml, "cpu = \"{cpu}\""));
        if !registers.is_empty() {
            let _ = writeln!(toml, "registers = {{ {} }}", registers.join(", "));
        }
        let _ = self.itm.map(|id| writeln!(toml, "\n[[source]]\nid = {id}\nprotocol = \"itm\""));
        let _ = self.watched.map(|at| writeln!(toml, "other_registers = {{ DWT_COMP0 = {:#x} }}", at.get()));
        for image in images {
            let _ = writeln!(toml, "\n[[image]]\nfile = \"{image}\"");
        }
        vec![text_file("capture.toml", toml), File { name: TRACE_FILE.to_owned(), bytes: self.bytes.clone() }]
    }

    /// A snapshot folder as DS-5 writes it and OpenCSD reads it. `minor_version` is that of the trace unit's
    /// architecture; `registers` are all that decoding depends on, by Arm's names in upper case. An MTB has no
    /// snapshot.
    #[must_use]
    pub fn snapshot(
        &self,
        program: &Program,
        minor_version: u8,
        registers: &[(&'static str, u32)],
    ) -> Vec<File> {
        const CORE: &str = "cpu_0";
        const SOURCE: &str = "SOURCE_0";
        let core = SnapshotCore {
            name: CORE.to_owned(),
            cpu: self.unit.cpu.clone().unwrap_or_default(),
            memory: program.regions().iter().map(|region| (region.start(), region.bytes())).collect(),
        };
        let source = SnapshotSource {
            name: SOURCE.to_owned(),
            protocol: match self.unit.protocol {
                "pft" => Protocol::Pft,
                "etmv4" => Protocol::Etmv4,
                _ => Protocol::EtmV3,
            },
            minor_version,
            registers: registers.iter().map(|&(name, value)| (name.to_owned(), value)).collect(),
            core: Some(CORE.to_owned()),
        };
        let buffer = SnapshotBuffer {
            name: "BUFFER_0".to_owned(),
            frames: self.container == Container::Frames,
            bytes: &self.bytes,
            sources: vec![SOURCE.to_owned()],
        };
        let snapshot = Snapshot {
            cores: vec![core],
            sources: vec![source],
            buffers: vec![buffer],
            timestamp_frequency: None,
        };
        let file = |file: SnapshotFile<'_>| {
            let mut bytes = Vec::new();
            // Writing to memory cannot fail.
            let _ = file.write(&mut bytes);
            File { name: file.name, bytes }
        };
        snapshot.files().into_iter().map(file).collect()
    }
}

/// The output of `tracewalk flow --format runs` that is expected for a source that reported this path.
#[must_use]
pub fn runs_file(id: Option<TraceId>, profile: Profile, traced: &Path) -> File {
    let source = id.map_or("-".to_owned(), |id| format!("{:02x}", id.get()));
    let runs = Record::of_path(profile, traced).runs().to_string();
    text_file("runs.txt", format!("# tracewalk runs 1\nS {source}\nO\n{runs}"))
}

fn text_file(name: &str, text: String) -> File {
    File { name: name.to_owned(), bytes: text.into_bytes() }
}
