//! Writes a snapshot directory in the form that DS-5 writes and OpenCSD reads.

use std::fmt::{self, Write as _};
use std::io::{self, Write};

use tracewalk::ids::Address;

use super::registers::number_of;
use super::source::Protocol;

/// The content of a snapshot directory.
#[derive(Clone, Debug, Default)]
pub struct Snapshot<'a> {
    /// The processors.
    pub cores: Vec<SnapshotCore<'a>>,
    /// The processors' trace units.
    pub sources: Vec<SnapshotSource>,
    /// The buffers in which the trace was collected.
    pub buffers: Vec<SnapshotBuffer<'a>>,
    /// The frequency of timestamps, in hertz.
    pub timestamp_frequency: Option<u64>,
}

/// A processor and its memory.
#[derive(Clone, Debug)]
pub struct SnapshotCore<'a> {
    /// The processor's name, like `cpu_0`.
    pub name: String,
    /// The processor's type, like `cortex-a7`.
    pub cpu: String,
    /// Stretches of the processor's memory.
    pub memory: Vec<(Address, &'a [u8])>,
}

/// A trace unit.
#[derive(Clone, Debug)]
pub struct SnapshotSource {
    /// The trace unit's name, like `ETM_0`.
    pub name: String,
    /// The trace unit's protocol.
    pub protocol: Protocol,
    /// The minor version of the protocol's architecture: 5 for ETMv3.5, 1 for PFTv1.1.
    pub minor_version: u8,
    /// The trace unit's registers, by Arm's names in upper case.
    pub registers: Vec<(String, u32)>,
    /// The name of the traced processor.
    pub core: Option<String>,
}

/// A trace buffer.
#[derive(Clone, Debug)]
pub struct SnapshotBuffer<'a> {
    /// The buffer's name, like `ETB_0`.
    pub name: String,
    /// Whether the bytes are aligned CoreSight frames; if not, they are one source's bytes.
    pub frames: bool,
    /// The buffer's bytes.
    pub bytes: &'a dyn TraceBytes,
    /// The names of the sources with trace in the buffer.
    pub sources: Vec<String>,
}

/// Bytes of trace that may not fit in memory.
pub trait TraceBytes: fmt::Debug {
    /// Writes all bytes.
    fn write(&self, out: &mut dyn Write) -> io::Result<()>;
}

impl<T: AsRef<[u8]> + fmt::Debug> TraceBytes for T {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(self.as_ref())
    }
}

/// A file of a snapshot directory.
#[derive(Clone, Debug)]
pub struct SnapshotFile<'a> {
    /// The file's name in the directory.
    pub name: String,
    contents: Contents<'a>,
}

#[derive(Clone, Debug)]
enum Contents<'a> {
    Text(String),
    Memory(&'a [u8]),
    Trace(&'a dyn TraceBytes),
}

impl SnapshotFile<'_> {
    /// Writes the file's contents.
    ///
    /// # Errors
    ///
    /// If `out` fails.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        match &self.contents {
            Contents::Text(text) => out.write_all(text.as_bytes()),
            Contents::Memory(bytes) => out.write_all(bytes),
            Contents::Trace(bytes) => bytes.write(out),
        }
    }
}

