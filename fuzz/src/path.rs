//! Any path through any program, as any trace unit would trace it: the decoded path must equal the traced
//! one.

use tracewalk::ids::{Address, Exception, Isa, Location, Vmid};
use tracewalk::program::Program;
use tracewalk::source::SourceConfig;
use tracewalk_generate::a64;
use tracewalk_generate::etmv3::{self, Cancel};
use tracewalk_generate::etmv4::{self, ContextPlace};
use tracewalk_generate::found::{Found, first_difference};
use tracewalk_generate::path::Executed;
use tracewalk_generate::pft;
use tracewalk_generate::record::Profile;
use tracewalk_generate::trace::Trace;
use tracewalk_generate::wander::Wander;

use crate::input::Input;

const CODE: u32 = 0x8000;
/// Longer paths find nothing more, and are slower.
const STEPS: usize = 600;

/// Encodes a path that the bytes choose, decodes it, and compares.
pub fn path(data: &[u8]) {
    let mut input = Input(data);
    let choice = input.byte();
    let config = if choice & 4 != 0 {
        input.etmv4_of_core().map(SourceConfig::Etmv4)
    } else if choice & 2 != 0 {
        input.pft().map(SourceConfig::Pft)
    } else {
        input.etmv3().map(SourceConfig::Etmv3)
    };
    let Some(config) = config else { return };
    let profile = match &config {
        SourceConfig::Etmv3(config) if config.profile() == tracewalk::ids::Profile::M => Profile::M,
        SourceConfig::Etmv4(config) if config.profile() == tracewalk::ids::Profile::M => Profile::M,
        _ => Profile::Ar,
    };
    let settings = Settings::of(&mut input, &config);
    let isa = match (profile, &config) {
        (Profile::M, _) => Isa::T32,
        (Profile::Ar, SourceConfig::Etmv4(_)) if input.flag() => Isa::A64,
        (Profile::Ar, _) if input.flag() => Isa::T32,
        (Profile::Ar, _) => Isa::A32,
    };
    // Nearly all random words are undefined in A64.
    let (program, start) = if isa == Isa::A64 && input.flag() {
        let firmware = a64::firmware(input.word());
        let start = firmware.path.instructions().next().map(Executed::location);
        (firmware.elf.program, start)
    } else {
        let mut program = Program::new();
        let length = 16 + usize::from(input.byte());
        let is_added = program.add(Address::from(CODE), input.bytes(length)).is_ok();
        (program, is_added.then(|| Location::new(Address::from(CODE), isa)))
    };
    let Some(start) = start else { return };
    let handler = |number: u8| start.moved(8 * i64::from(number)).address;
    let handlers = match profile {
        Profile::Ar if isa == Isa::A64 => {
            [2, 3, 10, 11, 14, 15].map(|n| (Exception::ArType(n.into()), handler(n))).to_vec()
        }
        // The deprecated codes identify some exceptions by the address of their vectors, where these handlers
        // are not.
        Profile::Ar => [9, 10, 11, 12, 14, 15].map(|n| (Exception::Ar(n), handler(n))).to_vec(),
        Profile::M => [3, 11, 14, 15, 16, 40].map(|n| (Exception::M(n.into()), handler(n))).to_vec(),
    };
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
    if let Some(difference) = first_difference(profile, &trace.path, &found.path) {
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
    fn of(input: &mut Input<'_>, config: &SourceConfig) -> Self {
        let often = |byte: u8| (byte != 0).then_some(byte);
        let mut settings = Self {
            synchronise_every: often(input.byte()).map(usize::from),
            timestamp_every: often(input.byte()).map(u64::from),
            cancel: match input.byte() % 3 {
                0 => Cancel::Never,
                1 => Cancel::Multiple,
                _ => Cancel::Always,
            },
            tail_chaining_cancels: input.flag(),
            return_stack_depth: usize::from(input.byte() % 17),
            etmv4: etmv4::Options::default(),
        };
        if let SourceConfig::Etmv4(_) = config {
            settings.etmv4 = settings.of_etmv4(input);
        }
        settings
    }

    /// The same choices for ETMv4, and those that only it has.
    fn of_etmv4(&self, input: &mut Input<'_>) -> etmv4::Options {
        let often = |byte: u8| (byte != 0).then(|| u64::from(byte));
        let (first, second) = (input.byte(), input.byte());
        let bit = |byte: u8, bit: u8| byte >> bit & 1 != 0;
        etmv4::Options {
            synchronise_every: self.synchronise_every,
            timestamp_every: self.timestamp_every,
            event_every: often(input.byte()),
            return_stack_depth: self.return_stack_depth,
            branch_broadcast: bit(first, 0),
            context_ids: bit(first, 1),
            vmid: bit(first, 2).then_some(Vmid(7)),
            non_secure: bit(first, 3),
            contexts: ContextPlace::ALL[usize::from(second % 3)].1,
            exact_matches: bit(first, 4),
            cycle_threshold: u64::from(input.byte()),
            commit_every: u64::from(input.byte()).max(1),
            wrong_path_every: often(input.byte()),
            q_every: often(input.byte()),
            source_address_every: often(input.byte()),
            late_addresses: bit(first, 5),
            keeps_returns: bit(first, 6),
            exceptions_answer: bit(first, 7),
            pauses: None,
        }
    }

    /// `None` if the configuration has no packet for something in the path.
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
                    return_stack_depth: self.return_stack_depth,
                    ..pft::Options::default()
                };
                pft::encode(path, program, config, &options).ok()
            }
            SourceConfig::Etmv4(config) => etmv4::encode(path, program, config, &self.etmv4).ok(),
            SourceConfig::Mtb(_) => None,
        }
    }
}
