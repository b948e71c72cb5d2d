//! The command `record` and logs that QEMU wrote otherwise than it has to.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn record(log: &Path, output: &Path) -> Output {
    let elf = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/firmware/m3/m3.elf");
    Command::new(env!("CARGO_BIN_EXE_tracewalk-generate"))
        .args(["record", "--elf"])
        .arg(elf)
        .arg("--log")
        .arg(log)
        .arg("--output")
        .arg(output)
        .output()
        .unwrap()
}

/// `-d exec,nochain` with and without `int`, and `-d in_asm`: no registers, so that no condition is known.
#[test]
fn a_log_without_registers_is_an_error_with_a_sentence_and_leaves_no_record() {
    let folder = tempfile::tempdir().unwrap();
    let (log, output) = (folder.path().join("log"), folder.path().join("record"));
    let traced =
        |address: u32| format!("Trace 0: 0x7f1b84000100 [00800400/{address:08x}/00000110/ff020201] main\n");
    let texts = [
        (1..100).map(|index| traced(2 * index)).collect::<String>(),
        format!("Loaded reset SP 0x20000260 PC 0xc1 from vector table\n{}", traced(0xc0)),
        "----------------\nIN: main\n0x000000c0:  b510       push     {r4, lr}\n".to_owned(),
        String::new(),
    ];
    for text in texts {
        std::fs::write(&log, &text).unwrap();
        let said = record(&log, &output);
        assert_eq!(said.status.code(), Some(2), "{text}");
        let message = String::from_utf8(said.stderr).unwrap();
        assert!(message.contains("-d exec,nochain,int,cpu"), "{message}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "{text}");
    }
}
