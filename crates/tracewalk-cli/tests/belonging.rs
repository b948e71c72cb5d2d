//! Options of one container, protocol or processor, given to a capture that has none of it: never lost in silence.

use std::fs;
use std::path::Path;

use crate::support::{example, mentions, run, run_with_kinds};

/// The one-sentence refusal of `tracewalk COMMAND CAPTURE OPTIONS`.
fn refused(command: &str, capture: &Path, options: &[&str]) -> String {
    let outcome = run_with_kinds([command, capture.to_str().unwrap()].iter().chain(options));
    let context = format!("{command} {} {options:?}: {}", capture.display(), outcome.stderr);
    assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""), "{context}");
    assert_eq!(outcome.stderr.lines().filter(|line| line.starts_with("error: ")).count(), 1, "{context}");
    outcome.stderr
}

#[test]
fn options_that_belong_elsewhere_are_refused_with_what_they_are_for() {
    let (etm, ptm, mtb) = (
        example("a7-etmv3/capture.toml"),
        example("a15-pft/trace.bin"),
        example("m0-crash-mtb/capture.toml"),
    );
    let bare_mtb = example("m0-crash-mtb/trace.bin");
    let registers = example("m0-crash-mtb/registers.txt");
    let registers = registers.to_str().unwrap();
    let frames = "--container frames --source 0x13=pft,cpu=cortex-a15";
    let cases: &[(&Path, &str, &str)] = &[
        (&etm, "--container frame-start=3", "frame start frame-start= --container frames"),
        (&ptm, &format!("{frames} --container frame-start=3"), "frames --container"),
        (&ptm, "--container raw,frame-start=3", "raw --container"),
        (&mtb, "--container frame-start=0", "mtb"),
        (&mtb, "--container read-pointer=0x10", "--container read-pointer frames raw"),
        (&mtb, "--container swap-words", "--container swap-words frames raw"),
        (&etm, "--source mtb,position=0x10", "--source mtb,position MTB frames"),
        (&etm, "--source mtb,master=0x10", "--source mtb,master MTB"),
        (&etm, "--source mtb,base=0x10", "--source mtb,base MTB"),
        (&etm, &format!("--registers {registers}"), "--registers MTB"),
        (&ptm, "--source 0x13=pft --source mtb,position=0", "--source mtb,position MTB"),
        (&etm, "--source mtb,pc=0x100", "--source mtb,pc MTB etmv3 cortex-a7"),
        (&etm, "--container address=0x20000000", "--container address MTB's"),
        (&etm, "--vtor 0x100", "--vtor etmv3 cortex-a7"),
        (&etm, "--wire uart", "recording_not_a_recording"),
        (&etm, "--wire baud=8000000", "recording_not_a_recording"),
        (&etm, "--channel a=swo", "recording_not_a_recording"),
        (&etm, "--idle 1", "--idle"),
        (&etm, "--follow", "description_grows"),
        (&bare_mtb, "--container mtb --source etmv3,cpu=cortex-m3", "--source is etmv3"),
    ];
    for (capture, options, expected) in cases {
        let options = options.split(' ').collect::<Vec<_>>();
        for command in ["info", "packets", "describe"] {
            let sentence = refused(command, capture, &options);
            assert!(mentions(&sentence, expected), "{expected} in {sentence}");
        }
    }
}

