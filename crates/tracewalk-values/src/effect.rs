//! What one instruction reads and writes, apart from the path: where each value and each address comes from.

use crate::bits::Width;
use crate::machine::{Carry, Condition, Flags, Forgotten, Jump, Machine, Register};
use crate::path::Instruction;
use crate::relation::{self, Operation};
use crate::window::Registers;
use crate::{a32, a64, t32};
use tracewalk::ids::Isa;

/// What an instruction does if it is executed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// The registers that it writes, in order, without the program counter.
    pub writes: Vec<(Register, Origin)>,
    /// Its accesses to memory, in the order of [`Proven`](crate::Proven)'s.
    pub accesses: Vec<Transfer>,
    /// The target of a jump that its code does not have.
    pub target: Option<Origin>,
    /// What decides whether it branches, if it is a conditional branch.
    pub decided_by: Option<Origin>,
    /// The divisor of a division.
    pub divisor: Option<Origin>,
    /// What N, Z, C and V come from, each if it changes it.
    pub flags: [Option<Origin>; 4],
    /// It may change any register, the flags and any memory.
    pub is_opaque: bool,
}

/// An access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Whether it is a store.
    pub is_store: bool,
    /// The number of bytes.
    pub bytes: u8,
    /// The address.
    pub address: Origin,
    /// The value that is stored; for a load, what was loaded.
    pub value: Origin,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The value, if it follows from the registers that are known.
    pub value: Option<u64>,
    /// It is this, plus a constant.
    pub is: Option<(Base, u64)>,
    /// The registers before the instruction that it depends on, by their bits.
    pub registers: u32,
    /// The loads of the instruction that it depends on, by their bits in the order of the accesses.
    pub loads: u32,
    /// The flags before the instruction that it depends on: N, Z, C and V by bits 0 to 3.
    pub flags: u8,
    /// Whether it depends on anything else.
    pub on_other: bool,
    width: Width,
}

/// What a value is, up to a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// Zero.
    Zero,
    /// A register before the instruction.
    Register(Register),
    /// What the access of this number loaded.
    Load(usize),
}

impl Origin {
    const fn constant(value: u64, width: Width) -> Self {
        let is = Some((Base::Zero, value));
        Self { value: Some(value), is, registers: 0, loads: 0, flags: 0, on_other: false, width }
    }

    /// Depends on the same, but is something else.
    const fn made_of(self, value: Option<u64>, width: Width) -> Self {
        let is = match value {
            Some(value) if self.is_constant() => Some((Base::Zero, value)),
            _ => None,
        };
        Self { value, is, width, ..self }
    }

    /// Depends on both.
    const fn with(self, other: Self) -> Self {
        Self {
            registers: self.registers | other.registers,
            loads: self.loads | other.loads,
            flags: self.flags | other.flags,
            on_other: self.on_other || other.on_other,
            ..self
        }
    }

    /// Whether it depends on nothing.
    const fn is_constant(self) -> bool {
        self.registers == 0 && self.loads == 0 && self.flags == 0 && !self.on_other
    }

    /// The register whose value it is.
    #[must_use]
    pub const fn copied(self) -> Option<Register> {
        match self.is {
            Some((Base::Register(register), 0)) => Some(register),
            _ => None,
        }
    }

    /// The access of the instruction that loaded it.
    #[must_use]
    pub const fn loaded(self) -> Option<usize> {
        match self.is {
            Some((Base::Load(load), 0)) => Some(load),
            _ => None,
        }
    }

    fn plus(self, by: u64) -> Self {
        let add = |value: u64| value.wrapping_add(by) & self.width.mask();
        Self { value: self.value.map(add), is: self.is.map(|(base, plus)| (base, add(plus))), ..self }
    }
}

impl Effect {
    /// The effect of an instruction, with the registers before it as far as they are known. In an IT block, 16-bit data processing keeps the
    /// flags.
    #[must_use]
    pub fn of(instruction: &Instruction, in_it_block: bool, registers: &Registers) -> Self {
        let width = if instruction.at.isa == Isa::A64 { Width::Double } else { Width::Word };
        let mut reader = Reader { effect: Self::default(), before: *registers, width };
        let (code, address) = (instruction.code, instruction.at.address);
        match instruction.at.isa {
            Isa::T32 | Isa::T32EE => {
                t32::Thumb::of(code, instruction.bytes, address.low_word(), in_it_block).execute(&mut reader);
            }
            Isa::A32 => a32::Arm { code, address: address.low_word() }.execute(&mut reader),
            Isa::A64 => a64::execute(&mut reader, code, address.get()),
            Isa::Jazelle => reader.effect.is_opaque = true,
        }
        reader.effect
    }

    /// What a register is after the instruction, if that writes it.
    #[must_use]
    pub fn written(&self, register: Register) -> Option<Origin> {
        self.writes.iter().rfind(|(written, _)| *written == register).map(|(_, origin)| *origin)
    }

    /// The stores.
    pub fn stores(&self) -> impl DoubleEndedIterator<Item = (usize, &Transfer)> {
        self.accesses.iter().enumerate().filter(|(_, access)| access.is_store)
    }
}

