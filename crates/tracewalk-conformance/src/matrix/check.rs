//! Encodes a case, decodes it, and compares.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::num::NonZeroU32;
use std::path::{Path as FilePath, PathBuf};

use tracewalk::frame::{
    Discontinuity, FormatterOptions, FrameAlignment, FrameSink, Framing, Owner, Piece, RecoveringDeframer,
};
use tracewalk::ids::{Address, Isa, Location, TraceId, Vmid};
use tracewalk::isa::Class;
use tracewalk::program::Program;
use tracewalk::protocol::mtb as mtb_protocol;
use tracewalk::source::SourceConfig;

use super::{Case, Packing, PathFrom, Unit};
use crate::damage::{self, Arrived, Effect, Kind, MTB_PACKET, Sound};
use crate::opencsd::Subject;
use tracewalk_generate::container::{self, SourceBytes};
use tracewalk_generate::elf::Elf;
use tracewalk_generate::firmware::{Firmware, ReadFile};
use tracewalk_generate::found::{Difference, Found, first_difference};
use tracewalk_generate::path::{Executed, Path, Step};
use tracewalk_generate::record::Profile;
use tracewalk_generate::trace::Trace;
use tracewalk_generate::wander::Wander;
use tracewalk_generate::{a64, etmv3, etmv4, mtb, pft};

/// The example programs, read on demand.
#[derive(Debug)]
pub struct Programs {
    folder: PathBuf,
    read_file: ReadFile,
    read: BTreeMap<String, Firmware>,
}

/// Why a case failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The case cannot be made.
    NotMade(String),
    /// The trace does not match the path from this instruction on.
    NotThePath(usize),
    /// The decoded path differs from the traced one.
    Different(Difference),
    /// A number differs.
    Count {
        /// The name of the count.
        what: &'static str,
        /// The expected count.
        traced: u64,
        /// The decoded count.
        found: u64,
    },
    /// A part of the trace could not be followed.
    Gap(String),
}

impl Display for Failure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotMade(reason) => write!(f, "cannot be made: {reason}"),
            Self::NotThePath(number) => write!(f, "instruction {number} of the trace is not on the path"),
            Self::Different(difference) => difference.fmt(f),
            Self::Count { what, traced, found } => write!(f, "traced {traced} {what}, found {found}"),
            Self::Gap(gap) => write!(f, "found a gap: {gap}"),
        }
    }
}

/// The length of wandered paths.
const WANDERED_STEPS: usize = 4000;

/// The trace IDs of the tested source and of the one beside it.
const ID: u8 = 0x10;
const BESIDE: u8 = 0x01;

impl Programs {
    /// The programs in this folder: `NAME/NAME.elf` and `NAME/NAME.record`.
    #[must_use]
    pub fn new(folder: &FilePath, read_file: ReadFile) -> Self {
        Self { folder: folder.to_owned(), read_file, read: BTreeMap::new() }
    }

    fn get(&mut self, name: &str) -> Result<&Firmware, String> {
        if !self.read.contains_key(name) {
            let seed = name.strip_prefix("a64-").and_then(|seed| seed.parse().ok());
            let known = match seed {
                Some(seed) => a64::firmware(seed),
                None => Firmware::read(&self.folder, name, self.read_file)
                    .map_err(|error| format!("{name}: {error}"))?,
            };
            self.read.insert(name.to_owned(), known);
        }
        self.read.get(name).ok_or_else(|| format!("{name} is missing"))
    }

    /// Encodes and decodes a case. Returns the number of decoded instructions if all is well.
    pub fn check(&mut self, case: &Case) -> Result<u64, Failure> {
        let Firmware { elf, path } = self.get(&case.program).map_err(Failure::NotMade)?;
        let wandered;
        let path = match case.path {
            PathFrom::Record => path,
            PathFrom::Wander(seed) => {
                wandered = wander(elf, path, seed);
                &wandered
            }
        };
        let Made { config, trace, bytes } = make(case, elf, path).map_err(Failure::NotMade)?;
        if !is_traced_part_of(&trace.path, path, case, &elf.program) {
            let number = first_not_traced(&trace.path, path);
            return Err(Failure::NotThePath(number));
        }
        let found = Found::of(&config, &bytes, &elf.program);
        compare(case, &config, elf.profile, &trace, &found)?;
        Ok(found.path.instructions().count() as u64)
    }
}

impl Programs {
    /// Damages the trace of a case in `times` reproducible ways, and adds each effect to `effects`.
    pub fn damage(
        &mut self,
        case: &Case,
        kind: Kind,
        times: u32,
        effects: &mut Vec<Effect>,
    ) -> Result<(), String> {
        self.each_damaged(case, kind, times, |sound, damaged| effects.push(sound.damaged(damaged)))
    }

