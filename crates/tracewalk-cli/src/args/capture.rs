//! A capture, and the user's statements about it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser as _};
use clap::{Args, ValueHint};
use tracewalk::ids::TraceId;
use tracewalk_input::capture::{Container, SourceDescription};
use tracewalk_input::image::{ImageKind, ImageRequest, ParseImageError};
use tracewalk_input::{MemoryLimit, Origin, Setting};

use super::arrival::ArrivalArgs;
use super::numbers::{number, register};
use super::recording::RecordingArgs;

/// A capture, and the user's statements about it.
#[derive(Args, Clone, Debug)]
pub(crate) struct CaptureArgs {
    /// A file of trace bytes, a perf.data file, a capture.toml, or a snapshot directory; - is standard input.
    ///
    /// tcp:HOST:PORT is a server that sends raw trace bytes, such as the legacy port of orbuculum. Such a server and
    /// standard input are decoded as their bytes arrive.
    ///
    /// For a recording of a logic analyser (a sigrok session, VCD or CSV), tracewalk decodes the bytes on its wires.
    ///
    /// Memory that holds the trace may also be Intel HEX, S-records, an ELF core file, or text as GDB, OpenOCD, J-Link,
    /// pyOCD or probe-rs print it.
    ///
    /// For a file of trace bytes, tracewalk infers missing settings from the bytes and the image, and prints the
    /// equivalent options on standard error.
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) capture: PathBuf,

    /// An additional directory whose files a capture.toml or snapshot may name; can be given several times.
    ///
    /// Descriptions travel with captures: the files that they name must be in their directory or below. A description elsewhere,
    /// such as one for a read-only share, names its files with `..` or by absolute paths. Such paths and symbolic
    /// links are followed if they lead into this directory.
    #[arg(long = "root", value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Capture")]
    pub(crate) roots: Vec<PathBuf>,

    /// How the bytes are packed: KIND[,key=value…].
    ///
    /// KIND is `auto`, `frames` (CoreSight frames from a trace buffer), `tpiu` (frames from a trace port, with FSYNC and HSYNC, at
    /// any alignment), `raw` (one source's bytes) or `mtb` (an MTB's RAM). It may be left out. Keys:
    ///
    /// `swap-words`: the file has the highest byte of each 32-bit word first;
    /// `read-pointer=OFFSET`, for a buffer that wrapped and was saved from its first address on: the offset of its oldest byte in
    /// the file, from the buffer's write pointer (an ETB's RWP counts words: multiply by four);
    /// `frame-start=N`, for a trace port with no FSYNC in the capture: the first frame starts after N bytes, 0 to 15;
    /// `address=ADDRESS`: the address of the file's first byte, if the file holds more than the trace buffer and states no addresses.
    #[arg(long, value_name = "CONTAINER", value_delimiter = ',', value_parser = packing, help_heading = "Capture")]
    pub(crate) container: Vec<Packing>,

    /// Infer nothing: a required setting that is not stated is an error.
    #[arg(long, help_heading = "Capture")]
    pub(crate) strict: bool,

    /// The memory limit, for example 512M or 2G; at least 32M.
    ///
    /// Images, symbols and source lines may use a quarter each; anything that does not fit is left out or refused with a warning.
    /// The last quarter limits the number of threads that decode. If memory still runs out, because results grow with the trace,
    /// decoding ends, the result up to there is printed, and the exit status is 2 (on Linux only). Mapped files, such as the
    /// capture, do not count.
    #[arg(long, value_name = "SIZE", help_heading = "Capture")]
    pub(crate) memory: Option<MemoryLimit>,

    /// The number of bytes that one thread decodes at a time: for tests, to cut a short capture into many segments.
    #[arg(long, value_name = "BYTES", hide = true, value_parser = clap::value_parser!(u32).range(256..))]
    pub(crate) segment: Option<u32>,

    #[command(flatten)]
    pub(crate) arrival: ArrivalArgs,

    /// The description of a source: [ID=]PROTOCOL[,key=value…].
    ///
    /// PROTOCOL is `etmv3`, `pft`, `etmv4` (or `ete`), `mtb`, `itm` or `stm`. Keys are `cpu=cortex-m3`, which gives the usual register
    /// values, and the registers by Arm's names in lower case: `etmcr=`, `etmidr=`, `etmccer=`, `etmtraceidr=`; for ETMv4 and ETE
    /// `trcconfigr=`, `trctraceidr=`, `trcdevarch=`, `trcidr0=`, `trcidr1=`, `trcidr2=` and `trcidr8=`; for an MTB `position=` (the
    /// place of the oldest packet), `master=` (the size of the buffer) and `base=` (the address of its RAM), and `pc=`, the address
    /// at which the processor halted, if the MTB was on until then: tracewalk then also shows the instructions after the last packet.
    #[arg(long = "source", value_name = "SOURCE", value_parser = source, help_heading = "Capture")]
    pub(crate) sources: Vec<SourceChoice>,

    /// A file of the MTB's registers, with lines such as MTB_POSITION=0x….
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Capture")]
    pub(crate) registers: Option<PathBuf>,

    /// Decode only this trace ID (hexadecimal with 0x, or decimal); can be given several times.
    #[arg(long = "id", value_name = "ID", value_parser = trace_id, help_heading = "Capture")]
    pub(crate) ids: Vec<TraceId>,

    #[command(flatten)]
    pub(crate) recording: RecordingArgs,

    /// The program: an ELF file, or ADDRESS:FILE for raw memory bytes; can be given several times.
    ///
    /// Intel HEX and S-records also work, without names and source lines.
    ///
    /// With @context=ID, @vmid=ID or @context=ID,vmid=ID appended, the image is visible only while the trace reports
    /// this context ID or virtual machine, and then takes precedence over other images: FILE@context=0x42.
    #[arg(long = "image", value_name = "[ADDRESS:]FILE[@context=ID]", value_parser = OsStringValueParser::new().try_map(image), value_hint = ValueHint::FilePath, help_heading = "Program")]
    pub(crate) images: Vec<ImageRequest>,

    /// For a perf.data file: a directory with the traced machine's files, used as its root.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Program")]
    pub(crate) symfs: Option<PathBuf>,

    /// For a perf.data file: a directory of files by build-id, such as perf's cache, or an archive made by
    /// `perf archive`; can be given several times. ~/.debug is searched as well.
    #[arg(long = "debug-dir", value_name = "DIR", value_hint = ValueHint::AnyPath, help_heading = "Program")]
    pub(crate) debug_dirs: Vec<PathBuf>,

    /// For a perf.data file, or functions that a kernel reported through an STM: a copy of the traced kernel's /proc/kallsyms, which
    /// names its functions. A recording that is a directory includes one, and perf's cache may have one.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Program")]
    pub(crate) kallsyms: Option<PathBuf>,

    /// The chip's CMSIS-SVD file, which names its interrupts.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Program")]
    pub(crate) svd: Option<PathBuf>,

    /// Name a task by its number or its context ID, for example 3=producer; can be given several times. With `proven`, profiles,
    /// timelines and interrupts have the tasks that the command `tasks` finds.
    #[arg(long, value_name = "ID=NAME|proven", value_parser = task, value_delimiter = ',', help_heading = "Program")]
    pub(crate) tasks: Vec<StatedTask>,

    /// The address of M profile's vector table (the register VTOR), if the program's symbols or the reset do not give
    /// it. Exceptions are numbered by this table.
    #[arg(long, value_name = "ADDRESS", value_parser = register, help_heading = "Program")]
    pub(crate) vtor: Option<u32>,
}

