//! The last instruction branched to an address without code: the origin of that address.

use tracewalk::ids::{Address, Isa};
use tracewalk::isa::{self, Return};

use super::evidence::{Cause, CauseKind, Evidence, Role, Target};
use super::look::{Look, instruction, symbol};
use super::path::{LR, SP, Step, Store};
use super::state;
use super::trail::Happened;
use crate::values::{Origin, Register};

impl Look<'_> {
    /// The cause, if the last instruction branched to an address without code.
    pub(super) fn branch(&self) -> Option<Cause> {
        const AFTER_BRANCH: u32 = state::IACCVIOL | state::IBUSERR | state::UNDEFINSTR | state::INVSTATE;
        let to = self.taken.returns_to?;
        // The trace has to report the branch's target as well as the place at which the exception was taken.
        match self.before.last() {
            Some(Happened::NoCode(went_to)) if *went_to != to => return None,
            // Two sources have to agree: the value that it branched to is the other one.
            _ if self.is_by_trace_alone() && !self.goes_to(to) => return None,
            _ => {}
        }
        let target = self.target(to)?;
        let mut proof = self.status_with(AFTER_BRANCH)?;
        let index = self.path.steps.len().checked_sub(1)?;
        let branch = self.path.steps.get(index)?;
        let at = Address::from(branch.at);
        proof.push(instruction(Role::Branch, branch));
        proof.extend(branch.traced_at.map(|traced_at| Evidence::Went { from: at, to, traced_at }));
        if let Target::Data(Some(_)) = &target {
            proof.extend(self.code.symbols.object(to).map(symbol));
        }
        let code = self.code.program.code(at)?;
        let returns = isa::classify(code, at, Isa::T32).ok()?.returns == Some(Return::Function);
        let register = branch.effect.target.and_then(Origin::copied).map(|Register(register)| register);
        match register.filter(|register| !returns || *register != LR) {
            Some(register) => self.bad_branch((index, register), (to, target), proof),
            None => self.bad_return(index, (to, target), proof),
        }
    }

    /// Whether the path proves that the last instruction branches to this address: by a register, or by what it loaded.
    fn goes_to(&self, to: Address) -> bool {
        let value = self.path.steps.last().and_then(Step::jumped_to);
        value.is_some_and(|value| Address::from(value & !1) == to)
    }

    fn bad_branch(
        &self,
        (index, register): (usize, u8),
        (to, target): (Address, Target),
        mut proof: Vec<Evidence>,
    ) -> Option<Cause> {
        let at = Address::from(self.path.steps.get(index)?.at);
        let value = self.path.before(index, register);
        if value.is_some_and(|value| Address::from(value & !1) != to) {
            return None;
        }
        proof.extend(self.register(register));
        let origin = self.path.origin(index, register);
        let loaded_from = origin.and_then(|origin| origin.address);
        if let Some(origin) = origin {
            proof.push(instruction(Role::Load, self.path.steps.get(origin.step)?));
        }
        let mut store = None;
        if let (Some(origin), Some(from)) = (origin, loaded_from) {
            proof.extend(self.pointer(from, to));
            store = self.path.last_store(origin.step, from).filter(|store| is_of(store, from, to));
        }
        if let Some(store) = store {
            proof.push(instruction(Role::Store, self.path.steps.get(store.step)?));
            let overflow = loaded_from.and_then(|from| self.overflow(store, from));
            if let Some((object, stack_pointer)) = overflow {
                let pushed_by = Address::from(self.path.steps.get(store.step)?.at);
                proof.push(Evidence::Symbol { name: object.0.clone(), start: object.1, end: object.2 });
                let kind = CauseKind::StackOverflow { pushed_by, stack_pointer, object, branch: at, to };
                return Some(Cause { kind, proof });
            }
        }
        let place = |step: usize| self.path.steps.get(step).map(|step| Address::from(step.at));
        let kind = CauseKind::BadBranch {
            at,
            to,
            target,
            value,
            loaded_by: origin.and_then(|origin| place(origin.step)),
            loaded_from: loaded_from.map(Address::from),
            stored_by: store.and_then(|store| place(store.step)),
        };
        Some(Cause { kind, proof })
    }

    fn bad_return(
        &self,
        index: usize,
        (to, target): (Address, Target),
        mut proof: Vec<Evidence>,
    ) -> Option<Cause> {
        let step = self.path.steps.get(index)?;
        let slot = step.effect.target.and_then(Origin::loaded).and_then(|load| step.access(load).0);
        let (mut saved_by, mut overwritten_by) = (None, None);
        if let Some(slot) = slot {
            proof.extend(self.pointer(slot, to));
            let saved = self.path.saved(LR, slot);
            let last = self.path.last_store(index, slot);
            if let (Some(saved), Some(last)) = (saved, last.filter(|last| last.register != Some(LR))) {
                let (saved, last) = (self.path.steps.get(saved.step)?, self.path.steps.get(last.step)?);
                proof.push(instruction(Role::Save, saved));
                proof.push(instruction(Role::Store, last));
                saved_by = Some(Address::from(saved.at));
                overwritten_by = Some(Address::from(last.at));
            }
        }
        let slot = slot.map(Address::from);
        let at = Address::from(step.at);
        Some(Cause { kind: CauseKind::BadReturn { at, to, target, slot, saved_by, overwritten_by }, proof })
    }

    /// The content of the address that a branch went to, if it cannot be executed.
    fn target(&self, at: Address) -> Option<Target> {
        const THUMB: u32 = 1 << 24;
        let symbols = &self.code.symbols;
        let object = symbols.object(at).map(|object| object.name);
        if self.code.program.code(at).is_none() {
            return Some(object.map_or(Target::Nothing, |name| Target::Data(Some(name))));
        }
        let stretches = symbols.stretches();
        let stretch = stretches.iter().rev().find(|stretch| stretch.start <= at && at.get() < stretch.end);
        let is_data = stretch.is_some_and(|stretch| stretch.isa.is_none());
        if is_data || object.is_some() {
            return Some(Target::Data(object));
        }
        let status = self.frame.map(|frame| frame.words[7]);
        let no_thumb_bit = status.is_some_and(|status| status & THUMB == 0);
        no_thumb_bit.then_some(Target::NoThumbBit)
    }

    /// If the store to the word `at` is a push of a stack that has grown down into an object: the object, and the stack pointer
    /// after the store.
    fn overflow(&self, store: Store, at: u32) -> Option<((String, Address, Address), Address)> {
        let object = self.code.symbols.object(Address::from(at))?;
        let is_push = self.path.steps.get(store.step)?.effect.written(Register(SP)).is_some();
        let stack = |step| self.path.before(step, SP);
        let stack_pointer = stack(store.step + 1)?;
        let above = (0..=store.step).rev().map_while(stack).any(|sp| u64::from(sp) >= object.end);
        let inside = Address::from(stack_pointer) >= object.start && u64::from(stack_pointer) < object.end;
        let end = Address::from(u32::try_from(object.end).ok()?);
        (is_push && above && inside)
            .then_some(((object.name, object.start, end), Address::from(stack_pointer)))
    }
}

/// Whether a store may have written the address `to` to the word `at`: nothing known contradicts it.
fn is_of(store: &Store, at: u32, to: Address) -> bool {
    let place = store.address;
    if store.bytes == 4 {
        return place == at && store.value.is_some_and(|value| Address::from(value & !1) == to);
    }
    let wanted = to.low_word().to_le_bytes();
    store.value.is_none_or(|value| {
        let stored = value.to_le_bytes().into_iter().take(usize::from(store.bytes));
        (0_u32..).zip(stored).all(|(offset, stored)| {
            let index = place.wrapping_add(offset).wrapping_sub(at);
            let known = usize::try_from(index).ok().and_then(|index| wanted.get(index));
            // `to` has no Thumb bit.
            let apart = if index == 0 { !1 } else { !0 };
            known.is_none_or(|known| (known ^ stored) & apart == 0)
        })
    })
}
