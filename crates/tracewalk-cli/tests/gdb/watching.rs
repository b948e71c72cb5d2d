//! Watchpoints: in both directions GDB stops at the accesses that data trace reported, or that the path proves.

use tracewalk_generate::path::Step;

use super::memory::{Traced, busiest};
use super::server::{Server, ask};
use super::{CRASH, M3, gdb, marked, stock_gdb};

#[test]
#[ignore = "needs gdb-multiarch"]
fn a_watchpoint_is_hit_at_each_change_in_both_directions() {
    const HITS: usize = 6;
    let traced = Traced::new();
    let word = busiest(&traced.path)[0];
    // The word's value after each store that changes it, from the emulator's record.
    let (mut model, mut values) = (super::memory::Model::default(), Vec::new());
    for step in &traced.path.steps {
        let Step::Access(access) = step else { continue };
        model.access(access);
        let held = model.word(word);
        if values.last() != Some(&held) {
            values.push(held);
        }
    }
    let values = values
        .into_iter()
        .flatten()
        .map(|digits| u64::from(u32::from_str_radix(&digits, 16).unwrap().swap_bytes()));
    let values = values.take(HITS).collect::<Vec<_>>();
    let connect = format!(
        "target remote | {} --quiet gdb {} --listen - --cache none",
        assert_cmd::cargo::cargo_bin!("tracewalk").display(),
        traced.arguments().join(" ")
    );
    let watch = format!("watch *(unsigned int *) {word:#x}");
    let read = format!("printf \"\\n@%x\\n\", *(unsigned int *) {word:#x}");
    let forward = ["continue", &read].repeat(HITS);
    let backward = ["reverse-continue", &read].repeat(HITS - 2);
    let commands = [&[&*connect, &watch][..], &forward, &backward].concat();
    let text = stock_gdb(traced.firmware.file.to_str(), commands);
    let found = marked(&text);
    // Going back, GDB undoes the last change first.
    let back = values[1..HITS - 1].iter().rev().copied();
    assert_eq!(found, values.iter().copied().chain(back).collect::<Vec<_>>(), "{text}");
}

#[test]
fn the_server_stops_at_each_access_on_the_side_that_gdb_steps_over_it_from() {
    let traced = Traced::new();
    let word = busiest(&traced.path)[0];
    let server = Server::of(traced.arguments());
    let mut stream = server.connect();
    assert_eq!(ask(&mut stream, &format!("Z2,{word:x},4")), "OK");
    let stop = format!("T05thread:1;watch:{word:x};");
    let step = |stream: &mut _| ask(stream, "p1a");
    assert_eq!(ask(&mut stream, "c"), stop);
    let before = step(&mut stream);
    // A step does not pass a watched store.
    assert_eq!(ask(&mut stream, "s"), stop);
    assert_eq!(step(&mut stream), before);
    assert_eq!(ask(&mut stream, &format!("z2,{word:x},4")), "OK");
    assert_eq!(ask(&mut stream, "s"), "T05thread:1;");
    let after = step(&mut stream);
    assert_ne!(after, before);
    assert_eq!(ask(&mut stream, &format!("Z2,{word:x},4")), "OK");
    assert_eq!(ask(&mut stream, "bc"), stop);
    assert_eq!(step(&mut stream), after);
    // Reads of the same bytes are different accesses.
    assert_eq!(ask(&mut stream, &format!("z2,{word:x},4")), "OK");
    assert_eq!(ask(&mut stream, &format!("Z3,{word:x},4")), "OK");
    assert!(ask(&mut stream, "c").starts_with("T05thread:1;rwatch:"));
    for contents in ["Z2", "Z2,0", "Z2,zz,4", "Z2,ffffffffffffffff,2", "z4,0,0"] {
        let _ = ask(&mut stream, contents);
    }
    assert_eq!(ask(&mut stream, "qC"), "QC1");
}

#[test]
#[ignore = "needs gdb-multiarch"]
fn without_data_trace_proven_stores_are_watched_in_both_directions() {
    let read = "printf \"\\n@%x\\n\", ticks";
    let forward = ["continue", read].repeat(3);
    let backward = ["reverse-continue", read].repeat(2);
    let commands = [&["set $step = 100", "watch ticks"][..], &forward, &backward].concat();
    let text = gdb(M3, &commands);
    // Each SysTick adds one. Going back, GDB undoes the last change first.
    assert_eq!(marked(&text), [1, 2, 3, 2, 1], "{text}");
    let text = gdb(M3, &["set $step = 17000", "watch *(int *) 0x2000e000", "continue", "delete", "reverse-continue"]);
    assert_eq!(text.matches("no loads").count(), 1, "{text}");
    assert_eq!(text.matches("reverse-execution").count(), 2, "{text}");
}

#[test]
#[ignore = "needs gdb-multiarch"]
fn what_cannot_be_changed_is_refused_with_a_sentence() {
    let commands =
        ["set $r0 = 1", "set $pc = 0", "set $step = 100000", "set $exception = 9", "print crc32(0, 0)"];
    let text = gdb(CRASH, &commands);
    assert_eq!(text.matches("a recording").count(), 3, "{text}");
    assert!(text.contains(": there are 918") && text.contains(": there are 2"), "{text}");
    let text = gdb(CRASH, &["monitor goto", "monitor find", "monitor", "monitor nothing"]);
    // Prints the usage of the intended command, or of all.
    assert_eq!(text.matches("monitor goto N").count(), 3, "{text}");
    assert_eq!(text.matches("monitor find FUNCTION").count(), 3, "{text}");
}

/// To leave a function backwards, GDB sets a breakpoint at its first instruction; a vector table is entered
/// in its middle.
#[test]
#[ignore = "needs gdb-multiarch"]
fn leaving_a_vector_backwards_stops_where_the_exception_entered_it() {
    let a53 = super::Recording { example: "a53-etmv4", elf: "a9.elf", at: "first" };
    let at = ["set $exception = 2", "reverse-finish", super::PC, "p $exception", "reverse-stepi", super::PC];
    let next = ["set $exception = 2", "finish", "stepi", "reverse-next", "p $exception"];
    let text = gdb(a53, &[&at[..], &next].concat());
    let [vector, interrupted] = *marked(&text).as_slice() else { panic!("{text}") };
    assert_eq!(vector, 0x6000_0018, "{text}");
    assert_eq!(interrupted & !0xfff, 0x6000_0000, "{text}");
    assert!(!text.contains("reverse-execution"), "{text}");
    assert!(text.contains("$1 = 2") && text.contains("$2 = 2"), "{text}");
}
