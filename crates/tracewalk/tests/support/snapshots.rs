//! Captures with a description in the form of Arm's snapshots, as far as the corpus of ETMv4 and ETE has them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tracewalk::frame::{Discontinuity, FrameSink, Framing, Owner, Piece, RecoveringDeframer};
use tracewalk::ids::{Address, TraceId};
use tracewalk::program::Program;
use tracewalk::protocol::etmv4::{Config, Profile, Registers};

/// An ini file: its sections, in order, with their keys and values.
type Ini = Vec<(String, Vec<(String, String)>)>;

/// One session of a source, with its expected results.
pub(crate) struct Session {
    /// The capture, the source's ID and the session's number if there are several.
    pub(crate) name: String,
    pub(crate) config: Config,
    pub(crate) bytes: Vec<u8>,
    pub(crate) program: Program,
    /// The file of expected runs.
    runs: PathBuf,
    /// The file of sums.
    totals: PathBuf,
}

fn ini(path: &Path) -> Ini {
    let text = std::fs::read(path).expect("a file of the corpus");
    let mut sections = Ini::new();
    for line in String::from_utf8_lossy(&text).lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            sections.push((name.to_owned(), Vec::new()));
        } else if let (Some((_, entries)), Some((key, value)), false) =
            (sections.last_mut(), line.split_once('='), line.starts_with('#'))
        {
            // A register may have its offset in parentheses.
            let key = key.split('(').next().unwrap_or(key).trim();
            entries.push((key.to_owned(), value.trim().to_owned()));
        }
    }
    sections
}

fn section<'a>(ini: &'a Ini, name: &str) -> BTreeMap<&'a str, &'a str> {
    let entries = ini.iter().find(|(section, _)| section == name).map(|(_, entries)| entries);
    entries.into_iter().flatten().map(|(key, value)| (key.as_str(), value.as_str())).collect()
}

fn number(text: &str) -> u64 {
    let digits = text.trim_start_matches("0x").trim_start_matches("0X");
    u64::from_str_radix(digits, if digits.len() == text.len() { 10 } else { 16 }).expect("a number")
}

fn index(text: &str) -> usize {
    usize::try_from(number(text)).expect("a place in a file")
}

fn config(device: &Ini, core: &str) -> (Config, u64) {
    let registers = section(device, "regs");
    let register =
        |name: &str| registers.get(name).map(|value| u32::try_from(number(value)).expect("32 bits"));
    let is_ete = section(device, "device").get("type").is_some_and(|name| name.starts_with("ETE"));
    let registers = Registers {
        trcconfigr: register("TRCCONFIGR"),
        trcdevarch: register("TRCDEVARCH").filter(|_| is_ete),
        trcidr0: register("TRCIDR0"),
        trcidr1: register("TRCIDR1"),
        trcidr2: register("TRCIDR2"),
        trcidr8: register("TRCIDR8"),
        ..Registers::default()
    };
    let is_m = ["Cortex-M", "ARMv7-M", "ARMv8-M"].iter().any(|prefix| core.starts_with(prefix));
    let profile = if is_m { Profile::M } else { Profile::Ar };
    let id = register("TRCTRACEIDR").unwrap_or(0);
    (Config::from_registers(registers, Some(profile)).expect("the registers are sound"), id.into())
}

/// The core's memory. If two dumps overlap, the first one counts.
fn program(folder: &Path, core: &Ini) -> Program {
    let mut program = Program::new();
    for (_, entries) in core.iter().filter(|(name, _)| name.starts_with("dump")) {
        let get =
            |wanted: &str| entries.iter().find(|(key, _)| key == wanted).map(|(_, value)| value.as_str());
        let (Some(file), Some(address)) = (get("file"), get("address")) else { continue };
        let Ok(bytes) = std::fs::read(folder.join(file)) else { continue };
        let offset = get("offset").map_or(0, index);
        let bytes = bytes.get(offset..).unwrap_or_default();
        let length = get("length").map_or(bytes.len(), index);
        let _ = program.add(Address::new(number(address)), bytes.get(..length).unwrap_or(bytes));
    }
    program
}

/// The bytes of one source of a formatted buffer.
struct Source {
    id: TraceId,
    bytes: Vec<u8>,
}

impl FrameSink for Source {
    fn data(&mut self, owner: Owner, piece: Piece<'_>) {
        if owner == Owner::Source(self.id) {
            self.bytes.extend_from_slice(piece.bytes);
        }
    }

    fn discontinuity(&mut self, discontinuity: Discontinuity) {
        panic!("found {discontinuity:?}, expected whole frames");
    }
}

