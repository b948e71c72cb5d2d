//! Packets → bytes.

use alloc::vec::Vec;
use core::fmt;

use crate::ids::Profile;

use super::address::{AddressForm, SentAddress};
use super::atoms::Atoms;
use super::config::{Config, Version};
use super::decode::{
    A_SYNC, Compression, Q_COUNT, Q_PLAIN, address_form, q_form, source_form, with_context_form,
};
use super::fields::{
    CYCLE_BITS, LONGEST_CYCLES, LONGEST_NUMBER, write_context, write_number, write_timestamp,
};
use super::packet::{
    AddressPacket, Cancel, ConditionalInstruction, ConditionalResult, CycleCount, DataSynchronisation,
    Exception, KeyedResult, Packet, Q, Timestamp, TraceInfo, control, exception_byte, extension, header,
};

/// The packet encoder: writes each packet in its shortest form, compressed against the packets before it.
///
/// A [`Decoder`](super::Decoder) of the same configuration reads back the same packets. If that is impossible
/// for a packet, the result is an [`EncodeError`], and bytes and state are unchanged.
#[derive(Clone, Debug)]
pub struct Encoder {
    config: Config,
    compression: Compression,
}

/// Why a packet cannot be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// The configuration excludes the packet, or a field of it.
    NotEnabled {
        /// The excluded feature.
        what: &'static str,
    },
    /// A value is too large for its field.
    ValueOutOfRange {
        /// The field.
        field: &'static str,
        /// The value.
        value: u64,
    },
    /// The address is misaligned, or its form cannot express it after the previous addresses.
    Address(SentAddress),
    /// No packet holds these atoms.
    Atoms(Atoms),
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotEnabled { what } => write!(f, "found {what}, which the configuration excludes"),
            Self::ValueOutOfRange { field, value } => {
                write!(f, "found {field} 0x{value:x}, which its field cannot hold")
            }
            Self::Address(SentAddress { address: Some(address), form, .. }) => {
                write!(f, "found {address}, which a {} address cannot express", form.name())
            }
            Self::Address(_) => f.write_str("found no address, expected one"),
            Self::Atoms(atoms) => {
                write!(f, "found {} atoms, expected a sequence that fits in one packet", atoms.count())
            }
        }
    }
}

impl core::error::Error for EncodeError {}

