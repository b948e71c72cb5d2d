//! Memory in the formats of debuggers, through the command: every format of one buffer gives the same execution.

use std::path::{Path, PathBuf};

use self::print::{Columns, GDB, J_LINK, OPENOCD, PROBE_RS};
use crate::support::{Outcome, example, mentions, run, run_with_kinds, run_with_notices, tracewalk};

mod broken;
mod print;

/// The address of the example's buffer.
const BUFFER: u32 = 0x2000_1000;

fn trace() -> Vec<u8> {
    std::fs::read(example("m0-crash-mtb/trace.bin")).unwrap()
}

fn runs() -> String {
    std::fs::read_to_string(example("m0-crash-mtb/runs.txt")).unwrap()
}

/// A tool's dump, from `testdata/dumps`.
fn written(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/dumps").join(name)
}

/// `flow --format runs` of a dump with the example's program.
fn flow(dump: &Path, options: &[&str]) -> Outcome {
    let image = example("m0-crash-mtb/m0-crash.elf");
    let arguments = [
        "flow",
        dump.to_str().unwrap(),
        "--image",
        image.to_str().unwrap(),
        "--format",
        "runs",
        "--color",
        "never",
    ];
    run_with_kinds(arguments.iter().chain(options))
}

fn with_registers(dump: &Path, options: &[&str]) -> Outcome {
    let registers = example("m0-crash-mtb/registers.txt");
    flow(dump, &[&["--registers", registers.to_str().unwrap()], options].concat())
}

#[track_caller]
fn assert_is_the_example(outcome: &Outcome) {
    assert_eq!((outcome.status, outcome.stdout.as_str()), (0, runs().as_str()), "{}", outcome.stderr);
}

/// Files for one test.
struct Directory(tempfile::TempDir);

impl Directory {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, contents).unwrap();
        path
    }
}

#[test]
fn what_tools_wrote_of_the_example_runs_as_it_does() {
    let files = [
        "gdb-x.txt",
        "gdb-xdw.txt",
        "gdb-xuh.txt",
        "gdb-xdb.txt",
        "gdb-xdg.txt",
        "gdb-xtw.txt",
        "gdb-xth.txt",
        "gdb.hex",
        "gdb.srec",
        "gdb.core",
        "pyocd-read8.txt",
        "pyocd-read16.txt",
        "pyocd-read32.txt",
        "pyocd-read64.txt",
    ];
    for name in files {
        let dump = written(name);
        assert_is_the_example(&with_registers(&dump, &[]));
        // The registers only state what can be inferred from this buffer.
        assert_is_the_example(&flow(&dump, &[]));
    }
}

/// POSITION alone shows which packet is the newest; MASTER alone shows the size of the buffer.
#[test]
fn one_register_alone_narrows_the_search_in_every_form() {
    for name in
        ["gdb.hex", "gdb.core", "gdb-xdw.txt", "pyocd-read32.txt", "xxd.txt", "hexdump-c.txt", "od-x1.txt"]
    {
        let dump = written(name);
        assert_is_the_example(&flow(&dump, &["--source", "mtb,position=0x34"]));
        assert_is_the_example(&flow(&dump, &["--source", "mtb,master=0x80000006"]));
        // A buffer of half the size has at most half of the packets.
        let half = flow(&dump, &["--source", "mtb,master=0x80000005"]);
        assert!(half.stdout.lines().count() < runs().lines().count() * 3 / 4, "{name}: {}", half.stderr);
        // No packet ends at the end of a buffer of 1 MiB.
        let nowhere = flow(&dump, &["--source", "mtb,position=0xffff8"]);
        assert_eq!((nowhere.status, nowhere.stdout.as_str()), (2, ""), "{name}: {}", nowhere.stderr);
    }
}

#[test]
fn what_people_list_of_a_file_runs_as_it_does() {
    for name in LISTINGS {
        let dump = written(name);
        assert_is_the_example(&with_registers(&dump, &[]));
        assert_is_the_example(&flow(&dump, &[]));
        if name != "xxd-g4-o.txt" {
            // Addresses count from the start of the file.
            assert_is_the_example(&with_registers(&dump, &["--container", "address=0x20001000"]));
        }
    }
}

