//! Encodings of 32 bits (A5.3).

use super::effect::{
    Base, Effect, FLOATING, LR, Operand, Operation, PC, SP, Source, Transfer, field, register,
};

/// Table A5-9: instructions of 32 bits.
pub(super) fn wide(at: u32, first: u32, second: u32) -> Effect {
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
