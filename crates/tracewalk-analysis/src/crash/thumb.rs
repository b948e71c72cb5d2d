//! What a Thumb instruction does to the core registers, and to what memory (ARMv7-M Architecture Reference Manual,
//! DDI 0403E, A5.2 and A5.3).
//!
//! What is not described here in full is [opaque](Effect::opaque), so that nothing is concluded from it. Flags are not
//! followed.

/// The stack pointer, the link register and the program counter.
pub(super) const SP: u8 = 13;
pub(super) const LR: u8 = 14;
pub(super) const PC: u8 = 15;

/// Instead of a core register, in a transfer of a floating-point register, whose value is not followed: no instruction stores
/// the program counter, and none that loads this one branches.
const FLOATING: u8 = PC;

/// What an instruction does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Effect {
    /// The registers that it writes, apart from the program counter. Operands have their values from before it.
    pub(super) writes: Vec<(u8, Source)>,
    /// What it loads.
    pub(super) loads: Vec<Transfer>,
    /// What it stores.
    pub(super) stores: Vec<Transfer>,
    /// The register that it branches to.
    pub(super) branches_to: Option<u8>,
    /// The register that it divides by.
    pub(super) divides_by: Option<u8>,
    /// Whether it may write any register and any memory.
    pub(super) opaque: bool,
}

/// The value of a written register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Constant(u32),
    /// A register's value, operated on.
    Computed(Operation, u8, Operand),
    /// What the load of this number loaded.
    Loaded(usize),
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Add,
    Subtract,
    /// The operand minus the register.
    ReverseSubtract,
    And,
    Or,
    ExclusiveOr,
    BitClear,
    ShiftLeft,
    ShiftRight,
    Multiply,
    /// The upper half of a constant, and the register's lower half (MOVT).
    Top,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    Constant(u32),
    /// A register, shifted left.
    Register(u8, u8),
}

/// A load or store of one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Transfer {
    pub(super) base: Base,
    pub(super) offset: Operand,
    pub(super) bytes: u8,
    /// The register that is loaded or stored. The program counter for a load that branches.
    pub(super) register: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    Register(u8),
    /// The program counter, aligned: a literal.
    Constant(u32),
}

impl Operation {
    pub(super) const fn of(self, left: u32, right: u32) -> u32 {
        match self {
            Self::Add => left.wrapping_add(right),
            Self::Subtract => left.wrapping_sub(right),
            Self::ReverseSubtract => right.wrapping_sub(left),
            Self::And => left & right,
            Self::Or => left | right,
            Self::ExclusiveOr => left ^ right,
            Self::BitClear => left & !right,
            Self::ShiftLeft => {
                if right < 32 {
                    left << right
                } else {
                    0
                }
            }
            Self::ShiftRight => {
                if right < 32 {
                    left >> right
                } else {
                    0
                }
            }
            Self::Multiply => left.wrapping_mul(right),
            Self::Top => left & 0xffff | right << 16,
        }
    }
}

impl Effect {
    /// Of the instruction at `at`, whose bytes `code` begins with.
    pub(super) fn of(at: u32, code: &[u8]) -> Self {
        let half = |offset: usize| {
            let bytes = code.get(offset..)?.first_chunk()?;
            Some(u32::from(u16::from_le_bytes(*bytes)))
        };
        match (half(0), half(2)) {
            (Some(first), Some(second)) if first >> 11 >= 0b11101 => wide(at, first, second),
            (Some(first), _) if first >> 11 < 0b11101 => narrow(at, first),
            _ => Self::opaque(),
        }
    }

    pub(super) fn opaque() -> Self {
        Self { opaque: true, ..Self::default() }
    }

    fn write(register: u8, source: Source) -> Self {
        if register == PC {
            return Self::opaque();
        }
        Self { writes: vec![(register, source)], ..Self::default() }
    }

    fn branch(register: u8, links_to: Option<u32>) -> Self {
        let writes = links_to.map(|to| (LR, Source::Constant(to | 1))).into_iter().collect();
        Self { branches_to: Some(register), writes, ..Self::default() }
    }

