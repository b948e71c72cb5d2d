//! Captures of hardware with damage: what is outside the damaged stretch reads as before, and the loss is told.
//!
//! `TRACEWALK_DAMAGES=100 cargo test -p tracewalk-cli --test damage -- --nocapture` damages each capture in 100 places
//! in each way, and prints what came of it; without the variable it is fewer places, always the same.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use support::{corpus, run};
use tracewalk::flow::Element;
use tracewalk::frame::{Deframer, Discontinuity, FrameSink, Framing, Owner, Piece};
use tracewalk::ids::TraceId;
use tracewalk::program::Program;
use tracewalk::protocol::{etmv3, pft};
use tracewalk::source::{PacketItem, SourceConfig};
use tracewalk_input::image::{ImageLoader, ImageRequest};
use tracewalk_report::drive::{Carrier, Input, NoProgress, Stretch};

/// How far in front of the damage, in bytes of the capture, what is read may be other than before: frames are given up
/// from where the lost alignment was last sure.
const BEFORE: u64 = 128;

/// How far behind the damage frames may take to be found again. From there on each source waits for its next A-sync,
/// and ETMv3 for the I-sync behind it.
const FRAMES_FOUND: u64 = 1024;

/// In front of damage and behind it a packet may be cut, or joined with what is none. No packet is longer.
const PACKET: u64 = 16;

/// A capture, and its sources.
struct Case {
    name: &'static str,
    bytes: Vec<u8>,
    sources: Vec<Source>,
    program: Program,
}

/// A source, and what is read of it without damage.
struct Source {
    id: Option<TraceId>,
    config: SourceConfig,
    whole: Reading,
}

fn etmv3(cpu: &str, etmcr: u32) -> SourceConfig {
    let core = etmv3::Core::named(cpu).expect("a known core");
    let registers = etmv3::Registers { etmcr: Some(etmcr), ..core.registers() };
    SourceConfig::Etmv3(etmv3::Config::from_registers(registers, Some(core)).expect("registers that fit"))
}

fn pft(cpu: &str, etmcr: u32) -> SourceConfig {
    let core = pft::Core::named(cpu).expect("a known core");
    let registers = pft::Registers { etmcr: Some(etmcr), ..core.registers() };
    SourceConfig::Pft(pft::Config::from_registers(registers, Some(core)).expect("registers that fit"))
}

fn cases() -> Vec<Case> {
    let Some(real) = corpus("real") else { return Vec::new() };
    let case = |name, images: &[&str], sources: &[(u8, SourceConfig)]| {
        let images = images.iter().map(|image| {
            let (address, file) = image.rsplit_once(':').unwrap_or(("", image));
            let file = real.join(file).display().to_string();
            let image = if address.is_empty() { file } else { format!("{address}:{file}") };
            image.parse::<ImageRequest>().expect("an image")
        });
        let memory = ImageLoader::new().memory(&images.collect::<Vec<_>>());
        let program = memory.expect("the corpus is complete").program;
        let bytes = std::fs::read(real.join(name)).expect("the corpus is complete");
        let source = |(id, config): &(u8, SourceConfig)| {
            let (id, config) = (TraceId::new(*id), config.clone());
            let whole = read(id.map(|_| Framing::Buffer), (id, &config), &bytes, &program);
            assert!(whole.packets.len() > 500 && whole.malformed.is_empty(), "{name}, {id:?}");
            Source { id, config, whole }
        };
        Case { name, sources: sources.iter().map(source).collect(), bytes, program }
    };
    vec![
        case("stm32f105/swo.bin", &["stm32f105/trace_example.elf"], &[(2, etmv3("cortex-m3", 0))]),
        case(
            "TC2/cstrace.bin",
            &["0xc0008000:TC2/kernel_dump.bin"],
            &[
                (0x10, etmv3("cortex-a7", 0x1000)),
                (0x11, etmv3("cortex-a7", 0x1000)),
                (0x12, etmv3("cortex-a7", 0x1000)),
                (0x13, pft("cortex-a15", 0x2000_1000)),
            ],
        ),
        // The only one without frames: it has no ID.
        case(
            "tc2-ptm-rstk-t32/PTM_0_2.bin",
            &[
                "0x80000000:tc2-ptm-rstk-t32/mem_Cortex-A15_0_0_VECTORS.bin",
                "0x80000278:tc2-ptm-rstk-t32/mem_Cortex-A15_0_1_RO_CODE.bin",
            ],
            &[(0, pft("cortex-a15", 0x2000_0400))],
        ),
    ]
}

