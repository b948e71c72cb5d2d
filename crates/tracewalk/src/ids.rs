//! The vocabulary: trace IDs, addresses, instruction sets, contexts and exceptions, each number as a type of its own.
//!
//! A value is validated when it is made, so that no other function has to check it.
//!
//! ```
//! use tracewalk::ids::{Address, Isa, TraceId};
//!
//! assert_eq!(TraceId::new(0x10).map(TraceId::get), Some(0x10));
//! assert_eq!(TraceId::new(0x7d), None); // a trigger of the formatter, not a source
//!
//! let address = Address::new(0x0800_0102);
//! assert_eq!(address.aligned_for(Isa::A32), Address::new(0x0800_0100));
//! assert_eq!(address.offset_from(Address::new(0x0800_0000)), Some(0x102));
//! ```

mod exception;
mod privilege;

use core::fmt;

pub use exception::{Exception, Profile};
pub use privilege::{ExceptionLevel, Privilege, SecurityState};

/// A CoreSight trace source ID (ATID), `0x01..=0x6f`.
///
/// The IDs that the formatter keeps for itself are not trace IDs: 0 is padding, `0x7d` a trigger, the rest above
/// `0x6f` is reserved (CoreSight Architecture Specification, IHI 0029, "Trace source IDs").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(try_from = "u8"))]
pub struct TraceId(u8);

impl TraceId {
    /// The trace ID with this number, or `None` if the number is not a trace source's.
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

#[cfg(feature = "serde")]
impl TryFrom<u8> for TraceId {
    type Error = &'static str;

    fn try_from(number: u8) -> Result<Self, Self::Error> {
        Self::new(number).ok_or("a number that is no trace source's")
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:02x}", self.0)
    }
}

/// A virtual address of a byte in the traced processor's memory: 64 bits wide.
///
/// Bit 0 never carries the instruction set; [`Isa`] does. Addresses have no wrapping arithmetic, because
/// where memory ends depends on the instruction set: see [`Location`].
// Aligned like a word, so that a `Location` takes 12 bytes instead of 16: elements, stacks and blocks are full of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(Rust, packed(4))]
pub struct Address(u64);

impl Address {
    /// The address with this number.
    #[must_use]
    #[inline]
    pub const fn new(address: u64) -> Self {
        Self(address)
    }

    /// The number.
    #[must_use]
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The low 32 bits: all that the protocols of 32-bit processors carry.
    #[must_use]
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the high word is dropped, as the name says")]
    pub const fn low_word(self) -> u32 {
        self.0 as u32
    }

    /// The address `bytes` further on; `None` past the end of memory.
    #[must_use]
    #[inline]
    pub const fn checked_add(self, bytes: u64) -> Option<Self> {
        match self.0.checked_add(bytes) {
            Some(address) => Some(Self(address)),
            None => None,
        }
    }

    /// The number of bytes from `start` to this address; `None` if it lies before `start`.
    #[must_use]
    #[inline]
    pub const fn offset_from(self, start: Self) -> Option<u64> {
        self.0.checked_sub(start.0)
    }

    /// The address rounded down to a multiple of the instruction alignment of `isa`.
    #[must_use]
    #[inline]
    pub const fn aligned_for(self, isa: Isa) -> Self {
        Self(self.0 & !(isa.alignment() as u64 - 1))
    }
}

impl From<u32> for Address {
    #[inline]
    fn from(address: u32) -> Self {
        Self(u64::from(address))
    }
}

/// With 8 digits below 2^32, with 16 from there on.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = if self.0 > u64::from(u32::MAX) { 16 } else { 8 };
        write!(f, "0x{:0digits$x}", self.get())
    }
}

impl fmt::LowerHex for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.get(), f)
    }
}

/// An instruction set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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
    /// The 64-bit instruction set: words, aligned to four bytes.
    A64,
}

impl Isa {
    /// The alignment of this set's instructions in bytes.
    #[must_use]
    #[inline]
    pub const fn alignment(self) -> u32 {
        match self {
            Self::A32 | Self::A64 => 4,
            Self::T32 | Self::T32EE => 2,
            Self::Jazelle => 1,
        }
    }

    /// Whether it is Thumb, with or without ThumbEE: 16- and 32-bit instructions, and IT blocks.
    #[must_use]
    #[inline]
    pub const fn is_thumb(self) -> bool {
        matches!(self, Self::T32 | Self::T32EE)
    }

    /// The last address of this set's memory: arithmetic on addresses wraps there.
    #[must_use]
    #[inline]
    pub const fn last_address(self) -> Address {
        match self {
            Self::A32 | Self::T32 | Self::T32EE | Self::Jazelle => Address(0xffff_ffff),
            Self::A64 => Address(u64::MAX),
        }
    }