    /// A load or store of one register, or of two.
    fn transfer(load: bool, transfers: &[Transfer]) -> Self {
        let transfers = transfers.to_vec();
        if !load {
            return Self { stores: transfers, ..Self::default() };
        }
        let loaded = transfers.iter().enumerate().filter(|(_, transfer)| transfer.register != PC);
        let value = |(index, transfer): (usize, &Transfer)| {
            // A part of a register is extended in one of two ways.
            let source = if transfer.bytes == 4 { Source::Loaded(index) } else { Source::Unknown };
            (transfer.register, source)
        };
        Self { writes: loaded.map(value).collect(), loads: transfers, ..Self::default() }
    }

    /// The same, with this added to the base register.
    fn writing_back(mut self, register: u8, by: u32) -> Self {
        if !self.writes.iter().any(|(written, _)| *written == register) {
            let sum = Source::Computed(Operation::Add, register, Operand::Constant(by));
            self.writes.push((register, sum));
        }
        self
    }

    /// LDM and STM, upwards from `register` plus `from`.
    fn multiple(load: bool, register: u8, list: u32, from: u32) -> Self {
        let registers = (0..16_u8).filter(|number| list >> number & 1 == 1);
        let transfers = (0_u32..).zip(registers).map(|(index, number)| Transfer {
            base: Base::Register(register),
            offset: Operand::Constant(from.wrapping_add(4 * index)),
            bytes: 4,
            register: number,
        });
        Self::transfer(load, &transfers.collect::<Vec<_>>())
    }
}

/// Bits `from` and up, so many of them.
const fn field(word: u32, from: u32, bits: u32) -> u32 {
    word >> from & ((1 << bits) - 1)
}

/// A register's number.
#[allow(clippy::cast_possible_truncation, reason = "four bits")]
const fn register(word: u32, from: u32) -> u8 {
    field(word, from, 4) as u8
}

#[allow(clippy::cast_possible_truncation, reason = "three bits")]
const fn low(word: u32, from: u32) -> u8 {
    field(word, from, 3) as u8
}

/// Table A5-1: instructions of 16 bits.
fn narrow(at: u32, code: u32) -> Effect {
    use Operation::{Add, ShiftLeft, ShiftRight, Subtract};
    let computed =
        |to, operation, from, operand| Effect::write(to, Source::Computed(operation, from, operand));
    let literal = at.wrapping_add(4) & !3;
    let relative = |base, offset, bytes, load, to| {
        Effect::transfer(load, &[Transfer { base, offset, bytes, register: to }])
    };
    match code >> 11 {
        0b00000 if field(code, 6, 5) == 0 => computed(low(code, 0), Add, low(code, 3), Operand::Constant(0)),
        0b00000 => computed(low(code, 0), ShiftLeft, low(code, 3), Operand::Constant(field(code, 6, 5))),
        0b00001 if field(code, 6, 5) != 0 => {
            computed(low(code, 0), ShiftRight, low(code, 3), Operand::Constant(field(code, 6, 5)))
        }
        0b00001 | 0b00010 => Effect::write(low(code, 0), Source::Unknown),
        0b00011 => {
            let operation = if field(code, 9, 1) == 0 { Add } else { Subtract };
            let operand = match field(code, 10, 1) {
                0 => Operand::Register(low(code, 6), 0),
                _ => Operand::Constant(field(code, 6, 3)),
            };
            computed(low(code, 0), operation, low(code, 3), operand)
        }
        0b00100 => Effect::write(low(code, 8), Source::Constant(code & 0xff)),
        0b00101 => Effect::default(),
        0b00110 => computed(low(code, 8), Add, low(code, 8), Operand::Constant(code & 0xff)),
        0b00111 => computed(low(code, 8), Subtract, low(code, 8), Operand::Constant(code & 0xff)),
        0b01000 if field(code, 10, 1) == 0 => data_processing(code),
        0b01000 => special(at, code),
        0b01001 => {
            relative(Base::Constant(literal), Operand::Constant(4 * (code & 0xff)), 4, true, low(code, 8))
        }
        0b01010 | 0b01011 => {
            let (load, bytes) = match field(code, 9, 3) {
                0 => (false, 4),
                1 => (false, 2),
                2 => (false, 1),
                4 => (true, 4),
                5 | 7 => (true, 2),
                _ => (true, 1),
            };
            let offset = Operand::Register(low(code, 6), 0);
            relative(Base::Register(low(code, 3)), offset, bytes, load, low(code, 0))
        }
        0b01100..=0b10001 => {
            let bytes = match code >> 12 {
                0b0110 => 4_u8,
                0b0111 => 1,
                _ => 2,
            };
            let offset = Operand::Constant(field(code, 6, 5) * u32::from(bytes));
            relative(Base::Register(low(code, 3)), offset, bytes, field(code, 11, 1) == 1, low(code, 0))
        }
        0b10010 | 0b10011 => {
            let offset = Operand::Constant(4 * (code & 0xff));
            relative(Base::Register(SP), offset, 4, field(code, 11, 1) == 1, low(code, 8))
        }
        0b10100 => Effect::write(low(code, 8), Source::Constant(literal.wrapping_add(4 * (code & 0xff)))),
        0b10101 => computed(low(code, 8), Add, SP, Operand::Constant(4 * (code & 0xff))),
        0b10110 | 0b10111 => miscellaneous(code),
        0b11000 | 0b11001 => {
            let load = field(code, 11, 1) == 1;
            let (base, list) = (low(code, 8), code & 0xff);
            Effect::multiple(load, base, list, 0).writing_back(base, 4 * list.count_ones())
        }
        // Branches whose targets stand in them, UDF and SVC.
        _ => Effect::default(),
    }
}

