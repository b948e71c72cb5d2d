//! The `info` command.

use serde_json::Value;

use crate::support::{corpus, example, mentions, run, run_with_kinds};

/// The description of an ETMv3 source without frames.
const SOURCE: [&str; 4] = ["--container", "raw", "--source", "etmv3,cpu=cortex-m3"];

/// The status and the warnings of a command on these bytes.
fn warnings(command: &str, bytes: &[u8], options: &[&str]) -> (i32, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.bin");
    std::fs::write(&file, bytes).unwrap();
    let outcome = run_with_kinds([&[command, file.to_str().unwrap()], options].concat());
    let warnings = outcome.stderr.lines().filter_map(|line| line.strip_prefix("warning: "));
    (outcome.status, warnings.map(str::to_owned).collect())
}

fn has(warnings: &[String], kind: &str) -> bool {
    warnings.iter().any(|warning| warning.split(": ").next() == Some(kind))
}

#[test]
fn malformed_trace_has_the_status_and_the_warnings_that_packets_has() {
    // A-sync, an I-sync with address 0x100 in T32 (IHI 0014Q, 7.4), and atoms; then a packet of data, which is not traced.
    let sound = [0, 0, 0, 0, 0, 0x80, 0x08, 0x21, 0x01, 0x01, 0x00, 0x00, 0x84, 0x84];
    let malformed = [&sound[..], &[0x02, 0x84]].concat();
    for command in ["info", "packets"] {
        assert_eq!(warnings(command, &sound, &SOURCE), (0, Vec::new()), "{command}");
        let (status, warnings) = warnings(command, &malformed, &SOURCE);
        assert!(status == 2 && has(&warnings, "malformed"), "{command}: {warnings:?}");
    }
    assert_eq!(warnings("info", &malformed, &SOURCE), warnings("packets", &malformed, &SOURCE));
}

#[test]
fn bytes_without_a_packet_and_malformed_itm_trace_have_status_2() {
    let (status, said) = warnings("info", &[0x84; 64], &SOURCE);
    assert!(status == 2 && has(&said, "no_synchronisation"), "{said:?}");
    // An ITM's synchronisation, `a` on port 0, and a reserved header (DDI 0403E, D4.2).
    let bytes = [0, 0, 0, 0, 0, 0x80, 0x01, b'a', 0x24, 0x01, b'b'];
    let (status, said) = warnings("info", &bytes, &["--container", "raw", "--source", "itm"]);
    assert!(status == 2 && has(&said, "itm_malformed"), "{said:?}");
}

#[test]
fn sound_examples_have_status_0() {
    for name in ["a7-etmv3", "a15-pft", "a53-etmv4", "m3-etmv3", "m33-etmv4", "m0-crash-mtb"] {
        let outcome = run_with_kinds(["info", example(name).join("capture.toml").to_str().unwrap()]);
        assert_eq!(outcome.status, 0, "{name}: {}", outcome.stderr);
    }
}

/// Whether a source is stated by an option or by a description makes no difference.
#[test]
fn a_stated_source_without_trace_is_a_note_if_another_has_trace_and_status_2_if_none_has() {
    let folder = tempfile::tempdir().unwrap();
    let description = crate::support::copied_example("m3-etmv3", folder.path());
    let [trace, image] = ["trace.bin", "m3.elf"].map(|name| folder.path().join(name).display().to_string());
    for (ids, status, message) in [
        (&[0x10][..], 0, None),
        (&[0x10, 0x12], 0, Some("note: described_absent: ")),
        (&[0x12, 0x13], 2, Some("warning: stated_absent: ")),
    ] {
        let sources = ids
            .iter()
            .map(|id| format!("[[source]]\nid = {id}\nprotocol = \"etmv3\"\ncpu = \"cortex-m3\"\n"));
        let text = "[capture]\nfile = \"trace.bin\"\ncontainer = \"frames\"\n[[image]]\nfile = \"m3.elf\"\n"
            .to_owned();
        std::fs::write(&description, text + &sources.collect::<String>()).unwrap();
        let options = ids.iter().flat_map(|id| ["--source".to_owned(), format!("{id}=etmv3,cpu=cortex-m3")]);
        let options = options.collect::<Vec<_>>();
        let by_options = [&trace, "--container", "frames", "--image", &image].map(str::to_owned);
        for command in ["flow", "info"] {
            for arguments in [vec![description.clone()], [&by_options[..], &options].concat()] {
                let all = [command, "--format", "none"].map(str::to_owned).into_iter().chain(arguments);
                let outcome = run_with_kinds(all);
                assert_eq!(outcome.status, status, "{command} {ids:?}: {}", outcome.stderr);
                let said = ["note: described_absent: ", "warning: stated_absent: "];
                let said =
                    said.into_iter().find(|start| outcome.stderr.lines().any(|line| line.starts_with(start)));
                assert_eq!(said, message, "{command} {ids:?}: {}", outcome.stderr);
            }
        }
    }
}

