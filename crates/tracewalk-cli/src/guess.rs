//! Finding out what nobody said: the container, whose bytes they are, and for which processor.
//!
//! Every answer rests on decoding the beginning of the capture in each way that comes into question and counting what
//! goes wrong. The strongest witness is the program: a wrong reading of the trace contradicts it at once.

use tracewalk::frame::{FSYNC, Framing};
use tracewalk::ids::TraceId;
use tracewalk::program::Program;
use tracewalk::protocol::Field;
use tracewalk::protocol::mtb::order;
use tracewalk::source::{PacketItem, SourceConfig};
use tracewalk_input::capture::{Container, SourceDescription};
use tracewalk_input::cpu::{Profile, UsualRegisters};
use tracewalk_input::image::Memory;
use tracewalk_input::{Origin, Stated};
use tracewalk_report::analysis::Contradictions;
use tracewalk_report::drive::{Carrier, Input, NoProgress, Stretch};

use crate::mtb;
use crate::sources::config;
use crate::work::Frames;

/// How much of a capture is decoded to judge a reading.
const HEAD: usize = 1 << 16;

/// The readings that come into question for a program.
#[derive(Debug)]
pub(crate) struct Candidates<'a> {
    program: &'a Program,
    /// Sources, the most likely first.
    sources: Vec<SourceDescription>,
}

impl<'a> Candidates<'a> {
    pub(crate) fn of(memory: &'a Memory) -> Self {
        let attributes = memory.images.iter().map(|image| &image.attributes);
        let profile = attributes.clone().find_map(|attributes| attributes.profile);
        let named = attributes.filter_map(|attributes| attributes.cpu_name.as_deref());
        let named = named.filter_map(UsualRegisters::of_cpu).next();
        let named = named.iter().flat_map(|named| [("etmv3", named.cpu), ("pft", named.cpu)]);
        let units = named.chain(usual_units(profile).iter().copied());
        Self { program: &memory.program, sources: units.flat_map(settings).collect() }
    }
}

/// The trace units that a program of this profile may have been traced with: protocol and processor.
const fn usual_units(profile: Option<Profile>) -> &'static [(&'static str, &'static str)] {
    match profile {
        Some(Profile::M) => &[("etmv3", "cortex-m3")],
        Some(Profile::A) => &[
            ("etmv3", "cortex-a7"),
            // A Cortex-A's ETMIDR with the alternative branch encoding.
            ("etmv3", "cortex-a7,etmidr=0x411cf250"),
            ("pft", "cortex-a15"),
            ("pft", "cortex-a9"),
            ("etmv3", "cortex-a8"),
        ],
        Some(Profile::R) => &[("etmv3", "cortex-r4")],
        Some(Profile::Classic) => &[("etmv3", "arm1136"), ("etmv3", "arm926")],
        None => {
            &[("etmv3", "cortex-m3"), ("etmv3", "cortex-a7"), ("pft", "cortex-a15"), ("pft", "cortex-a9")]
        }
    }
}

/// The settings of a trace unit that change its packets: ETMCR, the most likely first.
fn settings((protocol, cpu): (&str, &str)) -> Vec<SourceDescription> {
    /// Cycle counts, bit 12, without and with.
    const CYCLES: [u32; 2] = [0, 1 << 12];
    /// Context IDs of 0, 1, 4 and 2 bytes, bits 15:14.
    const CONTEXT_IDS: [u32; 4] = [0, 0b01 << 14, 0b11 << 14, 0b10 << 14];
    // A PTM that predicts returns (bit 29) is read right where it does not, but not the other way round.
    let always = if protocol == "pft" { 1 << 29 } else { 0 };
    let is_m_profile = Profile::of_cpu(cpu) == Some(Profile::M);
    let all =
        CONTEXT_IDS.into_iter().flat_map(|context_id| CYCLES.map(|cycles| always | context_id | cycles));
    all.take(if is_m_profile { 1 } else { usize::MAX })
        .filter_map(|etmcr| match etmcr {
            0 => detected(&format!("{protocol},cpu={cpu}")),
            _ => detected(&format!("{protocol},cpu={cpu},etmcr=0x{etmcr:x}")),
        })
        .collect()
}

