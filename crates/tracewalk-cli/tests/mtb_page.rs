//! The commands of docs/mtb-after-a-crash.md work as the page describes.

use std::path::Path;

use crate::support::{Outcome, example, mentions, run_with_kinds, tracewalk};

/// The page's text.
fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/mtb-after-a-crash.md");
    std::fs::read_to_string(path).unwrap()
}

/// Runs a command line of the page in the example's directory.
fn run_line(line: &str) -> Outcome {
    let mut words = line.split_whitespace();
    assert_eq!(words.next(), Some("tracewalk"), "{line}");
    let output = tracewalk().args(words).current_dir(example("m0-crash-mtb")).output().unwrap();
    Outcome {
        status: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Replaces the page's file names with those of the example.
fn with_the_example(line: &str) -> String {
    line.replace("mtb.bin", "trace.bin").replace("firmware.elf", "m0-crash.elf")
}

/// The page's main command.
const COMMAND: &str = "tracewalk flow mtb.bin --registers registers.txt --image firmware.elf --last 50";

/// A line of a listing: an instruction's address and size, or an exception.
#[derive(Debug, PartialEq, Eq)]
enum Item {
    Instruction { address: u32, bytes: u32 },
    Exception(String),
}

fn items(listing: &str) -> Vec<Item> {
    let instruction = |line: &str| {
        let (address, rest) = line.split_once("  ")?;
        let address = u32::from_str_radix(address, 16).ok().filter(|_| address.len() == 8)?;
        let code = rest.split("  ").next()?;
        Some(Item::Instruction { address, bytes: u32::try_from(code.replace(' ', "").len() / 2).ok()? })
    };
    let exception =
        |line: &str| Some(Item::Exception(line.strip_prefix("── ")?.trim_end_matches(['─', ' ']).to_owned()));
    listing.lines().filter_map(|line| instruction(line).or_else(|| exception(line))).collect()
}

/// The items in the form of `runs`, with consecutive addresses joined.
fn as_runs(items: &[Item]) -> Vec<String> {
    let mut runs = Vec::<String>::new();
    let mut open = None::<(u32, u32)>;
    for item in items {
        match (item, &mut open) {
            (&Item::Instruction { address, bytes }, Some((_, end))) if *end == address => *end += bytes,
            (&Item::Instruction { address, bytes }, _) => {
                runs.extend(
                    open.replace((address, address + bytes))
                        .map(|(start, end)| format!("R {start:x} {end:x} t32")),
                );
            }
            (Item::Exception(_), _) => {
                runs.extend(open.take().map(|(start, end)| format!("R {start:x} {end:x} t32")));
                runs.push("X".to_owned());
            }
        }
    }
    runs
}

/// The program's path is known from the emulator's record, which is independent of trace.
#[test]
fn the_pages_command_shows_the_path_to_the_hard_fault() {
    assert!(page().contains(&format!("    {COMMAND}\n")));
    let outcome = run_line(&with_the_example(COMMAND));
    assert_eq!((outcome.status, outcome.stderr.as_str()), (0, ""));
    let items = items(&outcome.stdout);
    let is_instruction = |item: &&Item| matches!(item, Item::Instruction { .. });
    assert_eq!(items.iter().filter(is_instruction).count(), 50);
    let exceptions = items.iter().filter_map(|item| match item {
        Item::Exception(text) => Some(text.as_str()),
        Item::Instruction { .. } => None,
    });
    let expected =
        ["SysTick, returns to 0x00000268 <crc32+0x14>", "HardFault, returns to 0x206f6f74 (in no image)"];
    assert!(exceptions.eq(expected));

    let record =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/firmware/m0-crash/m0-crash.record");
    let record = std::fs::read_to_string(record).unwrap();
    let line = |line: &str| match line.split(' ').collect::<Vec<_>>()[..] {
        ["R", start, end, ..] => Some(format!("R {start} {end} t32")),
        ["X", ..] => Some("X".to_owned()),
        _ => None,
    };
    let mut recorded = record.lines().filter_map(line).collect::<Vec<_>>();
    // The MTB was read before the handler spun.
    assert_eq!(recorded.pop().as_deref(), Some("R e6 e8 t32"));
    let found = as_runs(&items);
    let tail = &recorded[recorded.len() - found.len()..];
    // The first of the 50 instructions is in the middle of a run.
    assert_eq!(found[1..], tail[1..]);
    assert_eq!(found[0].rsplit(' ').nth(1), tail[0].rsplit(' ').nth(1));
}

#[test]
fn the_lines_before_the_fault_have_their_functions_and_places() {
    let outcome = run_line(&with_the_example(COMMAND));
    let lines = outcome.stdout.lines().map(str::trim).collect::<Vec<_>>();
    // The mistake: the copy that does not stop, the next SysTick, and the callback, overwritten with text by then.
    let path = [
        "log_message+0x12  main.c:40",
        "0000014a  d1fa        bne     0x142 <log_message+0x12>  (not taken)",
        "0000014c  4770        bx      lr                                    ; main.c:42",
        "main+0x44  main.c:58",
        "crc32  work.c:10",
        "00000258  d019          beq     0x28e <crc32+0x3a>  (not taken)",
        "00000266  7823          ldrb    r3, [r4]                              ; work.c:13",
        "── SysTick, returns to 0x00000268 <crc32+0x14> ───────────────────────────────",
        "SysTick_Handler  main.c:32",
        "00000154  b510            push    {r4, lr}",
        "00000156  4b02            ldr     r3, 0x160 = 0x20000000                ; main.c:33",
        "00000158  6c1b            ldr     r3, [r3, #64]",
        "0000015a  4798            blx     r3",
        "── HardFault, returns to 0x206f6f74 (in no image) ────────────────────────────",
    ];
    let mut rest = lines.iter();
    for expected in path {
        assert!(rest.any(|line| *line == expected), "{expected:?} in\n{}", outcome.stdout);
    }
    assert_eq!(rest.next(), None);
}

/// The page's terminal session matches the command's output.
#[test]
fn what_the_page_shows_is_what_is_printed() {
    let page = page();
    let shown = page.split("```text\n$ cd testdata/examples/m0-crash-mtb\n$ ").nth(1).unwrap();
    let (command, rest) = shown.split_once('\n').unwrap();
    let shown = rest.split("```").next().unwrap();
    let outcome = run_line(command);
    assert_eq!((outcome.status, outcome.stdout.as_str(), outcome.stderr.as_str()), (0, shown, ""));

    let note = page.split("```text\nnote: ").nth(1).unwrap().split("```").next().unwrap();
    let note = format!("note: {}", note.trim_end().replace('\n', " "));
    let outcome = run_line("tracewalk flow trace.bin --container mtb --image m0-crash.elf --last 6");
    assert!(outcome.stderr.lines().any(|line| line == note), "{note:?} in {:?}", outcome.stderr);
    assert_eq!(outcome.stdout, shown);
}

#[test]
fn the_other_commands_of_the_page_work() {
    let page = page();
    let packets = "tracewalk packets mtb.bin --registers registers.txt";
    assert!(page.contains(&format!("`{packets}`")));
    let outcome = run_line(&with_the_example(packets));
    assert_eq!((outcome.status, outcome.stdout.lines().count()), (0, 1 + 1 + 128), "{}", outcome.stderr);

    // The page's registers belong to its own buffer; the test uses the example's instead.
    let options = "--source mtb,position=0x1bc,master=8,base=0x1ffff000";
    assert!(page.contains(&format!("`{options}`")));
    let example = "--source mtb,position=0x34,master=0x80000006,base=0x20001000";
    let by_options = run_line(&format!("tracewalk flow trace.bin {example} --image m0-crash.elf --last 50"));
    assert_eq!((by_options.status, by_options.stderr.as_str()), (0, ""));
    assert_eq!(by_options.stdout, run_line(&with_the_example(COMMAND)).stdout);

    // A text instead of the file.
    let log = "tracewalk flow crash.log --image firmware.elf --last 50";
    assert!(page.contains("    tracewalk crash crash.log --image firmware.elf\n"));
    let printed = run_line(&with_the_example(&log.replace("crash.log", "../../dumps/gdb-x.txt")));
    assert_eq!((printed.status, printed.stdout), (0, by_options.stdout));
}

/// The buffer just after the SysTick handler was entered; in the emulator's record the handler ran to 0x15c.
#[test]
fn with_the_program_counter_what_ran_after_the_last_jump_is_shown() {
    assert!(page().contains("`tracewalk flow … --source mtb,pc=PC`"));
    let command =
        "tracewalk flow trace.bin --source mtb,position=0x20,master=6 --image m0-crash.elf --last 3";
    let instructions = |outcome: &Outcome| {
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        let items = items(&outcome.stdout).into_iter();
        let address = |item| if let Item::Instruction { address, .. } = item { Some(address) } else { None };
        items.filter_map(address).collect::<Vec<_>>()
    };
    assert_eq!(instructions(&run_line(command)), [0x262, 0x264, 0x266]);
    let outcome = run_line(&format!("{command} --source mtb,pc=0x15a"));
    assert_eq!(instructions(&outcome), [0x154, 0x156, 0x158]);
}

#[test]
fn a_program_counter_that_cannot_be_right_is_named_and_the_image_is_not() {
    let capture = example("m0-crash-mtb/capture.toml");
    let capture = capture.to_str().unwrap();
    for wrong in ["0x0", "0x200", "0x10000100", "0xdead0000"] {
        let outcome =
            run_with_kinds(["flow", capture, "--source", &format!("mtb,pc={wrong}"), "--format", "none"]);
        assert_eq!(outcome.status, 2, "{wrong}: {}", outcome.stderr);
        let of_kind = |kind: &str| outcome.stderr.lines().find(|line| line.contains(kind));
        let named =
            of_kind("warning: halt_contradicted:").unwrap_or_else(|| panic!("{wrong}: {}", outcome.stderr));
        assert!(mentions(named, "--source mtb,pc 0x000000e6") && !mentions(named, "--image"), "{named}");
        assert_eq!(of_kind(": contradictions:"), None, "{wrong}");
    }
    // Another program does not fit, regardless of where the processor was halted.
    let trace = example("m0-crash-mtb/trace.bin");
    let other = example("m3-etmv3/m3.elf");
    let [trace, other] = [&trace, &other].map(|path| path.to_str().unwrap());
    let registers = ["--source", "mtb,position=0x34,master=0x80000006,pc=0xe6"];
    let arguments = ["flow", trace, "--container", "mtb", "--image", other, "--format", "none"];
    let outcome = run_with_kinds(arguments.iter().chain(&registers));
    assert_eq!(outcome.status, 2, "{}", outcome.stderr);
    assert!(
        !mentions(&outcome.stderr, "halt_contradicted") && mentions(&outcome.stderr, "--image"),
        "{}",
        outcome.stderr
    );
}
