//! The severity, remedy and stable name of each notice.

use std::fmt;

use tracewalk_input::capture::stream::End;
use tracewalk_input::capture::{CaptureError, CaptureErrorKind};

use super::{Notice, NoticeKind, Question, Remedy, Severity};
use crate::infer::{Certainty, Finding};

impl Notice {
    /// How serious the notice is.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        self.kind.severity()
    }

    /// The action to take; `None` if nothing helps or nothing is wrong.
    #[must_use]
    pub const fn remedy(&self) -> Option<Remedy> {
        self.kind.remedy()
    }
}

impl NoticeKind {
    /// How serious a notice of this kind is.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        use NoticeKind as K;
        match self {
            K::Inferred(_)
            | K::MemoryRead { .. }
            | K::LinesPassedOver { .. }
            | K::MtbRegistersFound { .. }
            | K::MemoryAsCode { .. }
            | K::MtbOrderInferred(_)
            | K::DumpPlaced { .. }
            | K::NotDecoded { .. }
            | K::Undescribed { .. }
            | K::ManyUndescribed { .. }
            | K::DescribedAbsent { .. }
            // Files that did not run are no loss, and code that is missing has a notice of its own.
            | K::BinariesMissing(_)
            | K::Unfilled { .. }
            | K::FrameCut { .. }
            | K::Awaited(_)
            | K::InferringFromHead(_)
            | K::DecodedInTurn { .. }
            | K::DecodedByHead { .. }
            | K::InDoubt { .. }
            | K::NoNames { .. }
            | K::ItmAlone { .. } => Severity::Note,
            K::StreamEnded { end: End::Closed, cut: 1.., .. }
            | K::StreamEnded { end: End::Failed(_) | End::Stopped, .. } => Severity::Incomplete,
            K::StreamEnded { .. } => Severity::Note,
            K::OtherBinary(_)
            | K::ModulesLeftOut(_)
            | K::ModuleBranchesUnknown(_)
            | K::MappingsMixed(_)
            | K::ContextIdsShort(_)
            | K::EntryLeftOut(CaptureError { kind: CaptureErrorKind::Undefined { .. }, .. })
            | K::InterruptLeftOut(_)
            | K::InterruptsUnused { .. }
            | K::AnotherAnswer { .. }
            | K::ImageMoved { .. }
            | K::MemoryContradictsImage(_)
            | K::MtbAnotherOrder(_)
            | K::MtbGoesOn(_)
            | K::MtbWroteNothing
            | K::WiresUnaligned { .. }
            | K::NamesMissing(_)
            | K::NoLines { .. }
            | K::SourcesMissing { .. }
            | K::ContextAbsent { .. }
            | K::ItmOverflow { .. }
            | K::WindowEmpty { .. } => Severity::Warning,
            // Whatever is not known to be harmless is a loss.
            _ => Severity::Incomplete,
        }
    }

    /// Whether decoding ended before the capture did: results cover only a part.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        match self {
            Self::MemoryExhausted { .. } => true,
            Self::StreamEnded { end, .. } => end.is_early(),
            _ => false,
        }
    }

    /// The action to take; `None` if nothing helps or nothing is wrong.
    #[must_use]
    pub const fn remedy(&self) -> Option<Remedy> {
        use NoticeKind as K;
        Some(match self {
            K::AnotherAnswer { question: Question::ReadPointer, .. } => Remedy::ReadPointer,
            K::AnotherAnswer { question: Question::Container, .. }
            | K::InferringFromHead(_)
            | K::FramesDamaged { .. }
            | K::FramesOdd { .. } => Remedy::Container,
            K::AnotherAnswer { question: Question::Source, .. }
            | K::StatementContradicted { .. }
            | K::RegistersMissing { .. }
            | K::Undescribed { .. }
            | K::ManyUndescribed { .. }
            | K::StatedAbsent { .. }
            | K::ReadsOtherwise { .. }
            | K::NothingThere(_)
            | K::NoSynchronisation { .. } => Remedy::Source,
            K::MtbIncomplete { .. }
            | K::MtbEndUnknown { .. }
            | K::MtbOlderPackets(_)
            | K::MtbGoesOn(_)
            | K::DumpMisplaced(_)
            | K::MtbOrderInferred(_)
            | K::MtbAnotherOrder(_) => Remedy::MtbRegisters,
            K::HaltContradicted { .. } => Remedy::HaltedAt,
            K::WireErrors { .. } | K::WiresUnaligned { .. } => Remedy::Wires,
            K::DecodedInTurn { .. } | K::KeptPartly { .. } => Remedy::Ids,
            K::MemoryContradictsImage(_)
            | K::NamesMissing(_)
            | K::NoNames { .. }
            | K::NoLines { .. }
            | K::ImageRefused { .. }
            | K::NoProgram { .. }
            | K::CodeMissing { .. }
            | K::ForeignImage { .. }
            | K::CodeUndecodable { .. }
            | K::Contradictions { .. } => Remedy::Image,
            K::OtherBinary(_)
            | K::BinariesMissing(_)
            | K::ModulesLeftOut(_)
            | K::ModuleBranchesUnknown(_) => Remedy::Binaries,
            K::SourcesMissing { .. } => Remedy::SourceDirectories,
            K::ImageMoved { .. } => Remedy::ImageAddress,
            K::ContextAbsent { .. } => Remedy::ImageContext,
            K::InterruptLeftOut(_) | K::InterruptsUnused { .. } => Remedy::Interrupts,
            K::MemoryExhausted { .. } => Remedy::Memory,
            K::WindowNotCounted { .. } | K::WindowEmpty { .. } => Remedy::Window,
            K::InDoubt { .. } => Remedy::Doubtful,
            K::Malformed { .. } | K::TraceLost { .. } | K::ItmMalformed { .. } => Remedy::Look,
            K::NoContextIds { .. }
            | K::NoVmids { .. }
            | K::ItmOverflow { .. }
            | K::StmLost { .. }
            | K::TraceNotRecorded(_)
            | K::ContextIdsShort(_)
            | K::MtbWroteNothing
            | K::RecordsLost(_) => Remedy::TraceAgain,
            _ => return None,
        })
    }

    /// The name, which is the same in all versions.
    #[must_use]
    pub fn name(&self) -> &'static str {
        use NoticeKind as K;
        match self {
            K::AnotherAnswer { finding: Finding { certainty: Certainty::DoubtfulDetails, .. }, .. } => {
                "other_details"
            }
            _ => self.into(),
        }
    }
}

impl fmt::Display for NoticeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