/// A5.2.2.
fn data_processing(code: u32) -> Effect {
    let (to, from) = (low(code, 0), low(code, 3));
    let operation = match field(code, 6, 4) {
        0b0000 => Operation::And,
        0b0001 => Operation::ExclusiveOr,
        0b1000 | 0b1010 | 0b1011 => return Effect::default(),
        0b1001 => {
            let negated = Source::Computed(Operation::ReverseSubtract, from, Operand::Constant(0));
            return Effect::write(to, negated);
        }
        0b1100 => Operation::Or,
        0b1101 => Operation::Multiply,
        0b1110 => Operation::BitClear,
        _ => return Effect::write(to, Source::Unknown),
    };
    Effect::write(to, Source::Computed(operation, to, Operand::Register(from, 0)))
}

/// A5.2.3: high registers, BX and BLX.
fn special(at: u32, code: u32) -> Effect {
    let (to, from) = (low(code, 0) | u8::from(field(code, 7, 1) == 1) << 3, register(code, 3));
    match field(code, 8, 2) {
        0b00 => Effect::write(to, Source::Computed(Operation::Add, to, Operand::Register(from, 0))),
        0b01 => Effect::default(),
        0b10 if to == PC => Effect::branch(from, None),
        0b10 => Effect::write(to, Source::Computed(Operation::Add, from, Operand::Constant(0))),
        _ => Effect::branch(from, (field(code, 7, 1) == 1).then_some(at.wrapping_add(2))),
    }
}

/// A5.2.5.
fn miscellaneous(code: u32) -> Effect {
    let stack = |by: u32| Effect::default().writing_back(SP, by);
    match field(code, 5, 7) {
        0b000_0000..=0b000_0011 => stack(4 * (code & 0x7f)),
        0b000_0100..=0b000_0111 => stack((4 * (code & 0x7f)).wrapping_neg()),
        // Extensions and reversals.
        0b001_0000..=0b001_0111 | 0b101_0000..=0b101_0111 => Effect::write(low(code, 0), Source::Unknown),
        0b010_0000..=0b010_1111 => {
            let list = code & 0xff | field(code, 8, 1) << 14;
            let by = (4 * list.count_ones()).wrapping_neg();
            Effect::multiple(false, SP, list, by).writing_back(SP, by)
        }
        0b110_0000..=0b110_1111 => {
            let list = code & 0xff | field(code, 8, 1) << 15;
            Effect::multiple(true, SP, list, 0).writing_back(SP, 4 * list.count_ones())
        }
        // CBZ, CBNZ, CPS, BKPT, IT and hints.
        _ => Effect::default(),
    }
}

