//! A trace source: its core, its protocol, and the setup of its trace unit.

use std::fmt;
use std::iter;
use std::str::FromStr;

use tracewalk::ids::TraceId;
use tracewalk::plain::Plain;

use super::error::CaptureErrorKind;
use super::registers::{
    DECODING, ETMV4_LOWER_CASE, LOWER_CASE, MTB_LOWER_CASE, Registers, known, parse_value,
};
use crate::cpu::{Profile, UsualRegisters};
use crate::excerpt::excerpt;
use crate::meant;
use crate::nearest::nearest;
use crate::number;
use crate::origin::{Origin, Setting, Stated};

/// The protocol of a source's bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// ETM architecture version 3: Cortex-M3, M4, A5, A7, A8, R4, R5, ARM9, ARM11.
    EtmV3,
    /// Program Flow Trace: the PTM of Cortex-A9, A12, A15, A17.
    Pft,
    /// ETM architecture version 4 and the Embedded Trace Extension: Cortex-M7, and ARMv8 and ARMv9.
    Etmv4,
    /// Micro Trace Buffer: Cortex-M0+, M23, M33.
    Mtb,
    /// Instrumentation Trace Macrocell: text and values that software writes, no program flow.
    Itm,
    /// System Trace Macrocell: data that software and hardware write, no program flow.
    Stm,
    /// Another protocol, by its name in the description; empty if the description has none.
    Unknown(String),
}

impl Protocol {
    /// Whether the trace shows program flow, in a form that is decoded.
    #[must_use]
    pub const fn has_flow(&self) -> bool {
        matches!(self, Self::EtmV3 | Self::Pft | Self::Etmv4 | Self::Mtb)
    }

    /// The protocol's name in options and output.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::EtmV3 => "etmv3",
            Self::Pft => "pft",
            Self::Etmv4 => "etmv4",
            Self::Mtb => "mtb",
            Self::Itm => "itm",
            Self::Stm => "stm",
            Self::Unknown(_) => "unknown",
        }
    }

    /// Whether this is known to be a processor's trace.
    pub(crate) const fn traces_a_core(&self) -> bool {
        matches!(self, Self::EtmV3 | Self::Pft | Self::Etmv4 | Self::Mtb)
    }

    /// The registers that change how the protocol's bytes are read, as options and descriptions write them.
    /// An unknown protocol may have any.
    pub(crate) const fn register_names(&self) -> &'static [&'static str] {
        match self {
            Self::EtmV3 | Self::Pft => &["etmcr", "etmidr", "etmccer", "etmtraceidr"],
            Self::Etmv4 => ETMV4_LOWER_CASE,
            Self::Mtb => MTB_LOWER_CASE,
            Self::Itm => &["itmtcr"],
            Self::Stm => &["stmtcsr"],
            Self::Unknown(_) => &LOWER_CASE,
        }
    }

    /// Whether a register belongs to the protocol.
    pub(crate) fn has_register(&self, name: &str) -> bool {
        self.register_names().iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    /// The words that options and descriptions take, without alternative spellings. One of them is suggested
    /// for an unknown word.
    pub(crate) const NAMES: [&str; 7] = ["etmv3", "pft", "etmv4", "mtb", "itm", "stm", "unknown"];

    pub(crate) fn from_name(name: &str) -> Result<Self, CaptureErrorKind> {
        match name.to_ascii_lowercase().as_str() {
            "etmv3" => Ok(Self::EtmV3),
            "pft" | "ptm" => Ok(Self::Pft),
            // One protocol; the registers state its version.
            "etmv4" | "ete" => Ok(Self::Etmv4),
            "mtb" => Ok(Self::Mtb),
            "itm" => Ok(Self::Itm),
            "stm" => Ok(Self::Stm),
            "unknown" => Ok(Self::Unknown(String::new())),
            _ => Err(CaptureErrorKind::UnknownValue {
                key: "protocol".to_owned(),
                found: excerpt(name),
                nearest: meant::protocol(name, Self::NAMES),
            }),
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) if !name.is_empty() => write!(f, "unknown ({})", Plain(name)),
            _ => f.write_str(self.name()),
        }
    }
}

/// One source of trace in a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceDescription {
    /// The trace unit's name in a snapshot (`ETM_0`).
    pub name: Option<String>,
    /// The source's ID in CoreSight frames; `None` if the trace has no IDs or the ID is not stated.
    pub id: Option<TraceId>,
    /// The protocol of the source's bytes.
    pub protocol: Protocol,
    /// The trace unit's registers.
    pub registers: Registers,
    /// The traced core's name (`cpu_0`); images may be for one core.
    pub core: Option<String>,
    /// The traced processor (`Cortex-M3`).
    pub cpu: Option<Stated<String>>,
    /// The origin of this source's description.
    pub origin: Origin,
}

