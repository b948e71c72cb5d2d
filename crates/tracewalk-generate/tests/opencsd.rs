//! Generated traces, read by OpenCSD where it is installed (Debian: libopencsd-bin): another decoder has to find what
//! the emulator recorded as well. Only where OpenCSD is known to be right; see the comments.

mod common;

use std::path::Path as FilePath;
use std::process::Command;

use common::Firmware;
use tracewalk::frame::FormatterOptions;
use tracewalk::ids::TraceId;
use tracewalk::protocol::{etmv3 as etmv3_protocol, pft as pft_protocol};
use tracewalk_generate::capture::{Capture, Container, Unit};
use tracewalk_generate::container::{self, SourceBytes};
use tracewalk_generate::elf::Elf;
use tracewalk_generate::path::Path;
use tracewalk_generate::record::{Profile, Record};
use tracewalk_generate::trace::Trace;
use tracewalk_generate::{etmv3, pft};

/// What OpenCSD prints for a snapshot, or `None` where it is not installed.
fn list(folder: &FilePath) -> Option<String> {
    let lister =
        Command::new("trc_pkt_lister").args(["-ss_dir", ".", "-decode"]).current_dir(folder).output();
    match lister {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "trc_pkt_lister: {error}");
            println!("skipped: trc_pkt_lister: {error}");
            None
        }
    }
}

/// OpenCSD's elements in the `runs` format, without preferred return addresses, which it prints for PFT only.
fn runs(listing: &str) -> String {
    let mut lines = Vec::new();
    let mut current = None::<(String, String, &str)>;
    for line in listing.lines() {
        if let Some((_, range)) = line.split_once("exec range=0x") {
            let (start, rest) = range.split_once(":[0x").unwrap();
            let (end, rest) = rest.split_once(']').unwrap();
            let isa = if rest.contains("(ISA=T32)") { "t32" } else { "a32" };
            match &mut current {
                Some(run) if run.1 == start && run.2 == isa => end.clone_into(&mut run.1),
                _ => {
                    lines.extend(current.replace((start.to_owned(), end.to_owned(), isa)));
                }
            }
        } else if let Some((_, number)) = line.split_once("excep num (0x") {
            lines.extend(current.take());
            let number = u32::from_str_radix(number.split(')').next().unwrap(), 16).unwrap();
            lines.push((format!("X {number}"), String::new(), ""));
        } else if line.contains("OCSD_GEN_TRC_ELEM_EXCEPTION_RET") {
            lines.extend(current.take());
            lines.push(("T".to_owned(), String::new(), ""));
        }
    }
    lines.extend(current);
    let line = |(start, end, isa): (String, String, &str)| match isa {
        "" => format!("{start}\n"),
        isa => format!("R {start} {end} {isa}\n"),
    };
    lines.into_iter().map(line).collect()
}

fn told_without_returns(elf: &Elf, told: &Path) -> String {
    let runs = Record::of_path(elf.profile, told).runs().to_string();
    let shorten = |line: &str| match line.strip_prefix("X ").and_then(|rest| rest.split_once(' ')) {
        Some((number, _)) => format!("X {}\n", printed_number(elf.profile, number)),
        None => format!("{line}\n"),
    };
    runs.lines().map(shorten).collect()
}

/// OpenCSD prints the code of the packet for the exceptions that are not in its own table: M profile's interrupts
/// (E-058, E-059).
fn printed_number(profile: Profile, number: &str) -> u32 {
    match (profile, number.parse().unwrap()) {
        (Profile::M, 16) => 8,
        (Profile::M, number @ 17..=23) => number - 16,
        (_, number) => number,
    }
}

fn id() -> TraceId {
    TraceId::new(0x10).unwrap()
}

/// A trace unit as a snapshot describes it.
struct Described {
    protocol: &'static str,
    cpu: &'static str,
    /// What OpenCSD calls it.
    name: &'static str,
    etmcr: u32,
    etmidr: Option<u32>,
    etmccer: Option<u32>,
}

