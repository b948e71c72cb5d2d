#![expect(clippy::single_range_in_vec_init, reason = "lists of ranges are what is compared here")]

use std::collections::BTreeSet;

use proptest::prelude::*;
use tracewalk::protocol::mtb;

use super::*;
use crate::capture::tests::located;
use crate::capture::wire::Recording;
use crate::fixtures::{ALLOC, EXECUTE, Elf, WRITE};
use crate::image::ImageErrorKind;

mod broken;
mod print;

fn read(bytes: impl Into<Vec<u8>>) -> Result<Option<MemoryDump>, CaptureError> {
    MemoryDump::read("dump".as_ref(), &Bytes::from(bytes.into()))
}

fn dump(bytes: impl Into<Vec<u8>>) -> MemoryDump {
    read(bytes).expect("a sound file").expect("a dump")
}

/// The problem with an unusable file, or with a part of a file: its place and kind.
fn problem(bytes: impl Into<Vec<u8>>) -> String {
    let error = read(bytes).map_or_else(
        |error| error,
        |dump| {
            let Damage { count, line, problem } = dump.and_then(|dump| dump.damage).expect("a broken file");
            assert_eq!(count, 1);
            CaptureError { file: "dump".into(), line, kind: CaptureErrorKind::Dump(problem) }
        },
    );
    located(&error)
}

fn pieces(dump: &MemoryDump) -> Vec<(u32, &[u8])> {
    dump.pieces
        .iter()
        .map(|piece| (piece.address.map_or(u32::MAX, Address::low_word), &piece.bytes[..]))
        .collect()
}

/// A file of `testdata`.
fn file(name: &str) -> Vec<u8> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    std::fs::read(directory.join(name)).unwrap()
}

fn trace() -> Vec<u8> {
    file("examples/m0-crash-mtb/trace.bin")
}

/// The piece at 0x20001000.
fn buffer(dump: &MemoryDump) -> &[u8] {
    let at = Some(Address::new(0x2000_1000));
    &dump.pieces.iter().find(|piece| piece.address == at).expect("the buffer").bytes
}

#[test]
fn what_gdb_and_pyocd_wrote_is_the_same_memory() {
    let tool = |tool| Form::Text(BTreeSet::from([tool]));
    let cases = [
        ("gdb-x.txt", tool(Tool::Gdb), 3),
        ("gdb-xdw.txt", tool(Tool::Gdb), 1),
        ("gdb-xuh.txt", tool(Tool::Gdb), 1),
        ("gdb-xdb.txt", tool(Tool::Gdb), 1),
        ("gdb-xdg.txt", tool(Tool::Gdb), 1),
        ("gdb-xtw.txt", tool(Tool::Gdb), 1),
        ("gdb-xth.txt", tool(Tool::Gdb), 1),
        ("gdb.hex", Form::IntelHex, 1),
        ("gdb.srec", Form::SRecords, 1),
        ("gdb.core", Form::CoreFile, 3),
        ("pyocd-read8.txt", tool(Tool::PyOcd), 1),
        ("pyocd-read16.txt", tool(Tool::PyOcd), 1),
        ("pyocd-read32.txt", tool(Tool::PyOcd), 1),
        ("pyocd-read64.txt", tool(Tool::PyOcd), 1),
    ];
    for (name, form, pieces) in cases {
        let dump = dump(file(&format!("dumps/{name}")));
        assert_eq!((&dump.form, dump.pieces.len()), (&form, pieces), "{name}");
        assert!(buffer(&dump) == trace(), "{name}");
    }
}

#[test]
fn a_log_of_gdb_may_hold_registers_and_other_lines() {
    let dump = dump(file("dumps/gdb-x.txt"));
    let registers = ["MTB_POSITION", "MTB_MASTER", "MTB_BASE"].map(|name| dump.registers.get(name));
    assert_eq!(registers, [Some(0x34), Some(0x8000_0006), Some(0x2000_1000)]);
    assert_eq!(dump.other_lines.count, 4);
    assert_eq!(dump.other_lines.first, Some((70, "0x20001000: 330 322".to_owned())));
    assert_eq!(pieces(&dump)[0], (0, &[0, 0x40, 0, 0x20, 0xc1, 0, 0, 0, 0xe5, 0, 0, 0, 0xe7, 0, 0, 0][..]));
}

