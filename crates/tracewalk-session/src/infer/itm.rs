//! Whether a source's bytes are an ITM's.
//!
//! An ITM's packets have no frame around them, and nearly three in four byte values begin a packet. The evidence for an
//! ITM is plausible content: text, valid exception numbers, addresses in the program.

use tracewalk::ids::TraceId;
use tracewalk::program::Program;
use tracewalk::protocol::itm::{Decoder, Packet, Size};
use tracewalk::protocol::{Item, Packets};
use tracewalk_input::Origin;
use tracewalk_input::capture::{Protocol, SourceDescription};

use super::finding::{Answer, Certainty, Finding};
use super::processor::Unit;
use super::source::best_protocol;
use crate::contents::Sample;

/// Counts of a sample, read as an ITM's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ItmReading {
    pub(super) packets: u64,
    pub(super) malformed: u64,
    /// Packets with plausible content.
    plausible: u64,
    /// Packets that an ITM hardly ever sends.
    odd: u64,
    /// The stretch of memory of the last program counter sample.
    place: Option<u64>,
}

/// A source that was found to be an ITM.
#[derive(Clone, Debug)]
pub(crate) struct FoundItm {
    pub(crate) source: SourceDescription,
    pub(crate) finding: Finding,
}

/// Fewer plausible packets than this may be chance.
const ENOUGH: u64 = 8;
/// One in four random bytes begins no packet, so that this many packets in a row are no chance, whatever they hold.
const MANY: u64 = 64;
/// The size of a stretch of memory that a program stays in: 64 KiB.
const PLACE_BITS: u32 = 16;

/// The source with this ID, if it is an ITM. `units` are the instruction trace units for the runner-up.
pub(crate) fn itm(
    id: Option<TraceId>,
    sample: &Sample,
    program: &Program,
    units: &[Unit],
) -> Option<FoundItm> {
    let reading = read(sample, program);
    (reading.is_itm() || is_surely_itm(sample.bytes())).then(|| {
        let evidence = format!("{} errors in {} packets", reading.malformed, reading.packets);
        FoundItm {
            source: SourceDescription { id, ..SourceDescription::new(Protocol::Itm, Origin::Detected) },
            finding: Finding {
                about: "protocol",
                best: Answer::new("itm", evidence),
                runner_up: best_protocol(sample, units),
                certainty: Certainty::Certain,
            },
        }
    })
}

/// Whether these bytes are an ITM's alone, apart from a little damage, without regard to other readings. Zeros around them are the rest of a buffer that
/// was not filled.
pub(crate) fn is_surely_itm(bytes: &[u8]) -> bool {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let Some(bytes) = bytes.get(zeros..end) else { return false };
    // Zeros and this byte are a synchronisation packet.
    let reading =
        read_bytes(bytes.strip_prefix(&[0x80]).filter(|_| zeros >= 5).unwrap_or(bytes), &Program::new());
    let wrong = reading.malformed + reading.odd;
    let is_no_chance = reading.packets >= MANY && wrong * MANY <= reading.packets;
    is_no_chance || reading.is_itm() && wrong == 0
}

/// Reads a sample as an ITM's bytes.
pub(super) fn read(sample: &Sample, program: &Program) -> ItmReading {
    read_bytes(sample.bytes(), program)
}

fn read_bytes(bytes: &[u8], program: &Program) -> ItmReading {
    let mut reading = ItmReading::default();
    let mut packets = Packets::new(Decoder::new());
    let mut note = |item: Item<Packet>, _, _: &[u8]| match item {
        Item::Packet(packet) => reading.packet(packet, program),
        Item::Malformed(_) => reading.malformed += 1,
        Item::Unsynchronised => {}
    };
    packets.push(bytes, &mut note);
    // The sample may end inside a packet; the incomplete packet is ignored.
    reading
}

