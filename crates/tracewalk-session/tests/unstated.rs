//! Generated captures about which nothing is stated: each is read as what it is; hardly any is refused, or in doubt with the
//! right reading named.

use std::io::Write as _;

use tracewalk::frame::{Discontinuity, FormatterOptions, FrameSink, Framing, Owner, Piece, RecoveringDeframer};
use tracewalk::ids::TraceId;
use tracewalk_generate::container::{SourceBytes, frames};
use tracewalk_input::capture::{Container, Protocol};
use tracewalk_session::{NoticeKind, Notices, Request, Session};

use crate::support::example;

/// A linear congruential generator.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from(self.0 >> 32).expect("32 bits")
    }

    fn below(&mut self, bound: usize) -> usize {
        self.next() as usize % bound
    }

    fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }
}

const TEXTS: [&str; 6] = [
    "Hello, world!\n",
    "main loop\r\nping\r\ntemp=25\r\n",
    "loop 1\nloop 2\nloop 3\n",
    "[INFO] started in 5 ms\n",
    "p p p p p\n",
    "{\"t\":21.5,\"h\":40}\n",
];

/// What an ITM or a DWT sends.
fn itm(random: &mut Random) -> (usize, Vec<u8>) {
    let kind = random.below(8);
    let sync_every = random.one_of(&[0, 0, 64, 300, 1000]);
    let length = 400 + random.below(5600);
    let text = random.one_of(&TEXTS).as_bytes();
    let mut bytes = Vec::new();
    let mut since_sync = random.one_of(&[sync_every, 0]);
    for index in 0.. {
        if bytes.len() >= length {
            break;
        }
        if sync_every > 0 && since_sync >= sync_every {
            bytes.extend([0, 0, 0, 0, 0, 0x80]);
            since_sync = 0;
        }
        let before = bytes.len();
        let letter = text[index % text.len()];
        let [a, b, c, d] = random.next().to_le_bytes();
        let exception = 16 + index.to_le_bytes()[0] % 3;
        match kind {
            0 => bytes.extend([1, letter]),
            // Words, as event recorders and Rust's macros send them.
            1 => bytes.extend([3, letter, text[(index + 1) % text.len()], text[(index + 2) % text.len()], b' ']),
            2 => bytes.extend([0x0b, a, b, c, d]),
            // Data values, addresses and program counters.
            3 => bytes.extend([0x47, a & 0xfe, b & 1, 0, 8, 0x8f, a, b, c, d]),
            // Event counters and timestamps.
            4 => bytes.extend([0x05, 1 << (a % 6), 0xc0, 0x80 | b, c & 0x7f]),
            // Exceptions, with the times between them.
            5 => bytes.extend([0x0e, exception, 0x10, 0xd0, 0x80 | a, 3, 0x0e, exception, 0x20, 0x10, 0x0e, 0, 0x30]),
            // Program counter samples.
            6 => bytes.extend([0x17, a & 0xfe, b & 0xf, 0, 8]),
            _ => bytes.extend([1, letter, 0x17, a & 0xfe, b & 3, 0, 8, 0x70]),
        }
        since_sync += bytes.len() - before;
    }
    (kind, bytes)
}

/// A stretch of an example's source, from anywhere to anywhere.
fn trace(random: &mut Random) -> (Protocol, Vec<u8>) {
    let (name, protocol) = random.one_of(&[
        ("m3-etmv3", Protocol::EtmV3),
        ("a7-etmv3", Protocol::EtmV3),
        ("a15-pft", Protocol::Pft),
        ("m33-etmv4", Protocol::Etmv4),
        ("a53-etmv4", Protocol::Etmv4),
        ("a57-etmv4", Protocol::Etmv4),
    ]);
    let capture = std::fs::read(example(name).join("trace.bin")).expect("an example");
    let mut source = Source(Vec::new());
    let mut deframer = RecoveringDeframer::new(Framing::Buffer);
    deframer.push(&capture, &mut source);
    deframer.finish(&mut source);
    let length = source.0.len() / 2 + random.below(source.0.len() / 2);
    let start = random.below(source.0.len() - length);
    (protocol, source.0[start..start + length].to_vec())
}

