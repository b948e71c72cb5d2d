//! The settings of a trace unit that change its packets, and their possible values.

use tracewalk::protocol::branch_address::AddressEncoding;
use tracewalk::protocol::timestamp::{TimestampCoding, TimestampWidth};
use tracewalk::protocol::{etmv3, pft};
use tracewalk::source::SourceConfig;
use tracewalk_input::Origin;
use tracewalk_input::capture::{Protocol, SourceDescription};
use tracewalk_input::cpu::UsualRegisters;

use super::processor::Unit;

/// A question about a trace unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// The protocol.
    Protocol,
    /// The processor, as far as the trace units differ.
    Processor,
    /// The encoding of branch addresses: ETMIDR bit 20.
    BranchEncoding,
    /// Whether the unit counts cycles: ETMCR bit 12.
    CycleCounts,
    /// The size of context IDs: ETMCR bits 15:14.
    ContextIds,
    /// The tracing of loads and stores: ETMCR bits 20 and 3:2.
    Data,
    /// Whether the unit predicts returns: ETMCR bit 29.
    ReturnStack,
    /// Whether DMB and DSB are waypoints: ETMCCER bit 24.
    Barriers,
    /// The format of timestamps: ETMCCER bits 29:28.
    Timestamps,
    /// The size of VMIDs: TRCIDR2 bits 14:10.
    Vmids,
    /// Whether cycle counts commit elements: TRCIDR0 bit 29.
    CommitMode,
    /// The number of elements that may be uncommitted: TRCIDR8.
    Speculation,
    /// Whether WFI and WFE are waypoints: TRCIDR2 bit 31.
    Waits,
}

/// A field of a register. Those of ETMv3 and PFT: IHI 0014Q and IHI 0035B, "Programmers' model".
struct Field {
    register: &'static str,
    mask: u32,
    /// The possible values, the most likely first.
    values: &'static [u32],
}

const CYCLE_COUNTS: Field = Field { register: "ETMCR", mask: 1 << 12, values: &[0, 1 << 12] };
const CONTEXT_IDS: Field =
    Field { register: "ETMCR", mask: 0b11 << 14, values: &[0, 0b01 << 14, 0b11 << 14, 0b10 << 14] };
const DATA: Field = Field {
    register: "ETMCR",
    mask: 1 << 20 | 0b11 << 2,
    values: &[0, 0b11 << 2, 0b01 << 2, 0b10 << 2, 1 << 20 | 0b11 << 2],
};
const RETURN_STACK: Field = Field { register: "ETMCR", mask: 1 << 29, values: &[1 << 29, 0] };
const BARRIERS: Field = Field { register: "ETMCCER", mask: 1 << 24, values: &[0, 1 << 24] };
const TIMESTAMPS: Field =
    Field { register: "ETMCCER", mask: 0b11 << 28, values: &[0b11 << 28, 0b01 << 28, 0, 0b10 << 28] };
/// The fields of ETMv4 and ETE for the same settings.
const LATER_CYCLE_COUNTS: Field = Field { register: "TRCCONFIGR", mask: 1 << 4, values: &[0, 1 << 4] };
const LATER_CONTEXT_IDS: Field =
    Field { register: "TRCIDR2", mask: 0b11111 << 5, values: &[0b00100 << 5, 0] };
const LATER_RETURN_STACK: Field = Field { register: "TRCCONFIGR", mask: 1 << 12, values: &[1 << 12, 0] };
const VMIDS: Field = Field {
    register: "TRCIDR2",
    mask: 0b11111 << 10,
    values: &[0b00001 << 10, 0b00100 << 10, 0b00010 << 10, 0],
};
const COMMIT_MODE: Field = Field { register: "TRCIDR0", mask: 1 << 29, values: &[1 << 29, 0] };
/// The greatest depth stands for all that are large enough; the other depths have been seen, or are between those.
const SPECULATION: Field =
    Field { register: "TRCIDR8", mask: u32::MAX, values: &[0, 255, 64, 30, 16, 8, 6, 4, 2, 1] };
const WAITS: Field = Field { register: "TRCIDR2", mask: 1 << 31, values: &[0, 1 << 31] };
/// ETMIDR bit 20.
const ALTERNATIVE_ENCODING: u32 = 1 << 20;

