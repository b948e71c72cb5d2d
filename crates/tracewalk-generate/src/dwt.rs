//! The packets that a DWT sends through an ITM for the stores that its comparator 0 watches, and their places in the
//! trace of the same path (ARMv7-M Architecture Reference Manual, DDI 0403E, D4.3.4).
//!
//! ```
//! use tracewalk::ids::{Address, TraceId};
//! use tracewalk_generate::dwt::Dwt;
//!
//! let id = TraceId::new(0x01).expect("a source's ID");
//! let dwt = Dwt { id, watched: Address::new(0x2000_0004) };
//! assert_eq!("0x01:0x20000004".parse(), Ok(dwt));
//! ```

use std::str::FromStr;

use tracewalk::frame::{Formatter, FormatterOptions};
use tracewalk::ids::{Address, TraceId};
use tracewalk::isa::Class;
use tracewalk::program::Program;
use tracewalk::protocol::itm::{Packet, Size, encode};

use crate::arguments::number;
use crate::path::{Access, Path, Step};
use crate::trace::Trace;

/// A DWT whose comparator 0 watches the stores to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dwt {
    /// The ITM's trace ID.
    pub id: TraceId,
    /// The value of `DWT_COMP0`.
    pub watched: Address,
}

/// How many packets of data follow a synchronisation packet.
const SYNCHRONISE_EVERY: usize = 50;

impl Dwt {
    /// CoreSight frames with the trace of `path` from another source, and this DWT's packets.
    ///
    /// A packet comes after the trace of its store, and before the next return from an exception: once the trace unit has
    /// sent a packet that the store's trace cannot follow. Not with a return stack, by which targets are not sent.
    #[must_use]
    pub fn frames(&self, path: &Path, program: &Program, source: TraceId, trace: &Trace) -> Vec<u8> {
        let mut output = Vec::new();
        let mut formatter = Formatter::new(FormatterOptions::default());
        let mut sent = 0;
        for (place, packets) in self.packets(path, program, trace) {
            formatter.write(source, trace.bytes.get(sent..place).unwrap_or_default(), &mut output);
            formatter.write(self.id, &packets, &mut output);
            sent = place;
        }
        formatter.write(source, trace.bytes.get(sent..).unwrap_or_default(), &mut output);
        formatter.flush(&mut output);
        output
    }

    /// Packets, and the number of bytes of `trace` before them.
    fn packets(&self, path: &Path, program: &Program, trace: &Trace) -> Vec<(usize, Vec<u8>)> {
        let mut packets = Vec::new();
        let mut waiting = Vec::new();
        let mut count = 0;
        let mut branched = false;
        for (step, &place) in path.steps.iter().zip(&trace.lengths) {
            match step {
                Step::Access(access) if access.store && access.address == self.watched => {
                    if count % SYNCHRONISE_EVERY == 0 {
                        encode(&Packet::Sync, &mut waiting);
                    }
                    count += 1;
                    self.store(access, &mut waiting);
                }
                // Every protocol sends the target of an indirect branch, and before it what it held back.
                Step::Instruction(_) if branched => packets.push((place, std::mem::take(&mut waiting))),
                Step::Exception(_) => packets.push((place, std::mem::take(&mut waiting))),
                _ => {}
            }
            if let Step::Instruction(executed) = step {
                let class = executed.classify(program).map(|instruction| instruction.class);
                branched = executed.passed && class == Some(Class::Indirect);
            }
        }
        packets.push((trace.bytes.len(), waiting));
        packets.retain(|(_, bytes)| !bytes.is_empty());
        packets
    }

    fn store(&self, access: &Access, output: &mut Vec<u8>) {
        let size = match access.bytes {
            1 => Size::Byte,
            2 => Size::Halfword,
            _ => Size::Word,
        };
        let low_half = u16::try_from(self.watched.get() & 0xffff).unwrap_or_default();
        encode(&Packet::DataAddress { comparator: 0, low_half }, output);
        if let Some(value) = access.value.and_then(|value| u32::try_from(value).ok()) {
            encode(&Packet::DataValue { comparator: 0, write: true, size, value }, output);
        }
    }
}

/// `ID:ADDRESS`
impl FromStr for Dwt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (id, watched) = text.split_once(':').ok_or("expected ID:ADDRESS")?;
        let id = u8::try_from(number("ID", id)?).ok().and_then(TraceId::new);
        let watched = Address::from(number("ADDRESS", watched)?);
        Ok(Self { id: id.ok_or("expected a trace ID, 0x01 to 0x6f")?, watched })
    }
}