/// Table A5-9: instructions of 32 bits.
fn wide(at: u32, first: u32, second: u32) -> Effect {
    let (base, to) = (register(first, 0), register(second, 8));
    match first {
        _ if first & 0xfe40 == 0xe800 => {
            let (load, back) = (field(first, 4, 1) == 1, field(first, 5, 1) == 1);
            let bytes = 4 * second.count_ones();
            let (from, by) = match field(first, 7, 2) {
                0b01 => (0, bytes),
                0b10 => (bytes.wrapping_neg(), bytes.wrapping_neg()),
                _ => return Effect::opaque(),
            };
            let effect = Effect::multiple(load, base, second, from);
            if back { effect.writing_back(base, by) } else { effect }
        }
        _ if first & 0xfe40 == 0xe840 => double(at, first, second),
        _ if first & 0xfe00 == 0xec00 && second & 0x0e00 == 0x0a00 => floating_transfer(at, first, second),
        _ if first & 0xff00 == 0xee00 && second & 0x0e00 == 0x0a00 => {
            // VMOV and VMRS to a core register; VMRS to the flags. Everything else stays among the other registers.
            let to_core = first & 0x10 != 0 && second & 0x10 != 0 && register(second, 12) != PC;
            if to_core { Effect::write(register(second, 12), Source::Unknown) } else { Effect::default() }
        }
        _ if first & 0xfe00 == 0xea00 => {
            let amount = field(second, 12, 3) << 2 | field(second, 6, 2);
            let operand = match field(second, 4, 2) {
                0 => u8::try_from(amount).ok().map(|amount| Operand::Register(register(second, 0), amount)),
                _ => None,
            };
            arithmetic(first, to, operand)
        }
        _ if first & 0xf800 == 0xf000 && second & 0x8000 != 0 => control(at, first, second),
        _ if first & 0xfa00 == 0xf000 => {
            let constant = expanded(field(first, 10, 1) << 11 | field(second, 12, 3) << 8 | second & 0xff);
            arithmetic(first, to, Some(Operand::Constant(constant)))
        }
        _ if first & 0xfa00 == 0xf200 => plain_constant(at, first, second),
        _ if first & 0xfe00 == 0xf800 => single(at, first, second),
        _ if first & 0xff00 == 0xfa00 => Effect::write(to, Source::Unknown),
        _ if first & 0xfff0 == 0xfb00 && second & 0xf0f0 == 0xf000 => {
            let operand = Operand::Register(register(second, 0), 0);
            Effect::write(to, Source::Computed(Operation::Multiply, base, operand))
        }
        _ if first & 0xff80 == 0xfb00 => Effect::write(to, Source::Unknown),
        _ if first & 0xffd0 == 0xfb90 && second & 0xf0 == 0xf0 => {
            Effect { divides_by: Some(register(second, 0)), ..Effect::write(to, Source::Unknown) }
        }
        _ if first & 0xff80 == 0xfb80 => {
            let writes = vec![(register(second, 12), Source::Unknown), (to, Source::Unknown)];
            Effect { writes, ..Effect::default() }
        }
        _ => Effect::opaque(),
    }
}

/// A6.6 and A6.7: VLDR, VLDM, VPOP and their stores; VMOV of two core registers.
fn floating_transfer(at: u32, first: u32, second: u32) -> Effect {
    let (base, words) = (register(first, 0), second & 0xff);
    let (load, back, up) = (field(first, 4, 1) == 1, field(first, 5, 1) == 1, field(first, 7, 1) == 1);
    let (before, is_double) = (field(first, 8, 1) == 1, field(second, 8, 1) == 1);
    let bytes = 4 * words;
    let of = |place, from: u32, words: u32| {
        let transfers = (0..words).map(|index| Transfer {
            base: place,
            offset: Operand::Constant(from.wrapping_add(4 * index)),
            bytes: 4,
            register: FLOATING,
        });
        let transfers = transfers.collect::<Vec<_>>();
        if load {
            Effect { loads: transfers, ..Effect::default() }
        } else {
            Effect { stores: transfers, ..Effect::default() }
        }
    };
    match (before, up, back) {
        (true, _, false) => {
            let place =
                if base == PC { Base::Constant(at.wrapping_add(4) & !3) } else { Base::Register(base) };
            of(place, if up { bytes } else { bytes.wrapping_neg() }, if is_double { 2 } else { 1 })
        }
        (false, false, false) if first & 0x40 != 0 => {
            let registers = if load { vec![register(second, 12), base] } else { Vec::new() };
            let writes = registers.into_iter().map(|register| (register, Source::Unknown)).collect();
            Effect { writes, ..Effect::default() }
        }
        // FLDMX and FSTMX have an odd number of words.
        _ if words > 32 || base == PC || (is_double && words % 2 == 1) => Effect::opaque(),
        (false, true, false) => of(Base::Register(base), 0, words),
        (false, true, true) => of(Base::Register(base), 0, words).writing_back(base, bytes),
        (true, false, true) => {
            let down = bytes.wrapping_neg();
            of(Base::Register(base), down, words).writing_back(base, down)
        }
        _ => Effect::opaque(),
    }
}

