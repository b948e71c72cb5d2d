//! The file that a run which was stopped continues from.
//!
//! ```text
//! {"gathering":"counts","version":1,"settings":"9f86d0…"}     the kind of answer, and the hash of all options that it depends on
//! {"capture":"/runs/1/capture.toml","stamp":12,"row":{…}}     a capture that counts
//! …
//! {"saved":"counts","version":1,"complete":true}              their answer, as `--save` writes it
//! …
//! ```

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tracewalk_analysis::programs::Programs;
use tracewalk_analysis::saved::{Save, saved_kind};

use super::sum::{Counted, Sum};
use super::{GatherFront, PlacesError, PlacesErrorKind};

/// The version of such files.
const VERSION: u32 = 1;

/// The longest file.
const LONGEST: u64 = 4 << 30;

/// The file of an earlier run.
#[derive(Debug)]
pub(super) struct Resume<'a> {
    file: &'a Path,
    settings: String,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Head {
    gathering: String,
    version: u32,
    settings: String,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Line {
    capture: PathBuf,
    stamp: u64,
    row: tracewalk_analysis::captures::OneOfMany,
}

impl<'a> Resume<'a> {
    /// `settings` is a text of everything that the answer depends on, apart from the captures.
    pub(super) fn new(file: &'a Path, settings: &str) -> Self {
        let hash = Sha256::digest(format!("{} {settings}", env!("CARGO_PKG_VERSION")));
        let settings = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Self { file, settings }
    }

    /// The sum so far: empty if the file is missing or empty.
    pub(super) fn read<T: Save>(&self) -> Result<Sum<T>, PlacesError> {
        if std::fs::metadata(self.file).map_or(true, |found| found.len() == 0) {
            return Ok(Sum::default());
        }
        let unreadable = |problem| PlacesErrorKind::Unreadable(problem).at(self.file);
        let mut from = tracewalk_input::reader(self.file, LONGEST).map_err(unreadable)?;
        let mut line = String::new();
        let head = read_line(&mut from, &mut line).and_then(|()| serde_json::from_str::<Head>(&line).ok());
        let Some(head) = head else { return Err(self.refuse("is not a file to continue from")) };
        if head.version != VERSION {
            return Err(self.refuse(&format!("is of version {}, expected {VERSION}", head.version)));
        }
        if head.gathering != T::KIND {
            return Err(self.refuse(&format!("holds {}, expected {}", head.gathering, T::KIND)));
        }
        if head.settings != self.settings {
            return Err(self.refuse("was written with other options, images or another version of tracewalk"));
        }
        let mut sum = Sum::default();
        loop {
            let next = from.fill_buf().map_err(|error| self.refuse(&format!("cannot be read: {error}")))?;
            if saved_kind(next, &[T::KIND]).is_some() {
                break;
            }
            let counted =
                read_line(&mut from, &mut line).and_then(|()| serde_json::from_str::<Line>(&line).ok());
            let Some(Line { capture, stamp, row }) = counted else {
                return Err(self.refuse("is damaged: a line does not describe a capture"));
            };
            sum.captures.insert(capture, Counted { stamp, row });
        }
        sum.found = Programs::read(from).map_err(|error| self.refuse(&format!("is damaged: {error}")))?;
        Ok(sum)
    }

    /// Saves the sum. The file is replaced once it is complete.
    pub(super) fn write<T: Save, F: GatherFront>(&self, sum: &Sum<T>, front: &F) -> Result<(), F::Error> {
        front.replace(self.file, &mut |out| {
            let head =
                Head { gathering: T::KIND.to_owned(), version: VERSION, settings: self.settings.clone() };
            line(out, &head)?;
            for (capture, Counted { stamp, row }) in &sum.captures {
                line(out, &Line { capture: capture.clone(), stamp: *stamp, row: row.clone() })?;
            }
            sum.found.save(out)
        })
    }

    fn refuse(&self, problem: &str) -> PlacesError {
        PlacesErrorKind::Resume(problem.to_owned()).at(self.file)
    }
}

/// The next line, without its end.
fn read_line(from: &mut impl BufRead, line: &mut String) -> Option<()> {
    line.clear();
    from.read_line(line).ok().filter(|_| line.ends_with('\n')).map(drop)
}

fn line(out: &mut dyn Write, value: &impl Serialize) -> std::io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}
