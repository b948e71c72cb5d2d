//! General queries: supported features, threads, the description of the registers, the user's `monitor`.

use super::{DONE, Dialogue, REFUSED, Thread, UNKNOWN, split};
use crate::monitor;
use tracewalk_target::packet::{LONGEST, hex, number, unhex};

/// How many bytes of text a packet holds.
const TEXT: usize = 1 << 11;

impl Dialogue<'_, '_> {
    /// Packets that begin with `q` or `Q`.
    pub(super) fn query(&mut self, contents: &[u8]) -> Vec<String> {
        if let Some(digits) = contents.strip_prefix(b"qRcmd,") {
            return self.monitor(digits);
        }
        let answer = if contents.starts_with(b"qSupported") {
            format!(
                "PacketSize={LONGEST:x};QStartNoAckMode+;qXfer:features:read+;ReverseStep+;ReverseContinue+;\
                 swbreak+;hwbreak+;vContSupported+"
            )
        } else if contents == b"QStartNoAckMode" {
            self.acknowledges = false;
            DONE.to_owned()
        } else if let Some(place) = contents.strip_prefix(b"qXfer:features:read:target.xml:") {
            self.description(place).unwrap_or_else(|| REFUSED.to_owned())
        } else if contents == b"qfThreadInfo" {
            let threads =
                (0..self.threads.len()).filter(|thread| self.is_listed(*thread)).collect::<Vec<_>>();
            let numbers = threads.iter().map(|thread| format!("{:x}", thread + 1));
            format!("m{}", numbers.collect::<Vec<_>>().join(","))
        } else if contents == b"qsThreadInfo" {
            "l".to_owned()
        } else if let Some(thread) = contents.strip_prefix(b"qThreadExtraInfo,") {
            let thread = self.thread(thread).and_then(|index| self.threads.get(index).copied());
            let text =
                thread.and_then(|Thread { core, who }| Some(monitor::thread(self.cores.get_mut(core)?, who)));
            text.map_or_else(|| REFUSED.to_owned(), |text| hex(text.as_bytes()))
        } else if contents == b"qC" {
            format!("QC{:x}", self.general + 1)
        } else if contents.starts_with(b"qAttached") {
            // GDB detaches from a process that existed before, and kills one that it started.
            "1".to_owned()
        } else if contents.starts_with(b"qSymbol") {
            DONE.to_owned()
        } else {
            UNKNOWN.to_owned()
        };
        vec![answer]
    }

    /// A piece of the description of the registers.
    fn description(&mut self, place: &[u8]) -> Option<String> {
        let description = self.asked().0.unwinder.architecture.description();
        let (offset, length) = split(place, b',')?;
        let (offset, length) =
            (usize::try_from(number(offset)?).ok()?, usize::try_from(number(length)?).ok()?);
        let end = offset.saturating_add(length.min(LONGEST / 2)).min(description.len());
        let piece = description.get(offset.min(end)..end)?;
        let more = if end < description.len() { 'm' } else { 'l' };
        Some(format!("{more}{piece}"))
    }

    /// The answers to the user's `monitor` command.
    fn monitor(&mut self, digits: &[u8]) -> Vec<String> {
        let line = unhex(digits).and_then(|bytes| String::from_utf8(bytes).ok());
        let Some(line) = line else { return vec![REFUSED.to_owned()] };
        let (core, who) = self.asked();
        let text = monitor::answer(core, who, &line);
        let mut answers =
            text.as_bytes().chunks(TEXT).map(|piece| format!("O{}", hex(piece))).collect::<Vec<_>>();
        answers.push(DONE.to_owned());
        answers
    }
}
