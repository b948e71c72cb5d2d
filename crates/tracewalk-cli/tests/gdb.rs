//! `gdb`, driven by the real GDB: Debian's gdb-multiarch in batch mode, using only GDB's own commands.
//!
//! The expected values come from `flow`; other tests compare `flow` with the emulators' records.
#![cfg(feature = "gdb")]

#[path = "gdb/cache.rs"]
mod cache;
#[path = "gdb/contexts.rs"]
mod contexts;
#[path = "gdb/editors.rs"]
mod editors;
#[path = "gdb/memory.rs"]
mod memory;
#[path = "gdb/server.rs"]
pub(crate) mod server;
#[path = "gdb/watching.rs"]
mod watching;

use std::path::Path;
use std::process::Command;

use crate::support::{example, mentions, run};

/// An example, its program, and the place where `gdb` starts.
#[derive(Clone, Copy)]
struct Recording {
    example: &'static str,
    elf: &'static str,
    at: &'static str,
}

const CRASH: Recording = Recording { example: "m0-crash-mtb", elf: "m0-crash.elf", at: "last" };
const M3: Recording = Recording { example: "m3-etmv3", elf: "m3.elf", at: "first" };
/// A kernel, a hypervisor and tasks in A64, and one task in A32 and T32.
const A57: Recording = Recording { example: "a57-etmv4", elf: "a53.elf", at: "first" };
const A7: Recording = Recording { example: "a7-etmv3", elf: "a9.elf", at: "first" };

/// GDB's output for these commands; `None` without GDB.
fn gdb(recording: Recording, commands: &[&str]) -> String {
    let folder = example(recording.example);
    let server = assert_cmd::cargo::cargo_bin!("tracewalk");
    let connect = format!(
        "target remote | {} --quiet gdb {} --listen - --cache none --at {}",
        server.display(),
        folder.join("capture.toml").display(),
        recording.at
    );
    // Debian's GDB takes every program for a Linux one, and then ignores frames below 0x8000.
    let before = ["set osabi none", &connect];
    stock_gdb(recording.elf_path().as_deref(), before.into_iter().chain(commands.iter().copied()))
}

impl Recording {
    fn elf_path(self) -> Option<String> {
        Some(example(self.example).join(self.elf).to_str()?.to_owned())
    }
}

