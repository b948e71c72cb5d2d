//! Output of `trc_pkt_lister` → packets and elements.
//!
//! A line is `Idx:<offset>; ID:<id>; ...`. An error message may precede it without a line feed.

use std::collections::BTreeMap;

use tracewalk::ids::{Address, Isa};

use super::listing_etmv4;
use super::model::{MALFORMED, Packet, Range, Step, UNSYNCHRONISED, Value, What};

/// OpenCSD's reading of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The packets and the bytes that are not packets, in order.
    pub packets: Vec<Packet>,
    /// The executed steps, and the events between them.
    pub steps: Vec<Step>,
    /// OpenCSD's error messages, with their places if it printed them.
    pub complaints: Vec<Complaint>,
    /// Whether OpenCSD stopped before the end of the trace.
    pub gave_up: bool,
}

/// An error message of OpenCSD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// The place in the trace, if the message states it.
    pub at: Option<u64>,
    /// The text of the message.
    pub words: String,
}

impl Listing {
    /// Parses the output of `trc_pkt_lister`.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut listing = Self::default();
        for line in text.lines() {
            let (before, entry) =
                match line.find("Idx:").filter(|&at| at == 0 || !line[..at].ends_with("Trc")) {
                    Some(at) => (&line[..at], Some(&line[at..])),
                    None => (line, None),
                };
            listing.complaint(before);
            if let Some((at, rest)) = entry.and_then(place) {
                match rest.split_once("OCSD_GEN_TRC_ELEM_") {
                    Some((_, element)) => listing.element(at, element),
                    None => listing.packets.extend(packet(at, rest)),
                }
            }
        }
        listing
    }

    fn complaint(&mut self, words: &str) {
        if words.contains("OCSD_ERR_") {
            let at = words.split_once("TrcIdx=").and_then(|(_, at)| at.split(';').next()?.parse().ok());
            self.complaints.push(Complaint { at, words: words.to_owned() });
        }
        self.gave_up |= words.contains("fatal error");
    }

    fn element(&mut self, at: u64, element: &str) {
        let step = |what| Step { from: at, until: at, what };
        if let Some(range) = element.strip_prefix("INSTR_RANGE(exec range=0x") {
            self.steps.extend(range_of(range).map(|range| step(What::Range(range))));
        } else if let Some((_, number)) = element.split_once("excep num (0x") {
            let number = number.split(')').next().and_then(|number| u16::from_str_radix(number, 16).ok());
            let address =
                |text: &str| u64::from_str_radix(text.split(';').next()?, 16).ok().map(Address::new);
            let preferred_return = element.split_once("pref ret addr:0x").and_then(|(_, at)| address(at));
            self.steps.extend(number.map(|number| step(What::Exception { number, preferred_return })));
        } else if element.starts_with("EXCEPTION_RET(") {
            self.steps.push(step(What::ExceptionReturn));
        } else if element.starts_with("TRACE_ON(") {
            self.steps.push(step(What::TraceOn));
        } else if element.starts_with("ADDR_NACC(") || element.starts_with("ADDR_UNKNOWN(") {
            self.steps.push(step(What::Unknown));
        } else if element.starts_with("NO_SYNC(") {
            self.steps.push(step(What::Lost));
        }
    }
}

/// The offset, and the text after it.
fn place(entry: &str) -> Option<(u64, &str)> {
    let (at, rest) = entry.strip_prefix("Idx:")?.split_once(';')?;
    Some((at.parse().ok()?, rest))
}