/// A word of `--container`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    /// The container is inferred.
    Auto,
    Is(Container),
    SwapWords,
    ReadPointer(u32),
    FrameStart(u8),
    Address(u32),
}

fn packing(word: &str) -> Result<Packing, String> {
    const KEYS: [&str; 4] = ["swap-words", "read-pointer=", "frame-start=", "address="];
    if let Some((key, value)) = word.split_once('=') {
        return match key {
            "read-pointer" => register(value).map(Packing::ReadPointer),
            "address" => register(value).map(Packing::Address),
            "frame-start" => {
                let start =
                    number(value).and_then(|start| u8::try_from(start).ok()).filter(|start| *start < 16);
                start.map(Packing::FrameStart).ok_or_else(|| "expected a number from 0 to 15".to_owned())
            }
            _ => Err(format!("the keys are {}", KEYS.join(", "))),
        };
    }
    match word {
        "auto" => Ok(Packing::Auto),
        "swap-words" => Ok(Packing::SwapWords),
        _ => word
            .parse()
            .map(Packing::Is)
            .map_err(|error: tracewalk_input::capture::UnknownContainer| error.to_string()),
    }
}

/// `--source`: a source, statements about an MTB, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SourceChoice {
    pub(crate) source: Option<SourceDescription>,
    pub(crate) mtb: Vec<(MtbKey, u32)>,
}

