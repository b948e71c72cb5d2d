//! `--provenance`: a file beside a result that says what it was made of: the tool, the options, the inputs, what was lost and
//! what could not be observed.
//!
//! The same inputs and options give the same bytes, whenever and wherever they are run and by however many threads: no
//! times, no folders, nothing that depends on the machine.

mod json;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{CommandFactory as _, ValueHint};
use sha2::{Digest, Sha256};
use tracewalk::flow::Element;
use tracewalk::program::Program;
use tracewalk::source::PacketItem;
use tracewalk::span::{CaptureOffset, StreamOffset};
use tracewalk_analysis::drive::NoProgress;
use tracewalk_analysis::itm::ItmCounts;
use tracewalk_analysis::{DoubtfulChange, Doubting, Statistics};

use crate::args::Cli;
use crate::failure::Failure;
use crate::sources::as_option;
use crate::work::{ItmJob, Job, Work};
use json::{Object, array};

/// The version of the file's form (docs/provenance-1.schema.json).
const VERSION: u64 = 1;

/// So many places are listed of each kind of loss; the rest is counted.
const MOST_PLACES: usize = 1000;

/// What is recorded while a command runs.
#[derive(Debug, Default)]
pub(crate) struct Record {
    /// The files that were read, by what they are and their path.
    inputs: Vec<(&'static str, PathBuf)>,
    buffers: Vec<String>,
    sources: Vec<String>,
}

/// Losses of one kind: how many, how many bytes of trace, and the first places.
#[derive(Debug, Default)]
struct Losses {
    count: u64,
    bytes: u64,
    places: Vec<String>,
}

impl Losses {
    fn add(&mut self, at: u64, bytes: u64, about: Option<&str>) {
        self.count += 1;
        self.bytes += bytes;
        if self.places.len() < MOST_PLACES {
            let mut place = Object::new();
            place.number("offset", at).number("bytes", bytes);
            if let Some(about) = about {
                place.text("message", about);
            }
            self.places.push(place.end());
        }
    }

    fn end(self) -> String {
        let mut object = Object::new();
        object.number("count", self.count).number("bytes", self.bytes).raw("places", &array(&self.places));
        object.end()
    }
}

impl Record {
    /// Notes a file that the result depends on.
    pub(crate) fn input(&mut self, role: &'static str, path: &Path) {
        if !self.inputs.iter().any(|(_, known)| known == path) {
            self.inputs.push((role, path.to_owned()));
        }
    }

    /// Notes what was opened: its files, how its bytes are packed, and what was lost of that.
    pub(crate) fn capture(&mut self, work: &Work) {
        let capture = &work.capture;
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
        for (buffer, contents) in capture.buffers.iter().zip(&work.contents) {
            self.input("capture", &buffer.file);
            let mut object = Object::new();
            object.text("name", &file_name(&buffer.file));
            object.number("bytes", buffer.bytes.len() as u64);
            object.text("sha256", &hex(Sha256::digest(&*buffer.bytes).as_slice()));
            object.text("container", &contents.container.value.to_string());
            if let Some(frames) = &contents.frames {
                object.number("lost_bytes", frames.lost());
                object.number("lost_places", frames.discontinuities);
                object.number("reserved_bytes", frames.account.reserved);
                object.number("cut_frame_bytes", frames.account.tail);
            }
            let told = object.end();
            // It may be opened once to be looked at, and once to be followed.
            if !self.buffers.contains(&told) {
                self.buffers.push(told);
            }
        }
        for image in &capture.images {
            self.input("image", &image.file);
        }
    }

