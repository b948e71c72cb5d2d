//! Recordings of a simulated chip, whose trace units yield nothing unless they are set up in the right order.

use crate::chip::{Chip, cases, shared, strings};
use object::{Object as _, ObjectSymbol as _};
use serde_json::Value;
use tracewalk_target::Problem;
use tracewalk_target::chip::KNOWN;
use tracewalk_target::client::Client;
use tracewalk_target::connection::connect;
use tracewalk_target::plan::{Plan, Step};
use tracewalk_target::record::{Ended, Recording, Request, Session, Until};

impl Chip {
    pub(crate) fn session(&self) -> Session<std::net::TcpStream> {
        let connection = connect("127.0.0.1", self.port).expect("the simulation listens");
        Session::new(Client::new(connection).expect("a GDB server")).expect("a target")
    }

    /// What is known of the chip beside its ROM tables.
    pub(crate) fn known(&self) -> Option<tracewalk_target::chip::Chip> {
        let is_rp2350 = self.elf.ends_with("gauge-rp.elf");
        let (_, text) = KNOWN.into_iter().find(|(name, _)| is_rp2350 && *name == "rp2350")?;
        Some(tracewalk_target::chip::Chip::parse(text).expect("a description"))
    }

    pub(crate) fn symbol(&self, name: &str) -> (u32, u32) {
        let bytes = std::fs::read(&self.elf).expect("a program");
        let file = object::File::parse(&*bytes).expect("an ELF file");
        let symbol = file.symbols().find(|symbol| symbol.name() == Ok(name)).expect("the symbol");
        let [address, size] =
            [symbol.address() & !1, symbol.size()].map(|value| u32::try_from(value).expect("32 bits"));
        (address, size)
    }
}

fn recorded(chip: &Chip, until: &str, buffer: Option<&str>) -> Result<Recording, Problem> {
    let mut session = chip.session();
    let until = Until::Address(chip.symbol(until).0);
    let request =
        Request { buffer: buffer.map(|name| chip.symbol(name)), chip: chip.known(), ..Request::new(until) };
    let recording = session.plan(&request, false).and_then(|setup| session.record(&setup, until, &|| false));
    session.leave().expect("the server answers");
    recording
}

pub(crate) fn number(value: &Value) -> u64 {
    let text = value.as_str().unwrap_or("0x0");
    u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("a hexadecimal number")
}

/// Compares registers with those that tracing needs, at the target's last start and at the end.
fn assert_registers(name: &str, chip: &str, state: &Value) {
    let Ok(must) = std::fs::read_to_string(shared(&format!("corpus/record/expected/{chip}.must.json")))
    else {
        return;
    };
    let must: Value = serde_json::from_str(&must).expect("JSON");
    for (when, rows) in must.as_object().expect("an object") {
        for row in rows.as_array().expect("rows") {
            let [unit, register, mask, value] =
                [0, 1, 2, 3].map(|column| row[column].as_str().expect("text"));
            // Only a whole run wraps.
            if register == "0x0" && mask == "0x4" && name.contains("report") {
                continue;
            }
            let found = number(&state[when][unit][register]);
            let [mask, value] = [mask, value].map(|text| number(&text.into()));
            assert_eq!(found & mask, value, "{name}: {when} {row}");
        }
    }
}

#[tracewalk_corpus::test]
fn chips_are_recorded_and_left_as_they_were_found() {
    for case in cases("record") {
        let text = |key: &str| case[key].as_str().expect("text");
        let options = strings(&case["sim"]);
        let chip = Chip::new(text("chip"), text("program"), &options);
        let buffer = strings(&case["args"]).last().copied();
        let recording = recorded(&chip, text("until"), buffer);
        let (state, log) = chip.state();
        let name = text("name");
        let recording = recording.unwrap_or_else(|problem| panic!("{name}: {problem}\n{log}"));
        assert_eq!(recording.ended, Ended::Reached, "{name}");
        // Its last start is the one with which it was left running.
        if !options.contains(&"running") {
            assert_registers(name, text("chip"), &state);
        }
        let expected = shared(&format!("corpus/record/expected/{name}.trace.bin"));
        match std::fs::read(expected) {
            Ok(bytes) => assert!(
                recording.bytes == bytes,
                "{name}: {} and {} bytes",
                recording.bytes.len(),
                bytes.len()
            ),
            Err(_) => assert!(recording.bytes.len() > 500, "{name}: {} bytes", recording.bytes.len()),
        }
        let none = Value::Array(Vec::new());
        for left in ["breakpoints", "debugger_changed", "tracing"] {
            assert_eq!(state[left], none, "{name}: {left}");
        }
        assert_eq!(state["resets"], 0, "{name}");
        assert_eq!(state["halted"], !options.contains(&"running"), "{name}");
        let window = strings(&case["window"]);
        for written in state["trace_written"].as_array().expect("a list") {
            let written = [number(&written[0]), number(&written[1])];
            let window = [0, 1].map(|end| number(&window[end].into()));
            assert!(written[0] >= window[0] && written[1] <= window[1], "{name}: {written:x?}");
        }
        assert!(!log.contains("lost"), "{name}: {log}");
    }
}

