//! Bytes → packets.

mod forms;
mod memo;

use crate::cursor::Cursor;
use crate::ids::Profile;
use crate::protocol::synchronisation::{Synchronisation, Unread, read_a_sync};
use crate::protocol::{ASync, Decode, Malformation, Step, TakeItem};
use crate::span::StreamOffset;

use super::address::{AddressRegisters, Form, SentAddress};
use super::atoms::Atoms;
use super::conditional;
use super::config::{Config, Version};
use super::fields::{
    LONGEST_NUMBER, not_enabled, read_context, read_cycles, read_number, read_timestamp, reserved,
};
use super::packet::{
    AddressInterpretation, AddressPacket, Cancel, CycleCount, DataSynchronisation, Exception,
    Instrumentation, Packet, Q, Timestamp, TraceInfo, control, exception_byte, extension, header,
};

pub(super) use forms::{address_form, q_form, source_form, with_context_form};

/// The A-sync of ETMv4 and ETE.
pub(super) const A_SYNC: ASync = ASync::ELEVEN_ZEROS;

/// The packet decoder.
///
/// Before the first A-sync, and after malformed bytes, the decoder searches for the next A-sync. After a
/// header that is reserved, or that the configuration excludes, it reads packets on trial up to there.
/// [`Lowering`](super::Lowering) ignores packets before the first trace info packet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Decoder {
    config: Config,
    synchronisation: Synchronisation,
    compression: Compression,
}

/// The state that packets are compressed against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Compression {
    pub(super) addresses: AddressRegisters,
    /// The last timestamp.
    pub(super) timestamp: u64,
    /// The base that is added to every cycle count.
    pub(super) threshold: u64,
}

impl Compression {
    /// The state before any trace info packet.
    pub(super) const UNKNOWN: Self =
        Self { addresses: AddressRegisters::UNKNOWN, timestamp: 0, threshold: 0 };

    /// The state after a trace info packet.
    pub(super) const fn reset(threshold: u64) -> Self {
        Self { addresses: AddressRegisters::RESET, timestamp: 0, threshold }
    }
}

impl Decoder {
    /// A decoder for the start of a source's trace.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            config: *config,
            synchronisation: Synchronisation::Searching,
            compression: Compression::UNKNOWN,
        }
    }

    /// Reads the packet at the start of `input`. The state changes only if the packet is complete.
    fn packet(&mut self, input: &[u8], cursor: &mut Cursor<'_>) -> Result<Packet, Unread> {
        let found = cursor.byte()?;
        if let Some(atoms) = Atoms::from_header(found) {
            return Ok(Packet::Atom(atoms));
        }
        let mut next = self.compression;
        let reader = Reader { config: &self.config, next: &mut next };
        let packet = match found {
            0x00..=0x0b => reader.low(found, input, cursor)?,
            0x0c..=0x1f => Packet::CycleCount(reader.cycle_count(found, cursor)?),
            0x20..=0x2c => reader.data_synchronisation(found)?,
            0x2d..=0x3f => speculation(found, cursor)?,
            0x40..=0x6f => conditional::read(self.config.conditional.is_some(), found, cursor)?,
            header::IGNORE if self.config.version < Version::Etmv4(3) => return Err(reserved(found)),
            header::IGNORE => Packet::Ignore,
            0x71..=0x7f => Packet::Event(found & 0b1111),
            0x80..=0xbf => reader.address_or_context(found, cursor)?,
            // Atoms, above.
            0xc0..=0xff => return Err(reserved(found)),
        };
        // A packet read on trial may be read twice, and its addresses have no known base.
        if self.synchronisation == Synchronisation::InStep {
            self.compression = next;
        }
        Ok(packet)
    }
}

/// Reads packets of one trace unit; `next` becomes the state that the next packet is compressed against.
struct Reader<'a> {
    config: &'a Config,
    next: &'a mut Compression,
}

