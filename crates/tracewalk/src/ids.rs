//! The vocabulary: numbers that mean something, each as its own type.
//!
//! Everything here is validated when it is made, so that no function has to ask again.

use core::fmt;

/// A CoreSight trace source ID (ATID), `0x01..=0x6f`.
///
/// The IDs that the formatter keeps for itself are not trace IDs: 0 is padding, `0x7d` a trigger, the rest above
/// `0x6f` is reserved (CoreSight Architecture Specification, IHI 0029, "Trace source IDs").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId(u8);

impl TraceId {
    /// The trace ID with this number, or `None` where the number is not a trace source's.
    #[must_use]
    pub const fn new(number: u8) -> Option<Self> {
        match number {
            0x01..=0x6f => Some(Self(number)),
            _ => None,
        }
    }

    /// The number, `0x01..=0x6f`.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:02x}", self.0)
    }
}

/// A virtual address of a byte in the traced processor's memory.
///
/// Never carries an instruction set in bit 0: that is what [`Isa`] is for. Arithmetic wraps at 32 bits, as the
/// processor's does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u32);

impl Address {
    /// The address `bytes` further on, wrapping.
    #[must_use]
    #[inline]
    pub const fn plus(self, bytes: u32) -> Self {
        Self(self.0.wrapping_add(bytes))
    }

    /// The address moved by a signed number of bytes, wrapping.
    #[must_use]
    #[inline]
    pub const fn moved(self, bytes: i32) -> Self {
        Self(self.0.wrapping_add_signed(bytes))
    }

    /// How many bytes this address lies after `earlier`, wrapping.
    #[must_use]
    #[inline]
    pub const fn bytes_since(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// The address rounded down to a multiple of the instruction alignment of `isa`.
    #[must_use]
    #[inline]
    pub const fn aligned_for(self, isa: Isa) -> Self {
        Self(self.0 & !(isa.alignment() - 1))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:08x}", self.0)
    }
}

impl fmt::LowerHex for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.0, f)
    }
}

/// An instruction set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Isa {
    /// ARM: words, aligned to four bytes.
    A32,
    /// Thumb: one or two halfwords.
    #[default]
    T32,
    /// ThumbEE: Thumb with a few encodings of its own.
    T32EE,
    /// Jazelle: Java bytecodes, whose flow cannot be followed.
    Jazelle,
}

impl Isa {
    /// The alignment of this set's instructions in bytes.
    #[must_use]
    #[inline]
    pub const fn alignment(self) -> u32 {
        match self {
            Self::A32 => 4,
            Self::T32 | Self::T32EE => 2,
            Self::Jazelle => 1,
        }
    }

    /// Arm's name for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::A32 => "A32",
            Self::T32 => "T32",
            Self::T32EE => "T32EE",
            Self::Jazelle => "Jazelle",
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where execution goes on: an address and the instruction set there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// The instruction's address.
    pub address: Address,
    /// The instruction set it is decoded as.
    pub isa: Isa,
}

impl Location {
    /// The location of the `isa` instruction at `address`.
    #[must_use]
    pub const fn new(address: Address, isa: Isa) -> Self {
        Self { address, isa }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.address, self.isa)
    }
}

/// The value of the processor's Context ID register, which an operating system sets by process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextId(pub u32);

impl fmt::Display for ContextId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:x}", self.0)
    }
}

/// A virtual machine's number, from the VTTBR register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vmid(pub u8);

impl fmt::Display for Vmid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:x}", self.0)
    }
}

/// The state that qualifies an address: security and hypervisor mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SecurityState {
    /// Set in Non-secure state.
    pub non_secure: bool,
    /// Set in Hyp mode.
    pub hypervisor: bool,
}

/// An exception by number, in the numbering that its architecture profile uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Exception {
    /// M profile: the architecture's exception number (IPSR): 1 reset, 11 SVCall, 15 SysTick, `16 + n` IRQn.
    M(u16),
    /// A and R profile: the trace unit's code (ETM architecture IHI 0014Q, table 7.12; the same in PFT).
    Ar(u8),
}

impl Exception {
    /// The number by itself.
    #[must_use]
    pub const fn number(self) -> u16 {
        match self {
            Self::M(number) => number,
            Self::Ar(code) => code as u16,
        }
    }

