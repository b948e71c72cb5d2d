//! Folders of the CMSIS-Toolbox, as pyOCD fills them.

use std::path::Path;

use crate::support::chip::shared;
use crate::support::{example, run};

/// A description in the words of the tool that writes it.
const SETUP: &str = "\
ctrace-run:
  generated-by: pyTS v0.1.0
  trace-format: formatted
  ctrace-setup:
  - pname: CM3
    core: Cortex-M3
    timestamps:
      clock: 240000000
      itm-prescaler: 4
    data:
    itm:
      enable: 0x00000000
  ctrace-refs:
";

fn folder(refs: &str, files: &[(&str, &Path)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("room for a folder");
    std::fs::write(folder.path().join("Blinky+Arm.ctrace-run.yml"), format!("{SETUP}{refs}")).expect("room");
    for (name, file) in files {
        std::fs::copy(file, folder.path().join(name)).expect("room for a file");
    }
    folder
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain name")
}

#[tracewalk_corpus::test]
fn an_itm_of_one_wire_is_read_as_its_file() {
    for name in ["001-text.bin", "007-exceptions.bin", "005-data.bin"] {
        let file = shared(&format!("corpus/itm/{name}"));
        let folder = folder("", &[("Blinky+Arm.SWO.raw", &file), ("Blinky+Arm.ER.raw", &file)]);
        let options = ["--format", "jsonl"];
        let alone = run(["itm", text(&file), "--container", "raw", "--source", "itm"].iter().chain(&options));
        for given in [folder.path().to_owned(), folder.path().join("Blinky+Arm.ctrace-run.yml")] {
            let outcome = run(["itm", text(&given)].iter().chain(&options));
            assert_eq!((outcome.status, outcome.stdout == alone.stdout), (0, true), "{name}: {}", outcome.stderr);
        }
    }
}

#[test]
fn a_trace_buffer_has_the_streams_of_the_description() {
    let refs = "  - ref: CM3/etm
    type: etm
    pname: CM3
    stream: 0x10
    symbol-file: m3.elf
    regs:
    - name: ETMCR
      value: 0x00000c90
  - ref: CM3/itm
    type: itm
    pname: CM3
    stream: 1
";
    let example_folder = example("m3-etmv3");
    let (trace, elf) = (example_folder.join("trace.bin"), example_folder.join("m3.elf"));
    let folder = folder(refs, &[("Blinky+Arm.TB_ETB.raw", &trace), ("m3.elf", &elf)]);
    let flow = |path: &Path| run(["flow", "--quiet", "--format", "runs", text(path)]);
    let (expected, found) = (flow(&example_folder), flow(folder.path()));
    assert_eq!(found.status, expected.status, "{}", found.stderr);
    assert!(found.stdout == expected.stdout && found.stdout.lines().count() > 100, "{}", found.stderr);
}

#[test]
fn a_folder_that_is_not_understood_is_named() {
    let trace = example("m3-etmv3/trace.bin");
    let empty = folder("", &[]);
    let none = run(["info", "--messages", "json", text(empty.path())]);
    assert!(none.status == 2 && none.stderr.contains("\"kind\":\"description_no_buffer\""), "{}", none.stderr);
    let two = folder("", &[("Blinky+Arm.TB.raw", &trace), ("B.ctrace-run.yml", &trace)]);
    let two = run(["info", "--messages", "json", text(two.path())]);
    let kind = "\"kind\":\"description_several_descriptions\"";
    assert!(two.status == 2 && two.stderr.contains(kind) && two.stderr.contains("B.ctrace-run.yml"), "{}", two.stderr);
    let broken = folder("  - [\n", &[("Blinky+Arm.TB.raw", &trace)]);
    let broken = run(["info", "--messages", "json", text(broken.path())]);
    assert!(broken.status == 2 && broken.stderr.contains("\"kind\":\"description_yaml\""), "{}", broken.stderr);
    // One empty channel costs that channel.
    let nothing = tempfile::NamedTempFile::new().expect("room for a file");
    let one = folder("", &[("Blinky+Arm.TB.raw", &trace), ("Blinky+Arm.SWO.raw", nothing.path())]);
    let one = run(["info", "--messages", "json", text(one.path())]);
    assert!(one.status == 2 && one.stdout.contains("TB"), "{}{}", one.stdout, one.stderr);
    assert!(one.stderr.contains("Blinky+Arm.SWO.raw"), "{}", one.stderr);
}
