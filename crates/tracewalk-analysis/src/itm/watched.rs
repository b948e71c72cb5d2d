//! The data that the DWT's comparators watch.

use std::sync::Arc;

use tracewalk::ids::Address;
use tracewalk::protocol::itm::Packet;

use super::ItmEvent;
use crate::Code;

/// The number of comparators that packets can name.
const COMPARATORS: usize = 4;

/// Names accesses by the data objects of a program. A packet has only the low half of an address; the high half is that of the
/// comparator's stated address, or of the only variable with such an address.
#[derive(Clone, Debug)]
pub struct Watched {
    code: Arc<Code>,
    stated: [Option<Address>; COMPARATORS],
    /// The last access that each comparator reported, or else its stated address.
    last: [Option<Address>; COMPARATORS],
}

impl Watched {
    /// The comparators of a core with this program, which watch these addresses, as far as they are stated.
    #[must_use]
    pub const fn new(code: Arc<Code>, stated: [Option<Address>; COMPARATORS]) -> Self {
        Self { code, stated, last: stated }
    }

    /// Takes the next event. If it is a comparator's access to a data object, returns the address of the object.
    pub fn event(&mut self, event: &ItmEvent) -> Option<Address> {
        let at = self.address(event)?;
        Some(self.code.symbols.object(at)?.start)
    }

    /// As [`event`](Self::event), but returns the address of the access.
    pub(crate) fn address(&mut self, event: &ItmEvent) -> Option<Address> {
        let ItmEvent::Packet(packet) = event else { return None };
        let (Packet::DataPc { comparator, .. }
        | Packet::DataAddress { comparator, .. }
        | Packet::DataValue { comparator, .. }) = packet
        else {
            return None;
        };
        let index = usize::from(*comparator);
        if let Packet::DataAddress { low_half, .. } = packet {
            let whole = |stated: &Address| Address::new(stated.get() & !0xffff | u64::from(*low_half));
            let stated = self.stated.get(index).copied().flatten();
            let found =
                stated.as_ref().map(whole).or_else(|| self.code.symbols.data_with_low_half(*low_half));
            *self.last.get_mut(index)? = found;
        }
        *self.last.get(index)?
    }

    /// As [`event`](Self::event), but returns the object's name.
    pub fn name(&mut self, event: &ItmEvent) -> Option<String> {
        let at = self.event(event)?;
        Some(self.code.symbols.object(at)?.name)
    }
}
