//! Dumps with missing parts: the right ending, or status 2 with the missing bytes named. Never a wrong ending
//! with status 0.

use std::ops::Range;
use std::path::Path;

use super::print::{Columns, GDB, J_LINK, J_LINK_BYTES, OPENOCD, PROBE_RS, PYOCD};
use super::{BUFFER, Directory, LISTINGS, trace, written};
use crate::support::{Kinds, Outcome, example, mentions, run, run_with_kinds, run_with_notices};

/// The addresses of the newest packets, which hold the last three instructions.
const NEWEST: Range<u32> = BUFFER + 0x18..BUFFER + 0x30;

/// The registers' usual address in memory.
const DEVICE: u32 = 0xf000_0000;
const REGISTERS: [u32; 4] = [0x34, 0x8000_0006, 0, BUFFER];

/// A line of a print, and the bytes of the buffer that it holds.
struct Line {
    text: String,
    says: Option<Range<u32>>,
}

/// The place of the registers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Registers {
    Nowhere,
    InAFile,
    InTheLog,
    Named,
}

fn prints() -> Vec<(&'static str, Columns)> {
    vec![
        ("GDB, x/wx", GDB),
        ("GDB, x/bx", Columns { line: 8, number: 1, ..GDB }),
        ("GDB, x/hx", Columns { number: 2, ..GDB }),
        ("GDB, x/gx", Columns { number: 8, ..GDB }),
        ("OpenOCD, mdw", OPENOCD),
        ("OpenOCD, mdh", Columns { number: 2, ..OPENOCD }),
        ("OpenOCD, mdb", Columns { number: 1, ..OPENOCD }),
        ("J-Link, mem32", J_LINK),
        ("J-Link, mem", J_LINK_BYTES),
        ("pyOCD, read32", PYOCD),
        ("pyOCD, read8", Columns { number: 1, ..PYOCD }),
        ("probe-rs, b32", PROBE_RS),
        ("probe-rs, b8", Columns { number: 1, line: 8, ..PROBE_RS }),
    ]
}

fn lines_of(columns: &Columns, address: u32, bytes: &[u8]) -> Vec<Line> {
    let text = columns.print(address, bytes);
    let starts = (address..).step_by(columns.line);
    let line = |(text, start): (&str, u32)| {
        let [line, all] = [columns.line, bytes.len()].map(|length| u32::try_from(length).unwrap());
        let end = (start + line).min(address + all);
        let says = (address == BUFFER).then_some(start..end);
        Line { text: text.to_owned(), says }
    };
    text.lines().zip(starts).map(line).collect()
}

/// Prints the last three instructions.
fn last_three(dump: &Path, registers: Registers) -> Outcome {
    let [image, file] =
        ["m0-crash.elf", "registers.txt"].map(|name| example(&format!("m0-crash-mtb/{name}")));
    let [dump, image, file] = [dump, &image, &file].map(|path| path.to_str().unwrap());
    let mut arguments = vec!["flow", dump, "--image", image, "--last", "3", "--color", "never"];
    if registers == Registers::InAFile {
        arguments.extend(["--registers", file]);
    }
    run(arguments)
}

/// The output's last three instructions, and the exception after them.
fn ending(outcome: &Outcome) -> Vec<&str> {
    let lines = outcome.stdout.lines().map(|line| line.split("  ;").next().unwrap_or(line).trim_end());
    let is_shown = |line: &&str| line.starts_with("──") || line.starts_with("00000");
    let shown = lines.filter(is_shown).collect::<Vec<_>>();
    shown[shown.len().saturating_sub(4)..].to_vec()
}

const TRUE_ENDING: [&str; 4] = [
    "00000156  4b02        ldr     r3, 0x160 = 0x20000000",
    "00000158  6c1b        ldr     r3, [r3, #64]",
    "0000015a  4798        blx     r3",
    "── HardFault, returns to 0x206f6f74 (in no image) ────────────────────────────",
];

