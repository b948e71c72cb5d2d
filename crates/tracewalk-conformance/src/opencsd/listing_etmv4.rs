//! Parses the lines that `trc_pkt_lister` prints for packets of ETMv4 and ETE.

use std::collections::BTreeMap;

use super::model::{MALFORMED, UNSYNCHRONISED, Value};

/// OpenCSD's name and ours for each kind of packet.
const KINDS: [(&str, &str); 22] = [
    ("I_ASYNC", "a_sync"),
    ("I_BAD_SEQUENCE", MALFORMED),
    ("I_COMMIT", "commit"),
    ("I_CTXT", "context"),
    ("I_DISCARD", "discard"),
    ("I_EVENT", "event"),
    ("I_EXCEPT", "exception"),
    ("I_EXCEPT_RTN", "exception_return"),
    ("I_FUNC_RET", "function_return"),
    ("I_IGNORE", "ignore"),
    ("I_INCOMPLETE_EOT", MALFORMED),
    ("I_MISPREDICT", "mispredict"),
    ("I_NOT_SYNC", UNSYNCHRONISED),
    ("I_OVERFLOW", "overflow"),
    ("I_Q", "q"),
    ("I_RESERVED_CFG", MALFORMED),
    ("I_TIMESTAMP", "timestamp"),
    ("I_TIMESTAMP_MARKER", "timestamp_marker"),
    ("I_TRACE_INFO", "trace_info"),
    ("I_TRACE_ON", "trace_on"),
    ("ETE_PE_RESET", "pe_reset"),
    ("ETE_TS_MARKER", "timestamp_marker"),
];

/// The kinds of packets that have several forms.
const FAMILIES: [(&str, &str); 5] = [
    ("I_ADDR_", "address"),
    ("I_ATOM_F", "atom"),
    ("I_CANCEL_F", "cancel"),
    ("I_CCNT_F", "cycle_count"),
    ("I_SRC_ADDR_", "source_address"),
];

/// Our name of a kind of packet; `None` if ETMv4 does not have it.
pub(super) fn kind(theirs: &str) -> Option<&'static str> {
    let exact = KINDS.iter().find(|(name, _)| *name == theirs);
    let family = || FAMILIES.iter().find(|(name, _)| theirs.starts_with(name));
    exact.or_else(family).map(|(_, ours)| *ours)
}