/// What is read of one source, by the place in the capture.
#[derive(Default)]
struct Reading {
    packets: BTreeMap<u64, Packet>,
    /// Stretches that are told to be no packets, and how many bytes they have.
    malformed: Vec<(u64, u64)>,
    /// The same, in the search for synchronisation.
    unsynchronised: Vec<(u64, u64)>,
    /// Where execution could not be followed, or the trace contradicts the program.
    gaps: BTreeSet<u64>,
}

/// A packet: its name, and the name with its bytes and fields.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Packet {
    name: &'static str,
    text: String,
}

fn read(
    framing: Option<Framing>,
    (id, config): (Option<TraceId>, &SourceConfig),
    bytes: &[u8],
    program: &Program,
) -> Reading {
    let carrier = match (framing, id) {
        (Some(framing), Some(id)) => Carrier::Frames { framing, id },
        _ => Carrier::Stretches(vec![Stretch::all(bytes.len())]),
    };
    let mut reading = Reading::default();
    let input = Input { capture: bytes, carrier, rest: None, progress: &NoProgress };
    input
        .packets(config, |record| {
            let length = record.bytes.len() as u64;
            match record.content {
                PacketItem::Packet(packet) => {
                    let mut text = format!("{} {:02x?}", packet.name(), record.bytes);
                    packet.fields(&mut |name, field| {
                        // A time is sent by its low bits; the high ones are those of the time before.
                        if name != "timestamp" {
                            write!(text, " {name} {field:?}").expect("text can be written");
                        }
                    });
                    reading.packets.insert(record.at.0, Packet { name: packet.name(), text });
                }
                PacketItem::Malformed(_) => reading.malformed.push((record.at.0, length)),
                PacketItem::Unsynchronised => reading.unsynchronised.push((record.at.0, length)),
            }
            Ok(())
        })
        .expect("nothing fails");
    input
        .flow(config, program, |record| {
            if matches!(record.element, Element::Gap(_)) {
                reading.gaps.insert(record.at.0);
            }
            Ok(())
        })
        .expect("nothing fails");
    reading
}

/// The discontinuities of frames.
fn discontinuities(framing: Framing, bytes: &[u8]) -> (Vec<Discontinuity>, u64) {
    struct Losses(Vec<Discontinuity>);
    impl FrameSink for Losses {
        fn data(&mut self, _owner: Owner, _piece: Piece<'_>) {}

        fn discontinuity(&mut self, discontinuity: Discontinuity) {
            self.0.push(discontinuity);
        }
    }
    let mut losses = Losses(Vec::new());
    let mut deframer = Deframer::new(framing);
    deframer.push(bytes, &mut losses);
    deframer.finish(&mut losses);
    assert_eq!(deframer.account().total(), bytes.len() as u64, "each byte is accounted for");
    (losses.0, deframer.account().tail)
}

/// Bytes that were put in the place of others.
struct Damage {
    bytes: Vec<u8>,
    /// Where, in the undamaged capture.
    at: u64,
    /// How many bytes of it are gone, and how many are there instead.
    lost: u64,
    inserted: u64,
}

impl Damage {
    fn new(whole: &[u8], at: usize, lost: usize, inserted: &[u8]) -> Self {
        let bytes = [&whole[..at], inserted, &whole[at + lost..]].concat();
        Self { bytes, at: at as u64, lost: lost as u64, inserted: inserted.len() as u64 }
    }

    /// Where a byte of the undamaged capture stands in the damaged one.
    const fn place(&self, original: u64) -> u64 {
        if original < self.at { original } else { (original + self.inserted).saturating_sub(self.lost) }
    }

    /// The first byte behind the damage, in the undamaged capture.
    const fn end(&self) -> u64 {
        self.at + self.lost
    }
}

/// A capture that ends between two packets is not known to have gone on.
const CUT_OFF: &str = "cut off";

/// Repeatable random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        usize::try_from(self.0 >> 33).expect("31 bits") % bound
    }
}

/// How many places are damaged in each way.
fn places() -> usize {
    std::env::var("TRACEWALK_DAMAGES").map_or(12, |count| count.parse().expect("a number"))
}

/// What was counted over all damages of one kind.
#[derive(Default)]
struct Summary {
    damages: usize,
    /// Sources that read otherwise than before somewhere.
    changed: usize,
    /// Of these, those of which neither frames nor packets tell it.
    only_flow: usize,
    /// And those of which the program's flow does not tell it either.
    silent: usize,
    /// How far behind the damage the last packet is that reads otherwise, in bytes of the capture.
    distances: Vec<u64>,
}

impl Case {
    const fn is_in_frames(&self) -> bool {
        matches!(self.sources.as_slice(), [Source { id: Some(_), .. }, ..])
    }

