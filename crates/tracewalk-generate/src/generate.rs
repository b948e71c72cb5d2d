//! The command `capture`: a record → a capture of its trace.

use std::error::Error;

use tracewalk::frame::FormatterOptions;
use tracewalk::ids::{SecurityState, TraceId};
use tracewalk::protocol::etmv3;
use tracewalk_generate::capture::{self, Capture, Container, File, Unit};
use tracewalk_generate::container::{self, SourceBytes};
use tracewalk_generate::elf::Elf;
use tracewalk_generate::etmv3::{Cancel, Options, encode};
use tracewalk_generate::path::Path;
use tracewalk_generate::trace::Trace;

use crate::arguments::{Arguments, number};
use crate::{read_elf, read_record, write};

/// The trace ID where none is given.
const USUAL_ID: u32 = 0x10;

pub(crate) fn run(mut arguments: Arguments) -> Result<(), Box<dyn Error>> {
    let record_file = arguments.required("--record")?;
    let elf_file = arguments.required("--elf")?;
    let folder = arguments.required("--output")?;
    let protocol = arguments.required("--protocol")?;
    let elf = read_elf(&elf_file)?;
    let record = read_record(&record_file)?;
    let path = Path::expand(&record, &elf.program).map_err(|error| format!("{record_file}: {error}"))?;
    let files = match protocol.split_once(',').unwrap_or((&protocol, "")) {
        ("etmv3", keys) => etmv3_files(&path, &elf, &elf_file, keys, arguments)?,
        (other, _) => return Err(format!("\"{other}\" is not a protocol that can be generated").into()),
    };
    std::fs::create_dir_all(&folder).map_err(|error| format!("{folder}: {error}"))?;
    for file in files {
        write(&format!("{folder}/{}", file.name), &file.bytes)?;
    }
    Ok(())
}

fn etmv3_files(
    path: &Path,
    elf: &Elf,
    elf_file: &str,
    keys: &str,
    mut arguments: Arguments,
) -> Result<Vec<File>, Box<dyn Error>> {
    let mut keys = Keys::parse(keys)?;
    let id = trace_id(arguments.number("--id")?.unwrap_or(USUAL_ID))?;
    let etmcr = keys.register("etmcr")?.unwrap_or(0) | etmcr_bits(&mut arguments)?;
    let registers = etmv3::Registers {
        etmcr: Some(etmcr),
        etmidr: keys.register("etmidr")?,
        etmccer: keys.register("etmccer")?,
        etmtraceidr: Some(u32::from(id.get())),
    };
    let core = etmv3::Core::named(&keys.cpu).ok_or_else(|| format!("\"{}\" has no known ETMv3", keys.cpu))?;
    let config = etmv3::Config::from_registers(registers, Some(core))?;
    let trace = encode(path, &elf.program, &config, &options(&mut arguments)?)?;
    let mut given = Vec::new();
    let named = [("etmcr", Some(etmcr)), ("etmidr", registers.etmidr), ("etmccer", registers.etmccer)];
    for (name, value) in named {
        given.extend(value.filter(|&value| value != 0).map(|value| (name.to_owned(), value)));
    }
    let unit = Unit { protocol: "etmv3", cpu: keys.cpu.clone(), id: Some(id), registers: given };
    let snapshot = arguments.flag("--snapshot");
    let capture = contain(&trace, unit, &mut arguments)?;
    arguments.finish()?;
    let mut files = if snapshot {
        let usual = core.registers();
        capture.snapshot(
            &elf.program,
            "ETM3.5",
            &[
                ("ETMCR(0x000)", etmcr),
                ("ETMIDR(0x079)", registers.etmidr.or(usual.etmidr).unwrap_or(0)),
                ("ETMCCER(0x07A)", registers.etmccer.or(usual.etmccer).unwrap_or(0)),
                ("ETMTRACEIDR(0x080)", u32::from(id.get())),
            ],
        )
    } else {
        let image =
            std::path::Path::new(elf_file).file_name().and_then(|name| name.to_str()).unwrap_or(elf_file);
        let mut files = capture.files(&[image]);
        files.push(File { name: image.to_owned(), bytes: crate::read(elf_file)? });
        files
    };
    files.push(capture::runs_file(Some(id), elf.profile, &trace.told));
    Ok(files)
}

