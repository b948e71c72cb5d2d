//! ETMv3 bytes → packets.

mod memo;

use crate::cursor::{Cursor, NeedInput};
use crate::ids::{Address, ContextId, Isa, Location, Vmid};
use crate::protocol::SecurityBits;
use crate::protocol::branch_address::{self, After, Alignment, ReadError};
use crate::protocol::compression::Compression;
use crate::protocol::synchronisation::{A_SYNC, Synchronisation, Unread, read_a_sync};
use crate::protocol::{ASync, Decode, ISyncReason, Malformation, Step, TakeItem};
use crate::span::StreamOffset;

use super::compression::{after_branch, after_i_sync};
use super::config::Config;
use super::exception::{BranchException, ExceptionInformation};
use super::packet::{
    Branch, DataAddress, ISync, PHeader, Packet, Tag, header, information, information_bytes,
};

/// The packet decoder.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Decoder {
    config: Config,
    compression: Compression,
    /// The last data address sent, which is compressed apart from instruction addresses.
    data_address: Address,
    synchronisation: Synchronisation,
}

impl Decoder {
    /// A decoder that searches for the first A-sync.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            config: *config,
            compression: Compression::default(),
            data_address: Address::new(0),
            synchronisation: Synchronisation::Searching,
        }
    }
}

impl Decode for Decoder {
    type Packet = Packet;

    const A_SYNC: Option<ASync> = Some(A_SYNC);

    #[inline]
    fn decode(&mut self, input: &[u8]) -> Step<Packet> {
        Synchronisation::step(
            self,
            |decoder| &mut decoder.synchronisation,
            input,
            Packet::ASync,
            |decoder, input| {
                let mut cursor = Cursor::new(input);
                let packet = decoder.packet(input, &mut cursor)?;
                Ok((packet, cursor.position()))
            },
            Self::forget_addresses,
        )
    }

    /// P-headers, and branch packets of one to four address bytes and nothing else: nearly all of a trace.
    #[inline]
    fn decode_frequent(
        &mut self,
        input: &[u8],
        start: StreamOffset,
        taker: &mut impl TakeItem<Packet>,
    ) -> usize {
        if self.synchronisation != Synchronisation::InStep {
            return 0;
        }
        let Some(mut base) = self.compression.base else { return 0 };
        let Some(alignment) = Alignment::of(base.isa) else { return 0 };
        let mut at = 0;
        while let Some(bytes) = input.get(at..).and_then(<[u8]>::first_chunk::<8>) {
            let byte = bytes[0];
            if byte & (header::P_HEADER | header::BRANCH) == header::P_HEADER {
                let Some(p_header) = PHeader::new(byte, self.config.cycle_accurate) else { break };
                taker.take_packet(Packet::PHeader(p_header), input, start, at..at + 1);
                at += 1;
            } else if byte & header::BRANCH != 0 {
                let short =
                    branch_address::read_short(*bytes, self.config.address_encoding, base.address, alignment);
                let Some((address, length)) = short else { break };
                base.address = address;
                let branch = Branch { target: Some(base), states_isa: false, exception: None };
                taker.take_packet(Packet::Branch(branch), input, start, at..at + length);
                at += length;
            } else {
                break;
            }
        }
        self.compression.base = Some(base);
        at
    }

    fn truncated(&self, input: &[u8]) -> Malformation {
        if self.synchronisation == Synchronisation::Searching {
            return Malformation::Truncated { packet: "a_sync" };
        }
        Malformation::Truncated { packet: input.first().map_or("a_sync", |&byte| header::packet_name(byte)) }
    }

    fn desynchronise(&mut self) {
        self.synchronisation = Synchronisation::Searching;
        self.forget_addresses();
    }
}

impl Decoder {
    /// Forgets the addresses after lost packets, whose values are unknown.
    fn forget_addresses(&mut self) {
        self.compression.forget_base();
        self.data_address = Address::new(0);
    }

