//! `crash`: how a program crashed, and why.

use std::path::{Path, PathBuf};
use tracewalk_analysis::crash::{CrashRecording, Snapshot};
use tracewalk_report::export::CrashReport;
use tracewalk_session::{Follow, Session};

use super::target;
use crate::args::{CaptureArgs, Crash};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::open;
use crate::output::{Destination, look_for, write_to};
use crate::task::{Reads, Task};

impl Task for Crash {
    fn reads(&self) -> Reads<'_> {
        if self.gdb.is_some() {
            let images = self.follow.capture.images.iter().map(|image| image.file.as_path());
            return Reads {
                beside: images.collect(),
                source_dirs: &self.follow.source_dirs,
                ..Reads::default()
            };
        }
        Reads { beside: self.dump.iter().map(PathBuf::as_path).collect(), ..Reads::followed(&self.follow) }
    }

    fn writes(&self) -> Vec<Destination<'_>> {
        let saved = self.save.as_deref().map(|file| Destination::file("--save", file));
        saved.into_iter().chain([Destination::output(self.output.as_deref())]).collect()
    }

    fn is_for_people(&self) -> bool {
        self.format.name == "text"
    }

    fn run(&self, messages: &Messages) -> Result<(), Failure> {
        messages.measure(self.work);
        let capture = &self.follow.capture;
        let Some(server) = &self.gdb else { return self.report(capture, messages) };
        let folder = tempfile::tempdir()?;
        let read = target::halted(server, &capture.images, folder.path(), self.save.as_deref())?;
        self.report(&CaptureArgs { capture: read, ..capture.clone() }, messages)
    }
}

impl Crash {
    /// Reports how its program ended.
    fn report(&self, capture: &CaptureArgs, messages: &Messages) -> Result<(), Failure> {
        let mut session = open::whole_or_untraced(capture, messages)?;
        let snapshot = session.snapshot(self.dump.as_deref())?;
        messages.record(|record| {
            let described = session.capture().dump.as_ref().map(|dump| dump.value.as_path());
            self.dump.as_deref().or(described).into_iter().for_each(|dump| record.input("dump", dump));
        });
        let how = self.follow.how(self.work.threads, messages);
        let report = match session.lacks_trace() {
            true => {
                let found = session.untraced(&snapshot, &self.follow.source_dirs, messages)?;
                CrashReport::untraced(found.section, found.crash, found.doubts)
            }
            false => traced(&mut session, (&snapshot, self.dump.as_deref()), &how, messages)?,
        };
        let output = self.output.as_deref();
        write_to(output, |out| (self.format.make)(out, &report, look_for(output), self.table))?;
        let has_fault = report.sources.iter().any(|(_, crash)| crash.is_some());
        if has_fault { Ok(()) } else { Err(Failure::NoFault) }
    }
}

/// Follows each source to its end.
fn traced(
    session: &mut Session,
    (snapshot, dump): (&Snapshot, Option<&Path>),
    how: &Follow,
    messages: &Messages,
) -> Result<CrashReport, Failure> {
    let mut recording = CrashRecording::default();
    let mut doubts = Vec::new();
    session.each_source(messages, |session, source| {
        let outcome = session.run_observed(source, how, &mut recording, messages)?;
        session.prove_crash(&mut recording, source, &outcome.code, (snapshot, dump))?;
        doubts.push(session.doubts_of_end(source, how, &outcome, messages)?);
        Ok::<(), Failure>(())
    })?;
    let (complete, whole) = (messages.complete(), !messages.failed());
    Ok(CrashReport::of(recording, snapshot, doubts, (complete, whole)))
}