    /// Decodes a source once more, in order, and notes what of it was lost and what could not be observed.
    pub(crate) fn source(
        &mut self,
        work: &Work,
        job: &Job,
        statistics: &Statistics,
        program: Option<&Program>,
    ) -> Result<(), Failure> {
        let buffer = work.buffer(job);
        let in_file = |at| buffer.file_offset(at);
        let mut losses = BTreeMap::<&str, Losses>::new();
        work.input(job, &NoProgress).packets(&job.config, |record| {
            let bytes = record.bytes.len() as u64;
            match record.content {
                PacketItem::Packet(_) => {}
                PacketItem::Malformed(reason) => {
                    losses.entry("malformed").or_default().add(
                        in_file(record.at),
                        bytes,
                        Some(&reason.to_string()),
                    );
                }
                PacketItem::Unsynchronised => {
                    losses.entry("unsynchronised").or_default().add(in_file(record.at), bytes, None);
                }
            }
            Ok(())
        })?;
        let mut unobserved = BTreeMap::<&str, Losses>::new();
        if let Some(program) = program {
            let (mut doubting, mut in_doubt) = (Doubting::default(), Losses::default());
            work.input(job, &NoProgress).flow(&job.config, program, |record| {
                if let Some(DoubtfulChange::Ends(stretch)) = doubting.element(&record.element, || record.at) {
                    in_doubt.add(in_file(stretch.from), stretch.bytes, None);
                }
                if let Element::Gap(gap) = record.element {
                    let message = gap.reason.to_string();
                    let entry = unobserved.entry(gap.reason.name()).or_default();
                    entry.add(in_file(CaptureOffset(record.at.0)), gap.span.bytes(), Some(&message));
                }
                Ok(())
            })?;
            let end = (StreamOffset(statistics.bytes), CaptureOffset(buffer.bytes.len() as u64));
            if let Some(stretch) = doubting.at_end(end.0, end.1) {
                in_doubt.add(in_file(stretch.from), stretch.bytes, None);
            }
            if in_doubt.count > 0 {
                unobserved.insert("in_doubt", in_doubt);
            }
        }
        let mut object = Object::new();
        match job.id {
            Some(id) => object.number("id", id.get().into()),
            None => object.raw("id", "null"),
        };
        object.text("buffer", &file_name(&buffer.file));
        object.text("protocol", job.config.protocol());
        let option = as_option(&job.description);
        object.text("source", option.strip_prefix("--source ").unwrap_or(&option));
        let Statistics { bytes, packets, malformed, instructions, .. } = statistics;
        object.number("bytes", *bytes).number("packets", *packets).number("malformed", *malformed);
        if program.is_some() {
            object.number("instructions", *instructions);
        }
        object.raw("losses", &by_kind(losses));
        if program.is_some() {
            object.raw("unobserved", &by_kind(unobserved));
        }
        self.sources.push(object.end());
        Ok(())
    }

    /// Notes what of an ITM was lost.
    pub(crate) fn itm(&mut self, itm: &ItmJob, counts: &ItmCounts) {
        let mut object = Object::new();
        match itm.id {
            Some(id) => object.number("id", id.get().into()),
            None => object.raw("id", "null"),
        };
        object.text("protocol", "itm");
        object.number("malformed", counts.malformed);
        object.number("overflows", counts.packets.get("overflow").copied().unwrap_or_default());
        self.sources.push(object.end());
    }

