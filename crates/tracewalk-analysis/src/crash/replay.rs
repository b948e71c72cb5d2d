//! The values of registers along an uninterrupted run of instructions, as far as they can be derived from the code and from the
//! registers at the end.
//!
//! ```text
//! backwards from the end: an instruction keeps the registers that it does not write; what it adds is subtracted
//! forwards from the start: constants, literals and earlier stores give values
//! ```
//!
//! A value that cannot be derived is `None`. A store to an unknown address makes all stored values unknown.

use std::collections::BTreeMap;
use tracewalk::span::StreamOffset;

use super::thumb::{Base, Effect, Operand, Operation, PC, Source, Transfer};

/// The core registers, as far as they are known.
pub type Registers = [Option<u32>; 16];

/// An instruction that ran.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) at: u32,
    /// The bytes in the image.
    pub(super) code: Vec<u8>,
    pub(super) effect: Effect,
    /// Whether an IT instruction made it conditional, so that its effect is uncertain.
    pub(super) conditional: bool,
    /// The byte of the source's trace that shows that it ran.
    pub(super) traced_at: Option<StreamOffset>,
}

/// Reads a constant word: code or a literal.
pub(super) type ReadConstant<'a> = &'a dyn Fn(u32) -> Option<u32>;

/// Instructions and the registers before each.
#[derive(Debug)]
pub(super) struct Replay {
    pub(super) steps: Vec<Step>,
    before: Vec<Registers>,
    stores: Vec<Store>,
}

/// A store that was made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Store {
    /// The step that made it.
    pub(super) step: usize,
    /// The address; `None` if it cannot be derived.
    pub(super) address: Option<u32>,
    pub(super) bytes: u8,
    /// The register that was stored.
    pub(super) register: u8,
    pub(super) value: Option<u32>,
}

/// The memory that a register's value was loaded from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    /// The step that loaded it.
    pub(super) step: usize,
    /// The address; `None` if it cannot be derived.
    pub(super) address: Option<u32>,
}

impl Replay {
    /// Replays the steps; `end` are the registers after the last step.
    pub(super) fn new(steps: Vec<Step>, end: Registers, read: ReadConstant<'_>) -> Self {
        let mut before = backwards(&steps, end);
        let mut stores = Vec::new();
        let mut memory = BTreeMap::<u32, Option<u8>>::new();
        let mut now = Registers::default();
        for (index, step) in steps.iter().enumerate() {
            let known = &mut before[index];
            for (value, known) in now.iter_mut().zip(known.iter_mut()) {
                *value = value.or(*known);
                *known = *value;
            }
            let known = *known;
            let loaded = loaded(&step.effect, &known, &memory, read);
            for store in &step.effect.stores {
                let address = address(store, &known);
                let value = known[usize::from(store.register)].filter(|_| store.register != PC);
                stores.push(Store {
                    step: index,
                    address,
                    bytes: store.bytes,
                    register: store.register,
                    value,
                });
                remember(&mut memory, address, store.bytes, value.filter(|_| !step.conditional));
            }
            if step.effect.opaque {
                memory.clear();
                stores.push(Store { step: index, address: None, bytes: 0, register: PC, value: None });
            }
            now = after(step, &known, &loaded);
        }
        Self { steps, before, stores }
    }

    /// A register's value before a step.
    pub(super) fn before(&self, step: usize, register: u8) -> Option<u32> {
        *self.before.get(step)?.get(usize::from(register))?
    }

    /// The load that gave a register the value that it has before `step`; `None` if it was computed, or had it from
    /// the start.
    pub(super) fn origin(&self, step: usize, register: u8) -> Option<Origin> {
        let mut register = register;
        for index in (0..step).rev() {
            let writer = self.steps.get(index)?;
            if writer.effect.opaque {
                return None;
            }
            let Some((_, source)) = writer.effect.writes.iter().find(|(to, _)| *to == register) else {
                continue;
            };
            return match source {
                _ if writer.conditional => None,
                Source::Loaded(load) => {
                    let transfer = writer.effect.loads.get(*load)?;
                    Some(Origin { step: index, address: self.address(index, transfer) })
                }
                // A copy has the value of its original.
                Source::Computed(Operation::Add | Operation::ShiftLeft, from, Operand::Constant(0)) => {
                    register = *from;
                    continue;
                }
                _ => None,
            };
        }
        None
    }

    /// The address of a transfer of a step.
    pub(super) fn address(&self, step: usize, transfer: &Transfer) -> Option<u32> {
        address(transfer, self.before.get(step)?)
    }

    /// The last store to any byte of the word at `address` before `step`; `None` if there was none, or if stores to unknown
    /// addresses may have come later.
    pub(super) fn last_store(&self, step: usize, word: u32) -> Option<Store> {
        let overlaps = |store: &Store, at: u32| {
            let (start, end) = (u64::from(at), u64::from(at) + u64::from(store.bytes));
            start < u64::from(word) + 4 && u64::from(word) < end
        };
        for store in self.stores.iter().rev().filter(|store| store.step < step) {
            match store.address {
                None => return None,
                Some(at) if overlaps(store, at) => {
                    return Some(*store).filter(|_| !self.steps[store.step].conditional);
                }
                Some(_) => {}
            }
        }
        None
    }

    /// The stores, in order.
    pub(super) fn stores(&self) -> &[Store] {
        &self.stores
    }
}

/// The address of a transfer, by the registers before it.
fn address(transfer: &Transfer, known: &Registers) -> Option<u32> {
    let base = match transfer.base {
        Base::Constant(base) => base,
        Base::Register(register) => known[usize::from(register)]?,
    };
    Some(base.wrapping_add(operand(transfer.offset, known)?))
}

