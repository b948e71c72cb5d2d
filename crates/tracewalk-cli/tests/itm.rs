//! ITM trace: in frames with instruction trace, and alone.

use std::path::Path;

use crate::support::{Outcome, corpus, example, mentions, run, run_with_notices};
use serde_json::Value;
use tracewalk::frame::FormatterOptions;
use tracewalk::ids::TraceId;
use tracewalk_generate::container::{SourceBytes, frames, itm_text};

fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn itm(file: &Path, options: &[&str]) -> Outcome {
    run(["itm", file.to_str().unwrap()].iter().chain(options))
}

/// The ITM and the ETM of this capture observe the same interrupt independently: the DWT traced its entry,
/// and the handler switched the ETM on.
#[tracewalk_corpus::test]
fn the_stm32f105_itm_and_etm_agree_on_when_the_timer_interrupted() {
    let (trace, elf) = (corpus("real/stm32f105/swo.bin"), corpus("real/stm32f105/trace_example.elf"));
    let arguments = ["flow", trace.to_str().unwrap(), "--image", elf.to_str().unwrap(), "--format", "jsonl"];
    let outcome = run(arguments);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let mut entries = 0;
    let mut entered = false;
    for object in objects(&outcome.stdout) {
        if object["event"] == "exception" && object["action"] == "entered" {
            // TIM2 is interrupt 28 of the STM32F105 (RM0008, table 61).
            assert_eq!(object["number"], 16 + 28);
            (entered, entries) = (true, entries + 1);
        } else if object["element"] == "trace_on" {
            assert!(std::mem::take(&mut entered), "{object}");
        }
    }
    assert_eq!(entries, 8);
    let text = itm(&trace, &[]);
    assert_eq!((text.status, text.stdout.as_str()), (0, "OnOffOnOffOnOffOnOffOnOff"), "{}", text.stderr);
    assert!(text.stderr.contains("inferred: --container frames --source 0x01=itm --source 0x02=etmv3"));
    let (counted, notices) = run_with_notices(["itm", trace.to_str().unwrap()]);
    assert!(
        notices.has("itm_overflow") && mentions(&counted.stderr, "14"),
        "{notices:?}: {}",
        counted.stderr
    );
    let info = run(["info", trace.to_str().unwrap()]).stdout;
    for line in [
        "trace ID 0x01, itm",
        "  inferred      protocol: itm (0 errors in 586 packets)\n                  not etmv3 (",
        "    exception                     16",
        "    pc_sample                    393",
        "  text          port 0: On",
    ] {
        assert!(info.contains(line), "{line:?} in {info}");
    }
    // Every sample is in the program's code.
    let samples = objects(&itm(&trace, &["--format", "jsonl"]).stdout);
    let samples = samples.iter().filter(|object| object["event"] == "pc_sample").collect::<Vec<_>>();
    assert_eq!(samples.len(), 393);
    let inside = |object: &&&Value| ("0x08000000".."0x0800036c").contains(&object["addr"].as_str().unwrap());
    assert_eq!(samples.iter().filter(inside).count(), 393);
}

#[test]
fn runs_stay_as_they_are_beside_an_itm() {
    let (trace, elf) = (example("m3-etmv3/trace.bin"), example("m3-etmv3/m3.elf"));
    let arguments = ["flow", trace.to_str().unwrap(), "--image", elf.to_str().unwrap(), "--format", "runs"];
    let outcome = run(arguments);
    assert_eq!(outcome.stdout, std::fs::read_to_string(example("m3-etmv3/runs.txt")).unwrap());
}