impl Reader<'_> {
    /// Headers up to 0x0b.
    fn low(self, found: u8, input: &[u8], cursor: &mut Cursor<'_>) -> Result<Packet, Unread> {
        let is_ete = self.config.is_ete();
        Ok(match found {
            header::EXTENSION => self.extension(input, cursor)?,
            header::TRACE_INFO => {
                let trace_info = trace_info(cursor)?;
                *self.next = Compression::reset(trace_info.threshold);
                Packet::TraceInfo(trace_info)
            }
            header::TIMESTAMP | header::TIMESTAMP_WITH_CYCLES => {
                Packet::Timestamp(self.timestamp(found, cursor)?)
            }
            header::TRACE_ON => Packet::TraceOn,
            header::FUNCTION_RETURN
                if self.config.profile == Profile::M
                    && (Version::Etmv4(2)..Version::Ete(0)).contains(&self.config.version) =>
            {
                Packet::FunctionReturn
            }
            header::EXCEPTION => self.exception(cursor)?,
            header::EXCEPTION_RETURN if !is_ete => Packet::ExceptionReturn,
            header::EXCEPTION_RETURN => return Err(not_enabled("exception_return", "ETMv4")),
            header::INSTRUMENTATION if self.config.version >= Version::Ete(3) => {
                let exception_level = cursor.byte()? & 0b11;
                let mut value = 0;
                for index in 0..8 {
                    value |= u64::from(cursor.byte()?) << (8 * index);
                }
                Packet::Instrumentation(Instrumentation { exception_level, value })
            }
            header::TRANSACTION_START if is_ete => Packet::TransactionStart,
            header::TRANSACTION_COMMIT if is_ete => Packet::TransactionCommit,
            _ => return Err(reserved(found)),
        })
    }

    fn extension(self, input: &[u8], cursor: &mut Cursor<'_>) -> Result<Packet, Unread> {
        Ok(match cursor.peek().ok_or(Unread::NeedInput)? {
            extension::A_SYNC => {
                read_a_sync(A_SYNC, input, cursor)?;
                return Ok(Packet::ASync);
            }
            found => {
                cursor.byte()?;
                match found {
                    extension::DISCARD => Packet::Discard,
                    extension::OVERFLOW => Packet::Overflow,
                    extension::BRANCH_FUTURE_FLUSH if self.config.profile == Profile::M => {
                        Packet::BranchFutureFlush
                    }
                    _ => {
                        let reason = Malformation::ReservedValue {
                            packet: "extension",
                            field: "second byte",
                            found: u64::from(found),
                            expected: match self.config.profile {
                                Profile::M => "0x03, 0x05, 0x07 or an A-sync",
                                Profile::Ar => "0x03, 0x05 or an A-sync",
                            },
                        };
                        return Err(Unread::Reserved(reason, 2));
                    }
                }
            }
        })
    }

    fn timestamp(self, found: u8, cursor: &mut Cursor<'_>) -> Result<Timestamp, Unread> {
        let value = read_timestamp(cursor, self.next.timestamp)?;
        let cycles = if found == header::TIMESTAMP_WITH_CYCLES {
            let cycles = read_cycles(cursor, "timestamp")?;
            Some(cycles & ((1 << self.config.cycle_counter_bits) - 1))
        } else {
            None
        };
        self.next.timestamp = value;
        Ok(Timestamp { value, cycles })
    }

    fn exception(self, cursor: &mut Cursor<'_>) -> Result<Packet, Unread> {
        use exception_byte as bits;
        let first = cursor.byte()?;
        let low = (first & bits::TYPE) >> bits::TYPE_SHIFT;
        if self.config.is_ete() && matches!(low, bits::RESET | bits::FAILURE) {
            // One more byte follows, whatever bit 7 of the first is. A value of 0x70 was observed; the
            // meaning is unknown.
            cursor.byte()?;
            return Ok(if low == bits::RESET { Packet::PeReset } else { Packet::TransactionFailure });
        }
        let second = if first & bits::CONTINUES != 0 { cursor.byte()? } else { 0 };
        if second & bits::SECOND_RESERVED != 0 {
            let (field, found) = ("byte 2", u64::from(second));
            let expected = "bits 7 and 6 clear";
            return Err(Malformation::ReservedValue { packet: "exception", field, found, expected }.into());
        }
        let high = u16::from(second & bits::SECOND_TYPE);
        Ok(Packet::Exception(Exception {
            number: u16::from(low) | high << bits::SECOND_TYPE_SHIFT,
            address: AddressInterpretation::from_bits(first & bits::E1 != 0, first & bits::E0 != 0),
            fault_pending: second & bits::FAULT_PENDING != 0,
        }))
    }

    fn cycle_count(self, found: u8, cursor: &mut Cursor<'_>) -> Result<CycleCount, Unread> {
        let commits = self.config.cycle_counts_commit;
        let threshold = self.next.threshold;
        let first_bit = found & 0b1 != 0;
        Ok(match found {
            header::CYCLE_COUNT_3.. => {
                let (commit, count) = (u64::from(found >> 2 & 0b11), u64::from(found & 0b11));
                let commit = commits.then_some(commit + 1);
                CycleCount { format: 3, commit, cycles: Some(count + threshold) }
            }
            header::CYCLE_COUNT_1.. => {
                let commit =
                    if commits { Some(read_number(cursor, "cycle_count", LONGEST_NUMBER)?) } else { None };
                let count =
                    if first_bit { None } else { Some(read_cycles(cursor, "cycle_count")? + threshold) };
                CycleCount { format: 1, commit, cycles: count }
            }
            _ => {
                let byte = cursor.byte()?;
                let (commit, count) = (u64::from(byte >> 4), u64::from(byte & 0b1111));
                let commit = if first_bit {
                    (commit + u64::from(self.config.greatest_speculation)).checked_sub(15)
                } else {
                    Some(commit + 1)
                };
                if commits && commit.is_none() {
                    return Err(Malformation::ReservedValue {
                        packet: "cycle_count",
                        field: "commit count",
                        found: u64::from(byte),
                        expected: "a commit count of at least 0 with this TRCIDR8",
                    }
                    .into());
                }
                let commit = commit.filter(|_| commits);
                CycleCount { format: 2, commit, cycles: Some(count + threshold) }
            }
        })
    }

    fn data_synchronisation(self, found: u8) -> Result<Packet, Unread> {
        if !self.config.data_trace {
            return Err(not_enabled("data_synchronisation", "TRCIDR0.TRCDATA"));
        }
        Ok(Packet::DataSynchronisation(match found.checked_sub(header::UNNUMBERED) {
            Some(marker) => DataSynchronisation::Unnumbered(marker),
            None => DataSynchronisation::Numbered(found - header::DATA_SYNCHRONISATION),
        }))
    }

    /// Headers from 0x80 to 0xbf.
    fn address_or_context(self, found: u8, cursor: &mut Cursor<'_>) -> Result<Packet, Unread> {
        let mut address = |cursor: &mut Cursor<'_>, form| self.next.addresses.read(cursor, form);
        Ok(match found {
            header::SAME_CONTEXT => Packet::Context(None),
            header::CONTEXT => Packet::Context(Some(read_context(cursor, self.config)?)),
            header::TIMESTAMP_MARKER if self.config.has_timestamp_markers() => Packet::TimestampMarker,
            0x82..=0x8f => {
                let sent = address(cursor, with_context_form(found).ok_or(reserved(found))?)?;
                let context = Some(read_context(cursor, self.config)?);
                Packet::Address(AddressPacket { sent, context })
            }
            0x90..=0x9f => {
                let sent = address(cursor, address_form(found).ok_or(reserved(found))?)?;
                Packet::Address(AddressPacket { sent, context: None })
            }
            0xa0..=0xaf if !self.config.q_elements => return Err(not_enabled("q", "TRCIDR0.QSUPP")),
            0xa0..=0xaf => q(found, cursor, address)?,
            _ if !self.config.is_ete() => return Err(reserved(found)),
            _ => Packet::SourceAddress(address(cursor, source_form(found).ok_or(reserved(found))?)?),
        })
    }
}