impl SourceDescription {
    /// The registers that change how the source's trace is read, by name. Options and `registers` in
    /// `capture.toml` take them.
    pub fn decoding_registers(&self) -> impl Iterator<Item = (&str, &Stated<u32>)> {
        self.registers.iter().filter(|(name, _)| self.protocol.has_register(name))
    }

    /// The registers that do not affect decoding, but are kept.
    pub fn other_registers(&self) -> impl Iterator<Item = (&str, &Stated<u32>)> {
        self.registers.iter().filter(|(name, _)| !self.protocol.has_register(name))
    }

    /// A source with only its protocol known.
    #[must_use]
    pub const fn new(protocol: Protocol, origin: Origin) -> Self {
        Self { name: None, id: None, protocol, registers: Registers::new(), core: None, cpu: None, origin }
    }

    /// The profile of the traced processor, if the processor is known.
    #[must_use]
    pub fn profile(&self) -> Option<Profile> {
        self.cpu.as_ref().and_then(|cpu| Profile::of_cpu(&cpu.value))
    }

    /// Adds the processor's usual values for registers that are not given.
    pub fn add_usual_registers(&mut self) {
        if let (Some(cpu), Protocol::EtmV3 | Protocol::Pft | Protocol::Etmv4) = (&self.cpu, &self.protocol) {
            self.registers.add_usual(&cpu.value, |name| self.protocol.has_register(name));
        }
    }

    /// Sets the ID from the register that holds it, unless it is known.
    pub(crate) fn add_id_from_registers(&mut self) {
        let bits =
            |register, shift: u32| self.registers.get(register).map(|value| value >> shift & 0b111_1111);
        let number = match self.protocol {
            // ETM architecture (IHI 0014Q), 3.5.60; PFT architecture (IHI 0035B), 3.15.40.
            Protocol::EtmV3 | Protocol::Pft => bits("ETMTRACEIDR", 0),
            // ARMv7-M Architecture Reference Manual (DDI 0403E), C1.7.6: ITM_TCR.TraceBusID.
            Protocol::Itm => bits("ITMTCR", 16),
            Protocol::Etmv4 => bits("TRCTRACEIDR", 0),
            // STM (DDI 0444B): STMTCSR.TRACEID.
            Protocol::Stm => bits("STMTCSR", 16),
            Protocol::Unknown(_) => bits("TRCTRACEIDR", 0).or_else(|| bits("STMTCSR", 16)),
            Protocol::Mtb => None,
        };
        self.id = self.id.or_else(|| TraceId::new(u8::try_from(number?).ok()?));
    }
}

/// A mistake in the text of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseSourceError(CaptureErrorKind);

impl ParseSourceError {
    /// What is wrong.
    #[must_use]
    pub const fn kind(&self) -> &CaptureErrorKind {
        &self.0
    }
}

impl fmt::Display for ParseSourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for ParseSourceError {}

/// Reads `[ID=]PROTOCOL[,key=value…]`.
///
/// ```
/// use tracewalk_input::capture::{Protocol, SourceDescription};
///
/// let source: SourceDescription = "0x02=etmv3,cpu=cortex-m3,etmcr=0x500".parse()?;
/// assert_eq!(source.protocol, Protocol::EtmV3);
/// assert_eq!(source.registers.get("ETMCR"), Some(0x500));
/// assert_eq!(source.registers.get("ETMIDR"), Some(0x4114_f250)); // usual for a Cortex-M3
///
/// let error = "2=etmv3,etmrc=0x500".parse::<SourceDescription>().unwrap_err();
/// assert_eq!(error.to_string(), "unknown key `etmrc` in the source, the nearest known one is `etmcr`");
/// # Ok::<(), tracewalk_input::capture::ParseSourceError>(())
/// ```
impl FromStr for SourceDescription {
    type Err = ParseSourceError;

    fn from_str(argument: &str) -> Result<Self, ParseSourceError> {
        parse(argument).map_err(ParseSourceError)
    }
}

