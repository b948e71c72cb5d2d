//! Any path through any program, as any trace unit would trace it: what is decoded is what was reported.

use tracewalk::ids::{Address, Exception, Isa, Location};
use tracewalk::program::Program;
use tracewalk::source::SourceConfig;
use tracewalk_generate::etmv3::{self, Cancel};
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
    let config = if choice & 2 != 0 {
        input.pft().map(SourceConfig::Pft)
    } else {
        input.etmv3().map(SourceConfig::Etmv3)
    };
    let Some(config) = config else { return };
    let profile = match &config {
        SourceConfig::Etmv3(config) if config.profile() == tracewalk::ids::Profile::M => Profile::M,
        _ => Profile::Ar,
    };
    let settings = Settings::of(&mut input);
    let mut program = Program::new();
    let length = 16 + usize::from(input.byte());
    if program.add(Address::from(CODE), input.bytes(length)).is_err() {
        return;
    }
    let handler = |number: u8| Address::from(CODE + 8 * u32::from(number));
    let handlers = match profile {
        // The deprecated codes of exceptions tell some by the address of their vectors, which these handlers are not at.
        Profile::Ar => [9, 10, 11, 12, 14, 15].map(|n| (Exception::Ar(n), handler(n))).to_vec(),
        Profile::M => [3, 11, 14, 15, 16, 40].map(|n| (Exception::M(n.into()), handler(n))).to_vec(),
    };
    let isa = if profile == Profile::M || input.flag() { Isa::T32 } else { Isa::A32 };
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
}

impl Settings {
    fn of(input: &mut Input<'_>) -> Self {
        let often = |byte: u8| (byte != 0).then_some(byte);
        Self {
            synchronise_every: often(input.byte()).map(usize::from),
            timestamp_every: often(input.byte()).map(u64::from),
            cancel: match input.byte() % 3 {
                0 => Cancel::Never,
                1 => Cancel::Multiple,
                _ => Cancel::Always,
            },
            tail_chaining_cancels: input.flag(),
            return_stack_depth: usize::from(input.byte() % 17),
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
            // What the generator makes of any path as ETMv4 is not always what flow can say of it: where conditions are not sent.
            SourceConfig::Mtb(_) | SourceConfig::Etmv4(_) => None,
        }
    }
}