/// The lines of a dump to leave out in turn: all with `TRACEWALK_WHOLE`, else a sample. The first eight hold
/// the newest packets.
fn left_out(lines: usize) -> impl Iterator<Item = usize> {
    let every = if std::env::var_os("TRACEWALK_WHOLE").is_some() { 1 } else { 7 };
    sample(lines, 8, every)
}

/// The first `ends` of `count` lines, the last `ends` less one, and one in `every` between them.
fn sample(count: usize, ends: usize, every: usize) -> impl Iterator<Item = usize> {
    (0..count).filter(move |place| *place < ends || place % every == 0 || place + ends > count)
}

/// Leaves out each line in turn.
fn check(name: &str, lines: &[Line], registers: Registers) {
    let directory = Directory::new();
    for left_out in left_out(lines.len()) {
        let others = lines.iter().enumerate().filter(|(index, _)| *index != left_out);
        let text = others.map(|(_, line)| format!("{}\n", line.text)).collect::<String>();
        let outcome = last_three(&directory.write("dump.txt", text), registers);
        let about =
            || format!("{name}, {registers:?}, line {left_out}: {}{}", outcome.stdout, outcome.stderr);
        match &lines[left_out].says {
            // A line without bytes of the buffer changes nothing, or everything if it places the records.
            None => {
                let is_elsewhere = outcome.status == 2
                    && outcome.stdout.is_empty()
                    && mentions(&outcome.stderr, &format!("0x{BUFFER:08x} 1024"));
                assert!(ending(&outcome) == TRUE_ENDING || is_elsewhere, "{}", about());
            }
            Some(bytes) => {
                let named = format!("{} 0x{:08x} 0x{:08x}", bytes.len(), bytes.start, bytes.end - 1);
                assert_eq!(outcome.status, 2, "{}", about());
                assert!(mentions(&outcome.stderr, &named), "{named}: {}", about());
                assert!(!outcome.stderr.contains("--image"), "{}", about());
                let has_newest = bytes.end <= NEWEST.start || NEWEST.end <= bytes.start;
                assert_eq!(ending(&outcome) == TRUE_ENDING, has_newest, "{}", about());
            }
        }
    }
}

#[test]
fn a_line_may_be_missing_at_each_place_of_every_print() {
    let words = REGISTERS.map(u32::to_le_bytes).concat();
    let named = ["MTB_POSITION=0x00000034", "MTB_MASTER=0x80000006", "MTB_BASE=0x20001000"];
    let named = || named.map(|text| Line { text: text.to_owned(), says: None });
    std::thread::scope(|scope| {
        for (name, columns) in prints() {
            let words = &words;
            scope.spawn(move || {
                let buffer = || lines_of(&columns, BUFFER, &trace());
                check(name, &buffer(), Registers::Nowhere);
                check(name, &buffer(), Registers::InAFile);
                let log = buffer().into_iter().chain(lines_of(&columns, DEVICE, words));
                check(name, &log.collect::<Vec<_>>(), Registers::InTheLog);
                check(name, &buffer().into_iter().chain(named()).collect::<Vec<_>>(), Registers::Named);
            });
        }
    });
}

#[test]
fn a_record_may_be_missing_at_each_place() {
    for (name, header) in [("gdb.hex", 9), ("gdb.srec", 12)] {
        let text = std::fs::read_to_string(written(name)).unwrap();
        let mut address = BUFFER;
        let line = |text: &str| {
            let bytes = u32::try_from((text.len() - header) / 2 - 1).unwrap();
            let is_data = text.starts_with(":10") || text.starts_with("S3");
            let says = is_data.then(|| address..address + bytes);
            address += if is_data { bytes } else { 0 };
            Line { text: text.to_owned(), says }
        };
        let lines = text.lines().map(line).collect::<Vec<_>>();
        assert_eq!(address, BUFFER + 0x400, "{name}");
        check(name, &lines, Registers::Nowhere);
        // Without the record that sets the address, all others move.
        check(name, &lines[..], Registers::InAFile);
    }
}