impl ItmReading {
    fn packet(&mut self, packet: Packet, program: &Program) {
        self.packets += 1;
        match packet {
            Packet::Sync => self.plausible += ENOUGH / 2,
            Packet::Stimulus { size, value, .. } => self.plausible += u64::from(is_text(size, value)),
            // The number has room for more interrupts than any processor has; 0 is not an exception.
            Packet::Exception { number: 0..=15, .. } => self.plausible += 2,
            // Armv8-M has 480 interrupts.
            Packet::Exception { number: 16..=495, .. } | Packet::PcSample(None) => self.plausible += 1,
            Packet::PcSample(Some(at)) | Packet::DataPc { address: at, .. } if program.holds(at) => {
                self.plausible += ENOUGH / 2;
            }
            Packet::PcSample(Some(at)) | Packet::DataPc { address: at, .. } if at.get() & 1 == 1 => {
                self.odd += 1;
            }
            Packet::PcSample(Some(at)) | Packet::DataPc { address: at, .. } => {
                // Programs mostly stay in one stretch of memory.
                let place = at.get() >> PLACE_BITS;
                self.plausible += u64::from(self.place.replace(place) == Some(place));
            }
            Packet::Exception { .. } | Packet::Extension { .. } => self.odd += 1,
            Packet::LocalTimestamp { .. }
            | Packet::GlobalTimestampLow { .. }
            | Packet::GlobalTimestampHigh { .. }
            | Packet::Overflow
            | Packet::StimulusPage(_)
            | Packet::EventCounters(_)
            | Packet::DataAddress { .. }
            | Packet::DataValue { .. } => {}
        }
    }

    pub(super) const fn is_itm(&self) -> bool {
        let wrong = self.malformed + self.odd;
        // One in four random bytes begins no packet.
        self.plausible >= ENOUGH && self.plausible * 4 >= self.packets && wrong * 32 <= self.packets
    }
}

/// Whether a value is text: one or several characters, then zeros.
fn is_text(size: Size, value: u32) -> bool {
    let bytes = value.to_le_bytes();
    let bytes = bytes.get(..usize::from(size.bytes())).unwrap_or(&bytes);
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    end > 0 && bytes.iter().take(end).all(|byte| matches!(byte, 0x09 | 0x0a | 0x0d | 0x20..=0x7e))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{Request, Session};
    use tracewalk::span::CaptureOffset;
    use tracewalk_analysis::drive::{NoProgress, Stretch};

    /// All files below a folder with this name.
    fn files(folder: &Path, name: &str, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                files(&path, name, found);
            } else if path.ends_with(name) {
                found.push(path);
            }
        }
    }

    #[tracewalk_corpus::test]
    fn no_instruction_trace_is_surely_an_itms() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut captures = Vec::new();
        for folder in ["testdata/examples", "../shared/corpus"] {
            files(&root.join(folder), "capture.toml", &mut captures);
        }
        let mut compared = 0;
        for capture in captures {
            let Ok((session, _)) = Session::open(Request::new(&capture)) else { continue };
            for source in session.sources() {
                let input = session.input(source, &NoProgress);
                let sample = Sample::from_place(input.capture, &input.carrier, CaptureOffset(0));
                assert!(!is_surely_itm(sample.bytes()), "{}", capture.display());
                compared += 1;
            }
        }
        assert!(compared > 50, "{compared}");
    }

    fn is_itm(bytes: &[u8]) -> bool {
        let sample = Sample::of_stretches(bytes, &[Stretch::all(bytes.len())]);
        itm(None, &sample, &Program::new(), &[]).is_some()
    }

    #[test]
    fn text_and_exceptions_are_an_itms_and_random_bytes_are_not() {
        let text = b"hello, world\n".iter().flat_map(|&byte| [1, byte]).collect::<Vec<_>>();
        assert!(is_itm(&text));
        assert!(!is_itm(&text[..8]));
        let ticks = [0x0e, 15, 0x10, 0xc0, 0x85, 0x01, 0x0e, 15, 0x20, 0x30, 0x0e, 0, 0x30, 0x30].repeat(5);
        assert!(is_itm(&ticks));
        let mut state = 1_u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        };
        for _ in 0..1000 {
            let bytes = (0..200).map(|_| random()).collect::<Vec<_>>();
            assert!(!is_itm(&bytes), "{bytes:x?}");
        }
    }
}
