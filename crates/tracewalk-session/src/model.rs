//! Buffers, sources and ITMs of an open capture, as stated and inferred.

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use tracewalk::ids::{Address, Exception, TraceId};
use tracewalk::source::{Instrumentation, SourceConfig};
use tracewalk_analysis::drive::{Carrier, Stretch};
use tracewalk_input::Stated;
use tracewalk_input::capture::dump::MemoryDump;
use tracewalk_input::capture::{Buffer, Container, Protocol, SourceDescription};
use tracewalk_input::cpu::Profile;
use tracewalk_input::image::Image;

use crate::frames::Frames;
use crate::infer::{Correction, Finding, FoundSource};

/// The content of one of the capture's buffers.
#[derive(Debug)]
pub struct Contents {
    /// How its bytes are packed.
    pub container: Stated<Container>,
    /// The content of the frames; `None` for a container without frames.
    pub frames: Option<Frames>,
    /// The inferred settings of the container, with evidence.
    pub findings: Vec<Finding>,
    /// The known sources in it.
    pub sources: Vec<SourceDescription>,
}

impl Contents {
    /// The bytes of the frame that the end cuts off.
    pub(crate) fn cut(&self) -> u64 {
        self.frames.as_ref().map_or(0, |frames| frames.account.tail)
    }
}

/// A source whose program flow can be decoded.
#[derive(Clone, Debug)]
pub struct Source {
    /// The index of its buffer.
    pub buffer: usize,
    /// The trace ID; `None` in a buffer without IDs.
    pub id: Option<TraceId>,
    /// The settings, stated and inferred.
    pub description: SourceDescription,
    /// The decoder's configuration.
    pub config: SourceConfig,
    pub(crate) carrier: Carrier,
    /// The inferred settings, with evidence.
    pub findings: Vec<Finding>,
    /// Settings that fit better, if the stated ones contradict the trace.
    pub correction: Option<Correction>,
    /// Whether all of the source was followed in the program at opening, without a contradiction.
    pub(crate) fits: bool,
}

/// An ITM or STM that can be decoded.
#[derive(Clone, Debug)]
pub struct Itm {
    /// The index of its buffer.
    pub buffer: usize,
    /// The trace ID; `None` in a buffer without IDs.
    pub id: Option<TraceId>,
    /// The settings, stated and inferred.
    pub description: SourceDescription,
    pub(crate) carrier: Carrier,
    /// The inferred settings, with evidence.
    pub findings: Vec<Finding>,
}

impl Itm {
    /// The protocol.
    #[must_use]
    pub fn protocol(&self) -> Instrumentation {
        match self.description.protocol {
            Protocol::Stm => Instrumentation::Stm,
            _ => Instrumentation::Itm,
        }
    }
}

/// The memory that a capture's file describes, one piece of which holds the trace.
#[derive(Debug)]
pub struct Dumped {
    /// The file's pieces of memory.
    pub dump: MemoryDump,
    /// The address of the buffer's first byte.
    pub(crate) address: Option<Address>,
    /// The bytes that were not saved.
    pub(crate) holes: Vec<Range<usize>>,
    /// The other pieces that may be code.
    pub(crate) code: Vec<Arc<Image>>,
    /// Whether a piece holds trace.
    pub(crate) has_trace: bool,
}

/// A source in a buffer, and its findings.
#[derive(Clone, Debug)]
pub(crate) struct Identified {
    pub(crate) source: SourceDescription,
    /// Whether part of the description was inferred.
    pub(crate) guessed: bool,
    pub(crate) findings: Vec<Finding>,
    /// Whether the program cannot be the traced one, or not at the stated address.
    pub(crate) misses_program: bool,
    /// Settings that fit better, if the stated ones contradict the trace.
    pub(crate) correction: Option<Correction>,
    /// Whether all of the source was followed in the program, without a contradiction.
    pub(crate) fits: bool,
}

/// The bytes of a buffer that are trace.
pub(crate) fn stretches(buffer: &Buffer) -> Vec<Stretch> {
    match &buffer.parts {
        None => vec![Stretch::all(buffer.bytes.len())],
        Some(parts) => parts.iter().map(|part| Stretch { bytes: part.clone(), continues: false }).collect(),
    }
}

/// The contents of one buffer.
pub(crate) type SeenBuffer = (Contents, Vec<Identified>);

/// The subject of the finding about a buffer that wrapped.
pub(crate) const OLDEST_BYTE: &str = "oldest byte";

impl Source {
    /// The processor's profile; `None` if unknown.
    #[must_use]
    pub fn profile(&self) -> Option<Profile> {
        // Only M profile has an MTB.
        let m_profile = matches!(self.config, SourceConfig::Mtb(_)).then_some(Profile::M);
        self.description.profile().or(m_profile)
    }

    /// Whether the processor may have executed A64.
    pub(crate) fn may_run_a64(&self) -> bool {
        matches!(&self.config, SourceConfig::Etmv4(config) if config.profile() == tracewalk::ids::Profile::Ar)
    }

    /// The exceptions that the source's trace can report, in its numbering; an MTB's are those of its processor.
    #[must_use]
    pub fn exceptions(&self) -> Vec<Exception> {
        /// ARMv7-M has 511 exceptions (DDI 0403E, B1.5.2).
        const OF_M_PROFILE: RangeInclusive<u16> = 1..=511;
        /// The 4 bits of ETMv3 and PFT (IHI 0014Q, table 7.12).
        const CODES: Range<u8> = 0..16;
        /// The 10 bits of TYPE (IHI 0064).
        const TYPES: Range<u16> = 0..0x400;
        let profile = match &self.config {
            SourceConfig::Etmv4(config) => {
                return TYPES.map(|number| Exception::from_type(config.profile(), number)).collect();
            }
            SourceConfig::Etmv3(config) => config.profile(),
            SourceConfig::Pft(_) => tracewalk::ids::Profile::Ar,
            SourceConfig::Mtb(_) => tracewalk::ids::Profile::M,
        };
        match profile {
            tracewalk::ids::Profile::M => OF_M_PROFILE.map(Exception::M).collect(),
            tracewalk::ids::Profile::Ar => CODES.map(Exception::Ar).collect(),
        }
    }
}

impl Identified {
    /// A source without findings.
    pub(crate) const fn as_stated(source: SourceDescription) -> Self {
        Self {
            source,
            guessed: false,
            findings: Vec::new(),
            misses_program: false,
            correction: None,
            fits: false,
        }
    }
}

impl From<FoundSource> for Identified {
    fn from(found: FoundSource) -> Self {
        let FoundSource { source, findings, misses_program, .. } = found;
        let guessed = !findings.is_empty();
        Self { source, guessed, findings, misses_program, correction: None, fits: false }
    }
}
