//! The MTB's registers → named fields (CoreSight MTB-M0+ TRM, DDI 0486B, 3.2).

use crate::ids::Address;

/// POSITION bit 2: the pointer has wrapped.
const POSITION_WRAP: u32 = 0b100;
/// POSITION bits 1:0 are reserved; POINTER is the bits above WRAP.
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
    /// FLOW, offset 0x8; `None` if it was not read.
    pub flow: Option<u32>,
    /// BASE, offset 0xC; `None` if it was not read. LPC8xx does not have it and reads it as 0.
    pub base: Option<u32>,
}

/// The meaning of the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    /// The place of the next packet: the low bits of its address on the bus.
    pub(super) pointer: u32,
    /// Whether the pointer has wrapped, so that all of the buffer was written. Stays set when tracing is restarted.
    pub(super) wrapped: bool,
    /// The size of the buffer. If larger than the memory, the memory is the limit.
    pub(super) size: BufferSize,
    /// Whether packets were written when the registers were read.
    pub(super) enabled: bool,
    /// Whether the processor is asked to halt.
    pub(super) halt_request: bool,
    /// Whether the signal TSTOP ends tracing.
    pub(super) stops_by_signal: bool,
    /// Whether the signal TSTART begins tracing.
    pub(super) starts_by_signal: bool,
    /// The action when the pointer reaches the watermark; `None` if FLOW was not read.
    pub(super) watermark: Option<Watermark>,
    /// The start of the MTB's memory on the bus; `None` if unknown.
    pub(super) base: Option<Address>,
    /// The number of low address bits in the pointer (the MTB's parameter AWIDTH, 15 on Kinetis L). The
    /// number is fixed in each chip, and in no register; `None` if unknown, which seldom matters.
    pub(super) pointer_bits: Option<u8>,
}

/// The action when the pointer reaches a chosen place.
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
            // The memory is never at 0, the place of the vector table at reset.
            base: match base {
                Some(0) | None => None,
                Some(base) => Some(Address::new(base as u64)),
            },
            pointer_bits: None,
        }
    }

    /// The registers with these fields.
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

/// The meaning of the registers, field by field.
impl Config {
    /// An empty buffer of this size, with the pointer at `pointer`; `None` unless `pointer` is a multiple of
    /// 8.
    #[must_use]
    pub const fn new(size: BufferSize, pointer: u32) -> Option<Self> {
        if pointer & !POSITION_POINTER != 0 {
            return None;
        }
        let registers = Registers { position: pointer, master: size.0, flow: None, base: None };
        Some(Self::from_registers(registers))
    }

    /// The same configuration, wrapped or not.
    #[must_use]
    pub const fn with_wrapped(self, wrapped: bool) -> Self {
        Self { wrapped, ..self }
    }

    /// The same configuration, writing packets or not.
    #[must_use]
    pub const fn with_enabled(self, enabled: bool) -> Self {
        Self { enabled, ..self }
    }

    /// The same configuration, asking the processor to halt or not.
    #[must_use]
    pub const fn with_halt_request(self, halt_request: bool) -> Self {
        Self { halt_request, ..self }
    }

    /// The same configuration with this watermark; `None` unless its place is a multiple of 8.
    #[must_use]
    pub const fn with_watermark(self, watermark: Option<Watermark>) -> Option<Self> {
        match watermark {
            Some(Watermark { pointer, .. }) if pointer & !FLOW_WATERMARK != 0 => None,
            _ => Some(Self { watermark, ..self }),
        }
    }

    /// The same configuration with the memory at this address; `None` if BASE cannot hold the address, or if
    /// it is 0, which stands for unknown.
    #[must_use]
    pub const fn with_base(self, base: Address) -> Option<Self> {
        if base.get() == 0 || base.get() > u32::MAX as u64 {
            return None;
        }
        Some(Self { base: Some(base), ..self })
    }

    /// The same configuration with this number of bits in the pointer; `None` unless the number is 4 to 32.
    #[must_use]
    pub const fn with_pointer_bits(self, bits: u8) -> Option<Self> {
        match bits {
            4..=32 => Some(Self { pointer_bits: Some(bits), ..self }),
            _ => None,
        }
    }

    /// The place of the next packet: the low bits of its address on the bus.
    #[must_use]
    pub const fn pointer(&self) -> u32 {
        self.pointer
    }

    /// Whether the pointer has wrapped, so that all of the buffer was written. Stays set when tracing is restarted.
    #[must_use]
    pub const fn wrapped(&self) -> bool {
        self.wrapped
    }

    /// The size of the buffer. If larger than the memory, the memory is the limit.
    #[must_use]
    pub const fn size(&self) -> BufferSize {
        self.size
    }

    /// Whether packets were written when the registers were read.
    #[must_use]
    pub const fn enabled(&self) -> bool {
        self.enabled
    }

    /// Whether the processor is asked to halt.
    #[must_use]
    pub const fn halt_request(&self) -> bool {
        self.halt_request
    }

    /// Whether the signal TSTOP ends tracing.
    #[must_use]
    pub const fn stops_by_signal(&self) -> bool {
        self.stops_by_signal
    }

    /// Whether the signal TSTART begins tracing.
    #[must_use]
    pub const fn starts_by_signal(&self) -> bool {
        self.starts_by_signal
    }

    /// The action when the pointer reaches the watermark; `None` if FLOW was not read.
    #[must_use]
    pub const fn watermark(&self) -> Option<Watermark> {
        self.watermark
    }

    /// The start of the MTB's memory on the bus; `None` if unknown.
    #[must_use]
    pub const fn base(&self) -> Option<Address> {
        self.base
    }

    /// The number of low address bits in the pointer (the MTB's parameter AWIDTH, 15 on Kinetis L). The
    /// number is fixed in each chip, and in no register; `None` if unknown, which seldom matters.
    #[must_use]
    pub const fn pointer_bits(&self) -> Option<u8> {
        self.pointer_bits
    }
}

/// The size of a buffer: a power of two, 16 bytes up to 32 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufferSize(
    /// MASK, at most 31.
    u32,
);

impl BufferSize {
    /// The size of `bytes` bytes; `None` if there is no such buffer.
    #[must_use]
    pub const fn new(bytes: u64) -> Option<Self> {
        match bytes.trailing_zeros() {
            exponent @ 4..=35 if bytes.is_power_of_two() => Some(Self(exponent - 4)),
            _ => None,
        }
    }

    /// The size in bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        16 << self.0
    }
}
