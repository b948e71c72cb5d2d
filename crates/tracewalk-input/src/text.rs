//! Distinguishes text from binary data.

/// The encoding of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Letters {
    /// UTF-8, including ASCII. Trace is hardly ever valid UTF-8.
    Utf8,
    /// One byte for each character, some outside ASCII: a text of an old system, or a short trace.
    Bytes,
}

/// One character in this many may be noise.
const ONE_IN: usize = 64;

/// Trace begins with at most this many zeros.
const MOST_ZEROS: usize = 64;

/// The encoding of a text that starts like this; `None` if it has control characters that do not occur in
/// text. All but the shortest traces have some. A few others are noise of a serial line.
pub(crate) fn letters(bytes: &[u8]) -> Option<Letters> {
    // A buffer that was not filled may begin with zeros.
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let written = if zeros > MOST_ZEROS && zeros < bytes.len() { &bytes[zeros..] } else { bytes };
    let beginning = written.get(..4096).unwrap_or(written);
    let is_letter =
        |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b'\x0c' | b'\x1b' | b' '..=b'~' | 0x80..);
    let is_utf8 = match std::str::from_utf8(beginning) {
        Ok(_) => true,
        // The cut after 4096 bytes may split a character.
        Err(error) => error.error_len().is_none(),
    };
    let others = beginning.iter().filter(|byte| !is_letter(byte)).count();
    let foreign = if is_utf8 { 0 } else { beginning.iter().filter(|byte| !byte.is_ascii()).count() };
    let is_noisy = (others + foreign) * ONE_IN <= beginning.len();
    match others {
        _ if is_noisy => Some(Letters::Utf8),
        0 => Some(if is_utf8 { Letters::Utf8 } else { Letters::Bytes }),
        _ => None,
    }
}

/// The file's text; `None` if the file is not text.
pub(crate) fn decode(bytes: &[u8]) -> Option<String> {
    // UTF-16, which Windows PowerShell writes when a tool's output is redirected into a file.
    if let Some(wide) = bytes.strip_prefix(b"\xff\xfe") {
        let units = wide.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
        let text = char::decode_utf16(units).collect::<Result<String, _>>().ok()?;
        return letters(text.as_bytes()).map(|_| text);
    }
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    // The copy is checked again, because another program may be writing the file.
    let lossy = |bytes: Vec<u8>| match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    };
    letters(bytes).map(|_| lossy(bytes.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_distinguished_from_trace_by_control_characters_and_by_utf_8() {
        for text in ["", "0x20000000:\t0x0000010c\r\n", "10 \u{b5}s", "\x1b[1m(gdb)\x1b[0m\x0c"] {
            assert_eq!(letters(text.as_bytes()), Some(Letters::Utf8), "{text:?}");
        }
        let cut = [vec![b'a'; 4095], "\u{b5}".as_bytes().to_vec()].concat();
        assert_eq!(letters(&cut), Some(Letters::Utf8));
        assert_eq!(letters(b"10 \xb5s"), Some(Letters::Bytes));
        assert_eq!(letters(&[0x84, 0x88, 0x90]), Some(Letters::Bytes));
        let noisy = |count: usize| letters(&[&[0][..], &vec![b'a'; count - 1]].concat());
        assert_eq!((noisy(64), noisy(63)), (Some(Letters::Utf8), None));
        let foreign = [&b"\xff\0"[..], &[b'a'; 126]].concat();
        assert_eq!(letters(&foreign), Some(Letters::Utf8));
        for trace in [&[0, 0, 0, 0, 0, 0x80][..], &[0x08, 0x21], &[0x84, 0x7f]] {
            assert_eq!(letters(trace), None, "{trace:x?}");
        }
    }
}