fn operand(operand: Operand, known: &Registers) -> Option<u32> {
    match operand {
        Operand::Constant(value) => Some(value),
        Operand::Register(register, shift) => Some(known[usize::from(register)]?.wrapping_shl(shift.into())),
    }
}

/// The registers before each step, derived from those after the last step.
fn backwards(steps: &[Step], end: Registers) -> Vec<Registers> {
    let mut before = vec![Registers::default(); steps.len()];
    let mut now = end;
    now[usize::from(PC)] = None;
    for (step, before) in steps.iter().zip(&mut before).rev() {
        if step.effect.opaque {
            now = Registers::default();
        }
        let after = now;
        for (register, _) in &step.effect.writes {
            now[usize::from(*register)] = None;
        }
        for (register, source) in &step.effect.writes {
            let Source::Computed(operation, from, Operand::Constant(by)) = source else { continue };
            let Some(result) = after[usize::from(*register)].filter(|_| !step.conditional) else { continue };
            let original = match operation {
                Operation::Add => result.wrapping_sub(*by),
                Operation::Subtract => result.wrapping_add(*by),
                Operation::ShiftLeft if *by == 0 => result,
                _ => continue,
            };
            now[usize::from(*from)].get_or_insert(original);
        }
        *before = now;
    }
    before
}

/// The values of a step's loads.
fn loaded(
    effect: &Effect,
    known: &Registers,
    memory: &BTreeMap<u32, Option<u8>>,
    read: ReadConstant<'_>,
) -> Vec<Option<u32>> {
    let value = |transfer: &Transfer| {
        let at = address(transfer, known).filter(|_| transfer.bytes == 4)?;
        let bytes = [0, 1, 2, 3].map(|offset| memory.get(&at.wrapping_add(offset)).copied());
        match bytes {
            [None, None, None, None] => read(at),
            [Some(Some(a)), Some(Some(b)), Some(Some(c)), Some(Some(d))] => {
                Some(u32::from_le_bytes([a, b, c, d]))
            }
            _ => None,
        }
    };
    effect.loads.iter().map(value).collect()
}

fn remember(memory: &mut BTreeMap<u32, Option<u8>>, address: Option<u32>, bytes: u8, value: Option<u32>) {
    let Some(address) = address else {
        memory.clear();
        return;
    };
    let values = value.map(u32::to_le_bytes);
    for (offset, index) in (0..u32::from(bytes)).zip(0_usize..) {
        let byte = values.and_then(|values| values.get(index).copied());
        memory.insert(address.wrapping_add(offset), byte);
    }
}

/// The registers after a step.
fn after(step: &Step, known: &Registers, loaded: &[Option<u32>]) -> Registers {
    let mut now = *known;
    if step.effect.opaque {
        return Registers::default();
    }
    for (register, source) in &step.effect.writes {
        let value = match *source {
            Source::Constant(value) => Some(value),
            Source::Computed(operation, from, with) => {
                let operands = known[usize::from(from)].zip(operand(with, known));
                operands.map(|(left, right)| operation.of(left, right))
            }
            Source::Loaded(load) => loaded.get(load).copied().flatten(),
            Source::Unknown => None,
        };
        now[usize::from(*register)] = value.filter(|_| !step.conditional);
    }
    now[usize::from(PC)] = None;
    now
}

#[cfg(test)]
mod tests {
    use super::super::thumb::SP;
    use super::*;

    fn replay(code: &[&[u8]], end: Registers) -> Replay {
        let mut at = 0x100;
        let steps = code.iter().map(|code| {
            let step = Step {
                at,
                code: code.to_vec(),
                effect: Effect::of(at, code),
                conditional: false,
                traced_at: None,
            };
            at += u32::try_from(code.len()).unwrap();
            step
        });
        Replay::new(steps.collect(), end, &|at| (at == 0x120).then_some(0x2000_0000))
    }

    #[test]
    fn what_is_added_later_is_subtracted() {
        // ldr r3, [r4]; adds r4, #8; blx r3
        let mut end = Registers::default();
        end[4] = Some(0x2000_0030);
        let replay = replay(&[&[0x23, 0x68], &[0x08, 0x34], &[0x98, 0x47]], end);
        let origin = replay.origin(2, 3).unwrap();
        assert_eq!((origin.step, origin.address), (0, Some(0x2000_0028)));
    }

    #[test]
    fn literals_and_stores_give_values() {
        // ldr r3, =0x20000000; movs r0, #7; str r0, [r3, #4]; ldr r1, [r3, #4]; push {r0, lr}
        let code: [&[u8]; 5] = [&[0x07, 0x4b], &[0x07, 0x20], &[0x58, 0x60], &[0x59, 0x68], &[0x01, 0xb5]];
        let mut end = Registers::default();
        end[usize::from(SP)] = Some(0x2000_0100);
        let replay = replay(&code, end);
        assert_eq!(replay.before(4, 1), Some(7));
        assert_eq!(replay.before(4, SP), Some(0x2000_0108));
        let store = replay.last_store(5, 0x2000_0004).unwrap();
        assert_eq!((store.step, store.value), (2, Some(7)));
        assert_eq!(replay.last_store(5, 0x2000_0100).unwrap().step, 4);
        assert_eq!(replay.last_store(5, 0x2000_0200).map(|store| store.step), None);
    }

    #[test]
    fn a_store_to_nobody_knows_where_may_have_been_anywhere() {
        // ldr r3, =0x20000000; str r0, [r3]; str r0, [r5]
        let replay = replay(&[&[0x07, 0x4b], &[0x18, 0x60], &[0x28, 0x60]], Registers::default());
        assert!(replay.last_store(2, 0x2000_0000).is_some());
        assert!(replay.last_store(3, 0x2000_0000).is_none());
    }
}