impl Encoder {
    /// An encoder for the start of a source's trace.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self { config: *config, compression: Compression::UNKNOWN }
    }

    /// Appends `packet` to `bytes`.
    ///
    /// # Errors
    ///
    /// If the configuration excludes the packet, or its fields cannot be encoded. Bytes and state are unchanged.
    pub fn encode(&mut self, packet: &Packet, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        let before = bytes.len();
        let state = self.compression;
        let result = self.write(packet, bytes);
        if result.is_err() {
            bytes.truncate(before);
            self.compression = state;
        }
        result
    }

    fn write(&mut self, packet: &Packet, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        let Config { version, profile, .. } = self.config;
        let is_ete = self.config.is_ete();
        match packet {
            Packet::ASync => bytes.extend(A_SYNC.shortest()),
            Packet::Discard => bytes.extend([header::EXTENSION, extension::DISCARD]),
            Packet::Overflow => bytes.extend([header::EXTENSION, extension::OVERFLOW]),
            Packet::BranchFutureFlush => {
                enabled(profile == Profile::M, "a branch future flush packet")?;
                bytes.extend([header::EXTENSION, extension::BRANCH_FUTURE_FLUSH]);
            }
            Packet::TraceInfo(trace_info) => {
                write_trace_info(trace_info, bytes)?;
                self.compression = Compression::reset(trace_info.threshold);
            }
            Packet::Timestamp(timestamp) => self.timestamp(*timestamp, bytes)?,
            Packet::TraceOn => bytes.push(header::TRACE_ON),
            Packet::FunctionReturn => {
                let exists = (Version::Etmv4(2)..Version::Ete(0)).contains(&version);
                enabled(profile == Profile::M && exists, "a function return packet")?;
                bytes.push(header::FUNCTION_RETURN);
            }
            Packet::Exception(exception) => self.exception(*exception, bytes)?,
            Packet::PeReset => self.special_exception(exception_byte::RESET, bytes)?,
            Packet::TransactionFailure => self.special_exception(exception_byte::FAILURE, bytes)?,
            Packet::ExceptionReturn => {
                enabled(!is_ete, "an exception return packet")?;
                bytes.push(header::EXCEPTION_RETURN);
            }
            Packet::Instrumentation(instrumentation) => {
                enabled(version >= Version::Ete(3), "an instrumentation packet")?;
                let exception_level = instrumentation.exception_level;
                in_range("exception level", u64::from(exception_level), exception_level < 4)?;
                bytes.extend([header::INSTRUMENTATION, exception_level]);
                bytes.extend(instrumentation.value.to_le_bytes());
            }
            Packet::TransactionStart | Packet::TransactionCommit => {
                enabled(is_ete, "a transaction packet")?;
                let is_start = *packet == Packet::TransactionStart;
                bytes.push(if is_start { header::TRANSACTION_START } else { header::TRANSACTION_COMMIT });
            }
            Packet::CycleCount(cycle_count) => self.cycle_count(*cycle_count, bytes)?,
            Packet::DataSynchronisation(marker) => {
                enabled(self.config.data_trace, "a data synchronisation packet")?;
                let (first, marker, most) = match *marker {
                    DataSynchronisation::Numbered(marker) => (header::DATA_SYNCHRONISATION, marker, 7),
                    DataSynchronisation::Unnumbered(marker) => (header::UNNUMBERED, marker, 4),
                };
                in_range("marker", u64::from(marker), marker <= most)?;
                bytes.push(first + marker);
            }
            Packet::Commit(count) => {
                bytes.push(header::COMMIT);
                number("commit count", *count, LONGEST_NUMBER, bytes)?;
            }
            Packet::Cancel(cancel) => write_cancel(*cancel, bytes)?,
            Packet::Mispredict(atoms) => bytes.push(header::MISPREDICT | atoms_before(*atoms)?),
            Packet::ConditionalInstruction(_) | Packet::ConditionalFlush | Packet::ConditionalResult(_) => {
                enabled(self.config.conditional.is_some(), "a conditional instruction packet")?;
                write_conditional(packet, bytes)?;
            }
            Packet::Ignore => {
                enabled(version >= Version::Etmv4(3), "an ignore packet")?;
                bytes.push(header::IGNORE);
            }
            Packet::Event(events) => {
                in_range("events", u64::from(*events), (1..16).contains(events))?;
                bytes.push(header::IGNORE | *events);
            }
            Packet::Context(None) => bytes.push(header::SAME_CONTEXT),
            Packet::Context(Some(context)) => {
                bytes.push(header::CONTEXT);
                enabled(write_context(*context, &self.config, bytes), "a context of this size")?;
            }
            Packet::Address(address) => self.address(*address, bytes)?,
            Packet::TimestampMarker => {
                enabled(self.config.has_timestamp_markers(), "a timestamp marker")?;
                bytes.push(header::TIMESTAMP_MARKER);
            }
            Packet::Q(q) => self.q(*q, bytes)?,
            Packet::SourceAddress(sent) => {
                enabled(is_ete, "a source address packet")?;
                bytes.push(header_of(header::SOURCE_ADDRESS, *sent, source_form)?);
                self.sent_address(*sent, bytes)?;
            }
            Packet::Atom(atoms) => bytes.push(atoms.header().ok_or(EncodeError::Atoms(*atoms))?),
        }
        Ok(())
    }

    fn timestamp(&mut self, timestamp: Timestamp, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        let Timestamp { value, cycles } = timestamp;
        let with_cycles = cycles.is_some();
        bytes.push(if with_cycles { header::TIMESTAMP_WITH_CYCLES } else { header::TIMESTAMP });
        write_timestamp(value, self.compression.timestamp, bytes);
        if let Some(cycles) = cycles {
            in_range("cycles", cycles, cycles >> self.config.cycle_counter_bits == 0)?;
            write_cycles(cycles, bytes)?;
        }
        self.compression.timestamp = value;
        Ok(())
    }

    fn exception(&self, exception: Exception, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        use exception_byte as bits;
        let Exception { number, address, fault_pending } = exception;
        let [low, _] = (number & 0b1_1111).to_le_bytes();
        let high = u8::try_from(number >> bits::SECOND_TYPE_SHIFT)
            .ok()
            .filter(|high| high & !bits::SECOND_TYPE == 0)
            .ok_or(EncodeError::ValueOutOfRange { field: "exception number", value: u64::from(number) })?;
        let is_special = self.config.is_ete() && matches!(low, bits::RESET | bits::FAILURE);
        enabled(!is_special, "an exception packet with this number")?;
        let continues = high != 0 || fault_pending;
        let flag = |set, bit| if set { bit } else { 0 };
        bytes.push(header::EXCEPTION);
        bytes.push(
            flag(continues, bits::CONTINUES)
                | flag(address.bits() & 0b10 != 0, bits::E1)
                | low << bits::TYPE_SHIFT
                | flag(address.bits() & 0b01 != 0, bits::E0),
        );
        if continues {
            bytes.push(flag(fault_pending, bits::FAULT_PENDING) | high);
        }
        Ok(())
    }

    /// ETE: a reset or a failed transaction, as observed from a trace unit.
    fn special_exception(&self, number: u8, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        enabled(self.config.is_ete(), "an ETE packet")?;
        let first = number << exception_byte::TYPE_SHIFT | exception_byte::E0;
        bytes.extend([header::EXCEPTION, first, header::IGNORE]);
        Ok(())
    }

    fn cycle_count(&self, packet: CycleCount, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        let CycleCount { format, commit, cycles } = packet;
        enabled(commit.is_some() == self.config.cycle_counts_commit, "a cycle count of this form")?;
        let out_of_range = |value| EncodeError::ValueOutOfRange { field: "cycles", value };
        let above =
            |cycles: u64| cycles.checked_sub(self.compression.threshold).ok_or_else(|| out_of_range(cycles));
        match (format, cycles) {
            (1, cycles) => {
                bytes.push(header::CYCLE_COUNT_1 | u8::from(cycles.is_none()));
                if let Some(commit) = commit {
                    number("commit count", commit, LONGEST_NUMBER, bytes)?;
                }
                if let Some(cycles) = cycles {
                    write_cycles(above(cycles)?, bytes)?;
                }
            }
            (2, Some(cycles)) => {
                let (first, high) = self.commit_nibble(commit)?;
                let low = nibble("cycles", above(cycles)?, 0b1111)?;
                bytes.extend([header::CYCLE_COUNT_2 | first, high << 4 | low]);
            }
            (3, Some(cycles)) => {
                let high =
                    commit.map_or(Ok(0), |commit| nibble("commit count", commit.wrapping_sub(1), 0b11))?;
                bytes.push(header::CYCLE_COUNT_3 | high << 2 | nibble("cycles", above(cycles)?, 0b11)?);
            }
            (format, _) => {
                return Err(EncodeError::ValueOutOfRange { field: "format", value: u64::from(format) });
            }
        }
        Ok(())
    }

    /// F and the commit count of format 2.
    fn commit_nibble(&self, commit: Option<u64>) -> Result<(u8, u8), EncodeError> {
        let Some(commit) = commit else { return Ok((0, 0)) };
        if let Ok(small) = nibble("commit count", commit.wrapping_sub(1), 0b1111) {
            return Ok((0, small));
        }
        let most = u64::from(self.config.greatest_speculation);
        Ok((1, nibble("commit count", commit.wrapping_add(15).wrapping_sub(most), 0b1111)?))
    }

    fn address(&mut self, packet: AddressPacket, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        let AddressPacket { sent, context } = packet;
        match context {
            Some(context) => {
                bytes.push(header_of(header::ADDRESS_WITH_CONTEXT, sent, with_context_form)?);
                self.sent_address(sent, bytes)?;
                enabled(write_context(context, &self.config, bytes), "a context of this size")
            }
            None => {
                bytes.push(header_of(header::ADDRESS_EXACT, sent, address_form)?);
                self.sent_address(sent, bytes)
            }
        }
    }

    fn q(&mut self, q: Q, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        enabled(self.config.q_elements, "a Q packet")?;
        match (q.sent, q.count) {
            (None, None) => bytes.push(Q_PLAIN),
            (Some(_), None) => {
                return Err(EncodeError::NotEnabled { what: "a Q packet with an address but no count" });
            }
            (sent, Some(count)) => {
                bytes.push(sent.map_or(Ok(Q_COUNT), |sent| header_of(header::Q, sent, q_form))?);
                if let Some(sent) = sent {
                    self.sent_address(sent, bytes)?;
                }
                number("count", count, LONGEST_NUMBER, bytes)?;
            }
        }
        Ok(())
    }

    fn sent_address(&mut self, sent: SentAddress, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
        if self.compression.addresses.write(sent, bytes) { Ok(()) } else { Err(EncodeError::Address(sent)) }
    }
}

