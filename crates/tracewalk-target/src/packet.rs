//! GDB's remote serial protocol: the shape of packets (GDB manual, "Remote Protocol", "Overview").
//!
//! Bytes come in as they arrive, packets come out. Bytes outside packets are ignored; a packet with a wrong checksum, or
//! one that is too long, is requested again.

/// What arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// A packet's contents, without escapes.
    Packet(Vec<u8>),
    /// A packet that is damaged or unreadable.
    Damaged,
    /// Stop execution (Ctrl-C).
    Interrupt,
    /// Repeat the last answer.
    Again,
}

/// Parses requests.
#[derive(Debug, Default)]
pub struct Parser {
    state: State,
    contents: Vec<u8>,
    is_too_long: bool,
    sum: u8,
    /// Whether packets are a server's, in which `*` repeats a character.
    of_replies: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Between packets.
    #[default]
    Between,
    Contents,
    /// After an escape character.
    Escaped,
    /// After the character that repeats another.
    Repeating,
    /// After the contents.
    FirstDigit,
    SecondDigit(Option<u8>),
}

/// The longest packet that is accepted, in bytes; reported to GDB.
pub const LONGEST: usize = 1 << 14;

const START: u8 = b'$';
const END: u8 = b'#';
const ESCAPE: u8 = b'}';
const ESCAPED_BY: u8 = 0x20;
const INTERRUPT: u8 = 0x03;
const REPEAT: u8 = b'*';
/// The number of repetitions that the first printable character stands for is 3 (GDB manual, "Overview").
const REPEATED_LESS: u8 = 29;

impl Parser {
    /// A parser of a server's packets.
    #[must_use]
    pub fn of_replies() -> Self {
        Self { of_replies: true, ..Self::default() }
    }

    /// A packet begins; the one before may have been cut off.
    fn begin(&mut self) {
        *self = Self { state: State::Contents, of_replies: self.of_replies, ..Self::default() };
    }

    /// Takes the next byte.
    pub fn byte(&mut self, byte: u8) -> Option<Request> {
        match self.state {
            State::Between => match byte {
                START => {
                    self.begin();
                    None
                }
                INTERRUPT => Some(Request::Interrupt),
                b'-' => Some(Request::Again),
                // Anything else is an acknowledgement, or noise.
                _ => None,
            },
            State::Contents | State::Escaped | State::Repeating => {
                self.contents(byte);
                None
            }
            State::FirstDigit => {
                self.state = State::SecondDigit(digit(byte));
                None
            }
            State::SecondDigit(first) => {
                self.state = State::Between;
                let sum = first.zip(digit(byte)).map(|(first, second)| first << 4 | second);
                match sum == Some(self.sum) && !self.is_too_long {
                    true => Some(Request::Packet(std::mem::take(&mut self.contents))),
                    false => Some(Request::Damaged),
                }
            }
        }
    }

    fn contents(&mut self, byte: u8) {
        if byte == START && self.state != State::Repeating {
            return self.begin();
        }
        if byte == END && self.state != State::Repeating {
            self.is_too_long |= self.state == State::Escaped;
            self.state = State::FirstDigit;
            return;
        }
        self.sum = self.sum.wrapping_add(byte);
        let (byte, times) = match (std::mem::replace(&mut self.state, State::Contents), byte) {
            (State::Escaped, byte) => (byte ^ ESCAPED_BY, 1),
            (State::Repeating, times) => match self.contents.last() {
                Some(last) => (*last, times.saturating_sub(REPEATED_LESS)),
                None => return self.is_too_long = true,
            },
            (_, ESCAPE) => return self.state = State::Escaped,
            (_, REPEAT) if self.of_replies => return self.state = State::Repeating,
            (_, byte) => (byte, 1),
        };
        let length = self.contents.len() + usize::from(times);
        if length <= LONGEST {
            self.contents.resize(length, byte);
        } else {
            self.is_too_long = true;
        }
    }
}

/// Contents as a packet.
#[must_use]
pub fn packet(contents: &[u8]) -> Vec<u8> {
    let mut packet = vec![START];
    for &byte in contents {
        match byte {
            START | END | ESCAPE | REPEAT => packet.extend([ESCAPE, byte ^ ESCAPED_BY]),
            byte => packet.push(byte),
        }
    }
    let sum = packet.iter().skip(1).fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    packet.extend(format!("#{sum:02x}").into_bytes());
    packet
}

/// Bytes as hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Hexadecimal digits as bytes; `None` for other characters, or an odd number of digits.
#[must_use]
pub fn unhex(digits: &[u8]) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_chunks::<2>();
    let byte = |[first, second]: &[u8; 2]| Some(digit(*first)? << 4 | digit(*second)?);
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}

/// A hexadecimal number.
#[must_use]
pub fn number(digits: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(digits).ok().filter(|text| !text.starts_with('+'))?;
    u64::from_str_radix(text, 16).ok()
}

fn digit(byte: u8) -> Option<u8> {
    u8::try_from(char::from(byte).to_digit(16)?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn requests(bytes: &[u8]) -> Vec<Request> {
        let mut parser = Parser::default();
        bytes.iter().filter_map(|byte| parser.byte(*byte)).collect()
    }

    #[test]
    fn the_manuals_packets_are_read() {
        assert_eq!(requests(b"+$g#67"), [Request::Packet(b"g".to_vec())]);
        assert_eq!(
            requests(b"$OK#9a-\x03"),
            [Request::Packet(b"OK".to_vec()), Request::Again, Request::Interrupt]
        );
        assert_eq!(packet(b"OK"), b"$OK#9a");
    }

    #[test]
    fn damaged_packets_are_distinguished_and_the_next_one_is_read() {
        assert_eq!(requests(b"$g#00$g#67"), [Request::Damaged, Request::Packet(b"g".to_vec())]);
        assert_eq!(requests(b"$g#xx$g#67"), [Request::Damaged, Request::Packet(b"g".to_vec())]);
        assert_eq!(requests(b"$m12$g#67"), [Request::Packet(b"g".to_vec())]);
        let long = packet(&vec![b'a'; LONGEST + 1]);
        assert_eq!(
            requests(&[&*long, b"$g#67"].concat()),
            [Request::Damaged, Request::Packet(b"g".to_vec())]
        );
    }

    #[test]
    fn a_server_repeats_characters() {
        let mut parser = Parser::of_replies();
        let mut read = |bytes: &[u8]| bytes.iter().filter_map(|byte| parser.byte(*byte)).collect::<Vec<_>>();
        assert_eq!(read(b"$0* #7a$*"), [Request::Packet(b"0000".to_vec())]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(contents in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(requests(&packet(&contents)), [Request::Packet(contents)]);
        }

        #[test]
        fn any_bytes_are_passed(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = requests(&bytes);
            let mut parser = Parser::of_replies();
            for event in bytes.iter().filter_map(|byte| parser.byte(*byte)) {
                prop_assert!(!matches!(event, Request::Packet(contents) if contents.len() > LONGEST));
            }
        }

        #[test]
        fn bytes_are_written_and_read(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(unhex(hex(&bytes).as_bytes()), Some(bytes));
        }
    }
}
