//! Decodes generated MTB dumps with `tracewalk`, which must find the path that the emulator recorded.

use crate::common::{assert_same, decoded, firmware};
use tracewalk::ids::{Address, Exception};
use tracewalk::protocol::mtb::{BufferSize, Config, Decoder, Lowering, RULES, order};
use tracewalk_generate::mtb::{Buffer, Options, encode};
use tracewalk_generate::path::{Step, Taken};
use tracewalk_generate::record::Profile;

fn check(name: &str, bytes: u64, writes_branches_to_next: bool) -> Buffer {
    let firmware = firmware(name);
    let program = &firmware.elf.program;
    let size = BufferSize::new(bytes).unwrap();
    let options = Options {
        writes_branches_to_next,
        process_stack: name == "m3",
        ..Options::new(size, Address::new(0x2000_0000))
    };
    let buffer = encode(&firmware.path, program, &options).unwrap();
    let config = Config::from_registers(buffer.registers);
    let dump = order::Dump::new(&buffer.bytes, Some(options.memory.base));
    let layout = order::by_registers(dump, &config).unwrap();
    assert_eq!(layout.missing, []);
    let packets =
        layout.pieces.into_iter().flat_map(|piece| buffer.bytes[piece.bytes].to_vec()).collect::<Vec<_>>();
    let found = decoded(&packets, Decoder, Lowering::new(), RULES, program);
    assert_same(Profile::M, &buffer.path, &found.path, &format!("{name}, {bytes} bytes"));
    buffer
}

#[test]
fn both_m_profile_programs_are_found_in_buffers_of_every_size() {
    for name in ["m3", "m0-crash"] {
        for bits in 4..18 {
            check(name, 1 << bits, false);
            check(name, 1 << bits, true);
        }
    }
}

#[test]
fn a_small_buffer_has_wrapped_and_a_large_one_has_not() {
    assert_eq!(check("m0-crash", 1024, true).registers.position & 0b100, 0b100);
    let large = check("m0-crash", 1 << 20, true);
    assert_eq!(large.registers.position & 0b100, 0);
    let executed = large.path.instructions().count();
    assert!(executed > 7_000, "{executed}");
}

#[test]
fn the_crash_is_the_last_thing_in_the_buffer() {
    let buffer = check("m0-crash", 256, true);
    let Some(Step::Exception(Taken { exception, preferred_return, .. })) = buffer.path.steps.last() else {
        panic!("{:x?}", buffer.path.steps.last());
    };
    assert_eq!(*exception, Exception::M(3));
    // The text that overwrote the callback.
    assert_eq!(preferred_return.unwrap().low_word().to_le_bytes(), *b"too ");
}