const NEGATIVE: u8 = 1;
const ZERO: u8 = 1 << 1;
const CARRY: u8 = 1 << 2;
const OVERFLOW: u8 = 1 << 3;

/// A machine that notes where values come from.
#[derive(Debug)]
struct Reader {
    effect: Effect,
    before: Registers,
    width: Width,
}

impl Reader {
    fn all_of(&self, origins: &[Origin], value: Option<u64>, width: Width) -> Origin {
        let none = Origin::constant(0, width);
        origins.iter().fold(none, |all, origin| all.with(*origin)).made_of(value, width)
    }
}

impl Machine for Reader {
    type Value = Origin;

    fn constant(&mut self, value: u64, width: Width) -> Origin {
        Origin::constant(value, width)
    }

    fn unknown(&mut self, width: Width) -> Origin {
        Origin { on_other: true, value: None, is: None, ..Origin::constant(0, width) }
    }

    fn operation(&mut self, operation: Operation, width: Width, operands: [Origin; 3]) -> Origin {
        let [a, b, c] = operands;
        if let Operation::Div { .. } = operation {
            self.effect.divisor = Some(b);
        }
        match (operation, a.is, b.is) {
            (Operation::Add, _, Some((Base::Zero, by))) if a.width == width => return a.plus(by),
            (Operation::Add, Some((Base::Zero, by)), _) if b.width == width => return b.plus(by),
            (Operation::Shift(_), _, Some((Base::Zero, 0))) => return a,
            _ => {}
        }
        let values = a.value.zip(b.value).zip(c.value);
        let value = values.map(|((a, b), c)| relation::evaluate(operation, width, a, b, c));
        self.all_of(&operands, value, width)
    }

    fn subtract(&mut self, a: Origin, b: Origin, width: Width) -> Origin {
        if let Some((Base::Zero, by)) = b.is {
            return a.plus(by.wrapping_neg());
        }
        let value = a.value.zip(b.value).map(|(a, b)| a.wrapping_sub(b) & width.mask());
        self.all_of(&[a, b], value, width)
    }

    fn read(&mut self, register: Register) -> Origin {
        // A register that was written by this instruction has that value.
        if let Some(written) = self.effect.written(register) {
            return written;
        }
        Origin {
            value: self.before.get(usize::from(register.0)).copied().flatten(),
            is: Some((Base::Register(register), 0)),
            registers: 1 << register.0,
            ..Origin::constant(0, self.width)
        }
    }

    fn write(&mut self, register: Register, value: Origin) {
        self.effect.writes.push((register, value));
    }

    fn load(&mut self, address: Origin, bytes: u8, width: Width) -> Origin {
        let index = self.effect.accesses.len();
        let loads = u32::try_from(index).ok().and_then(|index| 1_u32.checked_shl(index));
        let value = Origin {
            value: None,
            is: Some((Base::Load(index), 0)),
            loads: loads.unwrap_or_default(),
            // There are no instructions with more loads.
            on_other: loads.is_none(),
            ..Origin::constant(0, width)
        };
        self.effect.accesses.push(Transfer { is_store: false, bytes, address, value });
        value
    }

    fn store(&mut self, address: Origin, bytes: u8, value: Origin) {
        self.effect.accesses.push(Transfer { is_store: true, bytes, address, value });
    }

    fn store_or_not(&mut self, address: Origin, bytes: u8, _: Origin) {
        let value = self.unknown(self.width);
        self.store(address, bytes, value);
    }

    fn set_flags(&mut self, flags: Flags<Origin>) {
        let unknown = self.unknown(Width::Word);
        let all = |origins: &[Origin]| Some(self.all_of(origins, None, Width::Word));
        let same = |origin: Origin| [Some(origin); 4];
        let new = match flags {
            Flags::Sum { result, a, b, carry: third } | Flags::Difference { result, a, b, borrow: third } => {
                let (sign, over) = (all(&[result]), all(&[a, b, third]));
                [sign, sign, over, over]
            }
            Flags::Logic { result, carry } => {
                let result = all(&[result]);
                let carry = match carry {
                    Carry::Unchanged => None,
                    Carry::Known(_) => all(&[]),
                    Carry::Bit(value, _) => all(&[value]),
                    // A shift by 0 keeps the flag.
                    Carry::Shifted { value, by, .. } => {
                        let kept = Origin { flags: CARRY, ..by };
                        all(&[value, by, kept])
                    }
                };
                [result, result, carry, None]
            }
            Flags::Cleared { result } => {
                let (result, none) = (all(&[result]), all(&[]));
                [result, result, none, none]
            }
            Flags::Fixed(_) => [all(&[]); 4],
            Flags::Unknown => same(unknown),
        };
        for (flag, new) in self.effect.flags.iter_mut().zip(new) {
            *flag = new.or(*flag);
        }
    }

    fn holds(&mut self, condition: Condition) -> Origin {
        // EQ, CS, MI, VS, HI, GE, GT and their opposites (DDI 0406C, A8.3).
        const USES: [u8; 8] = [
            ZERO,
            CARRY,
            NEGATIVE,
            OVERFLOW,
            CARRY | ZERO,
            NEGATIVE | OVERFLOW,
            NEGATIVE | ZERO | OVERFLOW,
            0,
        ];
        let flags = USES.get(usize::from(condition.0 >> 1)).copied().unwrap_or_default();
        Origin { flags, value: None, is: None, ..Origin::constant(0, Width::Word) }
    }