/// A key of `--source mtb`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MtbKey {
    Position,
    Master,
    Base,
    Pc,
}

impl MtbKey {
    fn of(key: &str) -> Option<Self> {
        Some(match key.strip_prefix("mtb_").unwrap_or(key) {
            "position" => Self::Position,
            "master" => Self::Master,
            "base" => Self::Base,
            "pc" => Self::Pc,
            _ => return None,
        })
    }
}

/// A word of `--tasks`.
#[derive(Clone, Debug)]
pub(crate) enum StatedTask {
    /// The name of a task, by number or context ID.
    Name(u32, String),
    /// All evidence distinguishes tasks.
    Proven,
}

fn task(text: &str) -> Result<StatedTask, String> {
    if text == "proven" {
        return Ok(StatedTask::Proven);
    }
    let stated = text.split_once('=').and_then(|(id, name)| Some((register(id).ok()?, name.to_owned())));
    stated
        .filter(|(_, name)| !name.is_empty())
        .map(|(id, name)| StatedTask::Name(id, name))
        .ok_or_else(|| "expected ID=NAME, for example 3=producer, or `proven`".to_owned())
}

fn source(text: &str) -> Result<SourceChoice, String> {
    let mut choice = SourceChoice::default();
    let mut rest = String::new();
    for (index, part) in text.split(',').enumerate() {
        let key = part.split_once('=').filter(|_| index > 0 && text.starts_with("mtb,"));
        let known = key.and_then(|(key, value)| Some((MtbKey::of(key)?, value)));
        match known {
            Some((key, value)) => choice.mtb.push((key, register(value)?)),
            None if key.is_some_and(|(key, _)| key == "flow") => rest += &format!(",mtb_{part}"),
            None => rest = if rest.is_empty() { part.to_owned() } else { format!("{rest},{part}") },
        }
    }
    if choice.mtb.is_empty() || rest != "mtb" {
        let read =
            rest.parse().map_err(|error: tracewalk_input::capture::ParseSourceError| error.to_string());
        choice.source = Some(read?);
    }
    Ok(choice)
}

/// An image; a name that is not Unicode has no address in front.
fn image(text: OsString) -> Result<ImageRequest, ParseImageError> {
    match text.to_str() {
        Some(text) => text.parse(),
        None => Ok(ImageRequest::new(text, ImageKind::Addressed, Origin::Stated(Setting::Image))),
    }
}

fn trace_id(text: &str) -> Result<TraceId, String> {
    let id = number(text).and_then(|number| TraceId::new(number.try_into().ok()?));
    id.ok_or_else(|| "expected a trace ID from 0x01 to 0x6f".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_a_container_and_an_mtb_is_a_list_of_keys() {
        assert_eq!(packing("tpiu"), Ok(Packing::Is(Container::TracePort)));
        assert_eq!(packing("frame-start=15"), Ok(Packing::FrameStart(15)));
        assert_eq!(packing("read-pointer=0x40"), Ok(Packing::ReadPointer(64)));
        for wrong in ["", "frame", "frame-start", "frame-start=16", "address=x", "pointer=1"] {
            assert!(packing(wrong).is_err(), "{wrong}");
        }
        let mtb = vec![(MtbKey::Position, 0x34), (MtbKey::Pc, 8)];
        assert_eq!(source("mtb,position=0x34,pc=8"), Ok(SourceChoice { source: None, mtb: mtb.clone() }));
        let both = source("mtb,cpu=cortex-m0,position=0x34,pc=8").unwrap();
        assert!(both.mtb == mtb && both.source.is_some_and(|source| source.cpu.is_some()));
        assert!(source("mtb").unwrap().source.is_some());
        for wrong in ["mtb,", "mtb,position", "mtb,pos=1", "mtb,base=0x1_0000_0000", "pft,position=1"] {
            assert!(source(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ids_are_hexadecimal_or_decimal() {
        assert_eq!(trace_id("0x10"), Ok(TraceId::new(16).unwrap()));
        assert_eq!(trace_id("16"), Ok(TraceId::new(16).unwrap()));
        for wrong in ["", "0", "0x70", "-1", "+1", "0x+1", "ten", "1000"] {
            assert!(trace_id(wrong).is_err(), "{wrong}");
        }
    }
}