/// The build ID that `readelf -n` prints of this file.
const M3: &str = "b9b8a51a499576a78fc90a1b68fffde94ba88976";

#[test]
fn the_build_id_of_an_image_is_listed_if_its_file_has_one() {
    let folder = tempfile::tempdir().unwrap();
    let description = crate::support::copied_example("m3-etmv3", folder.path());
    let listed = || {
        let text = run(["info", &description]).stdout;
        let outcome = run(["info", "--format", "json", &description]);
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
        let tables = document["tables"].as_array().unwrap();
        let images = tables.iter().find(|table| table["name"] == "images").unwrap();
        (text.matches(M3).count(), images["rows"][0]["build_id"].clone())
    };
    assert_eq!(listed(), (1, M3.into()));
    let image = folder.path().join("m3.elf");
    let mut bytes = std::fs::read(&image).unwrap();
    let note = bytes.windows(4).position(|bytes| bytes == b"GNU\0").unwrap();
    bytes[note] = b'X';
    std::fs::write(&image, bytes).unwrap();
    assert_eq!(listed(), (0, Value::Null));
}

#[tracewalk_corpus::test]
fn a_damaged_capture_is_recognised_and_its_losses_are_reported_with_place_and_size() {
    let real = corpus("real/TC2");
    let whole = std::fs::read(real.join("cstrace.bin")).unwrap();
    let damaged = [&whole[..9000], &whole[9013..20000], &whole[20100..whole.len() - 3]].concat();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("damaged.bin");
    std::fs::write(&file, damaged).unwrap();
    let image = format!("0xc0008000:{}", real.join("kernel_dump.bin").display());
    let outcome = run(["info", file.to_str().unwrap(), "--image", &image]);
    assert_eq!(outcome.status, 2, "{}", outcome.stderr);
    for reported in [
        "2 13 3 16",
        "13 32639",
        "--source 0x10=etmv3,cpu=cortex-a7,etmcr=0x1000",
        "--source 0x13=pft,cpu=cortex-a15,etmcr=0x20001000",
    ] {
        assert!(mentions(&outcome.stderr, reported), "{reported:?} in {}", outcome.stderr);
    }
    // Each place, with each source's share.
    assert!(mentions(&outcome.stdout, "13 3 16"), "{}", outcome.stdout);
    assert!(mentions(&outcome.stdout, "4 12 16"), "{}", outcome.stdout);
    let losses = outcome.stdout.matches("\n  passed over ").count();
    assert!(losses >= 3, "{losses} of 4 sources have a loss: {}", outcome.stdout);
}

#[tracewalk_corpus::test]
fn what_no_formatter_writes_is_reported_with_place_and_size() {
    /// An ID byte for a source whose 64 bytes come next.
    const AT: usize = 30762;
    let real = corpus("real/TC2");
    let mut bytes = std::fs::read(real.join("cstrace.bin")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("damaged.bin");
    let image = format!("0xc0008000:{}", real.join("kernel_dump.bin").display());
    let mut info = |id_byte| {
        bytes[AT] = id_byte;
        std::fs::write(&file, &bytes).unwrap();
        run(["info", file.to_str().unwrap(), "--image", &image])
    };

    let reserved = info(0xe7);
    assert_eq!(reserved.status, 2, "{}", reserved.stderr);
    let reported = "64 30763";
    assert!(mentions(&reserved.stderr, reported), "{}", reserved.stderr);
    let listed = "64 30763";
    assert!(mentions(&reserved.stdout, listed), "{}", reserved.stdout);

    let another = info(0x57);
    let reported = "0x2b 64 30763";
    assert!(mentions(&another.stderr, reported), "{}", another.stderr);
}
