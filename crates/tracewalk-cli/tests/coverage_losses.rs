//! `coverage --fail-on loss`, and what reports state of lost trace and of runs that were merged.

use std::path::Path;

use serde_json::Value;
use tracewalk::protocol::etmv3::{Config, Core, Registers};
use tracewalk_generate::etmv3;

use crate::support::firmware::Firmware;
use crate::support::{
    Folder, Outcome, copied_example, example, mentions, run_with_kinds, tracewalk, with_kinds,
};

const M3: [&str; 4] = ["--container", "frames", "--source", "0x10=etmv3,cpu=cortex-m3"];

/// A copy of the M3's example without the last bytes of its trace; returns the description.
fn cut_example(folder: &Folder, cut: usize) -> String {
    let description = copied_example("m3-etmv3", folder.0.path());
    let bytes = std::fs::read(example("m3-etmv3/trace.bin")).unwrap();
    std::fs::write(folder.file("trace.bin"), &bytes[..bytes.len() - cut]).unwrap();
    description
}

fn coverage(arguments: &[&str]) -> Outcome {
    run_with_kinds(["coverage", "--quiet"].iter().chain(arguments))
}

/// The status without and with `--fail-on loss`, and the error of the latter.
fn checked(arguments: &[&str]) -> (i32, i32, String) {
    let without = coverage(arguments);
    let with = coverage(&[arguments, &["--fail-on", "loss"]].concat());
    assert_eq!(without.stdout, with.stdout, "the report is the same");
    let error = with.stderr.lines().find(|line| line.starts_with("error: ")).unwrap_or_default().to_owned();
    (without.status, with.status, error)
}

/// The losses of the only source in a document.
fn losses(arguments: &[&str]) -> Value {
    let outcome = coverage(&[arguments, &["--format", "json"]].concat());
    let document = serde_json::from_str::<Value>(&outcome.stdout).unwrap();
    document["programs"][0]["sources"][0]["losses"].clone()
}

#[test]
fn a_trace_without_losses_passes() {
    let folder = Folder::new();
    let (capture, saved) = (example("m3-etmv3/capture.toml"), folder.file("m3.twcov"));
    let (capture, elf) = (capture.to_str().unwrap(), example("m3-etmv3/m3.elf"));
    assert_eq!(checked(&[capture]), (0, 0, String::new()));
    assert_eq!(coverage(&[capture, "--save", &saved, "--fail-on", "loss"]).status, 0);
    assert_eq!(checked(&[&saved, "--image", elf.to_str().unwrap()]), (0, 0, String::new()));
}

/// The trace unit of a generated trace overflows after each 300 steps.
#[test]
fn overflows_fail_the_check_on_captures_and_on_saved_files() {
    let folder = Folder::new();
    let firmware = Firmware::load("rev-old");
    let registers = Registers { etmcr: Some(0), etmidr: None, etmccer: None, etmtraceidr: None };
    let config = Config::from_registers(registers, Core::named("cortex-m3")).unwrap();
    let pauses = Some("300:40:overflow".parse().unwrap());
    let options = etmv3::Options { pauses, ..etmv3::Options::default() };
    let trace = etmv3::encode(&firmware.path, &firmware.elf.program, &config, &options).unwrap();
    let (file, saved) = (folder.file("trace.bin"), folder.file("run.twcov"));
    std::fs::write(&file, trace.bytes).unwrap();
    let image = ["--image", firmware.file.to_str().unwrap()];
    let source = ["--container", "raw", "--source", "etmv3,cpu=cortex-m3,etmcr=0x0"];
    let capture = [&[file.as_str()][..], &source, &image].concat();
    let overflows = losses(&capture)["overflows"].as_u64().unwrap();
    assert!(overflows > 0, "the program has more than 340 steps");
    let (without, with, error) = checked(&capture);
    assert_eq!((without, with), (0, 1));
    assert!(mentions(&error, &format!("unmet trace.bin {overflows}")), "{error}");
    // Nothing but the file is written, and the check fails all the same.
    let outcome = coverage(&[&capture[..], &["--save", &saved, "--fail-on", "loss"]].concat());
    assert_eq!((outcome.status, outcome.stdout.as_str()), (1, ""), "{}", outcome.stderr);
    let (without, with, of_saved) = checked(&[&[saved.as_str()], &image[..]].concat());
    assert_eq!((without, with, of_saved), (0, 1, error));
}

#[test]
fn damage_fails_the_check_before_anything_else() {
    let folder = Folder::new();
    let mut bytes = std::fs::read(example("m3-etmv3/trace.bin")).unwrap();
    bytes[2048..2064].fill(0x5a);
    let (damaged, saved) = (folder.file("damaged.bin"), folder.file("damaged.twcov"));
    std::fs::write(&damaged, bytes).unwrap();
    let elf = example("m3-etmv3/m3.elf");
    let image = ["--image", elf.to_str().unwrap()];
    let capture = [&[damaged.as_str()], &M3[..], &image].concat();
    let (without, with, error) = checked(&capture);
    assert_eq!((without, with), (2, 1), "{error}");
    assert_eq!(coverage(&[&capture[..], &["--save", &saved]].concat()).status, 2);
    let (without, with, of_saved) = checked(&[&[saved.as_str()], &image[..]].concat());
    assert_eq!((without, with, of_saved), (0, 1, error));
    // Of several runs only the one with losses is named.
    let sound = example("m3-etmv3/capture.toml");
    let (_, with, error) = checked(&[&saved, sound.to_str().unwrap()]);
    assert_eq!((with, error.matches("trace ID").count()), (1, 0), "{error}");
    assert!(error.contains("damaged.bin") && !error.contains("capture.toml"), "{error}");
}

