//! Why a capture cannot be opened, and why work on it ends.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use tracewalk::ids::TraceId;
use tracewalk::protocol::mtb::Registers;
use tracewalk_input::capture::dump::Form;
use tracewalk_input::capture::stream::{End, Place};
use tracewalk_input::capture::{CaptureError, Container, Protocol};
use tracewalk_input::image::ImageError;
use tracewalk_input::svd::SvdError;
use tracewalk_input::{OtherFile, Setting};

use crate::compare::CompareError;
use crate::coverage::CoverageError;
use crate::gather::PlacesError;
use crate::gathering::GatherError;
use crate::window::WindowError;

/// Why a capture cannot be opened. The text states the problem; `tracewalk-sentences` adds what to try.
#[derive(Clone, Debug, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant says what its fields are")]
pub enum OpenError {
    /// The capture cannot be read.
    Capture(CaptureError),
    /// An image cannot be used.
    Image(ImageError),
    /// The chip's description cannot be used.
    Interrupts(SvdError),
    /// A description cannot be followed as it grows.
    DescriptionGrows(PathBuf),
    /// Waiting was limited, and there is nothing to wait for.
    NothingToWaitFor(PathBuf),
    /// A stream ended before its first byte.
    NoByte { place: Place, end: End },
    /// The file is an ELF file.
    ElfFile(PathBuf),
    /// The file is records of a program.
    Program { file: PathBuf, form: Form },
    /// The file is saved by this command.
    SavedFile { file: PathBuf, kind: &'static str },
    /// The bytes that were read from a recording are text, which begins like this.
    WireText { file: PathBuf, text: String },
    /// The file is a perf.data, whose records are not read.
    PerfData(PathBuf),
    /// The file is of another format than trace, by its name.
    NoTrace { file: PathBuf, format: &'static str },
    /// A statement is for a buffer's memory, and the file is a recording.
    NotForRecording { setting: Setting, file: PathBuf },
    /// A statement is for a file of trace bytes, and the file describes memory.
    NotForMemory { setting: Setting, file: PathBuf, form: Form },
    /// A statement is for frames and raw bytes, and the capture is of an MTB.
    NotForMtb { setting: Setting },
    /// A statement is for captures of `of`, and the capture is of `found`.
    NotFor { setting: Setting, of: &'static str, found: String },
    /// A statement is for an MTB, and the container or the sources are stated otherwise.
    NoMtb { setting: Setting, stated: String },
    /// The container is stated to be an MTB's, and a source to be of another protocol.
    MtbWithOtherSource(Protocol),
    /// A source was stated twice.
    SourceTwice(Option<TraceId>),
    /// The frame start is for a trace port, and the container is not one.
    FrameStartOfOther(String),
    /// The description already states the arrangement of the bytes.
    ArrangedAlready { file: PathBuf, by: String },
    /// The bytes cannot be arranged like that.
    Arrangement { file: PathBuf, problem: String },
    /// The file states addresses of its own.
    AddressTwice { file: PathBuf, form: Form },
    /// The file has several pieces of memory, and the container is not an MTB's.
    SeveralPieces { file: PathBuf, pieces: u64, container: Container },
    /// The file has no memory where the MTB's registers place the buffer.
    NoBuffer { file: PathBuf, registers: Registers },
    /// No piece of memory in the file looks like an MTB's trace.
    NoPiece { file: PathBuf, pieces: u64 },
    /// A file holds neither registers nor memory of a processor.
    NoSnapshot(PathBuf),
    /// The registers of the MTB do not fit the capture.
    Registers(String),
    /// Nothing in the capture looks like an MTB's packet.
    NoMtbPacket,
    /// The MTB's buffer holds only zeros.
    MtbNeverOn,
    /// Frames hold several sources, and one has no trace ID.
    NoTraceId(Protocol),
    /// Not everything is stated, and nothing may be inferred.
    NotStated { file: PathBuf, needed: Vec<Unstated> },
    /// A trace ID was requested, but the capture has no trace IDs.
    NoTraceIds(TraceId),
    /// The protocol of the requested trace ID is not decoded.
    IdNotDecoded(TraceId),
    /// The capture has no bytes of the requested trace ID.
    IdAbsent { id: TraceId, present: Vec<TraceId> },
    /// The capture holds only an ITM, which does not record program flow.
    OnlyItm(PathBuf),
    /// Nothing was recognised in the file.
    NothingRecognised {
        file: PathBuf,
        bytes: u64,
        /// For a recording: the activity of its channels.
        recording: Option<Option<String>>,
        /// Whether a program was given.
        has_program: bool,
        /// Another kind of file that begins with the same bytes.
        other: Option<OtherFile>,
        /// The value of every byte, if all bytes have the same.
        blank: Option<u8>,
    },
}

/// What has to be stated if nothing may be inferred.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of what is stated")]
pub enum Unstated {
    /// That the wires are those of a trace port.
    Port,
    Wire,
    Baud,
    Inverted,
    Channels,
    Container,
    FrameStart,
    /// Each of the sources.
    Sources,
    /// A source with its trace ID, protocol and processor, as far as they are not known.
    Source {
        id: Option<TraceId>,
        protocol: Option<Protocol>,
    },
    /// The trace ID of a source.
    TraceId(Protocol),
    MtbRegisters,
}

/// Why work on a capture ends without its result.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// The consumer of the results failed, for example an output that cannot be written.
    Sink(io::Error),
    /// An image cannot be used.
    Image(ImageError),
    /// The rest of the capture cannot be opened.
    Open(OpenError),
    /// The answer needs a program, and there is none.
    NoProgram,
    /// The requested part of the trace cannot be reported.
    Window(WindowError),
    /// Two captures cannot be compared.
    Compare(CompareError),
    /// Places cannot be added up.
    Places(PlacesError),
    /// There is no report of coverage.
    Coverage(CoverageError),
}

impl RunError {
    /// A stable short name, like `no_mtb_packet`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Sink(_) => "output",
            Self::Image(error) => error.kind.name(),
            Self::Open(error) => error.name(),
            Self::NoProgram => "no_program",
            Self::Window(error) => error.name(),
            Self::Compare(error) => error.name(),
            Self::Places(error) => error.kind.name(),
            Self::Coverage(error) => error.name(),
        }
    }
}