#[test]
fn a_line_of_a_listing_may_be_missing_at_each_place() {
    // A line before a `*` gives the content that the `*` repeats, and `xxd -p` prints no addresses.
    for name in LISTINGS.into_iter().filter(|name| *name != "xxd-p.txt") {
        let text = std::fs::read_to_string(written(name)).unwrap();
        let lines = text.lines().collect::<Vec<_>>();
        for left_out in left_out(lines.len()) {
            let is_repeated = lines[left_out] == "*" || lines.get(left_out + 1) == Some(&"*");
            let others = lines.iter().enumerate().filter(|(index, _)| *index != left_out);
            let text = others.map(|(_, line)| format!("{line}\n")).collect::<String>();
            for registers in [Registers::Nowhere, Registers::InAFile] {
                let outcome = last_three(&Directory::new().write("dump.txt", &text), registers);
                let about =
                    || format!("{name}, {registers:?}, {left_out}: {}{}", outcome.stdout, outcome.stderr);
                let is_right = ending(&outcome) == TRUE_ENDING;
                assert!(outcome.status == 2 || outcome.status == 0 && is_right, "{}", about());
                let has_newest = !(1..=3).contains(&left_out);
                assert!(is_right || is_repeated || !has_newest, "{}", about());
            }
        }
    }
}

/// The prints of GDB and pyOCD, in all their forms, as lines with each line's bytes of the buffer.
fn written_prints() -> Vec<(&'static str, Vec<Line>)> {
    let names = [
        "gdb-xdw.txt",
        "gdb-xuh.txt",
        "gdb-xdb.txt",
        "gdb-xdg.txt",
        "gdb-xtw.txt",
        "gdb-xth.txt",
        "pyocd-read8.txt",
        "pyocd-read16.txt",
        "pyocd-read32.txt",
        "pyocd-read64.txt",
    ];
    let lines = |name| {
        let text = std::fs::read_to_string(written(name)).unwrap();
        let address = |line: &str| {
            let digits = line.trim_start_matches("0x").split(':').next().unwrap();
            u32::from_str_radix(digits, 16).unwrap()
        };
        let starts = text.lines().map(address).collect::<Vec<_>>();
        let ends = starts.iter().skip(1).copied().chain([BUFFER + 0x400]);
        let says = starts.iter().copied().zip(ends).map(|(start, end)| Some(start..end));
        text.lines().zip(says).map(|(line, says)| Line { text: line.to_owned(), says }).collect()
    };
    names.into_iter().map(|name| (name, lines(name))).collect()
}

#[test]
fn a_line_of_what_tools_wrote_may_be_missing_at_each_place() {
    std::thread::scope(|scope| {
        for (name, lines) in written_prints() {
            scope.spawn(move || {
                for registers in [Registers::Nowhere, Registers::InAFile] {
                    if is_decimal(name) {
                        check_decimal(name, &lines, registers);
                    } else {
                        check(name, &lines, registers);
                    }
                }
            });
        }
    });
}

/// The next line gives the width of decimal numbers, so a line before a gap may be useless.
fn is_decimal(name: &str) -> bool {
    ["gdb-xd", "gdb-xu"].iter().any(|start| name.starts_with(start))
}

fn check_decimal(name: &str, lines: &[Line], registers: Registers) {
    let directory = Directory::new();
    for left_out in left_out(lines.len()) {
        let others = lines.iter().enumerate().filter(|(index, _)| *index != left_out);
        let text = others.map(|(_, line)| format!("{}\n", line.text)).collect::<String>();
        let outcome = last_three(&directory.write("dump.txt", text), registers);
        let about =
            || format!("{name}, {registers:?}, line {left_out}: {}{}", outcome.stdout, outcome.stderr);
        let of = |line: usize| lines[line].says.clone().unwrap();
        let next = (left_out + 1).min(lines.len() - 1);
        let missing = [left_out..left_out, left_out.saturating_sub(1)..left_out, left_out..next];
        let mut missing = missing.map(|lines| of(lines.start).start..of(lines.end).end).into_iter();
        let is_named = |bytes: &Range<u32>| {
            let named = format!("{} 0x{:08x} 0x{:08x}", bytes.len(), bytes.start, bytes.end - 1);
            mentions(&outcome.stderr, &named)
        };
        assert_eq!(outcome.status, 2, "{}", about());
        let missing = missing.find(is_named).unwrap_or_else(|| panic!("{}", about()));
        let has_newest = missing.end <= NEWEST.start || NEWEST.end <= missing.start;
        assert_eq!(ending(&outcome) == TRUE_ENDING, has_newest, "{}", about());
    }
}