    /// Damages the trace of a case in `times` reproducible ways, and passes each damaged trace on together
    /// with the sound one.
    pub fn each_damaged(
        &mut self,
        case: &Case,
        kind: Kind,
        times: u32,
        mut look: impl FnMut(&Sound<'_>, &Arrived),
    ) -> Result<(), String> {
        let Firmware { elf, path } = self.get(&case.program)?;
        let (config, trace) = encode(case, &elf.program, path)?;
        let (framing, capture) = packed(case.packing, &trace.bytes)?;
        let sound = Sound::new(&config, &elf.program, taken_apart(framing, &capture)?);
        let unit = if matches!(case.unit, Unit::Mtb { .. }) { MTB_PACKET } else { 1 };
        for seed in 0..times {
            let mut random = Random::new(seed);
            let mut capture = capture.clone();
            kind.damage(&mut capture, unit, |below| random.next() as usize % below.max(1));
            look(&sound, &taken_apart(framing, &capture)?);
        }
        Ok(())
    }
}

impl Programs {
    /// Passes on the trace of a case for another decoder, damaged reproducibly by its seed.
    pub fn for_opencsd<R>(
        &mut self,
        case: &Case,
        harm: Option<(Kind, u32)>,
        read: impl FnOnce(&Subject<'_>) -> R,
    ) -> Result<R, String> {
        let Firmware { elf, path } = self.get(&case.program)?;
        let wandered;
        let path = match case.path {
            PathFrom::Record => path,
            PathFrom::Wander(seed) => {
                wandered = wander(elf, path, seed);
                &wandered
            }
        };
        let (config, trace) = encode(case, &elf.program, path)?;
        let mut bytes = trace.bytes.clone();
        let mut broken = 0..0;
        if let Some((kind, seed)) = harm {
            let mut random = Random::new(seed);
            kind.damage(&mut bytes, 1, |below| random.next() as usize % below.max(1));
            if bytes != trace.bytes {
                broken = damage::broken(&config, &trace.bytes, &bytes);
            }
        }
        let traced = trace.path.instructions().map(Executed::location).collect();
        let (cpu, registers) = case.unit.registers().ok_or("OpenCSD reads no MTB")?;
        let cpu = cpu.to_owned();
        Ok(read(&Subject { config, registers, cpu, bytes, program: &elf.program, traced, broken }))
    }
}

/// A generator of reproducible pseudo-random numbers (xorshift).
struct Random(u32);

impl Random {
    const fn new(seed: u32) -> Self {
        Self(seed.wrapping_mul(2_654_435_769).wrapping_add(1))
    }

