//! Memory in the formats of debuggers: every format of one buffer gives the same execution, and one with missing
//! parts the right ending, or a notice that names them. That each form is read byte by byte is tested in
//! `tracewalk-input`.

use std::fs;
use std::path::{Path, PathBuf};

use tracewalk::ids::Address;
use tracewalk_input::capture::dump::Form;
use tracewalk_input::capture::{CaptureErrorKind, Container};
use tracewalk_session::{MtbStatements, NoticeKind, OpenError, Request, Statements};

#[path = "../../tracewalk-input/src/capture/dump/tests/print.rs"]
mod print;

use self::print::{Columns, GDB, J_LINK, OPENOCD, PRINTS, PROBE_RS, WRITTEN};
use crate::support::{Flow, bare, example};

/// The address of the example's buffer.
const BUFFER: u32 = 0x2000_1000;
const END: u32 = BUFFER + 0x400;

/// The registers of its MTB, and their usual address in memory.
const REGISTERS: [u32; 4] = [0x34, 0x8000_0006, 0, BUFFER];
const DEVICE: u32 = 0xf000_0000;

fn trace() -> Vec<u8> {
    fs::read(example("m0-crash-mtb/trace.bin")).unwrap()
}

fn runs() -> String {
    fs::read_to_string(example("m0-crash-mtb/runs.txt")).unwrap()
}

/// A tool's dump, from `testdata/dumps`.
fn written(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/dumps").join(name)
}

fn text(name: &str) -> String {
    fs::read_to_string(written(name)).unwrap()
}

/// A dump with the example's program.
fn of_file(dump: &Path, stated: Statements) -> Request {
    Request { stated, ..bare(dump, &example("m0-crash-mtb/m0-crash.elf")) }
}

/// Files for a test.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn dump(&self, contents: impl AsRef<[u8]>, stated: Statements) -> Request {
        let path = self.0.path().join("dump.txt");
        fs::write(&path, contents).unwrap();
        of_file(&path, stated)
    }
}

/// The flow of a dump with these contents.
fn flow(contents: impl AsRef<[u8]>, stated: Statements) -> Flow {
    Flow::of(Folder::new().dump(contents, stated))
}

fn mtb(position: Option<u32>, master: Option<u32>, base: Option<u32>) -> Statements {
    Statements {
        mtb: MtbStatements { position, master, base, ..MtbStatements::default() },
        ..Statements::default()
    }
}

fn nothing() -> Statements {
    Statements::default()
}

/// The example's registers, as a file.
fn registers() -> Statements {
    let registers = Some(example("m0-crash-mtb/registers.txt"));
    Statements { mtb: MtbStatements { registers, ..MtbStatements::default() }, ..Statements::default() }
}

/// The example's registers, each stated.
fn stated() -> Statements {
    mtb(Some(0x34), Some(0x8000_0006), Some(BUFFER))
}

fn at(address: u32, stated: Statements) -> Statements {
    Statements { dump_address: Some(Address::from(address)), ..stated }
}

#[track_caller]
fn assert_is_the_example(flow: &Flow) {
    assert!(flow.is_whole() && flow.runs == runs(), "{}", flow.said());
}

/// The names and texts of all forms, with those that have no addresses.
fn forms() -> Vec<(String, Vec<u8>)> {
    let printed =
        PRINTS.iter().map(|(name, columns)| ((*name).to_owned(), columns.print(BUFFER, &trace()).into()));
    let written = WRITTEN.iter().chain(&["gdb-x.txt", "gdb.core", "xxd-p.txt"]);
    printed.chain(written.map(|name| ((*name).to_owned(), fs::read(self::written(name)).unwrap()))).collect()
}