/// The source that an option describes, as something that was found out.
fn detected(option: &str) -> Option<SourceDescription> {
    let mut source: SourceDescription = option.parse().ok()?;
    source.origin = Origin::Detected;
    source.cpu = source.cpu.map(|cpu| Stated::new(cpu.value, Origin::Detected));
    Some(source)
}

/// How well a reading goes.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    packets: u64,
    malformed: u64,
    i_syncs: u64,
    /// I-syncs whose address is in the program.
    i_syncs_in_program: u64,
    contradictions: u64,
}

impl Reading {
    fn of(input: &Input<'_>, config: &SourceConfig, program: &Program) -> Self {
        let mut reading = Self::default();
        let statistics = input.packets(config, |record| {
            if let PacketItem::Packet(packet) = record.content
                && packet.name() == "i_sync"
            {
                reading.i_syncs += 1;
                packet.fields(&mut |_, field| {
                    if let Field::Address(address) = field
                        && program.code(address).is_some()
                    {
                        reading.i_syncs_in_program += 1;
                    }
                });
            }
            Ok(())
        });
        // Looking at records raises no error here.
        let statistics = statistics.unwrap_or_default();
        reading.packets = statistics.packets;
        reading.malformed = statistics.malformed;
        if reading.is_plausible() && !program.is_empty() {
            let mut contradictions = Contradictions::default();
            let followed = input.flow(config, program, |record| {
                contradictions.element(&record.element, record.at);
                Ok(())
            });
            reading.contradictions = followed.map_or(0, |_| contradictions.count());
        }
        reading
    }

    /// Bytes of another protocol have no I-sync behind an A-sync, or hardly a packet without a reserved header.
    const fn is_plausible(&self) -> bool {
        self.i_syncs > 0 && self.malformed * 20 <= self.packets
    }

    /// What speaks against it: errors for each thousand packets, and I-syncs elsewhere than in the program.
    const fn rank(&self) -> (u64, bool) {
        let packets = if self.packets == 0 { 1 } else { self.packets };
        ((self.malformed + self.contradictions) * 1000 / packets, self.i_syncs_in_program == 0)
    }

    /// Nothing speaks against it, and the program for it.
    fn is_perfect(&self, program: &Program) -> bool {
        self.malformed + self.contradictions == 0 && (self.i_syncs_in_program > 0 || program.is_empty())
    }
}

/// Whose bytes a carrier holds, if it is a source that can be decoded.
pub(crate) fn source(
    id: Option<TraceId>,
    capture: &[u8],
    carrier: Carrier,
    candidates: &Candidates<'_>,
) -> Option<SourceDescription> {
    let input = Input { capture, carrier, progress: &NoProgress }.head(HEAD);
    let mut best = None::<(&SourceDescription, Reading)>;
    for source in &candidates.sources {
        let Ok(config) = config(source) else { continue };
        let reading = Reading::of(&input, &config, candidates.program);
        // Of equal ones the first is the likelier.
        let is_better = best.is_none_or(|(_, best)| reading.rank() < best.rank());
        if reading.is_plausible() && is_better {
            best = Some((source, reading));
        }
        if best.is_some_and(|(_, best)| best.is_perfect(candidates.program)) {
            break;
        }
    }
    let (best, _) = best?;
    Some(SourceDescription { id, ..best.clone() })
}

/// Adds the processor that the image was built for to a source of which no registers are known.
pub(crate) fn add_cpu(source: &mut SourceDescription, candidates: &Candidates<'_>) {
    if source.cpu.is_some() || config(source).is_ok() {
        return;
    }
    let same_protocol = candidates.sources.iter().find(|candidate| candidate.protocol == source.protocol);
    if let Some(candidate) = same_protocol {
        source.cpu.clone_from(&candidate.cpu);
        source.add_usual_registers();
    }
}

