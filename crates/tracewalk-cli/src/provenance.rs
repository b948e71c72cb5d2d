//! `--provenance`: a file next to a result that states how the result was made: the tool, the options, the inputs, the losses, and
//! the execution that could not be observed.
//!
//! The same inputs and options give the same bytes, at any time, on any machine and with any number of threads: the file has no
//! times and no folders.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest, Sha256};
use tracewalk::ids::TraceId;
use tracewalk::span::CaptureOffset;
use tracewalk_analysis::coverage::{Lost as LostStretches, SourceSummary};
use tracewalk_analysis::itm::ItmCounts;
use tracewalk_analysis::{InDoubt, Statistics};
use tracewalk_input::image::{build_id_of, build_id_of_file};

use tracewalk_session::{Followed, Itm, Lost, LostPlace, LostPlaces, Notice, Session, Severity, Source};

use crate::failure::Failure;
use tracewalk_sentences::as_option;

/// The version of the file's form (docs/provenance-1.schema.json).
const VERSION: u64 = 1;

/// The record of a running command.
#[derive(Debug, Default)]
pub(crate) struct Record {
    /// The files that were read.
    inputs: Vec<Input>,
    buffers: Vec<BufferRecord>,
    sources: Vec<SourceRecord>,
    notices: Vec<NoticeRecord>,
}

/// A file that was read.
#[derive(Debug)]
struct Input {
    role: &'static str,
    path: PathBuf,
    /// The build ID of an image, if it has one.
    build_id: Option<String>,
    /// The content of a file inside an archive, and the archive.
    inside: Option<(Contents, PathBuf)>,
}

/// A notice without its words, which may change.
#[derive(Debug, Serialize)]
struct NoticeRecord {
    kind: &'static str,
    severity: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
}

/// The whole file.
#[derive(Debug, Serialize)]
struct Document<'a> {
    version: u64,
    tool: Tool,
    command: &'a str,
    arguments: &'a [String],
    complete: bool,
    inputs: Vec<FileRecord<'a>>,
    buffers: &'a [BufferRecord],
    sources: &'a [SourceRecord],
    notices: &'a [NoticeRecord],
    results: Vec<FileRecord<'a>>,
}

#[derive(Debug, Serialize)]
struct Tool {
    name: &'static str,
    version: &'static str,
}

/// A file: its name without folders, its size and its hash. A directory, such as a trace in CTF, or an input that cannot be read
/// again, such as standard input, has only its name.
#[derive(Debug, Serialize)]
struct FileRecord<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    name: String,
    #[serde(flatten)]
    contents: Option<Contents>,
    #[serde(skip_serializing_if = "Option::is_none")]
    build_id: Option<&'a str>,
    /// The archive that contains the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    archive: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Contents {
    bytes: u64,
    sha256: String,
}