    /// Table 7.1 of IHI 0014Q.
    fn packet<'a>(&mut self, input: &'a [u8], cursor: &mut Cursor<'a>) -> Result<Packet, Unread> {
        let byte = cursor.byte()?;
        if byte & header::BRANCH != 0 {
            return self.branch(input, cursor);
        }
        if byte & header::P_HEADER != 0 {
            let p_header = PHeader::new(byte, self.config.cycle_accurate);
            return Ok(Packet::PHeader(p_header.ok_or(Malformation::ReservedHeader { found: byte })?));
        }
        match byte {
            header::A_SYNC => read_a_sync(A_SYNC, input, cursor).map(|()| Packet::ASync),
            header::CYCLE_COUNT => {
                self.require(self.config.cycle_accurate, "cycle_count", "ETMCR[12]")?;
                Ok(Packet::CycleCount(Self::cycle_count(cursor)?))
            }
            header::I_SYNC => self.i_sync(cursor, None),
            header::I_SYNC_WITH_CYCLES => {
                self.require(self.config.cycle_accurate, "cycle-counting i_sync", "ETMCR[12]")?;
                let cycles = Self::cycle_count(cursor)?;
                self.i_sync(cursor, Some(cycles))
            }
            header::TRIGGER => Ok(Packet::Trigger),
            // 0TT0SS00, TT != 0
            0x20 | 0x24 | 0x28 | 0x2c | 0x40 | 0x44 | 0x48 | 0x4c | 0x60 | 0x64 | 0x68 | 0x6c => {
                self.require_data("ooo_data")?;
                let tag = Self::tag(byte >> 5)?;
                Ok(Packet::OutOfOrderData { tag, value: self.value(cursor, byte)? })
            }
            header::STORE_FAILED => {
                self.require_data("store_failed")?;
                Ok(Packet::StoreFailed)
            }
            // 01A1TT00, TT != 0
            0x54 | 0x58 | 0x5c | 0x74 | 0x78 | 0x7c => {
                self.require_data("ooo_placeholder")?;
                let tag = Self::tag(byte >> 2)?;
                Ok(Packet::OutOfOrderPlaceholder {
                    tag,
                    address: self.data_address(cursor, byte & 0b0010_0000)?,
                })
            }
            // 00A0SS10
            0x02 | 0x06 | 0x0a | 0x0e | 0x22 | 0x26 | 0x2a | 0x2e => {
                self.require_data("normal_data")?;
                let address = self.data_address(cursor, byte & 0b0010_0000)?;
                Ok(Packet::NormalData { address, value: self.value(cursor, byte)? })
            }
            header::DATA_SUPPRESSED => {
                self.require_data("data_suppressed")?;
                Ok(Packet::DataSuppressed)
            }
            header::VALUE_NOT_TRACED | header::VALUE_NOT_TRACED_WITH_ADDRESS => {
                self.require_data("value_not_traced")?;
                Ok(Packet::ValueNotTraced { address: self.data_address(cursor, byte & 0b0001_0000)? })
            }
            header::VMID => {
                self.require_version(5, "vmid")?;
                Ok(Packet::Vmid(Vmid(cursor.byte()?.into())))
            }
            header::TIMESTAMP | header::TIMESTAMP_CLOCK_CHANGED => {
                self.require_version(5, "timestamp")?;
                self.timestamp(cursor, byte == header::TIMESTAMP_CLOCK_CHANGED)
            }
            header::IGNORE => Ok(Packet::Ignore),
            header::CONTEXT_ID => {
                self.require(self.config.context_id_size.bytes() != 0, "context_id", "ETMCR[15:14]")?;
                Ok(Packet::ContextId(ContextId(
                    cursor.little_endian_word(self.config.context_id_size.bytes())?,
                )))
            }
            header::EXCEPTION_EXIT => {
                self.require_version(self.config.exception_exit_since(), "exception_return")?;
                Ok(Packet::ExceptionExit)
            }
            header::EXCEPTION_ENTRY if self.config.has_exception_entry() => Ok(Packet::ExceptionEntry),
            // Reserved: 0001xx00, 00110x00, 00111000; then 00x1xx10, 010x1x10, 0101xx10, and the rest of the table.
            0x10 | 0x14 | 0x18 | 0x1c | 0x30 | 0x34 | 0x38 => Err(reserved(byte)),
            0x12 | 0x16 | 0x1a | 0x1e | 0x32 | 0x36 | 0x3a | 0x3e => Err(reserved(byte)),
            0x4a | 0x4e | 0x52 | 0x56 | 0x5a | 0x5e | 0x72 | header::EXCEPTION_ENTRY => Err(reserved(byte)),
            // The branches above take odd headers and those from 0x80 on.
            _ => Err(reserved(byte)),
        }
    }

    /// One to five bytes of seven bits, least significant first.
    fn cycle_count(cursor: &mut Cursor<'_>) -> Result<u32, NeedInput> {
        let mut cycles = 0;
        for index in 0..5 {
            let byte = cursor.byte()?;
            cycles |= u64::from(byte & 0b0111_1111) << (7 * index);
            if byte & 0b1000_0000 == 0 {
                break;
            }
        }
        // The fifth byte has room for more than the counter's 32 bits.
        Ok(u32::try_from(cycles & u64::from(u32::MAX)).unwrap_or(u32::MAX))
    }

    fn i_sync(&mut self, cursor: &mut Cursor<'_>, cycles: Option<u32>) -> Result<Packet, Unread> {
        let context_id = match self.config.context_id_size.bytes() {
            0 => None,
            bytes => Some(ContextId(cursor.little_endian_word(bytes)?)),
        };
        let byte = cursor.byte()?;
        if byte & information::ALWAYS_SET == 0 {
            return Err(reserved_value("i_sync", "information", byte, "bit 0 to be set"));
        }
        let mut location = None;
        let mut in_progress = None;
        if self.config.instructions {
            let at = i_sync_location(byte, cursor.little_endian_word(4)?);
            if !at.is_possible() {
                let found = at.address.get();
                let expected = "a multiple of 4 in ARM state";
                return Err(Malformation::ReservedValue {
                    packet: "i_sync",
                    field: "address",
                    found,
                    expected,
                }
                .into());
            }
            location = Some(at);
            if byte & information::LOAD_STORE_IN_PROGRESS != 0 {
                in_progress = Some(at);
                location = Some(self.next_instruction(cursor, at)?);
            }
        }
        let i_sync = ISync {
            reason: ISyncReason::from_bits(byte >> information::REASON_SHIFT),
            location,
            in_progress,
            security: SecurityBits {
                non_secure: byte & information::NON_SECURE != 0,
                hypervisor: byte & information::HYPERVISOR != 0,
            },
            context_id,
            cycles,
        };
        after_i_sync(&mut self.compression, &i_sync);
        Ok(Packet::ISync(i_sync))
    }

    /// The second address of an I-sync with a load or store in progress, compressed against the first.
    fn next_instruction(&self, cursor: &mut Cursor<'_>, first: Location) -> Result<Location, Unread> {
        let (address, alignment) = branch_address::base(Some(first));
        if let Some(byte) = cursor.peek().filter(|byte| byte & header::BRANCH == 0) {
            return Err(reserved_value(
                "i_sync",
                "second address",
                byte,
                "bit 0 of the first byte to be set",
            ));
        }
        let mut unread = *cursor;
        let field = branch_address::read(cursor, self.config.address_encoding, address, alignment)
            .map_err(|error| address_failure("i_sync", error))?;
        if field.after != After::Nothing {
            // The address's last byte announces exception information.
            let mut last = 0;
            while unread.position() < cursor.position() {
                last = unread.byte()?;
            }
            return Err(reserved_value("i_sync", "second address", last, "no exception information"));
        }
        let alternative = first.isa == Isa::T32EE;
        Ok(Location::new(field.address, field.alignment.unwrap_or(alignment).isa(alternative)))
    }

    fn branch<'a>(&mut self, input: &'a [u8], cursor: &mut Cursor<'a>) -> Result<Packet, Unread> {
        // The header is the first address byte.
        *cursor = Cursor::new(input);
        let (_, base_alignment) = branch_address::base(self.compression.base);
        let field = self
            .compression
            .read_address(cursor, self.config.address_encoding)
            .map_err(|error| address_failure("branch", error))?;
        let exception = match field.after {
            After::Nothing => None,
            After::ExceptionInformation => {
                Some(BranchException::Information(self.exception_information(cursor)?))
            }
            After::Deprecated { code, cancel } => Some(BranchException::Deprecated { code, cancel }),
        };
        let alternative = match exception {
            Some(BranchException::Information(information)) => information.alternative_isa,
            _ => self.compression.alternative_isa,
        };
        let isa = field.alignment.unwrap_or(base_alignment).isa(alternative);
        let known = field.alignment.is_some() || self.compression.base.is_some();
        let branch = Branch {
            target: known.then_some(Location::new(field.address, isa)),
            states_isa: field.alignment.is_some(),
            exception,
        };
        after_branch(&mut self.compression, &branch);
        Ok(Packet::Branch(branch))
    }

    fn exception_information(&self, cursor: &mut Cursor<'_>) -> Result<ExceptionInformation, Unread> {
        use information_bytes as bits;
        let byte_0 = cursor.byte()?;
        let mut information = ExceptionInformation {
            code: u16::from(byte_0 >> 1 & 0b1111),
            cancel: byte_0 & bits::CANCEL != 0,
            alternative_isa: byte_0 & bits::ALTERNATIVE_ISA != 0,
            security: SecurityBits {
                non_secure: byte_0 & bits::NON_SECURE != 0,
                ..self.compression.security
            },
            resume: 0,
        };
        if byte_0 & bits::CONTINUES == 0 {
            return Ok(information);
        }
        let mut byte = cursor.byte()?;
        if byte & bits::IS_BYTE_2 == 0 {
            information.code |= u16::from(byte & 0b0001_1111) << 4;
            information.security.hypervisor = byte & bits::HYPERVISOR != 0;
            if byte & bits::CONTINUES == 0 {
                return Ok(information);
            }
            byte = cursor.byte()?;
        }
        if byte & bits::IS_BYTE_2 == 0 || byte & bits::CONTINUES != 0 {
            return Err(reserved_value(
                "branch",
                "exception information byte 2",
                byte,
                "bits 7:6 to be 0b01",
            ));
        }
        information.resume = byte & 0b1111;
        Ok(information)
    }

    fn timestamp(&mut self, cursor: &mut Cursor<'_>, clock_changed: bool) -> Result<Packet, Unread> {
        let format = self.config.timestamp;
        self.compression.timestamp = format.read(cursor, self.compression.timestamp)?;
        Ok(Packet::Timestamp { value: format.value(self.compression.timestamp), clock_changed })
    }

    /// Up to five bytes of seven bits, least significant first, compressed against the last data address; the
    /// fifth holds `A[31:28]` in 3:0 and the byte order in 4.
    fn data_address(
        &mut self,
        cursor: &mut Cursor<'_>,
        present: u8,
    ) -> Result<Option<DataAddress>, NeedInput> {
        if present == 0 || !self.config.data.addresses {
            return Ok(None);
        }
        let mut address = self.data_address.low_word();
        let mut big_endian = None;
        for index in 0..4 {
            let byte = cursor.byte()?;
            let mask = 0b0111_1111 << (7 * index);
            address = address & !mask | u32::from(byte) << (7 * index) & mask;
            if byte & 0b1000_0000 == 0 {
                break;
            }
            if index == 3 {
                let last = cursor.byte()?;
                address = address & 0x0fff_ffff | u32::from(last & 0b1111) << 28;
                big_endian = Some(last & 0b0001_0000 != 0);
            }
        }
        self.data_address = Address::from(address);
        Ok(Some(DataAddress { address: Address::from(address), big_endian }))
    }

    /// SS in bits 3:2 of the header: 0, 1, 2 or 4 bytes.
    fn value(&self, cursor: &mut Cursor<'_>, header: u8) -> Result<Option<u32>, NeedInput> {
        if !self.config.data.values {
            return Ok(None);
        }
        let bytes = match header >> 2 & 0b11 {
            0b00 => 0,
            0b01 => 1,
            0b10 => 2,
            _ => 4,
        };
        cursor.little_endian_word(bytes).map(Some)
    }

    fn tag(bits: u8) -> Result<Tag, Unread> {
        let number = bits & 0b11;
        Tag::new(number).ok_or_else(|| reserved_value("ooo_data", "tag", number, "1 to 3"))
    }

    fn require(&self, enabled: bool, packet: &'static str, setting: &'static str) -> Result<(), Unread> {
        if enabled { Ok(()) } else { Err(Malformation::NotEnabled { packet, setting }.into()) }
    }

    fn require_data(&self, packet: &'static str) -> Result<(), Unread> {
        self.require(self.config.data.any(), packet, "ETMCR[3:2]")
    }

    fn require_version(&self, minor: u8, packet: &'static str) -> Result<(), Unread> {
        self.require(self.config.minor_version >= minor, packet, "ETMIDR[7:4]")
    }
}

