//! Text for people. The layout may change with any version; scripts should use the line formats.

mod calls;
mod chains;
mod code;
mod listing;
mod packets;
mod profile;
mod values;

use std::fmt::Write as _;

use tracewalk::directive::TransferValue;
use tracewalk::flow::{DataTransfer, EventKind, Gap, GapReason};
use tracewalk::ids::Address;

use super::flow_jsonl::{security_name, stated_level};
use tracewalk_analysis::Code;
use tracewalk_analysis::symbols::Symbols;

pub(super) use code::instruction_text;

pub use calls::{CallTree, CallTreeOptions};
pub use chains::{CallChainsOptions, write_call_chains};
pub use listing::{Listing, ListingOptions};
pub use packets::PacketsText;
pub use profile::{ProfileTextOptions, write_profile_text};
pub use values::ValuesText;

/// The indentation of each call.
const INDENT: usize = 2;
/// The call depth up to which code is indented: with more, instructions would leave the screen.
const DEEPEST_INDENT: usize = 24;
/// The width of lines that mark an exception or a gap.
const RULE_WIDTH: usize = 78;

/// The indentation of code at this call depth, in columns.
fn indent(depth: usize) -> usize {
    depth.min(DEEPEST_INDENT) * INDENT
}

/// `── text ─────`, as wide as the others.
fn rule(text: &str) -> String {
    let filling = RULE_WIDTH.saturating_sub(text.chars().count() + 4);
    format!("── {text} {}", "─".repeat(filling))
}

/// `main+0x16`, or the address if no function is known.
fn place_name(symbols: &dyn Symbols, address: Address) -> String {
    match symbols.function(address) {
        Some(function) => match address.offset_from(function.start) {
            Some(0) => function.name.to_owned(),
            Some(offset) => format!("{}+0x{offset:x}", function.name),
            None => address.to_string(),
        },
        None => address.to_string(),
    }
}

/// `0x08000316 <main+0x16>`, or only the address.
pub(super) fn address_and_name(symbols: &dyn Symbols, address: Address) -> String {
    match symbols.function(address) {
        Some(_) => format!("{address} <{}>", place_name(symbols, address)),
        None => address.to_string(),
    }
}

/// The line's text for an event that stands out; `None` for those that do not.
fn marked_event(code: &Code, event: &EventKind) -> Option<String> {
    match event {
        EventKind::TraceOn(reason) => Some(format!("trace begins: {}", reason.name())),
        EventKind::Exception { exception, preferred_return, .. } => {
            let mut text = exception.map_or_else(
                || "an exception".to_owned(),
                |exception| code.interrupts.describe(exception).to_string(),
            );
            if let Some(address) = preferred_return {
                // Writing to a string cannot fail.
                let _ = write!(text, ", returns to {}", address_and_name(&*code.symbols, *address));
                if !code.program.is_empty() && code.program.code(*address).is_none() {
                    text.push_str(" (in no image)");
                }
            }
            Some(text)
        }
        EventKind::ExceptionReturn => Some("return from exception".to_owned()),
        _ => None,
    }
}

/// The line's text for an event that does not stand out; `None` for the others.
fn quiet_event(event: &EventKind) -> Option<String> {
    Some(match event {
        EventKind::Context { context_id, vmid, privilege } => {
            let mut text = security_name(*privilege).replace('_', "-");
            if let Some(level) = stated_level(*privilege) {
                let _ = write!(text, ", {level}");
            }
            if let Some(context_id) = context_id {
                let _ = write!(text, ", context ID {context_id}");
            }
            if let Some(vmid) = vmid {
                let _ = write!(text, ", VMID {vmid}");
            }
            text
        }
        EventKind::ClockChanged => "clock speed changed".to_owned(),
        EventKind::Timestamp(0) => "timestamp unknown".to_owned(),
        EventKind::Timestamp(value) => format!("timestamp {value}"),
        EventKind::Trigger => "trigger".to_owned(),
        EventKind::Data(transfer) => data(transfer),
        EventKind::TraceOn(_)
        | EventKind::Exception { .. }
        | EventKind::ExceptionReturn
        | EventKind::Cycles(_) => return None,
        other => other.to_string(),
    })
}

fn data(transfer: &DataTransfer) -> String {
    let mut text = match transfer.store {
        Some(true) => "stores ",
        Some(false) => "loads ",
        None => "accesses ",
    }
    .to_owned();
    let _ = match transfer.value {
        TransferValue::Value(value) => write!(text, "0x{value:x}"),
        TransferValue::Pending(_) => write!(text, "a value that comes later"),
        TransferValue::NotTraced => write!(text, "a value that was not traced"),
        TransferValue::StoreFailed => write!(text, "nothing: the exclusive store failed"),
        TransferValue::Suppressed => write!(text, "a value that the trace unit dropped"),
    };
    if let Some(address) = transfer.address {
        let _ = write!(text, " at {address}");
    }
    text
}

/// The line's text for a gap.
fn gap_text(gap: &Gap) -> String {
    let mut text = gap.reason.to_string();
    if matches!(gap.reason, GapReason::TraceLost) && gap.span.bytes() > 0 {
        let _ = write!(text, " ({} bytes)", gap.span.bytes());
    }
    text
}