/// The buffer as printed by xxd 2022-01-14, hexdump of util-linux 2.38 and od of coreutils 9.1.
const LISTINGS: [&str; 10] = [
    "xxd.txt",
    "xxd-e.txt",
    "xxd-g1-c12.txt",
    "xxd-g4-o.txt",
    "xxd-p.txt",
    "hexdump-c.txt",
    "hexdump.txt",
    "od-x1.txt",
    "od-x4z.txt",
    "od-d-x8.txt",
];

#[test]
fn what_other_tools_would_write_runs_as_it_does() {
    let directory = Directory::new();
    let bytes = Columns { number: 1, line: 16, ..J_LINK };
    let bytes_of_probe_rs = Columns { number: 1, line: 8, ..PROBE_RS };
    let forms = [
        ("GDB", GDB.print(BUFFER, &trace())),
        ("OpenOCD", OPENOCD.print(BUFFER, &trace())),
        ("J-Link Commander", J_LINK.print(BUFFER, &trace())),
        ("J-Link Commander", bytes.print(BUFFER, &trace())),
        ("probe-rs", PROBE_RS.print(BUFFER, &trace())),
        ("probe-rs", bytes_of_probe_rs.print(BUFFER, &trace())),
    ];
    for (tool, text) in forms {
        let dump = directory.write("dump.txt", text);
        let outcome = with_registers(&dump, &[]);
        assert_is_the_example(&outcome);
        assert!(mentions(&outcome.stderr, &format!("{tool} 1024 0x20001000")), "{}", outcome.stderr);
        assert_is_the_example(&flow(&dump, &[]));
    }
}

#[test]
fn numbers_without_addresses_are_taken_as_the_buffer() {
    let directory = Directory::new();
    let line = Columns { start: |_| String::new(), line: 4096, ..PROBE_RS };
    let dump = directory.write("dump.txt", line.print(0, &trace()));
    let outcome = with_registers(&dump, &[]);
    assert_is_the_example(&outcome);
    assert!(outcome.stderr.contains("little-endian numbers without addresses"), "{}", outcome.stderr);
    assert_is_the_example(&with_registers(&dump, &["--container", "address=0x20001000"]));
}

/// The buffer in 16 KiB of memory with other content.
fn ram() -> Vec<u8> {
    let mut ram =
        (0..0x4000_u32).flat_map(|index| index.wrapping_mul(2_654_435_761).to_le_bytes()).collect::<Vec<_>>();
    ram.truncate(0x4000);
    ram[0x1000..0x1400].copy_from_slice(&trace());
    ram
}

#[test]
fn all_of_the_memory_in_one_file_needs_its_address() {
    let directory = Directory::new();
    let dump = directory.write("ram.bin", ram());
    assert_is_the_example(&with_registers(&dump, &["--container", "address=0x20000000"]));
    // If the MTB's memory starts with the file, BASE is enough.
    let options = [
        "--source",
        "mtb,position=0x1034",
        "--source",
        "mtb,master=0x80000006",
        "--source",
        "mtb,base=0x20000000",
    ];
    assert_is_the_example(&flow(&dump, &options));
    assert_is_the_example(&flow(&directory.write("ram.txt", OPENOCD.print(0x2000_0000, &ram())), &options));
}

#[test]
fn the_registers_may_stand_in_the_same_text() {
    let directory = Directory::new();
    let memory = GDB.print(BUFFER, &trace());
    let named = directory.write("named.txt", format!("{memory}MTB_POSITION=0x34\nMTB_MASTER = 0x80000006\n"));
    let image = example("m0-crash-mtb/m0-crash.elf");
    let (outcome, notices) = run_with_notices(
        [&["flow", named.to_str().unwrap(), "--format", "runs", "--image"][..], &[image.to_str().unwrap()]]
            .concat(),
    );
    assert_is_the_example(&outcome);
    assert!(!notices.has("mtb_order_inferred"), "{notices:?}: {}", outcome.stderr);

    let words = [0x34_u32, 0x8000_0006, 0, 0x2000_1000].map(u32::to_le_bytes).concat();
    let printed = directory.write("printed.txt", memory + &OPENOCD.print(0xf000_0000, &words));
    let outcome = flow(&printed, &[]);
    assert_is_the_example(&outcome);
    let note = "0xf0000000 --source mtb,position=0x34,master=0x80000006,base=0x20001000";
    assert!(mentions(&outcome.stderr, note), "{}", outcome.stderr);
}