    const fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }
}

/// A path that was never executed.
fn wander(elf: &Elf, recorded: &Path, seed: u32) -> Path {
    let start =
        recorded.instructions().next().map_or(Location::new(Address::new(0), Isa::T32), Executed::location);
    let mut handlers = BTreeMap::new();
    for step in &recorded.steps {
        if let Step::Exception(taken) = step {
            handlers.insert(taken.exception.number(), (taken.exception, taken.handler));
        }
    }
    let wander = Wander {
        program: &elf.program,
        profile: elf.profile,
        start,
        handlers: handlers.into_values().collect(),
        steps: WANDERED_STEPS,
    };
    let mut random = Random::new(seed);
    wander.path(&mut || random.next())
}

/// A trace as the decoder receives it.
struct Made {
    config: SourceConfig,
    trace: Trace,
    /// The source's bytes, unpacked again.
    bytes: Vec<u8>,
}

fn make(case: &Case, elf: &Elf, path: &Path) -> Result<Made, String> {
    let (config, trace) = encode(case, &elf.program, path)?;
    let bytes = if matches!(case.unit, Unit::Mtb { .. }) {
        trace.bytes.clone()
    } else {
        unpacked(case.packing, &trace.bytes)?
    };
    Ok(Made { config, trace, bytes })
}

fn encode(case: &Case, program: &Program, path: &Path) -> Result<(SourceConfig, Trace), String> {
    let beside = &case.beside;
    match &case.unit {
        Unit::Etmv3 { cancel, tail_chaining_follows, deprecated_exceptions, .. } => {
            let config = case.unit.etmv3_config().ok_or("no such configuration")?;
            let options = etmv3::Options {
                synchronise_every: beside.synchronise_every,
                timestamp_every: beside.timestamp_every,
                trigger_every: beside.trigger_every,
                pauses: beside.pauses,
                cancel: *cancel,
                tail_chaining_cancels: !tail_chaining_follows,
                deprecated_exceptions: *deprecated_exceptions,
                ..etmv3::Options::default()
            };
            let mut trace =
                etmv3::encode(path, program, &config, &options).map_err(|error| error.to_string())?;
            for step in &mut trace.path.steps {
                if let Step::Access(access) = step {
                    access.address = if config.data().addresses { access.address } else { Address::new(0) };
                    access.value = access.value.filter(|_| config.data().values);
                }
            }
            Ok((SourceConfig::Etmv3(config), trace))
        }
        Unit::Pft { depth, .. } => {
            let config = case.unit.pft_config().ok_or("no such configuration")?;
            let options = pft::Options {
                synchronise_every: beside.synchronise_every,
                timestamp_every: beside.timestamp_every,
                trigger_every: beside.trigger_every,
                pauses: beside.pauses,
                return_stack_depth: *depth,
                ..pft::Options::default()
            };
            let trace = pft::encode(path, program, &config, &options).map_err(|error| error.to_string())?;
            Ok((SourceConfig::Pft(config), trace))
        }
        Unit::Etmv4(unit) => {
            let config = case.unit.etmv4_config().ok_or("no such configuration")?;
            let bit = |bit: u32| unit.trcconfigr >> bit & 1 != 0;
            let options = etmv4::Options {
                synchronise_every: beside.synchronise_every,
                timestamp_every: beside.timestamp_every,
                event_every: beside.trigger_every,
                pauses: beside.pauses,
                return_stack_depth: unit.depth,
                branch_broadcast: bit(3),
                context_ids: bit(6),
                vmid: bit(7).then_some(Vmid(7)),
                contexts: unit.contexts,
                wrong_path_every: unit.wrong_paths,
                q_every: unit.q,
                source_address_every: unit.source_addresses,
                late_addresses: unit.late_addresses,
                keeps_returns: unit.keeps_returns,
                ..etmv4::Options::default()
            };
            let trace = etmv4::encode(path, program, &config, &options).map_err(|error| error.to_string())?;
            Ok((SourceConfig::Etmv4(config), trace))
        }
        Unit::Mtb { exponent, branches_to_next } => {
            let size = mtb_protocol::BufferSize::new(1 << exponent).ok_or("no such size")?;
            let options = mtb::Options {
                writes_branches_to_next: *branches_to_next,
                ..mtb::Options::new(size, Address::new(0x2000_0000))
            };
            let buffer = mtb::encode(path, program, &options).map_err(|error| error.to_string())?;
            let config = mtb_protocol::Config::from_registers(buffer.registers);
            let dump = mtb_protocol::order::Dump::new(&buffer.bytes, Some(options.memory.base));
            let layout =
                mtb_protocol::order::by_registers(dump, &config).map_err(|error| error.to_string())?;
            let pieces = layout.pieces.into_iter().filter_map(|piece| buffer.bytes.get(piece.bytes));
            let bytes = pieces.flatten().copied().collect();
            let starts = usize::from(!buffer.path.steps.is_empty());
            let trace = Trace { bytes, path: buffer.path, starts, ..Trace::default() };
            Ok((SourceConfig::Mtb(mtb_protocol::Source::default()), trace))
        }
    }
}

/// The bytes of the source, after packing and unpacking.
fn unpacked(packing: Packing, bytes: &[u8]) -> Result<Vec<u8>, String> {
    let (framing, capture) = packed(packing, bytes)?;
    let Arrived { bytes, losses } = taken_apart(framing, &capture)?;
    match losses.first() {
        Some(loss) => Err(format!("found bytes lost in the frames after {loss} of the source's")),
        None => Ok(bytes),
    }
}

/// The bytes of a capture, and its framing; `None` if the bytes are not in frames.
fn packed(packing: Packing, bytes: &[u8]) -> Result<(Option<Framing>, Vec<u8>), String> {
    let every = NonZeroU32::new;
    let (options, framing) = match packing {
        Packing::Raw => return Ok((None, bytes.to_vec())),
        Packing::Frames => (FormatterOptions::default(), Framing::Buffer),
        Packing::Port => (
            FormatterOptions {
                repeat_id_after: every(8),
                full_sync_every: every(16),
                half_sync_every: every(5),
            },
            Framing::PortFrom(FrameAlignment::new(0).ok_or("no alignment 0")?),
        ),
    };
    let beside = container::itm_text("another source");
    let [id, other] = ids()?;
    let sources = [SourceBytes { id, bytes: bytes.to_vec() }, SourceBytes { id: other, bytes: beside }];
    Ok((Some(framing), container::frames(&sources, options)))
}

/// The IDs of the source and of the one beside it.
fn ids() -> Result<[TraceId; 2], String> {
    let id = |number| TraceId::new(number).ok_or("no trace ID");
    Ok([id(ID)?, id(BESIDE)?])
}

/// The source's bytes, unpacked from the capture.
fn taken_apart(framing: Option<Framing>, capture: &[u8]) -> Result<Arrived, String> {
    #[derive(Default)]
    struct Of(Arrived);
    impl FrameSink for Of {
        fn data(&mut self, owner: Owner, piece: Piece<'_>) {
            if owner.trace_id().is_some_and(|id| id.get() == ID) {
                self.0.bytes.extend_from_slice(piece.bytes);
            }
        }
        fn discontinuity(&mut self, _: Discontinuity) {
            self.0.losses.push(self.0.bytes.len());
        }
    }
    let Some(framing) = framing else {
        return Ok(Arrived { bytes: capture.to_vec(), losses: Vec::new() });
    };
    let mut found = Of::default();
    let mut deframer = RecoveringDeframer::expecting(framing, ids()?.into_iter().collect());
    deframer.push(capture, &mut found);
    deframer.finish(&mut found);
    Ok(found.0)
}

/// The executed locations, in order.
fn places(path: &Path) -> impl Iterator<Item = Location> + '_ {
    path.instructions().map(Executed::location)
}

