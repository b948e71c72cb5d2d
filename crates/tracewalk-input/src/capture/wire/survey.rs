//! The activity of each channel of a recording, for users who named the wrong channel.

use std::path::Path;

use super::WireOptions;
use super::changes::MOST_CHANNELS;
use super::recording::Recording;
use super::seen::{ChannelSeen, Listed, Signal};
use super::ways::{Way, best_way, lines};
use crate::excerpt::excerpt;

/// The activity of the channels of the recording at `path`, as a phrase; `None` if it cannot be read again.
#[must_use]
pub fn seen_in(path: &Path) -> Option<String> {
    let seen = survey(&Recording::open(path).ok()??);
    (!seen.is_empty()).then(|| Listed(&seen).to_string())
}

/// Surveys every channel. Leaves out what can no longer be read.
pub(super) fn survey(recording: &Recording) -> Vec<ChannelSeen> {
    let channels = (0..recording.channels().len().min(MOST_CHANNELS)).collect::<Vec<_>>();
    let Ok((lines, _)) = lines(recording, &channels) else { return Vec::new() };
    let seen = recording.channels().iter().zip(&lines).map(|(name, line)| {
        let changes = line.edges.len() as u64;
        let bytes = || {
            [false, true].into_iter().find_map(|inverted| {
                let line = if inverted { line.inverted() } else { line.clone() };
                let best = best_way(&line, &WireOptions::default(), recording.ticks_per_second());
                let (way, score) = best.ok()??;
                let bits_per_second = bit_rate(way, recording.ticks_per_second());
                let signal = |wire| Signal::Bytes {
                    wire,
                    inverted,
                    bits_per_second,
                    bytes: score.bytes,
                    errors: score.errors,
                };
                score.is_good().then(|| signal(way.wire()))
            })
        };
        let signal = match changes {
            0 => Signal::Still { high: line.starts_high },
            _ if line.is_clock() => Signal::Clock { changes },
            _ => bytes().unwrap_or(Signal::Other { changes }),
        };
        ChannelSeen { name: excerpt(name), signal }
    });
    seen.collect()
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate is positive, and less than 2^63"
)]
fn bit_rate(way: Way, ticks_per_second: Option<f64>) -> Option<u64> {
    Some((ticks_per_second? / way.ticks_per_bit()?).round() as u64)
}