/// A chip that differs from a simulated one.
pub(crate) fn changed(chip: &str, change: impl Fn(&mut Value)) -> tempfile::NamedTempFile {
    let text = std::fs::read_to_string(shared(&format!("sim/chips/{chip}.json"))).expect("the corpus");
    let mut value: Value = serde_json::from_str(&text).expect("JSON");
    change(&mut value);
    let file = tempfile::Builder::new().suffix(".json").tempfile().expect("room for a file");
    std::fs::write(file.path(), value.to_string()).expect("room for a file");
    file
}

pub(crate) fn unit<'a>(chip: &'a mut Value, name: &str) -> &'a mut Value {
    let units = chip["units"].as_array_mut().expect("units").iter_mut();
    let mut named = units.filter(|unit| unit["name"] == name || unit["kind"] == name);
    named.next().expect("the unit")
}

#[tracewalk_corpus::test]
fn chips_that_cannot_be_recorded_are_left_alone_with_the_unit_named() {
    type Change = fn(&mut Value);
    let rows: [(&str, &str, &str, Change); 11] = [
        ("no_trace_buffer", "m3-bare", "gauge-m3", |_| {}),
        ("unit_locked", "m3-etm-etb", "gauge-m3", |chip| unit(chip, "etm")["lock"] = "refuse".into()),
        ("unit_locked", "m3-etm-etb", "gauge-m3", |chip| unit(chip, "etb")["lock"] = "refuse".into()),
        ("unit_locked", "m7-etm4-tmc", "gauge-m3", |chip| unit(chip, "funnel")["lock"] = "refuse".into()),
        ("unit_os_locked", "m7-etm4-tmc", "gauge-m3", |chip| unit(chip, "etm")["os_lock"] = "refuse".into()),
        ("trace_not_allowed", "m3-etm-etb", "gauge-m3", |chip| chip["authstatus"] = "0x88".into()),
        ("no_trace_unit", "m3-etm-etb", "gauge-m3", |chip| unit(chip, "etm")["power"] = false.into()),
        ("buffer_needed", "m0plus-mtb", "gauge-m0", |_| {}),
        ("nothing_recorded", "m7-etm4-tmc", "gauge-m3", |chip| unit(chip, "funnel")["power"] = false.into()),
        ("buffer_needed", "m33-mtb", "gauge-m33", |chip| unit(chip, "mtb")["no_base"] = true.into()),
        ("no_rom_table", "m3-etm-etb", "gauge-m3", |chip| unit(chip, "rom")["power"] = false.into()),
    ];
    for (expected, name, program, change) in rows {
        let file = changed(name, change);
        let chip = Chip::of(file.path(), program, &[]);
        let found = recorded(&chip, "test_done", None).expect_err(expected);
        let (state, log) = chip.state();
        assert_eq!(found.name(), expected, "{name}: {found}");
        assert_eq!(state["halted"], true, "{name}: {expected}");
        let has_run = expected == "nothing_recorded";
        assert_eq!(log.contains("core runs"), has_run, "{name}: {expected}\n{log}");
    }
}

/// The list with a step of a plan's setup and stop, and its place there.
fn list(plan: &mut Plan, index: usize) -> (&mut Vec<Step>, usize) {
    match index.checked_sub(plan.setup.len()) {
        None => (&mut plan.setup, index),
        Some(index) => (&mut plan.stop, index),
    }
}