impl Question {
    /// The questions about a unit's setup, in the order in which they are asked: settings that change the length of
    /// packets come first.
    pub(super) const SETTINGS: [Self; 12] = [
        Self::CycleCounts,
        Self::ContextIds,
        Self::Data,
        Self::BranchEncoding,
        Self::Processor,
        Self::ReturnStack,
        Self::Timestamps,
        Self::Barriers,
        Self::Vmids,
        Self::CommitMode,
        Self::Speculation,
        Self::Waits,
    ];

    /// The subject, in few words.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Protocol => "protocol",
            Self::Processor => "processor",
            Self::BranchEncoding => "branch encoding",
            Self::CycleCounts => "cycle counts",
            Self::ContextIds => "context IDs",
            Self::Data => "data",
            Self::ReturnStack => "return stack",
            Self::Barriers => "barriers",
            Self::Timestamps => "timestamps",
            Self::Vmids => "VMIDs",
            Self::CommitMode => "commit mode",
            Self::Speculation => "speculation",
            Self::Waits => "waits",
        }
    }

    /// The register with this setting for a source of this protocol.
    pub(crate) const fn register(self, protocol: &Protocol) -> &'static str {
        match (self.field(protocol), protocol) {
            (Some(field), _) => field.register,
            (None, Protocol::Etmv4) => "TRCIDR1",
            (None, _) => "ETMIDR",
        }
    }

    const fn field(self, protocol: &Protocol) -> Option<Field> {
        let is_later = matches!(protocol, Protocol::Etmv4);
        match self {
            Self::Protocol | Self::Processor | Self::BranchEncoding => None,
            Self::Vmids => Some(VMIDS),
            Self::CommitMode => Some(COMMIT_MODE),
            Self::Speculation => Some(SPECULATION),
            Self::Waits => Some(WAITS),
            Self::CycleCounts if is_later => Some(LATER_CYCLE_COUNTS),
            Self::ContextIds if is_later => Some(LATER_CONTEXT_IDS),
            Self::ReturnStack if is_later => Some(LATER_RETURN_STACK),
            Self::CycleCounts => Some(CYCLE_COUNTS),
            Self::ContextIds => Some(CONTEXT_IDS),
            Self::Data => Some(DATA),
            Self::ReturnStack => Some(RETURN_STACK),
            Self::Barriers => Some(BARRIERS),
            Self::Timestamps => Some(TIMESTAMPS),
        }
    }

    /// Whether there are answers to choose from for a source of this protocol.
    const fn concerns(self, protocol: &Protocol) -> bool {
        match self {
            Self::BranchEncoding | Self::Data => matches!(protocol, Protocol::EtmV3),
            Self::Barriers => matches!(protocol, Protocol::Pft),
            Self::ReturnStack => matches!(protocol, Protocol::Pft | Protocol::Etmv4),
            Self::Timestamps => !matches!(protocol, Protocol::Etmv4),
            Self::Vmids | Self::CommitMode | Self::Speculation | Self::Waits => {
                matches!(protocol, Protocol::Etmv4)
            }
            Self::Protocol | Self::Processor | Self::CycleCounts | Self::ContextIds => true,
        }
    }

    /// Whether two sources can have different answers.
    pub(super) fn concerns_both(self, one: &SourceDescription, other: &SourceDescription) -> bool {
        // If the protocols differ, so do the processors.
        let same = one.protocol == other.protocol;
        match self {
            Self::Protocol => !same,
            Self::Processor => same && one.cpu.is_some() && other.cpu.is_some(),
            _ => self.concerns(&one.protocol) && self.concerns(&other.protocol),
        }
    }

    /// Whether the setting is not stated for this source.
    pub(super) fn is_open(self, source: &SourceDescription) -> bool {
        let guessed = |origin: &Origin| *origin == Origin::Detected || origin.is_of_processor();
        let open = |register| source.registers.stated(register).is_none_or(|stated| guessed(&stated.origin));
        let cpu = source.cpu.as_ref().is_none_or(|cpu| guessed(&cpu.origin));
        match self {
            Self::Protocol => guessed(&source.origin),
            // A processor has one encoding.
            Self::Processor | Self::BranchEncoding => cpu && open(self.register(&source.protocol)),
            _ => open(self.register(&source.protocol)),
        }
    }

    /// The source with each other answer.
    pub(super) fn others(self, source: &SourceDescription, units: &[Unit]) -> Vec<SourceDescription> {
        if !self.concerns(&source.protocol) {
            return Vec::new();
        }
        if let Some(field) = self.field(&source.protocol) {
            let now = source.registers.get(field.register).unwrap_or(0);
            let values = field.values.iter().filter(|&&value| value != now & field.mask);
            return values.map(|value| with(source, field.register, now & !field.mask | value)).collect();
        }
        match self {
            Self::BranchEncoding => {
                let etmidr = source.registers.get("ETMIDR").unwrap_or(0);
                vec![with(source, "ETMIDR", etmidr ^ ALTERNATIVE_ENCODING)]
            }
            _ => {
                let same_protocol = units.iter().filter(|unit| unit.protocol == source.protocol);
                let others = same_protocol.map(|unit| of_unit(source, unit));
                others.filter(|other| other.cpu != source.cpu).collect()
            }
        }
    }

    /// The answer that a configuration gives.
    pub(crate) fn answer(self, source: &SourceDescription, config: &SourceConfig) -> String {
        let text = match (self, config) {
            (Self::Protocol, _) => config.protocol(),
            (Self::Processor, _) => source.cpu.as_ref().map_or("not known", |cpu| cpu.value.as_str()),
            (_, SourceConfig::Etmv3(config)) => self.answer_etmv3(config),
            (_, SourceConfig::Pft(config)) => self.answer_pft(config),
            _ => return self.answer_by_register(source),
        };
        text.to_owned()
    }

    fn answer_by_register(self, source: &SourceDescription) -> String {
        let register = |field: &Field| source.registers.get(field.register).unwrap_or(0) & field.mask;
        let Some(field) = self.field(&source.protocol) else { return "none".to_owned() };
        let value = register(&field) >> field.mask.trailing_zeros();
        match self {
            Self::Speculation if value > 0 => return format!("up to {value} elements"),
            Self::Speculation => "none",
            Self::CycleCounts | Self::ReturnStack => on_or_off(value != 0),
            Self::ContextIds | Self::Vmids => bytes(u8::try_from(value).unwrap_or(u8::MAX)),
            Self::CommitMode if value == 0 => "cycle counts contain commit counts",
            Self::CommitMode => "cycle counts contain no commit counts",
            Self::Waits if value == 0 => "WFI and WFE are not waypoints",
            Self::Waits => "WFI and WFE are waypoints",
            _ => "none",
        }
        .to_owned()
    }

    const fn answer_etmv3(self, config: &etmv3::Config) -> &'static str {
        match self {
            Self::BranchEncoding => match config.address_encoding() {
                AddressEncoding::Original => "original",
                AddressEncoding::Alternative => "alternative",
            },
            Self::CycleCounts => on_or_off(config.cycle_accurate()),
            Self::ContextIds => bytes(config.context_id_size().bytes()),
            Self::Data => match (config.instructions(), config.data().values, config.data().addresses) {
                (false, ..) => "data without instructions",
                (true, true, true) => "values and addresses",
                (true, true, false) => "values",
                (true, false, true) => "addresses",
                (true, false, false) => "none",
            },
            Self::Timestamps => timestamps(config.timestamp().width, config.timestamp().coding),
            _ => "none",
        }
    }

    const fn answer_pft(self, config: &pft::Config) -> &'static str {
        match self {
            Self::CycleCounts => on_or_off(config.cycle_accurate()),
            Self::ContextIds => bytes(config.context_id_size().bytes()),
            Self::ReturnStack => on_or_off(config.return_stack()),
            Self::Barriers => {
                if config.barriers_are_waypoints() {
                    "DMB and DSB are waypoints"
                } else {
                    "only ISB is a waypoint"
                }
            }
            Self::Timestamps => timestamps(config.timestamp().width, config.timestamp().coding),
            _ => "none",
        }
    }
}

