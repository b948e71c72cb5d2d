//! `record` and `crash --gdb` with simulated chips, whose trace units yield nothing unless they are set up in the right order.

use std::io::Read as _;
use std::path::Path;

use serde_json::Value;

use crate::support::chip::{Chip, cases, shared, strings};
use crate::support::{example, run};

fn text<'a>(case: &'a Value, key: &str) -> &'a str {
    case[key].as_str().expect("text")
}

/// A right recording's runs, for chips with the same program; `None` if there is none.
fn expected(chip: &str) -> Option<Vec<String>> {
    let chip = if chip == "m7-etm4-tmc" { "m3-etm-etb" } else { chip };
    let file = std::fs::File::open(shared(&format!("corpus/record/expected/{chip}.runs.txt.gz"))).ok()?;
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("text");
    let runs = text.lines().filter(|line| line.starts_with("R ")).map(str::to_owned).collect();
    Some(runs)
}

fn record(chip: &Chip, folder: &Path, options: &[&str]) -> (i32, String) {
    let port = format!(":{}", chip.port);
    let (image, folder) = (chip.elf.to_str().expect("a plain name"), folder.to_str().expect("a plain name"));
    let arguments = ["record", "--messages", "json", "--gdb", &port, "--image", image, "-o", folder];
    let outcome = run(arguments.iter().chain(options));
    (outcome.status, outcome.stderr)
}

#[tracewalk_corpus::test]
fn a_recording_opens_without_an_option_and_shows_what_ran() {
    for case in cases("record") {
        let name = text(&case, "name");
        let chip = Chip::new(text(&case, "chip"), text(&case, "program"), &strings(&case["sim"]));
        let folder = tempfile::tempdir().expect("room for a folder");
        let until = ["--until", text(&case, "until")];
        let (status, messages) = record(&chip, folder.path(), &[&until, &strings(&case["args"])[..]].concat());
        assert_eq!(status, 0, "{name}: {messages}");
        let flow = run(["flow", "--quiet", "--format", "runs", folder.path().to_str().expect("a plain name")]);
        assert_eq!(flow.status, 0, "{name}: {}", flow.stderr);
        let runs = flow.stdout.lines().filter(|line| line.starts_with("R ")).collect::<Vec<_>>();
        let least = usize::try_from(case["items"].as_u64().expect("a number")).expect("a small number");
        assert!(flow.stdout.lines().count() >= least, "{name}: {}", runs.len());
        // A branch trace cannot show how the first stretch began, nor where the last one ended.
        let inner = &runs[1..runs.len() - 1];
        let Some(expected) = expected(text(&case, "chip")) else { continue };
        let is_there = expected.windows(inner.len()).any(|window| window.iter().eq(inner));
        // The whole run of the smallest chip is not recorded.
        assert!(is_there || name == "m0plus-mtb-report", "{name}");
    }
}

#[tracewalk_corpus::test]
fn a_chip_that_cannot_be_recorded_is_refused_without_a_recording() {
    for case in cases("refuse") {
        let chip = Chip::new(text(&case, "chip"), text(&case, "program"), &[]);
        let folder = tempfile::tempdir().expect("room for a folder");
        let (status, messages) = record(&chip, folder.path(), &["--until", text(&case, "until")]);
        assert_eq!(status, 2, "{messages}");
        assert!(messages.contains("\"kind\":\"no_trace_buffer\""), "{messages}");
        assert!(!folder.path().join("capture.toml").exists());
    }
}

