//! A capture, and the user's statements about it.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use tracewalk::ids::TraceId;
use tracewalk_input::MemoryLimit;
use tracewalk_input::capture::{Container, SourceDescription};
use tracewalk_input::image::ImageRequest;

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

    /// How the bytes are packed: `auto`, `frames` (CoreSight frames from a trace buffer), `tpiu` (frames from a trace
    /// port, with FSYNC and HSYNC, at any alignment), `raw` (one source's bytes) or `mtb` (an MTB's RAM).
    #[arg(long, value_name = "CONTAINER", value_parser = container, help_heading = "Capture")]
    pub(crate) container: Option<ContainerChoice>,

    /// The address of the file's first byte, if the file holds more than the trace buffer and does not state addresses.
    #[arg(long, value_name = "ADDRESS", value_parser = register, help_heading = "Capture")]
    pub(crate) dump_address: Option<u32>,

    /// For a trace port (--container tpiu) with no FSYNC in the capture: the first frame starts after N bytes, 0 to 15.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(..16), help_heading = "Capture")]
    pub(crate) frame_start: Option<u8>,

    /// For a buffer that wrapped and was saved from its first address on: the offset of its oldest byte in the file, from the
    /// buffer's write pointer (an ETB's RWP counts words: multiply by four).
    #[arg(long, value_name = "OFFSET", value_parser = register, help_heading = "Capture")]
    pub(crate) read_pointer: Option<u32>,

    /// Swap the bytes of each 32-bit word: the file has the highest byte first.
    #[arg(long, help_heading = "Capture")]
    pub(crate) swap_words: bool,

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
    /// PROTOCOL is `etmv3`, `pft`, `etmv4` (or `ete`), `mtb` or `itm`. Keys are `cpu=cortex-m3`, which gives the usual register
    /// values, and the registers by Arm's names in lower case: `etmcr=`, `etmidr=`, `etmccer=`, `etmtraceidr=`; for ETMv4 and ETE
    /// `trcconfigr=`, `trctraceidr=`, `trcdevarch=`, `trcidr0=`, `trcidr1=`, `trcidr2=` and `trcidr8=`.
    #[arg(long = "source", value_name = "SOURCE", help_heading = "Capture")]
    pub(crate) sources: Vec<SourceDescription>,

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
    #[arg(long = "image", value_name = "[ADDRESS:]FILE[@context=ID]", value_hint = ValueHint::FilePath, help_heading = "Program")]
    pub(crate) images: Vec<ImageRequest>,

    /// For a perf.data file: a directory with the traced machine's files, used as its root.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Program")]
    pub(crate) symfs: Option<PathBuf>,

    /// For a perf.data file: a directory of files by build-id, such as perf's cache, or an archive made by
    /// `perf archive`; can be given several times. ~/.debug is searched as well.
    #[arg(long = "debug-dir", value_name = "DIR", value_hint = ValueHint::AnyPath, help_heading = "Program")]
    pub(crate) debug_dirs: Vec<PathBuf>,

    /// For a perf.data file: a copy of the traced kernel's /proc/kallsyms, which names its functions. A recording that
    /// is a directory includes one, and perf's cache may have one.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Program")]
    pub(crate) kallsyms: Option<PathBuf>,

    /// The chip's CMSIS-SVD file, which names its interrupts.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Program")]
    pub(crate) svd: Option<PathBuf>,

    /// The address of M profile's vector table (the register VTOR), if the program's symbols or the reset do not give
    /// it. Exceptions are numbered by this table.
    #[arg(long, value_name = "ADDRESS", value_parser = register, help_heading = "Program")]
    pub(crate) vtor: Option<u32>,

    /// The MTB's POSITION register, which gives the place of the oldest packet.
    #[arg(long, value_name = "VALUE", value_parser = register, help_heading = "MTB")]
    pub(crate) mtb_position: Option<u32>,

    /// The MTB's MASTER register, which gives the size of the buffer.
    #[arg(long, value_name = "VALUE", value_parser = register, help_heading = "MTB")]
    pub(crate) mtb_master: Option<u32>,

    /// The MTB's BASE register, the address of its RAM.
    #[arg(long, value_name = "VALUE", value_parser = register, help_heading = "MTB")]
    pub(crate) mtb_base: Option<u32>,

    /// The address at which the processor halted, if the MTB was on until then; tracewalk then also shows the
    /// instructions after the last packet.
    #[arg(long, visible_alias = "pc", value_name = "ADDRESS", value_parser = register, help_heading = "MTB")]
    pub(crate) mtb_pc: Option<u32>,

    /// A file of the MTB's registers, with lines such as MTB_POSITION=0x….
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "MTB")]
    pub(crate) registers: Option<PathBuf>,
}

/// `--container`: a container, or `auto`, which infers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContainerChoice {
    Auto,
    Is(Container),
}

fn container(word: &str) -> Result<ContainerChoice, String> {
    if word == "auto" {
        return Ok(ContainerChoice::Auto);
    }
    word.parse()
        .map(ContainerChoice::Is)
        .map_err(|error: tracewalk_input::capture::UnknownContainer| error.to_string())
}

fn trace_id(text: &str) -> Result<TraceId, String> {
    let id = number(text).and_then(|number| TraceId::new(number.try_into().ok()?));
    id.ok_or_else(|| "expected a trace ID from 0x01 to 0x6f".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_hexadecimal_or_decimal() {
        assert_eq!(trace_id("0x10"), Ok(TraceId::new(16).unwrap()));
        assert_eq!(trace_id("16"), Ok(TraceId::new(16).unwrap()));
        for wrong in ["", "0", "0x70", "-1", "+1", "0x+1", "ten", "1000"] {
            assert!(trace_id(wrong).is_err(), "{wrong}");
        }
    }
}