#[test]
fn every_form_of_the_example_runs_as_it_does() {
    for (name, text) in forms() {
        // The registers only state what can be inferred from this buffer.
        for stated in [registers(), nothing()] {
            let flow = flow(&text, stated);
            assert!(flow.is_whole() && flow.runs == runs(), "{name}: {}", flow.said());
        }
        let is_listing = ["xxd", "hexdump", "od-"].iter().any(|start| name.starts_with(start));
        if is_listing && name != "xxd-g4-o.txt" {
            // Addresses count from the start of the file.
            assert_is_the_example(&flow(&text, at(BUFFER, registers())));
        }
    }
}

/// POSITION alone shows which packet is the newest; MASTER alone shows the size of the buffer.
#[test]
fn one_register_alone_narrows_the_search_in_every_form() {
    for name in
        ["gdb.hex", "gdb.core", "gdb-xdw.txt", "pyocd-read32.txt", "xxd.txt", "hexdump-c.txt", "od-x1.txt"]
    {
        let flow = |stated| Flow::of(of_file(&written(name), stated));
        assert_is_the_example(&flow(mtb(Some(0x34), None, None)));
        assert_is_the_example(&flow(mtb(None, Some(0x8000_0006), None)));
        // A buffer of half the size has at most half of the packets.
        let half = flow(mtb(None, Some(0x8000_0005), None));
        assert!(half.runs.lines().count() < runs().lines().count() * 3 / 4, "{name}: {}", half.said());
        // No packet ends at the end of a buffer of 1 MiB.
        assert!(flow(mtb(Some(0xf_fff8), None, None)).error.is_some(), "{name}");
    }
}

#[test]
fn numbers_without_addresses_are_taken_as_the_buffer() {
    let line = Columns { start: |_| String::new(), line: 4096, ..PROBE_RS }.print(0, &trace());
    let flow_of_line = flow(&line, registers());
    assert_is_the_example(&flow_of_line);
    let is_numbers = |kind: &NoticeKind| matches!(kind, NoticeKind::MemoryRead { memory, .. } if memory.form == Form::Numbers);
    assert!(flow_of_line.find(is_numbers).is_some(), "{}", flow_of_line.said());
    assert_is_the_example(&flow(&line, at(BUFFER, registers())));
}

/// Memory with other content than trace.
fn other(bytes: usize) -> Vec<u8> {
    (0..).flat_map(|index: u32| index.wrapping_mul(2_654_435_761).to_le_bytes()).take(bytes).collect()
}

/// The buffer in 16 KiB of memory with other content.
fn ram(place: usize) -> Vec<u8> {
    let mut ram = other(0x4000);
    ram[place..place + 0x400].copy_from_slice(&trace());
    ram
}

#[test]
fn all_of_the_memory_in_one_file_needs_its_address() {
    assert_is_the_example(&flow(ram(0x1000), at(0x2000_0000, registers())));
    // If the MTB's memory starts with the file, BASE is enough.
    let based = || mtb(Some(0x1034), Some(0x8000_0006), Some(0x2000_0000));
    assert_is_the_example(&flow(ram(0x1000), based()));
    assert_is_the_example(&flow(OPENOCD.print(0x2000_0000, &ram(0x1000)), based()));
}

#[test]
fn the_registers_may_stand_in_the_same_text() {
    let memory = GDB.print(BUFFER, &trace());
    let named = flow(format!("{memory}MTB_POSITION=0x34\nMTB_MASTER = 0x80000006\n"), nothing());
    assert_is_the_example(&named);
    assert!(!named.has("mtb_order_inferred"), "{}", named.said());
    let words = REGISTERS.map(u32::to_le_bytes).concat();
    let printed = flow(memory + &OPENOCD.print(DEVICE, &words), nothing());
    assert_is_the_example(&printed);
    let is_found = |kind: &NoticeKind| {
        matches!(kind, NoticeKind::MtbRegistersFound { address, registers }
            if *address == Address::from(DEVICE) && registers.position == 0x34 && registers.base == Some(BUFFER))
    };
    assert!(printed.find(is_found).is_some(), "{}", printed.said());
}

