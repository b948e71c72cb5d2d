//! Other ways to record: until the buffer is full, in several stretches, into memory, through pins, with exceptions beside.

use serde_json::{Value, json};
use tracewalk_target::chip::{Chip as Known, KNOWN};
use tracewalk_target::record::{Ended, Keep, Recording, Request, Session, Until};

use crate::chip::Chip;
use crate::simulated::{changed, number, unit};

fn known(name: &str) -> Option<Known> {
    let (_, text) = KNOWN.into_iter().find(|(known, _)| *known == name).expect("a known chip");
    Some(Known::parse(text).expect("a description"))
}

fn recorded(chip: &Chip, request: &Request) -> Result<Recording, String> {
    let mut session = chip.session();
    let recording =
        session.plan(request, false).and_then(|setup| session.record(&setup, request.until, &|| false));
    session.leave().expect("the server answers");
    recording.map_err(|problem| problem.name().to_owned())
}

fn until(chip: &Chip, function: &str) -> Request {
    Request::new(Until::Address(chip.symbol(function).0))
}

/// An MTB's packets in their order, from a recording of the newest ones.
fn in_order(recording: &Recording) -> Vec<u8> {
    let position = recording.registers["MTB_POSITION"];
    let start = recording.address.expect("it was in memory");
    let end = (position & !7).wrapping_sub(start) as usize % recording.bytes.len();
    let mut bytes = recording.bytes.clone();
    match position & 4 {
        0 => bytes.truncate(end),
        _ => bytes.rotate_left(end),
    }
    bytes
}

#[tracewalk_corpus::test]
fn an_mtb_that_halts_the_processor_loses_nothing() {
    let newest = {
        let chip = Chip::new("m33-mtb", "gauge-m33", &[]);
        in_order(&recorded(&chip, &until(&chip, "test_done")).expect("a recording"))
    };
    let fills = |most: u32| {
        let chip = Chip::new("m33-mtb", "gauge-m33", &[]);
        let recording = recorded(&chip, &Request { keep: Keep::Fills(most), ..until(&chip, "test_done") });
        let (state, log) = chip.state();
        assert!(state["tracing"] == json!([]) && state["breakpoints"] == json!([]), "{log}");
        assert_eq!((&state["halted"], &state["debugger_changed"]), (&json!(true), &json!([])));
        recording.expect("a recording")
    };
    let all = fills(u32::MAX);
    assert_eq!(all.ended, Ended::Reached);
    assert!(all.bytes.len() > newest.len() && all.bytes.ends_with(&newest), "{}", all.bytes.len());
    let begins = all.bytes.chunks(8).filter(|packet| packet[4] & 1 == 1).count();
    assert_eq!(begins, 1, "one trace");
    for most in [1, 3] {
        let some = fills(most);
        assert_eq!(some.ended, Ended::Full);
        assert!(all.bytes.starts_with(&some.bytes));
        let buffers = some.bytes.len() as f64 / 8192.0;
        assert!((f64::from(most) - 0.05..=f64::from(most) + 0.05).contains(&buffers), "{buffers}");
    }
    assert_eq!(all.registers["MTB_POSITION"] as usize, all.bytes.len());
}

#[tracewalk_corpus::test]
fn memory_that_something_else_fills_can_end_the_recording() {
    let chip = Chip::new("rp2350", "gauge-rp", &[]);
    let whole = {
        let buffer = Some((chip.symbol("trace_buffer").0, 0x1000));
        let request =
            Request { buffer, chip: known("rp2350"), keep: Keep::Fills(1), ..until(&chip, "test_done") };
        recorded(&chip, &request).expect("a recording")
    };
    assert_eq!((whole.bytes.len(), whole.has_lost), (0x1000, false));
    let larger = Chip::new("rp2350", "gauge-rp", &[]);
    let buffer = Some(larger.symbol("trace_buffer"));
    let request =
        Request { buffer, chip: known("rp2350"), keep: Keep::Fills(1), ..until(&larger, "test_done") };
    let larger = recorded(&larger, &request).expect("a recording");
    let same = larger.bytes.iter().zip(&whole.bytes).position(|(larger, whole)| larger != whole);
    assert_eq!(same, None, "{} bytes", larger.bytes.len());
    assert!(larger.bytes.len() > whole.bytes.len());
    let chip = Chip::new("m3-etm-etb", "gauge-m3", &[]);
    let refused = recorded(&chip, &Request { keep: Keep::Fills(1), ..until(&chip, "test_done") });
    assert_eq!(refused, Err("keeps_newest".to_owned()));
}