/// ETMCR's bits by their meaning.
fn etmcr_bits(arguments: &mut Arguments) -> Result<u32, String> {
    let mut bits = 0;
    for (flag, bit) in
        [("--data-values", 2), ("--data-addresses", 3), ("--branch-broadcast", 8), ("--cycle-accurate", 12)]
    {
        bits |= u32::from(arguments.flag(flag)) << bit;
    }
    bits |= match arguments.number("--context-id-bytes")? {
        None | Some(0) => 0b00,
        Some(1) => 0b01,
        Some(2) => 0b10,
        Some(4) => 0b11,
        Some(other) => return Err(format!("--context-id-bytes: {other} is not 0, 1, 2 or 4")),
    } << 14;
    Ok(bits)
}

fn options(arguments: &mut Arguments) -> Result<Options, String> {
    let usual = Options::default();
    Ok(Options {
        synchronise_every: match arguments.number("--synchronise")? {
            None => usual.synchronise_every,
            Some(0) => None,
            Some(bytes) => usize::try_from(bytes).ok(),
        },
        timestamp_every: arguments.number("--timestamps")?.map(u64::from),
        cancel: match arguments.optional("--cancel")?.as_deref() {
            None => usual.cancel,
            Some("never") => Cancel::Never,
            Some("multiple") => Cancel::Multiple,
            Some("always") => Cancel::Always,
            Some(other) => return Err(format!("--cancel: \"{other}\" is not never, multiple or always")),
        },
        tail_chaining_cancels: !arguments.flag("--tail-chaining-follows"),
        deprecated_exceptions: arguments.flag("--deprecated-exceptions"),
        security: SecurityState { non_secure: arguments.flag("--non-secure"), hypervisor: false },
    })
}

fn contain(trace: &Trace, unit: Unit, arguments: &mut Arguments) -> Result<Capture, String> {
    let mut sources = Vec::new();
    sources.extend(unit.id.map(|id| SourceBytes { id, bytes: trace.bytes.clone() }));
    if let Some(itm) = arguments.optional("--itm")? {
        let (id, text) = itm.split_once(':').ok_or("--itm: expected ID:TEXT")?;
        sources.push(SourceBytes { id: trace_id(number("--itm", id)?)?, bytes: container::itm_text(text) });
    }
    let (container, bytes) = match arguments.optional("--container")?.as_deref() {
        None | Some("frames") => {
            (Container::Frames, container::frames(&sources, FormatterOptions::default()))
        }
        Some("raw") if sources.len() > 1 => {
            return Err("--itm: only frames can hold another source".to_owned());
        }
        Some("raw") => (Container::Raw, trace.bytes.clone()),
        Some(other) => return Err(format!("--container: \"{other}\" is not frames or raw")),
    };
    Ok(Capture { container, unit, bytes })
}

fn trace_id(number: u32) -> Result<TraceId, String> {
    let id = u8::try_from(number).ok().and_then(TraceId::new);
    id.ok_or_else(|| format!("0x{number:x} is not a trace ID, which are 0x01 to 0x6f"))
}

/// The keys behind a protocol's name.
struct Keys {
    cpu: String,
    registers: Vec<(String, u32)>,
}

impl Keys {
    fn parse(text: &str) -> Result<Self, String> {
        let mut cpu = None;
        let mut registers = Vec::new();
        for key in text.split(',').filter(|key| !key.is_empty()) {
            let (name, value) =
                key.split_once('=').ok_or_else(|| format!("\"{key}\": expected key=value"))?;
            match name {
                "cpu" => cpu = Some(value.to_owned()),
                "etmcr" | "etmidr" | "etmccer" => registers.push((name.to_owned(), number(name, value)?)),
                _ => return Err(format!("\"{name}\" is no key; there are cpu, etmcr, etmidr and etmccer")),
            }
        }
        Ok(Self { cpu: cpu.ok_or("--protocol needs cpu=")?, registers })
    }

    fn register(&mut self, name: &str) -> Result<Option<u32>, String> {
        Ok(self.registers.iter().find(|(register, _)| register == name).map(|(_, value)| *value))
    }
}
