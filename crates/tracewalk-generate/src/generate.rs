//! The command `capture`: encodes a path as a capture of its trace, for each protocol but ETMv4.

use std::error::Error;

use tracewalk::frame::FormatterOptions;
use tracewalk::ids::{Address, TraceId};
use tracewalk::protocol::SecurityBits;
use tracewalk::protocol::{etmv3 as etmv3_protocol, mtb as mtb_protocol, pft as pft_protocol};
use tracewalk_generate::capture::{self, Capture, Container, File, Unit};
use tracewalk_generate::container::{self, SourceBytes};
use tracewalk_generate::dwt::Dwt;
use tracewalk_generate::elf::Elf;
use tracewalk_generate::path::Path;
use tracewalk_generate::trace::{Pauses, Trace};
use tracewalk_generate::{etmv3, mtb, pft};

use crate::files::write;
use tracewalk_generate::arguments::{Arguments, number};

/// The default trace ID.
const USUAL_ID: u32 = 0x10;

/// The default size of an MTB's buffer, and the default address of its memory.
const USUAL_MTB_BYTES: u32 = 4096;
const USUAL_MTB_BASE: u32 = 0x2000_0000;

/// The program and path to be traced.
pub(crate) struct Input {
    pub(crate) path: Path,
    pub(crate) elf: Elf,
    /// The ELF file's name without its folder, and its bytes.
    pub(crate) image: File,
}

pub(crate) fn etmv3_files(
    input: &Input,
    keys: &Keys,
    mut arguments: Arguments,
) -> Result<Vec<File>, Box<dyn Error>> {
    let id = source_id(&mut arguments)?;
    let cpu = keys.cpu()?;
    let core = etmv3_protocol::Core::named(cpu)
        .ok_or_else(|| format!("\"{cpu}\" is not a processor with a known ETMv3"))?;
    let flags =
        [("--data-values", 2), ("--data-addresses", 3), ("--branch-broadcast", 8), ("--cycle-accurate", 12)];
    let set = Settings::new(keys, &flags, id, &mut arguments)?;
    let registers = etmv3_protocol::Registers {
        etmcr: Some(set.etmcr),
        etmidr: set.etmidr,
        etmccer: set.etmccer,
        etmtraceidr: Some(u32::from(id.get())),
    };
    let config = etmv3_protocol::Config::from_registers(registers, Some(core))?;
    let usual = etmv3::Options::default();
    let options = etmv3::Options {
        synchronise_every: synchronise_every(&mut arguments, usual.synchronise_every)?,
        timestamp_every: arguments.number("--timestamps")?.map(u64::from),
        cancel: match arguments.optional("--cancel")?.as_deref() {
            None => usual.cancel,
            Some("never") => etmv3::Cancel::Never,
            Some("multiple") => etmv3::Cancel::Multiple,
            Some("always") => etmv3::Cancel::Always,
            Some(other) => {
                return Err(format!("--cancel: \"{other}\" is not never, multiple or always").into());
            }
        },
        tail_chaining_cancels: !arguments.flag("--tail-chaining-follows"),
        deprecated_exceptions: arguments.flag("--deprecated-exceptions"),
        security: security(&mut arguments),
        pauses: pauses(&mut arguments)?,
        trigger_every: arguments.number("--triggers")?.map(u64::from),
    };
    let trace = etmv3::encode(&input.path, &input.elf.program, &config, &options)?;
    let usual = core.registers();
    source_files(
        input,
        "etmv3",
        cpu,
        config.minor_version(),
        &set.or(usual.etmidr, usual.etmccer),
        &trace,
        arguments,
    )
}

pub(crate) fn pft_files(
    input: &Input,
    keys: &Keys,
    mut arguments: Arguments,
) -> Result<Vec<File>, Box<dyn Error>> {
    let id = source_id(&mut arguments)?;
    let cpu = keys.cpu()?;
    let core = pft_protocol::Core::named(cpu)
        .ok_or_else(|| format!("\"{cpu}\" is not a processor with a known PTM"))?;
    let flags = [("--branch-broadcast", 8), ("--cycle-accurate", 12), ("--return-stack", 29)];
    let set = Settings::new(keys, &flags, id, &mut arguments)?;
    let registers = pft_protocol::Registers {
        etmcr: Some(set.etmcr),
        etmidr: set.etmidr,
        etmccer: set.etmccer,
        etmtraceidr: Some(u32::from(id.get())),
    };
    let config = pft_protocol::Config::from_registers(registers, Some(core))?;
    let usual = pft::Options::default();
    let depth = arguments.number("--return-stack-depth")?.and_then(|depth| usize::try_from(depth).ok());
    let options = pft::Options {
        synchronise_every: synchronise_every(&mut arguments, usual.synchronise_every)?,
        timestamp_every: arguments.number("--timestamps")?.map(u64::from),
        return_stack_depth: depth.unwrap_or(usual.return_stack_depth),
        security: security(&mut arguments),
        pauses: pauses(&mut arguments)?,
        trigger_every: arguments.number("--triggers")?.map(u64::from),
    };
    let trace = pft::encode(&input.path, &input.elf.program, &config, &options)?;
    let usual = core.registers();
    let version = u8::from(config.version() == pft_protocol::Version::V1_1);
    source_files(input, "pft", cpu, version, &set.or(usual.etmidr, usual.etmccer), &trace, arguments)
}