    /// Compares all sources of a damaged capture with the undamaged one's. Fails where something is not as it should be
    /// outside the damage.
    fn check(&self, framing: Framing, damage: &Damage, what: &str, summary: &mut Summary) {
        let framing = self.is_in_frames().then_some(framing);
        let (losses, tail) =
            framing.map_or((Vec::new(), 0), |framing| discontinuities(framing, &damage.bytes));
        let (slack, found) = if self.is_in_frames() { (BEFORE, FRAMES_FOUND) } else { (PACKET, PACKET) };
        summary.damages += 1;
        for Source { id, config, whole } in &self.sources {
            let damaged = read(framing, (*id, config), &damage.bytes, &self.program);
            let context = format!("{}, {id:?}: {what} at {}", self.name, damage.at);

            // In front of the damage everything is as before: the packets that end there.
            let front = damage.at.saturating_sub(slack);
            let starts = whole.packets.keys().copied();
            let front = starts.take_while(|start| *start <= front).last().unwrap_or(0);
            for (at, packet) in whole.packets.range(..front) {
                assert_eq!(damaged.packets.get(at), Some(packet), "{context}, packet at {at}");
            }
            // Behind the next synchronisation as well.
            let resumes = whole.synchronisation(damage.end() + found).unwrap_or(self.bytes.len() as u64);
            for (at, packet) in whole.packets.range(resumes..) {
                let found = damaged.packets.get(&damage.place(*at));
                assert_eq!(found, Some(packet), "{context}, packet at {at}, behind {resumes}; {losses:?}");
            }
            // In between something is missing or wrong, and it is told where.
            let is_changed =
                |(at, packet): &(&u64, &Packet)| damaged.packets.get(&damage.place(**at)) != Some(*packet);
            let Some((last, _)) = whole.packets.range(front..resumes).rfind(is_changed) else {
                continue;
            };
            summary.changed += 1;
            summary.distances.push(last.saturating_sub(damage.end()));
            let told = front..damage.place(resumes).max(damage.at + damage.inserted + 1);
            let is_told = |(at, bytes): &(u64, u64)| *bytes > 0 && told.contains(at);
            let of_source = damaged.malformed.iter().chain(&damaged.unsynchronised).any(is_told);
            let of_frames = losses.iter().any(|loss| told.contains(&loss.at.0)) || tail > 0;
            let known = whole.gaps.iter().map(|at| damage.place(*at)).collect::<BTreeSet<_>>();
            let of_flow = damaged.gaps.range(told.clone()).any(|at| !known.contains(at));
            summary.only_flow += usize::from(!of_source && !of_frames);
            summary.silent += usize::from(!of_source && !of_frames && !of_flow);
        }
    }

    /// Places spread over the capture, not at its very ends.
    fn places(&self, random: &mut Random, count: usize) -> Vec<usize> {
        (0..count).map(|_| 64 + random.below(self.bytes.len() - 128)).collect()
    }
}

impl Reading {
    /// From where on a source's packets count that lost its synchronisation at `lost`: from its next I-sync behind an
    /// A-sync; `None` where none comes any more.
    fn synchronisation(&self, lost: u64) -> Option<u64> {
        let mut behind = self.packets.range(lost..).skip_while(|(_, packet)| packet.name != "a_sync");
        behind.find(|(_, packet)| packet.name == "i_sync").map(|(at, _)| *at)
    }
}

/// Prints what came of the damages of one kind; where they can be seen, almost all of them have to be told.
fn report(case: &Case, kind: &str, mut summary: Summary) {
    summary.distances.sort_unstable();
    let middle = summary.distances.get(summary.distances.len() / 2).copied().unwrap_or(0);
    let most = summary.distances.last().copied().unwrap_or(0);
    println!(
        "{:28} {kind:24} {:4} damages, {:4} sources changed, {:3} told by flow only, {:3} silently, to {middle} bytes behind it, at most {most}",
        case.name, summary.damages, summary.changed, summary.only_flow, summary.silent
    );
    // Bytes that are missing between two packets leave packets. In frames, alignment tells; without, the program may.
    let seen = if case.is_in_frames() { 10 } else { 4 };
    assert!(kind == CUT_OFF || summary.silent * seen <= summary.changed + seen, "{}: {kind}", case.name);
}

#[test]
fn a_capture_that_is_cut_off_is_read_up_to_there() {
    for case in cases() {
        let (mut random, mut summary) = (Random(1), Summary::default());
        for at in case.places(&mut random, places()) {
            let damage = Damage::new(&case.bytes, at, case.bytes.len() - at, &[]);
            case.check(Framing::Buffer, &damage, "cut off", &mut summary);
        }
        report(&case, CUT_OFF, summary);
    }
}