/// POSITION has only the low bits of an address, so that it could also point into the code.
#[test]
fn without_base_the_buffer_is_where_the_bytes_are_trace() {
    let options = ["--source", "mtb,position=0x34", "--source", "mtb,master=0x80000006"];
    assert_is_the_example(&flow(&written("gdb.core"), &options));
    let directory = Directory::new();
    let code = std::fs::read(written("gdb.core")).unwrap();
    let text = OPENOCD.print(0, &code[0x114..0x8b4])
        + &OPENOCD.print(BUFFER, &trace())
        + &OPENOCD.print(0x2000_8000, &ram());
    assert_is_the_example(&flow(
        &directory.write("dump.txt", text),
        &[&options[..], &["--source", "mtb,base=0x20001000"]].concat(),
    ));
}

#[test]
fn what_options_say_of_the_registers_comes_first() {
    let directory = Directory::new();
    let text = GDB.print(BUFFER, &trace()) + "MTB_POSITION=0\nMTB_MASTER=0x80000006\n";
    let dump = directory.write("dump.txt", text);
    assert_is_the_example(&flow(&dump, &["--source", "mtb,position=0x34"]));
    assert_ne!(flow(&dump, &[]).stdout, runs());
}

#[test]
fn a_core_file_brings_its_own_program() {
    let core = written("gdb.core");
    let arguments = ["flow", core.to_str().unwrap(), "--format", "runs"];
    let (outcome, notices) = run_with_notices(arguments);
    assert_is_the_example(&outcome);
    assert!(notices.has("memory_as_code"), "{notices:?}: {}", outcome.stderr);
}

#[test]
fn a_program_that_was_not_in_the_chip_is_detected_by_the_dump() {
    let directory = Directory::new();
    // The chip's SysTick handler differs from the image's.
    let text = GDB.print(BUFFER, &trace()) + "0x154 <SysTick_Handler>:\t0xbf\t0xb5\n";
    let outcome = with_registers(&directory.write("dump.txt", text), &[]);
    assert_is_the_example(&outcome);
    assert!(mentions(&outcome.stderr, "0x00000154 m0-crash.elf --image"), "{}", outcome.stderr);
}

#[test]
fn the_vector_table_numbers_the_exceptions() {
    let directory = Directory::new();
    let core = written("gdb.core");
    let exceptions = |outcome: &Outcome| {
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        let lines = outcome.stdout.lines().filter(|line| line.starts_with('X')).map(str::to_owned);
        lines.collect::<Vec<_>>()
    };
    // There is nothing at the address that could be a table.
    let outcome = with_registers(&core, &["--vtor", "0x100"]);
    assert_eq!(exceptions(&outcome), [""; 0]);
    let text = GDB.print(BUFFER, &trace()) + "0xe000ed08:\t0x00000100\n";
    let outcome = with_registers(&directory.write("dump.txt", text), &[]);
    assert_eq!(exceptions(&outcome), [""; 0]);
    assert!(mentions(&outcome.stderr, "--vtor 0x00000100"), "{}", outcome.stderr);
    assert_eq!(exceptions(&with_registers(&core, &["--vtor", "0"])), ["X 15 268", "X 3 206f6f74"]);
}

/// The command fails with one sentence and status 2.
#[track_caller]
fn assert_refused(outcome: &Outcome, message: &str) {
    assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""), "{}", outcome.stderr);
    let errors = outcome.stderr.lines().filter(|line| !line.starts_with("note: ")).collect::<Vec<_>>();
    assert_eq!(errors.len(), 1, "{}", outcome.stderr);
    assert!(
        errors[0].starts_with("error: ") && mentions(errors[0], message),
        "expected {message:?}: {}",
        errors[0]
    );
}

