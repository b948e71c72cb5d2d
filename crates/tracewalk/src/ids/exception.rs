//! Exceptions, by the numbers that the architecture and its trace units give them.

use core::fmt;

/// An architecture profile, as far as exceptions and code depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Profile {
    /// Microcontroller: Thumb only, handlers from a vector table.
    M,
    /// Application and real-time, and everything before ARMv7.
    Ar,
}

impl Profile {
    /// A short name for line formats.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::M => "M",
            Self::Ar => "A/R",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An exception by number, in the numbering that its source uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Exception {
    /// M profile: the architecture's exception number (IPSR): 1 reset, 11 SVCall, 15 SysTick, `16 + n` IRQn.
    M(u16),
    /// A and R profile: the code of ETMv3 and PFT (ETM architecture IHI 0014Q, table 7.12).
    Ar(u8),
    /// A and R profile: TYPE of ETMv4 and ETE (IHI 0064, exception instruction trace packet), 10 bits.
    ArType(u16),
    /// M profile: a TYPE of ETMv4 that has no number of the architecture, such as the entry to Debug state.
    MType(u16),
}

impl Exception {
    /// The exception with this TYPE in ETMv4 and ETE. M profile's types become the architecture's numbers, if
    /// they have one.
    #[must_use]
    pub const fn from_type(profile: Profile, number: u16) -> Self {
        match (profile, number) {
            (Profile::Ar, _) => Self::ArType(number),
            (Profile::M, 1..=7 | 11 | 12 | 14..=23) => Self::M(number),
            // IRQ8 and above.
            (Profile::M, 0x208..=0x3ef) => Self::M(number - 0x200 + 16),
            (Profile::M, _) => Self::MType(number),
        }
    }

    /// TYPE in ETMv4 and ETE: the inverse of [`Exception::from_type`]; `None` if there is none.
    #[must_use]
    pub const fn to_type(self) -> Option<u16> {
        match self {
            Self::M(number @ (1..=7 | 11 | 12 | 14..=23)) => Some(number),
            Self::M(number @ 24..=0x1ff) => Some(number - 16 + 0x200),
            Self::ArType(number) | Self::MType(number) => Some(number),
            Self::M(_) | Self::Ar(_) => None,
        }
    }

    /// The number in the exception's numbering.
    #[must_use]
    pub const fn number(self) -> u16 {
        match self {
            Self::M(number) | Self::ArType(number) | Self::MType(number) => number,
            Self::Ar(code) => code as u16,
        }
    }

    /// A short name of the numbering. Together with [`Exception::number`] it identifies the exception.
    #[must_use]
    pub const fn numbering(self) -> &'static str {
        match self {
            Self::M(_) => "m",
            Self::Ar(_) => "ar",
            Self::ArType(_) => "ar-type",
            Self::MType(_) => "m-type",
        }
    }

    /// The exception with this number in the numbering of this name; `None` if there is none.
    #[must_use]
    pub fn numbered(numbering: &str, number: u16) -> Option<Self> {
        match numbering {
            "m" => Some(Self::M(number)),
            "ar" => u8::try_from(number).ok().map(Self::Ar),
            "ar-type" => Some(Self::ArType(number)),
            "m-type" => Some(Self::MType(number)),
            _ => None,
        }
    }

    /// The profile of the processor that takes the exception.
    #[must_use]
    pub const fn profile(self) -> Profile {
        match self {
            Self::M(_) | Self::MType(_) => Profile::M,
            Self::Ar(_) | Self::ArType(_) => Profile::Ar,
        }
    }

    /// The architecture's name; `None` for a reserved number and for M profile's numbered interrupts.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::M(number) => m_profile_name(number),
            Self::Ar(code) => ar_profile_name(code),
            Self::ArType(number) => ar_type_name(number),
            Self::MType(number) => m_type_name(number),
        }
    }

    /// The number `n` of M profile's external interrupt IRQn.
    #[must_use]
    pub const fn external_interrupt(self) -> Option<u16> {
        match self {
            Self::M(number) => number.checked_sub(16),
            Self::Ar(_) | Self::ArType(_) | Self::MType(_) => None,
        }
    }

    /// Whether this is the entry to Debug state, where nothing is traced.
    #[must_use]
    pub const fn is_debug_entry(self) -> bool {
        matches!(self, Self::Ar(1) | Self::ArType(1) | Self::MType(24))
    }

    /// Whether an instruction causes the exception: a supervisor call or a fault. Other exceptions come from
    /// outside.
    #[must_use]
    pub const fn is_synchronous(self) -> bool {
        match self {
            // HardFault to SecureFault, SVCall, DebugMonitor (DDI 0403E, B1.5.2; DDI 0553B).
            Self::M(number) => matches!(number, 3..=7 | 11 | 12),
            // SMC, HVC, ThumbEE check, undefined instruction, SVC, aborts, generic (IHI 0014Q, table 7.12).
            Self::Ar(code) => matches!(code, 2 | 3 | 5 | 9..=13),
            // Call, trap, debug exceptions, alignment, faults (IHI 0064).
            Self::ArType(number) => matches!(number, 2 | 3 | 6 | 7 | 10..=12),
            Self::MType(_) => false,
        }
    }

    /// Whether this is a reset.
    #[must_use]
    pub const fn is_reset(self) -> bool {
        matches!(self, Self::M(1) | Self::Ar(8) | Self::ArType(0))
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

/// Embedded Trace Macrocell Architecture (IHI 0064), exception types of A and R profile; 0x18 is ETE's.
const fn ar_type_name(number: u16) -> Option<&'static str> {
    Some(match number {
        0 => "PE reset",
        1 => "Debug halt",
        2 => "Call",
        3 => "Trap",
        4 => "System error",
        6 => "Instruction debug",
        7 => "Data debug",
        10 => "Alignment",
        11 => "Instruction fault",
        12 => "Data fault",
        14 => "IRQ",
        15 => "FIQ",
        0x18 => "Transaction failure",
        _ => return None,
    })
}