/// A5.3.6: LDRD and STRD, TBB and TBH.
fn double(at: u32, first: u32, second: u32) -> Effect {
    let base = register(first, 0);
    if first & 0x0120 == 0 {
        let is_table_branch = first & 0xfff0 == 0xe8d0 && second & 0xffe0 == 0xf000;
        return if is_table_branch { Effect::default() } else { Effect::opaque() };
    }
    let offset = 4 * (second & 0xff);
    let offset = if field(first, 7, 1) == 1 { offset } else { offset.wrapping_neg() };
    let from = if field(first, 8, 1) == 1 { offset } else { 0 };
    let load = field(first, 4, 1) == 1;
    let place = if base == PC { Base::Constant(at.wrapping_add(4) & !3) } else { Base::Register(base) };
    let transfer = |by: u32, register| Transfer {
        base: place,
        offset: Operand::Constant(from.wrapping_add(by)),
        bytes: 4,
        register,
    };
    let effect =
        Effect::transfer(load, &[transfer(0, register(second, 12)), transfer(4, register(second, 8))]);
    if field(first, 5, 1) == 1 { effect.writing_back(base, offset) } else { effect }
}

/// A5.3.1 and A5.3.11: arithmetic with a second operand, if that is known.
fn arithmetic(first: u32, to: u8, operand: Option<Operand>) -> Effect {
    let (from, flags) = (register(first, 0), field(first, 4, 1) == 1);
    let only_flags = to == PC && flags;
    let Some(operand) = operand else {
        return if only_flags { Effect::default() } else { Effect::write(to, Source::Unknown) };
    };
    let moved = match operand {
        Operand::Constant(value) => Source::Constant(value),
        Operand::Register(register, shift) => {
            Source::Computed(Operation::ShiftLeft, register, Operand::Constant(shift.into()))
        }
    };
    let operation = match field(first, 5, 4) {
        _ if only_flags => return Effect::default(),
        0b0000 => Operation::And,
        0b0001 => Operation::BitClear,
        0b0010 if from == PC => return Effect::write(to, moved),
        0b0010 => Operation::Or,
        0b0100 => Operation::ExclusiveOr,
        0b1000 => Operation::Add,
        0b1101 => Operation::Subtract,
        0b1110 => Operation::ReverseSubtract,
        _ => return Effect::write(to, Source::Unknown),
    };
    Effect::write(to, Source::Computed(operation, from, operand))
}

/// A5.3.2, ThumbExpandImm.
const fn expanded(constant: u32) -> u32 {
    let byte = constant & 0xff;
    match constant >> 8 {
        0b0000 => byte,
        0b0001 => byte << 16 | byte,
        0b0010 => byte << 24 | byte << 8,
        0b0011 => byte << 24 | byte << 16 | byte << 8 | byte,
        _ => (0x80 | constant & 0x7f).rotate_right(constant >> 7),
    }
}