fn stock_gdb<'a>(elf: Option<&str>, commands: impl IntoIterator<Item = &'a str>) -> String {
    let mut gdb = Command::new("gdb-multiarch");
    gdb.args(["-nx", "-batch"]).args(elf);
    // With a shorter timeout GDB repeats a question if the server starts slowly, as on a busy machine.
    let before = ["set remotetimeout 100", "set pagination off", "set confirm off", "set width 0"];
    for command in before.into_iter().chain(commands) {
        gdb.args(["-ex", command]);
    }
    let output = gdb.output().expect("GDB runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

/// The numbers printed by [`PC`] and [`STEP`].
fn marked(text: &str) -> Vec<u64> {
    let numbers = text.lines().filter_map(|line| line.strip_prefix('@'));
    let hex = |number: &str| u64::from_str_radix(number.trim().trim_start_matches("0x"), 16);
    numbers.map(|number| hex(number).unwrap_or_else(|_| panic!("no number: {number}: {text}"))).collect()
}

/// Prints the program counter for [`marked`].
const PC: &str = "printf \"\\n@%x\\n\", $pc";
/// Makes GDB read the registers again.
const FLUSH: &str = "maintenance flush register-cache";
/// Prints the number of the step.
const STEP: &str = "printf \"\\n@%x\\n\", $step";

/// The functions of a backtrace, innermost first; `?` for one without a name.
fn functions(text: &str) -> Vec<String> {
    let frames = text.lines().filter(|line| line.starts_with('#'));
    let name = |line: &str| {
        if line.contains("<signal") {
            return "signal".to_owned();
        }
        let words = line.split_whitespace().skip(1).collect::<Vec<_>>();
        let name = match words.as_slice() {
            [address, "in", name, ..] if address.starts_with("0x") => name,
            [name, ..] => name,
            [] => "",
        };
        if name == "??" { "?".to_owned() } else { name.to_owned() }
    };
    frames.map(name).collect()
}

/// The addresses of the executed instructions, from `flow`.
fn executed(recording: Recording) -> Vec<u64> {
    let capture = example(recording.example).join("capture.toml");
    let flow = run(["flow".as_ref(), "--quiet".as_ref(), capture.as_os_str()]).stdout;
    let address = |line: &str| {
        let (address, rest) = line.split_at_checked(8)?;
        u64::from_str_radix(address, 16).ok().filter(|_| rest.starts_with("  "))
    };
    flow.lines().filter_map(address).collect()
}

#[test]
#[ignore = "needs gdb-multiarch"]
fn from_the_fault_of_the_crash_steps_lead_back_to_its_cause() {
    let commands = [PC, "bt", "reverse-stepi", PC, "reverse-stepi", PC, "bt", "reverse-stepi", PC];
    let text = gdb(CRASH, &commands);
    // The handler, the branch's target, the branch, and the load of the address: the path that `crash` shows.
    assert_eq!(marked(&text), [0xe6, 0x206f_6f74, 0x15a, 0x158]);
    let expected = ["NMI_Handler", "signal", "?", "SysTick_Handler", "signal", "crc32", "main"];
    let cause = ["SysTick_Handler", "signal", "crc32", "main"];
    assert_eq!(functions(&text), [&expected[..], &cause].concat());
}

#[test]
#[ignore = "needs gdb-multiarch"]
fn ten_thousand_steps_back_are_the_flow_reversed() {
    const STEPS: usize = 10_000;
    let commands = [PC].into_iter().chain(["reverse-stepi", PC].repeat(STEPS)).collect::<Vec<_>>();
    let text = gdb(Recording { at: "last", ..M3 }, &commands);
    let expected = executed(M3).into_iter().rev().take(STEPS + 1).collect::<Vec<_>>();
    assert_eq!(marked(&text), expected);
}

#[test]
#[ignore = "needs gdb-multiarch"]
fn every_step_forward_is_the_flow_through_all_instruction_sets() {
    const STEPS: usize = 3000;
    for recording in [A7, A57] {
        let commands = [PC].into_iter().chain(["stepi", PC].repeat(STEPS)).collect::<Vec<_>>();
        let text = gdb(recording, &commands);
        let expected = executed(recording).into_iter().take(STEPS + 1).collect::<Vec<_>>();
        assert_eq!(marked(&text), expected, "{}", recording.example);
    }
}

#[test]
#[ignore = "needs gdb-multiarch"]
fn a_backtrace_of_a64_leads_through_exceptions_and_into_aarch32() {
    // The first exception was taken from a T32 task. An assembly function without call frame information may
    // repeat without end.
    const EXCEPTION: &str = "set $step = 2684";
    let commands = [EXCEPTION, PC, "bt 3", "set $step = 43215", PC, "bt 3"];
    let text = gdb(A57, &commands);
    assert_eq!(marked(&text), [0x4010_1600, 0x4010_1f9c]);
    let functions = functions(&text);
    assert_eq!(functions[..2], ["vectors_el1", "aarch32_task"], "{text}");
    assert_eq!(functions[2..4], ["serve", "synchronous"], "{text}");
    // The task's return address does not have T32's form; the instruction set is in the saved processor state.
    let words = text.split_whitespace().collect::<Vec<_>>();
    assert!(words.windows(2).any(|words| words == ["#1", "0x0000000040110058"]), "{text}");
}

#[test]
#[ignore = "needs gdb-multiarch"]
fn a_breakpoint_is_hit_as_often_as_the_instruction_ran_in_both_directions() {
    // crc32, and the kernel's exception handler.
    for (recording, address, times) in [(M3, 0x3d4, 8), (A57, 0x4010_1f50, 64)] {
        assert_eq!(executed(recording).iter().filter(|at| **at == address).count(), times);
        let [first, second] = [1, 2].map(|number| format!("ignore {number} 1000000"));
        let set = format!("break *{address:#x}");
        let forward = [&*set, &first, "continue", "info breakpoints"];
        let back = [&*set, &second, "delete 1", "reverse-continue", "info breakpoints"];
        let text = gdb(recording, &[&forward[..], &back].concat());
        let hits = text.lines().filter(|line| line.contains("already"));
        let hits = hits.flat_map(str::split_whitespace).filter_map(|word| word.parse::<usize>().ok());
        assert_eq!(hits.collect::<Vec<_>>(), [times, times], "{text}");
        // GDB reports both ends.
        assert_eq!(text.matches("reverse-execution").count(), 2, "{text}");
    }
}

#[test]
#[ignore = "needs gdb-multiarch"]
fn each_stop_at_a_breakpoint_is_where_flow_has_it() {
    let commands = ["break *0x3d4"].into_iter().chain(["continue", STEP].repeat(8));
    let commands = commands.chain(["reverse-continue", STEP].repeat(7)).collect::<Vec<_>>();
    let text = gdb(M3, &commands);
    let steps = marked(&text);
    let (forward, backward) = steps.split_at(8);
    assert!(forward.is_sorted_by(|one, next| one < next), "{forward:x?}");
    assert_eq!(backward.iter().rev().copied().collect::<Vec<_>>(), forward[..7]);
    // Step numbers and instruction numbers differ, but have the same order.
    assert_eq!(executed(M3).iter().filter(|at| **at == 0x3d4).count(), forward.len());
}

#[test]
#[ignore = "needs gdb-multiarch"]
fn calls_are_stepped_over_in_both_directions_and_finished_in_both() {
    // The call of crc32 in sort_samples, and the instruction after it.
    let to_call = ["break *0x3d4", "continue", "reverse-finish", PC, STEP, "delete"];
    let over = ["nexti", PC, STEP, "reverse-nexti", PC, STEP];
    let into = ["stepi", PC, "bt", "finish", PC, STEP];
    let text = gdb(M3, &[&to_call[..], &over, &into].concat());
    let [call, called_at, after, over_at, back, back_at, inside, finished, finished_at] =
        *marked(&text).as_slice()
    else {
        panic!("{text}");
    };
    assert_eq!((after, back, back_at), (call + 4, call, called_at));
    assert!(over_at > called_at + 100, "{over_at} {called_at}");
    assert_eq!((inside, finished, finished_at), (0x3d4, after, over_at));
    assert_eq!(functions(&text)[..3], ["crc32", "sort_samples", "main"]);
}

#[test]
#[ignore = "needs gdb-multiarch"]
fn lines_are_stepped_over_backwards_and_a_call_is_not_entered() {
    let commands = ["break *0x3d4", "continue", "delete", "finish", "bt", "reverse-next", PC, "bt"];
    let text = gdb(M3, &commands);
    let functions = functions(&text);
    assert!(!functions.contains(&"crc32".to_owned()), "{text}");
    assert!(functions.contains(&"main".to_owned()), "{text}");
}

#[test]
#[ignore = "needs gdb-multiarch"]
fn a_jump_by_the_step_register_makes_gdb_read_everything_anew() {
    let commands = [PC, "set $step = 914", PC, "bt", "set $step = 100000", PC, "set $r0 = 1"];
    let text = gdb(CRASH, &commands);
    assert_eq!(marked(&text), [0xe6, 0x158, 0x158]);
    assert_eq!(functions(&text), ["SysTick_Handler", "signal", "crc32", "main"]);
}

#[test]
#[ignore = "needs gdb-multiarch"]
fn each_register_that_says_the_place_jumps_and_gdb_reads_everything_anew() {
    let exception =
        ["monitor goto exception 3", FLUSH, STEP, "set $step = 0", "set $exception = 3", STEP, PC];
    let time = ["p $exception", "set $time = 78187467499", STEP, PC, "p $time"];
    let last = ["monitor goto time 78187467499", FLUSH, STEP, PC];
    let text = gdb(A7, &[&exception[..], &time, &last].concat());
    let [by_monitor, by_register, handler, timed, timed_pc, timed_by_monitor, its_pc] =
        *marked(&text).as_slice()
    else {
        panic!("{text}")
    };
    assert_eq!((by_register, handler), (by_monitor, 0x6000_0018), "{text}");
    assert_eq!((timed, timed_pc), (timed_by_monitor, its_pc), "{text}");
    assert!(timed > by_register, "{text}");
    assert!(text.contains("$1 = 3\n") && text.contains("$2 = 781874674"), "{text}");
    // Jumps to places outside the recording move nothing. M3 has no timestamps.
    let nowhere = ["set $exception = 0", "set $exception = 1000000", "set $time = 1", "set $step = 77", STEP];
    let text = gdb(M3, &[&nowhere[..], &["info registers time"]].concat());
    assert_eq!(marked(&text), [77], "{text}");
    assert!(text.contains("<unavailable>"), "{text}");
}

/// No answer to `monitor` makes GDB 13 drop the registers that it has read (docs/dev/decisions.md). If a
/// later GDB drops them, update the documents and the answer.
#[test]
#[ignore = "needs gdb-multiarch"]
fn after_a_jump_by_monitor_gdb_shows_the_place_once_its_registers_are_flushed() {
    let commands = [PC, "monitor goto 914", PC, FLUSH, PC, "monitor goto last", "reverse-stepi", PC];
    let text = gdb(CRASH, &commands);
    // A step continues from the new place, and shows it.
    assert_eq!(marked(&text), [0xe6, 0xe6, 0x158, 0x206f_6f74]);
}

#[test]
#[ignore = "needs gdb-multiarch"]
fn an_exception_of_a_profile_stands_above_what_it_interrupted() {
    let text = gdb(A7, &["set $exception = 3", "bt 3"]);
    assert_eq!(functions(&text), ["vectors", "partition", "quicksort"], "{text}");
}

#[test]
#[ignore = "needs gdb-multiarch"]
fn monitor_jumps_and_lists_the_calls_that_flow_knows() {
    let jumps = ["monitor goto exception 1", FLUSH, "bt"];
    let call = ["monitor up-to-call", FLUSH, PC];
    let others = ["monitor find crc32", FLUSH, PC, "monitor bt", "monitor calls"];
    let text = gdb(M3, &[&jumps[..], &call, &others].concat());
    let functions = functions(&text);
    assert_eq!(functions[..3], ["SysTick_Handler", "signal", "next_random"]);
    let [_, crc32] = *marked(&text).as_slice() else { panic!("{text}") };
    assert_eq!(crc32, 0x3d4);
}

#[test]
#[ignore = "needs gdb-multiarch"]
fn what_nobody_knows_is_unavailable_and_constants_come_from_the_program() {
    let commands = ["info registers", "x/1wx 0x20000000", "x/1hx 0x15a"];
    let text = gdb(CRASH, &commands);
    for register in 0..=12 {
        let line = text.lines().find(|line| line.starts_with(&format!("r{register} "))).unwrap();
        assert!(line.contains("<unavailable>"), "{line}");
    }
    assert!(text.contains("0x20000000") && !text.contains("0x20000000:\t0x"), "{text}");
    assert!(text.contains("0x4798"), "{text}");
}

#[test]
#[ignore = "needs gdb-multiarch"]
fn a_thread_is_named_by_its_source_and_its_exception() {
    let text = gdb(CRASH, &["info threads"]);
    assert!(mentions(&text, "mtb HardFault"), "{text}");
}

/// Of two cores only the one that the user selected moves.
#[test]
#[ignore = "needs gdb-multiarch"]
fn each_core_is_a_thread_and_moves_by_itself() {
    let (trace, elf) = (example("../two-sources/trace.bin"), example("a7-etmv3/a9.elf"));
    let server = assert_cmd::cargo::cargo_bin!("tracewalk");
    let connect = format!(
        "target remote | {} --quiet gdb {} --image {} --source 0x10=etmv3,cpu=cortex-a7 --source 0x13=pft,cpu=cortex-a15 \
         --listen - --cache none --at first",
        server.display(),
        trace.display(),
        elf.display()
    );
    let second = ["thread 2", "set $step = 500", STEP, "set scheduler-locking on", "reverse-stepi", STEP];
    let first = ["thread 1", STEP, "stepi", STEP, "thread 2", STEP];
    let commands = [&[&*connect, STEP][..], &second, &first].concat();
    let text = stock_gdb(elf.to_str(), commands);
    let [begin, jumped, back, stays, next, other] = *marked(&text).as_slice() else { panic!("{text}") };
    assert!(jumped >= 500 && back < jumped && begin < 500, "{text}");
    assert_eq!((stays, other), (begin, back));
    assert!(next > begin, "{text}");
}

/// The picture in `docs/stepping-backwards.md`: GDB's own terminal view, in tmux (tests/gdb/tui.py).
#[test]
#[ignore = "needs gdb-multiarch, python3 and tmux"]
fn the_picture_of_the_terminal_view_is_what_gdb_shows() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let repository = folder.join("../..").canonicalize().unwrap();
    let server = assert_cmd::cargo::cargo_bin!("tracewalk");
    let mut command = Command::new("python3");
    command.arg(folder.join("tests/gdb/tui.py")).arg(server).arg(&repository);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let file = repository.join("docs/pictures/gdb-tui.svg");
    if std::env::var_os("PICTURES").is_some_and(|value| value == "overwrite") {
        std::fs::write(&file, &output.stdout).unwrap();
    }
    let expected = std::fs::read(&file).unwrap();
    assert!(
        expected == output.stdout,
        "draw it again: PICTURES=overwrite cargo test -p tracewalk-cli --features full --test all gdb::"
    );
}
