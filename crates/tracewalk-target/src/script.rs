//! A recording as a script for GDB, OpenOCD or pyOCD, for those who want to make the accesses themselves. A script is the text that
//! defines what a step does, and one line for each step.

use std::str::FromStr;

use crate::choice::Setup;
use crate::plan::Step;
use crate::record::{self, Until};
use crate::sink::Sink;

/// What runs a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// GDB, connected to the target.
    Gdb,
    /// OpenOCD.
    OpenOcd,
    /// Python with pyOCD.
    PyOcd,
}

impl FromStr for Dialect {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "gdb" => Ok(Self::Gdb),
            "openocd" => Ok(Self::OpenOcd),
            "pyocd" => Ok(Self::PyOcd),
            _ => Err("expected gdb, openocd or pyocd"),
        }
    }
}

impl Dialect {
    /// The definitions that each script begins with.
    const fn definitions(self) -> &'static str {
        match self {
            Self::Gdb => include_str!("../scripts/record.gdb"),
            Self::OpenOcd => include_str!("../scripts/record.tcl"),
            Self::PyOcd => include_str!("../scripts/record.py"),
        }
    }

    fn line(self, (name, arguments): (&str, Vec<String>)) -> String {
        match self {
            Self::Gdb | Self::OpenOcd => format!("tw_{name} {}\n", arguments.join(" ")),
            Self::PyOcd => format!("tw_{name}({})\n", arguments.join(", ")),
        }
    }

    /// A name, which has no spaces.
    fn name(self, name: &str) -> String {
        if self == Self::PyOcd { format!("'{name}'") } else { name.to_owned() }
    }

    /// Any text of one line without single quotes and braces.
    fn text(self, text: &str) -> String {
        if self == Self::OpenOcd { format!("{{{text}}}") } else { format!("'{text}'") }
    }
}

/// The script of a recording, which writes `trace.bin` and `capture.toml`. The target has to be halted.
#[must_use]
pub fn script(dialect: Dialect, setup: &Setup, until: Until) -> String {
    let hex = |value: u32| format!("0x{value:x}");
    let describe =
        |text: &str| text.lines().map(|line| ("describe", vec![dialect.text(line)])).collect::<Vec<_>>();
    let steps = |steps: &[Step]| steps.iter().map(|step| of_step(dialect, step)).collect::<Vec<_>>();
    let file = if setup.pins().is_some() { "port.vcd" } else { "trace.bin" };
    let mut lines = vec![("begin", Vec::new())];
    lines.extend(describe(&record::head(
        file,
        (setup.source.kind, setup.id()),
        setup.cpu,
        setup.pins().is_some(),
    )));
    lines.extend(steps(&setup.plan.setup));
    lines.push(match until {
        Until::Address(address) => ("run_to", vec![hex(address)]),
        Until::Time(time) => ("run_for", vec![time.as_millis().to_string()]),
        Until::Asked => ("run", Vec::new()),
    });
    lines.extend(steps(&setup.plan.stop));
    lines.push(match setup.sink {
        Sink::Memory((address, bytes)) => ("read", vec![hex(address), hex(bytes)]),
        Sink::Ring((address, bytes), ring) => {
            ("read_ring", [address, bytes, ring.pointer, ring.left, ring.of, ring.count].map(hex).to_vec())
        }
        Sink::Etb(base) => ("read_etb", vec![hex(base)]),
        Sink::Tmc(base) => ("read_tmc", vec![hex(base)]),
        Sink::Etr(base, (address, bytes)) => ("read_etr", [base, address, bytes].map(hex).to_vec()),
        Sink::Pins(..) => ("read_nothing", Vec::new()),
    });
    lines.extend(steps(&setup.plan.restore));
    if setup.has_itm {
        lines.extend(describe(&record::itm_source()));
    }
    let lines = lines.into_iter().map(|line| dialect.line(line));
    std::iter::once(dialect.definitions().to_owned()).chain(lines).collect()
}

/// The name and the arguments of a step.
fn of_step(dialect: Dialect, step: &Step) -> (&'static str, Vec<String>) {
    let at = step.register();
    let (verb, values) = match *step {
        Step::Write(_, value) => ("write", vec![value]),
        Step::Set { value, mask, .. } => ("set", vec![value, mask]),
        Step::Change { clear, set, key, .. } => ("change", vec![clear, set, key]),
        Step::Expect { mask, value, .. } => ("expect", vec![mask, value]),
        Step::Forbid { mask, value, .. } => ("forbid", vec![mask, value]),
        Step::Poll { mask, value, .. } => ("poll", vec![mask, value]),
        Step::Keep(_) => ("keep", Vec::new()),
        Step::Note(_) => ("note", Vec::new()),
        Step::Restore(_) => ("restore", Vec::new()),
    };
    let name = if verb == "note" { at.name.to_lowercase() } else { format!("{}.{}", at.unit, at.name) };
    let values = values.into_iter().map(|value| format!("0x{value:x}"));
    (verb, [dialect.name(&name), format!("0x{:x}", at.address())].into_iter().chain(values).collect())
}
