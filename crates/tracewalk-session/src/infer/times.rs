//! Whether a source's timestamps increase.
//!
//! Bits that are not sent keep their value from the previous timestamp (IHI 0014Q, 7.7.4). Before the first whole
//! timestamp, and after lost bytes, the upper bits are unknown. In a Gray code the upper bits determine whether the
//! lower ones count up or down: the first step shows the direction, and all others have to keep it.

use std::cmp::Ordering;

use tracewalk::protocol::timestamp::{TimestampCoding, TimestampFormat, TimestampWidth};
use tracewalk::source::SourceConfig;

/// The timestamps so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// `None` for sources without such timestamps.
    format: Option<TimestampFormat>,
    last: Option<u64>,
    /// How many groups of bits have been sent.
    groups: u32,
    /// The direction in which they count, while more groups are unknown.
    direction: Option<Ordering>,
}

/// How many bits a byte of a timestamp holds.
const GROUP_BITS: u32 = 7;

impl Times {
    pub(super) const fn new(config: &SourceConfig) -> Self {
        let format = match config {
            SourceConfig::Etmv3(config) => Some(config.timestamp()),
            SourceConfig::Pft(config) => Some(config.timestamp()),
            _ => None,
        };
        Self { format, last: None, groups: 0, direction: None }
    }

    /// Takes the next timestamp, whose field these bytes start with; returns whether time goes back.
    pub(super) fn goes_back(&mut self, time: u64, field: &[u8]) -> bool {
        let Some(format) = self.format else { return false };
        let longest = match format.width {
            TimestampWidth::Bits48 => 7,
            TimestampWidth::Bits64 => 9,
        };
        let continues = field.iter().zip(1..longest).take_while(|(byte, _)| **byte & 0b1000_0000 != 0);
        let sent = continues.last().map_or(1, |(_, groups)| groups + 1);
        let is_news = sent > self.groups;
        self.groups = self.groups.max(sent);
        // 0 means that the time is unknown.
        if time == 0 {
            return false;
        }
        let Some(last) = self.last.replace(time) else { return false };
        if format.coding == TimestampCoding::Binary || self.groups == longest && !is_news {
            return time < last;
        }
        if is_news {
            self.direction = None;
            return false;
        }
        let known = (1_u64 << (GROUP_BITS * self.groups)) - 1;
        match (time & known).cmp(&(last & known)) {
            Ordering::Equal => false,
            step => *self.direction.get_or_insert(step) != step,
        }
    }

    /// Bytes were lost before the next timestamp.
    pub(super) fn lose(&mut self) {
        *self = Self { format: self.format, last: None, groups: 0, direction: None };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracewalk::protocol::timestamp::RawTimestamp;

    fn times(coding: TimestampCoding) -> Times {
        let format = TimestampFormat { width: TimestampWidth::Bits48, coding };
        Times { format: Some(format), last: None, groups: 0, direction: None }
    }

    /// How often time goes back, if these times are sent and the first `unseen` of them are cut off.
    fn steps_back(times: &mut Times, sent: &[u64], unseen: usize) -> usize {
        let format = times.format.unwrap();
        let (mut sender, mut receiver) = (RawTimestamp::default(), RawTimestamp::default());
        let mut back = 0;
        for (index, &time) in sent.iter().enumerate() {
            let mut field = Vec::new();
            format.write(sender, format.raw(time), &mut field);
            sender = format.raw(time);
            if index >= unseen {
                let bits = field.iter().zip(0..);
                let sent =
                    bits.map(|(byte, group)| (u64::from(byte & 0x7f) << (7 * group), 0x7f << (7 * group)));
                let (value, mask) = sent.fold((0, 0_u64), |all, group| (all.0 | group.0, all.1 | group.1));
                receiver = merged(receiver, value, mask, format);
                back += usize::from(times.goes_back(format.value(receiver), &field));
            }
        }
        back
    }

    fn merged(last: RawTimestamp, value: u64, mask: u64, format: TimestampFormat) -> RawTimestamp {
        let binary = TimestampFormat { coding: TimestampCoding::Binary, ..format };
        binary.raw(binary.value(last) & !mask | value)
    }

    #[test]
    fn gray_times_on_an_unknown_base_may_count_down() {
        let sent = (0..400).map(|step| 0x12_3456_0000 + 37 * step).collect::<Vec<_>>();
        for unseen in [0, 1, 2, 50, 300] {
            for coding in [TimestampCoding::Gray, TimestampCoding::Binary] {
                assert_eq!(steps_back(&mut times(coding), &sent, unseen), 0, "{coding:?}, {unseen} unseen");
            }
        }
    }

    #[test]
    fn gray_times_on_an_unknown_base_cannot_go_both_ways() {
        let mut times = times(TimestampCoding::Gray);
        let back = [3, 9, 5, 11, 7].map(|time| times.goes_back(time, &[0]));
        assert_eq!(back, [false, false, true, false, true]);
        times.lose();
        assert!(!times.goes_back(1, &[1]));
    }
}
