//! What decides which way an iteration of a loop goes.

use std::collections::BTreeSet;

use tracewalk::ids::Address;

use crate::crash::path::Step;
use crate::values::{Base, Image, Origin, Register};

/// Memory by its address and its bytes.
pub(super) type Memory = (u64, u8);

/// What a value depends on: registers and flags at the start of an iteration, and memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Depends {
    registers: u32,
    flags: u8,
    memory: BTreeSet<Memory>,
    /// It depends on something else.
    on_other: bool,
    /// It is this register at the start, plus a constant.
    is: Option<(u8, u64)>,
}

impl Depends {
    fn add(&mut self, other: &Self) {
        self.registers |= other.registers;
        self.flags |= other.flags;
        self.memory.extend(&other.memory);
        self.on_other |= other.on_other;
        self.is = None;
    }
}

/// One iteration of a loop.
pub(super) struct Iteration<'a> {
    image: &'a Image,
    registers: [Depends; 16],
    flags: [Depends; 4],
    stored: Vec<(Memory, Depends)>,
    /// What was loaded.
    pub(super) loaded: Vec<(Memory, Option<u64>)>,
    /// What decides which way the iteration goes.
    decides: Depends,
    pub(super) decided_at: Option<Address>,
}

impl<'a> Iteration<'a> {
    pub(super) fn new(image: &'a Image) -> Self {
        let number = |index: usize| u8::try_from(index).unwrap_or_default();
        Self {
            image,
            registers: std::array::from_fn(|index| Depends {
                registers: 1 << index,
                is: Some((number(index), 0)),
                ..Depends::default()
            }),
            flags: std::array::from_fn(|index| Depends { flags: 1 << index, ..Depends::default() }),
            stored: Vec::new(),
            loaded: Vec::new(),
            decides: Depends::default(),
            decided_at: None,
        }
    }

    /// Takes the next instruction; `None` if it may change anything.
    pub(super) fn step(&mut self, step: &Step, is_conditional: bool, branches: bool) -> Option<()> {
        let effect = &step.effect;
        if effect.is_opaque {
            return None;
        }
        let mut loaded = Vec::new();
        for (number, access) in effect.accesses.iter().enumerate() {
            let (address, value) = step.access(number);
            let memory = address.map(|address| (u64::from(address), access.bytes));
            if access.is_store {
                let stored = self.value(access.value, &loaded);
                self.stored.extend(memory.map(|memory| (memory, stored)));
                loaded.push(Depends::default());
            } else {
                let mut found = self.load(memory);
                let base = self.value(access.address, &loaded);
                let is = found.is;
                found.add(&base);
                found.is = is;
                self.loaded.extend(memory.map(|memory| (memory, value.map(u64::from))));
                loaded.push(found);
            }
        }
        let mut condition = Depends::default();
        if is_conditional {
            self.flags.iter().for_each(|flag| condition.add(flag));
        }
        for decision in [effect.decided_by, effect.target].into_iter().flatten() {
            let decision = self.value(decision, &loaded);
            if effect.decided_by.is_some() || !decision.memory.is_empty() {
                self.decided_at = Some(Address::from(step.at));
            }
            self.decides.add(&decision);
        }
        if is_conditional && branches {
            self.decides.add(&condition);
            self.decided_at = Some(Address::from(step.at));
        }
        let flags = effect.flags.map(|flag| flag.map(|origin| self.value(origin, &loaded)));
        let writes = effect.writes.iter().map(|(register, origin)| (*register, self.value(*origin, &loaded)));
        let writes = writes.collect::<Vec<_>>();
        for (old, new) in self.flags.iter_mut().zip(flags) {
            if let Some(new) = new {
                replace(old, new, is_conditional.then_some(&condition));
            }
        }
        for (Register(number), new) in writes {
            let old = self.registers.get_mut(usize::from(number))?;
            replace(old, new, is_conditional.then_some(&condition));
        }
        Some(())
    }