/// Each step of each plan is needed, but for those whose lack the simulation cannot notice.
#[tracewalk_corpus::test]
#[ignore = "takes minutes"]
fn heavy_a_plan_without_a_step_or_with_one_elsewhere_records_less_or_is_refused() {
    let unnoticed = |chip: &str, step: &Step| {
        let of_name = [
            "AUTHSTATUS",
            "LSR",
            "CLAIMCLR",
            "ETMTRIGGER",
            "ETMSR",
            "ETMIDR",
            "TRG",
            "RRP",
            "BUFWM",
            "TRCPDCR",
            "TRCOSLSR",
            "TRCSTATR",
            "TRCIDR1",
            "TRCCONFIGR",
            "TRCEVENTCTL0R",
            "TRCEVENTCTL1R",
            "TRCSTALLCTLR",
            "TRCTSCTLR",
            "TRCSYNCPR",
            "TRCVISSCTLR",
            "STS",
            "FFSR",
            "MTB_FLOW",
        ];
        // An MTB needs no permission.
        let is_of_mtb = chip == "m0plus-mtb"
            && (step.register().name == "DEMCR" || matches!(step, Step::Change { clear: 1.., .. }));
        // The next write says it again.
        let stops_at_flush = matches!(step, Step::Write(at, 0x1001 | 0x1003) if at.name == "FFCR");
        matches!(step, Step::Note(_) | Step::Poll { .. })
            || stops_at_flush
            || is_of_mtb
            || of_name.contains(&step.register().name)
    };
    // The units trace already, as firmware or another debugger left them.
    const ETM: &str = "0xE000EDFC 0x01000000\n0xE0041FB0 0xC5ACCE55\n";
    for (name, program, buffer, before, expected) in [
        (
            "m0plus-mtb",
            "gauge-m0",
            Some("trace_buffer"),
            "0xf0000008 1\n0xf0000000 8\n0xf0000004 0x80000006\n",
            (5, 2),
        ),
        ("m3-etm-etb", "gauge-m3", None, "0xE0042FB0 0xC5ACCE55\n0xE0042020 1\n0xE0041000 0x890\n", (15, 15)),
        (
            "m7-etm4-tmc",
            "gauge-m3",
            None,
            "0xE0041300 0\n0xE0041004 1\n0xE0044FB0 0xC5ACCE55\n0xE0044020 1\n",
            (17, 18),
        ),
    ] {
        let preset = tempfile::NamedTempFile::new().expect("room for a file");
        let text = if buffer.is_some() { before.to_owned() } else { ETM.to_owned() + before };
        std::fs::write(preset.path(), text).expect("room for a file");
        let preset = preset.path().to_str().expect("a plain name");
        let record = |change: &dyn Fn(&mut Plan), is_preset: bool| {
            let options = ["--preset", preset];
            let chip = Chip::new(name, program, if is_preset { &options } else { &[] });
            let mut session = chip.session();
            let until = Until::Address(chip.symbol("test_done").0);
            let buffer = buffer.map(|name| chip.symbol(name));
            let request = Request { buffer, chip: chip.known(), ..Request::new(until) };
            let mut setup = session.plan(&request, false).expect("a plan");
            let plan = setup.plan.clone();
            change(&mut setup.plan);
            let recorded = session.record(&setup, until, &|| false).map(|recording| recording.bytes);
            drop(session);
            (recorded, plan, chip.state().0)
        };
        let (whole, plan, _) = record(&|_| {}, false);
        let whole = whole.expect("it can be recorded");
        assert_eq!(record(&|_| {}, true).0.as_ref(), Ok(&whole), "{name}");
        let is_noticed = |change: &dyn Fn(&mut Plan)| {
            [false, true].into_iter().any(|is_preset| {
                let (bytes, _, state) = record(change, is_preset);
                bytes.as_ref() != Ok(&whole) || state["tracing"] != Value::Array(Vec::new())
            })
        };
        let steps = plan.setup.iter().chain(&plan.stop).collect::<Vec<_>>();
        let mut noticed = (0, 0);
        for (index, step) in steps.iter().enumerate() {
            let is_noticed_without = is_noticed(&|plan| {
                let (steps, at) = list(plan, index);
                steps.remove(at);
            });
            let is_noticed_elsewhere = is_noticed(&|plan| {
                let (steps, at) = list(plan, index);
                let step = steps.remove(at);
                steps.insert(if at == steps.len() { 0 } else { steps.len() }, step);
            });
            println!(
                "{name}: without {step}: {is_noticed_without}; at the other end: {is_noticed_elsewhere}"
            );
            assert!(is_noticed_without || unnoticed(name, step), "{name}: without {step}");
            noticed.0 += u32::from(is_noticed_without);
            noticed.1 += u32::from(is_noticed_elsewhere);
        }
        // What is not noticed elsewhere may be anywhere before the target runs.
        assert_eq!(noticed, expected, "{name}");
    }
}