    /// The file's text.
    pub(crate) fn text(
        &self,
        command: &str,
        arguments: &[String],
        results: &[&Path],
    ) -> Result<String, Failure> {
        let mut tool = Object::new();
        tool.text("name", "tracewalk").text("version", env!("CARGO_PKG_VERSION"));
        let arguments = arguments.iter().map(|word| json::quoted(word)).collect::<Vec<_>>();
        let inputs = self.inputs.iter().map(|(role, path)| file(Some(role), path));
        let results = results.iter().map(|path| file(None, path));
        let mut object = Object::new();
        object.number("version", VERSION).raw("tool", &tool.end()).text("command", command);
        object.raw("arguments", &array(&arguments));
        object.raw("inputs", &array(&inputs.collect::<Result<Vec<_>, _>>()?));
        object.raw("buffers", &array(&self.buffers));
        object.raw("sources", &array(&self.sources));
        object.raw("results", &array(&results.collect::<Result<Vec<_>, _>>()?));
        Ok(object.end() + "\n")
    }
}

fn by_kind(losses: BTreeMap<&str, Losses>) -> String {
    let mut object = Object::new();
    for (kind, losses) in losses {
        object.raw(kind, &losses.end());
    }
    object.end()
}

/// What is said of a file: its name without folders, its size and its hash. Of a directory, such as a trace in CTF, and of
/// what is no file any more, such as standard input, only the name.
fn file(role: Option<&str>, path: &Path) -> Result<String, Failure> {
    let mut object = Object::new();
    if let Some(role) = role {
        object.text("role", role);
    }
    object.text("name", &file_name(path));
    if path.is_file() {
        let read = hash(path).map_err(|error| {
            Failure::input(
                format!("{}: cannot be read again: {error}", path.display()),
                "leave out --provenance",
            )
        })?;
        object.number("bytes", read.0).text("sha256", &read.1);
    }
    Ok(object.end())
}

/// How long a file is, and its SHA-256.
fn hash(path: &Path) -> std::io::Result<(u64, String)> {
    let mut file = File::open(path)?;
    let (mut hasher, mut bytes, mut piece) = (Sha256::new(), 0, vec![0; 1 << 16]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok((bytes, hex(hasher.finalize().as_slice()))),
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

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// The options and values on the command line that the result depends on, each option by its long name with its value behind
/// it, without the folders of files.
pub(crate) fn arguments(words: impl IntoIterator<Item = OsString>) -> Vec<String> {
    /// What changes nothing in the result.
    const WITHOUT_EFFECT: [&str; 7] = ["threads", "stats", "quiet", "color", "provenance", "output", "save"];
    let command = Cli::command();
    let Ok(matches) = command.clone().try_get_matches_from(words) else { return Vec::new() };
    let Some((name, matches)) = matches.subcommand() else { return Vec::new() };
    let Some(command) = command.find_subcommand(name) else { return Vec::new() };
    let mut found = Vec::new();
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        let is_said = matches.value_source(id) == Some(ValueSource::CommandLine);
        if WITHOUT_EFFECT.contains(&id) || !is_said {
            continue;
        }
        let option = argument.get_long().map(|long| format!("--{long}"));
        let names_file = !matches!(argument.get_value_hint(), ValueHint::Unknown | ValueHint::Other);
        let takes_values = argument.get_action().takes_values();
        let values = matches.get_raw(id).into_iter().flatten().filter(|_| takes_values);
        let values = values.map(|value| value.to_string_lossy());
        let values =
            values.map(|value| if names_file { without_folders(&value) } else { value.into_owned() });
        let mut places = matches.indices_of(id).into_iter().flatten();
        if !takes_values {
            found.push((places.next(), option.into_iter().collect()));
            continue;
        }
        found
            .extend(values.map(|value| (places.next(), option.clone().into_iter().chain([value]).collect())));
    }
    found.sort_by_key(|(place, _): &(_, Vec<String>)| *place);
    found.into_iter().flat_map(|(_, words)| words).collect()
}

/// `0x8000:/home/me/code.bin@context=1` → `0x8000:code.bin@context=1`.
fn without_folders(word: &str) -> String {
    let Some(first) = word.find('/') else { return word.to_owned() };
    let (before, path) = word.split_at(first);
    // What stands in front of the path, if it is not a part of it.
    let start = before.rfind([':', '=']).map_or(0, |at| at + 1);
    let name = path.rsplit('/').find(|part| !part.is_empty()).unwrap_or_default();
    format!("{}{name}", before.get(..start).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(words: &[&str]) -> Vec<String> {
        arguments(std::iter::once("tracewalk").chain(words.iter().copied()).map(OsString::from))
    }

    #[test]
    fn what_changes_nothing_in_the_result_and_folders_are_left_out() {
        let words = ["coverage", "/a/b/trace.bin", "--threads", "7", "--image"];
        let more = ["0x8000:/home/me/code.bin@context=1", "-o", "/tmp/x", "--provenance=/y", "--id", "2"];
        let kept = kept(&[&words[..], &more].concat());
        assert_eq!(kept, ["trace.bin", "--image", "0x8000:code.bin@context=1", "--id", "2"]);
    }

    #[test]
    fn options_are_known_however_they_are_written_and_a_file_may_be_called_like_the_command() {
        assert_eq!(kept(&["flow", "flow"]), ["flow"]);
        assert_eq!(kept(&["--quiet", "flow", "-q", "flow", "--functions"]), ["flow", "--functions"]);
        for output in [&["-oout.json"][..], &["-o=out.json"], &["-o", "out.json"], &["--output=out.json"]] {
            assert_eq!(kept(&[&["coverage", "a"], output].concat()), ["a"], "{output:?}");
        }
        let expected = ["--format", "json", "a", "--include", "src/**/*.c", "b"];
        assert_eq!(kept(&["coverage", "--format=json", "a", "--include=src/**/*.c", "b"]), expected);
        assert_eq!(kept(&["flow", "a", "--id=2", "-f"]), ["a", "--id", "2", "--follow"]);
        assert_eq!(kept(&["coverage", "a", "--fail-under", "lines=80,branches=60"]).len(), 5);
    }
}