/// The expected registers are those that `info registers` of GDB prints for the same core file.
#[test]
fn a_core_file_has_the_registers_of_the_processor() {
    let registers = dump(file("dumps/crash.core")).processor;
    let [sp, lr, pc] = [13, 14, 15].map(|number: usize| registers.core[number]);
    assert_eq!((sp, lr, pc), (Some(0x2000_0220), Some(0xffff_fff9), Some(0xe6)));
    assert_eq!((registers.core[0], registers.core[4]), (Some(3), Some(0x2000_0030)));
    assert_eq!(registers.xpsr, Some(0x0100_0003));
    // A truncated note, and one of another profile, which has bit 24 of CPSR clear.
    let bytes = file("dumps/crash.core");
    let note =
        bytes.windows(8).position(|window| window == b"CORE\0\0\0\0").expect("the note of registers") + 8;
    let mut other = bytes.clone();
    other[note + 72 + 16 * 4 + 3] = 0;
    assert!(dump(other).processor.is_empty());
}

#[test]
fn decimal_numbers_that_may_have_any_width_are_refused_or_damage() {
    for alone in ["0x20001000:\t330\t322\n", "0x20001000:\t330\t322\n0x20001008:\t332\t424\n"] {
        let error = read(alone).unwrap_err().kind;
        assert!(matches!(error, CaptureErrorKind::Dump(DumpProblem::NoWidth { .. })), "{error:?}");
    }
    // With a line missing in between, the last line is not consecutive to any other.
    let text = String::from_utf8(file("dumps/gdb-xdw.txt")).unwrap();
    let lines = text.lines().collect::<Vec<_>>();
    let cut = [&lines[..20], &lines[21..22]].concat().join("\n");
    let dump = dump(cut.as_str());
    assert_eq!(dump.pieces[0].bytes.len(), 20 * 16);
    let damage = dump.damage.expect("a line of unknown width");
    assert!(matches!(damage.problem, DumpProblem::NoWidth { .. }) && damage.line == Some(21), "{damage:?}");
}

#[test]
fn several_tools_may_print_into_one_log() {
    let dump = dump(
        "(gdb) x/1wx 0x20000000\n0x20000000:\t0x03020100\n(gdb) monitor mdw 0x20000004 1\n0x20000004: 07060504 \n",
    );
    assert_eq!(pieces(&dump), [(0x2000_0000, &[0, 1, 2, 3, 4, 5, 6, 7][..])]);
    assert_eq!(dump.form.to_string(), "memory as GDB and OpenOCD print it");
    assert_eq!(dump.other_lines.count, 2);
}

/// The output of J-Link Commander when the target halts: its disassembled line begins like pyOCD's bytes.
#[test]
fn a_line_that_another_tool_would_have_printed_otherwise_is_passed_over() {
    let dump = dump(
        "J-Link>h\nPC = 00000154, CycleCnt = 00000000\n00000154:  10 B5              PUSH     {R4,LR}\n\
         J-Link>mem32 0x20000000, 2\n20000000 = 03020100 07060504 \n",
    );
    assert_eq!(pieces(&dump), [(0x2000_0000, &[0, 1, 2, 3, 4, 5, 6, 7][..])]);
    assert_eq!(dump.other_lines.count, 2);
    assert_eq!(dump.processor.core[15], Some(0x154));
}

