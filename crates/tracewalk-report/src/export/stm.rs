//! Reports of STMs, as lines and as JSON lines (docs/formats.md).

use std::io::{self, Write};

use tracewalk::ids::Address;
use tracewalk::protocol::Describe as _;
use tracewalk::protocol::stm::{Packet, Sender};

use super::json::{Line, Object};
use tracewalk_analysis::Code;
use tracewalk_analysis::record::ItmRecord;
use tracewalk_analysis::stm::{Message, MessageContent, StmEvent};

/// Lines of data that wait for the message that they may be a part of.
#[derive(Debug, Default)]
pub(super) struct StmLines {
    waiting: Vec<(Sender, String)>,
}

/// The most lines that wait.
const MOST_WAITING: usize = 1 << 12;

impl StmLines {
    /// Writes the event; data only if it is no part of a message that is understood.
    pub(super) fn event(&mut self, out: &mut impl Write, event: &StmEvent, code: &Code) -> io::Result<()> {
        let Sender { master, channel } = event.sender;
        let message = event.message.as_ref();
        let time = message.map_or_else(|| event.packet.time(), |message| message.time);
        let time = time.map_or_else(|| "-".to_owned(), |time| time.to_string());
        let what = match (&event.packet, message) {
            (_, Some(message)) => message.text(|address| place_name(code, address)),
            (Packet::Data { size, value, marker, .. }, _) => {
                let marker = if *marker { " marked" } else { "" };
                format!("0x{value:0width$x}{marker}", width = size.nibbles())
            }
            (Packet::Trigger { value, .. }, _) => format!("trigger 0x{value:02x}"),
            (Packet::Frequency { hertz: 0, .. }, _) => "frequency of the times not set".to_owned(),
            (Packet::Frequency { hertz, .. }, _) => format!("times in {hertz} Hz"),
            (Packet::MasterError(_), _) => "lost writes of this master".to_owned(),
            (Packet::GlobalError(_), _) => "lost writes of several masters".to_owned(),
            (packet, _) => packet.name().to_owned(),
        };
        let line = format!("{time:>20} {master:>4} {channel:>5}  {what}");
        if message.is_some() {
            self.waiting.retain(|(sender, _)| *sender != event.sender);
        }
        if matches!(event.packet, Packet::Data { .. }) && self.waiting.len() < MOST_WAITING {
            self.waiting.push((event.sender, line));
            return Ok(());
        }
        self.end(out)?;
        writeln!(out, "{line}")
    }

    /// Writes the lines that wait.
    pub(super) fn end(&mut self, out: &mut impl Write) -> io::Result<()> {
        self.waiting.drain(..).try_for_each(|(_, line)| writeln!(out, "{line}"))
    }
}

/// Writes an event as a line of JSON, and the message that it ends as another.
pub(super) fn write_stm(
    out: &mut impl Write,
    (line, version): (&mut Line, u64),
    (record, event): (&ItmRecord, &StmEvent),
    code: &Code,
) -> io::Result<()> {
    let mut object = line.start(version, record.at, record.id);
    object.text("element", "stm");
    let (size, value, marker) = match event.packet {
        Packet::Data { size, value, marker, .. } => (size.bytes(), Some(value), marker),
        Packet::Flag { .. } => (0, None, false),
        packet => {
            object.text("event", packet.name());
            sender(&mut object, event.sender);
            match packet {
                Packet::Frequency { hertz, .. } => object.number("frequency", hertz.into()),
                Packet::Trigger { value, .. } | Packet::MasterError(value) | Packet::GlobalError(value) => {
                    object.hex("value", value.into());
                }
                _ => {}
            }
            time(&mut object, packet.time());
            object.close();
            return line.end(out);
        }
    };
    sender(&mut object, event.sender);
    object.number("bytes", size.into());
    if let Some(value) = value {
        object.hex("value", value);
    }
    object.flag("marker", marker);
    object.flag("flag", value.is_none());
    time(&mut object, event.packet.time());
    object.close();
    line.end(out)?;
    let Some(Message { time: at, content }) = &event.message else { return Ok(()) };
    let mut object = line.start(version, record.at, record.id);
    object.text("element", "stm");
    match content {
        MessageContent::Text(text) => {
            object.text("event", "message");
            object.text("text", text);
        }
        MessageContent::Function { function, caller, process } => {
            object.text("event", "function");
            object.address("function", *function);
            object.address("caller", *caller);
            let names = [("function_name", *function), ("caller_name", *caller)];
            for (field, address) in names {
                if let Some(function) = code.symbols.function(address) {
                    object.text(field, function.name);
                }
            }
            if let Some(process) = process {
                object.number("process", (*process).into());
            }
        }
    }
    sender(&mut object, event.sender);
    time(&mut object, *at);
    object.close();
    line.end(out)
}

fn sender(object: &mut Object<'_>, sender: Sender) {
    object.number("master", sender.master.into());
    object.number("channel", sender.channel.into());
}

fn time(object: &mut Object<'_>, time: Option<u64>) {
    match time {
        Some(time) => object.number("timestamp", time),
        None => object.null("timestamp"),
    }
}

/// A function's name, and the distance from its start.
fn place_name(code: &Code, address: Address) -> Option<String> {
    let function = code.symbols.function(address)?;
    Some(match address.get() - function.start.get() {
        0 => function.name.to_owned(),
        distance => format!("{}+0x{distance:x}", function.name),
    })
}