    /// What a loaded value depends on, apart from its address.
    fn load(&self, memory: Option<Memory>) -> Depends {
        let Some((address, bytes)) = memory else { return Depends { on_other: true, ..Depends::default() } };
        let overlaps =
            |(at, size): &Memory| *at < address + u64::from(bytes) && address < at + u64::from(*size);
        match self.stored.iter().rfind(|(stored, _)| overlaps(stored)) {
            Some((stored, value)) if *stored == (address, bytes) => value.clone(),
            Some(_) => Depends { on_other: true, ..Depends::default() },
            None if self.image.is_constant(address) => Depends::default(),
            None => Depends { memory: [(address, bytes)].into(), ..Depends::default() },
        }
    }

    /// What a value depends on.
    fn value(&self, origin: Origin, loaded: &[Depends]) -> Depends {
        let mut depends = Depends { on_other: origin.on_other, ..Depends::default() };
        let bits = |bits: u32, count: usize| (0..count).filter(move |bit| bits >> bit & 1 == 1);
        bits(origin.registers, 16).filter_map(|it| self.registers.get(it)).for_each(|it| depends.add(it));
        bits(origin.loads, 32).filter_map(|it| loaded.get(it)).for_each(|it| depends.add(it));
        bits(origin.flags.into(), 4).filter_map(|it| self.flags.get(it)).for_each(|it| depends.add(it));
        let is = match origin.is {
            Some((Base::Register(Register(number)), plus)) => {
                self.registers.get(usize::from(number)).and_then(|of| of.is).zip(Some(plus))
            }
            Some((Base::Load(load), plus)) => loaded.get(load).and_then(|of| of.is).zip(Some(plus)),
            _ => None,
        };
        depends.is = is.map(|((register, by), plus)| (register, by.wrapping_add(plus) & u64::from(u32::MAX)));
        depends
    }

    /// The memory that decides which way each iteration goes; `None` if something else does too.
    pub(super) fn resolved(&self) -> Option<BTreeSet<Memory>> {
        let mut found = BTreeSet::new();
        let mut done = (0_u32, 0_u8);
        self.resolve(&self.decides, &mut found, (0, 0), &mut done).then_some(found)
    }

    /// Follows what a value depends on through earlier iterations. `open` are the registers and flags that are being followed, which would
    /// depend on themselves.
    fn resolve(
        &self,
        depends: &Depends,
        found: &mut BTreeSet<Memory>,
        open: (u32, u8),
        done: &mut (u32, u8),
    ) -> bool {
        found.extend(&depends.memory);
        let bits = |bits: u32| (0..32_u8).filter(move |bit| bits >> bit & 1 == 1);
        let mut is_known = !depends.on_other;
        for number in bits(depends.registers) {
            let Some(after) = self.registers.get(usize::from(number)) else { return false };
            if after.is == Some((number, 0)) {
                continue;
            }
            let bit = 1_u32 << number;
            is_known &= open.0 & bit == 0;
            if is_known && done.0 & bit == 0 {
                is_known &= self.resolve(after, found, (open.0 | bit, open.1), done);
                done.0 |= bit;
            }
        }
        for number in bits(depends.flags.into()) {
            let Some(after) = self.flags.get(usize::from(number)) else { return false };
            let bit = 1_u8 << number;
            let is_kept =
                after.flags == bit && after.registers == 0 && after.memory.is_empty() && !after.on_other;
            if is_kept {
                continue;
            }
            is_known &= open.1 & bit == 0;
            if is_known && done.1 & bit == 0 {
                is_known &= self.resolve(after, found, (open.0, open.1 | bit), done);
                done.1 |= bit;
            }
        }
        is_known
    }
}

/// Replaces what a value depends on, or joins both if only a condition decides that.
fn replace(old: &mut Depends, new: Depends, condition: Option<&Depends>) {
    match condition {
        None => *old = new,
        Some(condition) => {
            old.add(&new);
            old.add(condition);
        }
    }
}