#[tracewalk_corpus::test]
fn a_tmc_writes_to_memory_what_another_one_keeps() {
    let expected = {
        let chip = Chip::new("m7-etm4-tmc", "gauge-m3", &[]);
        recorded(&chip, &until(&chip, "test_done")).expect("a recording").bytes
    };
    let file = changed("m7-etm4-tmc", |chip| {
        let tmc = unit(chip, "tmc");
        *tmc = json!({ "kind": "etr", "name": "tmc", "base": tmc["base"], "words": 1, "devtype": "0x21" });
        chip["memory"]
            .as_array_mut()
            .expect("a list")
            .push(json!({ "base": "0x30000000", "size": "0x10000", "kind": "ram" }));
    });
    let without = Chip::of(file.path(), "gauge-m3", &[]);
    assert_eq!(recorded(&without, &until(&without, "test_done")), Err("buffer_needed".to_owned()));
    for bytes in [0x2000, 0x800] {
        let chip = Chip::of(file.path(), "gauge-m3", &[]);
        let buffer = Some((0x3000_0000, bytes));
        let recording = recorded(&chip, &Request { buffer, ..until(&chip, "test_done") });
        let (state, log) = chip.state();
        let recording = recording.unwrap_or_else(|problem| panic!("{problem}\n{log}"));
        assert!(expected.ends_with(&recording.bytes), "{} and {}", expected.len(), recording.bytes.len());
        assert_eq!(recording.bytes.len(), expected.len().min(bytes as usize));
        assert_eq!((&state["tracing"], &state["debugger_changed"]), (&json!([]), &json!([])), "{log}");
    }
}

#[tracewalk_corpus::test]
fn exceptions_are_recorded_beside_an_etm() {
    let file = changed("m3-etm-etb", |chip| {
        unit(chip, "itm")["to"] = "etb".into();
        unit(chip, "etb")["words"] = 8192.into();
    });
    let chip = Chip::of(file.path(), "gauge-m3", &["--preset", "/dev/null"]);
    let recording = recorded(&chip, &Request { itm: true, ..until(&chip, "test_done") });
    let (state, log) = chip.state();
    let recording = recording.unwrap_or_else(|problem| panic!("{problem}\n{log}"));
    assert_eq!(state["tracing"], json!([]), "{log}");
    assert!(recording.description("trace.bin").contains("protocol = \"itm\""));
    // Frames name their source: both are there.
    let ids = recording.bytes.chunks(16).flat_map(|frame| frame.iter().step_by(2));
    let named = |id: u8| ids.clone().any(|byte| *byte == id << 1 | 1);
    assert!(named(1) && named(2));
    // What was there before is there again.
    let last = |address: &str| {
        let line = log.lines().rfind(|line| line.starts_with(&format!("w {address}")));
        line.and_then(|line| line.rsplit(' ').next()).map(str::to_owned)
    };
    assert_eq!(last("0xe0000e80"), Some("0x0".to_owned()), "{log}");
    assert_eq!(last("0xe0001000"), Some("0x40000000".to_owned()), "{log}");
    let alone = Chip::new("m33-mtb", "gauge-m33", &[]);
    let refused = recorded(&alone, &Request { itm: true, ..until(&alone, "test_done") });
    assert_eq!(refused, Err("no_itm".to_owned()));
}