/// Parses the text after the colon: `Address & Context, Long, 32 bit, IS0.; Addr=0x0000000040101788; Ctxt:
/// AArch64,EL3, S; CID=0x00000000; `.
pub(super) fn fields(kind: &'static str, text: &str) -> BTreeMap<&'static str, Value> {
    let mut fields = BTreeMap::new();
    for word in text.split(';').skip(1).map(str::trim) {
        let hex = |text: &str| u64::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok();
        let counted =
            |name: &str| word.strip_prefix(name)?.strip_prefix('(')?.split(')').next()?.parse().ok();
        let first = |text: &str| text.split_whitespace().next().and_then(hex);
        let mut number = |name, value: Option<u64>| {
            fields.extend(value.map(|value| (name, Value::Number(value))));
        };
        match (kind, word.split_once('=')) {
            (_, Some(("Addr", value))) => number("addr", first(value)),
            (_, Some(("CID", value))) => number("context_id", hex(value)),
            (_, Some(("VMID", value))) => number("vmid", hex(value)),
            ("timestamp", Some((name, value))) if name.starts_with("Updated val") => {
                number("timestamp", first(value));
            }
            ("timestamp", Some(("CC", value))) | ("cycle_count", Some(("Count", value))) => {
                number("cycles", hex(value));
            }
            ("trace_info", Some(("INFO", value))) => number("info", first(value)),
            ("trace_info", Some(("CC_THRESHOLD", value))) => number("threshold", hex(value)),
            ("commit", _) => number("commit", counted("Commit")),
            ("q", _) => number("count", counted("Count")),
            ("cancel", _) => {
                number("cancel", counted("Cancel"));
                number("mispredict", word.contains("Mispredict").then_some(1));
            }
            ("exception", None) if word == "Ret Addr Follows" || word.is_empty() => {}
            ("exception", None) => {
                fields.entry("exception_name").or_insert_with(|| Value::Text(word.to_owned()));
            }
            ("atom", None) => fields.extend(atoms(word).map(|atoms| ("atoms", atoms))),
            _ => {}
        }
        if let Some(atoms) = word.strip_prefix("Atom: ").and_then(|rest| atoms(rest.split(',').next()?)) {
            fields.insert("atoms", atoms);
        }
        if let Some(context) = word.strip_prefix("Ctxt: ") {
            fields.extend(of_context(context));
        }
    }
    fields
}

fn atoms(word: &str) -> Option<Value> {
    let is = !word.is_empty() && word.bytes().all(|byte| matches!(byte, b'E' | b'N'));
    is.then(|| Value::Text(word.to_owned()))
}

/// `AArch64,EL3, S`, `AArch32, EL0, NS`
fn of_context(text: &str) -> impl Iterator<Item = (&'static str, Value)> + '_ {
    text.split(',').map(str::trim).filter_map(|word| {
        let (name, value) = match word {
            "AArch64" => ("sf", 1),
            "AArch32" => ("sf", 0),
            "S" => ("ns", 0),
            "NS" => ("ns", 1),
            _ => ("el", word.strip_prefix("EL")?.parse().ok()?),
        };
        Some((name, Value::Number(value)))
    })
}

/// OpenCSD's names of A- and R-profile exceptions, by TYPE.
pub(super) fn ar_type_name(number: u64) -> String {
    const NAMES: [&str; 16] = [
        "PE Reset",
        "Debug Halt",
        "Call",
        "Trap",
        "System Error",
        "Reserved",
        "Inst Debug",
        "Data Debug",
        "Reserved",
        "Reserved",
        "Alignment",
        "Inst Fault",
        "Data Fault",
        "Reserved",
        "IRQ",
        "FIQ",
    ];
    usize::try_from(number)
        .ok()
        .and_then(|number| NAMES.get(number))
        .copied()
        .unwrap_or("Reserved")
        .to_owned()
}

/// OpenCSD's names of M-profile exceptions, by TYPE.
pub(super) fn m_type_name(number: u64) -> String {
    const NAMES: [&str; 16] = [
        "Reserved",
        "PE Reset",
        "NMI",
        "HardFault",
        "MemManage",
        "BusFault",
        "UsageFault",
        "Reserved",
        "Reserved",
        "Reserved",
        "Reserved",
        "SVC",
        "DebugMonitor",
        "Reserved",
        "PendSV",
        "SysTick",
    ];
    match number {
        16..=23 => format!("IRQ{}", number - 16),
        24 => "Debug Halt".to_owned(),
        25 => "LazyFP Push".to_owned(),
        26 => "Lockup".to_owned(),
        0x208..=0x3ef => format!("IRQ{}", number - 0x200),
        _ => usize::try_from(number)
            .ok()
            .and_then(|number| NAMES.get(number))
            .copied()
            .unwrap_or("Reserved")
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_every_kind_are_read() {
        let number = |kind, text: &str, name: &str| match fields(kind, text).get(name) {
            Some(Value::Number(number)) => Some(*number),
            _ => None,
        };
        let address = "Address & Context, Long, 32 bit, IS0.; Addr=0x0000000040101788 ~[0x1788]; Ctxt: AArch64,EL3, NS; CID=0x0000000a; VMID=0x0001; ";
        for (name, value) in
            [("addr", 0x4010_1788), ("sf", 1), ("el", 3), ("ns", 1), ("context_id", 10), ("vmid", 1)]
        {
            assert_eq!(number("address", address, name), Some(value), "{name}");
        }
        assert_eq!(number("timestamp", "Timestamp.; Updated val = 0x1e; CC=0xf", "timestamp"), Some(0x1e));
        assert_eq!(number("timestamp", "Timestamp.; Updated val = 0x1e; CC=0xf", "cycles"), Some(0xf));
        assert_eq!(number("cycle_count", "Cycle Count format 1.; Count=0xc", "cycles"), Some(12));
        assert_eq!(number("cancel", "Cancel Format 3.; Cancel(5), Mispredict", "cancel"), Some(5));
        assert_eq!(number("cancel", "Cancel Format 3.; Cancel(5), Mispredict", "mispredict"), Some(1));
        assert_eq!(number("q", "Q Packet.; Count(7); Addr=0x10 ~[0x10]", "count"), Some(7));
        let text = |kind, text: &str, name: &str| match fields(kind, text).remove(name) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        };
        assert_eq!(text("mispredict", "Mispredict.; Atom: N, Mispredict", "atoms").as_deref(), Some("N"));
        assert_eq!(text("atom", "Atom format 6.; EEEN", "atoms").as_deref(), Some("EEEN"));
        let exception = "Exception.;  IRQ; Ret Addr Follows; Match Prev";
        assert_eq!(text("exception", exception, "exception_name").as_deref(), Some("IRQ"));
    }

    #[test]
    fn kinds_of_the_other_protocols_are_not_taken() {
        assert_eq!(["I_SYNC", "I_RESERVED", "ATOM", "ISYNC"].map(kind), [None; 4]);
        assert_eq!(kind("I_ADDR_CTXT_L_64IS0"), Some("address"));
        assert_eq!(kind("I_ATOM_F6"), Some("atom"));
    }
}