#[test]
fn an_itm_alone_is_recognised_in_frames_and_without() {
    let directory = tempfile::tempdir().unwrap();
    let text = "hello, world\nand good bye\n".repeat(20);
    let mut bytes = itm_text(&text);
    // SysTick is entered and left, and thread mode resumes, with times.
    bytes.extend([0x0e, 15, 0x10, 0xc0, 0x88, 0x01, 0x0e, 15, 0x20, 0x30, 0x0e, 0, 0x30, 0x60]);
    let raw = directory.path().join("swo.bin");
    std::fs::write(&raw, &bytes).unwrap();
    let framed = directory.path().join("tpiu.bin");
    let source = SourceBytes { id: TraceId::new(1).unwrap(), bytes };
    std::fs::write(&framed, frames(&[source], FormatterOptions::default())).unwrap();
    for (file, found) in
        [(&raw, "--container raw --source itm"), (&framed, "--container frames --source 0x01=itm")]
    {
        let outcome = itm(file, &[]);
        assert_eq!((outcome.status, &outcome.stdout), (0, &text), "{}", outcome.stderr);
        assert!(outcome.stderr.contains(&format!("inferred: {found}\n")), "{}", outcome.stderr);
        let strict = itm(file, &[&["--strict"], &found.split(' ').collect::<Vec<_>>()[..]].concat());
        assert_eq!((strict.status, &strict.stdout), (0, &text), "{}", strict.stderr);
        let events = itm(file, &["--format", "events"]).stdout;
        // Offset, trace ID, event.
        let last = events.lines().rev().take(6).map(|line| line[17..].to_owned()).collect::<Vec<_>>();
        assert_eq!(
            last,
            [
                "time +6 = 145",
                "thread mode returned to",
                "time +3 = 139",
                "SysTick exited",
                "time +136 = 136",
                "SysTick entered"
            ]
        );
        let info = run(["info", file.to_str().unwrap()]).stdout;
        assert!(info.contains("protocol: itm (0 errors in 526 packets)\n"), "{info}");
        assert!(info.contains("not etmv3 (no I-sync in 0 packets)\n"), "{info}");
        let flow = run(["flow", file.to_str().unwrap()]);
        assert_eq!(flow.status, 0, "{}", flow.stderr);
        assert!(flow.stdout.contains("ITM") && mentions(&flow.stderr, "tracewalk itm"));
        // SysTick ran from tick 136 to tick 139.
        let lengths = run(["interrupts", "--quiet", file.to_str().unwrap(), "--format", "csv"]);
        assert_eq!(lengths.status, 0, "{}", lengths.stderr);
        assert!(lengths.stdout.contains(",exception,15,,SysTick,ticks,1,0,0,0,1,3,3.000,3,3,"), "{}", lengths.stdout);
        // Commands that would have no rows refuse the capture.
        for command in ["packets", "calls", "coverage"] {
            let refused = run([command, file.to_str().unwrap()]);
            assert_eq!((refused.status, refused.stdout.as_str()), (2, ""), "{command}");
            assert!(mentions(&refused.stderr, "error: ITM `tracewalk itm`"), "{command}: {}", refused.stderr);
        }
    }
}

#[test]
fn what_an_itm_sent_stands_between_what_ran_when_it_did() {
    let (trace, elf) = (example("m3-etmv3/trace.bin"), example("m3-etmv3/m3.elf"));
    let flow = |options: &[&str]| {
        let arguments = ["flow", trace.to_str().unwrap(), "--image", elf.to_str().unwrap()];
        run(arguments.iter().chain(options))
    };
    let all = objects(&flow(&["--format", "jsonl"]).stdout);
    let found = all.iter().filter(|object| object["element"] == "itm").collect::<Vec<_>>();
    assert!(!found.is_empty());
    let mut offsets = all.iter().filter(|object| object["element"] == "itm" || object["element"] == "range");
    let mut last = 0;
    assert!(offsets.all(|object| {
        // Instructions that a packet proves may be reported one packet later.
        let offset = object["offset"].as_u64().unwrap();
        let in_order = offset + 64 > last;
        last = offset;
        in_order
    }));
    // With one source chosen, the other is left out.
    let one = flow(&["--format", "jsonl", "--id", "0x10"]);
    assert!(!one.stdout.contains("\"itm\""), "{}", one.stderr);
    let described = run(["describe", trace.to_str().unwrap()]);
    assert!(described.stdout.contains("protocol = \"itm\"\nid = 0x01\n"), "{}", described.stdout);
}

#[test]
fn a_capture_without_an_itm_and_damaged_ones_say_so() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("swo.bin");
    let mut bytes = itm_text(&"some text\n".repeat(30));
    bytes.splice(100..100, [0x04]);
    std::fs::write(&file, &bytes).unwrap();
    let outcome = itm(&file, &[]);
    assert_eq!(outcome.status, 2, "{}", outcome.stderr);
    assert_eq!(outcome.stdout, "some text\n".repeat(30));
    let (_, notices) = run_with_notices(["itm", file.to_str().unwrap()]);
    assert!(notices.has("itm_malformed"), "{notices:?}: {}", outcome.stderr);
    let none = itm(&example("a7-etmv3/trace.bin"), &["--id", "0x10"]);
    assert_eq!(none.status, 2);
    assert!(none.stderr.contains("no recognisable trace of an ITM"), "{}", none.stderr);
}

#[tracewalk_corpus::test]
fn what_an_itm_sent_between_the_last_instructions_is_shown() {
    let real = corpus("real/stm32f105");
    let (trace, elf) = (real.join("swo.bin"), real.join("trace_example.elf"));
    for format in ["text", "jsonl"] {
        let arguments =
            ["flow", trace.to_str().unwrap(), "--image", elf.to_str().unwrap(), "--format", format];
        let all = run(arguments).stdout;
        let last = run(arguments.iter().chain(&["--last", "300"])).stdout;
        let is_itm = |line: &&str| line.contains("ITM 0x01") || line.contains("\"itm\"");
        let found = last.lines().filter(is_itm).collect::<Vec<_>>();
        assert!(!found.is_empty(), "{last}");
        let expected = all.lines().filter(is_itm).collect::<Vec<_>>();
        assert!(expected.ends_with(&found) && found.len() < expected.len(), "{format}: {last}");
    }
}
