//! Headers of packets with addresses → the forms of the addresses (IHI 0064).

use crate::protocol::etmv4::address::{AddressForm, AddressUnit, Form};
use crate::protocol::etmv4::packet::header;

/// The form of an address packet with context.
pub(in crate::protocol::etmv4) const fn with_context_form(found: u8) -> Option<Form> {
    match found ^ header::ADDRESS_WITH_CONTEXT {
        0x2 => Some((AddressForm::Long32, AddressUnit::Words)),
        0x3 => Some((AddressForm::Long32, AddressUnit::Halfwords)),
        0x5 => Some((AddressForm::Long64, AddressUnit::Words)),
        0x6 => Some((AddressForm::Long64, AddressUnit::Halfwords)),
        _ => None,
    }
}

/// The form of an address packet without context.
pub(in crate::protocol::etmv4) const fn address_form(found: u8) -> Option<Form> {
    match found ^ header::ADDRESS_EXACT {
        index @ 0x0..=0x2 => Some((AddressForm::Exact(index), AddressUnit::Words)),
        0x5 => Some((AddressForm::Short, AddressUnit::Words)),
        0x6 => Some((AddressForm::Short, AddressUnit::Halfwords)),
        0xa => Some((AddressForm::Long32, AddressUnit::Words)),
        0xb => Some((AddressForm::Long32, AddressUnit::Halfwords)),
        0xd => Some((AddressForm::Long64, AddressUnit::Words)),
        0xe => Some((AddressForm::Long64, AddressUnit::Halfwords)),
        _ => None,
    }
}

/// The form of the address in a Q packet.
pub(in crate::protocol::etmv4) const fn q_form(found: u8) -> Option<Form> {
    match found ^ header::Q {
        index @ 0x0..=0x2 => Some((AddressForm::Exact(index), AddressUnit::Words)),
        0x5 => Some((AddressForm::Short, AddressUnit::Words)),
        0x6 => Some((AddressForm::Short, AddressUnit::Halfwords)),
        0xa => Some((AddressForm::Long32, AddressUnit::Words)),
        0xb => Some((AddressForm::Long32, AddressUnit::Halfwords)),
        _ => None,
    }
}

/// The form of a source address packet.
pub(in crate::protocol::etmv4) const fn source_form(found: u8) -> Option<Form> {
    match found ^ header::SOURCE_ADDRESS {
        index @ 0x0..=0x2 => Some((AddressForm::Exact(index), AddressUnit::Words)),
        0x4 => Some((AddressForm::Short, AddressUnit::Words)),
        0x5 => Some((AddressForm::Short, AddressUnit::Halfwords)),
        0x6 => Some((AddressForm::Long32, AddressUnit::Words)),
        0x7 => Some((AddressForm::Long32, AddressUnit::Halfwords)),
        0x8 => Some((AddressForm::Long64, AddressUnit::Words)),
        0x9 => Some((AddressForm::Long64, AddressUnit::Halfwords)),
        _ => None,
    }
}
