//! Bytes that other programs have decoded, in a table or alone.
//!
//! ```text
//! Time [s],Value,Parity Error,Framing Error       Saleae Logic 1, its serial analyser
//! 0.001000000000000,0x48,,
//!
//! name,type,start_time,duration,data              Saleae Logic 2
//! "Async Serial","data",0.001000000,4.5e-06,0x48
//!
//! 48 65 6c 6c 6f                                  bytes alone, also as `0x48, 0x65,`
//! 20 77 6f 72
//! ```

use crate::capture::wire::csv::{Cells, separator};

/// The labels of columns with times, and of those with bytes.
const LABELS: [[&str; 2]; 2] = [["time [s]", "start_time"], ["value", "data"]];

/// The fewest bytes that are read alone: there are short words of these letters.
const FEWEST: usize = 4;

/// Whether a file that starts like this is a table of bytes.
pub(in crate::capture) fn is_one(head: &[u8]) -> bool {
    let head = String::from_utf8_lossy(head);
    // The last line may be cut.
    let lines = head.rsplit_once('\n').map_or("", |(lines, _)| lines);
    read(lines).is_some()
}

/// The bytes of a table; `None` if the text is something else.
pub(super) fn read(text: &str) -> Option<Vec<u8>> {
    let mut lines = text.trim_start_matches('\u{feff}').lines().filter(|line| !line.trim().is_empty());
    let labels = lines.next()?;
    let mut cells = Cells::new(separator(labels));
    let labels = cells.of(labels).map(str::to_ascii_lowercase).collect::<Vec<_>>();
    let columns = LABELS.map(|known| labels.iter().position(|label| known.contains(&label.as_str())));
    let [Some(_), Some(column)] = columns else { return None };
    let mut bytes = Vec::new();
    for line in lines {
        match cells.of(line).nth(column) {
            // Some rows are errors or ends of packets.
            None | Some("") => {}
            Some(cell) => bytes.push(byte(cell.strip_prefix("0x")?)?),
        }
    }
    (!bytes.is_empty()).then_some(bytes)
}

/// The bytes of a text that has nothing else; `None` for any other text.
pub(super) fn alone(text: &str) -> Option<Vec<u8>> {
    let words = text.split([' ', '\t', '\r', '\n', ',']).filter(|word| !word.is_empty());
    let bytes =
        words.map(|word| byte(word.strip_prefix("0x").unwrap_or(word))).collect::<Option<Vec<_>>>()?;
    (bytes.len() >= FEWEST).then_some(bytes)
}

fn byte(digits: &str) -> Option<u8> {
    let is_byte = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_byte.then(|| u8::from_str_radix(digits, 16).ok())?
}
