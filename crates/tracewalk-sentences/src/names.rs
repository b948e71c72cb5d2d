//! The names of things in sentences, and the options that state them.

use tracewalk::ids::TraceId;
use tracewalk::span::CaptureOffset;
use tracewalk_input::capture::SourceDescription;
use tracewalk_session::{Inferred, Notice};

/// The name of a source.
#[must_use]
pub fn source_name(id: Option<TraceId>) -> String {
    id.map_or_else(|| "the source".to_owned(), |id| format!("trace ID {id}"))
}

/// The name of an ITM.
#[must_use]
pub fn itm_name(id: Option<TraceId>) -> String {
    id.map_or_else(|| "the source".to_owned(), |id| format!("trace ID {id}"))
}

/// The `--source` option for a description.
#[must_use]
pub fn as_option(description: &SourceDescription) -> String {
    let mut option = String::from("--source ");
    if let Some(id) = description.id {
        option.push_str(&format!("{id}="));
    }
    option.push_str(description.protocol.name());
    if let Some(cpu) = &description.cpu {
        option.push_str(&format!(",cpu={}", cpu.value.to_ascii_lowercase()));
    }
    for (name, value) in description.decoding_registers() {
        // The processor implies its usual values.
        if !value.origin.is_of_processor() {
            let name = name.to_ascii_lowercase();
            let name = name.strip_prefix("mtb_").unwrap_or(&name);
            option.push_str(&format!(",{name}=0x{:x}", value.value));
        }
    }
    option
}

/// The option for an inferred setting.
pub(super) fn option(inferred: &Inferred) -> Option<String> {
    Some(match inferred {
        Inferred::SwappedWords => "--container swap-words".to_owned(),
        Inferred::ReadPointer(at) => format!("--container read-pointer={at:#x}"),
        Inferred::Container(container) => format!("--container {container}"),
        Inferred::FrameStart(start) => format!("--container frame-start={start}"),
        Inferred::Source(source) => as_option(source),
        Inferred::Wire(wire) => format!("--wire {wire}"),
        Inferred::Baud(rate) => format!("--wire baud={rate:.0}"),
        Inferred::Channel(name, role) => format!("--channel {}", quoted(&format!("{name}={role}"))),
        Inferred::Inverted => "--wire invert".to_owned(),
        Inferred::VectorTable(address) => format!("--vtor {address}"),
        _ => return None,
    })
}

/// An argument for a shell: in quotes, if it needs them.
#[must_use]
pub fn quoted(argument: &str) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || "=_-./:,@+%".contains(character);
    if !argument.is_empty() && argument.chars().all(is_plain) {
        return argument.to_owned();
    }
    let mut text = String::from("\"");
    for character in argument.chars() {
        if matches!(character, '"' | '\\' | '$' | '`') {
            text.push('\\');
        }
        text.push(character);
    }
    text.push('"');
    text
}

/// The place at which a notice first occurs.
pub(super) fn place(notice: &Notice) -> CaptureOffset {
    notice.at.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_can_be_pasted_into_a_shell() {
        assert_eq!(quoted("D0=swo"), "D0=swo");
        assert_eq!(quoted("Channel 0=swo"), "\"Channel 0=swo\"");
        assert_eq!(quoted("a\"$`\\=swo"), "\"a\\\"\\$\\`\\\\=swo\"");
        assert_eq!(quoted(""), "\"\"");
    }

    #[test]
    fn a_source_prints_as_the_option_that_makes_it() {
        let option = "0x02=etmv3,cpu=cortex-m3,etmcr=0x1000";
        let source: SourceDescription = option.parse().unwrap();
        assert_eq!(as_option(&source), format!("--source {option}"));
        assert_eq!(as_option(&source).strip_prefix("--source ").unwrap().parse(), Ok(source));
    }
}