/// OpenCSD's name and ours for each kind of packet.
const KINDS: [(&str, &str); 34] = [
    ("A_SYNC", "a_sync"),
    ("ASYNC", "a_sync"),
    ("ATOM", "atom"),
    ("BAD_SEQUENCE", MALFORMED),
    ("BAD_TRACEMODE", MALFORMED),
    ("BRANCH_ADDRESS", "branch"),
    ("BRANCH_ADDRESS_OR_BYPASS_EOT", MALFORMED),
    ("CONTEXT_ID", "context_id"),
    ("CTXTID", "context_id"),
    ("CYCLE_COUNT", "cycle_count"),
    ("DATA_SUPPRESSED", "data_suppressed"),
    ("ERET", "exception_return"),
    ("EXCEPTION_ENTRY", "exception_entry"),
    ("EXCEPTION_EXIT", "exception_return"),
    ("IGNORE", "ignore"),
    ("INCOMPLETE_EOT", MALFORMED),
    ("I_RESERVED", MALFORMED),
    ("I_SYNC", "i_sync"),
    ("I_SYNC_CYCLE", "i_sync"),
    ("ISYNC", "i_sync"),
    ("NORM_DATA", "normal_data"),
    ("NOTSYNC", UNSYNCHRONISED),
    ("OOO_ADDR_PLC", "ooo_placeholder"),
    ("OOO_DATA", "ooo_data"),
    ("P_HDR", "p_header"),
    ("RESERVED", MALFORMED),
    ("STORE_FAIL", "store_failed"),
    ("TIMESTAMP", "timestamp"),
    ("TRIGGER", "trigger"),
    ("VAL_NOT_TRACED", "value_not_traced"),
    ("VMID", "vmid"),
    ("WP_UPDATE", "waypoint_update"),
    ("DATA_SUPRESSED", "data_suppressed"),
    ("STORE_FAILED", "store_failed"),
];

/// The name for kinds of OpenCSD's that are not in the table.
pub const UNHEARD_OF: &str = "unheard_of";

/// ` ID:0; [0x42 ];\tTIMESTAMP : Timestamp Value.; TS=0x1 (1)`.
fn packet(at: u64, rest: &str) -> Option<Packet> {
    let (_, words) = rest.split_once('\t')?;
    let (kind, text) = words.split_once(" : ").unwrap_or((words, ""));
    let kind = kind.trim();
    if let Some(ours) = listing_etmv4::kind(kind) {
        return Some(Packet { at, kind: ours, fields: listing_etmv4::fields(ours, text) });
    }
    let known = KINDS.iter().find(|(theirs, _)| *theirs == kind);
    let mut fields = BTreeMap::new();
    for word in text.split(';').map(str::trim) {
        if let Some((name, value)) = field(word) {
            fields.insert(name, value);
        }
    }
    Some(Packet { at, kind: known.map_or(UNHEARD_OF, |(_, ours)| ours), fields })
}

/// One word of a packet's line; `None` if the word does not describe the packet.
fn field(word: &str) -> Option<(&'static str, Value)> {
    let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok().map(Value::Number);
    let text = |text: &str| Some(Value::Text(text.to_owned()));
    let (name, value) = match word.split_once('=') {
        Some(("Addr", value)) => ("addr", hex(value.split(' ').next()?)),
        Some(("CtxtID", value)) => ("context_id", hex(value)),
        Some(("Cycles", value)) => ("cycles", value.parse().ok().map(Value::Number)),
        Some(("TS", value)) => ("timestamp", hex(value.split(' ').next()?)),
        Some(("Resume", value)) => ("resume", value.parse().ok().map(Value::Number)),
        // PFT: `IRQ [0e]`.
        Some(("Excep", value)) => ("exception", hex(value.split_once('[')?.1.trim_end_matches(']'))),
        Some(("Exception", value)) => ("exception_name", text(value)),
        Some(("ISA", value)) => ("isa", text(isa_named(value)?.name())),
        Some(("Val", value)) => ("value", hex(value)),
        Some(_) => return None,
        None => match word {
            "S" => ("ns", Some(Value::Number(0))),
            "N" | "NS" => ("ns", Some(Value::Number(1))),
            "Hyp" => ("hyp", Some(Value::Number(1))),
            "Cancel prev instr" => ("cancel", Some(Value::Number(1))),
            "(Periodic)" => ("reason", Some(Value::Number(0))),
            "(Trace Enable)" => ("reason", Some(Value::Number(1))),
            "(Restart Overflow)" => ("reason", Some(Value::Number(2))),
            "(Debug Exit)" => ("reason", Some(Value::Number(3))),
            _ if !word.is_empty() && word.bytes().all(|byte| matches!(byte, b'E' | b'N' | b'W')) => {
                ("atoms", text(word))
            }
            _ => return None,
        },
    };
    Some((name, value?))
}

