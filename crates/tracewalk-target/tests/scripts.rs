//! The printed scripts, run by those for whom they are.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use tempfile::TempDir;
use tracewalk_target::record::{Request, Until};
use tracewalk_target::script::{Dialect, script};

use crate::chip::{Chip, shared};
use crate::servers::{openocd, pyocd};
use crate::simulated::changed;

/// A chip's name, file and program, the bytes and the description of its recording, and a script.
type Case = (String, PathBuf, &'static str, Vec<u8>, String, String);

/// Each chip with its recording and script.
fn recordings(dialect: Dialect) -> Vec<Case> {
    let rows = [
        ("m0plus-mtb", "gauge-m0", Some("trace_buffer")),
        ("m3-etm-etb", "gauge-m3", None),
        ("m7-etm4-tmc", "gauge-m3", None),
    ];
    let rows = rows.into_iter().map(|(name, program, buffer)| {
        let file = shared(&format!("sim/chips/{name}.json"));
        let chip = Chip::of(&file, program, &[]);
        let until = Until::Address(chip.symbol("test_done").0);
        let request = Request { buffer: buffer.map(|name| chip.symbol(name)), ..Request::new(until) };
        let mut session = chip.session();
        let setup = session.plan(&request, false).expect("a plan");
        let recording = session.record(&setup, until, &|| false).expect("a recording");
        let text = script(dialect, &setup, until);
        (name.to_owned(), file, program, recording.bytes.clone(), recording.description("trace.bin"), text)
    });
    rows.collect()
}

fn assert_same(name: &str, folder: &TempDir, bytes: &[u8], description: &str, chip: Chip, printed: &str) {
    let read = |file: &str| {
        std::fs::read(folder.path().join(file)).unwrap_or_else(|error| panic!("{name}: {error}: {printed}"))
    };
    let found = read("trace.bin");
    assert!(found == bytes, "{name}: {} and {} bytes\n{printed}", found.len(), bytes.len());
    let lines = |text: &str| {
        let mut lines = text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>();
        lines.sort();
        lines
    };
    assert_eq!(lines(&String::from_utf8_lossy(&read("capture.toml"))), lines(description), "{name}");
    let (state, log) = chip.state();
    assert_eq!((&state["tracing"], &state["resets"]), (&json!([]), &json!(0)), "{name}: {log}");
}

fn output(command: &mut Command, folder: &Path) -> String {
    let output = command.current_dir(folder).output().expect("the program runs");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

#[tracewalk_corpus::test]
#[ignore = "needs GDB"]
fn gdb_records_the_same() {
    for (name, file, program, bytes, description, script) in recordings(Dialect::Gdb) {
        let chip = Chip::of(&file, program, &[]);
        let folder = tempfile::tempdir().expect("room for a folder");
        std::fs::write(folder.path().join("record.gdb"), script).expect("room for a file");
        let mut gdb = Command::new("gdb-multiarch");
        gdb.args(["-q", "-nx", "-batch", "-ex", &format!("target extended-remote :{}", chip.port)]);
        let printed = output(gdb.args(["-x", "record.gdb"]).arg(&chip.elf), folder.path());
        assert_same(&name, &folder, &bytes, &description, chip, &printed);
    }
}

#[tracewalk_corpus::test]
#[ignore = "needs OpenOCD"]
fn heavy_openocd_records_the_same() {
    for (name, file, program, bytes, description, script) in recordings(Dialect::OpenOcd) {
        let chip = Chip::through("--probe", &file, program, &["--jtag"]);
        let folder = tempfile::tempdir().expect("room for a folder");
        std::fs::write(folder.path().join("record.tcl"), script).expect("room for a file");
        let arguments = ["-c", "gdb_port disabled", "-c", "init", "-f", "record.tcl", "-c", "shutdown"];
        let printed = output(openocd(chip.port).args(arguments), folder.path());
        assert_same(&name, &folder, &bytes, &description, chip, &printed);
    }
}

#[tracewalk_corpus::test]
#[ignore = "installs pyOCD"]
fn heavy_pyocd_records_the_same() {
    for (name, file, program, bytes, description, script) in recordings(Dialect::PyOcd) {
        let chip = Chip::through("--probe", &file, program, &[]);
        let folder = tempfile::tempdir().expect("room for a folder");
        std::fs::write(folder.path().join("record.py"), script).expect("room for a file");
        let python = pyocd().with_file_name("python");
        let probe = format!("remote:127.0.0.1:{}", chip.port);
        let printed = output(Command::new(python).args(["record.py", &probe, "cortex_m"]), folder.path());
        assert_same(&name, &folder, &bytes, &description, chip, &printed);
    }
}

/// A unit that refuses ends a script before the target runs.
#[tracewalk_corpus::test]
#[ignore = "needs GDB"]
fn a_script_ends_where_a_unit_refuses() {
    let (_, _, program, .., script) =
        recordings(Dialect::Gdb).into_iter().find(|row| row.0 == "m3-etm-etb").expect("the chip");
    let file = changed("m3-etm-etb", |chip| crate::simulated::unit(chip, "etb")["lock"] = "refuse".into());
    let chip = Chip::of(file.path(), program, &[]);
    let folder = tempfile::tempdir().expect("room for a folder");
    std::fs::write(folder.path().join("record.gdb"), script).expect("room for a file");
    let mut gdb = Command::new("gdb-multiarch");
    gdb.args(["-q", "-nx", "-batch", "-ex", &format!("target extended-remote :{}", chip.port)]);
    let printed = output(gdb.args(["-x", "record.gdb"]), folder.path());
    let (state, log) = chip.state();
    assert!(printed.contains("ETB.LSR") && !log.contains("core runs"), "{printed}{log}");
    assert_eq!(state["halted"], true);
}
