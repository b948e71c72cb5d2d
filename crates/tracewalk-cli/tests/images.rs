//! Programs in Intel HEX and S-records, as objcopy writes them: followed like the ELF file, and refused if damaged.

use std::path::{Path, PathBuf};

use crate::support::{Outcome, copied_example, example, run_with_kinds, run_with_notices};

const RECORDS: [&str; 2] = ["m0-crash.hex", "m0-crash.srec"];

fn image(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/images").join(name)
}

fn arguments(image: &str) -> Vec<String> {
    let (trace, registers) = (example("m0-crash-mtb/trace.bin"), example("m0-crash-mtb/registers.txt"));
    let [trace, registers] = [trace, registers].map(|path| path.to_str().unwrap().to_owned());
    let options = ["--image", image, "--format", "runs", "--color", "never"].map(str::to_owned);
    [vec!["flow".to_owned(), trace, "--registers".to_owned(), registers], options.to_vec()].concat()
}

/// `flow --format runs` of the example with this `--image` value.
fn flow(image: &str) -> Outcome {
    run_with_kinds(arguments(image).iter())
}

#[test]
fn records_are_followed_as_the_elf_file_is() {
    let expected = std::fs::read_to_string(example("m0-crash-mtb/runs.txt")).unwrap();
    for name in RECORDS {
        let path = image(name);
        let found = flow(path.to_str().unwrap());
        assert_eq!((found.status, found.stdout.as_str()), (0, expected.as_str()), "{name}: {}", found.stderr);
    }
}

/// objcopy ends lines with CR LF; PowerShell writes UTF-16 with a byte order mark.
#[test]
fn records_have_any_ends_of_lines_and_letters_of_16_bits() {
    let directory = tempfile::tempdir().unwrap();
    let expected = std::fs::read_to_string(example("m0-crash-mtb/runs.txt")).unwrap();
    for name in RECORDS {
        let text = std::fs::read_to_string(image(name)).unwrap();
        let dos = text.replace('\n', "\r\n");
        let wide = format!("\u{feff}{dos}").encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
        for bytes in [dos.into_bytes(), text.to_lowercase().replace('s', "S").into_bytes(), wide] {
            let path = directory.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(flow(path.to_str().unwrap()).stdout, expected, "{name}");
        }
    }
}

#[test]
fn that_there_are_no_names_is_noted_where_no_elf_file_gives_them() {
    let hex = image("m0-crash.hex");
    let mut alone = arguments(hex.to_str().unwrap());
    alone.retain(|argument| argument != "runs" && argument != "--format");
    let notes = |arguments: &[String]| run_with_notices(arguments.iter()).1.has("no_names");
    assert!(notes(&alone));
    let elf = example("m0-crash-mtb/m0-crash.elf").to_str().unwrap().to_owned();
    assert!(!notes(&[alone, vec!["--image".to_owned(), elf]].concat()));
}

/// With a part of the program missing, flow would go wrong in the rest, so the image is refused.
#[test]
fn damaged_records_are_refused_with_their_line() {
    let directory = tempfile::tempdir().unwrap();
    for name in RECORDS {
        let text = std::fs::read_to_string(image(name)).unwrap();
        let lines = text.lines().collect::<Vec<_>>();
        let changed = |line: usize, from: &str, to: &str| {
            let mut lines = lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
            assert!(lines[line].contains(from), "{}", lines[line]);
            lines[line] = lines[line].replacen(from, to, 1);
            lines.join("\n")
        };
        let last = lines.len() - 1;
        let again = if name.ends_with(".hex") { ":0100C000003F" } else { "S10400C0003B" };
        let cases = [
            (changed(1, "00", "01"), Some(2)),
            (lines[..last].join("\n"), None),
            (text[..text.len() * 2 / 3].to_owned(), None),
            ([&lines[..last], &[again], &lines[last..]].concat().join("\n"), Some(last + 1)),
            (changed(5, &lines[5][..1], "x"), Some(6)),
        ];
        for (case, (text, line)) in cases.iter().enumerate() {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            let found = flow(path.to_str().unwrap());
            assert_eq!((found.status, found.stdout.as_str()), (2, ""), "{name} {case}");
            if let Some(line) = line {
                assert!(
                    found.stderr.contains(&format!("{name}:{line}: ")),
                    "{name} {case}: {}",
                    found.stderr
                );
            }
        }
        let placed = flow(&format!("0x0:{}", image(name).display()));
        assert_eq!((placed.status, placed.stdout.as_str()), (2, ""), "{name}: {}", placed.stderr);
    }
}

/// If source lines were requested and cannot be shown, tracewalk reports it, once for all files.
#[test]
fn source_lines_that_are_not_there_are_noted_once() {
    let directory = tempfile::tempdir().unwrap();
    let capture = copied_example("m3-etmv3", directory.path());
    let notes = |more: &[&str]| {
        let (outcome, kinds) = run_with_notices(["flow", &capture].iter().chain(more));
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        let count = |kind: &str| kinds.0.iter().filter(|one| *one == kind).count();
        (count("sources_missing"), count("no_lines"))
    };
    let sources = example("../firmware").display().to_string();
    assert_eq!(notes(&["--src-lines"]), (1, 0));
    assert_eq!(notes(&[]), (0, 0));
    assert_eq!(notes(&["--src-lines", "--format", "runs"]), (0, 0));
    let found = notes(&["--src-lines", "--src-dir", &sources]);
    let some = format!("{sources}/m3");
    assert_eq!((found, notes(&["--src-lines", "--src-dir", &some])), ((0, 0), (1, 0)));
    // Without a program, `no_program` reports it already.
    let trace = directory.path().join("trace.bin").display().to_string();
    let kinds = run_with_notices(["flow", &trace, "--src-lines"]).1;
    assert!(kinds.has("no_program") && !kinds.has("no_lines"), "{kinds:?}");
    // The program without names, lines and sections.
    let elf = directory.path().join("m3.elf");
    let mut bytes = std::fs::read(&elf).unwrap();
    bytes[0x20..0x24].fill(0);
    bytes[0x30..0x34].fill(0);
    std::fs::write(&elf, bytes).unwrap();
    assert_eq!(notes(&["--src-lines"]), (0, 1));
    assert_eq!(notes(&[]), (0, 0));
}