/// The lines of every form that has addresses, as people and tools write them.
fn addressed() -> Vec<(&'static str, Vec<String>)> {
    let text_of = |lines: Vec<Line>| lines.into_iter().map(|line| line.text).collect();
    let printed = prints().into_iter().map(|(name, columns)| (name, lines_of(&columns, BUFFER, &trace())));
    let printed = printed.chain(written_prints()).map(|(name, lines)| (name, text_of(lines)));
    let listed = LISTINGS.into_iter().filter(|name| *name != "xxd-p.txt").chain(["gdb.hex", "gdb.srec"]);
    let listed = listed.map(|name| {
        let text = std::fs::read_to_string(written(name)).unwrap();
        (name, text.lines().map(str::to_owned).collect())
    });
    printed.chain(listed).collect()
}

/// Calls `test` with each form, on a thread of its own.
fn each_form(test: impl Fn(&str, &[String]) + Sync) {
    std::thread::scope(|scope| {
        for (name, lines) in addressed() {
            let test = &test;
            scope.spawn(move || test(name, &lines));
        }
    });
}

/// The first lines, the last ones, and some in between.
fn places(lines: &[String]) -> impl Iterator<Item = usize> + use<> {
    sample(lines.len(), 3, 16)
}

fn joined(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_line_may_stand_twice_at_each_place_of_every_form() {
    each_form(|name, lines| {
        for twice in places(lines) {
            let mut lines = lines.to_vec();
            lines.insert(twice, lines[twice].clone());
            let outcome = last_three(&Directory::new().write("dump.txt", joined(&lines)), Registers::InAFile);
            let is_right = outcome.status == 0 && ending(&outcome) == TRUE_ENDING;
            assert!(is_right, "{name}, {twice}: {}{}", outcome.stdout, outcome.stderr);
        }
    });
}

#[test]
fn two_lines_may_have_changed_places_in_every_form() {
    each_form(|name, lines| {
        for first in places(&lines[1..]) {
            let mut lines = lines.to_vec();
            lines.swap(first, first + 1);
            let outcome = last_three(&Directory::new().write("dump.txt", joined(&lines)), Registers::InAFile);
            let is_right = ending(&outcome) == TRUE_ENDING;
            // A record that sets the address, or a `*`, depends on its neighbours; and the next line gives
            // the width of decimal numbers.
            let says_of_others = |line: &String| {
                line.starts_with(":02") || line.starts_with(":00") || line.starts_with("S7") || line == "*"
            };
            let depends = lines.iter().skip(first).take(3).any(says_of_others) || is_decimal(name);
            let about = || format!("{name}, {first}: {}{}", outcome.stdout, outcome.stderr);
            assert!(outcome.status == 2 && depends || outcome.status == 0 && is_right, "{}", about());
        }
    });
}

#[test]
fn a_line_may_be_cut_at_each_place_of_every_form() {
    each_form(|name, lines| {
        for short in places(lines) {
            // Cuts the first lines every few characters, to cut in each column, and the others in the middle.
            // A decimal number without its last digits is still a number.
            let last = lines[short].rfind('\t').filter(|_| is_decimal(name));
            let length = last.unwrap_or(lines[short].len());
            let cuts = if short < 2 { (1..length).step_by(5).collect() } else { vec![length / 2] };
            for cut in cuts {
                let mut lines = lines.to_vec();
                lines[short].truncate(cut);
                for registers in [Registers::Nowhere, Registers::InAFile] {
                    let outcome = last_three(&Directory::new().write("dump.txt", joined(&lines)), registers);
                    let is_right = ending(&outcome) == TRUE_ENDING;
                    let about = || {
                        let line = &lines[short];
                        format!("{name}, {registers:?}, {line:?}: {}{}", outcome.stdout, outcome.stderr)
                    };
                    assert!(outcome.status == 2 || outcome.status == 0 && is_right, "{}", about());
                    assert!(!outcome.stderr.contains("--image"), "{}", about());
                }
            }
        }
    });
}

#[test]
fn half_of_the_buffer_may_be_missing_in_every_form() {
    each_form(|name, lines| {
        let middle = lines.len() / 2;
        for (part, lines) in [("first half", &lines[..middle]), ("second half", &lines[middle..])] {
            for registers in [Registers::Nowhere, Registers::InAFile] {
                let outcome = last_three(&Directory::new().write("dump.txt", joined(lines)), registers);
                let about = || format!("{name}, {registers:?}, {part}: {}{}", outcome.stdout, outcome.stderr);
                assert_eq!(outcome.status, 2, "{}", about());
                assert!(!outcome.stderr.contains("--image"), "{}", about());
            }
        }
    });
}

/// No cut gives another ending with status 0, nor is it blamed on the program.
fn check_cut(name: &str, text: &str, registers: Registers) {
    let outcome = last_three(&Directory::new().write("dump.txt", text), registers);
    let about = || format!("{name}, {registers:?}: …{text:?}\n{}{}", outcome.stdout, outcome.stderr);
    let is_right = outcome.status == 0 && ending(&outcome) == TRUE_ENDING;
    assert!(is_right || outcome.status == 2, "{}", about());
    assert!(!outcome.stderr.contains("--image"), "{}", about());
    // 0x20001000 to 0x200013ff.
    let is_named =
        mentions(&outcome.stderr, "0x200013ff missing") || mentions(&outcome.stderr, "0x2000 not in");
    assert!(is_right || ending(&outcome) == TRUE_ENDING || is_named, "{}", about());
}

#[test]
fn a_print_may_be_cut_off_anywhere() {
    let words = REGISTERS.map(u32::to_le_bytes).concat();
    std::thread::scope(|scope| {
        for (name, columns) in prints() {
            let words = &words;
            scope.spawn(move || {
                let buffer = columns.print(BUFFER, &trace());
                let with_registers = columns.print(DEVICE, words) + &buffer;
                let last_lines = buffer.lines().rev().take(2).map(|line| line.len() + 1).sum::<usize>();
                // Every third place, which still cuts in each column of numbers: all of them would be too slow.
                for cut in (1..last_lines).step_by(3) {
                    check_cut(name, &buffer[..buffer.len() - cut], Registers::Nowhere);
                    check_cut(name, &with_registers[..with_registers.len() - cut], Registers::InTheLog);
                }
                for end in [buffer.len() / 2, buffer.len() / 2 + 7, buffer.len() / 4] {
                    check_cut(name, &buffer[..end], Registers::Nowhere);
                    check_cut(name, &buffer[..end], Registers::InAFile);
                }
            });
        }
    });
}

#[test]
fn a_part_of_the_buffer_never_passes_for_all_of_it() {
    for part in [0..512, 512..1024, 256..768, 0..768, 8..1024, 0..1016_usize] {
        let address = BUFFER + u32::try_from(part.start).unwrap();
        let text = OPENOCD.print(address, &trace()[part.clone()]);
        let directory = Directory::new();
        let dump = directory.write("dump.txt", &text);
        for registers in [Registers::Nowhere, Registers::InAFile] {
            let outcome = last_three(&dump, registers);
            assert_eq!(outcome.status, 2, "{part:?}: {}{}", outcome.stdout, outcome.stderr);
            assert!(!outcome.stderr.contains("--image"), "{part:?}: {}", outcome.stderr);
            if part.start == 0 {
                assert_eq!(ending(&outcome), TRUE_ENDING, "{part:?}: {}", outcome.stderr);
            }
        }
    }
}

/// `flow` of raw bytes, with the example's registers unless `options` override them.
fn of_bytes(bytes: &[u8], options: &[&str]) -> (Outcome, Kinds) {
    let directory = Directory::new();
    let dump = directory.write("ram.bin", bytes);
    let image = example("m0-crash-mtb/m0-crash.elf");
    let [dump, image] = [&dump, &image].map(|path| path.to_str().unwrap());
    let arguments = [dump, "--image", image, "--last", "3", "--color", "never"];
    run_with_notices(["flow"].iter().chain(&arguments).chain(options))
}

const OPTIONS: [&str; 6] =
    ["--source", "mtb,position=0x34", "--source", "mtb,master=0x80000006", "--source", "mtb,base=0x20001000"];

#[test]
fn packets_from_before_a_reset_are_reported() {
    let (outcome, notices) = of_bytes(&trace(), &[&["--source", "mtb,position=0"], &OPTIONS[2..]].concat());
    assert_eq!(outcome.status, 2, "{}", outcome.stderr);
    assert!(notices.has("mtb_older_packets"), "{notices:?}");
    assert!(mentions(&outcome.stderr, "MTB_POSITION 128"), "{}", outcome.stderr);
}

#[test]
fn packets_after_the_pointer_that_continue_the_newest_one_are_reported() {
    let goes_on = |position| {
        let (outcome, notices) =
            of_bytes(&trace(), &[&["--source", &format!("mtb,position={position}")], &OPTIONS[2..]].concat());
        (outcome.status, notices.has("mtb_goes_on"))
    };
    // The buffer has wrapped, and its oldest packet is at 0x30.
    assert_eq!(goes_on("0x20"), (0, true));
    assert_eq!(goes_on("0x30"), (0, false));
    assert_eq!(goes_on("0x34"), (0, false));
}

#[test]
fn a_buffer_of_zeros_was_never_written_to() {
    for options in [&OPTIONS[..], &["--container", "mtb"]] {
        let directory = Directory::new();
        let dump = directory.write("mtb.bin", [0; 1024]);
        let outcome = run_with_kinds(["flow", dump.to_str().unwrap()].iter().chain(options));
        assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("mtb_never_on"), "{}", outcome.stderr);
    }
}