fn parse(argument: &str) -> Result<SourceDescription, CaptureErrorKind> {
    let origin = || Origin::Stated(Setting::Source);
    let mut parts = argument.split(',').map(str::trim);
    let first = parts.next().unwrap_or("");
    let (id, protocol) = match first.split_once('=') {
        Some((id, protocol)) => (Some(parse_id(id.trim())?), protocol.trim()),
        None => (None, first),
    };
    let mut source = SourceDescription::new(Protocol::from_name(protocol)?, origin());
    source.id = id;
    for part in parts {
        let (key, value) = part.split_once('=').ok_or_else(|| CaptureErrorKind::Type {
            key: excerpt(part),
            expected: "key=value",
            found: "no `=`".to_owned(),
        })?;
        let (key, value) = (key.trim(), value.trim());
        if key == "cpu" {
            source.cpu = Some(Stated::new(known_cpu(value)?, origin()));
            continue;
        }
        let name = known(key, &DECODING).map_err(|nearest| unknown_option_key(key, nearest))?;
        if !source.protocol.has_register(name) {
            let nearest = nearest(key, source.protocol.register_names().iter().copied()).unwrap_or("cpu");
            let place = format!("the source of {}", source.protocol.name());
            return Err(CaptureErrorKind::UnknownKey { place, key: excerpt(key), nearest });
        }
        source.registers.set(name, parse_value(key, value)?, origin());
    }
    source.add_usual_registers();
    source.add_id_from_registers();
    Ok(source)
}

/// A trace ID in an option or description.
fn parse_id(text: &str) -> Result<TraceId, CaptureErrorKind> {
    let number = number::parse(text).ok_or_else(|| CaptureErrorKind::Type {
        key: "id".to_owned(),
        expected: "a trace ID",
        found: format!("`{}`", excerpt(text)),
    })?;
    trace_id(number)
}

/// The trace ID with this number.
pub(crate) fn trace_id(number: u64) -> Result<TraceId, CaptureErrorKind> {
    let id = u8::try_from(number).ok().and_then(TraceId::new);
    id.ok_or(CaptureErrorKind::TraceId { found: number })
}

/// A processor's name. Its usual registers may be unknown, but not its profile.
pub(crate) fn known_cpu(name: &str) -> Result<String, CaptureErrorKind> {
    if UsualRegisters::of_cpu(name).is_some() || Profile::of_cpu(name).is_some() {
        return Ok(name.to_owned());
    }
    Err(CaptureErrorKind::UnknownValue {
        key: "cpu".to_owned(),
        found: excerpt(name),
        nearest: meant::cpu(name, UsualRegisters::cpus()),
    })
}

/// The keys of a source are the registers in lower case, and `cpu`.
fn unknown_option_key(key: &str, nearest_register: &'static str) -> CaptureErrorKind {
    let keys = iter::once("cpu").chain(LOWER_CASE);
    let nearest = nearest(key, keys).unwrap_or(nearest_register);
    CaptureErrorKind::UnknownKey { place: "the source".to_owned(), key: excerpt(key), nearest }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_option_says_id_protocol_and_registers() {
        let source: SourceDescription = "pft,etmtraceidr=0x13,etmcr=0x1000,cpu=cortex-a15".parse().unwrap();
        assert_eq!(source.id, TraceId::new(0x13));
        assert_eq!(source.profile(), Some(Profile::A));
        assert_eq!(
            source.registers.stated("etmcr").map(|stated| &stated.origin),
            Some(&Origin::Stated(Setting::Source))
        );
        assert_eq!(
            source.registers.stated("ETMIDR"),
            Some(&Stated::new(0x411c_f312, Origin::Usual("cortex-a15".to_owned())))
        );
    }

    #[test]
    fn mistakes_in_a_source_option_are_named() {
        let cases = [
            ("0x70=pft", "expected a trace ID from 0x01 to 0x6f, found 0x70"),
            ("0=pft", "expected a trace ID from 0x01 to 0x6f, found 0x00"),
            ("x=pft", "expected a trace ID for `id`, found `x`"),
            ("2=etb", "unknown protocol `etb`"),
            (
                "etmv3,cpu=cortex-m33x,cqu=1",
                "unknown key `cqu` in the source, the nearest known one is `cpu`",
            ),
            ("etmv3,cpu=crotex-m3", "unknown cpu `crotex-m3`, the nearest known one is `cortex-m3`"),
            ("etmv3,etmcr", "expected key=value for `etmcr`, found no `=`"),
            (
                "etmv3,mtb_position=0",
                "unknown key `mtb_position` in the source of etmv3, the nearest known one is `etmidr`",
            ),
            ("itm,etmcr=0", "unknown key `etmcr` in the source of itm, the nearest known one is `itmtcr`"),
            ("etmv3,etmcr=0x1g", "expected a number for `etmcr`, found `0x1g`"),
            ("etmv3,etmcr=0x100000000", "expected at most 0xffffffff for `etmcr`, found 0x100000000"),
        ];
        for (argument, message) in cases {
            let error = argument.parse::<SourceDescription>().unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }
}