/// POSITION has only the low bits of an address, so that it could also point into the code.
#[test]
fn without_base_the_buffer_is_where_the_bytes_are_trace() {
    assert_is_the_example(&Flow::of(of_file(&written("gdb.core"), mtb(Some(0x34), Some(0x8000_0006), None))));
    let code = fs::read(written("gdb.core")).unwrap();
    let text = OPENOCD.print(0, &code[0x114..0x8b4])
        + &OPENOCD.print(BUFFER, &trace())
        + &OPENOCD.print(0x2000_8000, &ram(0x1000));
    assert_is_the_example(&flow(text, stated()));
}

#[test]
fn what_the_caller_states_of_the_registers_comes_first() {
    let text = GDB.print(BUFFER, &trace()) + "MTB_POSITION=0\nMTB_MASTER=0x80000006\n";
    assert_is_the_example(&flow(&text, mtb(Some(0x34), None, None)));
    assert_ne!(flow(&text, nothing()).runs, runs());
}

#[test]
fn a_core_file_brings_its_own_program() {
    let flow = Flow::of(Request::new(written("gdb.core")));
    assert_is_the_example(&flow);
    assert!(flow.has("memory_as_code"), "{}", flow.said());
}

#[test]
fn a_program_that_was_not_in_the_chip_is_detected_by_the_dump() {
    // The chip's SysTick handler differs from the image's.
    let text = GDB.print(BUFFER, &trace()) + "0x154 <SysTick_Handler>:\t0xbf\t0xb5\n";
    let flow = flow(text, registers());
    assert_is_the_example(&flow);
    assert!(flow.has("memory_contradicts_image"), "{}", flow.said());
}

#[test]
fn the_vector_table_numbers_the_exceptions() {
    let exceptions = |flow: &Flow| {
        assert!(flow.is_whole(), "{}", flow.said());
        flow.runs.lines().filter(|line| line.starts_with('X')).map(str::to_owned).collect::<Vec<_>>()
    };
    let table = |address: u32| Statements { vector_table: Some(Address::from(address)), ..registers() };
    // There is nothing at the address that could be a table.
    assert_eq!(exceptions(&Flow::of(of_file(&written("gdb.core"), table(0x100)))), [""; 0]);
    let text = GDB.print(BUFFER, &trace()) + "0xe000ed08:\t0x00000100\n";
    assert_eq!(exceptions(&flow(text, registers())), [""; 0]);
    let right = Flow::of(of_file(&written("gdb.core"), table(0)));
    assert_eq!(exceptions(&right), ["X 15 268", "X 3 206f6f74"]);
}

#[test]
fn a_broken_dump_is_refused_or_the_remaining_lines_are_used() {
    let damaged = |text: &str, from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1).into_bytes()
    };
    let core = fs::read(written("gdb.core")).unwrap();
    let twice = OPENOCD.print(BUFFER, &trace()) + "0x20001004: 00000000 \n";
    let refused = [
        (damaged(&text("gdb.hex"), "AC01", "AD01"), Some(3)),
        (damaged(&text("gdb.srec"), "AC01", "AD01"), Some(3)),
        (core[..3000].to_vec(), None),
        (twice.into_bytes(), Some(33)),
    ];
    for (bytes, line) in refused {
        let flow = flow(bytes, nothing());
        let Some(OpenError::Capture(error)) = &flow.error else { panic!("{}", flow.said()) };
        assert!(error.line == line && matches!(error.kind, CaptureErrorKind::Dump(_)), "{error:?}");
    }
    let used = [
        damaged(&text("gdb-x.txt"), "0x000001ac", "0x00001ac"),
        damaged(&OPENOCD.print(BUFFER, &trace()), "000001ac", "0000 1ac"),
        damaged(&J_LINK.print(BUFFER, &trace()), "00000254", "000O0254"),
        damaged(&text("pyocd-read32.txt"), "00000254", "0000025"),
        damaged(&PROBE_RS.print(BUFFER, &trace()), "000001ac", "000001ac  ...."),
        text("gdb.hex").as_bytes()[..2000].to_vec(),
        text("gdb.srec").as_bytes()[..2000].to_vec(),
    ];
    for bytes in used {
        let flow = flow(bytes, nothing());
        assert!(flow.has("memory_damaged") && flow.has("mtb_incomplete"), "{}", flow.said());
    }
}

