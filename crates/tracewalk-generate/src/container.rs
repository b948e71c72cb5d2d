//! Sources' bytes → the bytes of a capture file.
//!
//! ```
//! use tracewalk::frame::FormatterOptions;
//! use tracewalk::ids::TraceId;
//! use tracewalk_generate::container::{SourceBytes, frames};
//!
//! let id = TraceId::new(0x10).expect("a source's ID");
//! let capture = frames(&[SourceBytes { id, bytes: vec![0x2a; 100] }], FormatterOptions::default());
//! assert!(capture.len() > 100 && capture.len() % 16 == 0); // whole frames
//! ```

use tracewalk::frame::{Formatter, FormatterOptions};
use tracewalk::ids::TraceId;

/// The trace that one source sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceBytes {
    /// The source's trace ID.
    pub id: TraceId,
    /// The source's bytes.
    pub bytes: Vec<u8>,
}

/// The most bytes that a source sends in one turn. Not a multiple of a frame's size, so that changes of ID
/// occur at every place of a frame.
const TURN: usize = 53;

/// CoreSight frames as a trace buffer holds them; the sources take turns.
///
/// A source's share of a turn is in proportion to its total, so that all sources end together.
#[must_use]
pub fn frames(sources: &[SourceBytes], options: FormatterOptions) -> Vec<u8> {
    let mut output = Vec::new();
    let mut formatter = Formatter::new(options);
    let turns = sources.iter().map(|source| source.bytes.len().div_ceil(TURN)).max().unwrap_or(0);
    let mut sent = vec![0; sources.len()];
    for turn in 1..=turns {
        for (source, sent) in sources.iter().zip(&mut sent) {
            let until = source.bytes.len() * turn / turns;
            formatter.write(source.id, source.bytes.get(*sent..until).unwrap_or_default(), &mut output);
            *sent = until;
        }
    }
    formatter.flush(&mut output);
    output
}

/// Text as software sends it through an ITM's stimulus port 0, a byte in each packet (ARMv7-M Architecture Reference
/// Manual, DDI 0403E, D4.2: header `0b00000_0_01`).
#[must_use]
pub fn itm_text(text: &str) -> Vec<u8> {
    text.bytes().flat_map(|byte| [0b0000_0001, byte]).collect()
}
