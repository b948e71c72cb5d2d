//! The packet: two words (CoreSight MTB-M0+ TRM, DDI 0486B, 2.3.1).

use core::fmt;

use crate::ids::Address;
use crate::protocol::{Describe, Field};

/// The number of bytes in a packet.
pub const PACKET_BYTES: usize = 8;

/// A: bit 0 of the first word.
const ATOMIC: u32 = 0b1;
/// S: bit 0 of the second word.
const START: u32 = 0b1;

/// One non-sequential change of the program counter.
///
/// A packet is stored as the two words of the buffer, so that any eight bytes are a packet and round-trip.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Packet {
    first: u32,
    second: u32,
}

impl Packet {
    /// The packet for a change from `source` to `destination`, with A and S clear. Bit 0 of an address is not kept.
    #[must_use]
    pub const fn new(source: Address, destination: Address) -> Self {
        Self { first: source.low_word() & !ATOMIC, second: destination.low_word() & !START }
    }

    /// The same packet with this A bit.
    #[must_use]
    pub const fn with_atomic(self, atomic: bool) -> Self {
        Self { first: self.first & !ATOMIC | if atomic { ATOMIC } else { 0 }, ..self }
    }

    /// The same packet with this S bit.
    #[must_use]
    pub const fn with_start(self, start: bool) -> Self {
        Self { second: self.second & !START | if start { START } else { 0 }, ..self }
    }

    /// The packet in two words of memory, the one at the lower address first.
    #[must_use]
    pub const fn from_words(first: u32, second: u32) -> Self {
        Self { first, second }
    }

    /// The two words of memory.
    #[must_use]
    pub const fn words(self) -> [u32; 2] {
        [self.first, self.second]
    }

    /// The place at which execution left its sequence: the instruction that branched or, if
    /// [`Packet::atomic`] is set, the address at which execution should resume.
    #[must_use]
    pub const fn source(self) -> Address {
        Address::new((self.first & !ATOMIC) as u64)
    }

    /// The place where execution continued.
    #[must_use]
    pub const fn destination(self) -> Address {
        Address::new((self.second & !START) as u64)
    }

    /// A: the change was made by an exception, a return from one, or a debugger, not by an instruction.
    #[must_use]
    pub const fn atomic(self) -> bool {
        self.first & ATOMIC != 0
    }

    /// S: tracing started here; execution between the previous packet and this one is unknown.
    #[must_use]
    pub const fn start(self) -> bool {
        self.second & START != 0
    }
}

impl Describe for Packet {
    fn name(&self) -> &'static str {
        "mtb"
    }

    fn fields(&self, visit: &mut dyn FnMut(&'static str, Field<'_>)) {
        visit("source", Field::Address(self.source()));
        visit("destination", Field::Address(self.destination()));
        visit("a", Field::Number(self.atomic().into()));
        visit("s", Field::Number(self.start().into()));
    }
}

impl fmt::Debug for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packet")
            .field("source", &format_args!("{}", self.source()))
            .field("destination", &format_args!("{}", self.destination()))
            .field("atomic", &self.atomic())
            .field("start", &self.start())
            .finish()
    }
}

/// A value that the processor puts into the link register instead of an address. Loading the value into the
/// program counter is a command instead of a branch; there is no code at such an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Magic {
    /// Return from an exception.
    ExceptionReturn(ExceptionReturn),
    /// FNC_RETURN: return from Non-secure to Secure code (ARMv8-M Architecture Reference Manual, DDI 0553B).
    FunctionReturn,
}

impl Magic {
    /// The command of loading `address` into the program counter; `None` if `address` is an ordinary address.
    ///
    /// ARMv6-M and ARMv7-M take all of `0xFxxxxxxx` as EXC_RETURN (DDI 0419E, B1.5.8), ARMv8-M `0xFFxxxxxx`
    /// and, as FNC_RETURN, `0xFEFFFFFE` and `0xFEFFFFFF`. None of these architectures can execute code there.
    #[must_use]
    pub const fn at(address: Address) -> Option<Self> {
        match address.get() {
            0xfeff_fffe..=0xfeff_ffff => Some(Self::FunctionReturn),
            // The packet omits bit 0, which is always set.
            0xf000_0000..=0xffff_ffff => Some(Self::ExceptionReturn(ExceptionReturn(address.low_word() | 1))),
            _ => None,
        }
    }
}

/// An EXC_RETURN value.
///
/// The bits are those of ARMv8-M (DDI 0553B). Values of ARMv6-M and ARMv7-M are compatible: bits 5 and 6 are
/// set, and there are no security states.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ExceptionReturn(pub u32);

impl ExceptionReturn {
    const STACKED_SECURE: u32 = 0b100_0000;
    const NO_FLOATING_POINT: u32 = 0b1_0000;
    const THREAD: u32 = 0b1000;
    const PROCESS_STACK: u32 = 0b100;

    /// Whether the return is to Thread mode, not to another handler.
    #[must_use]
    pub const fn to_thread(self) -> bool {
        self.0 & Self::THREAD != 0
    }

    /// Whether the return is to the process stack, not to the main stack.
    #[must_use]
    pub const fn process_stack(self) -> bool {
        self.0 & Self::PROCESS_STACK != 0
    }

    /// Whether floating-point registers were stacked.
    #[must_use]
    pub const fn floating_point(self) -> bool {
        self.0 & Self::NO_FLOATING_POINT == 0
    }

    /// Whether the registers are on the Secure stack. Without meaning before ARMv8-M.
    #[must_use]
    pub const fn secure_stack(self) -> bool {
        self.0 & Self::STACKED_SECURE != 0
    }
}

impl fmt::Debug for ExceptionReturn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExceptionReturn(0x{:08X})", self.0)
    }
}

impl fmt::Display for ExceptionReturn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = if self.to_thread() { "thread" } else { "handler" };
        let stack = if self.process_stack() { "process" } else { "main" };
        write!(f, "0x{:08X} (to {mode} mode, {stack} stack)", self.0)
    }
}