    /// Arm's name of the instruction set.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::A32 => "A32",
            Self::T32 => "T32",
            Self::T32EE => "T32EE",
            Self::Jazelle => "Jazelle",
            Self::A64 => "A64",
        }
    }

    /// The word for the instruction set in line formats.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::A32 => "a32",
            Self::T32 => "t32",
            Self::T32EE => "t32ee",
            Self::Jazelle => "jazelle",
            Self::A64 => "a64",
        }
    }

    /// The instruction set with this word; `None` if there is none.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        [Self::A32, Self::T32, Self::T32EE, Self::Jazelle, Self::A64]
            .into_iter()
            .find(|isa| isa.word() == word)
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A place in code: an address and its instruction set.
///
/// Arithmetic wraps at the end of the instruction set's memory, as the processor's does: A64 at 64 bits, all others at 32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Location {
    /// The instruction's address.
    pub address: Address,
    /// The instruction set it is decoded as.
    pub isa: Isa,
}

impl Location {
    /// The location of the `isa` instruction at `address`.
    #[must_use]
    #[inline]
    pub const fn new(address: Address, isa: Isa) -> Self {
        Self { address, isa }
    }

    /// The location `bytes` further on, wrapping.
    #[must_use]
    #[inline]
    pub const fn after(self, bytes: u64) -> Self {
        self.at_wrapped(self.address.0.wrapping_add(bytes))
    }

    /// The location moved by a signed number of bytes, wrapping.
    #[must_use]
    #[inline]
    pub const fn moved(self, bytes: i64) -> Self {
        self.at_wrapped(self.address.0.wrapping_add_signed(bytes))
    }

    /// The number of bytes from `earlier` up to this location, wrapping.
    #[must_use]
    #[inline]
    pub const fn bytes_since(self, earlier: Address) -> u64 {
        self.address.0.wrapping_sub(earlier.0) & self.isa.last_address().0
    }

    /// Whether an instruction can start here: the address is aligned and lies in the instruction set's
    /// memory.
    #[must_use]
    pub const fn is_possible(self) -> bool {
        let address = self.address.0;
        address == self.address.aligned_for(self.isa).0 && address <= self.isa.last_address().0
    }

    const fn at_wrapped(self, address: u64) -> Self {
        Self { address: Address(address & self.isa.last_address().0), isa: self.isa }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.address, self.isa)
    }
}

/// The value of the processor's Context ID register, which an operating system sets by process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ContextId(pub u32);

impl fmt::Display for ContextId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:x}", self.0)
    }
}

/// A virtual machine's number, from the VTTBR register: 8 bits in ETMv3 and PFT, up to 32 in later protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Vmid(pub u32);

impl fmt::Display for Vmid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn addresses_are_written_with_all_their_digits() {
        assert_eq!(Address::new(0x8000).to_string(), "0x00008000");
        assert_eq!(Address::new(0xffff_ffff).to_string(), "0xffffffff");
        assert_eq!(Address::new(0xffff_8000_0008_0000).to_string(), "0xffff800000080000");
        assert_eq!(Address::new(1 << 32).to_string(), "0x0000000100000000");
        assert_eq!(std::format!("{:x}", Address::new(0x8000)), "8000");
    }

    #[test]
    fn trace_ids_are_1_to_0x6f() {
        let valid = (0..=u8::MAX).filter(|&number| TraceId::new(number).is_some());
        assert!(valid.eq(0x01..=0x6f));
    }

    #[test]
    fn locations_wrap_where_the_memory_of_their_instruction_set_ends() {
        for (isa, end) in [
            (Isa::A32, 1 << 32),
            (Isa::T32, 1 << 32),
            (Isa::T32EE, 1 << 32),
            (Isa::Jazelle, 1 << 32),
            (Isa::A64, 1_u128 << 64),
        ] {
            let at = |address: u128| Location::new(Address::new(address.try_into().expect("64 bits")), isa);
            assert_eq!(at(end - 2).after(4), at(2), "{isa}");
            assert_eq!(at(2).bytes_since(at(end - 2).address), 4, "{isa}");
            assert_eq!(at(0).moved(-4), at(end - 4), "{isa}");
            assert_eq!(at(end - 4).moved(8), at(4), "{isa}");
        }
    }

    #[test]
    fn an_instruction_can_stand_where_its_set_aligns_it_and_has_memory() {
        let at = |address, isa| Location::new(Address::new(address), isa);
        assert!(at(0xffff_fffe, Isa::T32).is_possible() && !at(0xffff_fffe, Isa::A32).is_possible());
        assert!(at(1 << 32, Isa::A64).is_possible() && !at(1 << 32, Isa::A32).is_possible());
        assert!(!at(2, Isa::A64).is_possible() && at(3, Isa::Jazelle).is_possible());
    }

    #[test]
    fn addresses_have_no_arithmetic_past_the_end_of_memory() {
        let (last, first) = (Address::new(u64::MAX), Address::new(0));
        assert_eq!((last.checked_add(0), last.checked_add(1)), (Some(last), None));
        assert_eq!((last.offset_from(first), first.offset_from(last)), (Some(u64::MAX), None));
    }
}
