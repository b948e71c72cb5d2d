//! Packets as names and fields, so that exporters do not depend on any protocol.

use crate::ids::Address;

/// A packet that describes itself by name and fields.
pub trait Describe {
    /// The packet's name in the line formats, like `i_sync`.
    fn name(&self) -> &'static str;

    /// Calls `visit` with each field's name and value, in a fixed order. Absent fields are not visited. Of
    /// the protocols with program flow, only packets named `timestamp` have a field `timestamp`.
    fn fields(&self, visit: &mut dyn FnMut(&'static str, Field<'_>));
}

/// The value of a packet's field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field<'a> {
    /// A number; flags of most protocols are 0 and 1. `tracewalk packets` prints `context_id`, `timestamp` and `value` in
    /// hexadecimal.
    Number(u64),
    /// A pattern of bits, which reads better in hexadecimal.
    Bits(u64),
    /// A flag.
    Flag(bool),
    /// An address in the traced processor's memory.
    Address(Address),
    /// A word from a fixed set, or a string of atoms.
    Text(&'a str),
}
