//! Notes, warnings and losses of a capture, as data. `tracewalk-sentences` makes sentences of them.

mod meaning;

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;

use tracewalk::flow::{Contradiction, GapReason};
use tracewalk::frame::Discontinuity;
use tracewalk::ids::{Address, TraceId};
use tracewalk::program::Scope;
use tracewalk::protocol::Malformation;
use tracewalk::protocol::mtb::Registers;
use tracewalk::span::CaptureOffset;
use tracewalk_analysis::{DoubtfulStretch, InDoubt, Position, Window};
use tracewalk_input::capture::dump::{Damage, MemoryDump};
use tracewalk_input::capture::perf::{Binary, TraceCounts};
use tracewalk_input::capture::stream::{End, Place};
use tracewalk_input::capture::wire::{Role, Wire};
use tracewalk_input::capture::{CaptureError, Container, Protocol, SourceDescription};
use tracewalk_input::image::ImageError;
use tracewalk_input::records::RecordForm;
use tracewalk_input::svd::SvdError;

use crate::error::OpenError;
use crate::infer::mtb_order::{Ending, Evidence};
use crate::infer::{Correction, Finding};

/// Something worth knowing about a capture or a result.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Notice {
    /// The kind, with its data.
    pub kind: NoticeKind,
    /// The offset in the capture's file at which it first occurs, if it has one.
    pub at: Option<CaptureOffset>,
}

/// How serious a notice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Something was inferred, or needs no action.
    Note,
    /// Something may be wrong; the result is complete.
    Warning,
    /// Something could not be read, decoded or followed: the result lacks that part. [`Outcome::complete`] is `false` only
    /// if decoding also stopped early.
    ///
    /// [`Outcome::complete`]: crate::Outcome::complete
    Incomplete,
}

/// The action that resolves a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Remedy {
    /// State the container.
    Container,
    /// State the protocol and settings of the source.
    Source,
    /// State where the oldest byte of the buffer is.
    ReadPointer,
    /// Give the registers of the MTB.
    MtbRegisters,
    /// State where the processor was halted.
    HaltedAt,
    /// State the roles of the channels, or record again.
    Wires,
    /// Choose trace IDs.
    Ids,
    /// Give the program that was traced.
    Image,
    /// State where the executed files are.
    Binaries,
    /// State where source files are.
    SourceDirectories,
    /// State the address of the image.
    ImageAddress,
    /// State in which context the image is visible.
    ImageContext,
    /// Give a better description of the chip's interrupts, or none.
    Interrupts,
    /// Allow more memory.
    Memory,
    /// Choose another part of the trace.
    Window,
    /// Choose whether instructions in doubt are counted.
    Doubtful,
    /// Look at the packets, or at the losses.
    Look,
    /// Trace again, with other settings or at a higher rate.
    TraceAgain,
}

/// An inferred setting, in the form of a statement.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Inferred {
    /// Each 32-bit word has its highest byte first.
    SwappedWords,
    /// The offset of the buffer's oldest byte.
    ReadPointer(u64),
    /// How the bytes are packed.
    Container(Container),
    /// The number of bytes before the first frame of a trace port.
    FrameStart(u8),
    /// A source.
    Source(SourceDescription),
    /// The protocol on the wires.
    Wire(Wire),
    /// The bit rate of SWO, in bits per second.
    Baud(f64),
    /// The role of a channel, by its name.
    Channel(String, Role),
    /// The wires are inverted.
    Inverted,
    /// The address of M profile's vector table.
    VectorTable(Address),
}

/// The statement that would resolve a doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// The place of the buffer's oldest byte.
    ReadPointer,
    /// How the bytes are packed.
    Container,
    /// The protocol and settings of a source.
    Source,
}

/// Why an image for a context ID never became visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoContext {
    /// An MTB traces no contexts.
    Mtb,
    /// The trace unit was set up to trace context IDs, and traced none.
    Traced,
    /// The trace unit was not set up to trace context IDs.
    NotTraced,
}

