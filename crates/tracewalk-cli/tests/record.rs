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

/// Each script names the units; what it does is tested where it is made.
#[tracewalk_corpus::test]
fn a_script_is_printed_for_each_program() {
    for (program, line) in [
        ("gdb", "tw_set ETM.ETMTEEVR 0xe0041020 0x6f 0x1ffff"),
        ("openocd", "tw_set ETM.ETMTEEVR 0xe0041020 0x6f 0x1ffff"),
        ("pyocd", "tw_set('ETM.ETMTEEVR', 0xe0041020, 0x6f, 0x1ffff)"),
    ] {
        let chip = Chip::new("m3-etm-etb", "gauge-m3", &[]);
        let port = format!(":{}", chip.port);
        let script = run(["record", "--gdb", &port, "--script", program, "--until", "0x178"]);
        assert_eq!(script.status, 0, "{program}: {}", script.stderr);
        assert!(script.stdout.lines().any(|printed| printed == line), "{program}: {}", script.stdout);
        let (state, log) = chip.state();
        assert!(state["halted"] == true && !log.lines().any(|line| line.starts_with("w ")), "{log}");
    }
}

/// An MTB that halts the processor gives one recording of all that ran; other units give one after the other.
#[tracewalk_corpus::test]
fn several_recordings_are_one_or_lie_side_by_side() {
    let folder = tempfile::tempdir().expect("room for a folder");
    let runs = |folder: &Path| {
        let flow = run(["flow", "--quiet", "--format", "runs", folder.to_str().expect("a plain name")]);
        assert_eq!(flow.status, 0, "{}", flow.stderr);
        flow.stdout.lines().filter(|line| line.starts_with("R ")).map(str::to_owned).collect::<Vec<_>>()
    };
    let chip = Chip::new("m33-mtb", "gauge-m33", &[]);
    let one = folder.path().join("one");
    let (status, messages) = record(&chip, &one, &["--until", "test_done", "--repeat", "100"]);
    assert_eq!(status, 0, "{messages}");
    let runs_of_one = runs(&one);
    let expected = expected("m33-mtb").expect("the corpus");
    // The buffer alone would have kept the end.
    let inner = &expected[1..expected.len() - 1];
    assert!(runs_of_one.len() > expected.len() && runs_of_one.windows(inner.len()).any(|window| window == inner));
    let chip = Chip::new("m3-etm-etb", "gauge-m3", &[]);
    let several = folder.path().join("several");
    let (status, messages) = record(&chip, &several, &["--until", "settle", "--repeat", "3"]);
    assert_eq!(status, 0, "{messages}");
    for time in ["1", "2", "3"] {
        assert!(!runs(&several.join(time)).is_empty(), "{time}: {messages}");
    }
    assert!(!several.join("4").exists() && !several.join("trace.bin").exists());
    let chip = Chip::new("m3-etm-etb", "gauge-m3", &[]);
    let (status, messages) = record(&chip, &folder.path().join("endless"), &["--repeat", "3"]);
    assert!(status == 2 && messages.contains("\"kind\":\"no_end\""), "{messages}");
}

#[tracewalk_corpus::test]
fn a_recording_of_pins_is_described_for_a_logic_analyser() {
    let text = std::fs::read_to_string(shared("sim/chips/m3-bare.json")).expect("the corpus");
    let mut chip: Value = serde_json::from_str(&text).expect("JSON");
    chip["units"].as_array_mut().expect("units").push(
        serde_json::json!({ "kind": "block", "name": "trace", "base": "0xe0042000" }),
    );
    let folder = tempfile::tempdir().expect("room for a folder");
    let (json, description) = (folder.path().join("chip.json"), folder.path().join("chip.txt"));
    std::fs::write(&json, chip.to_string()).expect("room for a file");
    std::fs::write(&description, "pins 2\nsetup TRACE CLOCK 0xe0042004 set 0x20\n").expect("room for a file");
    let chip = Chip::of(&json, "gauge-m3", &[]);
    let options = ["--until", "test_done", "--chip", description.to_str().expect("a plain name")];
    let recording = folder.path().join("run");
    let (status, messages) = record(&chip, &recording, &options);
    assert!(status == 0 && messages.contains("\"kind\":\"recorded_pins\""), "{messages}");
    let described = std::fs::read_to_string(recording.join("capture.toml")).expect("a description");
    for line in ["file = \"port.vcd\"", "wire = \"port\"", "protocol = \"etmv3\"", "etmidr = 0x4114f253"] {
        assert!(described.lines().any(|described| described == line), "{line}: {described}");
    }
    assert!(chip.state().1.contains("bytes went to the pins"));
}