    fn branch(&mut self, condition: Origin, _: bool) {
        self.effect.decided_by = Some(condition);
    }

    fn jump(&mut self, target: Origin, _: Jump) {
        self.effect.target = Some(target);
    }

    fn write_special(&mut self, _: u32, _: Origin) {
        self.forget(Forgotten::StackPointer);
    }

    fn read_special(&mut self, _: u32) -> Origin {
        self.unknown(self.width)
    }

    fn forget(&mut self, forgotten: Forgotten) {
        match forgotten {
            Forgotten::Everything | Forgotten::Memory => self.effect.is_opaque = true,
            Forgotten::StackPointer => {
                let unknown = self.unknown(self.width);
                self.effect.writes.push((Register::SP, unknown));
            }
        }
    }

    fn resize(&mut self, value: Origin, width: Width) -> Origin {
        if value.width == width {
            return value;
        }
        self.field(value, 0, 32, false, width)
    }

    fn known_bit(&self, value: Origin) -> Option<bool> {
        // The effect is that with any registers.
        value.is.filter(|(base, _)| *base == Base::Zero).map(|(_, value)| value & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracewalk::ids::{Address, Location};

    fn effect(code: &[u8], registers: &[(usize, u64)]) -> Effect {
        let half = |at: usize| u32::from(u16::from_le_bytes([code[at], code[at + 1]]));
        let instruction = Instruction {
            at: Location::new(Address::new(0x100), Isa::T32),
            code: if code.len() == 4 { half(0) << 16 | half(2) } else { half(0) },
            bytes: u8::try_from(code.len()).unwrap(),
            executed: None,
            next: None,
        };
        let mut known = [None; 32];
        registers.iter().for_each(|(register, value)| known[*register] = Some(*value));
        Effect::of(&instruction, false, &known)
    }

    #[test]
    fn pushes_and_pops_move_the_stack_pointer() {
        // push {r4, lr}; pop {r4, pc}
        let push = effect(&[0x10, 0xb5], &[(13, 0x2000_0100)]);
        let stored = push.stores().map(|(_, store)| (store.address.value, store.value.copied()));
        let stored = stored.collect::<Vec<_>>();
        assert_eq!(stored, [(Some(0x2000_00f8), Some(Register(4))), (Some(0x2000_00fc), Some(Register::LR))]);
        let moved = |by: u64| Some((Base::Register(Register::SP), by & 0xffff_ffff));
        assert_eq!(push.written(Register::SP).unwrap().is, moved(8_u64.wrapping_neg()));
        let pop = effect(&[0x10, 0xbd], &[]);
        assert_eq!(
            (pop.target.unwrap().loaded(), pop.written(Register(4)).unwrap().loaded()),
            (Some(1), Some(0))
        );
        assert_eq!(pop.written(Register::SP).unwrap().is, moved(8));
    }

    #[test]
    fn loads_have_their_addresses() {
        // ldr r3, [pc, #28]; ldr r3, [r3, #64]; ldr.w r0, [r1, r2, lsl #2]
        let literal = effect(&[0x07, 0x4b], &[]);
        assert_eq!(literal.accesses[0].address.is, Some((Base::Zero, 0x120)));
        let load = effect(&[0x1b, 0x6c], &[(3, 0x1000)]);
        assert_eq!(
            (load.accesses[0].address.value, load.accesses[0].address.registers),
            (Some(0x1040), 1 << 3)
        );
        let scaled = effect(&[0x51, 0xf8, 0x22, 0x00], &[(1, 0x1000), (2, 3)]);
        let address = scaled.accesses[0].address;
        assert_eq!((address.value, address.registers), (Some(0x100c), 1 << 1 | 1 << 2));
    }

    #[test]
    fn branches_depend_on_flags_registers_or_loads() {
        // beq; cbz r2; bx r3; tst r1, r3, which keeps the overflow flag
        assert_eq!(effect(&[0xfc, 0xd0], &[]).decided_by.unwrap().flags, ZERO);
        assert_eq!(effect(&[0x02, 0xb1], &[]).decided_by.unwrap().registers, 1 << 2);
        assert_eq!(effect(&[0x18, 0x47], &[]).target.unwrap().copied(), Some(Register(3)));
        let [_, zero, _, overflow] = effect(&[0x19, 0x42], &[]).flags;
        assert_eq!((zero.unwrap().registers, overflow), (1 << 1 | 1 << 3, None));
    }

    #[test]
    fn divisors_and_unknown_instructions_are_noted() {
        // udiv r0, r1, r2; an instruction that is not modelled (SRS)
        assert_eq!(effect(&[0xb1, 0xfb, 0xf2, 0xf0], &[(2, 0)]).divisor.unwrap().value, Some(0));
        assert!(effect(&[0x2d, 0xe8, 0x13, 0xc0], &[]).is_opaque);
    }
}
