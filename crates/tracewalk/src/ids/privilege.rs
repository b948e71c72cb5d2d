//! The privilege of code: its exception level and security state.

use core::fmt;

/// An exception level. Hyp mode of AArch32 is EL2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum ExceptionLevel {
    /// Applications.
    El0,
    /// Operating systems.
    El1,
    /// Hypervisors.
    El2,
    /// The secure monitor.
    El3,
}

impl ExceptionLevel {
    /// The level with this number; `None` above 3.
    #[must_use]
    pub const fn new(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::El0),
            1 => Some(Self::El1),
            2 => Some(Self::El2),
            3 => Some(Self::El3),
            _ => None,
        }
    }

    /// The number, 0 to 3.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }
}

impl fmt::Display for ExceptionLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EL{}", self.number())
    }
}

/// A security state, each with a physical address space of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum SecurityState {
    /// Secure; the only one of processors without the Security Extension.
    #[default]
    Secure,
    /// Non-secure.
    NonSecure,
    /// Root: EL3 of the Realm Management Extension.
    Root,
    /// Realm, of the Realm Management Extension.
    Realm,
}

impl SecurityState {
    /// A short name for line formats.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Secure => "secure",
            Self::NonSecure => "non_secure",
            Self::Root => "root",
            Self::Realm => "realm",
        }
    }
}

impl fmt::Display for SecurityState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Secure => "Secure",
            Self::NonSecure => "Non-secure",
            Self::Root => "Root",
            Self::Realm => "Realm",
        })
    }
}

/// The privilege with which code runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Privilege {
    /// The exception level; `None` if the trace does not state it. ETMv3 and PFT state EL2 alone, as Hyp mode.
    pub level: Option<ExceptionLevel>,
    /// The security state.
    pub security: SecurityState,
}

impl Privilege {
    /// This security state, at an exception level that the trace does not state.
    #[must_use]
    pub const fn of(security: SecurityState) -> Self {
        Self { level: None, security }
    }

    /// Hyp mode: EL2 in Non-secure state.
    pub const HYPERVISOR: Self =
        Self { level: Some(ExceptionLevel::El2), security: SecurityState::NonSecure };
}

/// `Non-secure`, `EL1, Realm`; Hyp mode is `Non-secure, Hyp`.
impl fmt::Display for Privilege {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (*self, self.level) {
            (Self::HYPERVISOR, _) => f.write_str("Non-secure, Hyp"),
            (_, Some(level)) => write!(f, "{level}, {}", self.security),
            (_, None) => self.security.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn levels_are_0_to_3() {
        let levels = (0..=u8::MAX).filter_map(ExceptionLevel::new);
        assert!(levels.clone().map(ExceptionLevel::number).eq(0..=3));
        assert!(levels.map(|level| level.to_string()).eq(["EL0", "EL1", "EL2", "EL3"]));
    }

    #[test]
    fn privileges_are_written_with_what_the_trace_states() {
        let at = |level, security| Privilege { level, security }.to_string();
        assert_eq!(at(None, SecurityState::Secure), "Secure");
        assert_eq!(at(None, SecurityState::NonSecure), "Non-secure");
        assert_eq!(at(Some(ExceptionLevel::El2), SecurityState::NonSecure), "Non-secure, Hyp");
        assert_eq!(at(Some(ExceptionLevel::El2), SecurityState::Realm), "EL2, Realm");
        assert_eq!(at(Some(ExceptionLevel::El3), SecurityState::Root), "EL3, Root");
        let names =
            [SecurityState::Secure, SecurityState::NonSecure, SecurityState::Root, SecurityState::Realm];
        assert_eq!(names.map(SecurityState::name), ["secure", "non_secure", "root", "realm"]);
    }
}
