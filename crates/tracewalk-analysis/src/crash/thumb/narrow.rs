//! Encodings of 16 bits (A5.2).

use super::effect::{Base, Effect, Operand, Operation, PC, SP, Source, Transfer, field, low, register};

/// Table A5-1: instructions of 16 bits.
pub(super) fn narrow(at: u32, code: u32) -> Effect {
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
        // Direct branches, UDF and SVC.
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
