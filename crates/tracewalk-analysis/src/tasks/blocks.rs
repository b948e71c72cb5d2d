//! The running task's control block, as the operating system's own variable states it.

use std::collections::HashMap;
use std::sync::Arc;

use tracewalk::protocol::itm::Packet;

use crate::itm::{ItmEvent, Watched};
use crate::symbols::{CurrentTask, TaskName};
use crate::values::{Halt, Image, Proven, ProvenAccess};

/// A control block, and the name in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) address: u64,
    pub(super) name: Option<Arc<str>>,
}

/// Reads the variable from the accesses that a path proves.
#[derive(Debug)]
pub(super) struct Noted {
    variable: CurrentTask,
    pointer_bytes: u8,
    memory: Known,
    /// What the variable has, if it is known.
    now: Option<Block>,
}

impl Noted {
    pub(super) fn new(variable: CurrentTask, image: Image, pointer_bytes: u8) -> Self {
        let memory = Known { image, stored: HashMap::default() };
        Self { variable, pointer_bytes, memory, now: None }
    }

    /// Takes what a step did. Returns the variable's block if it is another one, or known by another name; `Some(None)` if it
    /// is not known any more.
    pub(super) fn step(&mut self, proven: &Proven) -> Option<Option<Block>> {
        let mut now = self.now.clone();
        if proven.may_store {
            self.memory.stored.clear();
            now = None;
        }
        for access in &proven.accesses {
            if access.is_store {
                self.memory.store(access);
            }
            let is_of_variable =
                access.address.map(|address| address.abs_diff(self.variable.pointer.get()) < 8);
            match is_of_variable {
                Some(false) => {}
                Some(true) if access.address == Some(self.variable.pointer.get()) => {
                    let is_whole = access.bytes == self.pointer_bytes;
                    now = access.value.filter(|_| is_whole).map(|address| self.block(address));
                }
                _ if access.is_store => now = None,
                _ => {}
            }
        }
        if now == self.now {
            return None;
        }
        self.now.clone_from(&now);
        Some(now)
    }

    fn block(&self, address: u64) -> Block {
        let name = self.variable.name.and_then(|name| {
            name_of(name, address, self.pointer_bytes, &|address| self.memory.byte(address))
        });
        Block { address, name }
    }

    /// The name in a block of a halted processor.
    pub(super) fn name_at_end(&self, block: u64, halt: &Halt) -> Option<Arc<str>> {
        let byte = |address| halt.end.byte(address).or_else(|| self.memory.image.constant(address));
        name_of(self.variable.name?, block, self.pointer_bytes, &byte)
    }
}

/// Memory, as far as it is known.
#[derive(Debug)]
struct Known {
    image: Image,
    /// The bytes that were stored; `None` for unknown ones.
    stored: HashMap<u64, Option<u8>, rustc_hash::FxBuildHasher>,
}

impl Known {
    fn store(&mut self, access: &ProvenAccess) {
        let Some(address) = access.address else {
            self.stored.clear();
            return;
        };
        let bytes = access.value.map(u64::to_le_bytes);
        for index in 0..access.bytes {
            let byte = bytes.and_then(|bytes| bytes.get(usize::from(index)).copied());
            self.stored.insert(address.wrapping_add(index.into()), byte);
        }
    }

    fn byte(&self, address: u64) -> Option<u8> {
        self.image.constant(address).or_else(|| self.stored.get(&address).copied().flatten())
    }
}

/// The most characters of a name that a pointer leads to.
const LONGEST_NAME: u64 = 64;

/// The name in a control block, if every byte of it is known.
fn name_of(
    name: TaskName,
    block: u64,
    pointer_bytes: u8,
    byte: &dyn Fn(u64) -> Option<u8>,
) -> Option<Arc<str>> {
    let at = block.checked_add(name.offset)?;
    let (at, most) = match name.characters {
        Some(characters) => (at, characters),
        None => {
            let bytes = (0..pointer_bytes).rev().map(|index| byte(at.checked_add(index.into())?));
            let pointer = bytes.map(|byte| byte.map(u64::from));
            (pointer.reduce(|sum, byte| Some(sum? << 8 | byte?))??, LONGEST_NAME)
        }
    };
    let mut text = Vec::new();
    for index in 0..most.min(LONGEST_NAME) {
        match byte(at.checked_add(index)?)? {
            0 => break,
            byte => text.push(byte),
        }
    }
    let text = String::from_utf8(text).ok()?;
    let is_name = !text.is_empty() && text.chars().all(|letter| !letter.is_control());
    is_name.then(|| text.into())
}

/// Reads the variable from the reports of the DWT's comparators.
#[derive(Debug)]
pub(super) struct Reported {
    pub(super) variable: CurrentTask,
    pub(super) watched: Watched,
}

impl Reported {
    /// Takes an ITM's report. Returns the control block if it is a store to the variable.
    pub(super) fn event(&mut self, event: &ItmEvent) -> Option<u64> {
        let at = self.watched.address(event)?;
        match event {
            ItmEvent::Packet(Packet::DataValue { write: true, value, .. }) if at == self.variable.pointer => {
                Some(u64::from(*value))
            }
            _ => None,
        }
    }
}
