//! The MTB's registers → named fields (CoreSight MTB-M0+ TRM, DDI 0486B, 3.2).

use crate::ids::Address;

/// POSITION bit 2: the pointer has gone round.
const POSITION_WRAP: u32 = 0b100;
/// POSITION bits 1:0 are reserved; POINTER is what stands above WRAP.
const POSITION_POINTER: u32 = !0b111;
/// MASTER bit 31: packets are written.
const MASTER_EN: u32 = 1 << 31;
/// MASTER bit 9: asks the processor to halt.
const MASTER_HALTREQ: u32 = 1 << 9;
/// MASTER bit 6: TSTOP ends tracing.
const MASTER_TSTOPEN: u32 = 1 << 6;
/// MASTER bit 5: TSTART begins tracing.
const MASTER_TSTARTEN: u32 = 1 << 5;
/// MASTER bits 4:0.
const MASTER_MASK: u32 = 0b1_1111;
/// FLOW bits 31:3.
const FLOW_WATERMARK: u32 = !0b111;
/// FLOW bit 1: the watermark halts the processor.
const FLOW_AUTOHALT: u32 = 0b10;
/// FLOW bit 0: the watermark ends tracing.
const FLOW_AUTOSTOP: u32 = 0b1;

/// The registers as they were read from the chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Registers {
    /// POSITION, offset 0x0.
    pub position: u32,
    /// MASTER, offset 0x4.
    pub master: u32,
    /// FLOW, offset 0x8; `None` where it was not read.
    pub flow: Option<u32>,
    /// BASE, offset 0xC; `None` where it was not read. LPC8xx does not have it and reads it as 0.
    pub base: Option<u32>,
}

/// What the registers mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    /// Where the next packet would be written: the low bits of its address on the bus.
    pub pointer: u32,
    /// Whether the pointer has gone round, so that all of the buffer was written. Stays set when tracing is restarted.
    pub wrapped: bool,
    /// How large the buffer is. May be larger than the memory, which then limits it.
    pub size: BufferSize,
    /// Whether packets were written when the registers were read.
    pub enabled: bool,
    /// Whether the processor is asked to halt.
    pub halt_request: bool,
    /// Whether the signal TSTOP ends tracing.
    pub stops_by_signal: bool,
    /// Whether the signal TSTART begins tracing.
    pub starts_by_signal: bool,
    /// What happens where the pointer comes to the watermark; `None` where FLOW was not read.
    pub watermark: Option<Watermark>,
    /// Where the MTB's memory starts on the bus; `None` where it is not known.
    pub base: Option<Address>,
    /// How many low bits of an address the pointer holds (the MTB's parameter AWIDTH, 15 on Kinetis L). Fixed when the
    /// chip was made, and in no register; `None` where it is not known, which seldom matters.
    pub pointer_bits: Option<u8>,
}

/// What happens where the pointer comes to a chosen place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Watermark {
    /// The place, in the pointer's terms.
    pub pointer: u32,
    /// The processor halts there.
    pub halts: bool,
    /// Tracing ends there.
    pub stops: bool,
}

impl Config {
    /// Names the registers' fields.
    #[must_use]
    pub const fn from_registers(registers: Registers) -> Self {
        let Registers { position, master, flow, base } = registers;
        Self {
            pointer: position & POSITION_POINTER,
            wrapped: position & POSITION_WRAP != 0,
            size: BufferSize(master & MASTER_MASK),
            enabled: master & MASTER_EN != 0,
            halt_request: master & MASTER_HALTREQ != 0,
            stops_by_signal: master & MASTER_TSTOPEN != 0,
            starts_by_signal: master & MASTER_TSTARTEN != 0,
            watermark: match flow {
                Some(flow) => Some(Watermark {
                    pointer: flow & FLOW_WATERMARK,
                    halts: flow & FLOW_AUTOHALT != 0,
                    stops: flow & FLOW_AUTOSTOP != 0,
                }),
                None => None,
            },
            // The memory never lies at 0, where the vector table has its place at reset.
            base: match base {
                Some(0) | None => None,
                Some(base) => Some(Address::new(base as u64)),
            },
            pointer_bits: None,
        }
    }

    /// The registers that say this.
    #[must_use]
    pub const fn to_registers(&self) -> Registers {
        let mut master = self.size.0;
        master |= if self.enabled { MASTER_EN } else { 0 };
        master |= if self.halt_request { MASTER_HALTREQ } else { 0 };
        master |= if self.stops_by_signal { MASTER_TSTOPEN } else { 0 };
        master |= if self.starts_by_signal { MASTER_TSTARTEN } else { 0 };
        Registers {
            position: self.pointer & POSITION_POINTER | if self.wrapped { POSITION_WRAP } else { 0 },
            master,
            flow: match self.watermark {
                Some(Watermark { pointer, halts, stops }) => Some(
                    pointer & FLOW_WATERMARK
                        | if halts { FLOW_AUTOHALT } else { 0 }
                        | if stops { FLOW_AUTOSTOP } else { 0 },
                ),
                None => None,
            },
            base: match self.base {
                Some(base) => Some(base.low_word()),
                None => None,
            },
        }
    }
}

/// The size of a buffer: a power of two, 16 bytes up to 32 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufferSize(
    /// MASK, at most 31.
    u32,
);

impl BufferSize {
    /// The size of this many bytes, or `None` where there is no such buffer.
    #[must_use]
    pub const fn new(bytes: u64) -> Option<Self> {
        match bytes.trailing_zeros() {
            exponent @ 4..=35 if bytes.is_power_of_two() => Some(Self(exponent - 4)),
            _ => None,
        }
    }

    /// In bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        16 << self.0
    }
}