/// The trace ID under which a source decodes.
pub(crate) fn id(source: &SourceDescription, capture: &[u8], frames: &Frames) -> Option<TraceId> {
    let config = config(source).ok()?;
    frames.sources.keys().copied().find(|&id| {
        let carrier = Carrier::Frames { framing: frames.framing, id };
        let input = Input { capture, carrier, progress: &NoProgress }.head(HEAD);
        Reading::of(&input, &config, &Program::new()).is_plausible()
    })
}

/// How a buffer's bytes are packed.
pub(crate) fn container(bytes: &[u8], candidates: &Candidates<'_>) -> Container {
    let head = bytes.get(..HEAD).unwrap_or(bytes);
    let framings = framings(head);
    let name = |framing| if framing == Framing::Buffer { Container::Frames } else { Container::TracePort };
    if let Some(framing) = framings.iter().find(|framing| decodes(head, **framing, candidates)) {
        return name(*framing);
    }
    let whole = Carrier::Stretches(vec![Stretch::all(head.len())]);
    if source(None, head, whole, candidates).is_some() {
        return Container::Raw;
    }
    if is_mtb(bytes) {
        return Container::Mtb;
    }
    framings.first().map_or(Container::Raw, |framing| name(*framing))
}

/// How frames stand in the bytes of a trace port.
pub(crate) fn port_framing(bytes: &[u8], candidates: &Candidates<'_>) -> Framing {
    let head = bytes.get(..HEAD).unwrap_or(bytes);
    let framings = framings(head);
    let decoding = framings.iter().find(|framing| decodes(head, **framing, candidates));
    match decoding.or(framings.first()) {
        // Frames from the first byte on, and the synchronisation of a port wherever it comes.
        Some(Framing::Buffer) => Framing::PortFrom(0),
        Some(framing) => *framing,
        None => Framing::Port,
    }
}

/// Whether there is a source in the frames that decodes.
fn decodes(head: &[u8], framing: Framing, candidates: &Candidates<'_>) -> bool {
    let frames = Frames::scan(head, framing);
    let carrier = |id| Carrier::Frames { framing, id };
    frames.sources.keys().any(|&id| source(Some(id), head, carrier(id), candidates).is_some())
}

/// The ways in which frames may stand in bytes, the best first.
fn framings(head: &[u8]) -> Vec<Framing> {
    let has_sync = head.windows(FSYNC.len()).any(|bytes| bytes == FSYNC);
    let starts = (0..16).map(|start| if start == 0 { Framing::Buffer } else { Framing::PortFrom(start) });
    let port = has_sync.then_some(Framing::Port);
    let all = port.into_iter().chain(starts);
    let mut ranked = all
        .filter_map(|framing| Some((disorder(&Frames::scan(head, framing))?, framing)))
        .collect::<Vec<_>>();
    ranked.sort_by_key(|(disorder, _)| *disorder);
    ranked.into_iter().map(|(_, framing)| framing).collect()
}

/// How much in the frames is not as a formatter writes it, in bytes; `None` for what are no frames.
fn disorder(frames: &Frames) -> Option<u64> {
    let account = &frames.account;
    let wrong = account.reserved + frames.lost();
    // Read at the wrong place, data are taken for the IDs of ever more sources.
    let sources = frames.sources.len() as u64;
    (account.data > 0 && wrong * 32 <= account.total() && sources <= 16).then_some(wrong * 16 + sources)
}

/// Whether a dump holds packets of a Micro Trace Buffer that go on from one to the next.
fn is_mtb(dump: &[u8]) -> bool {
    let dump = order::Dump { data: dump, address: None };
    order::by_evidence(dump, order::within_reach)
        .is_some_and(|guess| mtb::speaks_for_trace(&guess.best.evidence))
}
