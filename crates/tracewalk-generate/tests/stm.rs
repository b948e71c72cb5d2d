//! Reads generated STM packets with OpenCSD (Debian: libopencsd-bin), outside the packets that its version 1.3.3 reads wrongly: Gray
//! times of more than 31 bits, packets that no STM sends, and damage.

use std::fs;

use tracewalk::protocol::stm::{Encoder, Packet, Sender, Size};
use tracewalk::protocol::timestamp::TimestampCoding;

use crate::common::opencsd::list;

/// Random numbers (Knuth's MMIX).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 16) % end
    }

    fn packet(&mut self, sender: Sender, clock: &mut u64) -> Packet {
        *clock += self.below(1000);
        let time = (self.below(2) == 0).then_some(*clock);
        let byte = u8::try_from(self.below(256)).unwrap();
        let wide = self.below(2) == 0;
        let channel = u16::try_from(self.below(1 << 16)).unwrap();
        match self.below(10) {
            0 => Packet::Null { time: None },
            1 => Packet::Master { master: byte.into(), wide: false },
            2 if wide => Packet::Channel { channel, wide },
            2 => Packet::Channel { channel: sender.channel & 0xff00 | u16::from(byte), wide },
            3 => Packet::Flag { time },
            4 => Packet::Trigger { value: byte, time },
            _ => {
                let size = [Size::D4, Size::D8, Size::D16, Size::D32, Size::D64];
                let size = size[usize::try_from(self.below(5)).unwrap()];
                let value = self.0.rotate_left(29) >> (64 - 4 * size.nibbles());
                Packet::Data { size, value, marker: wide, time }
            }
        }
    }
}

/// What OpenCSD prints of a packet: its kind, and its numbers.
fn printed(packet: &Packet) -> (String, Vec<u64>) {
    let timed = |name: &str, time: &Option<u64>| format!("{name}{}", if time.is_some() { "TS" } else { "" });
    match packet {
        Packet::Null { .. } => ("NULL".to_owned(), vec![]),
        Packet::Master { master, .. } => ("M8".to_owned(), vec![(*master).into()]),
        Packet::MasterError(_) => ("MERR".to_owned(), vec![]),
        Packet::GlobalError(_) => ("GERR".to_owned(), vec![]),
        Packet::Channel { channel, wide } => {
            (if *wide { "C16" } else { "C8" }.to_owned(), vec![(*channel).into()])
        }
        Packet::Data { size, value, marker, time } => {
            let name = format!("{size:?}{}", if *marker { "M" } else { "" });
            (timed(&name, time), [*value].into_iter().chain(*time).collect())
        }
        Packet::Flag { time } => (timed("FLAG", time), time.iter().copied().collect()),
        Packet::Async => ("ASYNC".to_owned(), vec![]),
        Packet::Version(TimestampCoding::Binary) => ("VERSION".to_owned(), vec![3]),
        Packet::Version(TimestampCoding::Gray) => ("VERSION".to_owned(), vec![4]),
        Packet::Trigger { value, time } => {
            (timed("TRIG", time), [u64::from(*value)].into_iter().chain(*time).collect())
        }
        Packet::Frequency { hertz, .. } => ("FREQ".to_owned(), vec![(*hertz).into()]),
    }
}

/// A line of OpenCSD's: `Idx:0; ID:10;<tab>D8TS:8 bit data + timestamp; Data=0x98; TS=0x20 ~[0x20]`.
fn listed(line: &str) -> Option<(String, Vec<u64>)> {
    let (kind, rest) = line.strip_prefix("Idx:")?.split_once('\t')?.1.split_once(':')?;
    let number = |field: &str| {
        let text = field.split_once('=')?.1.split([' ', 'H']).next()?;
        match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        }
    };
    Some((kind.to_owned(), rest.split("; ").filter_map(number).collect()))
}

#[test]
#[ignore = "needs OpenCSD"]
fn opencsd_reads_the_same_packets_of_an_stm() {
    for (coding, start) in [(TimestampCoding::Binary, 1 << 40), (TimestampCoding::Gray, 1 << 20)] {
        let (mut random, mut clock, mut sender) = (Random(20_261_130), start, Sender::default());
        let mut sent = Vec::new();
        for _ in 0..20 {
            sent.extend([Packet::Async, Packet::Version(coding), Packet::Frequency { hertz: 19_200_000, time: None }]);
            sender = sent.iter().fold(sender, Sender::after);
            for _ in 0..200 {
                let packet = random.packet(sender, &mut clock);
                sender = sender.after(&packet);
                sent.push(packet);
            }
        }
        let (mut encoder, mut bytes) = (Encoder::new(), Vec::new());
        sent.iter().for_each(|packet| encoder.encode(packet, &mut bytes));
        encoder.finish(&mut bytes);
        let folder = tempfile::tempdir().unwrap();
        let files: [(&str, &[u8]); 4] = [
            ("trace.bin", &bytes),
            ("snapshot.ini", b"[snapshot]\nversion=1.0\n\n[device_list]\ndevice0=stm.ini\n\n[trace]\nmetadata=trace.ini\n"),
            (
                "trace.ini",
                b"[trace_buffers]\nbuffers=buffer1\n\n[buffer1]\nname=B\nfile=trace.bin\nformat=source_data\n\n\
                  [source_buffers]\nSTM_0=B\n\n[core_trace_sources]\n",
            ),
            ("stm.ini", b"[device]\nname=STM_0\nclass=trace_source\ntype=STM\n\n[regs]\nSTMTCSR(0x3A0)=0x00100007\n"),
        ];
        files.iter().for_each(|(name, content)| fs::write(folder.path().join(name), content).unwrap());
        let listing = list(folder.path());
        let elements = |line: &&str| !line.contains("OCSD_GEN_TRC_ELEM");
        let found = listing.lines().filter(elements).filter_map(listed).collect::<Vec<_>>();
        assert!(found.len() >= sent.len(), "{} of {} packets: {listing:.2000}", found.len(), sent.len());
        for (index, (found, sent)) in found.iter().zip(&sent).enumerate() {
            assert_eq!(found, &printed(sent), "packet {index}");
        }
    }
}
