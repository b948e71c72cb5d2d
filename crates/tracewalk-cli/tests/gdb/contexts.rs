//! The contexts of a core as threads: each stands at its last instruction, and its steps pass over the other
//! contexts.

use super::{A57, PC, Recording, STEP, gdb, marked, stock_gdb};
use crate::contexts::{ALL, CONTEXT_IDS, ETM, Machine};
use crate::support::{example, run};

/// A stretch of `flow`: its steps, its context, and its last instruction.
struct Stretch {
    start: u64,
    end: u64,
    context: u64,
    last: u64,
}

/// The stretches of execution by context, from `flow`.
fn stretches() -> Vec<Stretch> {
    let capture = example(A57.example).join("capture.toml");
    let flow = run(["flow".as_ref(), "--quiet".as_ref(), "--format=jsonl".as_ref(), capture.as_os_str()]);
    let (mut all, mut step, mut context) = (Vec::new(), 0, 0);
    for line in flow.stdout.lines() {
        let element: serde_json::Value = serde_json::from_str(line).unwrap();
        let address = |field: &str| {
            let text = element[field].as_str().unwrap();
            u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
        };
        let mut steps = 1;
        match element["element"].as_str().unwrap() {
            "range" => {
                steps = element["instructions"].as_u64().unwrap();
                let last = address("end") - 4;
                all.push(Stretch { start: step, end: step + steps, context, last });
            }
            "context" => context = element["context_id"].as_u64().unwrap_or(context),
            _ => {}
        }
        step += steps;
    }
    all
}

/// The thread of a context in the output of `info threads`.
fn thread_of(text: &str, context: u64) -> &str {
    let name = format!("context 0x{context:x},");
    // The first thread is the core's.
    let line = text.lines().find(|line| line.contains(&name) && !line.contains(" Thread 1 "));
    let line = line.unwrap_or_else(|| panic!("{name} {text}"));
    line.trim_start_matches('*').split_whitespace().next().unwrap()
}

#[test]
#[ignore = "needs gdb-multiarch"]
fn each_context_is_a_thread_that_stands_where_it_ran_last_and_steps_pass_the_others() {
    const AT: u64 = 20_000;
    let stretches = stretches();
    let now = stretches.iter().find(|stretch| (stretch.start..stretch.end).contains(&AT)).unwrap().context;
    let others = stretches.iter().filter(|stretch| stretch.end <= AT && stretch.context != now);
    let others = others.map(|stretch| stretch.context).collect::<std::collections::BTreeSet<_>>();
    assert!(others.len() > 1);
    let jump = format!("set $step = {AT}");
    let text = gdb(A57, &[&jump, "info threads"]);
    for context in others {
        let select = format!("thread {}", thread_of(&text, context));
        let of_it = || stretches.iter().filter(|stretch| stretch.context == context);
        let last = of_it().rfind(|stretch| stretch.end <= AT).unwrap();
        let is_current = format!("[Current {}", select.replace("thread", "thread is"));
        let waits = [&*jump, "info threads", &select, PC, STEP, "monitor bt"];
        let back = ["reverse-stepi", PC, STEP, "thread"];
        let text = gdb(A57, &[&waits[..], &back].concat());
        assert_eq!(marked(&text), [last.last, last.end - 1].repeat(2), "{text}");
        let innermost = text.lines().find(|line| line.starts_with("#0  ")).unwrap();
        assert!(innermost.contains(&format!("{:x}", last.last)), "{innermost}");
        assert!(text.contains(&is_current), "{text}");
        // Not all contexts run again.
        let Some(next) = of_it().find(|stretch| stretch.start > AT) else { continue };
        let forward = ["stepi", STEP, "thread"];
        let text = gdb(A57, &[&waits[..], &forward].concat());
        assert_eq!(marked(&text), [last.last, last.end - 1, next.start], "{text}");
        assert!(text.contains(&is_current), "{text}");
    }
}

#[test]
#[ignore = "needs gdb-multiarch"]
fn finish_and_back_stay_in_the_thread_of_a_context() {
    let text = gdb(A57, &["set $step = 20000", "info threads"]);
    let select = format!("thread {}", thread_of(&text, 0x2_0000));
    let commands =
        ["set $step = 20000", "info threads", &select, "finish", STEP, "reverse-finish", STEP, "thread"];
    let text = gdb(A57, &commands);
    let [finished, called] = *marked(&text).as_slice() else { panic!("{text}") };
    assert!(called < 20_000 && 20_000 < finished, "{text}");
    assert!(text.contains(&format!("[Current {}", select.replace("thread", "thread is"))), "{text}");
}

#[test]
#[ignore = "needs gdb-multiarch"]
fn a_context_has_no_step_beyond_its_last_one_in_either_direction() {
    let last = Recording { at: "last", ..A57 };
    let text = gdb(last, &["info threads"]);
    let running = text.lines().find(|line| line.contains(", running")).unwrap();
    let select = format!("thread {}", running.trim_start_matches('*').split_whitespace().next().unwrap());
    let text = gdb(last, &["info threads", &select, STEP, "stepi", STEP]);
    let [before, after] = *marked(&text).as_slice() else { panic!("{text}") };
    assert_eq!((before, text.matches("reverse-execution").count()), (after, 1), "{text}");
    // Nor does a thread step back from its first step. Contexts that run later are not listed there.
    let first = stretches();
    let own = first.iter().find(|stretch| stretch.context == 0x2_0001).unwrap().start;
    let jump = format!("set $step = {own}");
    let text = gdb(A57, &[&jump, "info threads"]);
    assert_eq!(text.matches("context 0x20002,").count(), 0, "{text}");
    let select = format!("thread {}", thread_of(&text, 0x2_0001));
    let text = gdb(A57, &[&jump, "info threads", &select, "reverse-stepi", STEP]);
    assert_eq!((marked(&text), text.matches("reverse-execution").count()), (vec![own], 1), "{text}");
}

#[test]
#[ignore = "needs gdb-multiarch"]
fn a_contexts_memory_is_its_own_programs() {
    let machine = Machine::new("etmv3", CONTEXT_IDS);
    let server = assert_cmd::cargo::cargo_bin!("tracewalk");
    let images = ALL.map(|image| format!("--image {}", machine.file(image).display())).join(" ");
    let connect = format!(
        "target remote | {} --quiet gdb {} {images} {} --listen - --cache none",
        server.display(),
        machine.file("etb.bin").display(),
        ETM.join(" "),
    );
    let elf = machine.file("switch_to.elf");
    let text = stock_gdb(elf.to_str(), [&*connect, "info threads"]);
    let code = "printf \"\\n@%x\\n\", *(unsigned int *) 0x8000";
    let select = [0x42, 0x43].map(|context| format!("thread {}", thread_of(&text, context)));
    let commands = [&*connect, "info threads", &select[0], code, &select[1], code];
    let text = stock_gdb(elf.to_str(), commands);
    assert_eq!(marked(&text), [0xe250_0001, 0xe1a0_0000], "{text}");
}