#[test]
fn a_dump_without_the_buffer_is_refused() {
    let folder = Folder::new();
    let elsewhere =
        |stated| Flow::of(folder.dump("0x20002000: 00000001 \n0x20003000: 00000002 \n", stated)).error;
    let error = elsewhere(registers());
    assert!(matches!(error, Some(OpenError::NoBuffer { .. })), "{error:?}");
    let error = elsewhere(nothing());
    assert!(matches!(error, Some(OpenError::NoPiece { pieces: 2, .. })), "{error:?}");
    let error = elsewhere(Statements { container: Some(Container::Frames), ..nothing() });
    assert!(matches!(error, Some(OpenError::SeveralPieces { pieces: 2, .. })), "{error:?}");
    let error = elsewhere(at(0, nothing()));
    assert!(matches!(error, Some(OpenError::AddressTwice { .. })), "{error:?}");
}

/// Another kind of trace, printed: a dump need not be an MTB's.
#[test]
fn frames_may_be_printed_as_well() {
    let folder = Folder::new();
    let dump =
        folder.dump(OPENOCD.print(0x2000_0000, &fs::read(example("m3-etmv3/trace.bin")).unwrap()), nothing());
    let flow = Flow::of(bare(&dump.capture, &example("m3-etmv3/m3.elf")));
    let expected = fs::read_to_string(example("m3-etmv3/runs.txt")).unwrap();
    assert!(flow.is_whole() && flow.runs == expected, "{:?}", flow.notices);
}

/// The last three instructions, and the exception after them.
fn ending(request: Request) -> (Flow, bool) {
    let flow = Flow::last(request, Some(3));
    let is_right = flow.runs.ends_with("R 156 15c t32\nX 3 206f6f74\n");
    (flow, is_right)
}

/// The address of the newest packets, which hold the last three instructions.
const NEWEST: std::ops::Range<u64> = BUFFER as u64 + 0x18..BUFFER as u64 + 0x30;

/// The lines of a form to leave out or to cut: the first ones hold the newest packets.
fn lines_with_newest(lines: usize) -> impl Iterator<Item = usize> {
    (0..lines.min(8)).chain([lines / 2, lines - 2, lines - 1])
}

/// That each cut and each missing line is noticed by the reader is tested beside it.
#[test]
fn what_is_missing_is_named_and_never_gives_a_wrong_ending_in_any_form() {
    for (name, text) in forms().into_iter().filter(|(name, _)| *name != "gdb.core" && *name != "xxd-p.txt") {
        let (folder, text) = (Folder::new(), String::from_utf8(text).unwrap());
        let lines = text.lines().collect::<Vec<_>>();
        let join = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let middle = lines.len() / 2;
        let mut broken = vec![(join(&lines[..middle]), true), (join(&lines[middle..]), true)];
        for place in lines_with_newest(lines.len()) {
            let left_out = [&lines[..place], &lines[place + 1..]].concat();
            // A decimal number without its last digits is still a number.
            let length = lines[place].rfind('\t').filter(|_| name.starts_with("gdb-x"));
            let cut = &lines[place][..length.unwrap_or(lines[place].len()) / 2];
            let cut = [&lines[..place], &[cut], &lines[place + 1..]].concat();
            let mut swapped = lines.clone();
            swapped.swap(place, (place + 1).min(lines.len() - 1));
            broken.extend([left_out, cut, swapped].map(|lines| (join(&lines), false)));
        }
        for (text, lacks_much) in broken {
            for stated in [nothing(), registers()] {
                let (flow, is_right) = ending(folder.dump(&text, stated));
                assert!(!flow.is_whole() || is_right && !lacks_much, "{name}: {}", flow.said());
                // The program is not blamed.
                assert!(!flow.has("code_missing") && !flow.has("contradictions"), "{name}: {}", flow.said());
                let missing = flow.notices.iter().find_map(|notice| match &notice.kind {
                    NoticeKind::MtbIncomplete { missing, are_addresses: true, .. } => Some(missing),
                    _ => None,
                });
                if let Some(missing) = missing {
                    let is_inside = |bytes: &std::ops::Range<u64>| {
                        u64::from(BUFFER) <= bytes.start && bytes.end <= END.into()
                    };
                    assert!(missing.iter().all(is_inside), "{name}: {}", flow.said());
                    let has_newest =
                        missing.iter().all(|bytes| bytes.end <= NEWEST.start || NEWEST.end <= bytes.start);
                    assert_eq!(is_right, has_newest, "{name}: {}", flow.said());
                }
            }
        }
    }
}