/// The location of an I-sync: the information byte and the T bit give the instruction set.
///
/// IHI 0014Q does not state whether bit 0 is part of a Jazelle address. This decoder includes it, because
/// bytecodes are byte-aligned.
fn i_sync_location(information: u8, address: u32) -> Location {
    if information & information::JAZELLE != 0 {
        return Location::new(Address::from(address), Isa::Jazelle);
    }
    match (address & 1 != 0, information & information::ALTERNATIVE_ISA != 0) {
        (false, _) => Location::new(Address::from(address), Isa::A32),
        (true, false) => Location::new(Address::from(address & !1), Isa::T32),
        (true, true) => Location::new(Address::from(address & !1), Isa::T32EE),
    }
}

fn reserved(found: u8) -> Unread {
    Unread::Malformed(Malformation::ReservedHeader { found })
}

fn reserved_value(packet: &'static str, field: &'static str, found: u8, expected: &'static str) -> Unread {
    Unread::Malformed(Malformation::ReservedValue { packet, field, found: u64::from(found), expected })
}

fn address_failure(packet: &'static str, error: ReadError) -> Unread {
    match error {
        ReadError::NeedInput => Unread::NeedInput,
        ReadError::Reserved { found } => {
            reserved_value(packet, "address byte 5", found, "0C001xxx, 0C01xxxx or 0C1xxxxx")
        }
    }
}
