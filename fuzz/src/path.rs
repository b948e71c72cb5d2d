//! Any path through any program, as any trace unit would trace it: what is decoded is what was told.

use tracewalk::ids::{Address, Exception, Isa, Location, Vmid};
use tracewalk::program::Program;
use tracewalk::source::SourceConfig;
use tracewalk_generate::etmv3::{self, Cancel};
use tracewalk_generate::etmv4::{self, ContextPlace};
use tracewalk_generate::found::{Found, first_difference};
use tracewalk_generate::pft;
use tracewalk_generate::record::Profile;
use tracewalk_generate::trace::Trace;
use tracewalk_generate::wander::Wander;

use crate::input::Input;

const CODE: u32 = 0x8000;
/// More would not find more, only slower.
const STEPS: usize = 600;

/// Encodes a path that the bytes choose, decodes it, and compares.
pub fn path(data: &[u8]) {
    let mut input = Input(data);
    let choice = input.byte();
    let config = match choice & 0b11 {
        0 => input.etmv3().map(SourceConfig::Etmv3),
        1 => input.etmv4().map(SourceConfig::Etmv4),
        _ => input.pft().map(SourceConfig::Pft),
    };
    let Some(config) = config else { return };
    let profile = match &config {
        SourceConfig::Etmv3(config) => config.profile(),
        SourceConfig::Etmv4(config) => config.profile(),
        _ => Profile::Ar,
    };
    let settings = Settings::of(&mut input);
    let mut program = Program::new();
    let length = 16 + usize::from(input.byte());
    if program.add(Address::from(CODE), input.bytes(length)).is_err() {
        return;
    }
    let handler = |number: u8| Address::from(CODE + 8 * u32::from(number));
    let isa = match (&config, input.byte()) {
        _ if profile == Profile::M => Isa::T32,
        (SourceConfig::Etmv4(_), choice) if choice & 2 != 0 => Isa::A64,
        (_, choice) => {
            if choice & 1 != 0 {
                Isa::T32
            } else {
                Isa::A32
            }
        }
    };
    let handlers = match profile {
        Profile::Ar if isa == Isa::A64 => {
            [2, 3, 4, 12, 14, 15].map(|n| (Exception::ArType(n.into()), handler(n))).to_vec()
        }
        // The deprecated codes of exceptions tell some by the address of their vectors, which these handlers are not at.
        Profile::Ar => [9, 10, 11, 12, 14, 15].map(|n| (Exception::Ar(n), handler(n))).to_vec(),
        Profile::M => [3, 11, 14, 15, 16, 40].map(|n| (Exception::M(n.into()), handler(n))).to_vec(),
    };
    let start = Location::new(Address::from(CODE), isa);
    let wander = Wander { program: &program, profile, start, handlers, steps: STEPS };
    let mut seed = 1_u32;
    // The bytes first, then a generator, so that short inputs are long paths.
    let mut choose = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if input.0.is_empty() { seed >> 7 } else { input.word() }
    };
    let path = wander.path(&mut choose);
    let Some(trace) = settings.encode(&config, &path, &program) else { return };
    let found = Found::of(&config, &trace.bytes, &program);
    if let Some(difference) = first_difference(profile, &trace.told, &found.path) {
        panic!("{difference}; {:?}; {config:?}; {:02x?}", found.gaps.first(), trace.bytes);
    }
    assert_eq!(found.gaps, []);
}

struct Settings {
    synchronise_every: Option<usize>,
    timestamp_every: Option<u64>,
    cancel: Cancel,
    tail_chaining_cancels: bool,
    return_stack_depth: usize,
    etmv4: etmv4::Options,
}

impl Settings {
    fn of(input: &mut Input<'_>) -> Self {
        let often = |byte: u8| (byte != 0).then_some(byte);
        let (synchronise_every, timestamp_every) = (input.byte(), input.byte());
        Self {
            synchronise_every: often(synchronise_every).map(usize::from),
            timestamp_every: often(timestamp_every).map(u64::from),
            cancel: match input.byte() % 3 {
                0 => Cancel::Never,
                1 => Cancel::Multiple,
                _ => Cancel::Always,
            },
            tail_chaining_cancels: input.flag(),
            return_stack_depth: usize::from(input.byte() % 17),
            etmv4: Self::etmv4(input),
        }
    }

    fn etmv4(input: &mut Input<'_>) -> etmv4::Options {
        let every = |byte: u8| (byte != 0).then_some(u64::from(byte));
        let flags = input.byte();
        let is_set = |bit: u8| flags >> bit & 1 != 0;
        let contexts = ContextPlace::ALL.get(usize::from(input.byte() % 3));
        etmv4::Options {
            branch_broadcast: is_set(0),
            context_ids: is_set(1),
            vmid: is_set(2).then_some(Vmid(7)),
            non_secure: is_set(3),
            exact_matches: is_set(4),
            late_addresses: is_set(5),
            exceptions_answer: is_set(6),
            contexts: contexts.map(|(_, place)| *place).unwrap_or_default(),
            cycle_threshold: input.byte().into(),
            commit_every: input.byte().into(),
            wrong_path_every: every(input.byte()),
            q_every: every(input.byte()),
            source_address_every: every(input.byte()),
            event_every: every(input.byte()),
            ..etmv4::Options::default()
        }
    }

    /// `None` where the configuration has no packet for something in the path.
    fn encode(
        &self,
        config: &SourceConfig,
        path: &tracewalk_generate::path::Path,
        program: &Program,
    ) -> Option<Trace> {
        match config {
            SourceConfig::Etmv3(config) => {
                let options = etmv3::Options {
                    synchronise_every: self.synchronise_every,
                    timestamp_every: self.timestamp_every,
                    cancel: self.cancel,
                    tail_chaining_cancels: self.tail_chaining_cancels,
                    ..etmv3::Options::default()
                };
                etmv3::encode(path, program, config, &options).ok()
            }
            SourceConfig::Pft(config) => {
                let options = pft::Options {
                    synchronise_every: self.synchronise_every,
                    timestamp_every: self.timestamp_every,
                    return_stack_depth: self.return_stack_depth.max(1),
                    ..pft::Options::default()
                };
                pft::encode(path, program, config, &options).ok()
            }
            SourceConfig::Etmv4(config) => {
                let options = etmv4::Options {
                    synchronise_every: self.synchronise_every,
                    timestamp_every: self.timestamp_every,
                    return_stack_depth: self.return_stack_depth.max(1),
                    ..self.etmv4
                };
                etmv4::encode(path, program, config, &options).ok()
            }
            SourceConfig::Mtb(_) => None,
        }
    }
}