/// Whether the configuration allows the packet.
const fn enabled(is_enabled: bool, what: &'static str) -> Result<(), EncodeError> {
    if is_enabled { Ok(()) } else { Err(EncodeError::NotEnabled { what }) }
}

const fn in_range(field: &'static str, value: u64, is_in_range: bool) -> Result<(), EncodeError> {
    if is_in_range { Ok(()) } else { Err(EncodeError::ValueOutOfRange { field, value }) }
}

fn nibble(field: &'static str, value: u64, most: u8) -> Result<u8, EncodeError> {
    let small = u8::try_from(value).ok().filter(|value| *value <= most);
    small.ok_or(EncodeError::ValueOutOfRange { field, value })
}

fn number(field: &'static str, value: u64, longest: u32, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
    let is_written = write_number(value, longest, bytes);
    in_range(field, value, is_written)
}

fn write_cycles(cycles: u64, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
    in_range("cycles", cycles, cycles >> CYCLE_BITS == 0)?;
    number("cycles", cycles, LONGEST_CYCLES, bytes)
}

/// The header of an address packet whose forms are those of `form_of`.
fn header_of(
    first: u8,
    sent: SentAddress,
    form_of: fn(u8) -> Option<(AddressForm, super::address::AddressUnit)>,
) -> Result<u8, EncodeError> {
    let is_exact = matches!(sent.form, AddressForm::Exact(_));
    let wanted = |found: &u8| {
        form_of(*found)
            .is_some_and(|(form, alignment)| form == sent.form && (is_exact || alignment == sent.alignment))
    };
    (first..=first | 0b1111).find(wanted).ok_or(EncodeError::Address(sent))
}

