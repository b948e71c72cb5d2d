//! Addresses as packets send them: compressed against the last three addresses.

use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use crate::cursor::Cursor;
use crate::ids::Address;
use crate::protocol::synchronisation::Unread;

/// An address as a packet sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentAddress {
    /// The address. `None` while the base of the compressed address is unknown.
    pub address: Option<Address>,
    /// The IS bit.
    pub alignment: AddressUnit,
    /// The part of the address that was sent.
    pub form: AddressForm,
}

/// The IS bit of an address. The context decides whether words are A32 or A64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum AddressUnit {
    /// IS0: A32 or A64.
    #[default]
    Words,
    /// IS1: T32.
    Halfwords,
}

/// The part of an address that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressForm {
    /// Nothing: the address is in this address register, 0 to 2.
    Exact(u8),
    /// One byte or two: up to bit 16, with halfwords up to bit 15.
    Short,
    /// Bits 31 to 0.
    Long32,
    /// All bits.
    Long64,
}

/// An address form and its alignment, which the header states.
pub(super) type Form = (AddressForm, AddressUnit);

/// One of the last addresses sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Entry {
    /// `None` if unknown.
    address: Option<Address>,
    alignment: AddressUnit,
}

/// The last three addresses that were sent, newest first. Every address sent is added, compressed or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct AddressRegisters([Entry; 3]);

/// The parts in which registers differ. A memo hashes them for each window that it learns.
impl Hash for AddressRegisters {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self(entries) = self;
        entries.iter().for_each(|entry| entry.address.map_or(1, Address::get).hash(state));
    }
}

impl AddressUnit {
    /// The number of the lowest bit that is sent.
    const fn lowest_bit(self) -> u32 {
        match self {
            Self::Words => 2,
            Self::Halfwords => 1,
        }
    }

    /// The IS bit.
    #[must_use]
    pub const fn bit(self) -> u8 {
        match self {
            Self::Words => 0,
            Self::Halfwords => 1,
        }
    }
}

impl AddressForm {
    /// The name in listings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact(_) => "exact",
            Self::Short => "short",
            Self::Long32 => "long32",
            Self::Long64 => "long64",
        }
    }
}

impl AddressRegisters {
    /// The registers after a loss of trace.
    pub(super) const UNKNOWN: Self = Self([Entry { address: None, alignment: AddressUnit::Words }; 3]);

    /// The registers after a trace info packet.
    pub(super) const RESET: Self =
        Self([Entry { address: Some(Address::new(0)), alignment: AddressUnit::Words }; 3]);

    const fn push(&mut self, entry: Entry) {
        let Self([first, second, _]) = *self;
        *self = Self([entry, first, second]);
    }

    fn newest(&self) -> Option<u64> {
        let Self([newest, ..]) = self;
        newest.address.map(Address::get)
    }

    /// Reads the address of this form after a header.
    pub(super) fn read(
        &mut self,
        cursor: &mut Cursor<'_>,
        (form, alignment): Form,
    ) -> Result<SentAddress, Unread> {
        let entry = match form {
            AddressForm::Exact(index) => self.0.get(usize::from(index)).copied().unwrap_or_default(),
            AddressForm::Short => {
                let (sent, mask) = read_short(cursor, alignment)?;
                let address = self.newest().map(|base| base & !mask | sent);
                Entry { address: address.map(Address::new), alignment }
            }
            AddressForm::Long32 => {
                let sent = read_long(cursor, alignment, 4)?;
                let address = self.newest().map(|base| base & !0xffff_ffff | sent);
                Entry { address: address.map(Address::new), alignment }
            }
            AddressForm::Long64 => {
                Entry { address: Some(Address::new(read_long(cursor, alignment, 8)?)), alignment }
            }
        };
        self.push(entry);
        let Entry { address, alignment } = entry;
        Ok(SentAddress { address, alignment, form })
    }

    /// Appends an address; `false` if [`AddressRegisters::read`] would not read it back.
    pub(super) fn write(&mut self, sent: SentAddress, bytes: &mut Vec<u8>) -> bool {
        let before = bytes.len();
        let address = sent.address.map_or(0, Address::get);
        match sent.form {
            AddressForm::Exact(_) => {}
            AddressForm::Short => write_short(address, self.newest(), sent.alignment, bytes),
            AddressForm::Long32 => write_long(address, sent.alignment, 4, bytes),
            AddressForm::Long64 => write_long(address, sent.alignment, 8, bytes),
        }
        let mut registers = *self;
        let written = bytes.get(before..).unwrap_or_default();
        let read = registers.read(&mut Cursor::new(written), (sent.form, sent.alignment));
        let is_same = read == Ok(sent);
        if is_same {
            *self = registers;
        }
        is_same
    }
}

/// C and seven bits, then eight more bits if C is set. The result's second part is a mask of the bits sent.
fn read_short(cursor: &mut Cursor<'_>, alignment: AddressUnit) -> Result<(u64, u64), Unread> {
    let lowest = alignment.lowest_bit();
    let first = cursor.byte()?;
    let (mut sent, mut bits) = (u64::from(first & 0b0111_1111), 7);
    if first & 0b1000_0000 != 0 {
        sent |= u64::from(cursor.byte()?) << bits;
        bits += 8;
    }
    // Bits below the alignment are 0.
    Ok((sent << lowest, (1 << (bits + lowest)) - 1))
}

fn write_short(address: u64, base: Option<u64>, alignment: AddressUnit, bytes: &mut Vec<u8>) {
    let lowest = alignment.lowest_bit();
    let [low, high, ..] = (address >> lowest << 1).to_le_bytes();
    let fits = base.is_some_and(|base| (base ^ address) >> (lowest + 7) == 0);
    // `low` holds seven bits above a zero, so that the next eight begin with the next byte.
    bytes.push(low >> 1 | if fits { 0 } else { 0b1000_0000 });
    if !fits {
        bytes.push(high);
    }
}

/// Seven bits, then with words seven more and with halfwords eight, then whole bytes.
fn read_long(cursor: &mut Cursor<'_>, alignment: AddressUnit, length: u32) -> Result<u64, Unread> {
    let first = u64::from(cursor.byte()? & 0b0111_1111);
    let second = u64::from(cursor.byte()?);
    let mut address = match alignment {
        AddressUnit::Words => first << 2 | (second & 0b0111_1111) << 9,
        AddressUnit::Halfwords => first << 1 | second << 8,
    };
    for index in 2..length {
        address |= u64::from(cursor.byte()?) << (8 * index);
    }
    Ok(address)
}

fn write_long(address: u64, alignment: AddressUnit, length: usize, bytes: &mut Vec<u8>) {
    let whole = address.to_le_bytes();
    let [_, second, ..] = whole;
    let [first, ..] = (address >> alignment.lowest_bit()).to_le_bytes();
    let second = match alignment {
        AddressUnit::Words => second >> 1,
        AddressUnit::Halfwords => second,
    };
    bytes.extend([first & 0b0111_1111, second]);
    bytes.extend(whole.iter().take(length).skip(2));
}
