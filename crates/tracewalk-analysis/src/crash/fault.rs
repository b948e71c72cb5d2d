//! The exception was taken at an instruction of the program: the fault of that instruction.

use tracewalk::ids::{Address, Exception, Isa};
use tracewalk::isa::{self, Raises};

use super::evidence::{Cause, CauseKind, Evidence, Holder, Role};
use super::look::{self, Look, frame_word};
use super::path::{SP, Step};
use super::state::{self, CPUID, MPU_CTRL};
use crate::values::Register;

/// The number of UsageFault.
const USAGE_FAULT: u16 = 6;

/// The functions that the run-time ABI calls for a division by zero (IHI 0043E, 5.3.1).
const DIVISION_TRAPS: [&str; 2] = ["__aeabi_idiv0", "__aeabi_ldiv0"];

/// The functions that divide on a processor without a division instruction, by their names in the run-time ABI and libgcc.
const DIVISIONS: [&str; 12] = [
    "__aeabi_idiv",
    "__aeabi_uidiv",
    "__aeabi_idivmod",
    "__aeabi_uidivmod",
    "__aeabi_ldivmod",
    "__aeabi_uldivmod",
    "__divsi3",
    "__udivsi3",
    "__modsi3",
    "__umodsi3",
    "__udivmoddi4",
    "__divdi3",
];