#[tracewalk_corpus::test]
fn a_trace_leaves_through_pins() {
    let file = changed("m3-bare", |chip| {
        chip["units"].as_array_mut().expect("units").extend([
            json!({ "kind": "block", "name": "rcc", "base": "0x40023000" }),
            json!({ "kind": "block", "name": "gpioe", "base": "0x40021000",
                    "values": { "0x0": "0x0000c03c", "0x20": "0xff" } }),
            json!({ "kind": "block", "name": "dbgmcu", "base": "0xe0042000" }),
        ]);
    });
    let chip = Chip::of(file.path(), "gauge-m3", &[]);
    let request = Request { chip: known("stm32f4"), ..until(&chip, "test_done") };
    let mut session = chip.session();
    let setup = session.plan(&request, false).expect("a plan");
    assert_eq!(setup.pins(), Some(4));
    let recording = session.record(&setup, request.until, &|| false).expect("a recording");
    assert_eq!((recording.ended, recording.bytes.len()), (Ended::Reached, 0));
    drop(session);
    let (state, log) = chip.state();
    assert!(log.contains("bytes went to the pins") && state["tracing"] == json!([]), "{log}");
    let at_run = &state["registers_at_last_run"]["tpiu"];
    assert_eq!([&at_run["0x4"], &at_run["0xf0"], &at_run["0x304"]].map(number), [8, 0, 0x102]);
    let written = |line: &str| log.contains(line);
    assert!(
        written("w 0x40021000 4 0xeaac") && written("w 0x40021020 4 0xff") && written("w 0xe0042004 4 0xe0"),
        "{log}"
    );
    // Everything is as it was.
    for (address, value) in [("0x40021000", "0xc03c"), ("0xe0042004", "0x0"), ("0x40023830", "0x0")] {
        let last = log.lines().rfind(|line| line.starts_with(&format!("w {address}")));
        assert!(last.is_some_and(|line| line.ends_with(&format!(" {value}"))), "{address}: {last:?}");
    }
}

#[tracewalk_corpus::test]
fn pins_of_other_chips_are_given_back() {
    let rows: [(&str, &[&str], &[&str]); 3] = [
        (
            "nrf52840",
            &["0x40000000", "0x50000000"],
            &["0x4000055c 4 0x20000", "0x5000071c 4 0x301", "0x50000a00 4 0x301", "0x50000a24 4 0x301"],
        ),
        (
            "nrf5340",
            &["0xe0080000", "0x50842000", "0x50003000"],
            &["0x50842730 4 0x70000301", "0xe0080504 4 0xc", "0xe0080514 4 0x8", "0xe0080518 4 0x1"],
        ),
        (
            "imxrt1050",
            &["0x400fc000", "0x401f8000"],
            &["0x400fc068 4 0xc00000", "0x401f816c 4 0x2", "0x401f8158 4 0x3", "0x401f8348 4 0xf1"],
        ),
    ];
    for (name, blocks, written) in rows {
        let file = changed("m3-bare", |chip| {
            let block = |base: &&str| json!({ "kind": "block", "name": base, "base": base });
            chip["units"].as_array_mut().expect("units").extend(blocks.iter().map(block));
        });
        let chip = Chip::of(file.path(), "gauge-m3", &[]);
        let request = Request { chip: known(name), ..until(&chip, "test_done") };
        assert_eq!(recorded(&chip, &request).expect(name).ended, Ended::Reached, "{name}");
        let (state, log) = chip.state();
        assert!(log.contains("bytes went to the pins") && state["tracing"] == json!([]), "{name}: {log}");
        for access in written {
            assert!(log.contains(&format!("w {access}")), "{name}: {access}: {log}");
            let address = access.split(' ').next().expect("an address");
            let last = log.lines().rfind(|line| line.starts_with(&format!("w {address}")));
            assert!(last.is_some_and(|line| line.ends_with(" 0x0")), "{name}: {address}: {last:?}");
        }
    }
}