/// The source with every combination of the settings that are `free` and change the length of packets.
pub(super) fn lengths(source: &SourceDescription, free: &dyn Fn(Question) -> bool) -> Vec<SourceDescription> {
    let mut source = source.clone();
    let stack = Question::ReturnStack;
    if let Some(field) =
        stack.field(&source.protocol).filter(|_| stack.concerns(&source.protocol) && free(stack))
    {
        // Decoding for a unit that predicts returns is also right for a unit that does not, but not the other way
        // round.
        let now = source.registers.get(field.register).unwrap_or(0);
        source = with(&source, field.register, now | field.mask);
    }
    let questions: &[Question] = match source.protocol {
        // The sizes of context IDs and VMIDs depend on the unit.
        Protocol::Etmv4 => &[Question::CycleCounts, Question::CommitMode, Question::Speculation],
        _ => &[Question::ContextIds, Question::CycleCounts, Question::Data],
    };
    let mut sources = vec![source];
    for &question in questions {
        let protocol = sources.first().map(|source| source.protocol.clone());
        let field = protocol.and_then(|protocol| question.field(&protocol));
        let Some(field) = field.filter(|_| free(question)) else { continue };
        // Other bits do not change the length of packets.
        let values = if question == Question::Speculation { &field.values[..2] } else { field.values };
        let with_values =
            sources.iter().filter(|source| question.concerns(&source.protocol)).flat_map(|source| {
                let now = source.registers.get(field.register).unwrap_or(0) & !field.mask;
                values.iter().map(move |value| with(source, field.register, now | value))
            });
        let with_values = with_values.collect::<Vec<_>>();
        sources = if with_values.is_empty() { sources } else { with_values };
    }
    sources
}