    /// What the architecture calls it; `None` for a reserved number and for M profile's numbered interrupts.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::M(number) => m_profile_name(number),
            Self::Ar(code) => ar_profile_name(code),
        }
    }

    /// The number `n` of M profile's external interrupt IRQn.
    #[must_use]
    pub const fn external_interrupt(self) -> Option<u16> {
        match self {
            Self::M(number) => number.checked_sub(16),
            Self::Ar(_) => None,
        }
    }

    /// Whether this is the entry to Debug state of A and R profile, whose packet carries no meaningful address.
    #[must_use]
    pub const fn is_debug_entry(self) -> bool {
        matches!(self, Self::Ar(1))
    }
}

/// ARMv7-M Architecture Reference Manual (DDI 0403E), B1.5.2; SecureFault from ARMv8-M (DDI 0553B).
const fn m_profile_name(number: u16) -> Option<&'static str> {
    Some(match number {
        1 => "Reset",
        2 => "NMI",
        3 => "HardFault",
        4 => "MemManage",
        5 => "BusFault",
        6 => "UsageFault",
        7 => "SecureFault",
        11 => "SVCall",
        12 => "DebugMonitor",
        14 => "PendSV",
        15 => "SysTick",
        _ => return None,
    })
}

/// ETM architecture (IHI 0014Q), table 7.12.
const fn ar_profile_name(code: u8) -> Option<&'static str> {
    Some(match code {
        1 => "Debug entry",
        2 => "SMC",
        3 => "Hyp entry",
        4 => "Asynchronous data abort",
        5 => "ThumbEE check or Jazelle exception",
        8 => "Reset",
        9 => "Undefined instruction",
        10 => "SVC",
        11 => "Prefetch abort",
        12 => "Data abort",
        13 => "Generic",
        14 => "IRQ",
        15 => "FIQ",
        _ => return None,
    })
}

impl fmt::Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name(), self.external_interrupt()) {
            (Some(name), _) => f.write_str(name),
            (None, Some(interrupt)) => write!(f, "IRQ{interrupt}"),
            (None, None) => write!(f, "reserved exception {}", self.number()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn addresses_are_written_with_all_their_digits() {
        assert_eq!(Address(0x8000).to_string(), "0x00008000");
        assert_eq!(std::format!("{:x}", Address(0x8000)), "8000");
    }

    #[test]
    fn trace_ids_are_1_to_0x6f() {
        let valid = (0..=u8::MAX).filter(|&number| TraceId::new(number).is_some());
        assert!(valid.eq(0x01..=0x6f));
    }

    #[test]
    fn addresses_wrap_like_the_processors_own() {
        assert_eq!(Address(0xffff_fffe).plus(4), Address(2));
        assert_eq!(Address(2).bytes_since(Address(0xffff_fffe)), 4);
        assert_eq!(Address(0).moved(-4), Address(0xffff_fffc));
    }

    #[test]
    fn exceptions_print_the_name_or_the_number() {
        assert_eq!(Exception::M(15).to_string(), "SysTick");
        assert_eq!(Exception::M(16 + 37).to_string(), "IRQ37");
        assert_eq!(Exception::Ar(14).to_string(), "IRQ");
        assert_eq!(Exception::Ar(7).to_string(), "reserved exception 7");
    }

    /// ARMv7-M ARM (DDI 0403E), table B1-4, with ARMv8-M's SecureFault (DDI 0553B); ETM architecture (IHI 0014Q), table
    /// 7.12.
    #[test]
    fn every_exception_has_the_name_that_the_architecture_gives_it() {
        let m = [
            (1, "Reset"),
            (2, "NMI"),
            (3, "HardFault"),
            (4, "MemManage"),
            (5, "BusFault"),
            (6, "UsageFault"),
            (7, "SecureFault"),
            (11, "SVCall"),
            (12, "DebugMonitor"),
            (14, "PendSV"),
            (15, "SysTick"),
        ];
        let ar = [
            (1, "Debug entry"),
            (2, "SMC"),
            (3, "Hyp entry"),
            (4, "Asynchronous data abort"),
            (5, "ThumbEE check or Jazelle exception"),
            (8, "Reset"),
            (9, "Undefined instruction"),
            (10, "SVC"),
            (11, "Prefetch abort"),
            (12, "Data abort"),
            (13, "Generic"),
            (14, "IRQ"),
            (15, "FIQ"),
        ];
        let named = (0..=u16::MAX).filter_map(|number| Some((number, Exception::M(number).name()?)));
        assert!(named.eq(m));
        let named = (0..=u8::MAX).filter_map(|code| Some((code, Exception::Ar(code).name()?)));
        assert!(named.eq(ar));
    }
}
