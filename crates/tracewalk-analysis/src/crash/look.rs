//! Everything known of a crash, and the evidence in it.

use tracewalk::flow::{BranchKind, Ending};
use tracewalk::ids::{Address, Exception};
use tracewalk::isa::Return;

use super::evidence::{Evidence, Holder, Role};
use super::handlers::vector;
use super::path::{LR, PC, Path, Registers, SP, Step};
use super::state::{Snapshot, StackedFrame};
use super::trail::{Happened, Taken};
use crate::Code;

/// Everything known of a crash.
pub(super) struct Look<'a> {
    pub(super) code: &'a Code,
    pub(super) snapshot: &'a Snapshot,
    pub(super) taken: &'a Taken,
    pub(super) exception: Option<Exception>,
    pub(super) numbered_by_registers: bool,
    /// Whether only the vector table has the handler.
    pub(super) handler_by_vector: bool,
    pub(super) frame: Option<StackedFrame>,
    /// The path before the exception.
    pub(super) before: &'a [&'a Happened],
    pub(super) states_return: bool,
    /// The uninterrupted run of instructions before the exception. What is proven of them is left out where a frame was saved that
    /// contradicts the trace.
    pub(super) path: &'a Path,
}

impl Look<'_> {
    /// The registers when the exception was taken, as far as they were saved.
    pub(super) fn end(&self) -> Registers {
        /// EXC_RETURN, bit 4: the frame has no floating-point registers.
        const BASIC_FRAME: u32 = 1 << 4;
        const ALIGNED: u32 = 1 << 9;
        let Some(StackedFrame { address, words: [r0, r1, r2, r3, r12, link, _, status] }) = self.frame else {
            return self.path.end();
        };
        let mut end = self.snapshot.registers;
        for (register, value) in [(0, r0), (1, r1), (2, r2), (3, r3), (12, r12), (LR, link)] {
            end[usize::from(register)] = Some(value);
        }
        let basic = self.snapshot.registers[usize::from(LR)].is_some_and(|link| link & BASIC_FRAME != 0);
        let bytes = if basic { 0x20 } else { 0x68 } + if status & ALIGNED == 0 { 0 } else { 4 };
        end[usize::from(SP)] = Some(address.low_word().wrapping_add(bytes));
        end[usize::from(PC)] = None;
        end
    }

    /// Whether the exception's place and the registers are only what the trace shows.
    pub(super) const fn is_by_trace_alone(&self) -> bool {
        self.frame.is_none() && !self.states_return
    }

    /// Whether the last instruction is a branch to a computed address, so that the exception was taken at its target.
    pub(super) fn ends_in_branch(&self) -> bool {
        let last = self.before.iter().rev().find(|piece| !matches!(piece, Happened::NoCode(_)));
        let Some(Happened::Ran(block)) = last else { return false };
        matches!(block.ending, Ending::Branch { kind: BranchKind::Indirect, taken: true, returns, .. }
            if returns != Some(Return::Exception))
    }

    /// The word of the dump that the target was loaded from, if it still holds the target.
    pub(super) fn pointer(&self, at: u32, to: Address) -> Option<Evidence> {
        let value = self.snapshot.word(at).filter(|value| Address::from(value & !1) == to)?;
        Some(Evidence::Word { role: Role::Pointer, at: Address::from(at), value, holder: Holder::Dump })
    }

    /// A register when the exception was taken.
    pub(super) fn register(&self, register: u8) -> Option<Evidence> {
        const NAMES: [&str; 15] =
            ["r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "sp", "lr"];
        let name = *NAMES.get(usize::from(register))?;
        let Some(frame) = self.frame else {
            let value = self.path.end()[usize::from(register)]?;
            return Some(Evidence::Proven { name, value });
        };
        let stacked = match register {
            0..=3 => Some(usize::from(register)),
            12 => Some(4),
            LR => Some(5),
            _ => None,
        };
        if let Some(index) = stacked {
            return Some(frame_word(frame, index));
        }
        let value = self.snapshot.registers.get(usize::from(register)).copied().flatten()?;
        Some(Evidence::Register { name, value })
    }

    /// The fault status as evidence; empty if it is not known. `None` if it is known and none of these flags is set.
    pub(super) fn status_with(&self, flags: u32) -> Option<Vec<Evidence>> {
        let status = self.snapshot.fault_status().registers();
        let Some(cfsr) = status.iter().find(|register| register.name == "CFSR") else {
            return Some(Vec::new());
        };
        let word =
            Evidence::Word { role: Role::Status, at: cfsr.address, value: cfsr.value, holder: Holder::Dump };
        (cfsr.value & flags != 0).then(|| vec![word])
    }

    /// The evidence that the exception was taken.
    pub(super) fn taken(&self) -> Vec<Evidence> {
        let Taken { returns_to: Some(at), handler: Some(handler), traced_at, .. } = *self.taken else {
            return Vec::new();
        };
        let exception = self.exception.filter(|_| !self.numbered_by_registers);
        let mut proof = vec![Evidence::Taken { exception, at, handler, traced_at }];
        if self.numbered_by_registers {
            proof.extend(self.snapshot.xpsr.map(|value| Evidence::Register { name: "xpsr", value }));
        }
        if self.numbered_by_registers || self.handler_by_vector {
            let vector = self.exception.and_then(|exception| self.vector(exception.number()));
            let handler = self.taken.handler.map(|handler| handler.low_word() | 1);
            // The registers alone may name the exception.
            proof.extend(
                vector.filter(
                    |vector| matches!(vector, Evidence::Word { value, .. } if Some(*value) == handler),
                ),
            );
        }
        proof.extend(self.frame.map(|frame| frame_word(frame, 6)));
        proof
    }

    pub(super) fn vector(&self, number: u16) -> Option<Evidence> {
        let (at, handler) = vector(self.code, self.snapshot, number)?;
        let value = handler.low_word() | 1;
        Some(Evidence::Word { role: Role::Vector, at, value, holder: Holder::Image })
    }
}

/// The last of these instructions, to be listed.
pub(super) fn listed(path: &Path) -> Vec<Address> {
    const LISTED: usize = 8;
    path.steps.iter().rev().take(LISTED).rev().map(|step| Address::from(step.at)).collect()
}

pub(super) fn instruction(role: Role, step: &Step) -> Evidence {
    Evidence::Instruction {
        role,
        at: Address::from(step.at),
        bytes: step.code.clone(),
        executed: step.traced_at,
    }
}

/// A word of the stacked frame.
pub(super) fn frame_word(frame: StackedFrame, index: usize) -> Evidence {
    let at = frame.address.checked_add(4 * index as u64).unwrap_or(frame.address);
    let value = frame.words.get(index).copied().unwrap_or_default();
    Evidence::Word { role: Role::Frame, at, value, holder: Holder::Dump }
}

pub(super) fn symbol(object: crate::symbols::Object) -> Evidence {
    let end = Address::from(u32::try_from(object.end).unwrap_or(u32::MAX));
    Evidence::Symbol { name: object.name, start: object.start, end }
}