/// Whether the reported path is the whole path, apart from what cannot be reported: pauses, the end after the
/// last proof, and, in a buffer that wraps, the beginning. This check guards against an encoder that silently
/// leaves something out.
fn is_traced_part_of(traced: &Path, path: &Path, case: &Case, program: &Program) -> bool {
    const LONGEST_TAIL: usize = 1200;
    // A wandered path may end in a long stretch that produces no trace.
    let wanders = case.path != PathFrom::Record;
    let completed;
    let path = match case.unit {
        Unit::Etmv4(_) => {
            completed = without_given_up(path, program);
            &completed
        }
        _ => path,
    };
    let (traced, path) = (places(traced).collect::<Vec<_>>(), places(path).collect::<Vec<_>>());
    if case.beside.pauses.is_some() {
        let mut rest = path.iter();
        return traced.iter().all(|place| rest.any(|other| other == place));
    }
    match case.unit {
        Unit::Mtb { .. } => traced.is_empty() || path.windows(traced.len()).rev().any(|part| part == traced),
        _ => path.starts_with(&traced) && (wanders || path.len() - traced.len() < LONGEST_TAIL),
    }
}

/// The path without instructions that raised an exception which resumes at them: ETMv4 does not count them as
/// executed.
fn without_given_up(path: &Path, program: &Program) -> Path {
    let mut steps = Vec::new();
    for step in &path.steps {
        if let (Some(Step::Instruction(last)), Step::Exception(taken)) = (steps.last(), step)
            && taken.preferred_return == Some(last.address)
            && last.classify(program).is_some_and(|instruction| instruction.class == Class::Other)
        {
            steps.pop();
        }
        steps.push(*step);
    }
    Path { steps }
}

fn first_not_traced(traced: &Path, path: &Path) -> usize {
    places(traced).zip(places(path)).take_while(|(traced, path)| traced == path).count()
}

fn compare(
    case: &Case,
    config: &SourceConfig,
    profile: Profile,
    trace: &Trace,
    found: &Found,
) -> Result<(), Failure> {
    if let Some(difference) = first_difference(profile, &trace.path, &found.path) {
        return Err(Failure::Different(difference));
    }
    if let Some(gap) = found.gaps.first() {
        return Err(Failure::Gap(format!("{} at {}", gap.reason, gap.span)));
    }
    let count = |what, traced: u64, found: u64| match traced == found {
        true => Ok(()),
        false => Err(Failure::Count { what, traced, found }),
    };
    count("triggers", trace.triggers as u64, found.triggers as u64)?;
    if !matches!(config, SourceConfig::Mtb(_)) {
        count("starts", trace.starts as u64, found.starts as u64)?;
    }
    let cycle_accurate = match config {
        SourceConfig::Etmv3(config) => config.cycle_accurate(),
        SourceConfig::Pft(config) => config.cycle_accurate(),
        SourceConfig::Etmv4(config) => config.cycle_counting(),
        SourceConfig::Mtb(_) => false,
    };
    if cycle_accurate && case.beside.pauses.is_none() {
        count("cycles", trace.cycles, found.cycles)?;
    }
    if !found.timestamps.is_sorted() {
        return Err(Failure::Count {
            what: "timestamps in order",
            traced: found.timestamps.len() as u64,
            found: 0,
        });
    }
    Ok(())
}
