//! What takes a trace: a unit's memory, the system's memory, or pins.

use std::fmt;

use crate::chip::Ring;
use crate::client::Client;
use crate::connection::Connection;
use crate::plan::Step;
use crate::problem::Problem;
use crate::units::{etb, etr, tmc, tpiu};

/// A stretch of memory: its address and its bytes.
pub(crate) type Stretch = (u32, u32);

/// Where the trace goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sink {
    /// An ETB at this address.
    Etb(u32),
    /// A TMC with a memory of its own at this address.
    Tmc(u32),
    /// A TMC at this address that writes to memory.
    Etr(u32, Stretch),
    /// Memory that an MTB writes to.
    Memory(Stretch),
    /// Memory that something else writes to.
    Ring(Stretch, Ring),
    /// This number of pins, through the TPIU at this address.
    Pins(u32, u32),
}

impl fmt::Display for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Etb(base) => write!(f, "the ETB at 0x{base:08x}"),
            Self::Tmc(base) => write!(f, "the TMC at 0x{base:08x}"),
            Self::Etr(_, (address, bytes))
            | Self::Memory((address, bytes))
            | Self::Ring((address, bytes), _) => {
                write!(f, "{bytes} bytes of memory at 0x{address:08x}")
            }
            Self::Pins(base, width) => write!(f, "{width} pins of the TPIU at 0x{base:08x}"),
        }
    }
}

impl Sink {
    /// The steps before the source is switched on.
    pub(crate) fn setup(&self) -> Vec<Step> {
        match *self {
            Self::Etb(base) => etb::setup(base),
            Self::Tmc(base) => tmc::setup(base),
            Self::Etr(base, memory) => etr::setup(base, memory),
            Self::Pins(base, width) => tpiu::setup(base, width),
            Self::Memory(..) | Self::Ring(..) => Vec::new(),
        }
    }

    /// The steps after the source was switched off.
    pub(crate) fn stop(&self) -> Vec<Step> {
        match *self {
            Self::Etb(base) => etb::stop(base),
            Self::Tmc(base) | Self::Etr(base, _) => tmc::stop(base),
            Self::Pins(base, _) => tpiu::stop(base),
            Self::Memory(..) | Self::Ring(..) => Vec::new(),
        }
    }

    /// The steps after the trace was read.
    pub(crate) fn restore(&self) -> Vec<Step> {
        match *self {
            Self::Tmc(base) | Self::Etr(base, _) => vec![tmc::restore(base)],
            _ => Vec::new(),
        }
    }

    /// Reads the trace, the oldest first; nothing of what went through pins.
    pub(crate) fn read<C: Connection>(&self, client: &mut Client<C>) -> Result<Vec<u8>, Problem> {
        match *self {
            Self::Etb(base) => etb::read(client, base),
            Self::Tmc(base) => tmc::read(client, base),
            Self::Etr(base, memory) => etr::read(client, base, memory),
            Self::Memory((address, bytes)) => client.read(address, bytes),
            Self::Ring(memory, ring) => of_ring(client, memory, ring),
            Self::Pins(..) => Ok(Vec::new()),
        }
    }
}

/// The words of a ring, the oldest first. Frames keep their places in the ring, so the first is the first whole one.
fn of_ring<C: Connection>(
    client: &mut Client<C>,
    (address, bytes): Stretch,
    ring: Ring,
) -> Result<Vec<u8>, Problem> {
    const FRAME: u32 = 16;
    let left = client.read_word(ring.left)? & ring.of;
    let pointer = client.read_word(ring.pointer)?.wrapping_sub(address);
    let mut found = client.read(address, bytes)?;
    // A transfer that ends when the memory is full leaves the pointer at its end.
    let is_full = u64::from(ring.count.saturating_sub(left)) * 4 >= u64::from(bytes) || pointer >= bytes;
    if !is_full {
        found.truncate(pointer as usize);
    } else if left > 0 && pointer < bytes {
        let oldest = pointer.next_multiple_of(FRAME) % bytes;
        found.rotate_left(oldest as usize);
        found.truncate((bytes - (oldest.wrapping_sub(pointer) % bytes)) as usize);
    }
    Ok(found)
}
