//! A64.
use crate::machine::Machine;
pub(crate) fn execute<M: Machine>(machine: &mut M, _code: u32, _address: u64) {
    crate::arm::not_modelled(machine);
}