fn source_bytes(file: &Path, format: &str, id: u64) -> Vec<u8> {
    let bytes = std::fs::read(file).expect("a buffer of the corpus");
    if format == "source_data" {
        return bytes;
    }
    let id = u8::try_from(id).ok().and_then(TraceId::new).expect("a trace ID");
    let mut source = Source { id, bytes: Vec::new() };
    let mut deframer = RecoveringDeframer::new(Framing::Buffer);
    deframer.push(&bytes, &mut source);
    deframer.finish(&mut source);
    source.bytes
}

/// All sessions of a capture whose execution is known.
pub(crate) fn sessions(folder: &Path) -> Vec<Session> {
    let devices = section(&ini(&folder.join("snapshot.ini")), "device_list")
        .values()
        .map(|file| ini(&folder.join(file)))
        .map(|device| {
            (section(&device, "device").get("name").copied().unwrap_or_default().to_owned(), device)
        })
        .collect::<BTreeMap<_, _>>();
    let trace = ini(&folder.join("trace.ini"));
    let buffers = section(&trace, "trace_buffers")["buffers"].split(',').map(str::trim).collect::<Vec<_>>();
    let buffers = buffers.into_iter().filter(|name| !name.is_empty()).collect::<Vec<_>>();
    let several = buffers.len() > 1;
    let mut sessions = Vec::new();
    for (core, source) in section(&trace, "core_trace_sources") {
        let (Some(core), Some(device)) = (devices.get(core), devices.get(source)) else { continue };
        let core_type = section(core, "device").get("type").copied().unwrap_or_default().to_owned();
        if !section(device, "regs").contains_key("TRCIDR0") {
            continue;
        }
        let (config, id) = config(device, &core_type);
        let of_source = section(&trace, "source_buffers").get(source).map(|names| (*names).to_owned());
        for (index, buffer) in buffers.iter().enumerate() {
            let buffer = section(&trace, buffer);
            let is_source = |names: &String| names.split(',').any(|name| name.trim() == buffer["name"]);
            if !of_source.as_ref().is_some_and(is_source) {
                continue;
            }
            let suffixes = [format!("{id:x}"), format!("{id:x}.s{}", index + 1)];
            let suffix = if several { &suffixes[1] } else { &suffixes[0] };
            let candidates = suffixes.iter().rev().flat_map(|suffix| {
                ["txt", "txt.gz"].map(|ending| folder.join(format!("runs-{suffix}.{ending}")))
            });
            let synthetic = folder.join("runs.txt");
            let Some(runs) = candidates.chain([synthetic]).find(|path| path.is_file()) else { continue };
            let case = folder.file_name().unwrap_or_default().to_string_lossy();
            sessions.push(Session {
                name: format!("{case} {suffix}"),
                config,
                bytes: source_bytes(&folder.join(buffer["file"]), buffer["format"], id),
                program: program(folder, core),
                runs,
                totals: folder.join("totals.json"),
            });
        }
    }
    sessions
}

impl Session {
    /// The sum of all cycle counts, and all timestamps, as far as they are recorded.
    pub(crate) fn times(&self) -> Option<(u64, Vec<u64>)> {
        let text = std::fs::read_to_string(&self.totals).expect("a file of the corpus");
        let totals = serde_json::from_str::<Value>(&text).expect("totals.json is JSON");
        let file = self.runs.file_name()?.to_string_lossy().replace(".gz", "");
        let of_session = totals.get(&file);
        let numbers = |list: &Value| {
            list.as_array().map_or_else(Vec::new, |list| list.iter().filter_map(super::number).collect())
        };
        match of_session {
            Some(sums) => Some((sums["cycles_sum"].as_u64()?, numbers(&sums["timestamps"]))),
            None => Some((numbers(&totals["cycle_counts"]).iter().sum(), numbers(&totals["timestamps"]))),
        }
    }

    /// The number of elements of this kind in OpenCSD's decode.
    pub(crate) fn recorded(&self, kind: &str) -> u64 {
        let text = std::fs::read_to_string(&self.totals).expect("a file of the corpus");
        let totals = serde_json::from_str::<Value>(&text).expect("totals.json is JSON");
        let file = self.runs.file_name().expect("a file").to_string_lossy().replace(".gz", "");
        totals[&file]["elements"][kind].as_u64().unwrap_or(0)
    }

    /// The expected runs, as lines.
    pub(crate) fn runs(&self) -> String {
        if self.runs.extension().is_some_and(|extension| extension == "gz") {
            let output = Command::new("gzip").arg("-dc").arg(&self.runs).output().expect("gzip runs");
            return String::from_utf8(output.stdout).expect("text");
        }
        std::fs::read_to_string(&self.runs).expect("a file of the corpus")
    }
}