/// IHI 0064, exception types of M profile beyond those that have a number of the architecture.
const fn m_type_name(number: u16) -> Option<&'static str> {
    Some(match number {
        24 => "Debug halt",
        25 => "Lazy floating-point push",
        26 => "Lockup",
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
    fn exceptions_print_the_name_or_the_number() {
        assert_eq!(Exception::M(15).to_string(), "SysTick");
        assert_eq!(Exception::M(16 + 37).to_string(), "IRQ37");
        assert_eq!(Exception::Ar(14).to_string(), "IRQ");
        assert_eq!(Exception::Ar(7).to_string(), "reserved exception 7");
        assert_eq!(Exception::ArType(14).to_string(), "IRQ");
        assert_eq!(Exception::ArType(5).to_string(), "reserved exception 5");
        assert_eq!(Exception::MType(26).to_string(), "Lockup");
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

    #[test]
    fn types_of_etmv4_have_the_names_of_their_profile() {
        let ar = [
            (0, "PE reset"),
            (1, "Debug halt"),
            (2, "Call"),
            (3, "Trap"),
            (4, "System error"),
            (6, "Instruction debug"),
            (7, "Data debug"),
            (10, "Alignment"),
            (11, "Instruction fault"),
            (12, "Data fault"),
            (14, "IRQ"),
            (15, "FIQ"),
            (0x18, "Transaction failure"),
        ];
        let named = |profile, number| Some((number, Exception::from_type(profile, number).name()?));
        assert!((0..0x400).filter_map(|number| named(Profile::Ar, number)).eq(ar));
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
            (24, "Debug halt"),
            (25, "Lazy floating-point push"),
            (26, "Lockup"),
        ];
        assert!((0..0x400).filter_map(|number| named(Profile::M, number)).eq(m));
    }

    #[test]
    fn interrupts_keep_their_number_in_every_type() {
        let interrupt = |number| Exception::from_type(Profile::M, number).external_interrupt();
        assert_eq!([16, 23, 0x208, 0x3ef].map(interrupt), [Some(0), Some(7), Some(8), Some(0x1ef)]);
        assert_eq!([24, 0x200, 0x207, 0x3f0].map(interrupt), [None; 4]);
    }

    #[test]
    fn every_type_comes_back_and_knows_its_profile() {
        for profile in [Profile::M, Profile::Ar] {
            for number in 0..0x400 {
                let exception = Exception::from_type(profile, number);
                assert_eq!((exception.to_type(), exception.profile()), (Some(number), profile));
            }
        }
        assert_eq!((Exception::Ar(14).to_type(), Exception::M(0).to_type()), (None, None));
        assert_eq!((Exception::Ar(14).profile(), Exception::M(14).profile()), (Profile::Ar, Profile::M));
    }

    #[test]
    fn numbering_and_number_name_an_exception() {
        for exception in [Exception::M(300), Exception::Ar(14), Exception::ArType(0x18), Exception::MType(24)]
        {
            assert_eq!(Exception::numbered(exception.numbering(), exception.number()), Some(exception));
        }
        assert_eq!((Exception::numbered("ar", 256), Exception::numbered("r", 1)), (None, None));
    }

    #[test]
    fn calls_and_faults_are_an_instructions_doing_in_each_numbering() {
        for exception in [Exception::M(11), Exception::Ar(10), Exception::ArType(2), Exception::ArType(11)] {
            assert!(exception.is_synchronous(), "{exception}");
        }
        for exception in [Exception::M(15), Exception::Ar(14), Exception::ArType(14), Exception::MType(24)] {
            assert!(!exception.is_synchronous(), "{exception}");
        }
    }

    #[test]
    fn resets_and_debug_entries_are_known_in_each_numbering() {
        let resets = [Exception::M(1), Exception::Ar(8), Exception::ArType(0)];
        let entries = [Exception::Ar(1), Exception::ArType(1), Exception::MType(24)];
        assert!(resets.iter().all(|exception| exception.is_reset() && !exception.is_debug_entry()));
        assert!(entries.iter().all(|exception| exception.is_debug_entry() && !exception.is_reset()));
    }
}