impl<'a> Snapshot<'a> {
    /// The files of the directory.
    #[must_use]
    pub fn files(&self) -> Vec<SnapshotFile<'a>> {
        let mut files = Vec::new();
        let mut devices = Vec::new();
        for (index, core) in self.cores.iter().enumerate() {
            let name = format!("cpu_{index}.ini");
            files.push(text_file(&name, core.text(index)));
            files.extend(core.memory.iter().enumerate().map(|(number, (_, bytes))| SnapshotFile {
                name: memory_file(index, number),
                contents: Contents::Memory(bytes),
            }));
            devices.push(name);
        }
        for (index, source) in self.sources.iter().enumerate() {
            let name = format!("source_{index}.ini");
            files.push(text_file(&name, source.text()));
            devices.push(name);
        }
        for (index, buffer) in self.buffers.iter().enumerate() {
            files.push(SnapshotFile { name: trace_file(index), contents: Contents::Trace(buffer.bytes) });
        }
        let mut list = String::from("[snapshot]\nversion=1.0\n\n[device_list]\n");
        for (index, device) in devices.iter().enumerate() {
            push(&mut list, format_args!("device{index}={device}\n"));
        }
        list.push_str("\n[trace]\nmetadata=trace.ini\n");
        files.push(text_file("snapshot.ini", list));
        files.push(text_file("trace.ini", self.metadata()));
        files
    }

    /// The text of `trace.ini`: the buffers, each source's buffers and each core's sources.
    fn metadata(&self) -> String {
        let names = (0..self.buffers.len()).map(|index| format!("buffer{index}")).collect::<Vec<_>>();
        let mut text = format!("[trace_buffers]\nbuffers={}\n", names.join(","));
        for (index, buffer) in self.buffers.iter().enumerate() {
            let format = if buffer.frames { "coresight" } else { "source_data" };
            let (name, file) = (&buffer.name, trace_file(index));
            push(&mut text, format_args!("\n[buffer{index}]\nname={name}\nfile={file}\nformat={format}\n"));
        }
        text.push_str("\n[source_buffers]\n");
        for source in &self.sources {
            let holds = |buffer: &&SnapshotBuffer<'_>| buffer.sources.contains(&source.name);
            let buffers = self.buffers.iter().filter(holds).map(|buffer| buffer.name.as_str());
            push(&mut text, format_args!("{}={}\n", source.name, buffers.collect::<Vec<_>>().join(",")));
        }
        text.push_str("\n[core_trace_sources]\n");
        for source in &self.sources {
            if let Some(core) = &source.core {
                push(&mut text, format_args!("{core}={}\n", source.name));
            }
        }
        if let Some(frequency) = self.timestamp_frequency {
            push(&mut text, format_args!("\n[timestamp]\nfrequency={frequency}\n"));
        }
        text
    }
}

impl SnapshotCore<'_> {
    fn text(&self, index: usize) -> String {
        let mut text = format!("[device]\nname={}\nclass=core\ntype={}\n\n[regs]\n", self.name, self.kind());
        for (number, (address, bytes)) in self.memory.iter().enumerate() {
            let file = memory_file(index, number);
            push(
                &mut text,
                format_args!("\n[dump{number}]\nfile={file}\naddress={address}\nlength={}\n", bytes.len()),
            );
        }
        text
    }

    /// The processor's type in DS-5's spelling: `Cortex-A7` for `cortex-a7`.
    fn kind(&self) -> String {
        match self.cpu.to_ascii_lowercase().strip_prefix("cortex-") {
            Some(model) => format!("Cortex-{}", model.to_ascii_uppercase()),
            None => self.cpu.to_ascii_uppercase(),
        }
    }
}

impl SnapshotSource {
    fn text(&self) -> String {
        let (name, kind) = (&self.name, self.kind());
        let mut text = format!("[device]\nname={name}\nclass=trace_source\ntype={kind}\n\n[regs]\n");
        for (name, value) in &self.registers {
            let number = number_of(name).map_or_else(String::new, |number| format!("(0x{number:03X})"));
            push(&mut text, format_args!("{name}{number}=0x{value:08X}\n"));
        }
        text
    }

    /// Whether TRCDEVARCH identifies the unit as an ETE.
    fn is_extension(&self) -> bool {
        self.registers.iter().any(|(name, value)| name == "TRCDEVARCH" && value >> 12 & 0b1111 == 5)
    }

    fn kind(&self) -> String {
        let minor = self.minor_version;
        match &self.protocol {
            Protocol::EtmV3 => format!("ETM3.{minor}"),
            Protocol::Pft => format!("PTM1.{minor}"),
            Protocol::Etmv4 if self.is_extension() => "ETE".to_owned(),
            Protocol::Etmv4 => format!("ETM4.{minor}"),
            Protocol::Itm => "ITM".to_owned(),
            Protocol::Stm => "STM".to_owned(),
            Protocol::Mtb => "MTB".to_owned(),
            Protocol::Unknown(name) => name.clone(),
        }
    }
}

fn memory_file(core: usize, number: usize) -> String {
    format!("cpu_{core}_memory_{number}.bin")
}

fn trace_file(buffer: usize) -> String {
    format!("trace_{buffer}.bin")
}

fn text_file(name: &str, text: String) -> SnapshotFile<'static> {
    SnapshotFile { name: name.to_owned(), contents: Contents::Text(text) }
}

fn push(text: &mut String, line: fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(line);
}
