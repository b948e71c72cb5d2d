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

/// What one trace source sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceBytes {
    /// Its ID.
    pub id: TraceId,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// How many bytes a source sends before another one gets its turn: not a multiple of the frame's, so that changes of
/// ID come at every place of a frame.
const TURN: usize = 53;

/// CoreSight frames, as a buffer holds them, in which the sources take turns.
///
/// The turns are in proportion to what the sources have to say, so that all of them end together.
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