/// An end of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The start.
    From,
    /// The end.
    To,
}

/// The file and context of an image that is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrongImage {
    /// The file of the image.
    pub file: Option<PathBuf>,
    /// The context in which it is wrong, if it is one of several.
    pub context: Option<Scope>,
}

/// Kernel modules whose code is not known, by the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModulesLeftOut {
    /// How many have no file here.
    pub not_found: u64,
    /// How many have a file, but no known address in the kernel.
    pub unplaced: u64,
}

/// The kind of a notice.
///
/// `source` is the trace ID of the source; `None` for one without an ID. `count`, `errors` and `places` are numbers of occurrences, of
/// which `first` is the first; `bytes`, `received`, `kept`, `cut` and `used` are numbers of bytes. `seen` describes the activity of a
/// recording's channels.
#[derive(Clone, Debug, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant says what its fields are")]
pub enum NoticeKind {
    /// An entry of the description is unusable and was left out.
    EntryLeftOut(CaptureError),
    /// An image that the description names cannot be used, and was left out.
    ImageLeftOut(ImageError),
    /// A file that ran has another build-id here, and is not used.
    OtherBinary(Box<Binary>),
    /// The code of files that were mapped is not known.
    BinariesMissing(Vec<Binary>),
    /// The code of some kernel modules is not known.
    ModulesLeftOut(ModulesLeftOut),
    /// The number of branches in kernel modules that are left out, because their destinations are unknown.
    ModuleBranchesUnknown(u64),
    /// Some trace is not in the recording, or the recording has none.
    TraceNotRecorded(TraceCounts),
    /// The number of mappings that replaced another and are not distinguished.
    MappingsMixed(u64),
    /// The number of bytes of each context ID in the trace, too few to distinguish the processes.
    ContextIdsShort(u8),
    /// A recording ends in the middle of a record, or has something else at `at`.
    RecordsCut {
        /// The place of the other content; `None` if the recording is cut.
        at: Option<u64>,
    },
    /// The kernel dropped this number of records.
    RecordsLost(u64),
    /// An interrupt in the chip's description is unusable.
    InterruptLeftOut(SvdError),
    /// The chip's description names interrupts of M profile, and no source is of M profile.
    InterruptsUnused { file: PathBuf },
    /// The inferred settings of a buffer, as statements.
    Inferred(Vec<Inferred>),
    /// Another answer is as likely as the chosen one.
    AnotherAnswer { source: Option<TraceId>, question: Question, finding: Finding },
    /// An image was moved to where the trace fits it.
    ImageMoved { file: PathBuf, address: Address, finding: Finding },
    /// The stated settings of a source contradict its trace; `correction` fits.
    StatementContradicted { source: Option<TraceId>, correction: Box<Correction> },
    /// The memory that a file describes, if it is not plain bytes.
    MemoryRead { file: PathBuf, memory: Box<MemoryDump> },
    /// Lines that hold no memory, and the number (from 1) and text of the first of them.
    LinesPassedOver { file: PathBuf, count: u64, line: u32, text: String },
    /// The MTB's registers, found in memory at an address.
    MtbRegistersFound { address: Address, registers: Registers },
    /// Memory that may be code, used where no image covers it.
    MemoryAsCode { file: PathBuf, bytes: u64, address: Address },
    /// Memory that contradicts an image.
    MemoryContradictsImage(ImageError),
    /// The order of an MTB's packets was inferred: each continues where the one before ended.
    MtbOrderInferred(Evidence),
    /// Another order of an MTB's packets is nearly as likely.
    MtbAnotherOrder(Evidence),
    /// Bytes of the MTB's buffer that are not in the capture, oldest first: by their addresses, or by their places in
    /// memory without a stated address; and whether the newest packets are among them.
    MtbIncomplete { missing: Vec<Range<u64>>, are_addresses: bool, newest: bool },
    /// Nothing shows that the newest packet found is the newest one.
    MtbEndUnknown { end: Ending, are_addresses: bool },
    /// By its registers the MTB wrote nothing, but there are older packets.
    MtbOlderPackets(Evidence),
    /// By its registers the MTB wrote nothing: it was never on, or nothing ran since it was switched on or reset.
    MtbWroteNothing,
    /// The MTB has not wrapped, and packets after its pointer continue the newest one: they are an earlier run's, or the
    /// registers are another recording's. The evidence is that of the packets without the registers.
    MtbGoesOn(Evidence),
    /// The address of memory without a stated one, by the packets and the MTB's registers.
    DumpPlaced { address: Address },
    /// In memory without a stated address, packets continue elsewhere than the MTB's registers place them.
    DumpMisplaced(Evidence),
    /// Parts of a memory dump are damaged.
    MemoryDamaged { file: PathBuf, damage: Damage },
    /// A source is of a protocol that is not decoded.
    NotDecoded { source: Option<TraceId>, protocol: Protocol },
    /// Registers are missing to decode a source.
    RegistersMissing { source: Option<TraceId>, protocol: Protocol, problem: String },
    /// A buffer, or a requested trace ID, has nothing to decode; the rest of the capture has.
    NothingThere(Box<OpenError>),
    /// There is trace, but none of a protocol that is decoded.
    NothingDecodable,
    /// Bytes of a trace ID that is not described, and the source that reads them, if any.
    Undescribed { id: TraceId, bytes: u64, reads_as: Option<Box<SourceDescription>> },
    /// Trace IDs that are neither described nor readable, if there are many, and the total number of their bytes.
    ManyUndescribed { ids: Vec<TraceId>, bytes: u64 },
    /// A source that was stated or described has no bytes, and neither has any other one with program flow.
    StatedAbsent { id: TraceId },
    /// A source that was stated or described has no bytes; others have.
    DescribedAbsent { id: TraceId },
    /// Frames name no described source; the number of bytes of trace before the first trace ID.
    Unowned { bytes: u64 },
    /// Bytes were lost to damaged frames, others have no known source: no trace ID came before them.
    FramesDamaged { file: PathBuf, bytes: u64, places: u64, unowned: u64, first: Discontinuity },
    /// Bytes that no formatter writes: all of them, and those at the first place.
    FramesOdd { file: PathBuf, bytes: u64, places: u64, first_bytes: u64 },
    /// The numbers of zero bytes at the start and at the end of a buffer without frames: it was not filled.
    Unfilled { file: PathBuf, first: u64, last: u64 },
    /// The capture ends within a frame.
    FrameCut { file: PathBuf, bytes: u64 },
    /// Errors on the wires of a recording. `byte` counts the bytes before the first, which is `seconds` after the start of the recording.
    WireErrors { file: PathBuf, errors: u64, byte: usize, seconds: Option<f64>, seen: Option<String> },
    /// No synchronisation shows where the bytes of the trace port start.
    WiresUnaligned { file: PathBuf, seen: Option<String> },
    /// The recording could not be read to its end.
    RecordingCut(CaptureError),
    /// A file does not exist yet; the session waits for it.
    Awaited(Place),
    /// The settings of a stream are inferred from its first bytes.
    InferringFromHead(Place),
    /// One source is decoded as the stream arrives, the others afterwards.
    DecodedInTurn { place: Place, first: Option<TraceId>, others: Vec<Option<TraceId>> },
    /// The end of a stream, unless it is a file or a pipe that was read to its end. The last `cut` bytes are the
    /// beginning of a frame.
    StreamEnded { place: Place, end: End, received: u64, cut: u64 },
    /// Only the first bytes of a stream were kept for the sources that had to wait.
    KeptPartly { place: Place, kept: u64 },
    /// A source was decoded with the settings inferred from its first bytes; other settings fit all of its bytes
    /// better.
    ReadsOtherwise {
        source: Option<TraceId>,
        decoded: Box<SourceDescription>,
        better: Box<SourceDescription>,
    },
    /// A source was decoded with the settings inferred from its first bytes.
    DecodedByHead { source: Option<TraceId> },
    /// Memory ran out: decoding ended after a byte of the capture. `used` is the memory of the process.
    MemoryExhausted { used: u64 },
    /// Symbols or source lines of an image are unusable, in the reader's words.
    NamesMissing(String),
    /// The only image is hexadecimal records, which have no names and no source lines.
    NoNames { file: PathBuf, form: RecordForm },
    /// Source lines are needed, but the program has no debugging information.
    NoLines { file: PathBuf },
    /// Source files that the debugging information names were not found.
    SourcesMissing { files: BTreeSet<String> },
    /// Not one packet was found in a source's bytes.
    NoSynchronisation { source: Option<TraceId>, bytes: u64, protocol: &'static str },
    /// Stretches of malformed trace, and the reason of the first, if known.
    Malformed { source: Option<TraceId>, count: u64, first: Option<Malformation> },
    /// An image is for a context ID, and the trace has none.
    NoContextIds { source: Option<TraceId>, why: NoContext },
    /// An image is for a VMID, and the trace has none.
    NoVmids { source: Option<TraceId> },
    /// An image is for a context that never ran; `others` did.
    ContextAbsent { source: Option<TraceId>, scope: Scope, others: Vec<Scope> },
    /// Stretches of trace in doubt, and whether their instructions were counted.
    InDoubt {
        source: Option<TraceId>,
        count: u64,
        bytes: u64,
        first: DoubtfulStretch,
        instructions: Option<InDoubt>,
    },
    /// Trace and image disagree repeatedly: the image is not the traced program, and is not followed. `count` contradictions were found
    /// in `ranges` blocks at the beginning of the capture.
    ImageRefused { source: Option<TraceId>, count: u64, ranges: u64, first: Contradiction, wrong: WrongImage },
    /// There is no program to follow.
    NoProgram { source: Option<TraceId> },
    /// Execution reached code that no image holds.
    CodeMissing {
        source: Option<TraceId>,
        count: u64,
        first: Address,
        /// In which contexts, if images are for some only.
        contexts: Vec<Scope>,
        /// An image, and its first address, if nothing that ran is in any image.
        elsewhere: Option<(PathBuf, Address)>,
    },
    /// Nothing of the program ran: the image is for processors of another kind than the one that was traced.
    ForeignImage { source: Option<TraceId>, file: PathBuf },
    /// Code cannot be decoded.
    CodeUndecodable { source: Option<TraceId>, count: u64, first: GapReason },
    /// Trace and image disagree.
    Contradictions { source: Option<TraceId>, count: u64, first: GapReason, wrong: WrongImage },
    /// Execution cannot have continued to the stated address of the halt; everything before fits.
    HaltContradicted { source: Option<TraceId>, halted_at: Address, first: GapReason },
    /// The trace lacks the address that execution went to.
    AddressUnknown { source: Option<TraceId>, count: u64 },
    /// Trace is malformed or missing.
    TraceLost { source: Option<TraceId>, count: u64 },
    /// Malformed trace of an ITM.
    ItmMalformed { source: Option<TraceId>, count: u64 },
    /// The ITM dropped packets because it could not send fast enough.
    ItmOverflow { source: Option<TraceId>, count: u64 },
    /// The STM reports that writes were lost.
    StmLost { source: Option<TraceId>, count: u64 },
    /// An ITM alone does not record program flow.
    ItmAlone { source: Option<TraceId> },
    /// The trace lacks the counts in which an end of the window is stated.
    WindowNotCounted { source: Option<TraceId>, bound: Bound, position: Position },
    /// The window contains no trace; the trace ends at `end`.
    WindowEmpty { source: Option<TraceId>, window: Window, end: Position },
}

impl From<NoticeKind> for Notice {
    fn from(kind: NoticeKind) -> Self {
        Self { kind, at: None }
    }
}

impl NoticeKind {
    /// The notice of this kind, which first occurs at `at`.
    #[must_use]
    pub const fn at(self, at: CaptureOffset) -> Notice {
        Notice { kind: self, at: Some(at) }
    }
}