/// The bytes of the examples' instruction traces, one in each.
struct Source(Vec<u8>);

impl FrameSink for Source {
    fn data(&mut self, owner: Owner, piece: Piece<'_>) {
        if owner.trace_id().is_some_and(|id| (0x10..0x20).contains(&id.get())) {
            self.0.extend_from_slice(piece.bytes);
        }
    }

    fn discontinuity(&mut self, _: Discontinuity) {}
}

/// A capture, and what it is.
struct Made {
    bytes: Vec<u8>,
    protocol: Protocol,
    in_frames: bool,
    what: String,
}

fn made(random: &mut Random) -> Made {
    let is_itm = random.below(5) < 3;
    let (kind, protocol, mut bytes) = if is_itm {
        let (kind, bytes) = itm(random);
        (kind, Protocol::Itm, bytes)
    } else {
        let (protocol, bytes) = trace(random);
        (0, protocol, bytes)
    };
    let in_frames = !is_itm && random.below(2) == 0;
    if in_frames {
        let id = u8::try_from(1 + random.below(0x6e)).ok().and_then(TraceId::new).expect("an ID");
        bytes = frames(&[SourceBytes { id, bytes }], FormatterOptions::default());
    } else if random.below(2) == 0 {
        bytes.drain(..random.below(12));
    }
    let zeros = |random: &mut Random| random.one_of(&[0, 0, 5, 200, 1008, 4096, 70_000]);
    let (before, after) = (zeros(random) / 16 * 16, zeros(random) / 16 * 16);
    let what = format!("{protocol:?} {kind}, frames {in_frames}, {} bytes, {before} and {after} zeros", bytes.len());
    let bytes = [vec![0; before], bytes, vec![0; after]].concat();
    Made { bytes, protocol, in_frames, what }
}

#[derive(Debug, Default)]
struct Counts {
    right: u32,
    doubtful: u32,
    wrong: Vec<String>,
}

impl Counts {
    fn add(&mut self, made: &Made) {
        let Made { bytes, protocol, in_frames, what } = made;
        let mut file = tempfile::NamedTempFile::new().expect("room");
        file.write_all(bytes).expect("room");
        let notices = Notices::default();
        let opened = Session::open_observed(Request::new(file.path()), &notices);
        let notices = notices.into_vec();
        let found = opened.as_ref().ok().and_then(|session| {
            let container = session.contents().first()?.container.value;
            let mut protocols = session.sources().iter().map(|source| &source.description.protocol);
            let itms = session.itms();
            let is_right = match protocol {
                Protocol::Itm => session.sources().is_empty() && itms.len() == 1,
                protocol => protocols.all(|found| found == protocol) && session.sources().len() == 1,
            };
            Some(is_right && (container != Container::Raw) == *in_frames)
        });
        let names_right = notices.iter().any(|notice| match &notice.kind {
            NoticeKind::AnotherAnswer { finding, .. } => {
                let runner_up = finding.runner_up.as_ref().map_or("", |answer| answer.text.as_str());
                runner_up.contains(protocol.name()) || runner_up.contains(if *in_frames { "frames" } else { "raw" })
            }
            _ => false,
        });
        match found {
            Some(true) => self.right += 1,
            // What is refused, with status 2, is not read wrongly.
            None => self.doubtful += 1,
            _ if names_right => self.doubtful += 1,
            _ => self.wrong.push(format!("{what}: {:?}, {notices:?}", opened.as_ref().map(|_| ()))),
        }
    }
}

fn check(captures: u32, seed: u64) {
    let mut random = Random(seed);
    let mut counts = Counts::default();
    for _ in 0..captures {
        let made = made(&mut random);
        counts.add(&made);
    }
    let Counts { right, doubtful, wrong } = counts;
    println!("{right} right, {doubtful} refused or in doubt, {} wrong", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(doubtful * 100 <= captures, "{doubtful} of {captures} are refused or in doubt");
}

#[test]
fn captures_without_statements_are_read_as_what_they_are() {
    check(100, 1);
}

#[test]
#[ignore = "takes minutes"]
fn heavy_captures_without_statements_are_read_as_what_they_are() {
    check(2000, 2);
}