pub(crate) fn mtb_files(
    input: &Input,
    keys: &Keys,
    mut arguments: Arguments,
) -> Result<Vec<File>, Box<dyn Error>> {
    if keys.cpu.is_some() || !keys.registers.is_empty() {
        return Err("--protocol mtb has no keys".into());
    }
    let bytes = arguments.number("--mtb-size")?.unwrap_or(USUAL_MTB_BYTES);
    let size = mtb_protocol::BufferSize::new(u64::from(bytes));
    let size = size.ok_or_else(|| format!("--mtb-size: {bytes} is not a power of two of at least 16"))?;
    let base = Address::from(arguments.number("--mtb-base")?.unwrap_or(USUAL_MTB_BASE));
    let options = mtb::Options {
        writes_branches_to_next: arguments.flag("--branches-to-next"),
        process_stack: arguments.flag("--process-stack"),
        ..mtb::Options::new(size, base)
    };
    arguments.finish()?;
    let buffer = mtb::encode(&input.path, &input.elf.program, &options)?;
    let mut registers =
        vec![("mtb_position", buffer.registers.position), ("mtb_master", buffer.registers.master)];
    registers.extend(buffer.registers.flow.map(|value| ("mtb_flow", value)));
    registers.extend(buffer.registers.base.map(|value| ("mtb_base", value)));
    let lines = registers.iter().map(|(name, value)| format!("{}=0x{value:08x}\n", name.to_uppercase()));
    let lines = lines.collect::<String>();
    let registers = registers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let unit = Unit { protocol: "mtb", cpu: None, id: None, registers };
    let capture = Capture { container: Container::Mtb, unit, itm: None, watched: None, bytes: buffer.bytes };
    let mut files = capture.files(&[&input.image.name]);
    files.push(input.image.clone());
    files.push(File { name: "registers.txt".to_owned(), bytes: lines.into_bytes() });
    files.push(capture::runs_file(None, input.elf.profile, &buffer.path));
    Ok(files)
}

/// The registers that a source was set up with.
struct Settings {
    etmcr: u32,
    etmidr: Option<u32>,
    etmccer: Option<u32>,
    id: TraceId,
}

impl Settings {
    /// Reads the keys, and the flags that are bits of ETMCR.
    fn new(
        keys: &Keys,
        flags: &[(&str, u32)],
        id: TraceId,
        arguments: &mut Arguments,
    ) -> Result<Self, String> {
        let mut etmcr = keys.register("etmcr").unwrap_or(0);
        for (flag, bit) in flags {
            etmcr |= u32::from(arguments.flag(flag)) << bit;
        }
        etmcr |= match arguments.number("--context-id-bytes")? {
            None | Some(0) => 0b00,
            Some(1) => 0b01,
            Some(2) => 0b10,
            Some(4) => 0b11,
            Some(other) => return Err(format!("--context-id-bytes: {other} is not 0, 1, 2 or 4")),
        } << 14;
        Ok(Self { etmcr, etmidr: keys.register("etmidr"), etmccer: keys.register("etmccer"), id })
    }

    /// Fills in the processor's usual values. Gives all registers by the names and numbers of a snapshot, and
    /// the registers that were given by the names of `capture.toml`.
    fn or(&self, etmidr: Option<u32>, etmccer: Option<u32>) -> AllRegisters {
        let given = [
            ("etmcr", Some(self.etmcr).filter(|&value| value != 0)),
            ("etmidr", self.etmidr),
            ("etmccer", self.etmccer),
        ];
        AllRegisters {
            given: given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect(),
            all: vec![
                ("ETMCR", self.etmcr),
                ("ETMIDR", self.etmidr.or(etmidr).unwrap_or(0)),
                ("ETMCCER", self.etmccer.or(etmccer).unwrap_or(0)),
                ("ETMTRACEIDR", u32::from(self.id.get())),
            ],
            id: self.id,
        }
    }
}

