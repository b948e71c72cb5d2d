//! The accesses that set trace units up, let the target run, and switch the units off: data that can be printed or carried out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::client::Client;
use crate::connection::Connection;
use crate::problem::{Fault, Problem};

/// A register of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Register {
    /// The unit's name: `ETM`.
    pub unit: &'static str,
    /// The unit's address.
    pub base: u32,
    /// The register's name: `ETMCR`.
    pub name: &'static str,
    /// Its offset in the unit.
    pub offset: u32,
}

/// An access, or what it has to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Writes a register.
    Write(Register, u32),
    /// Writes a register, and reads it back: the bits of `mask` have to be kept.
    Set {
        /// The register.
        at: Register,
        /// The value.
        value: u32,
        /// The bits that are read back.
        mask: u32,
    },
    /// Clears and sets bits of a register, after its value has been kept for [`Step::Restore`].
    Change {
        /// The register.
        at: Register,
        /// The bits that are cleared.
        clear: u32,
        /// The bits that are set.
        set: u32,
        /// A password that has to stand in what is written, also by [`Step::Restore`]; 0 for none.
        key: u32,
    },
    /// Reads a register: the bits of `mask` have to be `value`.
    Expect {
        /// The register.
        at: Register,
        /// The bits that matter.
        mask: u32,
        /// Their value.
        value: u32,
        /// What is wrong otherwise.
        or: Fault,
    },
    /// Reads a register: the bits of `mask` must not be `value`.
    Forbid {
        /// The register.
        at: Register,
        /// The bits that matter.
        mask: u32,
        /// The value that is not allowed.
        value: u32,
        /// What is wrong otherwise.
        or: Fault,
    },
    /// Reads a register until the bits of `mask` are `value`.
    Poll {
        /// The register.
        at: Register,
        /// The bits that matter.
        mask: u32,
        /// Their value.
        value: u32,
    },
    /// Keeps a register's value for [`Step::Restore`].
    Keep(Register),
    /// Reads a register, for the description of the trace.
    Note(Register),
    /// Writes the value that a register had before the first [`Step::Change`].
    Restore(Register),
}

/// The steps of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Before the target runs.
    pub setup: Vec<Step>,
    /// After it has stopped: the units are switched off, and keep what they recorded.
    pub stop: Vec<Step>,
    /// After the trace was read.
    pub restore: Vec<Step>,
}

/// The register that opens the software lock.
pub(crate) const LOCK: &str = "LAR";

/// How often a register is read that has to change.
const POLLS: u32 = 200;

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Register {
    /// The register's address.
    #[must_use]
    pub const fn address(self) -> u32 {
        self.base.wrapping_add(self.offset)
    }

    const fn is(self, fault: Fault) -> Problem {
        Problem::Unit { at: self, fault }
    }
}

impl fmt::Display for Step {
    /// One line, without the values that a target has.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.register();
        write!(f, "{} {:<10} 0x{:08x}  ", at.unit, at.name, at.address())?;
        match *self {
            Self::Write(_, value) => write!(f, "write 0x{value:08x}"),
            Self::Set { value, .. } => write!(f, "write 0x{value:08x}, and read it back"),
            Self::Change { clear: 0, set, .. } => write!(f, "set the bits 0x{set:08x}"),
            Self::Change { clear, set: 0, .. } => write!(f, "clear the bits 0x{clear:08x}"),
            Self::Change { clear, set, .. } => write!(f, "clear the bits 0x{clear:08x}, set 0x{set:08x}"),
            Self::Expect { mask, value, .. } => {
                write!(f, "read; the bits 0x{mask:08x} have to be 0x{value:08x}")
            }
            Self::Forbid { mask, value, .. } => {
                write!(f, "read; the bits 0x{mask:08x} must not be 0x{value:08x}")
            }
            Self::Poll { mask, value, .. } => write!(f, "read until the bits 0x{mask:08x} are 0x{value:08x}"),
            Self::Keep(_) | Self::Note(_) => f.write_str("read"),
            Self::Restore(_) => f.write_str("write what it was before"),
        }
    }
}