/// The atoms before a cancellation or a misprediction, as the lowest two bits of a header.
fn atoms_before(atoms: Option<Atoms>) -> Result<u8, EncodeError> {
    let Some(atoms) = atoms else { return Ok(0b00) };
    let mut letters = [0; Atoms::MOST as usize];
    match atoms.letters(&mut letters) {
        "E" => Ok(0b01),
        "EE" => Ok(0b10),
        "N" => Ok(0b11),
        _ => Err(EncodeError::Atoms(atoms)),
    }
}

fn write_cancel(cancel: Cancel, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
    let Cancel { format, atoms, count, mispredict } = cancel;
    match (format, mispredict) {
        (1, mispredict) if atoms.is_none() => {
            bytes.push(header::CANCEL_1 | u8::from(mispredict));
            number("cancel count", count, LONGEST_NUMBER, bytes)?;
        }
        (2, true) if count == 1 => bytes.push(header::CANCEL_2 | atoms_before(atoms)?),
        (3, true) if (2..=5).contains(&count) => {
            let before = atoms_before(atoms)?;
            in_range("atoms", u64::from(before), before <= 1)?;
            bytes.push(header::CANCEL_3 | nibble("cancel count", count - 2, 0b11)? << 1 | before);
        }
        _ => return Err(EncodeError::ValueOutOfRange { field: "cancel count", value: count }),
    }
    Ok(())
}