#[test]
fn a_buffer_of_zeros_with_a_pointer_of_zero_is_reported() {
    let (outcome, notices) = of_bytes(&[0; 1024], &[&["--source", "mtb,position=0"], &OPTIONS[2..]].concat());
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    assert!(notices.has("mtb_wrote_nothing"), "{notices:?}");
    let (_, notices) = of_bytes(&trace(), &OPTIONS);
    assert!(!notices.has("mtb_wrote_nothing"), "{notices:?}");
}

#[test]
fn all_of_the_memory_is_read_where_its_packets_go_on() {
    for place in [0x1000, 0x800, 0x2c00] {
        let mut ram = (0..0x1000_u32).flat_map(|index| index.wrapping_mul(2_654_435_761).to_le_bytes());
        let mut ram = ram.by_ref().collect::<Vec<_>>();
        ram[place..place + 0x400].copy_from_slice(&trace());
        let (outcome, notices) = of_bytes(&ram, &OPTIONS);
        assert_eq!((outcome.status, &ending(&outcome)[..]), (0, &TRUE_ENDING[..]), "{}", outcome.stderr);
        assert!(notices.has("dump_placed"), "{notices:?}");
        assert!(outcome.stderr.contains("address="), "{}", outcome.stderr);
    }
    // If a part of the buffer contradicts it, tracewalk does not move the dump.
    let mut ram = vec![0; 0x4000];
    ram[0x800..0xc00].copy_from_slice(&trace());
    ram[0x900..0xa00].fill(0xee);
    let (outcome, notices) = of_bytes(&ram, &OPTIONS);
    assert_eq!(outcome.status, 2, "{}", outcome.stderr);
    assert!(!notices.has("dump_placed"), "{notices:?}");
}
