//! Reads generated frames with OpenCSD if it is installed (Debian: libopencsd-bin): a second decoder must
//! find what the emulator recorded. `cargo xtask opencsd` compares the protocols.

use crate::common::firmware;
use crate::common::opencsd::{list, runs};
use tracewalk::frame::FormatterOptions;
use tracewalk::ids::TraceId;
use tracewalk::protocol::{etmv3 as etmv3_protocol, etmv4 as etmv4_protocol};
use tracewalk_generate::capture::{Capture, Container, Unit};
use tracewalk_generate::container::{self, SourceBytes};
use tracewalk_generate::elf::Elf;
use tracewalk_generate::etmv3;
use tracewalk_generate::etmv4::{self, ContextPlace};
use tracewalk_generate::firmware::Firmware;
use tracewalk_generate::path::Path;
use tracewalk_generate::record::{Profile, Record};
use tracewalk_generate::trace::Trace;

fn traced_without_returns(elf: &Elf, traced: &Path) -> String {
    let runs = Record::of_path(elf.profile, traced).runs().to_string();
    let shorten = |line: &str| match line.strip_prefix("X ").and_then(|rest| rest.split_once(' ')) {
        Some((number, _)) => format!("X {}\n", printed_number(elf.profile, number)),
        None => format!("{line}\n"),
    };
    runs.lines().map(shorten).collect()
}

/// OpenCSD prints the packet's exception code if its own table does not contain the exception: M profile's
/// interrupts (E-058, E-059).
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
    /// The minor version of the trace unit's architecture.
    minor_version: u8,
    etmcr: u32,
    etmidr: Option<u32>,
    etmccer: Option<u32>,
}

/// Checks that OpenCSD, if it is installed, finds the path that the trace contains.
fn check(elf: &Elf, trace: &Trace, unit: &Described, container: Container) {
    let registers = [
        ("ETMCR", unit.etmcr),
        ("ETMIDR", unit.etmidr.unwrap()),
        ("ETMCCER", unit.etmccer.unwrap()),
        ("ETMTRACEIDR", u32::from(id().get())),
    ];
    let source = (unit.protocol, unit.cpu, unit.minor_version);
    check_source(elf, trace, source, &registers, container);
}

fn check_source(
    elf: &Elf,
    trace: &Trace,
    (protocol, cpu, minor_version): (&'static str, &str, u8),
    registers: &[(&'static str, u32)],
    container: Container,
) {
    let bytes = match container {
        Container::Frames => {
            let itm = SourceBytes { id: TraceId::new(1).unwrap(), bytes: container::itm_text("between") };
            let sources = [SourceBytes { id: id(), bytes: trace.bytes.clone() }, itm];
            container::frames(&sources, FormatterOptions::default())
        }
        _ => trace.bytes.clone(),
    };
    let source = Unit { protocol, cpu: Some(cpu.to_owned()), id: Some(id()), registers: Vec::new() };
    let capture = Capture { container, unit: source, itm: None, watched: None, bytes };
    let folder = tempfile::tempdir().unwrap();
    for file in capture.snapshot(&elf.program, minor_version, registers) {
        std::fs::write(folder.path().join(file.name), file.bytes).unwrap();
    }
    let listing = list(folder.path());
    let (traced, found) = (traced_without_returns(elf, &trace.path), runs(&listing));
    for (number, (traced, found)) in traced.lines().zip(found.lines()).enumerate() {
        assert_eq!(traced, found, "line {number}, {cpu}, {registers:x?}, {container:?}");
    }
    assert_eq!(traced.lines().count(), found.lines().count());
}

/// Without cancelling: OpenCSD loses most cancelled instructions.
#[test]
#[ignore = "needs OpenCSD"]
fn opencsd_finds_the_m3_program_in_frames() {
    use etmv3_protocol::{Config, Core, Registers};
    let Firmware { elf, path } = firmware("m3");
    for (etmcr, container) in [(0, Container::Frames), (0x100, Container::Frames)] {
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
        let unit =
            Described { protocol: "etmv3", cpu: "cortex-m3", minor_version: 5, etmcr, etmidr, etmccer };
        check(&elf, &trace, &unit, container);
    }
}

/// A32 and T32 code of a Cortex-A53. Leaves out M profile, because Debian's OpenCSD walks to tail-chained
/// exceptions from a stale address, and cycle counts that commit, which OpenCSD does not know.
#[test]
#[ignore = "needs OpenCSD"]
fn opencsd_finds_the_a9_program_in_etmv4() {
    use etmv4_protocol::{Config, Core, Registers};
    const COMMITTING: u32 = 0x0800_0ea1;
    const WITH_Q: u32 = 0x2801_cea1;
    let Firmware { elf, path } = firmware("a9");
    let usual = etmv4::Options::default();
    let units = [
        (0x1001, 0, None, usual),
        (0x51, 30, None, etmv4::Options { context_ids: true, ..usual }),
        (0x1, 6, Some(COMMITTING), etmv4::Options { wrong_path_every: Some(1), ..usual }),
        (0x9, 0, None, etmv4::Options { branch_broadcast: true, late_addresses: true, ..usual }),
        (0x41, 0, None, etmv4::Options { context_ids: true, contexts: ContextPlace::Before, ..usual }),
        (0x41, 0, None, etmv4::Options { context_ids: true, contexts: ContextPlace::After, ..usual }),
        (0x1, 0, Some(WITH_Q), etmv4::Options { q_every: Some(5), ..usual }),
        (0x1, 0, None, etmv4::Options { pauses: "700:90:overflow".parse().ok(), ..usual }),
    ];
    for (trcconfigr, trcidr8, trcidr0, options) in units {
        let core = Core::named("cortex-a53").unwrap();
        let given = Registers {
            trcconfigr: Some(trcconfigr),
            trcidr0,
            trcidr8: Some(trcidr8),
            ..Registers::default()
        };
        let all = given.or_usual_of(core);
        let config = Config::from_registers(all, Some(core.profile())).unwrap();
        let trace = etmv4::encode(&path, &elf.program, &config, &options).unwrap();
        let registers = [
            ("TRCCONFIGR", trcconfigr),
            ("TRCTRACEIDR", u32::from(id().get())),
            ("TRCIDR0", all.trcidr0.unwrap()),
            ("TRCIDR1", all.trcidr1.unwrap()),
            ("TRCIDR2", all.trcidr2.unwrap()),
            ("TRCIDR8", trcidr8),
        ];
        check_source(&elf, &trace, ("etmv4", "cortex-a53", 0), &registers, Container::Frames);
    }
}