impl Step {
    /// The register that the step is about.
    #[must_use]
    pub const fn register(&self) -> Register {
        match *self {
            Self::Write(at, _)
            | Self::Set { at, .. }
            | Self::Change { at, .. }
            | Self::Expect { at, .. }
            | Self::Forbid { at, .. }
            | Self::Poll { at, .. }
            | Self::Keep(at)
            | Self::Note(at)
            | Self::Restore(at) => at,
        }
    }
}

/// Carries steps out.
#[derive(Debug)]
pub struct Execution<'a, C> {
    /// The target.
    pub client: &'a mut Client<C>,
    /// The values that registers had before they were changed.
    before: BTreeMap<u32, u32>,
    /// The values that were read for the description.
    pub noted: BTreeMap<&'static str, u32>,
    /// The units whose state was changed, by their addresses.
    touched: BTreeSet<u32>,
}

impl<'a, C: Connection> Execution<'a, C> {
    /// Nothing has been carried out.
    pub fn new(client: &'a mut Client<C>) -> Self {
        Self { client, before: BTreeMap::new(), noted: BTreeMap::new(), touched: BTreeSet::new() }
    }

    /// Carries steps out, up to the first that fails.
    ///
    /// # Errors
    ///
    /// If a unit or the server refuses.
    pub fn all(&mut self, steps: &[Step]) -> Result<(), Problem> {
        steps.iter().try_for_each(|step| self.step(step))
    }

    /// Carries out the steps for units that were changed. Others may be someone else's.
    pub fn undo(&mut self, steps: &[Step]) {
        for step in steps {
            if self.touched.contains(&step.register().base) {
                let _ = self.step(step);
            }
        }
    }

    /// Carries out all steps that can be, to leave the target as it was found.
    pub fn as_far_as_possible(&mut self, steps: &[Step]) {
        for step in steps {
            let _ = self.step(step);
        }
    }

    fn step(&mut self, step: &Step) -> Result<(), Problem> {
        // A lock that is open changes nothing.
        if let Step::Write(at, _) | Step::Set { at, .. } | Step::Change { at, .. } = step
            && at.name != LOCK
        {
            self.touched.insert(at.base);
        }
        match *step {
            Step::Write(at, value) => self.client.write_word(at.address(), value),
            Step::Set { at, value, mask } => {
                self.client.write_word(at.address(), value)?;
                let found = self.client.read_word(at.address())?;
                match (found ^ value) & mask {
                    0 => Ok(()),
                    _ => Err(at.is(Fault::Kept { wrote: value, found })),
                }
            }
            Step::Change { at, clear, set, key } => {
                let old = self.client.read_word(at.address())?;
                self.before.entry(at.address()).or_insert(old | key);
                self.client.write_word(at.address(), old & !clear | set | key)
            }
            Step::Expect { at, mask, value, or } => match self.client.read_word(at.address())? & mask {
                found if found == value => Ok(()),
                _ => Err(at.is(or)),
            },
            Step::Forbid { at, mask, value, or } => match self.client.read_word(at.address())? & mask {
                found if found == value => Err(at.is(or)),
                _ => Ok(()),
            },
            Step::Poll { at, mask, value } => {
                for _ in 0..POLLS {
                    if self.client.read_word(at.address())? & mask == value {
                        return Ok(());
                    }
                }
                Err(at.is(Fault::Stuck))
            }
            Step::Keep(at) => {
                let value = self.client.read_word(at.address())?;
                self.before.entry(at.address()).or_insert(value);
                Ok(())
            }
            Step::Note(at) => {
                let value = self.client.read_word(at.address())?;
                self.noted.insert(at.name, value);
                Ok(())
            }
            Step::Restore(at) => match self.before.remove(&at.address()) {
                Some(old) => self.client.write_word(at.address(), old),
                None => Ok(()),
            },
        }
    }
}