/// Checks that OpenCSD, if it is there, finds what the trace is to tell.
fn check(elf: &Elf, trace: &Trace, unit: &Described, container: Container) {
    let bytes = match container {
        Container::Frames => {
            let itm = SourceBytes { id: TraceId::new(1).unwrap(), bytes: container::itm_text("between") };
            let sources = [SourceBytes { id: id(), bytes: trace.bytes.clone() }, itm];
            container::frames(&sources, FormatterOptions::default())
        }
        _ => trace.bytes.clone(),
    };
    let registers = [
        ("ETMCR(0x000)", unit.etmcr),
        ("ETMIDR(0x079)", unit.etmidr.unwrap()),
        ("ETMCCER(0x07A)", unit.etmccer.unwrap()),
        ("ETMTRACEIDR(0x080)", u32::from(id().get())),
    ];
    let source = Unit {
        protocol: unit.protocol,
        cpu: Some(unit.cpu.to_owned()),
        id: Some(id()),
        registers: Vec::new(),
    };
    let capture = Capture { container, unit: source, bytes };
    let folder = tempfile::tempdir().unwrap();
    for file in capture.snapshot(&elf.program, unit.name, &registers) {
        std::fs::write(folder.path().join(file.name), file.bytes).unwrap();
    }
    let Some(listing) = list(folder.path()) else { return };
    let (told, found) = (told_without_returns(elf, &trace.told), runs(&listing));
    for (number, (told, found)) in told.lines().zip(found.lines()).enumerate() {
        assert_eq!(told, found, "line {number}, {}, ETMCR {:#x}, {container:?}", unit.cpu, unit.etmcr);
    }
    assert_eq!(told.lines().count(), found.lines().count());
}

/// Without cancelling, which OpenCSD loses in most cases.
#[test]
fn opencsd_finds_the_m3_program() {
    use etmv3_protocol::{Config, Core, Registers};
    let Firmware { elf, path } = Firmware::load("m3");
    for (etmcr, container) in [(0, Container::Raw), (0x100, Container::Raw), (0, Container::Frames)] {
        let options = etmv3::Options {
            cancel: etmv3::Cancel::Never,
            tail_chaining_cancels: false,
            ..etmv3::Options::default()
        };
        let core = Core::named("cortex-m3").unwrap();
        let registers = Registers { etmcr: Some(etmcr), ..Registers::default() };
        let config = Config::from_registers(registers, Some(core)).unwrap();
        let trace = etmv3::encode(&path, &elf.program, &config, &options).unwrap();
        let Registers { etmidr, etmccer, .. } = core.registers();
        let unit = Described { protocol: "etmv3", cpu: "cortex-m3", name: "ETM3.5", etmcr, etmidr, etmccer };
        check(&elf, &trace, &unit, container);
    }
}

/// With timestamps, whose Gray codes OpenCSD does not resolve but whose length it has to find.
#[test]
fn opencsd_finds_the_a9_program_in_program_flow_trace() {
    use pft_protocol::{Config, Core, Registers};
    const BRANCH_BROADCAST: u32 = 1 << 8;
    const CYCLE_ACCURATE: u32 = 1 << 12;
    const CONTEXT_ID: u32 = 0b11 << 14;
    const RETURN_STACK: u32 = 1 << 29;
    let Firmware { elf, path } = Firmware::load("a9");
    for (cpu, name) in [("cortex-a9", "PTM1.0"), ("cortex-a15", "PTM1.1")] {
        for etmcr in [0, BRANCH_BROADCAST, CYCLE_ACCURATE, CONTEXT_ID, RETURN_STACK] {
            let core = Core::named(cpu).unwrap();
            let registers = Registers { etmcr: Some(etmcr), ..Registers::default() };
            let config = Config::from_registers(registers, Some(core)).unwrap();
            let options = pft::Options { timestamp_every: Some(100), ..pft::Options::default() };
            let trace = pft::encode(&path, &elf.program, &config, &options).unwrap();
            let Registers { etmidr, etmccer, .. } = core.registers();
            let unit = Described { protocol: "pft", cpu, name, etmcr, etmidr, etmccer };
            check(&elf, &trace, &unit, Container::Raw);
        }
    }
}
