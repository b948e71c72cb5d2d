//! Captures and saved files whose answers add up: arguments → a request, and what the session needs of this command.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tracewalk_analysis::captures::OneOfMany;
use tracewalk_analysis::drive::Progress;
use tracewalk_analysis::programs::Programs;
use tracewalk_analysis::saved::Save;
use tracewalk_report::formats::{self, CAPTURES};
use tracewalk_sentences::{of_places_notice, row};
use tracewalk_session::{
    Additive, Answered, Gather, GatherFront, Gathered, Observer, OfCapture, Places, PlacesNotice, Request,
    Session,
};

use crate::args::{CaptureArgs, PlacesArgs};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::open;
use crate::output::{look_for, write_to};
use crate::provenance::Record;

/// Opens a single capture.
type Open<'a> = &'a (dyn Fn(&CaptureArgs, &Messages) -> Result<Session, Failure> + Sync);

/// This command as the front end of a gathering.
pub(super) struct Front<'a> {
    args: &'a PlacesArgs,
    messages: &'a Messages,
    open: Open<'a>,
}

impl<'a> Front<'a> {
    pub(super) fn new(args: &'a PlacesArgs, messages: &'a Messages) -> Self {
        Self { args, messages, open: &open::live_or_itm }
    }

    /// Opens single captures in another way.
    pub(super) const fn opening(self, open: Open<'a>) -> Self {
        Self { open, ..self }
    }

    /// What the arguments add up, on this number of threads. `results` may lie among the places; `asked` is a text of everything
    /// that the answer depends on, apart from the places and how they are opened.
    pub(super) fn request(
        &self,
        results: impl IntoIterator<Item = Option<&'a Path>>,
        asked: String,
        threads: u16,
    ) -> Result<Gather, Failure> {
        let args = self.args;
        let gather = Gather {
            places: args.words().map(Path::to_owned).collect(),
            patterns: args.patterns.clone(),
            is_many: args.captures.is_some(),
            resume: args.resume.clone(),
            results: results.into_iter().flatten().map(Path::to_owned).chain(args.captures.clone()).collect(),
            asked,
            request: open::request(&args.follow.capture),
            how: args.follow.how(threads, self.messages),
        };
        if gather.is_many() && self.messages.records() {
            return Err(Failure::input(
                "provenance_of_many",
                "--provenance describes the result of a few captures, but directories and lists have any number of them",
                "use the table of captures instead: --captures captures.csv",
            ));
        }
        Ok(gather)
    }

    /// Asks all places, and writes the table of captures.
    pub(super) fn ask<Q: Additive>(
        &self,
        places: Places<'_, Q::Answer>,
        question: &Q,
        by_run: bool,
        saved: impl FnMut(&Path, &Programs<Q::Answer>),
    ) -> Result<Gathered<Q::Answer>, Failure> {
        let gathered = places.ask(question, by_run, saved, self);
        self.messages.speak_of(None);
        let gathered = gathered?;
        let Some(table) = &gathered.captures else { return Ok(gathered) };
        self.messages.add(&gathered.answered.statistics);
        if let Some(file) = &self.args.captures {
            let format = formats::of_file(CAPTURES, file).or_else(|| CAPTURES.first());
            let make = format.map(|format| format.make);
            make.map_or(Ok(()), |make| write_to(Some(file), |out| make(out, table, look_for(Some(file)))))?;
        }
        Ok(gathered)
    }

    /// Saves the sum, if a file is named.
    pub(super) fn save<T: Save>(
        &self,
        gathered: &Gathered<T>,
        file: Option<&PathBuf>,
    ) -> Result<(), Failure> {
        file.map_or(Ok(()), |file| gathered.save(file, self))
    }
}

impl GatherFront for Front<'_> {
    type Error = Failure;

    fn observer(&self) -> &dyn Observer {
        self.messages
    }

    fn notice(&self, notice: &PlacesNotice) {
        self.messages.say(notice.severity(), notice.name(), None, &of_places_notice(notice));
    }

    fn row<T>(&self, of: &OfCapture<Answered<T>>) -> OneOfMany {
        row(of)
    }

    fn open(&self, request: Request) -> Result<Session, Failure> {
        let is_one_of_several = self.args.words().nth(1).is_some();
        self.messages.speak_of(Some(&*request.capture).filter(|_| is_one_of_several));
        let capture = CaptureArgs { capture: request.capture, ..self.args.follow.capture.clone() };
        (self.open)(&capture, self.messages)
    }

    fn is_of_capture(&self, failure: &Failure) -> bool {
        failure.is_of_capture()
    }

    fn is_complete(&self) -> bool {
        self.messages.complete()
    }

    fn replace(
        &self,
        file: &Path,
        write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        write_to(Some(file), |out| write(out))
    }

    fn reads(&self, find: &mut dyn FnMut(&[PathBuf]) -> BTreeSet<PathBuf>) -> Result<(), Failure> {
        self.messages.replaced.spare(find)
    }

    fn images(&self, request: &Request) {
        let programs =
            |record: &mut Record| request.images.iter().for_each(|image| record.program(&image.file));
        self.messages.record(programs);
    }

    fn progress(&self, all: usize) -> Box<dyn Progress> {
        self.messages.captures(all)
    }
}
