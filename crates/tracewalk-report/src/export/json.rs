//! Writing one JSON object a line, with the conventions all line formats share.
//!
//! Numbers are JSON numbers, addresses strings like `"0x08000306"`, bytes hex strings. For speed, the buffer is reused and
//! nothing is formatted through `fmt`: these writers see every packet of a capture.

use std::io::{self, Write};

use serde::Serialize;
use tracewalk::ids::{Address, TraceId};
use tracewalk::span::CaptureOffset;

use tracewalk_analysis::InDoubt;

/// Instructions in doubt, in a document.
#[derive(Debug, Serialize)]
pub(super) struct InDoubtJson {
    left_out: u64,
    counted: u64,
}

impl From<InDoubt> for InDoubtJson {
    fn from(InDoubt { left_out, counted }: InDoubt) -> Self {
        Self { left_out, counted }
    }
}

/// For a field that is written only if it is false.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
pub(super) const fn is_true(value: &bool) -> bool {
    *value
}

/// Builds lines, one object at a time.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    text: Vec<u8>,
}

/// An object that is being written; [`Object::close`] ends it.
#[derive(Debug)]
pub(super) struct Object<'a> {
    text: &'a mut Vec<u8>,
    empty: bool,
}

impl Line {
    /// Starts the line's object with the fields that every object of the line formats has.
    pub(super) fn start(&mut self, version: u64, at: CaptureOffset, id: Option<TraceId>) -> Object<'_> {
        self.text.clear();
        let mut object = Object::open(&mut self.text);
        object.number("v", version);
        object.number("offset", at.0);
        match id {
            Some(id) => object.number("id", id.get().into()),
            None => object.null("id"),
        }
        object
    }

    /// Writes the line out.
    pub(super) fn end(&mut self, out: &mut impl Write) -> io::Result<()> {
        self.text.push(b'\n');
        out.write_all(&self.text)
    }
}

impl<'a> Object<'a> {
    fn open(text: &'a mut Vec<u8>) -> Self {
        text.push(b'{');
        Self { text, empty: true }
    }

    pub(super) fn number(&mut self, name: &str, value: u64) {
        self.name(name);
        push_decimal(self.text, value);
    }

    pub(super) fn flag(&mut self, name: &str, value: bool) {
        self.name(name);
        self.text.extend_from_slice(if value { b"true" } else { b"false" });
    }

    pub(super) fn null(&mut self, name: &str) {
        self.name(name);
        self.text.extend_from_slice(b"null");
    }

    pub(super) fn text(&mut self, name: &str, value: &str) {
        self.name(name);
        push_string(self.text, value);
    }

    pub(super) fn address(&mut self, name: &str, value: Address) {
        self.name(name);
        self.text.extend_from_slice(b"\"0x");
        push_address(self.text, value, 8);
        self.text.push(b'"');
    }

    /// A pattern of bits, like `"0x1f"`.
    pub(super) fn hex(&mut self, name: &str, value: u64) {
        self.text(name, &format!("{value:#x}"));
    }

    pub(super) fn bytes(&mut self, name: &str, value: &[u8]) {
        self.name(name);
        self.text.push(b'"');
        for byte in value {
            push_hex(self.text, u32::from(*byte), 2);
        }
        self.text.push(b'"');
    }

    /// A field that is an object itself.
    pub(super) fn object(&mut self, name: &str) -> Object<'_> {
        self.name(name);
        Object::open(self.text)
    }

    pub(super) fn close(self) {
        self.text.push(b'}');
    }

    fn name(&mut self, name: &str) {
        if !self.empty {
            self.text.push(b',');
        }
        self.empty = false;
        push_string(self.text, name);
        self.text.push(b':');
    }
}

/// Appends `value` in lower-case hexadecimal with at least `digits` digits.
#[inline]
pub(super) fn push_hex(text: &mut Vec<u8>, value: u32, digits: u32) {
    let needed = (u32::BITS - value.leading_zeros()).div_ceil(4).max(digits).clamp(1, 8);
    // Always appends eight bytes, which is one store; a variable number would be a call.
    let from_the_first = hex(value) << (u64::BITS - 8 * needed);
    text.extend_from_slice(&from_the_first.to_be_bytes());
    text.truncate(text.len() - (8 - needed as usize));
}