#[test]
fn a_capture_without_its_beginning_is_read_from_the_next_synchronisation_on() {
    for case in cases() {
        let (mut random, mut summary) = (Random(2), Summary::default());
        let near = 1..=15;
        let far = case.places(&mut random, places());
        for front in near.chain(far) {
            let damage = Damage::new(&case.bytes, 0, front, &[]);
            case.check(Framing::Port, &damage, "beginning missing", &mut summary);
        }
        report(&case, "beginning missing", summary);
    }
}

#[test]
fn bytes_in_front_of_a_capture_are_passed_over() {
    for case in cases() {
        let (mut random, mut summary) = (Random(3), Summary::default());
        for front in 1..=15 {
            let noise = (0..front).map(|_| u8::try_from(random.below(256)).expect("below 256"));
            let damage = Damage::new(&case.bytes, 0, 0, &noise.collect::<Vec<_>>());
            case.check(Framing::Port, &damage, "shifted", &mut summary);
        }
        report(&case, "shifted by 1 to 15 bytes", summary);
    }
}

#[test]
fn missing_bytes_are_told_and_cost_what_is_up_to_the_next_synchronisation() {
    for case in cases() {
        let (mut random, mut summary) = (Random(4), Summary::default());
        for at in case.places(&mut random, places()) {
            let missing = 1 + random.below(40);
            let damage = Damage::new(&case.bytes, at, missing.min(63), &[]);
            case.check(Framing::Buffer, &damage, &format!("{missing} missing"), &mut summary);
        }
        report(&case, "bytes missing", summary);
    }
}

#[test]
fn doubled_bytes_are_told_and_cost_what_is_up_to_the_next_synchronisation() {
    for case in cases() {
        let (mut random, mut summary) = (Random(5), Summary::default());
        for at in case.places(&mut random, places()) {
            let count = 1 + random.below(40);
            let doubled = case.bytes[at..at + count.min(63)].to_vec();
            let damage = Damage::new(&case.bytes, at, 0, &doubled);
            case.check(Framing::Buffer, &damage, &format!("{count} doubled"), &mut summary);
        }
        report(&case, "bytes doubled", summary);
    }
}

#[test]
fn words_with_swapped_bytes_cost_what_is_up_to_the_next_synchronisation() {
    for case in cases() {
        let (mut random, mut summary) = (Random(6), Summary::default());
        for at in case.places(&mut random, places()) {
            let at = at / 4 * 4;
            let mut words = case.bytes[at..at + 4 * (1 + random.below(8))].to_vec();
            words.chunks_exact_mut(4).for_each(<[u8]>::reverse);
            let damage = Damage::new(&case.bytes, at, words.len(), &words);
            case.check(Framing::Buffer, &damage, "swapped", &mut summary);
        }
        report(&case, "bytes swapped in words", summary);
    }
}

#[test]
fn a_damaged_capture_is_recognised_and_its_losses_are_told_with_place_and_size() {
    let Some(real) = corpus("real/TC2") else { return };
    let whole = std::fs::read(real.join("cstrace.bin")).unwrap();
    let damaged = [&whole[..9000], &whole[9013..20000], &whole[20100..whole.len() - 3]].concat();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("damaged.bin");
    std::fs::write(&file, damaged).unwrap();
    let image = format!("0xc0008000:{}", real.join("kernel_dump.bin").display());
    let outcome = run(["info", file.to_str().unwrap(), "--image", &image]);
    assert_eq!(outcome.status, 2, "{}", outcome.stderr);
    for told in [
        "bytes lost to damaged frames in 2 places, the first: 13 bytes missing or 3 too many (modulo 16)",
        "ends within a frame, of which the 13 bytes are not decoded",
        "--source 0x10=etmv3,cpu=cortex-a7,etmcr=0x1000",
        "--source 0x13=pft,cpu=cortex-a15,etmcr=0x20001000",
    ] {
        assert!(outcome.stderr.contains(told), "{told:?} in {}", outcome.stderr);
    }
    // Each place, each source's part of it.
    assert!(
        outcome.stdout.contains("\n    13 bytes missing or 3 too many (modulo 16): "),
        "{}",
        outcome.stdout
    );
    assert!(
        outcome.stdout.contains("\n    4 bytes missing or 12 too many (modulo 16): "),
        "{}",
        outcome.stdout
    );
    let losses = outcome.stdout.matches("\n  passed over ").count();
    assert!(losses >= 3, "{losses} of 4 sources have a loss: {}", outcome.stdout);
}