/// A buffer's file holds whole frames of 16 bytes. With 100 bytes less, 12 are left of the last one, and no packet is cut.
#[test]
fn a_buffer_whose_file_is_cut_off_fails_the_check_however_it_arrives() {
    let folder = Folder::new();
    let description = cut_example(&folder, 100);
    let (trace, saved, elf) = (folder.file("trace.bin"), folder.file("cut.twcov"), folder.file("m3.elf"));
    let image = ["--image", elf.as_str()];
    let capture = [&[trace.as_str()], &M3[..], &image].concat();
    for arguments in [&[description.as_str()][..], &capture] {
        let (without, with, error) = checked(arguments);
        assert_eq!((without, with), (0, 1), "{error}");
        assert_eq!(losses(arguments)["cut_frame_bytes"], 12);
    }
    assert_eq!(coverage(&[&description, "--save", &saved]).status, 0);
    let (without, with, _) = checked(&[&[saved.as_str()], &image[..]].concat());
    assert_eq!((without, with), (0, 1));
    let piped = [&["coverage", "-"], &M3[..], &image, &["--fail-on", "loss", "--messages", "json"]].concat();
    let output = tracewalk().args(piped).write_stdin(std::fs::read(&trace).unwrap()).output().unwrap();
    let stderr = with_kinds(&String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(mentions(&stderr, "unmet 12"), "{stderr}");
    assert!(losses(&[example("m3-etmv3/capture.toml").to_str().unwrap()]).get("cut_frame_bytes").is_none());
}

#[test]
fn if_nothing_was_measured_no_check_holds_and_no_pattern_is_blamed() {
    let elf = example("m0-crash-mtb/m0-crash.elf");
    let trace = example("m3-etmv3/trace.bin");
    let image = ["--image", elf.to_str().unwrap()];
    for check in [&["--fail-under", "lines=80,branches=1"][..], &["--fail-on", "loss"]] {
        let outcome = coverage(&[&[trace.to_str().unwrap()], &M3[..], &image, check].concat());
        let error = outcome.stderr.lines().find(|line| line.starts_with("error: unmet")).unwrap();
        assert_eq!(outcome.status, 1, "{}", outcome.stderr);
        assert!(!error.contains("--include") && !error.contains("80"), "{error}");
    }
}

/// Two boards save a capture of the same name. Each trace begins once, and no tracing was switched off.
#[test]
fn runs_of_one_name_have_names_of_their_own_and_each_begins_once() {
    let folder = Folder::new();
    let [all, backwards] = ["all.twcov", "backwards.twcov"].map(|name| folder.file(name));
    for board in ["one", "two"] {
        let own = folder.0.path().join(board);
        std::fs::create_dir(&own).unwrap();
        copied_example("m3-etmv3", &own);
        let save = ["coverage", "-q", "capture.toml", "--save"];
        let saved = folder.file(&format!("{board}.twcov"));
        let status = tracewalk().current_dir(&own).args(save).arg(&saved).output().unwrap().status;
        assert_eq!(status.code(), Some(0));
    }
    let elf = example("m3-etmv3/m3.elf");
    let image = ["--image", elf.to_str().unwrap()];
    let in_folder = |arguments: &[&str]| {
        let output = tracewalk().current_dir(folder.0.path()).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    in_folder(&["coverage", "one.twcov", "two.twcov", "--save", &all]);
    in_folder(&["coverage", "two.twcov", "one.twcov", "--save", &backwards]);
    assert_eq!(std::fs::read(&all).unwrap(), std::fs::read(&backwards).unwrap());
    for inputs in [&["one.twcov", "two.twcov"][..], &["two.twcov", "one.twcov"], &[all.as_str()]] {
        let report =
            |format: &str| in_folder(&[&["coverage", "-q"], inputs, &image, &["--format", format]].concat());
        let document = serde_json::from_str::<Value>(&report("json")).unwrap();
        let sources = document["programs"][0]["sources"].as_array().unwrap();
        let captures = sources.iter().map(|source| source["capture"].as_str().unwrap()).collect::<Vec<_>>();
        assert_eq!(captures, ["one.twcov: capture.toml", "two.twcov: capture.toml"]);
        let text = report("text");
        let note = text.lines().find(|line| line.starts_with("not traced")).unwrap();
        assert!(mentions(note, "2") && !note.contains("in between"), "{note}");
    }
    // A capture that was followed keeps its name, and the saved one gets another.
    let both = [&["coverage", "-q", "one/capture.toml", "one.twcov"][..], &["--format", "json"]].concat();
    let document = serde_json::from_str::<Value>(&in_folder(&both)).unwrap();
    assert_eq!(document["programs"][0]["sources"][0]["capture"], "capture.toml");
    assert_eq!(document["programs"][0]["sources"][1]["capture"], "one/capture.toml");
    assert!(Path::new(&all).is_file());
}