impl OpenError {
    /// A stable short name, like `no_mtb_packet`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Capture(error) => error.kind.name(),
            Self::Image(error) => error.kind.name(),
            Self::Interrupts(error) => error.kind.name(),
            _ => self.into(),
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capture(error) => error.fmt(f),
            Self::Image(error) => error.fmt(f),
            Self::Interrupts(error) => error.fmt(f),
            Self::DescriptionGrows(file) => {
                write!(f, "{}: is a description, which cannot grow", file.display())
            }
            Self::NothingToWaitFor(file) => {
                write!(f, "{}: is complete; waiting is for captures that arrive over time", file.display())
            }
            Self::NoByte { place, end } => match (place, end) {
                (Place::Server { .. }, End::Closed) => {
                    write!(f, "{place}: closed the connection before the first byte")
                }
                (_, End::Closed) => write!(f, "{place}: standard input ended without a byte"),
                (_, End::Stopped) => write!(f, "{place}: stopped before the first byte"),
                (_, End::Idle) => write!(f, "{place}: no byte arrived within the time given"),
                (_, End::Failed(problem)) => write!(f, "{place}: {problem}, before the first byte"),
            },
            Self::ElfFile(file) => write!(f, "{}: is an ELF file, expected trace bytes", file.display()),
            Self::Program { file, form } => {
                write!(f, "{}: looks like a program ({form}), expected trace bytes", file.display())
            }
            Self::SavedFile { file, kind } => {
                write!(f, "{}: is a saved file of {kind}, expected trace bytes", file.display())
            }
            Self::WireText { file, text } => {
                let file = file.display();
                write!(f, "{file}: the bytes on the wire are text, `{text}`, expected trace bytes")
            }
            Self::PerfData(file) => {
                write!(f, "{}: is a perf.data file, expected trace bytes", file.display())
            }
            Self::NoTrace { file, format } => {
                write!(f, "{}: is {format}, expected trace bytes", file.display())
            }
            Self::NotForRecording { setting, file } => {
                write!(f, "{setting} is for a dump of a buffer, but {} is a recording", file.display())
            }
            Self::NotForMemory { setting, file, form } => {
                write!(f, "{setting} is for a file of trace bytes, but {} is {form}", file.display())
            }
            Self::NotForMtb { setting } => {
                write!(f, "{setting} is for frames and raw bytes, but the capture is of an MTB")
            }
            Self::NotFor { setting, of, found } => {
                write!(f, "{setting} is for {of}, but the capture is of {found}")
            }
            Self::NoMtb { setting, stated } => write!(f, "{setting} is for an MTB, but {stated}"),
            Self::MtbWithOtherSource(protocol) => {
                write!(f, "the container holds an MTB's packets, but a source is stated to be {protocol}")
            }
            Self::SourceTwice(Some(id)) => write!(f, "trace ID {id} is stated twice"),
            Self::SourceTwice(None) => f.write_str("the source is stated twice"),
            Self::FrameStartOfOther(other) => {
                write!(f, "the frame start is for a trace port, but the container is {other}")
            }
            Self::ArrangedAlready { file, by } => {
                write!(f, "{}: {by} already states the order of its bytes", file.display())
            }
            Self::Arrangement { file, problem } => write!(f, "{}: {problem}", file.display()),
            Self::AddressTwice { file, form } => {
                write!(f, "{}: is {form}, which states the addresses itself", file.display())
            }
            Self::SeveralPieces { file, pieces, container } => write!(
                f,
                "{}: has {pieces} pieces of memory, expected one for the container {container}",
                file.display()
            ),
            Self::NoBuffer { file, registers: Registers { position, base, .. } } => {
                let file = file.display();
                write!(
                    f,
                    "{file}: has no memory at the trace buffer's address according to MTB_POSITION 0x{position:x}"
                )?;
                base.map_or(Ok(()), |base| write!(f, " and MTB_BASE 0x{base:x}"))
            }
            Self::NoPiece { file, pieces: 1 } => {
                write!(f, "{}: the only memory in it is that of the processor's registers", file.display())
            }
            Self::NoPiece { file, pieces } => write!(
                f,
                "{}: none of its {pieces} pieces of memory looks like an MTB's trace",
                file.display()
            ),
            Self::NoSnapshot(file) => {
                write!(
                    f,
                    "{}: contains no registers or memory in a format that a debugger prints",
                    file.display()
                )
            }
            Self::Registers(problem) => f.write_str(problem),
            Self::NoMtbPacket => f.write_str("nothing in the capture looks like an MTB packet"),
            Self::MtbNeverOn => f.write_str(
                "the trace buffer holds only zeros: the MTB was never on, or this memory is not its buffer",
            ),
            Self::NoTraceId(protocol) => {
                write!(f, "frames hold several sources, but {protocol} has no trace ID")
            }
            Self::NotStated { file, .. } => {
                write!(f, "{}: is not fully described, and inference is disabled", file.display())
            }
            Self::NoTraceIds(id) => {
                write!(f, "trace ID {id} is requested, but the capture has no trace IDs")
            }
            Self::IdNotDecoded(id) => write!(f, "the bytes of trace ID {id} are not decoded"),
            Self::IdAbsent { id, present } => {
                let present = present.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                write!(f, "the capture has no bytes of trace ID {id}, only of {present}")
            }
            Self::OnlyItm(file) => {
                write!(
                    f,
                    "{}: holds only the trace of an ITM or STM, which does not record program flow",
                    file.display()
                )
            }
            Self::NothingRecognised { file, other: Some(other), .. } => {
                write!(f, "{}: is {other}, in which no trace was recognised", file.display())
            }
            Self::NothingRecognised { file, bytes, blank: Some(byte), .. } => {
                write!(f, "{}: all of its {bytes} bytes are 0x{byte:02x}, which is not trace", file.display())
            }
            Self::NothingRecognised { file, bytes, .. } => {
                write!(f, "{}: no trace was recognised in its {bytes} bytes", file.display())
            }
        }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sink(error) => write!(f, "cannot write the output: {error}"),
            Self::Image(error) => error.fmt(f),
            Self::Open(error) => error.fmt(f),
            Self::NoProgram => f.write_str("the answer needs a program, but none was given"),
            Self::Window(error) => error.fmt(f),
            Self::Compare(error) => error.fmt(f),
            Self::Places(error) => error.fmt(f),
            Self::Coverage(error) => error.fmt(f),
        }
    }
}

impl Error for OpenError {}

impl Error for RunError {}

/// Errors that become a variant of another one.
macro_rules! variants {
    ($($to:ident::$variant:ident($from:ty))+) => {
        $(impl From<$from> for $to {
            fn from(error: $from) -> Self {
                Self::$variant(error)
            }
        })+
    };
}

variants! {
    OpenError::Capture(CaptureError)
    OpenError::Image(ImageError)
    RunError::Image(ImageError)
    RunError::Open(OpenError)
    RunError::Window(WindowError)
    RunError::Compare(CompareError)
    RunError::Places(PlacesError)
    RunError::Coverage(CoverageError)
    RunError::Sink(io::Error)
    GatherError::Open(OpenError)
    GatherError::Run(RunError)
}