impl Look<'_> {
    /// The fault of the instruction at which the exception was taken.
    pub(super) fn fault(&self) -> Option<Cause> {
        let at = self.taken.returns_to?;
        self.code.symbols.function(at)?;
        if self.may_be_escalated_call(at) {
            return None;
        }
        let (known, step) = self.instruction(at)?;
        let faulting = look::instruction(Role::Faulting, &step);
        let status = self.snapshot.fault_status();
        let mut cause = if known.raises == Some(Raises::Undefined) {
            self.undefined(at, &step)
        } else if self.is_by_trace_alone() {
            self.by_values(at, &step)
        } else if status.is_set(state::DIVBYZERO) {
            self.division(at, &step)
        } else if status.is_set(state::UNALIGNED) {
            self.unaligned(at, &step)
        } else if status.is_set(state::UNDEFINSTR) && step.may_be_undefined() {
            let kind = CauseKind::UndefinedInstruction { at, bytes: step.code.clone() };
            Some(Cause { kind, proof: self.status_with(state::UNDEFINSTR)? })
        } else if status.is_set(state::PRECISERR) {
            self.refused(at, &step, status.bfar.filter(|_| status.is_set(state::BFARVALID))?)
        } else if status.is_set(state::DACCVIOL) {
            self.forbidden(at, &step, status.mmfar.filter(|_| status.is_set(state::MMARVALID))?)
        } else {
            self.by_elimination(at, &step)
        }?;
        cause.proof.push(faulting);
        Some(cause)
    }

    /// The instruction at which the exception was taken.
    pub(super) fn instruction(&self, at: Address) -> Option<(isa::Instruction, Step)> {
        let code = self.code.program.code(at)?;
        let known = isa::classify(code, at, Isa::T32).ok()?;
        Some((known, Step::read(at, self.code, false, &self.end())?))
    }

    /// The stack pointer went below its limit. The exception then stacks nothing (DDI 0553B, B3.21), so that the trace alone has the
    /// place, and the instruction there has to be one that moves the stack pointer.
    pub(super) fn stack_limit(&self) -> Option<Cause> {
        let at = self.taken.returns_to?;
        let mut proof = self.status_with(state::STKOF).filter(|proof| !proof.is_empty())?;
        let (_, step) = self.instruction(at)?;
        let moves = step.effect.is_opaque || step.effect.written(Register(SP)).is_some();
        proof.push(look::instruction(Role::Faulting, &step));
        proof.extend(self.taken());
        moves.then_some(Cause { kind: CauseKind::StackLimit { at: Some(at) }, proof })
    }

    /// Whether an SVC may have run last. If its exception cannot be taken, it becomes a HardFault at the instruction after it,
    /// which did nothing wrong (DDI 0419E, B1.5.6; DDI 0403E, B1.5.11).
    pub(super) fn may_be_escalated_call(&self, at: Address) -> bool {
        const SVC: u8 = 0xdf;
        let before = at.low_word().wrapping_sub(2);
        let is_call = matches!(self.code.program.code(Address::from(before)), Some([_, SVC, ..]));
        is_call && self.path.steps.last().is_none_or(|last| last.at == before)
    }

    /// A usage fault of an instruction that is defined is a division by zero or an unaligned access (DDI 0403E, B1.5.14), by the values
    /// that the path proves.
    fn by_values(&self, at: Address, step: &Step) -> Option<Cause> {
        self.exception
            .filter(|exception| *exception == Exception::M(USAGE_FAULT) && !step.effect.is_opaque)?;
        if step.effect.divisor.is_some_and(|divisor| divisor.value == Some(0)) {
            return self.division(at, step);
        }
        self.accessed(step).and_then(|accessed| accessed.address)?;
        self.unaligned(at, step)
    }

    /// UDF. In the function that is called for a division by zero, it reports the division.
    pub(super) fn undefined(&self, at: Address, step: &Step) -> Option<Cause> {
        let mut proof = self.status_with(state::UNDEFINSTR)?;
        let name = |at: Address| self.code.symbols.function(at).map(|function| function.name);
        let is_trap = name(at).is_some_and(|name| DIVISION_TRAPS.contains(&name));
        if !is_trap {
            let kind = CauseKind::UndefinedInstruction { at, bytes: step.code.clone() };
            return Some(Cause { kind, proof });
        }
        let trap = self
            .code
            .symbols
            .functions()
            .into_iter()
            .find(|function| function.start <= at && at.get() < function.end)?;
        let end = Address::from(u32::try_from(trap.end).ok()?);
        proof.push(Evidence::Symbol { name: trap.symbol, start: trap.start, end });
        let divides = |at: &Address| {
            name(*at).is_some_and(|name| DIVISIONS.contains(&name) || DIVISION_TRAPS.contains(&name))
        };
        let call = self.taken.stack.iter().filter_map(|running| running.at).find(|at| !divides(at));
        let called = call.and_then(|call| self.path.steps.iter().rfind(|step| step.at == call.low_word()));
        proof.extend(called.map(|step| look::instruction(Role::Call, step)));
        let at = called.map_or(at, |step| Address::from(step.at));
        Some(Cause { kind: CauseKind::DivideByZero { at, trap: Some(trap.start) }, proof })
    }

    pub(super) fn division(&self, at: Address, step: &Step) -> Option<Cause> {
        let mut proof = self.status_with(state::DIVBYZERO)?;
        let divisor = step.effect.divisor?;
        if divisor.value.is_some_and(|divisor| divisor != 0) {
            return None;
        }
        proof.extend(divisor.copied().and_then(|Register(register)| self.register(register)));
        Some(Cause { kind: CauseKind::DivideByZero { at, trap: None }, proof })
    }

    pub(super) fn unaligned(&self, at: Address, step: &Step) -> Option<Cause> {
        let mut proof = self.status_with(state::UNALIGNED)?;
        let accessed = self.accessed(step)?;
        if accessed.address.is_some_and(|address| address % accessed.bytes == 0) {
            return None;
        }
        proof.extend(accessed.registers);
        let address = accessed.address.map(Address::from);
        Some(Cause { kind: CauseKind::Unaligned { at, address }, proof })
    }

    /// The bus refused an access to this address.
    pub(super) fn refused(&self, at: Address, step: &Step, address: u32) -> Option<Cause> {
        let mut proof = self.status_with(state::PRECISERR)?;
        let accessed = self.accessed(step).filter(|accessed| accessed.may_be(address))?;
        proof.extend(self.status_word("BFAR"));
        proof.extend(accessed.registers);
        let kind = CauseKind::BusFault { at, address: Address::from(address), store: accessed.store };
        Some(Cause { kind, proof })
    }

    /// The memory protection forbade an access to this address.
    pub(super) fn forbidden(&self, at: Address, step: &Step, address: u32) -> Option<Cause> {
        let mut proof = self.status_with(state::DACCVIOL)?;
        let accessed = self.accessed(step).filter(|accessed| accessed.may_be(address))?;
        proof.extend(self.status_word("MMFAR"));
        proof.extend(accessed.registers);
        Some(Cause { kind: CauseKind::MemoryProtection { at, address: Address::from(address) }, proof })
    }

    /// ARMv6-M reports no reason, but only one remains: an instruction that was fetched, is defined and accesses memory at an
    /// aligned address can only be refused by the bus (DDI 0419E, B1.5.6).
    pub(super) fn by_elimination(&self, at: Address, step: &Step) -> Option<Cause> {
        let frame = self.frame.filter(|_| self.snapshot.is_baseline() == Some(true))?;
        let cpuid = self.snapshot.word(CPUID)?;
        let accessed = self.accessed(step)?;
        let address = accessed.address?;
        let mut proof = vec![
            Evidence::Word {
                role: Role::Cpuid,
                at: Address::from(CPUID),
                value: cpuid,
                holder: Holder::Dump,
            },
            frame_word(frame, 7),
        ];
        proof.extend(accessed.registers);
        let place = Address::from(address);
        let kind = if address % accessed.bytes != 0 {
            CauseKind::Unaligned { at, address: Some(place) }
        } else {
            // If a Cortex-M0+ uses memory protection, that may have refused the access as well.
            let is_protected = self.snapshot.word(MPU_CTRL).is_some_and(|control| control & 1 == 1);
            let is_known = self.code.program.holds(place) || self.snapshot.holds(address);
            (!is_known && !is_protected).then_some(CauseKind::BusFault {
                at,
                address: place,
                store: accessed.store,
            })?
        };
        Some(Cause { kind, proof })
    }

    fn status_word(&self, name: &str) -> Option<Evidence> {
        let status = self.snapshot.fault_status().registers();
        let register = status.into_iter().find(|register| register.name == name)?;
        let (at, value) = (register.address, register.value);
        Some(Evidence::Word { role: Role::Status, at, value, holder: Holder::Dump })
    }

    /// The memory that an instruction accesses; `None` if it accesses none.
    pub(super) fn accessed(&self, step: &Step) -> Option<Accessed> {
        /// A doubleword need only be aligned to a word.
        const WIDEST: u32 = 4;
        let store = step.effect.stores().next().is_some();
        let transfers = step.effect.accesses.iter().filter(|access| access.is_store == store);
        let first = transfers.clone().next()?;
        let registers = (0..15).filter(|register| first.address.registers >> register & 1 == 1);
        Some(Accessed {
            address: first.address.value.and_then(|address| u32::try_from(address).ok()),
            bytes: u32::from(first.bytes).min(WIDEST),
            all_bytes: transfers.map(|transfer| u32::from(transfer.bytes)).sum(),
            store,
            registers: registers.filter_map(|register| self.register(register)).collect(),
        })
    }
}

/// An access to memory.
pub(super) struct Accessed {
    /// The first address, if it can be derived.
    pub(super) address: Option<u32>,
    /// The size of one transfer.
    pub(super) bytes: u32,
    /// The size of all transfers.
    all_bytes: u32,
    store: bool,
    /// The registers that form the address.
    registers: Vec<Evidence>,
}

impl Accessed {
    /// Whether the instruction may have accessed this address.
    fn may_be(&self, address: u32) -> bool {
        self.address.is_none_or(|first| address.wrapping_sub(first) < self.all_bytes)
    }
}