#[test]
fn a_broken_dump_of_any_form_is_refused_in_one_sentence() {
    let directory = Directory::new();
    let damaged = |text: &str, from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1).into_bytes()
    };
    let read = |name: &str| std::fs::read(written(name)).unwrap();
    let text = |name: &str| String::from_utf8(read(name)).unwrap();
    let cases = [
        (damaged(&text("gdb.hex"), "AC01", "AD01"), "dump:3"),
        (damaged(&text("gdb.srec"), "AC01", "AD01"), "dump:3"),
        (read("gdb.core")[..3000].to_vec(), "image_truncated"),
        (
            (OPENOCD.print(BUFFER, &trace()) + "0x20001004: 00000000 \n").into_bytes(),
            "dump:33 0x00 0x20001004 1 0x42",
        ),
    ];
    for (bytes, message) in cases {
        let dump = directory.write("dump", bytes);
        for command in ["info", "packets", "flow"] {
            assert_refused(&run_with_kinds([command, dump.to_str().unwrap()]), message);
        }
    }
    // tracewalk uses the remaining lines.
    let cases = [
        damaged(&text("gdb-x.txt"), "0x000001ac", "0x00001ac"),
        damaged(&OPENOCD.print(BUFFER, &trace()), "000001ac", "0000 1ac"),
        damaged(&J_LINK.print(BUFFER, &trace()), "00000254", "000O0254"),
        damaged(&text("pyocd-read32.txt"), "00000254", "0000025"),
        damaged(&PROBE_RS.print(BUFFER, &trace()), "000001ac", "000001ac  ...."),
        read("gdb.hex")[..2000].to_vec(),
        read("gdb.srec")[..2000].to_vec(),
    ];
    for bytes in cases {
        let dump = directory.write("dump", bytes);
        let image = example("m0-crash-mtb/m0-crash.elf");
        let (outcome, notices) =
            run_with_notices(["flow", dump.to_str().unwrap(), "--image", image.to_str().unwrap()]);
        assert_eq!(outcome.status, 2, "{}", outcome.stderr);
        for notice in ["memory_damaged", "mtb_incomplete"] {
            assert!(notices.has(notice), "{notice}: {}", outcome.stderr);
        }
    }
}

#[test]
fn a_dump_without_the_buffer_is_refused_in_one_sentence() {
    let directory = Directory::new();
    let elsewhere = directory.write("dump.txt", "0x20002000: 00000001 \n0x20003000: 00000002 \n");
    assert_refused(
        &with_registers(&elsewhere, &[]),
        "error: no_buffer MTB_POSITION 0x34 MTB_BASE 0x20001000",
    );
    assert_refused(&run_with_kinds(["flow", elsewhere.to_str().unwrap()]), "error: no_piece 2");
    assert_refused(
        &run_with_kinds(["flow", elsewhere.to_str().unwrap(), "--container", "frames"]),
        "error: several_pieces 2 --container frames",
    );
    assert_refused(
        &run_with_kinds(["flow", elsewhere.to_str().unwrap(), "--container", "address=0"]),
        "error: address_twice OpenOCD address=",
    );
}

#[test]
fn a_dump_may_come_on_standard_input() {
    let mut command = tracewalk();
    let image = example("m0-crash-mtb/m0-crash.elf");
    let output = command
        .args(["flow", "-", "--image", image.to_str().unwrap(), "--format", "runs"])
        .write_stdin(GDB.print(BUFFER, &trace()))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), runs());
}

/// Another kind of trace, printed: a dump need not be an MTB's.
#[test]
fn frames_may_be_printed_as_well() {
    let directory = Directory::new();
    let trace = std::fs::read(example("m3-etmv3/trace.bin")).unwrap();
    let dump = directory.write("etr.txt", OPENOCD.print(0x2000_0000, &trace));
    let image = example("m3-etmv3/m3.elf");
    let outcome =
        run(["flow", dump.to_str().unwrap(), "--image", image.to_str().unwrap(), "--format", "runs"]);
    let expected = std::fs::read_to_string(example("m3-etmv3/runs.txt")).unwrap();
    assert_eq!((outcome.status, outcome.stdout), (0, expected), "{}", outcome.stderr);
}
