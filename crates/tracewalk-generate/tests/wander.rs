//! Wandered paths keep to the architecture.

use tracewalk::ids::{Address, Exception, Isa, Location, Profile};
use tracewalk::program::Program;
use tracewalk::protocol::etmv4::{Config, Core, Registers};
use tracewalk::source::SourceConfig;
use tracewalk_generate::etmv4::{ContextPlace, Options, encode};
use tracewalk_generate::found::{Found, first_difference};
use tracewalk_generate::wander::Wander;

const CODE: u32 = 0x8000;

/// In M profile, bytes that decode as BLX (immediate) are not an instruction, and a path ends there; in A and
/// R profile the path continues in A32. The decoder finds the traced path in both.
#[test]
fn paths_through_any_bytes_are_found_in_m_profile_and_in_the_others() {
    let mut seed = 1_u32;
    let mut choose = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        seed >> 7
    };
    let mut blx = 0;
    for round in 0..600 {
        let mut bytes = (0..48).flat_map(|_| choose().to_le_bytes().into_iter().take(2)).collect::<Vec<_>>();
        // NOP, BLX to the first instruction's word.
        bytes.splice(..8, [0x00, 0xbf, 0xff, 0xf7, 0xfe, 0xef, 0x00, 0xbf]);
        let mut program = Program::new();
        program.add(Address::from(CODE), &bytes).unwrap();
        for (profile, core, isa) in
            [(Profile::M, "cortex-m33", Isa::T32), (Profile::Ar, "cortex-a32", Isa::T32)]
        {
            let handler = Address::from(CODE + 16);
            let handlers = match profile {
                Profile::M => vec![(Exception::M(15), handler), (Exception::M(11), handler)],
                Profile::Ar => vec![(Exception::Ar(14), handler), (Exception::Ar(10), handler)],
            };
            let start = Location::new(Address::from(CODE), isa);
            let path = Wander { program: &program, profile, start, handlers, steps: 300 }.path(&mut choose);
            let in_a32 = path.instructions().filter(|executed| executed.isa == Isa::A32).count();
            match profile {
                Profile::M => assert_eq!(in_a32, 0),
                Profile::Ar => blx += usize::from(in_a32 > 0),
            }
            let core = Core::named(core).unwrap();
            let config =
                Config::from_registers(Registers::default().or_usual_of(core), Some(profile)).unwrap();
            let options = Options {
                synchronise_every: Some(if round % 2 == 0 { 0 } else { 40 }),
                branch_broadcast: round % 3 == 0,
                contexts: ContextPlace::ALL[round % 3].1,
                ..Options::default()
            };
            let Ok(trace) = encode(&path, &program, &config, &options) else { continue };
            let found = Found::of(&SourceConfig::Etmv4(config), &trace.bytes, &program);
            assert_eq!(first_difference(profile, &trace.path, &found.path), None, "{round} {profile:?}");
            assert_eq!(found.gaps, [], "{round} {profile:?}");
        }
    }
    assert!(blx > 300, "{blx} paths come to A32");
}
