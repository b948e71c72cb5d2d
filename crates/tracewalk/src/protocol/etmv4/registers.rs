//! The registers of a trace unit that decoding depends on.

/// The registers that decoding depends on, by Arm's names. `None` is unknown, not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// TRCCONFIGR, trace configuration.
    pub trcconfigr: Option<u32>,
    /// TRCTRACEIDR, trace ID.
    pub trctraceidr: Option<u32>,
    /// TRCDEVARCH, device architecture: the version of ETE, which TRCIDR1 does not hold.
    pub trcdevarch: Option<u32>,
    /// TRCIDR0: the implemented features.
    pub trcidr0: Option<u32>,
    /// TRCIDR1, the version of ETMv4.
    pub trcidr1: Option<u32>,
    /// TRCIDR2, sizes of fields.
    pub trcidr2: Option<u32>,
    /// TRCIDR8, the greatest speculation depth.
    pub trcidr8: Option<u32>,
    /// TRCIDR12, the number of conditional instruction keys.
    pub trcidr12: Option<u32>,
    /// TRCIDR13, the number of special conditional instruction keys.
    pub trcidr13: Option<u32>,
}

/// Bits `high` to `low` of a register.
pub(super) const fn field(register: u32, high: u32, low: u32) -> u32 {
    (register << (31 - high)) >> (31 - high + low)
}

/// Bit `bit` of a register.
pub(super) const fn is_set(register: u32, bit: u32) -> bool {
    field(register, bit, bit) != 0
}