/// A5.3.3.
fn plain_constant(at: u32, first: u32, second: u32) -> Effect {
    let (from, to) = (register(first, 0), register(second, 8));
    let short = field(first, 10, 1) << 11 | field(second, 12, 3) << 8 | second & 0xff;
    let long = u32::from(from) << 12 | short;
    let here = at.wrapping_add(4) & !3;
    let source = match field(first, 4, 5) {
        0b00000 if from == PC => Source::Constant(here.wrapping_add(short)),
        0b00000 => Source::Computed(Operation::Add, from, Operand::Constant(short)),
        0b00100 => Source::Constant(long),
        0b01010 if from == PC => Source::Constant(here.wrapping_sub(short)),
        0b01010 => Source::Computed(Operation::Subtract, from, Operand::Constant(short)),
        0b01100 => Source::Computed(Operation::Top, to, Operand::Constant(long)),
        _ => Source::Unknown,
    };
    Effect::write(to, source)
}

/// A5.3.4: branches, and access to special registers.
fn control(at: u32, first: u32, second: u32) -> Effect {
    if second & 0xd000 == 0xd000 {
        return Effect { writes: vec![(LR, Source::Constant(at.wrapping_add(4) | 1))], ..Effect::default() };
    }
    if second & 0x5000 != 0 {
        return Effect::default();
    }
    match first {
        // MSR may write the stack pointer.
        _ if first & 0xffe0 == 0xf380 => Effect::write(SP, Source::Unknown),
        _ if first & 0xffe0 == 0xf3e0 => Effect::write(register(second, 8), Source::Unknown),
        _ => Effect::default(),
    }
}