pub(crate) struct AllRegisters {
    pub(crate) given: Vec<(String, u32)>,
    pub(crate) all: Vec<(&'static str, u32)>,
    pub(crate) id: TraceId,
}

/// The files of a capture of one source's trace.
pub(crate) fn source_files(
    input: &Input,
    protocol: &'static str,
    cpu: &str,
    minor_version: u8,
    registers: &AllRegisters,
    trace: &Trace,
    mut arguments: Arguments,
) -> Result<Vec<File>, Box<dyn Error>> {
    let snapshot = arguments.flag("--snapshot");
    if let Some(file) = arguments.optional("--times")? {
        write(&file, trace.times_text(&input.path).as_bytes())?;
    }
    let unit = Unit {
        protocol,
        cpu: Some(cpu.to_owned()),
        id: Some(registers.id),
        registers: registers.given.clone(),
    };
    let capture = contain(input, unit, registers.id, trace, &mut arguments)?;
    arguments.finish()?;
    let mut files = if snapshot {
        capture.snapshot(&input.elf.program, minor_version, &registers.all)
    } else {
        let mut files = capture.files(&[&input.image.name]);
        files.push(input.image.clone());
        files
    };
    files.push(capture::runs_file(Some(registers.id), input.elf.profile, &trace.path));
    Ok(files)
}

/// Puts the trace into the requested container, together with an ITM if one was requested.
fn contain(
    input: &Input,
    unit: Unit,
    id: TraceId,
    trace: &Trace,
    arguments: &mut Arguments,
) -> Result<Capture, String> {
    if let Some(dwt) = arguments.optional("--dwt")? {
        let dwt = dwt.parse::<Dwt>().map_err(|error| format!("--dwt: {error}"))?;
        let bytes = dwt.frames(&input.path, &input.elf.program, id, trace);
        let (itm, watched) = (Some(dwt.id), Some(dwt.watched));
        return Ok(Capture { container: Container::Frames, unit, itm, watched, bytes });
    }
    let mut sources = vec![SourceBytes { id, bytes: trace.bytes.clone() }];
    let mut itm = None;
    if let Some(argument) = arguments.optional("--itm")? {
        let (id, text) = argument.split_once(':').ok_or("--itm: expected ID:TEXT")?;
        let id = trace_id(number("--itm", id)?)?;
        sources.push(SourceBytes { id, bytes: container::itm_text(text) });
        itm = Some(id);
    }
    let (container, bytes) = match arguments.optional("--container")?.as_deref() {
        None | Some("frames") => {
            (Container::Frames, container::frames(&sources, FormatterOptions::default()))
        }
        Some("raw") if itm.is_some() => return Err("--itm: only frames can hold another source".to_owned()),
        Some("raw") => (Container::Raw, trace.bytes.clone()),
        Some(other) => return Err(format!("--container: \"{other}\" is not frames or raw")),
    };
    Ok(Capture { container, unit, itm, watched: None, bytes })
}

pub(crate) fn synchronise_every(
    arguments: &mut Arguments,
    usual: Option<usize>,
) -> Result<Option<usize>, String> {
    Ok(match arguments.number("--synchronise")? {
        None => usual,
        Some(0) => None,
        Some(bytes) => usize::try_from(bytes).ok(),
    })
}

/// `TRACED:UNTRACED[:REASON]`, the first two in steps of the path.
pub(crate) fn pauses(arguments: &mut Arguments) -> Result<Option<Pauses>, String> {
    let text = arguments.optional("--pauses")?;
    text.map(|text| text.parse().map_err(|error| format!("--pauses: {error}"))).transpose()
}

fn security(arguments: &mut Arguments) -> SecurityBits {
    SecurityBits { non_secure: arguments.flag("--non-secure"), hypervisor: false }
}

pub(crate) fn source_id(arguments: &mut Arguments) -> Result<TraceId, String> {
    trace_id(arguments.number("--id")?.unwrap_or(USUAL_ID))
}

fn trace_id(number: u32) -> Result<TraceId, String> {
    let id = u8::try_from(number).ok().and_then(TraceId::new);
    id.ok_or_else(|| format!("0x{number:x} is not a trace ID, expected 0x01 to 0x6f"))
}

/// The registers that may be given; those of ETMv3 and PFT come first.
const REGISTERS: [&str; 9] =
    ["etmcr", "etmidr", "etmccer", "trcconfigr", "trcidr0", "trcidr1", "trcidr2", "trcidr8", "trcdevarch"];

/// The keys after a protocol's name.
pub(crate) struct Keys {
    cpu: Option<String>,
    registers: Vec<(String, u32)>,
}

impl Keys {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut keys = Self { cpu: None, registers: Vec::new() };
        for key in text.split(',').filter(|key| !key.is_empty()) {
            let (name, value) =
                key.split_once('=').ok_or_else(|| format!("\"{key}\": expected key=value"))?;
            match name {
                "cpu" => keys.cpu = Some(value.to_owned()),
                _ if REGISTERS.contains(&name) => {
                    keys.registers.push((name.to_owned(), number(name, value)?));
                }
                _ => {
                    let registers = REGISTERS.join(", ");
                    return Err(format!("\"{name}\" is not a key; the keys are cpu, {registers}"));
                }
            }
        }
        Ok(keys)
    }

    pub(crate) fn cpu(&self) -> Result<&str, String> {
        self.cpu.as_deref().ok_or_else(|| "--protocol needs cpu=".to_owned())
    }

    pub(crate) fn register(&self, name: &str) -> Option<u32> {
        self.registers.iter().find(|(register, _)| register == name).map(|(_, value)| *value)
    }
}
