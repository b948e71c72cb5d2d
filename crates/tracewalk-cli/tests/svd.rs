//! Interrupts by the chip maker's names.

use std::path::PathBuf;

use crate::support::{example, mentions, run, run_with_kinds};

/// A description with these interrupts.
fn svd(directory: &tempfile::TempDir, interrupts: &[(&str, &str)]) -> PathBuf {
    let interrupt =
        |(name, value)| format!("<interrupt><name>{name}</name><value>{value}</value></interrupt>");
    let interrupts = interrupts.iter().copied().map(interrupt).collect::<String>();
    let text = format!(
        "<device><peripherals>\n<peripheral><name>A</name>{interrupts}</peripheral>\n\
         <peripheral derivedFrom=\"A\"><name>B</name></peripheral>\n</peripherals></device>\n"
    );
    let path = directory.path().join("chip.svd");
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn interrupts_of_an_etm_are_named_in_text_and_objects() {
    let directory = tempfile::tempdir().unwrap();
    let svd = svd(&directory, &[("UART0", "0"), ("TIMER0", "3")]);
    let capture = example("m3-etmv3/capture.toml");
    let shown = |command: &str, options: &[&str]| {
        let arguments =
            [command, capture.to_str().unwrap(), "--svd", svd.to_str().unwrap(), "--color", "never"];
        let outcome = run(arguments.iter().chain(options));
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        outcome.stdout
    };
    // The record has IRQ0 three times, IRQ3 three times, and IRQ20 nine times.
    for (command, mark) in [("flow", "──"), ("calls", "▸")] {
        let text = shown(command, &[]);
        let count = |name: &str| {
            let start = format!("{mark} {name}");
            text.lines().filter(|line| line.trim_start().starts_with(&start)).count()
        };
        let counts = [count("UART0 (IRQ0)"), count("TIMER0 (IRQ3)"), count("IRQ20"), count("IRQ0")];
        assert_eq!(counts, [3, 3, 9, 0], "{command}");
    }
    let objects = shown("flow", &["--format", "jsonl"]);
    let name = |line: &str| -> Option<(u64, String)> {
        let object: serde_json::Value = serde_json::from_str(line).unwrap();
        Some((object["number"].as_u64()?, object["name"].as_str()?.to_owned()))
    };
    let mut names = objects.lines().filter_map(name).collect::<Vec<_>>();
    names.sort();
    names.dedup();
    let expected =
        [(11, "SVCall"), (14, "PendSV"), (15, "SysTick"), (16, "UART0"), (19, "TIMER0"), (36, "IRQ20")];
    assert_eq!(names, expected.map(|(number, name)| (number, name.to_owned())));
    // The line format for programs has only numbers.
    assert_eq!(
        shown("flow", &["--format", "runs"]),
        std::fs::read_to_string(example("m3-etmv3/runs.txt")).unwrap()
    );
}

#[test]
fn interrupts_of_an_mtb_are_named_by_the_vector_table() {
    let directory = tempfile::tempdir().unwrap();
    let svd = svd(&directory, &[("UART0", "5")]);
    // A table that gives the handler at 0x154 to IRQ5.
    let table = directory.path().join("table.bin");
    let word = |index: u32| if index == 16 + 5 { 0x155_u32 } else { 0 };
    std::fs::write(&table, (0..32).flat_map(|index| word(index).to_le_bytes()).collect::<Vec<_>>()).unwrap();
    let capture = example("m0-crash-mtb/capture.toml");
    let image = format!("0x1000:{}", table.display());
    let arguments = ["flow", capture.to_str().unwrap(), "--image", &image, "--vtor", "0x1000"];
    let svd = ["--svd", svd.to_str().unwrap(), "--color", "never"];
    let outcome = run(arguments.iter().chain(&svd));
    assert!(
        outcome.stdout.contains("── UART0 (IRQ5), returns to 0x00000268 <crc32+0x14> "),
        "{}",
        outcome.stdout
    );
}

#[test]
fn a_description_that_cannot_be_used_is_refused_in_one_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let capture = example("m3-etmv3/capture.toml");
    let path = directory.path().join("chip.svd");
    let flow = |text: &[u8]| {
        std::fs::write(&path, text).unwrap();
        run_with_kinds([
            "flow",
            capture.to_str().unwrap(),
            "--svd",
            path.to_str().unwrap(),
            "--format",
            "none",
        ])
    };
    let cases: [(&[u8], &str); 5] = [
        (b"", "not a CMSIS-SVD file, expected `<device>`; give the chip's CMSIS-SVD file with --svd"),
        (b"<package/>", "not a CMSIS-SVD file, expected `<device>`, found `<package>`"),
        (b"<device><peripherals>", "chip.svd:1"),
        (b"<device></device>", "svd_no_interrupt"),
        (b"\x7fELF\x01\x01\x01", "not a CMSIS-SVD file"),
    ];
    for (text, message) in cases {
        let outcome = flow(text);
        assert_eq!((outcome.status, outcome.stderr.lines().count()), (2, 1), "{}", outcome.stderr);
        assert!(
            outcome.stderr.starts_with("error: ") && mentions(&outcome.stderr, message),
            "{}",
            outcome.stderr
        );
    }
    let broken = svd(&directory, &[("UART0", "0"), ("CORE", "-1")]);
    let outcome =
        run(["flow", capture.to_str().unwrap(), "--svd", broken.to_str().unwrap(), "--format", "none"]);
    assert_eq!(outcome.status, 0);
    let warning = "chip.svd:2 0 479 -1";
    assert!(
        outcome.stderr.starts_with("warning: ") && mentions(&outcome.stderr, warning),
        "{}",
        outcome.stderr
    );
}