#[tracewalk_corpus::test]
fn what_would_be_written_is_printed_without_setting_anything_up() {
    let chip = Chip::new("m3-etm-etb", "gauge-m3", &[]);
    let port = format!(":{}", chip.port);
    let outcome = run(["record", "--gdb", &port, "--dry-run"]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let line = |register: &str| outcome.stdout.lines().position(|line| line.contains(register)).expect(register);
    assert!(line("RWP") < line("ETMTECR1") && line("ETMTECR1") < line("after it has stopped"), "{}", outcome.stdout);
    let (state, log) = chip.state();
    assert!(state["halted"] == true && !log.lines().any(|line| line.starts_with("w ")), "{log}");
}

#[tracewalk_corpus::test]
fn a_target_is_reset_only_when_that_is_asked_for() {
    let chip = Chip::new("m3-etm-etb", "gauge-m3", &["--at", "report"]);
    let folder = tempfile::tempdir().expect("room for a folder");
    let (status, messages) = record(&chip, folder.path(), &["--until", "settle", "--reset"]);
    assert_eq!(status, 0, "{messages}");
    let (state, log) = chip.state();
    assert!(state["resets"] == 1 && state["halted"] == true, "{log}");
    assert!(!log.contains("lost"), "{log}");
}

#[tracewalk_corpus::test]
#[ignore = "needs GDB"]
fn gdb_records_the_same_with_the_script_that_is_printed() {
    for (name, program, buffer) in [
        ("m0plus-mtb", "gauge-m0", &["--buffer", "trace_buffer"][..]),
        ("m3-etm-etb", "gauge-m3", &[]),
        ("m7-etm4-tmc", "gauge-m3", &[]),
    ] {
        let recorded = {
            let chip = Chip::new(name, program, &[]);
            let folder = tempfile::tempdir().expect("room for a folder");
            let (status, messages) = record(&chip, folder.path(), &[&["--until", "test_done"], buffer].concat());
            assert_eq!(status, 0, "{name}: {messages}");
            std::fs::read(folder.path().join("trace.bin")).expect("a recording")
        };
        let chip = Chip::new(name, program, &[]);
        let (port, image) = (format!(":{}", chip.port), chip.elf.to_str().expect("a plain name"));
        let arguments = ["record", "--gdb", &port, "--image", image, "--script", "--until", "test_done"];
        let script = run(arguments.iter().chain(buffer));
        assert_eq!(script.status, 0, "{name}: {}", script.stderr);
        let folder = tempfile::tempdir().expect("room for a folder");
        std::fs::write(folder.path().join("record.gdb"), &script.stdout).expect("room for a file");
        let mut gdb = std::process::Command::new("gdb-multiarch");
        gdb.args(["-q", "-nx", "-batch", "-ex"]).arg(format!("target extended-remote {port}"));
        let output = gdb.args(["-x", "record.gdb", image]).current_dir(folder.path()).output().expect("GDB runs");
        let printed = String::from_utf8_lossy(&output.stdout);
        let bytes = std::fs::read(folder.path().join("trace.bin")).unwrap_or_else(|error| panic!("{name}: {error} {printed}"));
        assert!(bytes == recorded, "{name}: {} and {} bytes\n{printed}", bytes.len(), recorded.len());
        assert!(!printed.contains("has to be"), "{name}: {printed}");
    }
}

#[tracewalk_corpus::test]
fn programs_and_memory_that_do_not_fit_are_refused_before_the_target_runs() {
    let folder = tempfile::tempdir().expect("room for a folder");
    let other = shared("corpus/record/programs/gauge-m0.elf").to_str().expect("a plain name").to_owned();
    let code = example("m3-etmv3/capture.toml").to_str().expect("a plain name").to_owned();
    let rows: [(&str, &[&str]); 4] = [
        ("other_program", &["--image", &other, "--until", "test_done"]),
        ("image", &["--image", &code, "--until", "0x178"]),
        ("no_code", &["--until", "0x20000000"]),
        ("buffer_in_use", &["--until", "test_done", "--buffer", "0x0:4096"]),
    ];
    for (kind, options) in rows {
        let chip = Chip::new("m3-etm-etb", "gauge-m3", &[]);
        let own = ["--image", chip.elf.to_str().expect("a plain name")];
        let own = if options[0] == "--image" { &[][..] } else { &own };
        let (port, output) = (format!(":{}", chip.port), folder.path().join("run").display().to_string());
        let arguments = ["record", "--messages", "json", "--gdb", &port, "-o", &output];
        let outcome = run(arguments.iter().chain(own).chain(options));
        assert_eq!(outcome.status, 2, "{kind}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(&format!("\"kind\":\"{kind}\"")), "{kind}: {}", outcome.stderr);
        let (state, log) = chip.state();
        assert!(state["halted"] == true && !log.contains("core runs"), "{kind}: {log}");
    }
}