/// A5.3.7 to A5.3.10: loads and stores of one register.
fn single(at: u32, first: u32, second: u32) -> Effect {
    let (base, to) = (register(first, 0), register(second, 12));
    let load = field(first, 4, 1) == 1;
    let bytes = match field(first, 5, 2) {
        0 => 1,
        1 => 2,
        2 => 4,
        _ => return Effect::opaque(),
    };
    // Hints to preload.
    if to == PC && load && bytes < 4 {
        return Effect::default();
    }
    let of = |place, offset| Effect::transfer(load, &[Transfer { base: place, offset, bytes, register: to }]);
    let signed = |up: bool, offset: u32| if up { offset } else { offset.wrapping_neg() };
    let place = Base::Register(base);
    if base == PC {
        let offset = signed(field(first, 7, 1) == 1, second & 0xfff);
        return of(Base::Constant(at.wrapping_add(4) & !3), Operand::Constant(offset));
    }
    if field(first, 7, 1) == 1 {
        return of(place, Operand::Constant(second & 0xfff));
    }
    if second & 0x0fc0 == 0 {
        let shift = u8::try_from(field(second, 4, 2)).unwrap_or_default();
        return of(place, Operand::Register(register(second, 0), shift));
    }
    if second & 0x0800 == 0 {
        return Effect::opaque();
    }
    let offset = signed(field(second, 9, 1) == 1, second & 0xff);
    let before = field(second, 10, 1) == 1;
    let effect = of(place, Operand::Constant(if before { offset } else { 0 }));
    if field(second, 8, 1) == 1 { effect.writing_back(base, offset) } else { effect }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(code: &[u8]) -> Effect {
        Effect::of(0x100, code)
    }

    #[test]
    fn pushes_and_pops_move_the_stack_pointer() {
        // push {r4, lr}; pop {r4, pc}
        let push = effect(&[0x10, 0xb5]);
        assert_eq!(push.stores.iter().map(|store| store.register).collect::<Vec<_>>(), [4, LR]);
        assert_eq!(push.stores[1].offset, Operand::Constant(4_u32.wrapping_neg()));
        let pop = effect(&[0x10, 0xbd]);
        assert_eq!(pop.loads[1].register, PC);
        let sum = |by| (SP, Source::Computed(Operation::Add, SP, Operand::Constant(by)));
        assert_eq!(push.writes, [sum(8_u32.wrapping_neg())]);
        assert_eq!(pop.writes, [(4, Source::Loaded(0)), sum(8)]);
        // push.w {r4, r8, lr}; sub sp, #12
        assert_eq!(effect(&[0x2d, 0xe9, 0x10, 0x41]).writes, [sum(12_u32.wrapping_neg())]);
        assert_eq!(effect(&[0x83, 0xb0]).writes, [sum(12_u32.wrapping_neg())]);
    }

    #[test]
    fn loads_have_their_addresses() {
        // ldr r3, [pc, #28] at 0x100; ldr r3, [r3, #64]; ldr.w r0, [r1, r2, lsl #2]; ldr.w r2, [r4], #-4
        let transfer = |base, offset| Transfer { base, offset, bytes: 4, register: 3 };
        let literal = effect(&[0x07, 0x4b]);
        assert_eq!(literal.loads, [transfer(Base::Constant(0x104), Operand::Constant(28))]);
        assert_eq!(effect(&[0x1b, 0x6c]).loads, [transfer(Base::Register(3), Operand::Constant(64))]);
        let indexed = effect(&[0x51, 0xf8, 0x22, 0x00]);
        assert_eq!(indexed.loads[0].offset, Operand::Register(2, 2));
        let after = effect(&[0x54, 0xf8, 0x04, 0x29]);
        assert_eq!(after.loads[0].offset, Operand::Constant(0));
        assert_eq!(after.writes[1].0, 4);
    }

    #[test]
    fn constants_are_put_together() {
        // movw r0, #0x1234; movt r0, #0x8765; mov.w r1, #0xff00ff00; blx r3; udiv r0, r1, r2
        assert_eq!(effect(&[0x41, 0xf2, 0x34, 0x20]).writes, [(0, Source::Constant(0x1234))]);
        let top = Source::Computed(Operation::Top, 0, Operand::Constant(0x8765));
        assert_eq!(effect(&[0xc8, 0xf2, 0x65, 0x70]).writes, [(0, top)]);
        assert_eq!(Operation::Top.of(0x1234, 0x8765), 0x8765_1234);
        assert_eq!(effect(&[0x4f, 0xf0, 0xff, 0x21]).writes, [(1, Source::Constant(0xff00_ff00))]);
        assert_eq!(effect(&[0x98, 0x47]).branches_to, Some(3));
        assert_eq!(effect(&[0x98, 0x47]).writes, [(LR, Source::Constant(0x103))]);
        assert_eq!(effect(&[0xb1, 0xfb, 0xf2, 0xf0]).divides_by, Some(2));
        // ldc p1, c8, [r2]
        assert!(effect(&[0x92, 0xed, 0x00, 0x81]).opaque);
    }

    /// By the words of an assembler: `arm-none-eabi-objdump -d` of testdata/firmware/crash/float-m4.elf has most of them.
    #[test]
    fn floating_point_keeps_to_its_registers() {
        // vmul.f32 s0, s0, s15; vmov s15, r2; vmrs APSR_nzcv, fpscr
        for code in [[0x20, 0xee, 0x27, 0x0a], [0x07, 0xee, 0x90, 0x2a], [0xf1, 0xee, 0x10, 0xfa]] {
            assert_eq!(effect(&code), Effect::default());
        }
        // vmov r1, s15; vmov r2, r3, d0
        assert_eq!(effect(&[0x17, 0xee, 0x90, 0x1a]).writes, [(1, Source::Unknown)]);
        let both = [(2, Source::Unknown), (3, Source::Unknown)];
        assert_eq!(effect(&[0x53, 0xec, 0x10, 0x2b]).writes, both);
        // vldr s0, [r3, #16]; vstr s0, [r4, #16]
        let load = effect(&[0x93, 0xed, 0x04, 0x0a]);
        assert_eq!((load.loads[0].base, load.loads[0].offset), (Base::Register(3), Operand::Constant(16)));
        assert_eq!((load.loads.len(), load.writes.len()), (1, 0));
        assert_eq!(effect(&[0x84, 0xed, 0x04, 0x0a]).stores[0].base, Base::Register(4));
        // vpush {d8}; vpop {d8}
        let sum = |by| (SP, Source::Computed(Operation::Add, SP, Operand::Constant(by)));
        let push = effect(&[0x2d, 0xed, 0x02, 0x8b]);
        assert_eq!((push.stores.len(), push.stores[0].offset), (2, Operand::Constant(8_u32.wrapping_neg())));
        assert_eq!(push.writes, [sum(8_u32.wrapping_neg())]);
        assert_eq!(effect(&[0xbd, 0xec, 0x02, 0x8b]).writes, [sum(8)]);
    }
}