#[test]
fn options_stand_where_what_they_belong_to_is_found_out() {
    let (mtb, elf) = (example("m0-crash-mtb/trace.bin"), example("m0-crash-mtb/m0-crash.elf"));
    let options =
        ["--container", "mtb", "--source", "mtb,pc=0x100", "--vtor", "0", "--image", elf.to_str().unwrap()];
    let outcome = run(["flow", mtb.to_str().unwrap(), "--format", "runs"].iter().chain(&options));
    assert!(!outcome.stderr.contains("error:"), "{}", outcome.stderr);
    // Only a trace port has an option for the frames' start, so the option implies the port.
    let whole = fs::read(example("m3-etmv3/trace.bin")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let cut = directory.path().join("cut.bin");
    fs::write(&cut, &whole[5..]).unwrap();
    let packets = |options: &[&str]| {
        run(["packets", cut.to_str().unwrap(), "--format", "jsonl", "--source", "0x10=etmv3,cpu=cortex-m3"]
            .iter()
            .chain(options))
    };
    let said = packets(&["--container", "tpiu,frame-start=11"]);
    let short = packets(&["--container", "frame-start=11"]);
    assert_eq!((short.status, &short.stdout), (said.status, &said.stdout), "{}", short.stderr);
    assert!(short.stdout.lines().count() > 100, "{}", short.stderr);
}

#[test]
fn the_names_of_interrupts_of_a_chip_without_any_are_reported_as_of_no_use() {
    let directory = tempfile::tempdir().unwrap();
    let svd = directory.path().join("chip.svd");
    let text = "<device><peripherals><peripheral><interrupt><name>TIM2</name><value>28</value></interrupt>\
                </peripheral></peripherals></device>";
    fs::write(&svd, text).unwrap();
    let outcome = |name: &str| {
        run_with_kinds(["info", example(name).to_str().unwrap(), "--svd", svd.to_str().unwrap()])
    };
    let a_profile = outcome("a7-etmv3");
    assert!(a_profile.stderr.contains("interrupts_unused"), "{}", a_profile.stderr);
    let m_profile = outcome("m3-etmv3");
    assert!(!m_profile.stderr.contains("warning"), "{}", m_profile.stderr);
}

#[test]
fn the_registers_of_another_protocol_are_refused_or_left_out() {
    let trace = example("a7-etmv3/trace.bin");
    let sentence = run(["info", trace.to_str().unwrap(), "--source", "0x10=etmv3,mtb_position=0"]).stderr;
    assert!(sentence.contains("unknown key `mtb_position` in the source of etmv3"), "{sentence}");
    let directory = tempfile::tempdir().unwrap();
    fs::copy(&trace, directory.path().join("trace.bin")).unwrap();
    let description = directory.path().join("capture.toml");
    let text = "[capture]\nfile = \"trace.bin\"\n[[source]]\nprotocol = \"etmv3\"\nregisters = { mtb_position = 0 }\n";
    fs::write(&description, text).unwrap();
    let outcome = run_with_kinds([Path::new("info"), directory.path()]);
    assert!(mentions(&outcome.stderr, "entry_left_out :5 mtb_position etmv3"), "{}", outcome.stderr);
    // The rest is answered.
    assert_eq!((outcome.status, outcome.stdout.contains("etmv3")), (2, true));
}

#[test]
fn a_stimulus_port_that_nothing_was_written_to_is_reported_with_those_that_something_was() {
    let trace = example("m3-etmv3/trace.bin");
    let itm = |options: &[&str]| run(["itm", trace.to_str().unwrap()].iter().chain(options));
    let text = itm(&[]);
    assert_eq!((text.status, text.stdout.as_str()), (0, "a round of work; another one; the last one"));
    let other = itm(&["--port", "99"]);
    assert_eq!((other.status, other.stdout.as_str()), (2, ""), "{}", other.stderr);
    let reported = "99 0 42 --port";
    assert!(mentions(&other.stderr, reported), "{}", other.stderr);
    let both = itm(&["--port", "0", "--port", "1", "--port", "7"]);
    assert_eq!((both.status, &both.stdout), (2, &text.stdout), "{}", both.stderr);
    assert!(mentions(&both.stderr, "1 7 0"), "{}", both.stderr);
    for impossible in ["256", "-1", "1000", "x"] {
        let outcome = itm(&[&format!("--port={impossible}")]);
        assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""), "{}", outcome.stderr);
    }
    let format = itm(&["--port", "0", "--format", "events"]);
    assert_eq!((format.status, format.stdout.as_str()), (2, ""));
    assert!(format.stderr.contains("--port is for --format text"), "{}", format.stderr);
    // Without the option tracewalk reports that there is more, which is no error.
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("swo.bin");
    let port_3 = "text\n".bytes().flat_map(|byte| [0x19, byte]).collect::<Vec<_>>();
    fs::write(&file, port_3.repeat(40)).unwrap();
    let outcome = run(["itm", file.to_str().unwrap(), "--container", "raw", "--source", "itm"]);
    assert_eq!((outcome.status, outcome.stdout.as_str()), (0, ""), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("only to 3 (200 bytes); choose with --port"), "{}", outcome.stderr);
}