/// Appends an address with at least `digits` digits; from 2^32 on with all 16.
#[inline(always)]
pub(super) fn push_address(text: &mut Vec<u8>, address: Address, digits: u32) {
    match u32::try_from(address.get()) {
        Ok(low) => push_hex(text, low, digits),
        Err(_) => push_long_address(text, address),
    }
}

/// The same from 2^32 on. Out of line, so that the writer of short addresses stays small.
#[cold]
fn push_long_address(text: &mut Vec<u8>, address: Address) {
    let high = u32::try_from(address.get() >> 32).expect("32 bits are left");
    push_hex(text, high, 8);
    push_hex(text, address.low_word(), 8);
}

/// All eight digits, the first one in the highest byte. Without a loop, because they are most of an output.
const fn hex(value: u32) -> u64 {
    // One digit's value in each byte.
    let mut x = value as u64;
    x = (x & 0xffff_0000) << 16 | x & 0xffff;
    x = (x & 0x0000_ff00_0000_ff00) << 8 | x & 0x0000_00ff_0000_00ff;
    x = (x & 0x00f0_00f0_00f0_00f0) << 4 | x & 0x000f_000f_000f_000f;
    // Adding 6 carries into bit 4 of those above 9; letters come 39 after the place that follows `9`.
    let letters = (x + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
    x + 0x3030_3030_3030_3030 + letters * 39
}

/// Appends `value` in decimal.
pub(super) fn push_decimal(text: &mut Vec<u8>, value: u64) {
    let start = text.len();
    let mut rest = value;
    loop {
        let digit = u8::try_from(rest % 10).expect("a remainder by ten is one digit");
        text.push(b'0' + digit);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    text[start..].reverse();
}

/// Appends `value` quoted and escaped (RFC 8259, section 7).
fn push_string(text: &mut Vec<u8>, value: &str) {
    text.push(b'"');
    let mut rest = value.as_bytes();
    loop {
        let plain = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0x00..=0x1f));
        let (plain, escaped) = rest.split_at(plain.unwrap_or(rest.len()));
        text.extend_from_slice(plain);
        let Some((byte, after)) = escaped.split_first() else { break };
        match byte {
            0x00..=0x1f => {
                text.extend_from_slice(b"\\u");
                push_hex(text, u32::from(*byte), 4);
            }
            _ => text.extend_from_slice(&[b'\\', *byte]),
        }
        rest = after;
    }
    text.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_back_by_another_json_library() {
        let mut line = Line::default();
        let mut object = line.start(1, CaptureOffset(u64::MAX), TraceId::new(0x10));
        object.text("name", "a \"quoted\" \\ name\nwith\u{1}control and ü");
        object.address("addr", Address::new(0x306));
        object.bytes("bytes", &[0x00, 0xa5]);
        object.flag("yes", true);
        let mut inner = object.object("inner");
        inner.number("ten", 10);
        inner.close();
        object.close();
        let mut out = Vec::new();
        line.end(&mut out).unwrap();
        let read: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let expected = serde_json::json!({
            "v": 1, "offset": u64::MAX, "id": 16, "name": "a \"quoted\" \\ name\nwith\u{1}control and ü",
            "addr": "0x00000306", "bytes": "00a5", "yes": true, "inner": { "ten": 10 },
        });
        assert_eq!(read, expected);
    }

    #[test]
    fn hex_is_what_fmt_writes() {
        for value in
            (0..32).flat_map(|shift| [1_u32, 9, 10, 15, 0x5a, 0xdead_beef].map(|value| value << shift))
        {
            let mut text = Vec::new();
            push_hex(&mut text, value, 1);
            assert_eq!(text, format!("{value:x}").into_bytes());
        }
    }

    #[test]
    fn addresses_from_2_to_the_32_on_have_all_their_digits() {
        for (address, expected) in
            [(0x8000, "8000"), (0xffff_ffff, "ffffffff"), (1 << 32, "0000000100000000")]
        {
            let mut text = Vec::new();
            push_address(&mut text, Address::new(address), 1);
            assert_eq!(text, expected.as_bytes());
        }
    }

    #[test]
    fn hex_has_as_many_digits_as_it_needs_and_at_least_those_asked_for() {
        for value in [0, 1, 0xf, 0x10, 0x8000_0000, u32::MAX] {
            let mut text = Vec::new();
            push_hex(&mut text, value, 1);
            assert_eq!(text, format!("{value:x}").into_bytes());
            text.clear();
            push_hex(&mut text, value, 8);
            assert_eq!(text, format!("{value:08x}").into_bytes());
        }
    }
}