/// Chips whose files name units that no table has.
#[tracewalk_corpus::test]
fn units_are_found_by_a_chips_file() {
    let expected = {
        let chip = Chip::new("m7-etm4-tmc", "gauge-m3", &[]);
        recorded(&chip, &until(&chip, "test_done")).expect("a recording").bytes
    };
    let file = changed("m7-etm4-tmc", |chip| {
        unit(chip, "funnel")["base"] = "0x5c013000".into();
        unit(chip, "tmc")["base"] = "0x5c014000".into();
        let rom = unit(chip, "rom");
        rom["entries"] = json!(["0xE00FE000"]);
        let units = chip["units"].as_array_mut().expect("units");
        units.push(json!({ "kind": "block", "name": "dbgmcu", "base": "0x5c001000" }));
    });
    let chip = Chip::of(file.path(), "gauge-m3", &[]);
    assert_eq!(recorded(&chip, &until(&chip, "test_done")), Err("no_trace_buffer".to_owned()));
    let recording = recorded(&chip, &Request { chip: known("stm32h7"), ..until(&chip, "test_done") });
    assert!(recording.expect("a recording").bytes == expected);
    let (_, log) = chip.state();
    assert!(log.contains("w 0x5c001004 4 0x700000"), "{log}");
    let file = changed("m3-etm-etb", |chip| {
        let units = chip["units"].as_array_mut().expect("units");
        units.push(
            json!({ "kind": "block", "name": "creg", "base": "0x40043000", "values": { "0x128": "0x1" } }),
        );
    });
    let chip = Chip::of(file.path(), "gauge-m3", &[]);
    recorded(&chip, &Request { chip: known("lpc43xx"), ..until(&chip, "test_done") }).expect("a recording");
    let (_, log) = chip.state();
    let writes = log.lines().filter(|line| line.starts_with("w 0x40043128")).collect::<Vec<_>>();
    assert_eq!(writes, ["w 0x40043128 4 0x0", "w 0x40043128 4 0x1"]);
    let file = changed("m7-etm4-tmc", |chip| {
        unit(chip, "rom")["entries"] = json!(["0xE00FE000"]);
        unit(chip, "etm")["to"] = "second.0".into();
        let funnel = unit(chip, "funnel");
        (funnel["base"], funnel["to"]) = ("0xe005a000".into(), "etb".into());
        *unit(chip, "tmc") = json!({ "kind": "etb", "base": "0xe0051000", "words": 512 });
        let units = chip["units"].as_array_mut().expect("units");
        units.extend([
            json!({ "kind": "funnel", "name": "second", "base": "0xe005b000", "to": "funnel.0" }),
            json!({ "kind": "block", "name": "tad", "base": "0xe0080000" }),
            json!({ "kind": "block", "name": "replicator", "base": "0xe0058000" }),
        ]);
    });
    let chip = Chip::of(file.path(), "gauge-m3", &[]);
    let recording = recorded(&chip, &Request { chip: known("nrf9160"), ..until(&chip, "test_done") });
    let bytes = recording.expect("a recording").bytes;
    assert!(bytes.len() > 100 && bytes.len() <= 2048, "{} bytes", bytes.len());
    let (state, log) = chip.state();
    assert!(state["tracing"] == json!([]) && log.contains("w 0xe0080000 4 0x1"), "{log}");
    assert!(
        log.lines().rfind(|line| line.starts_with("w 0xe0080500")) == Some("w 0xe0080500 4 0x0"),
        "{log}"
    );
}

/// A recording that ends where it begins goes once around.
#[tracewalk_corpus::test]
fn a_breakpoint_where_the_processor_stands_does_not_end_the_next_recording() {
    let chip = Chip::new("m3-etm-etb", "gauge-m3", &["--at", "settle"]);
    let request = until(&chip, "settle");
    let mut session: Session<_> = chip.session();
    let setup = session.plan(&request, false).expect("a plan");
    let twice = [(); 2].map(|()| session.record(&setup, request.until, &|| false).expect("a recording"));
    assert!(twice.iter().all(|recording| recording.ended == Ended::Reached && recording.bytes.len() > 100));
    let _: Value = chip.state().0;
}

#[tracewalk_corpus::test]
fn a_buffer_that_someone_has_claimed_is_left_alone() {
    let preset = tempfile::NamedTempFile::new().expect("room for a file");
    let claimed = "0xE000EDFC 0x01000000\n0xE0042FB0 0xC5ACCE55\n0xE0042FA4 1\n0xE0042020 1\n";
    std::fs::write(preset.path(), claimed).expect("room for a file");
    let chip =
        Chip::new("m3-etm-etb", "gauge-m3", &["--preset", preset.path().to_str().expect("a plain name")]);
    assert_eq!(recorded(&chip, &until(&chip, "test_done")), Err("unit_claimed".to_owned()));
    let (state, log) = chip.state();
    assert!(!log.contains("core runs") && log.contains("r 0xe0042fa4 4 0x1"), "{log}");
    // It goes on as it did: what follows the refusal must not switch it off.
    assert_eq!(number(&state["registers"]["etb"]["0x20"]), 1, "{log}");
}