fn isa_named(name: &str) -> Option<Isa> {
    Some(match name {
        "ARM(32)" | "A32" => Isa::A32,
        "A64" | "AArch64" => Isa::A64,
        "Thumb2" | "T32" => Isa::T32,
        "ThumbEE" | "TEE" => Isa::T32EE,
        "Jazelle" => Isa::Jazelle,
        _ => return None,
    })
}

/// `60000034:[0x6000007c] num_i(18) last_sz(4) (ISA=A32) E BR   <cond>)`.
fn range_of(text: &str) -> Option<Range> {
    let (start, rest) = text.split_once(":[0x")?;
    let (end, rest) = rest.split_once(']')?;
    let (last_bytes, rest) = rest.split_once("last_sz(")?.1.split_once(')')?;
    let (isa, rest) = rest.split_once("(ISA=")?.1.split_once(") ")?;
    let address = |text| u64::from_str_radix(text, 16).ok().map(Address::new);
    Some(Range {
        start: address(start)?,
        end: address(end)?,
        last_bytes: last_bytes.parse().ok()?,
        isa: isa_named(isa)?,
        passed: rest.starts_with('E'),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_elements_and_complaints_are_distinguished() {
        let text = "Idx:6; ID:0;\tI_SYNC : Instruction Packet synchronisation.; (Trace Enable); Addr=0x000000c0; S;  ISA=Thumb2; \n\
            Idx:19; ID:10; OCSD_GEN_TRC_ELEM_INSTR_RANGE(exec range=0xc8:[0xca] num_i(1) last_sz(2) (ISA=T32) N BR   <cond>)\n\
            PKTP_ETMV3 : 0x0014 (OCSD_ERR_INVALID_PCKT_HDR) [Invalid packet header]; TrcIdx=2692; CS ID=10; Packet header reserved encodingIdx:2692; ID:0;\tI_RESERVED : Reserved Packet Header\n\
            Idx:78; ID:10; OCSD_GEN_TRC_ELEM_EXCEPTION(pref ret addr:0x6000037c; excep num (0x0e) )\n\
            DCD_ETMV3 : 0x0013 (OCSD_ERR_BAD_PACKET_SEQ) [Bad packet sequence]; TrcIdx=2692; CS ID=10; Reserved.Trace Packet Lister : Data Path fatal error\n";
        let listing = Listing::parse(text);
        let number = Value::Number;
        let fields = [
            ("addr", number(0xc0)),
            ("isa", Value::Text("T32".to_owned())),
            ("ns", number(0)),
            ("reason", number(1)),
        ];
        let kinds = listing.packets.iter().map(|packet| (packet.at, packet.kind)).collect::<Vec<_>>();
        assert_eq!(kinds, [(6, "i_sync"), (2692, MALFORMED)]);
        assert_eq!(listing.packets[0].fields, BTreeMap::from(fields));
        let range = Range {
            start: Address::new(0xc8),
            end: Address::new(0xca),
            last_bytes: 2,
            isa: Isa::T32,
            passed: false,
        };
        let exception = What::Exception { number: 14, preferred_return: Some(Address::new(0x6000_037c)) };
        assert_eq!(
            listing.steps.iter().map(|step| step.what).collect::<Vec<_>>(),
            [What::Range(range), exception]
        );
        assert_eq!(
            listing.complaints.iter().map(|complaint| complaint.at).collect::<Vec<_>>(),
            [Some(2692), Some(2692)]
        );
        assert!(listing.gave_up);
    }
}
