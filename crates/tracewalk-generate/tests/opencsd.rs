//! Generated traces, read by OpenCSD where it is installed (Debian: libopencsd-bin): another decoder has to find what
//! the emulator recorded as well. Only where OpenCSD is known to be right; see the comments.

mod common;

use std::path::Path as FilePath;
use std::process::Command;

use common::Firmware;
use tracewalk::frame::FormatterOptions;
use tracewalk::ids::TraceId;
use tracewalk::protocol::etmv3::{Config, Core, Registers};
use tracewalk_generate::capture::{Capture, Container, Unit};
use tracewalk_generate::container::{self, SourceBytes};
use tracewalk_generate::elf::Elf;
use tracewalk_generate::etmv3::{Cancel, Options, encode};
use tracewalk_generate::path::Path;
use tracewalk_generate::record::Record;

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

/// OpenCSD's elements in the `runs` format, without preferred return addresses, which it does not print.
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
        } else if let Some((_, number)) = line.split_once("OCSD_GEN_TRC_ELEM_EXCEPTION(excep num (0x") {
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
        Some((number, _)) => format!("X {}\n", m_profile_code(number)),
        None => format!("{line}\n"),
    };
    runs.lines().map(shorten).collect()
}

/// OpenCSD prints the code of the packet for the exceptions that are not in its own table: interrupts (E-058, E-059).
fn m_profile_code(number: &str) -> u32 {
    match number.parse().unwrap() {
        16 => 8,
        number @ 17..=23 => number - 16,
        number => number,
    }
}

/// Without cancelling, which OpenCSD loses in most cases.
#[test]
fn opencsd_finds_the_m3_program() {
    let id = TraceId::new(0x10).unwrap();
    let Firmware { elf, path } = Firmware::load("m3");
    for (etmcr, container) in [(0, Container::Raw), (0x100, Container::Raw), (0, Container::Frames)] {
        let options = Options { cancel: Cancel::Never, tail_chaining_cancels: false, ..Options::default() };
        let core = Core::named("cortex-m3").unwrap();
        let config =
            Config::from_registers(Registers { etmcr: Some(etmcr), ..Registers::default() }, Some(core))
                .unwrap();
        let trace = encode(&path, &elf.program, &config, &options).unwrap();
        let bytes = match container {
            Container::Raw => trace.bytes.clone(),
            _ => {
                let itm = SourceBytes { id: TraceId::new(1).unwrap(), bytes: container::itm_text("between") };
                let sources = [SourceBytes { id, bytes: trace.bytes.clone() }, itm];
                container::frames(&sources, FormatterOptions::default())
            }
        };
        let unit = Unit {
            protocol: "etmv3",
            cpu: Some("cortex-m3".to_owned()),
            id: Some(id),
            registers: Vec::new(),
        };
        let usual = core.registers();
        let registers = [
            ("ETMCR(0x000)", etmcr),
            ("ETMIDR(0x079)", usual.etmidr.unwrap()),
            ("ETMCCER(0x07A)", usual.etmccer.unwrap()),
            ("ETMTRACEIDR(0x080)", u32::from(id.get())),
        ];
        let folder = tempfile::tempdir().unwrap();
        for file in (Capture { container, unit, bytes }).snapshot(&elf.program, "ETM3.5", &registers) {
            std::fs::write(folder.path().join(file.name), file.bytes).unwrap();
        }
        let Some(listing) = list(folder.path()) else { return };
        let (told, found) = (told_without_returns(&elf, &trace.told), runs(&listing));
        for (number, (told, found)) in told.lines().zip(found.lines()).enumerate() {
            assert_eq!(told, found, "line {number}, ETMCR {etmcr:#x}, {container:?}");
        }
        assert_eq!(told.lines().count(), found.lines().count());
    }
}