#[test]
fn text_of_windows_is_read() {
    let text = "20000000 = 03020100 07060504 \r\n20000008 = 0B0A0908 \r\n";
    let expected = (0..12).collect::<Vec<u8>>();
    assert_eq!(pieces(&dump(text)), [(0x2000_0000, &expected[..])]);
    let wide = [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect::<Vec<_>>();
    assert_eq!(pieces(&dump(wide)), [(0x2000_0000, &expected[..])]);
}

#[test]
fn bytes_that_were_decoded_elsewhere_are_read() {
    let logic_1 = "Time [s],Value,Parity Error,Framing Error\n0.001,0x00,,\n0.002,0x80,Error,\n";
    let logic_2 = "name,type,start_time,duration,data\n\"A, B\",\"data\",0.001,4.5e-06,0x00\n\"A, B\",\"error\",0.001,0,\n\
                   \"A, B\",\"data\",0.002,4.5e-06,0x80\n";
    for (text, form) in [(logic_1, Form::ByteTable), (logic_2, Form::ByteTable)] {
        assert_eq!(
            (dump(text).form, pieces(&dump(text))),
            (form, vec![(u32::MAX, &[0, 0x80][..])]),
            "{text}"
        );
        let recording = Recording::from_bytes("a.csv".as_ref(), text.as_bytes().to_vec().into());
        assert!(recording.unwrap().is_none());
    }
    for text in ["00 00 00 80\n01 48\n", "0x00, 0x00, 0x00, 0x80,\r\n0x01, 0x48\r\n"] {
        let found = dump(text);
        assert_eq!(
            (&found.form, pieces(&found)),
            (&Form::Bytes, vec![(u32::MAX, &[0, 0, 0, 0x80, 1, 0x48][..])])
        );
    }
    for other in ["Time [s],Value\n0.1,H\n", "Time [s],Value\n", "be ad\n"] {
        assert!(read(other).unwrap().is_none(), "{other}");
    }
}

#[test]
fn colours_and_times_are_no_part_of_a_log() {
    let plain = "(gdb) x/2wx 0x20001000\n0x20001000 <buffer>:\t0x0000010c\t0x00000116\npc             0xe6                0xe6\n";
    let stamped = |stamp: &str| plain.lines().map(|line| format!("{stamp}{line}\n")).collect::<String>();
    let coloured = plain
        .replace("0x20001000 ", "\x1b[34m0x20001000\x1b[m ")
        .replace("pc", "\x1b]0;title\x07\x1b[1;31mpc\x1b(B\x1b[m");
    let stamps = [
        "[12:03:44] ",
        "12:03:44.123 -> ",
        "[    1.204000] ",
        "2026-11-30T12:03:44Z ",
        "Nov 30 12:03:44 ",
        "[INFO] ",
    ];
    let expected = dump(plain);
    for text in stamps.map(stamped).into_iter().chain([coloured]) {
        let found = dump(&*text);
        assert_eq!(pieces(&found), pieces(&expected), "{text}");
        assert_eq!((&found.processor, found.other_lines.count), (&expected.processor, 1), "{text}");
    }
    let hex = "[12:03:44] :0400000000BF704786\n[12:03:45] :00000001FF\n";
    assert_eq!(pieces(&dump(hex)), [(0, &[0, 0xbf, 0x70, 0x47][..])]);
}

#[test]
fn numbers_without_addresses_have_none() {
    let dump = dump("03020100 07060504 0b0a0908 0f0e0d0c\n");
    assert_eq!(dump.form, Form::Numbers);
    assert_eq!(
        (dump.pieces[0].address, &dump.pieces[0].bytes[..]),
        (None, &(0..16).collect::<Vec<u8>>()[..])
    );
}

#[test]
fn what_is_no_dump_is_left_alone() {
    let program = {
        let mut elf = Elf::new();
        elf.section(".text", ALLOC | EXECUTE, 0, b"code");
        elf.build()
    };
    let others: [Vec<u8>; 10] = [
        Vec::new(),
        trace(),
        program,
        b"MTB_POSITION=0x34\nMTB_MASTER=0x80000006\n".to_vec(),
        b"[capture]\nfile = \"trace.bin\"\n".to_vec(),
        b"int main(void)\n{\n    return 0x20000000;\n}\n".to_vec(),
        b"00000000  4a 01 00 00 42 01 00 00  4c 01 00 00 a8 01 00 00  |J...B...M.......|\n".to_vec(),
        b"123456 12 34 56\n123466 78 9a bc\n".to_vec(),
        b"0123456789abcdef\n0123456789abcdef\n".to_vec(),
        b"20000000 051780C1 65C9A012 2000040A\n20000010 00080001 FFFFFFFF FFFFFFFF\n".to_vec(),
    ];
    for bytes in others {
        assert!(read(bytes.clone()).unwrap().is_none(), "{}", String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn broken_text_is_reported_with_its_line() {
    let cases = [
        ("0x20000000:\t0x00000001\n0x20000004:\t0x0000002\t0x00000003\n", "dump:2 dump_values"),
        ("0x20000000: 00000001 0000\n", "dump:1 dump_values"),
        ("20000000 = 00000001 0000000Z\n", "dump:1 dump_values"),
        ("20000000:  00000001 00000002    |...", "dump:1 dump_values"),
        ("20000000: 00000001\n\n20000004: 0000000\n20000008: 00000001 x\n", "dump:4 dump_values"),
        ("0x20000000: 00000001\n0xfffffffc: 00000001 00000002\n", "dump:2 dump_past_end_of_memory"),
        ("0x120000000: 00000001\n", "dump:1 dump_past_end_of_memory"),
        ("0x20000000: 00000001\nMTB_POSTION=1\n", "dump:2 description_unknown_key"),
        ("0x20000000: 00000001\nMTB_BASE=x\n", "dump:2 description_type"),
    ];
    for (text, expected) in cases {
        assert_eq!(problem(text), expected, "{text}");
    }
}

#[test]
fn what_stands_in_front_of_damage_is_used() {
    let cases: [(&str, &[u8]); 7] = [
        (
            "0x20000000: 00000001 00000002 \n0x20000008: 00000003 0000\n",
            &[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0],
        ),
        // Truncated in the first number: shorter than the preceding ones.
        ("0x20000000:\t0x00000001\n0x20000004:\t0x0000", &[1, 0, 0, 0]),
        ("20000000 = 00000001 00000002 \n20000008 = 00", &[1, 0, 0, 0, 2, 0, 0, 0]),
        ("20000000:  01000000    |....|\n20000004:  0000", &[0, 0, 0, 1]),
        ("20000000:  01000000    |....|\n20000004:  02000000    |..", &[0, 0, 0, 1, 0, 0, 0, 2]),
        (":020000042000DA\n:01000000AA55\n:0100010", &[0xaa]),
        ("S30620000000AA2F\nS3062000", &[0xaa]),
    ];
    for (text, expected) in cases {
        let dump = dump(text);
        assert!(dump.damage.is_some(), "{text}");
        assert_eq!(pieces(&dump), [(0x2000_0000, expected)], "{text}");
    }
    // Another command may print one shorter number elsewhere.
    assert_eq!(dump("0x20000000: 00000001 \n0x20000008: 02 \n").damage, None);
}

#[test]
fn listings_of_a_file_are_its_bytes() {
    let bytes = (0x40..0x50_u8).collect::<Vec<_>>();
    let all = [&bytes[..], &bytes, &bytes].concat();
    let row = "40 41 42 43 44 45 46 47  48 49 4a 4b 4c 4d 4e 4f  |@ABCDEFGHIJKLMNO|";
    let cases = [
        format!("00000000  {row}\n00000010  {row}\n00000020  {row}\n00000030\n"),
        format!("00000000  {row}\n*\n00000030\n"),
        "00000000: 43424140 47464544 4b4a4948 4f4e4d4c  @ABCDEFGHIJKLMNO\n*\n\
         00000020: 43424140 47464544 4b4a4948 4f4e4d4c  @ABCDEFGHIJKLMNO\n"
            .to_owned(),
        "0000000 4140 4342 4544 4746 4948 4b4a 4d4c 4f4e\n*\n\
         0000040 4140 4342 4544 4746 4948 4b4a 4d4c 4f4e\n0000060\n\
         "
        .to_owned(),
    ];
    for (index, text) in cases.iter().enumerate() {
        let Some(dump) = read(text.as_bytes()).unwrap() else {
            // No lines are consecutive there: octal offsets cannot be distinguished from others.
            assert_eq!(index, 3, "{text}");
            continue;
        };
        assert!(dump.is_file && dump.damage.is_none(), "{text}");
        assert_eq!(pieces(&dump), [(0, &all[..])], "{text}");
    }
    // A missing line leaves a hole, and so does a damaged one.
    let dump = dump(format!("00000000  {row}\n00000010  {}\n00000020  {row}\n", row.replace("43", "44")));
    assert!(dump.damage.is_some());
    assert_eq!(dump.join(0..2).map(|joined| (joined.address, joined.holes)), Some((None, vec![16..32])));
    // A `*` cannot stand for more memory than the limit.
    assert!(read(format!("00000000  {row}\n*\n40000000\n")).is_err());
}

#[test]
fn pieces_are_joined_within_blocks_and_when_they_are_near() {
    let dump = dump(
        "0x20000000: 00000001\n0x2000000c: 00000002\n0x20000010: 00000003\n0x20000018: 00000004\n0x30000000: 00000005\n",
    );
    assert_eq!(dump.pieces.len(), 4);
    let joined = dump.join(0..2).unwrap();
    assert_eq!((joined.address, joined.holes), (Some(Address::new(0x2000_0000)), vec![4..12]));
    assert_eq!(joined.bytes[..], [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
    assert!(dump.join(0..4).is_none() && dump.join(2..2).is_none());
    assert_eq!(dump.in_blocks(16).collect::<Vec<_>>(), [0..2, 1..3]);
    assert_eq!(dump.in_blocks(32).collect::<Vec<_>>(), [0..3]);
    assert!(dump.in_blocks(8).next().is_none());
    assert_eq!(dump.clusters(4).collect::<Vec<_>>(), [0..1, 1..3, 3..4]);
    assert_eq!(dump.clusters(8).collect::<Vec<_>>(), [0..3, 3..4]);
}

#[test]
fn parts_that_disagree_are_named() {
    let text = "0x20000000: 00000001 00000002\n0x20000008: 00000003\n0x20000004: 00000102\n";
    assert_eq!(problem(text), "dump:3 dump_conflict");
    let text = "0x20000004: 00000102\n0x20000000: 00000001 00000002\n";
    assert_eq!(problem(text), "dump:2 dump_conflict");

    let mut core = Elf::new();
    core.kind = 4;
    core.section("a", ALLOC | WRITE, 0x2000_0000, &[1, 2, 3, 4]);
    core.section("b", ALLOC | WRITE, 0x2000_0002, &[3, 5, 6]);
    assert_eq!(problem(core.build()), "dump dump_conflict");
}

#[test]
fn parts_that_agree_are_joined_in_any_order() {
    let text = "0x20000008: 0b0a0908\n0x20000000: 03020100 07060504\n0x20000004: 07060504 0b0a0908 0f0e0d0c\n\
                0x20000020: 00\n0x20000000: 03020100\n";
    let expected = (0..16).collect::<Vec<u8>>();
    assert_eq!(pieces(&dump(text)), [(0x2000_0000, &expected[..]), (0x2000_0020, &[0])]);
}

#[test]
fn memory_far_apart_takes_room_only_for_its_bytes() {
    let text =
        (0..1000_u64).map(|index| format!("0x{:08x}: 00000001 \n", index * 0x0040_0000)).collect::<String>();
    let dump = dump(text + "0xfffffffc: 00000001 \n");
    assert_eq!((dump.pieces.len(), dump.bytes()), (1001, 4004));
    let records = ":020000040000FA\n:0100000001FE\n:02000004FFFFFC\n:01FFFF0002FF\n:00000001FF\n";
    assert_eq!(pieces(&self::dump(records)), [(0, &[1][..]), (0xffff_ffff, &[2])]);
}

/// The examples of the Intel HEX specification and of Wikipedia's article.
#[test]
fn intel_hex_has_segments_and_linear_addresses() {
    let text = ":020000021200EA\n:0400FE0001020304F4\n:00000001FF\n";
    assert_eq!(pieces(&dump(text)), [(0x1_20fe, &[1, 2, 3, 4][..])]);
    // In a segment, addresses wrap.
    let text = ":020000021000EC\n:04FFFE0001020304F5\n:00000001FF\n";
    assert_eq!(pieces(&dump(text)), [(0x1_0000, &[3, 4][..]), (0x1_fffe, &[1, 2])]);
    let text = ":020000040800F2\r\n:0400000001020304F2\r\n:04000005000000CD2A\r\n:00000001FF\r\n";
    assert_eq!(pieces(&dump(text)), [(0x0800_0000, &[1, 2, 3, 4][..])]);
    // Two files, one after the other.
    let text = ":020000042000DA\n:01000000AA55\n:00000001FF\n:01001000AB44\n:00000001FF\n";
    assert_eq!(pieces(&dump(text)), [(0x10, &[0xab][..]), (0x2000_0000, &[0xaa])]);
}

#[test]
fn broken_intel_hex_is_reported_with_its_line() {
    let start = ":020000042000DA\n";
    let cases = [
        (":0100000001FF\n:00000001FF\n", "dump:2 dump_checksum"),
        (":01000000\n", "dump:2 dump_not_a_record"),
        (":0100000001Fé\n", "dump:2 dump_not_a_record"),
        ("0100000001FE\n", "dump:2 dump_not_a_record"),
        (":0200000001FD\n", "dump:2 dump_record_length"),
        (":00000006FA\n", "dump:2 dump_record_type"),
        (":0100000001FE\n", "dump dump_cut_off"),
        (":00000001FF\n", "dump dump_no_memory"),
        (":0100000001FE\n:0100000002FD\n:00000001FF\n", "dump:3 dump_conflict"),
        (":02000004FFFFFC\n:02FFFF000102FD\n", "dump:3 dump_past_end_of_memory"),
    ];
    for (rest, expected) in cases {
        assert_eq!(problem(format!("{start}{rest}")), expected, "{rest}");
    }
}

/// The example of the M68000 Programmer's Reference Manual, appendix C, and records with longer addresses.
#[test]
fn s_records_have_addresses_of_three_lengths() {
    let text = "S00600004844521B\n\
                S1130000285F245F2212226A000424290008237C2A\n\
                S11300100002000800082629001853812341001813\n\
                S113002041E900084E42234300182342000824A952\n\
                S107003000144ED492\n\
                S9030000FC\n";
    let dump = dump(text);
    assert_eq!((dump.pieces.len(), dump.pieces[0].address, dump.bytes()), (1, Some(Address::new(0)), 52));
    assert_eq!(dump.pieces[0].bytes[48..], [0x00, 0x14, 0x4e, 0xd4]);
    let text = "S0030000FC\nS205123456AAB4\nS30620000000AA2F\nS5030002FA\nS70500000000FA\n";
    assert_eq!(pieces(&self::dump(text)), [(0x12_3456, &[0xaa][..]), (0x2000_0000, &[0xaa])]);
    // A header that is not text, on which other readers fail.
    assert_eq!(pieces(&self::dump("S0050000FFFEFD\nS1040000AA51\nS9030000FC\n")), [(0, &[0xaa][..])]);
}

#[test]
fn broken_s_records_are_reported_with_their_line() {
    let cases = [
        ("S1040000AA52\n", "dump:2 dump_checksum"),
        ("S1040000A\n", "dump:2 dump_not_a_record"),
        ("S1\n", "dump:2 dump_not_a_record"),
        ("1040000AA51\n", "dump:2 dump_not_a_record"),
        ("Sé\n", "dump:2 dump_not_a_record"),
        ("S101FE\n", "dump:2 dump_record_length"),
        ("S100\n", "dump:2 dump_record_length"),
        ("S1050000AA51\n", "dump:2 dump_record_length"),
        ("S9040000AA51\n", "dump:2 dump_record_length"),
        ("S4030000FC\n", "dump:2 dump_record_type"),
        ("S1040000AA51\nS5030002FA\n", "dump:3 dump_record_count"),
        ("S1040000AA51\n", "dump dump_cut_off"),
        ("S9030000FC\n", "dump dump_no_memory"),
    ];
    for (rest, expected) in cases {
        assert_eq!(problem(format!("S0030000FC\n{rest}")), expected, "{rest}");
    }
}

#[test]
fn a_core_file_holds_memory_and_code() {
    let dump = dump(file("dumps/gdb.core"));
    // From readelf -l: two segments that touch at 0x7a8, two that touch at 0x20000048, the buffer, and one without bytes.
    let found = dump
        .pieces
        .iter()
        .map(|piece| (piece.address.unwrap().get(), piece.bytes.len(), piece.may_be_code()));
    assert!(found.eq([(0, 0x7cc, true), (0x2000_0000, 0x50, false), (0x2000_1000, 0x400, false)]));
}

#[test]
fn broken_core_files_are_reported_in_one_sentence() {
    let core = |change: fn(&mut Elf)| {
        let mut elf = Elf::new();
        elf.kind = 4;
        elf.section("load", ALLOC | WRITE, 0x2000_0000, b"memory");
        change(&mut elf);
        elf.build()
    };
    let cases: [(Vec<u8>, &str); 5] = [
        (core(|elf| (elf.class, elf.machine) = (2, 62)), "image_machine"),
        (
            core(|elf| {
                (elf.order, elf.machine) = (2, 40 << 8);
                elf.kind = 4 << 8;
            }),
            "image_big_endian",
        ),
        (core(|elf| elf.sections[0].claimed = Some(0xffff_0000)), "image_oversized"),
        (core(|elf| elf.sections[0].address = 0xffff_fffe), "image_past_end_of_memory"),
        (core(|elf| elf.sections[0].flags = 0), "dump_no_memory"),
    ];
    for (bytes, expected) in cases {
        assert_eq!(problem(bytes), format!("dump {expected}"));
    }
    let file = core(|_| {});
    assert_eq!(pieces(&dump(file.clone())), [(0x2000_0000, &b"memory"[..])]);
    for end in 20..file.len() {
        assert!(read(&file[..end]).is_err(), "{end} bytes");
    }
}

#[test]
fn many_segments_that_name_the_same_bytes_are_refused() {
    let mut core = Elf::new();
    core.kind = 4;
    core.section("load", ALLOC | WRITE, 0, &[0; 0x4000]);
    for index in 1..20 {
        core.section("load", ALLOC | WRITE, index * 0x1_0000, b"").claimed = Some(0x4000);
    }
    let mut file = core.build();
    for index in 1..20 {
        file.copy_within(52 + 4..52 + 8, 52 + 32 * index + 4);
    }
    let error = read(file).unwrap_err().kind;
    let CaptureErrorKind::Dump(DumpProblem::Core(ImageErrorKind::Oversized { .. })) = error else {
        panic!("{error:?}");
    };
}

#[test]
fn memory_as_it_is_has_to_fit_its_address() {
    let binary =
        |address| MemoryDump::binary("ram.bin".as_ref(), Address::from(address), &Bytes::from(vec![1, 2]));
    assert_eq!(pieces(&binary(0xffff_fffe).unwrap()), [(0xffff_fffe, &[1, 2][..])]);
    let error = binary(0xffff_ffff).unwrap_err().to_string();
    assert_eq!(error, "ram.bin: 2 bytes at 0xffffffff extend past the end of the 32-bit address space");
}

/// A dump of the example's buffer, and of four words of a device.
fn with_device(address: u32, words: [u32; 4]) -> MemoryDump {
    let [a, b, c, d] = words;
    let mut text = String::from_utf8(file("dumps/pyocd-read32.txt")).unwrap();
    text += &format!("0x{address:08x}: {a:08x} {b:08x} {c:08x} {d:08x} \n");
    dump(text)
}

#[test]
fn the_registers_are_recognised_where_nothing_else_can_be_meant() {
    let words = [0x34, 0x8000_0006, 0, 0x2000_1000];
    let expected =
        mtb::Registers { position: 0x34, master: 0x8000_0006, flow: Some(0), base: Some(0x2000_1000) };
    for address in [0xf000_0000, 0x4100_6000, 0xe004_3000] {
        assert_eq!(
            with_device(address, words).mtb_registers(),
            Some((Address::from(address), expected)),
            "{address:x}"
        );
    }
    let wrong = [
        (0x1400_0000, words),                               // memory may be there
        (0x4100_6010, words),                               // no component starts there
        (0xf000_0000, [0x35, 0x8000_0006, 0, 0x2000_1000]), // a reserved bit
        (0xf000_0000, [0x34, 0xa000_0006, 0, 0x2000_1000]),
        (0xf000_0000, [0x34, 0x8000_0006, 4, 0x2000_1000]),
        (0xf000_0000, [0x34, 0x8000_0006, 0, 0]),           // no BASE
        (0xf000_0000, [0x34, 0x8000_0006, 0, 0x2000_2000]), // the buffer is not in the dump
        (0xf000_0000, [0, 0, 0, 0x2000_1000]),              // nothing was written
    ];
    for (address, words) in wrong {
        assert_eq!(with_device(address, words).mtb_registers(), None, "{address:x} {words:x?}");
    }
    // Only a half of the buffer is in the dump.
    let half = with_device(0xf000_0000, [0x34, 0x8000_0007, 0, 0x2000_1000]).mtb_registers();
    assert_eq!(half.map(|(_, registers)| registers.master), Some(0x8000_0007));
    // The whole buffer is in the dump, and nothing was written to it.
    let nothing = with_device(0xf000_0000, [0, 0x8000_0006, 0, 0x2000_1000]).mtb_registers();
    assert_eq!(nothing.map(|(_, registers)| registers.position), Some(0));
    // Two devices match.
    let text = String::from_utf8(file("dumps/pyocd-read32.txt")).unwrap();
    let device = |address: &str| format!("{address}: 00000034 80000006 00000000 20001000 \n");
    assert_eq!(dump(text + &device("0xf0000000") + &device("0xe0043000")).mtb_registers(), None);
}

#[test]
fn a_file_of_registers_may_be_what_a_debugger_printed() {
    let directory = crate::fixtures::TemporaryDirectory::new();
    let read = |text: &str| MemoryDump::registers_of(&directory.write("registers.txt", text.as_bytes()));
    let values = |text: &str| {
        let registers = read(text).unwrap();
        ["MTB_POSITION", "MTB_MASTER", "MTB_FLOW", "MTB_BASE"].map(|name| registers.get(name))
    };
    let all = [Some(0x34), Some(0x8000_0006), Some(0), Some(0x2000_1000)];
    assert_eq!(values("0xf0000000:\t0x00000034\t0x80000006\t0x00000000\t0x20001000\n"), all);
    assert_eq!(values("(gdb) x/4wx 0xf0000000\n0xf0000000: 00000034 80000006 00000000 20001000 \n"), all);
    assert_eq!(values("f0000000 = 00000034 80000006 \n"), [all[0], all[1], None, None]);
    assert_eq!(values("MTB_POSITION=0x34\nMTB_MASTER=0x80000006\n"), [all[0], all[1], None, None]);
    // A log of GDB, whose commands came from a file, and one of its terminal.
    assert_eq!(
        values("(gdb) (gdb) MTB_POSITION=0x00000034\n(gdb) MTB_MASTER=0x80000006\n(gdb) quit\n"),
        [all[0], all[1], None, None]
    );
    let terminal = "GNU gdb (GDB) 13.1\n(gdb) printf \"MTB_POSITION=0x%08x\\n\", *(unsigned int *)($mtb + 0)\n\
                    MTB_POSITION=0x00000034\n(gdb) \n(gdb) set $mtb = 0xF0000000\n";
    assert_eq!(values(terminal), [all[0], None, None, None]);
    // A log without registers, a misspelt name in a log, and a line that is nothing in a file without prompts.
    assert!(read("(gdb) info registers mtb\nInvalid register `mtb'\n").is_err());
    assert!(read("(gdb) MTB_POSTION=0x34\n").is_err());
    assert!(read("MTB_POSITION=0x34\nInvalid register `mtb'\n").is_err());
    // Named registers take precedence.
    let text = "MTB_POSITION=0x40\n0xf0000000:\t0x00000034\t0x80000006\t0x00000000\t0x20001000\n";
    assert_eq!(values(text), [Some(0x40), all[1], all[2], all[3]]);
    // Memory that has no registers, and two matching devices.
    assert!(read("0x20000000:\t0x00000034\t0x80000006\n").is_err());
    assert!(read("0xf0000000: 00000034 80000006\n0xe0043000: 00000034 80000006\n").is_err());
}

#[test]
fn the_vector_table_is_where_its_register_says() {
    assert_eq!(dump("0xe000ed00: 410cc601 00000000 00000800 \n").vector_table(), Some(Address::new(0x800)));
    assert_eq!(dump("0xe000ed00: 410cc601 00000000 \n").vector_table(), None);
    assert_eq!(dump("0xe000ed08: 00000801 \n").vector_table(), None);
}

/// Texts that resemble dumps.
fn nearly_a_dump() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "0x20000000",
        "20000000",
        "0xffffffff",
        "fffffff8",
        ":",
        ": ",
        ":  ",
        " = ",
        ":\t",
        " <a>:",
        "0x00000001",
        "00000001",
        "01",
        "0001",
        "0000000000000001",
        " ",
        "  ",
        "\t",
        "\n",
        "\r\n",
        "|",
        "..|",
        "(gdb) ",
        "MTB_BASE",
        "=",
        "0x1",
        ":00000001FF",
        ":020000042000DA",
        ":0100000001FE",
        "S0030000FC",
        "S9030000FC",
        "S1040000AA51",
        "é",
        "\u{feff}",
        "Cannot access memory",
    ]);
    prop::collection::vec(pieces, 0..24).prop_map(|pieces| pieces.concat())
}

/// Reading must return, and yield no more memory than the file has.
fn check(bytes: &[u8]) {
    match read(bytes) {
        Ok(Some(dump)) => {
            assert!(!dump.pieces.is_empty());
            assert!(dump.bytes() <= 4 * bytes.len() as u64);
            assert!(dump.pieces.iter().all(|piece| !piece.bytes.is_empty()));
            let bounds =
                |piece: &MemoryPiece| piece.address.map(|start| (start.get(), piece.bytes.len() as u64));
            for pair in dump.pieces.windows(2) {
                let (Some((start, length)), Some((next, _))) = (bounds(&pair[0]), bounds(&pair[1])) else {
                    panic!("several pieces without addresses");
                };
                assert!(start + length < next);
            }
            let _ = (dump.mtb_registers(), dump.vector_table());
        }
        Ok(None) => {}
        Err(error) => assert!(!error.to_string().contains('\n')),
    }
}

proptest! {
    #[test]
    fn any_text_does_no_harm(text in any::<String>()) {
        check(text.as_bytes());
    }

    #[test]
    fn any_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        check(&bytes);
    }

    #[test]
    fn texts_that_are_nearly_dumps_do_no_harm(text in nearly_a_dump()) {
        check(text.as_bytes());
    }

    #[test]
    fn damaged_dumps_do_no_harm(
        name in prop::sample::select(vec!["gdb-x.txt", "gdb.hex", "gdb.srec", "gdb.core", "pyocd-read32.txt"]),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = file(&format!("dumps/{name}"));
        for (place, value) in damage {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        check(&bytes);
    }
}

#[test]
fn lines_that_stand_for_too_many_bytes_are_refused_with_their_line() {
    let row = |address: &str| {
        format!("{address}  6e ad e2 ca 00 01 00 20  f0 1e 05 00 00 11 00 08  |n...... ........|\n")
    };
    let text = format!("{}*\n{}", row("20000000"), row("28000000"));
    let refused = MemoryDump::read("dump".as_ref(), &text.into_bytes().into());
    let Err(CaptureError { kind: CaptureErrorKind::Dump(problem), line, .. }) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!((problem, line), (DumpProblem::Repeats { bytes: 0x7ff_fff0, most: 16 << 20 }, Some(3)));
}

#[test]
fn text_that_is_too_long_is_refused_as_what_it_is_and_no_other_file_is() {
    let repeated = |line: &str| line.repeat(LONGEST_TEXT / line.len() + 1).into_bytes();
    let listing = "0x20000000 <buffer>:\t0x0000010c\t0x00000116\n";
    let record = ":10010000214601360121470136007EFE09D2190140\n";
    for line in [listing, record] {
        let refused = MemoryDump::read("dump".as_ref(), &repeated(line).into());
        let Err(CaptureError { kind: CaptureErrorKind::Dump(DumpProblem::TooLong { bytes, most }), .. }) =
            refused
        else {
            panic!("{line}: {refused:?}")
        };
        assert!(bytes > most);
    }
    // Text without memory, and trace whose beginning has no control characters.
    for bytes in [repeated("nothing of the kind\n"), vec![0x84; LONGEST_TEXT + 1]] {
        assert!(matches!(MemoryDump::read("trace.bin".as_ref(), &bytes.into()), Ok(None)));
    }
}