/// The source with another value in a register.
fn with(source: &SourceDescription, register: &'static str, value: u32) -> SourceDescription {
    let mut source = source.clone();
    let usual = source.cpu.as_ref().and_then(|cpu| UsualRegisters::of_cpu(&cpu.value));
    let usual = usual.as_ref().filter(|usual| usual.iter().any(|known| known == (register, value)));
    let origin = usual.map_or(Origin::Detected, UsualRegisters::origin);
    source.registers.set(register, value, origin);
    source
}

/// The source as made by another unit with the same setup.
fn of_unit(source: &SourceDescription, unit: &Unit) -> SourceDescription {
    let kept: &[&'static str] = match source.protocol {
        Protocol::Etmv4 => &["TRCCONFIGR", "TRCIDR8"],
        _ => &["ETMCR"],
    };
    let mut other = unit.source();
    for &register in kept {
        other = with(&other, register, source.registers.get(register).unwrap_or(0));
    }
    SourceDescription { id: source.id, name: source.name.clone(), core: source.core.clone(), ..other }
}

const fn on_or_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

const fn bytes(bytes: u8) -> &'static str {
    match bytes {
        0 => "none",
        1 => "1 byte",
        2 => "2 bytes",
        _ => "4 bytes",
    }
}

const fn timestamps(width: TimestampWidth, coding: TimestampCoding) -> &'static str {
    match (width, coding) {
        (TimestampWidth::Bits64, TimestampCoding::Binary) => "64 bits, binary",
        (TimestampWidth::Bits48, TimestampCoding::Binary) => "48 bits, binary",
        (TimestampWidth::Bits48, TimestampCoding::Gray) => "48 bits, Gray code",
        (TimestampWidth::Bits64, TimestampCoding::Gray) => "64 bits, Gray code",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_question_has_an_answer_for_every_other_setting() {
        let source: SourceDescription = "0x10=etmv3,cpu=cortex-a7".parse().unwrap();
        let answers = |question: Question| {
            let others = question.others(&source, &[]);
            let answer = |source: &SourceDescription| {
                question.answer(source, &crate::sources::config(source).unwrap())
            };
            others.iter().map(answer).collect::<Vec<_>>()
        };
        assert_eq!(answers(Question::CycleCounts), ["on"]);
        assert_eq!(answers(Question::ContextIds), ["1 byte", "4 bytes", "2 bytes"]);
        assert_eq!(answers(Question::BranchEncoding), ["alternative"]);
        assert_eq!(answers(Question::Data).len(), 4);
        assert_eq!(answers(Question::Timestamps).len(), 3);
        assert_eq!(answers(Question::ReturnStack).len(), 0);
    }
}