fn write_trace_info(trace_info: &TraceInfo, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
    let TraceInfo { info, key, speculation, threshold, commit_window } = *trace_info;
    let unless_0 = |value| Some(value).filter(|&value| value != 0);
    let sections = [
        (control::INFO, unless_0(info)),
        (control::KEY, key),
        (control::SPECULATION, unless_0(speculation)),
        (control::THRESHOLD, unless_0(threshold)),
        (control::COMMIT_WINDOW, commit_window),
    ];
    let sent = sections.iter().filter(|(_, value)| value.is_some());
    bytes.extend([header::TRACE_INFO, sent.fold(0, |bits, (bit, _)| bits | bit)]);
    sections
        .into_iter()
        .filter_map(|(_, value)| value)
        .try_for_each(|value| number("trace info", value, LONGEST_NUMBER, bytes))
}

fn write_conditional(packet: &Packet, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
    match *packet {
        Packet::ConditionalInstruction(instruction) => match instruction {
            ConditionalInstruction::Next => bytes.push(header::CONDITIONAL_INSTRUCTION_2),
            ConditionalInstruction::Same => bytes.push(header::CONDITIONAL_INSTRUCTION_2 | 1),
            ConditionalInstruction::NextAndSame => bytes.push(header::CONDITIONAL_INSTRUCTION_2 | 2),
            ConditionalInstruction::Key(key) => {
                bytes.push(header::CONDITIONAL_INSTRUCTION_1);
                number("key", key, LONGEST_NUMBER, bytes)?;
            }
            ConditionalInstruction::Successive { count, and_same } => {
                in_range("count", u64::from(count), count < 64)?;
                bytes.extend([header::CONDITIONAL_INSTRUCTION_3, count << 1 | u8::from(and_same)]);
            }
        },
        Packet::ConditionalResult(ConditionalResult::Keys(first, None)) => {
            bytes.push(header::CONDITIONAL_RESULT_1_ONE | u8::from(first.ci));
            write_keyed_result(first, bytes)?;
        }
        Packet::ConditionalResult(ConditionalResult::Keys(first, Some(second))) => {
            let ci = u8::from(second.ci) << 1 | u8::from(first.ci);
            bytes.push(header::CONDITIONAL_RESULT_1_TWO | ci);
            write_keyed_result(first, bytes)?;
            write_keyed_result(second, bytes)?;
        }
        Packet::ConditionalResult(ConditionalResult::Token { advance, token }) => {
            in_range("advance", u64::from(advance), matches!(advance, 1 | 2))?;
            in_range("token", u64::from(token), token < 3)?;
            bytes.push(header::CONDITIONAL_RESULT_2 | (advance - 1) << 2 | token);
        }
        Packet::ConditionalResult(ConditionalResult::Tokens(tokens)) => {
            let [high, low] = tokens.to_be_bytes();
            in_range("tokens", u64::from(tokens), high < 16)?;
            bytes.extend([header::CONDITIONAL_RESULT_3 | high, low]);
        }
        Packet::ConditionalResult(ConditionalResult::Previous(token)) => {
            in_range("token", u64::from(token), token < 3)?;
            bytes.push(header::CONDITIONAL_RESULT_4 | token);
        }
        _ => bytes.push(header::CONDITIONAL_FLUSH),
    }
    Ok(())
}

fn write_keyed_result(result: KeyedResult, bytes: &mut Vec<u8>) -> Result<(), EncodeError> {
    let KeyedResult { key, result, .. } = result;
    in_range("result", u64::from(result), result < 16)?;
    let [low, ..] = (key & 0b111).to_le_bytes();
    let high = key >> 3;
    bytes.push(if high == 0 { 0 } else { 0b1000_0000 } | low << 4 | result);
    if high == 0 { Ok(()) } else { number("key", high, LONGEST_NUMBER, bytes) }
}
