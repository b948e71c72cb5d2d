//! Effects of instructions, and named parts of their encodings.

/// The stack pointer, the link register and the program counter.
pub(in crate::crash) const SP: u8 = 13;
pub(in crate::crash) const LR: u8 = 14;
pub(in crate::crash) const PC: u8 = 15;

/// Represents a floating-point register in a transfer, whose value is not followed. The program counter is free for this: no
/// instruction stores it, and a floating-point load does not branch.
pub(super) const FLOATING: u8 = PC;

/// The effect of an instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::crash) struct Effect {
    /// The registers that it writes, apart from the program counter. Operands are the values before the instruction.
    pub(in crate::crash) writes: Vec<(u8, Source)>,
    /// The loads.
    pub(in crate::crash) loads: Vec<Transfer>,
    /// The stores.
    pub(in crate::crash) stores: Vec<Transfer>,
    /// The register that it branches to.
    pub(in crate::crash) branches_to: Option<u8>,
    /// The register that it divides by.
    pub(in crate::crash) divides_by: Option<u8>,
    /// Whether it may write any register and any memory.
    pub(in crate::crash) opaque: bool,
}

/// The value of a written register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::crash) enum Source {
    Constant(u32),
    /// A register's value, operated on.
    Computed(Operation, u8, Operand),
    /// The value that the load of this number loaded.
    Loaded(usize),
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::crash) enum Operation {
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
pub(in crate::crash) enum Operand {
    Constant(u32),
    /// A register, shifted left.
    Register(u8, u8),
}

/// A load or store of one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::crash) struct Transfer {
    pub(in crate::crash) base: Base,
    pub(in crate::crash) offset: Operand,
    pub(in crate::crash) bytes: u8,
    /// The register that is loaded or stored. The program counter for a load that branches.
    pub(in crate::crash) register: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::crash) enum Base {
    Register(u8),
    /// The program counter, aligned: a literal.
    Constant(u32),
}

impl Operation {
    pub(in crate::crash) const fn of(self, left: u32, right: u32) -> u32 {
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
    pub(in crate::crash) fn opaque() -> Self {
        Self { opaque: true, ..Self::default() }
    }

    pub(super) fn write(register: u8, source: Source) -> Self {
        if register == PC {
            return Self::opaque();
        }
        Self { writes: vec![(register, source)], ..Self::default() }
    }

    pub(super) fn branch(register: u8, links_to: Option<u32>) -> Self {
        let writes = links_to.map(|to| (LR, Source::Constant(to | 1))).into_iter().collect();
        Self { branches_to: Some(register), writes, ..Self::default() }
    }

    /// A load or store of one register, or of two.
    pub(super) fn transfer(load: bool, transfers: &[Transfer]) -> Self {
        let transfers = transfers.to_vec();
        if !load {
            return Self { stores: transfers, ..Self::default() };
        }
        let loaded = transfers.iter().enumerate().filter(|(_, transfer)| transfer.register != PC);
        let value = |(index, transfer): (usize, &Transfer)| {
            // A load of less than a word is zero- or sign-extended, which is not followed.
            let source = if transfer.bytes == 4 { Source::Loaded(index) } else { Source::Unknown };
            (transfer.register, source)
        };
        Self { writes: loaded.map(value).collect(), loads: transfers, ..Self::default() }
    }

    /// The same, with this added to the base register.
    pub(super) fn writing_back(mut self, register: u8, by: u32) -> Self {
        if !self.writes.iter().any(|(written, _)| *written == register) {
            let sum = Source::Computed(Operation::Add, register, Operand::Constant(by));
            self.writes.push((register, sum));
        }
        self
    }

    /// LDM and STM, upwards from `register` plus `from`.
    pub(super) fn multiple(load: bool, register: u8, list: u32, from: u32) -> Self {
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

/// `bits` bits from bit `from` up.
pub(super) const fn field(word: u32, from: u32, bits: u32) -> u32 {
    word >> from & ((1 << bits) - 1)
}

/// A register's number.
#[allow(clippy::cast_possible_truncation, reason = "four bits")]
pub(super) const fn register(word: u32, from: u32) -> u8 {
    field(word, from, 4) as u8
}

#[allow(clippy::cast_possible_truncation, reason = "three bits")]
pub(super) const fn low(word: u32, from: u32) -> u8 {
    field(word, from, 3) as u8
}