#[test]
fn a_part_of_the_buffer_never_passes_for_all_of_it() {
    for part in [0..512, 512..1024, 256..768, 0..768, 8..1024, 0..1016_usize] {
        let address = BUFFER + u32::try_from(part.start).unwrap();
        for stated in [nothing(), registers()] {
            let (flow, is_right) =
                ending(Folder::new().dump(OPENOCD.print(address, &trace()[part.clone()]), stated));
            assert!(!flow.is_whole() && (is_right || part.start > 0), "{part:?}: {}", flow.said());
        }
    }
}

#[test]
fn packets_from_before_a_reset_are_reported() {
    let flow = flow(trace(), mtb(Some(0), Some(0x8000_0006), Some(BUFFER)));
    let is_older =
        |kind: &NoticeKind| matches!(kind, NoticeKind::MtbOlderPackets(evidence) if evidence.packets == 128);
    assert!(!flow.is_whole() && flow.find(is_older).is_some(), "{}", flow.said());
}

#[test]
fn packets_after_the_pointer_that_continue_the_newest_one_are_reported() {
    // The buffer has wrapped, and its oldest packet is at 0x30.
    for (position, goes_on) in [(0x20, true), (0x30, false), (0x34, false)] {
        let flow = flow(trace(), mtb(Some(position), Some(0x8000_0006), Some(BUFFER)));
        assert!(flow.is_whole() && flow.has("mtb_goes_on") == goes_on, "{position:#x}: {}", flow.said());
    }
}

#[test]
fn a_buffer_of_zeros_was_never_written_to() {
    for stated in [stated(), Statements { container: Some(Container::Mtb), ..nothing() }] {
        let flow = flow([0; 1024], stated);
        assert!(matches!(flow.error, Some(OpenError::MtbNeverOn)), "{}", flow.said());
    }
    let at_start = flow([0; 1024], mtb(Some(0), Some(0x8000_0006), Some(BUFFER)));
    assert!(at_start.is_whole() && at_start.has("mtb_wrote_nothing"), "{}", at_start.said());
    assert!(!flow(trace(), stated()).has("mtb_wrote_nothing"));
}

#[test]
fn all_of_the_memory_is_read_where_its_packets_go_on() {
    for place in [0x1000, 0x800, 0x2c00] {
        let (flow, is_right) = ending(Folder::new().dump(ram(place), stated()));
        assert!(flow.is_whole() && is_right && flow.has("dump_placed"), "{place:#x}: {}", flow.said());
    }
    // If a part of the buffer contradicts it, tracewalk does not move the dump.
    let mut ram = vec![0; 0x4000];
    ram[0x800..0xc00].copy_from_slice(&trace());
    ram[0x900..0xa00].fill(0xee);
    let flow = flow(&ram, stated());
    assert!(!flow.is_whole() && !flow.has("dump_placed"), "{}", flow.said());
}