/// The second signal comes while the target is left as it was found.
#[cfg(unix)]
#[tracewalk_corpus::test]
fn two_signals_do_not_leave_a_unit_on() {
    let chip = Chip::new("m3-etm-etb", "gauge-m3", &[]);
    let folder = tempfile::tempdir().expect("room for a folder");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tracewalk"));
    command.args(["record", "--gdb", &format!(":{}", chip.port), "-o"]).arg(folder.path().join("run"));
    let mut child = command.stderr(std::process::Stdio::null()).spawn().expect("it starts");
    std::thread::sleep(std::time::Duration::from_millis(1500));
    for _ in 0..2 {
        let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(kill.is_ok_and(|status| status.success()));
        std::thread::sleep(std::time::Duration::from_millis(30));
    }
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    assert!(folder.path().join("run/trace.bin").exists());
    let state = chip.state().0;
    assert_eq!((&state["tracing"], &state["breakpoints"]), (&serde_json::json!([]), &serde_json::json!([])));
}

#[tracewalk_corpus::test]
fn programs_and_memory_that_do_not_fit_are_refused_before_the_target_runs() {
    let folder = tempfile::tempdir().expect("room for a folder");
    let other = shared("corpus/record/programs/gauge-m0.elf").to_str().expect("a plain name").to_owned();
    let code = example("m3-etmv3/capture.toml").to_str().expect("a plain name").to_owned();
    let rows: [(&str, &[&str]); 5] = [
        ("other_program", &["--image", &other, "--until", "test_done"]),
        ("image", &["--image", &code, "--until", "0x178"]),
        ("no_code", &["--until", "0x20000000"]),
        ("buffer_in_use", &["--until", "test_done", "--buffer", "0x0:4096"]),
        ("buffer_in_use", &["--until", "test_done", "--buffer", "0x20003800:2048"]),
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

/// The chip has no unit that kept a trace: the registers and the memory are left, and code to compare with the image.
#[tracewalk_corpus::test]
fn a_halted_chip_without_a_trace_says_what_its_registers_prove() {
    for (model, program, other) in [("m3-bare", "pointer-m3", "gauge-m3"), ("m0plus-mtb", "pointer-m0", "gauge-m0")] {
        let chip = Chip::new(model, program, &["--at", "HardFault_Handler"]);
        let (port, image) = (format!(":{}", chip.port), chip.elf.clone());
        let folder = tempfile::tempdir().expect("room for a folder");
        let saved = folder.path().join("crash.log");
        let ask = |arguments: &[&Path]| {
            let options = [Path::new("crash"), "--format=json".as_ref(), "--image".as_ref()];
            let outcome = run(options.iter().chain(arguments));
            assert_eq!(outcome.status, 0, "{model}: {}", outcome.stderr);
            serde_json::from_str::<Value>(&outcome.stdout).expect("JSON")
        };
        let found = ask(&[&image, "--gdb".as_ref(), port.as_ref(), "--save".as_ref(), &saved]);
        assert_eq!((&found["fault"]["number"], &found["at"]["address"]), (&3.into(), &"0x00000000".into()));
        // A call through a null pointer, by the trace of the same crash; the registers may be older.
        assert_eq!((&found["cause"], &found["protocol"]), (&Value::Null, &Value::Null), "{found:#}");
        let has = |kind: &str| found["missing"].as_array().expect("a list").contains(&kind.into());
        assert!(has("trace") && !has("frame") && !has("program"), "{found:#}");
        assert_eq!(ask(&[&image, &saved]), found, "{model}");
        let other = image.with_file_name(other).with_extension("elf");
        let doubted = ask(&[&other, &saved]);
        assert_eq!(doubted["doubts"][0]["kind"], "other_program", "{doubted:#}");
        let (state, log) = chip.state();
        // DCRSR selects the stack pointers.
        let writes = log.lines().filter(|line| line.starts_with("w ") && !line.starts_with("w 0xe000edf4"));
        assert_eq!((writes.count(), &state["halted"]), (0, &true.into()), "{log}");
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
