//! A trace with a BLX whose condition fails; no firmware of the matrix has one.

use tracewalk::ids::{Address, Isa, Location};
use tracewalk::program::Program;
use tracewalk::protocol::Registers;
use tracewalk::protocol::pft;
use tracewalk::source::SourceConfig;

use super::model::Registers as TheirRegisters;
use super::subject::Subject;

const CPU: &str = "cortex-a9";
const START: u32 = 0x8000;

/// In Thumb: `nop; it eq; blxeq 0x8010; nop; b .`, and in ARM state at 0x8010: `nop; b .`.
const CODE: [u16; 12] =
    [0xbf00, 0xbf08, 0xf000, 0xe804, 0xbf00, 0xe7fe, 0xbf00, 0xbf00, 0x0000, 0xe1a0, 0xfffe, 0xeaff];

/// A-sync, I-sync at 0x8000 in Thumb, one atom N for the BLX and one E for the `b .`.
const TRACE: [u8; 14] = [0x00, 0x00, 0x00, 0x00, 0x00, 0x80, 0x08, 0x01, 0x80, 0x00, 0x00, 0x21, 0x86, 0x84];

/// The program of the trace.
#[must_use]
pub fn program() -> Option<Program> {
    let mut program = Program::new();
    let bytes = CODE.iter().flat_map(|halfword| halfword.to_le_bytes()).collect::<Vec<_>>();
    program.add(Address::from(START), &bytes).is_ok().then_some(program)
}

/// The trace of the program.
#[must_use]
pub fn subject(program: &Program) -> Option<Subject<'_>> {
    let core = pft::Core::named(CPU)?;
    let usual = core.registers();
    let registers = TheirRegisters {
        etmcr: 0,
        etmidr: usual.etmidr.unwrap_or_default(),
        etmccer: usual.etmccer.unwrap_or_default(),
        ..TheirRegisters::default()
    };
    let config =
        pft::Config::from_registers(Registers { etmcr: Some(0), ..Registers::default() }, Some(core));
    let config = SourceConfig::Pft(config.ok()?);
    Some(Subject {
        config,
        registers,
        cpu: CPU.to_owned(),
        bytes: TRACE.to_vec(),
        program,
        traced: traced(),
        broken: 0..0,
    })
}

/// The traced path: everything up to the `b .`, which is executed once.
fn traced() -> Vec<Location> {
    [0, 2, 4, 8, 10].map(|offset| Location::new(Address::from(START + offset), Isa::T32)).to_vec()
}