/// The bytes of trace of a buffer, and the losses in its frames.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct BufferRecord {
    name: String,
    #[serde(flatten)]
    contents: Contents,
    container: String,
    #[serde(flatten)]
    frames: Option<FramesRecord>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct FramesRecord {
    lost_bytes: u64,
    lost_places: u64,
    reserved_bytes: u64,
    cut_frame_bytes: u64,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum SourceRecord {
    Trace {
        id: Option<u8>,
        buffer: String,
        protocol: &'static str,
        source: String,
        /// The bytes of the capture that were decoded, if decoding ended early.
        #[serde(skip_serializing_if = "Option::is_none")]
        decoded_bytes: Option<u64>,
        bytes: u64,
        packets: u64,
        malformed: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        instructions: Option<u64>,
        losses: BTreeMap<&'static str, Losses>,
        #[serde(skip_serializing_if = "Option::is_none")]
        unobserved: Option<BTreeMap<&'static str, Losses>>,
    },
    Itm {
        id: Option<u8>,
        protocol: &'static str,
        malformed: u64,
        overflows: u64,
    },
    /// A source in a saved file, which has no places of losses.
    Saved {
        saved: String,
        id: Option<u8>,
        buffer: String,
        protocol: String,
        bytes: u64,
        instructions: u64,
        lost: BTreeMap<&'static str, SavedLoss>,
    },
}

/// Losses of one kind in a saved file: in instructions for `in_doubt`, otherwise in places.
#[derive(Debug, Serialize)]
struct SavedLoss {
    count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
}

/// Losses of one kind: the number, the bytes of trace, and the first places.
#[derive(Debug, Default, Serialize)]
struct Losses {
    count: u64,
    bytes: u64,
    places: Vec<Place>,
}

#[derive(Debug, Serialize)]
struct Place {
    offset: u64,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

impl From<&Lost> for Losses {
    fn from(lost: &Lost) -> Self {
        let place = |place: &LostPlace| Place {
            offset: place.at.0,
            bytes: place.bytes,
            message: place.why.map(|why| why.to_string()),
        };
        Self { count: lost.count, bytes: lost.bytes, places: lost.first.iter().map(place).collect() }
    }
}

impl Record {
    /// Notes a file that the result depends on.
    pub(crate) fn input(&mut self, role: &'static str, path: &Path) {
        if !self.has_input(path) {
            self.inputs.push(Input { role, path: path.to_owned(), build_id: None, inside: None });
        }
    }

    fn has_input(&self, path: &Path) -> bool {
        self.inputs.iter().any(|known| known.path == path)
    }

    /// Notes a program that no capture names: saved files are reported with it.
    pub(crate) fn program(&mut self, path: &Path) {
        if !self.has_input(path) {
            let build_id = build_id_of_file(path).map(|id| hex(&id));
            self.inputs.push(Input { role: "image", path: path.to_owned(), build_id, inside: None });
        }
    }

    /// Notes a source whose coverage was read from a saved file.
    pub(crate) fn saved(&mut self, file: &Path, source: &SourceSummary) {
        let SourceSummary { capture, source: id, protocol, bytes, instructions, losses, .. } = source;
        let lost = |LostStretches { stretches, bytes }: LostStretches| SavedLoss {
            count: stretches,
            bytes: Some(bytes),
        };
        let times = |count| SavedLoss { count, bytes: None };
        let InDoubt { left_out, counted } = losses.in_doubt;
        let kinds = [
            ("trace_lost", lost(losses.trace_lost)),
            ("address_unknown", lost(losses.address_unknown)),
            ("contradiction", lost(losses.contradictions)),
            ("undecodable", lost(losses.undecodable)),
            ("overflow", times(losses.overflows)),
            ("no_code", times(losses.no_image.values().fold(0, |sum, count| sum.saturating_add(*count)))),
            ("in_doubt", times(left_out.saturating_add(counted))),
            (
                "cut_frame",
                SavedLoss {
                    count: u64::from(losses.cut_frame_bytes > 0),
                    bytes: Some(losses.cut_frame_bytes),
                },
            ),
        ];
        self.sources.push(SourceRecord::Saved {
            saved: file_name(file),
            id: trace_id(id),
            buffer: file_name(Path::new(capture)),
            protocol: protocol.clone(),
            bytes: *bytes,
            instructions: *instructions,
            lost: kinds.into_iter().filter(|(_, loss)| loss.count > 0).collect(),
        });
    }

    /// Notes a program, which may lie inside an archive.
    fn image(&mut self, session: &Session, path: &Path) {
        if self.has_input(path) {
            return;
        }
        let content = session.image_content(path);
        let build_id = content.map_or_else(|| build_id_of_file(path), build_id_of);
        let archive = path.ancestors().skip(1).find(|parent| parent.is_file());
        if let Some(archive) = archive {
            self.input("archive", archive);
        }
        let inside = content.zip(archive).map(|(bytes, archive)| (Contents::of(bytes), archive.to_owned()));
        let build_id = build_id.map(|id| hex(&id));
        self.inputs.push(Input { role: "image", path: path.to_owned(), build_id, inside });
    }

    /// Notes a session: its files, containers and losses.
    pub(crate) fn capture(&mut self, session: &Session) {
        let capture = session.capture();
        if capture.path.is_file() {
            let named = capture.buffers.iter().all(|buffer| buffer.file != capture.path);
            self.input(if named { "description" } else { "capture" }, &capture.path);
        } else if capture.path.is_dir() {
            let mut files = std::fs::read_dir(&capture.path).into_iter().flatten().flatten();
            let mut described = files.by_ref().map(|file| file.path()).collect::<Vec<_>>();
            described.retain(|file| {
                file.extension()
                    .is_some_and(|end| end.eq_ignore_ascii_case("ini") || end.eq_ignore_ascii_case("toml"))
            });
            described.sort();
            described.iter().for_each(|file| self.input("description", file));
        }
        for (buffer, contents) in capture.buffers.iter().zip(session.contents()) {
            self.input("capture", &buffer.file);
            let record = BufferRecord {
                name: file_name(&buffer.file),
                contents: Contents::of(&buffer.bytes),
                container: contents.container.value.to_string(),
                frames: contents.frames.as_ref().map(|frames| FramesRecord {
                    lost_bytes: frames.lost(),
                    lost_places: frames.discontinuities,
                    reserved_bytes: frames.account.reserved,
                    cut_frame_bytes: frames.account.tail,
                }),
            };
            // A capture may be opened twice: to examine it, and to follow it.
            if !self.buffers.contains(&record) {
                self.buffers.push(record);
            }
        }
        for image in &capture.images {
            self.image(session, &image.file);
        }
    }

    /// Notes the outcome of following a source.
    pub(crate) fn followed(&mut self, session: &Session, source: &Source, outcome: &Followed<'_>) {
        outcome.itms.iter().for_each(|(itm, counts)| self.itm(itm, counts));
        let places = outcome.losses.places.clone().unwrap_or_default();
        let followed = Some((outcome.statistics.instructions, all(&places.unobserved)));
        self.source(session, source, (outcome.statistics, outcome.ended_at), all(&places.unread), followed);
    }

    /// Notes the packets of a source, which was not followed.
    pub(crate) fn packets(
        &mut self,
        session: &Session,
        source: &Source,
        decoded: (&Statistics, Option<u64>),
        places: &LostPlaces,
    ) {
        self.source(session, source, decoded, all(&places.unread), None);
    }

    fn source(
        &mut self,
        session: &Session,
        source: &Source,
        (statistics, ended_at): (&Statistics, Option<u64>),
        losses: BTreeMap<&'static str, Losses>,
        followed: Option<(u64, BTreeMap<&'static str, Losses>)>,
    ) {
        let option = as_option(&source.description);
        let Statistics { bytes, packets, malformed, .. } = *statistics;
        let (instructions, unobserved) = followed.unzip();
        self.sources.push(SourceRecord::Trace {
            id: source.id.map(TraceId::get),
            buffer: file_name(&session.buffer(source).file),
            protocol: source.config.protocol(),
            source: option.strip_prefix("--source ").unwrap_or(&option).to_owned(),
            decoded_bytes: ended_at,
            bytes,
            packets,
            malformed,
            instructions,
            losses,
            unobserved,
        });
    }

    /// Notes a notice that was shown to the user.
    pub(crate) fn notice(&mut self, notice: &Notice) {
        let severity = match notice.severity() {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Incomplete => "incomplete",
        };
        let offset = notice.at.map(|CaptureOffset(at)| at);
        self.notices.push(NoticeRecord { kind: notice.kind.name(), severity, offset });
    }

    /// Notes the losses of an ITM.
    pub(crate) fn itm(&mut self, itm: &Itm, counts: &ItmCounts) {
        self.sources.push(SourceRecord::Itm {
            id: itm.id.map(TraceId::get),
            protocol: counts.protocol.protocol(),
            malformed: counts.malformed,
            overflows: ["overflow", "merr", "gerr"].iter().filter_map(|name| counts.packets.get(name)).sum(),
        });
    }

    /// Writes the file. The result is `complete` if the whole capture was decoded.
    pub(crate) fn write(
        &self,
        (command, arguments): (&str, &[String]),
        complete: bool,
        results: &[&Path],
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let inputs = self.inputs.iter().map(FileRecord::of_input);
        let results = results.iter().map(|path| FileRecord::of(None, path));
        let document = Document {
            version: VERSION,
            tool: Tool { name: "tracewalk", version: env!("CARGO_PKG_VERSION") },
            command,
            arguments,
            complete,
            inputs: inputs.collect::<Result<_, _>>()?,
            buffers: &self.buffers,
            sources: &self.sources,
            notices: &self.notices,
            results: results.collect::<Result<_, _>>()?,
        };
        serde_json::to_writer(&mut *out, &document).map_err(io::Error::from)?;
        Ok(out.write_all(b"\n")?)
    }
}

/// The losses of all kinds.
fn all(kinds: &BTreeMap<&'static str, Lost>) -> BTreeMap<&'static str, Losses> {
    kinds.iter().map(|(kind, lost)| (*kind, lost.into())).collect()
}

impl<'a> FileRecord<'a> {
    fn of_input(input: &'a Input) -> Result<Self, Failure> {
        let of_file = match &input.inside {
            None => Self::of(Some(input.role), &input.path)?,
            Some((contents, archive)) => Self {
                role: Some(input.role),
                name: file_name(&input.path),
                contents: Some(contents.clone()),
                build_id: None,
                archive: Some(file_name(archive)),
            },
        };
        Ok(Self { build_id: input.build_id.as_deref(), ..of_file })
    }

    fn of(role: Option<&'static str>, path: &Path) -> Result<Self, Failure> {
        let contents = path.is_file().then(|| hash(path)).transpose().map_err(|error| {
            Failure::input(
                "changed_meanwhile",
                format!("{}: cannot be read again: {error}", path.display()),
                "leave out --provenance",
            )
        })?;
        Ok(Self { role, name: file_name(path), contents, build_id: None, archive: None })
    }
}

impl Contents {
    fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.len() as u64, sha256: hex(Sha256::digest(bytes).as_slice()) }
    }
}

/// A file's length and SHA-256 hash.
fn hash(path: &Path) -> io::Result<Contents> {
    let mut file = File::open(path)?;
    let (mut hasher, mut bytes, mut piece) = (Sha256::new(), 0, vec![0; 1 << 16]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(Contents { bytes, sha256: hex(hasher.finalize().as_slice()) }),
            count => {
                hasher.update(piece.get(..count).unwrap_or_default());
                bytes += count as u64;
            }
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The trace ID in a saved file, `0x10`; `None` for `-`.
fn trace_id(text: &str) -> Option<u8> {
    u8::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}