/// A Q packet with a count only, and one without any fields.
pub(super) const Q_COUNT: u8 = 0xac;
pub(super) const Q_PLAIN: u8 = 0xaf;

fn q(
    found: u8,
    cursor: &mut Cursor<'_>,
    address: impl FnOnce(&mut Cursor<'_>, Form) -> Result<SentAddress, Unread>,
) -> Result<Packet, Unread> {
    if found == Q_PLAIN {
        return Ok(Packet::Q(Q { sent: None, count: None }));
    }
    let sent = match (found, q_form(found)) {
        (Q_COUNT, _) => None,
        (_, Some(form)) => Some(address(cursor, form)?),
        (_, None) => return Err(reserved(found)),
    };
    Ok(Packet::Q(Q { sent, count: Some(read_number(cursor, "q", LONGEST_NUMBER)?) }))
}

fn trace_info(cursor: &mut Cursor<'_>) -> Result<TraceInfo, Unread> {
    let first = cursor.byte()?;
    let mut last = first;
    // No known trace unit sends more control bytes, and they have no meaning yet.
    while last & control::CONTINUES != 0 {
        last = cursor.byte()?;
        if cursor.position() > LONGEST_CONTROL {
            let (field, found) = ("control byte", u64::from(last));
            let expected = "bit 7 clear in one of the first bytes";
            return Err(Malformation::ReservedValue { packet: "trace_info", field, found, expected }.into());
        }
    }
    let mut section = |bit| {
        if first & bit == 0 {
            return Ok(None);
        }
        read_number(cursor, "trace_info", LONGEST_NUMBER).map(Some)
    };
    Ok(TraceInfo {
        info: section(control::INFO)?.unwrap_or(0),
        key: section(control::KEY)?,
        speculation: section(control::SPECULATION)?.unwrap_or(0),
        threshold: section(control::THRESHOLD)?.unwrap_or(0),
        commit_window: section(control::COMMIT_WINDOW)?,
    })
}

/// The latest end of a trace info packet's last control byte, to bound memory.
const LONGEST_CONTROL: usize = 8;

/// Headers from 0x2d to 0x3f.
fn speculation(found: u8, cursor: &mut Cursor<'_>) -> Result<Packet, Unread> {
    let (e, ee, n) = (Atoms::one(true), Atoms::one(true).and(true), Atoms::one(false));
    let atoms_before = match found & 0b11 {
        0b00 => None,
        0b01 => Some(e),
        0b10 => ee,
        _ => Some(n),
    };
    Ok(match found {
        header::CANCEL_3.. => Packet::Cancel(Cancel {
            format: 3,
            atoms: (found & 0b1 != 0).then_some(e),
            count: u64::from(found >> 1 & 0b11) + 2,
            mispredict: true,
        }),
        header::CANCEL_2.. => {
            Packet::Cancel(Cancel { format: 2, atoms: atoms_before, count: 1, mispredict: true })
        }
        header::MISPREDICT.. => Packet::Mispredict(atoms_before),
        header::CANCEL_1.. => Packet::Cancel(Cancel {
            format: 1,
            atoms: None,
            count: read_number(cursor, "cancel", LONGEST_NUMBER)?,
            mispredict: found & 0b1 != 0,
        }),
        _ => Packet::Commit(read_number(cursor, "commit", LONGEST_NUMBER)?),
    })
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
            |decoder| decoder.compression = Compression::UNKNOWN,
        )
    }

    /// A header and an address of 64 bits.
    const LONGEST_FREQUENT: usize = 9;

    /// Atoms, addresses without a context, cycle counts, and what becomes of speculation: nearly all of a trace.
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
        let mut at = 0;
        while let Some([found, rest @ ..]) =
            input.get(at..).and_then(<[u8]>::first_chunk::<{ Self::LONGEST_FREQUENT }>)
        {
            if let Some(atoms) = Atoms::from_header(*found) {
                taker.take_packet(Packet::Atom(atoms), input, start, at..at + 1);
                at += 1;
                continue;
            }
            let mut cursor = Cursor::new(rest);
            let packet = match (*found, address_form(*found)) {
                (0x90..=0x9f, Some(form)) => self
                    .compression
                    .addresses
                    .read(&mut cursor, form)
                    .map(|sent| Packet::Address(AddressPacket { sent, context: None })),
                (0x0c..=0x1f, _) => Reader { config: &self.config, next: &mut self.compression }
                    .cycle_count(*found, &mut cursor)
                    .map(Packet::CycleCount),
                (0x2d..=0x3f, _) => speculation(*found, &mut cursor),
                _ => break,
            };
            // A packet that is malformed, or longer than these bytes, left the state as it was.
            let Ok(packet) = packet else { break };
            let end = at + 1 + cursor.position();
            taker.take_packet(packet, input, start, at..end);
            at = end;
        }
        at
    }

    fn truncated(&self, input: &[u8]) -> Malformation {
        if self.synchronisation == Synchronisation::Searching {
            return Malformation::Truncated { packet: "a_sync" };
        }
        let packet = match input.first() {
            None | Some(&header::EXTENSION) => "a_sync",
            Some(&header::TRACE_INFO) => "trace_info",
            Some(0x02..=0x03) => "timestamp",
            Some(&header::EXCEPTION) => "exception",
            Some(&header::INSTRUMENTATION) => "instrumentation",
            Some(0x0c..=0x1f) => "cycle_count",
            Some(0x2d) => "commit",
            Some(0x2e..=0x3f) => "cancel",
            Some(0x6c | 0x6d) => "conditional_instruction",
            Some(0x40..=0x6f) => "conditional_result",
            Some(&header::CONTEXT) => "context",
            Some(0x82..=0x9f) => "address",
            Some(0xa0..=0xaf) => "q",
            Some(0xb0..=0xbf) => "source_address",
            // Every other packet is one byte.
            Some(_) => "atom",
        };
        Malformation::Truncated { packet }
    }

    fn desynchronise(&mut self) {
        self.synchronisation = Synchronisation::Searching;
        self.compression = Compression::UNKNOWN;
    }
}
