//! `timeline`: functions, interrupts and tasks along an axis.

use std::io::{self, BufWriter, Write};
use tracewalk_analysis::clock::Unit;
use tracewalk_analysis::sink::Sink as _;
use tracewalk_report::export::{Files, TimelineExport, Timelines};
use tracewalk_report::formats::MakeTimeline;

use super::refuse_frequency;
use crate::args::{self, CaptureArgs};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::open;
use crate::output::{self, Destination, OutputFolder, Stream, look_for, write_to};
use crate::task::{Reads, Task};
use tracewalk_session::{Session, View};

/// The number of bytes of an arriving capture to wait for, to see which units its trace has.
const FIRST_PROBE: usize = 16 << 10;

impl Task for args::Timeline {
    fn reads(&self) -> Reads<'_> {
        Reads::followed(&self.follow)
    }

    fn writes(&self) -> Vec<Destination<'_>> {
        match (&self.format.make, self.output.as_deref()) {
            (MakeTimeline::Folder(_), folder) => folder.map(Destination::new_folder).into_iter().collect(),
            (MakeTimeline::Text(_) | MakeTimeline::File(_), file) => vec![Destination::output(file)],
        }
    }

    fn is_for_people(&self) -> bool {
        self.format.name == "text"
    }

    /// Writes a timeline.
    fn run(&self, messages: &Messages) -> Result<(), Failure> {
        messages.measure(self.work);
        let (window, unit) = (self.window.window()?, self.axis.unit.unit());
        let mut session = open(&self.follow.capture, unit, messages)?;
        let how = self.follow.how(self.work.threads, messages);
        let view = View::new(window.clone(), unit);
        if session.is_itm_alone() {
            view.check_itm(&session)?;
        }
        view.check(&mut session, &how, messages)?;
        let scale = session.scale(unit, self.axis.frequency, &how, messages)?;
        refuse_frequency(scale.unit, self.axis.frequency)?;
        let output = output::file(self.output.as_deref());
        let stream = Stream::to(output, &session);
        let mut write = |exporter: &mut dyn TimelineExport| -> Result<(), Failure> {
            let mut timelines = Timelines::new(&mut *exporter, scale, window.clone());
            session.each_source(messages, |session, source| {
                view.run(session, source, &how, &mut timelines, messages)?;
                Ok::<(), Failure>(())
            })?;
            for itm in session.itms_alone() {
                let code = session.itm_program(&itm, how.names.as_deref(), messages)?.code;
                let watched = session.watched(&itm, &code);
                timelines.itm_section(&session.itm_section(&itm, code), watched)?;
                session.each_report(&itm, messages, |record| timelines.itm(record))?;
                timelines.end_section()?;
            }
            view.finish()?;
            Ok(exporter.finish(messages.complete())?)
        };
        match self.format.make {
            MakeTimeline::Text(make) => {
                let look = look_for(output);
                stream.write(|out| write(&mut *make(out, look)))
            }
            MakeTimeline::File(make) => write_to(output, |out| write(&mut *make(out))),
            MakeTimeline::Folder(make) => {
                let path = output.ok_or_else(no_folder)?;
                let mut folder = OutputFolder::new(path)?;
                write(&mut *make(&mut folder))?;
                folder.finish()
            }
        }
    }
}

/// Opens a capture and probes its units of time. A capture that is still arriving is probed as soon as its units can be seen, or
/// at once if the axis is stated.
pub(super) fn open(
    capture: &CaptureArgs,
    stated: Option<Unit>,
    messages: &Messages,
) -> Result<Session, Failure> {
    match stated {
        Some(Unit::Instructions | Unit::Cycles) => open::live_or_itm(capture, messages),
        // Interpolation between timestamps is by cycles, if there are any.
        None | Some(Unit::Time | Unit::Samples) => open::after(FIRST_PROBE, capture, messages),
    }
}

fn no_folder() -> Failure {
    Failure::input("needs_folder", "--format ctf writes several files", "give the folder with -o")
}

impl Files for OutputFolder {
    fn create(&mut self, name: &str) -> io::Result<Box<dyn Write>> {
        Ok(Box::new(BufWriter::new(OutputFolder::create(self, name)?)))
    }
}
