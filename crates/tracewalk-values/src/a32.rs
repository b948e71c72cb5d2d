//! A32.
use crate::machine::{Condition, Machine};
/// An instruction, and where it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arm { pub(crate) code: u32, pub(crate) address: u32 }
impl Arm {
    pub(crate) const fn condition(self) -> Condition { Condition::of(self.code >> 28) }
    pub(crate) const fn is_direct_branch(self) -> bool { self.code >> 25 & 7 == 5 }
    pub(crate) fn execute<M: Machine>(self, machine: &mut M) { crate::arm::not_modelled(machine); }
}