#[tracewalk_corpus::test]
fn a_halted_chip_says_why_it_crashed_and_is_left_as_it_was() {
    for case in cases("crash") {
        let preset = tempfile::NamedTempFile::new().expect("room for a file");
        std::fs::write(preset.path(), text(&case, "preset")).expect("room for a file");
        let preset = preset.path().to_str().expect("a plain name");
        let options = [&["--preset", preset], &strings(&case["sim"])[..]].concat();
        let chip = Chip::new(text(&case, "chip"), text(&case, "program"), &options);
        let folder = tempfile::tempdir().expect("room for a folder");
        let saved = folder.path().join("crash.log").to_str().expect("a plain name").to_owned();
        let (port, image) = (format!(":{}", chip.port), chip.elf.to_str().expect("a plain name").to_owned());
        let live = run(["crash", "--gdb", &port, "--image", &image, "--format", "json", "--save", &saved]);
        let (name, expect) = (text(&case, "name"), &case["expect"]);
        assert_eq!(live.status, 0, "{name}: {}", live.stderr);
        let crash: Value = serde_json::from_str(&live.stdout).expect("JSON");
        assert_eq!(crash["cause"]["kind"], expect["cause"], "{name}: {crash}");
        let functions = crash["stack"].as_array().expect("a stack").iter().map(|frame| frame["function"].clone());
        let stack = expect["stack"].as_array().expect("a stack");
        assert!(functions.take(stack.len()).eq(stack.iter().cloned()), "{name}: {crash}");
        let trace = folder.path().join("crash.bin").to_str().expect("a plain name").to_owned();
        let again = match Path::new(&trace).exists() {
            true => run(["crash", &trace, "--dump", &saved, "--image", &image, "--format", "json"]),
            false => run(["crash", &saved, "--image", &image, "--format", "json"]),
        };
        let again: Value = serde_json::from_str(&again.stdout).expect("JSON");
        assert_eq!(again["cause"]["kind"], crash["cause"]["kind"], "{name}");
        let (state, log) = chip.state();
        assert!(state["halted"] == true && state["resets"] == 0, "{name}: {log}");
        assert_eq!(state["debugger_changed"], Value::Array(Vec::new()), "{name}");
        assert_eq!(state["tracing"].as_array().map(Vec::len), Some(1), "{name}: what traced goes on");
    }
}

#[test]
fn a_server_that_is_none_is_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let server = std::thread::spawn(move || {
        use std::io::Write as _;
        let (mut stream, _) = listener.accept().expect("a connection");
        let _ = stream.write_all(&b"SSH-2.0-server\r\n".repeat(10_000));
    });
    let outcome = run(["crash", "--messages", "json", "--gdb", &format!("127.0.0.1:{port}")]);
    server.join().expect("it ends");
    assert_eq!(outcome.status, 2);
    let kinds = ["not_gdb", "server_closed"].map(|kind| format!("\"kind\":\"{kind}\""));
    assert!(kinds.iter().any(|kind| outcome.stderr.contains(kind)), "{}", outcome.stderr);
    let outcome = run(["record", "--messages", "json", "--gdb", &format!("127.0.0.1:{port}"), "--dry-run"]);
    assert!(outcome.status == 2 && outcome.stderr.contains("\"kind\":\"no_server\""), "{}", outcome.stderr);
}
