//! `flow`: the executed instructions.

use std::io::Write;
use std::path::PathBuf;
use tracewalk_analysis::analysis::FlowSink;
use tracewalk_analysis::record::FlowRecord;
use tracewalk_analysis::sink::{Join, Sink};
use tracewalk_analysis::values::{Possible, Profile, Proving, Searching, ValueSink};
use tracewalk_analysis::{Code, Doubtful, Section};
use tracewalk_report::export::{Excerpt, LastInstructions, LastValues, Selection, ValuesExcerpt};
use tracewalk_report::formats::{FlowOptions, FlowParts, WithJoin, make_values};
use tracewalk_session::{Follow, Itm, Itms, NoticeKind, Observer as _, Session, View};

use crate::args::Flow;
use crate::failure::Failure;
use crate::messages::Messages;
use crate::open;
use crate::output::{Destination, Stream, look_for, write_to};
use crate::task::{Reads, Task};

impl Task for Flow {
    fn reads(&self) -> Reads<'_> {
        let beside = self.dump.iter().map(PathBuf::as_path).collect();
        Reads { source_dirs: &self.source_dirs, beside, ..Reads::one(&self.capture) }
    }

    fn writes(&self) -> Vec<Destination<'_>> {
        vec![Destination::output(self.output.as_deref())]
    }

    fn is_for_people(&self) -> bool {
        self.format.name == "text"
    }

    /// Prints the executed instructions.
    fn run(&self, messages: &Messages) -> Result<(), Failure> {
        messages.measure(self.work);
        if self.values {
            return self.run_values(messages);
        }
        let selection = self.selection()?;
        let mut nowhere = std::io::sink();
        let shows_itm = exporter(self, None, false, &mut nowhere).shows_itm();
        let open = if shows_itm { open::live_or_itm } else { open::live };
        let mut session = open(&self.capture, messages)?;
        let window = selection.as_ref().map(|selection| selection.window.clone()).unwrap_or_default();
        let how = Follow { places: messages.records(), ..self.how() };
        let view = View::new(window, None);
        view.check(&mut session, &how, messages)?;
        if self.source_lines && self.format.make.names {
            session.check_lines(&self.source_dirs, messages)?;
        }
        let mut printing = Printing { args: self, selection, how, view, messages };
        let stream = Stream::to(self.output.as_deref(), &session);
        let at_once = stream.at_once;
        stream.write(|out| printing.sources(&mut session, out, at_once))?;
        // The process ends here. Freeing each name first would take a tenth of a short command's time.
        std::mem::forget(session);
        Ok(())
    }
}

impl Flow {
    /// Prints the executed instructions with the values that are proven.
    fn run_values(&self, messages: &Messages) -> Result<(), Failure> {
        let selection = self.selection()?;
        let mut session = open::whole_trace(&self.capture, messages)?;
        let window = selection.as_ref().map(|selection| selection.window.clone()).unwrap_or_default();
        let view = View::new(window, None);
        view.check(&mut session, &self.how(), messages)?;
        messages.record(|record| self.dump.iter().for_each(|dump| record.input("dump", dump)));
        let options =
            FlowOptions { look: look_for(self.output.as_deref()), source_lines: false, at_once: false };
        let name = self.format.name;
        write_to(self.output.as_deref(), |out| {
            let mut sink = make_values(name, out, &options).ok_or_else(|| {
                Failure::input(
                    "no_values",
                    format!("the format {name} has no values"),
                    "use another --format, such as text or jsonl",
                )
            })?;
            sink.begin()?;
            session.each_source(messages, |session, source| {
                // Symbols tell code and data apart.
                let how = Follow { names: Some(self.source_dirs.clone()), ..self.how() };
                let code = session.code(source, how.names.as_deref(), messages)?;
                let setup = session.value_setup(source, &code, self.dump.as_deref())?;
                let mut searching =
                    Searching::new(&mut *sink, self.searches(&code, setup.profile == Profile::A64)?);
                let (mut last, mut excerpt);
                let mut part: &mut dyn ValueSink = &mut searching;
                if let Some(count) = self.last {
                    last = LastValues::new(part, count);
                    part = &mut last;
                }
                if let Some(selection) = &selection {
                    excerpt = ValuesExcerpt::new(part, selection.clone());
                    part = &mut excerpt;
                }
                view.run(session, source, &how, &mut Proving::new(setup, part), messages)?;
                say_possible(searching.possible(), messages);
                Ok::<(), Failure>(())
            })?;
            sink.finish(messages.complete())?;
            view.finish().map_err(Failure::from)
        })
    }
}

/// The output.
struct Printing<'a> {
    args: &'a Flow,
    /// The selected part of each source; `None` for all of it.
    selection: Option<Selection>,
    how: Follow,
    view: View,
    messages: &'a Messages,
}

impl Printing<'_> {
    /// Prints all sources.
    fn sources(&mut self, session: &mut Session, out: &mut dyn Write, at_once: bool) -> Result<(), Failure> {
        let Self { args, selection, .. } = self;
        let in_order_only = session.is_live()
            || args.trust().doubtful == Doubtful::Drop
            || args.last.is_some()
            || selection.is_some();
        // Reports of an ITM appear between the lines.
        let itm_between = |parts: &FlowParts| *parts == FlowParts::Jsonl && !session.itms().is_empty();
        let parts = args.format.make.parts.filter(|parts| !in_order_only && !itm_between(parts));
        match parts {
            Some(parts) => parts.with(&mut &mut *out, ByThreads { printing: self, session }),
            None => self.in_order(session, out, at_once),
        }?;
        Ok(self.view.finish()?)
    }

    /// Follows all sources, each record handed on in the order of the trace.
    fn in_order(&mut self, session: &mut Session, out: &mut dyn Write, at_once: bool) -> Result<(), Failure> {
        let Self { args, selection, how, view, messages } = self;
        let mut exporter = exporter(args, selection.as_ref(), at_once, out);
        exporter.begin()?;
        session.each_source(*messages, |session, source| {
            view.run(session, source, how, &mut *exporter, *messages)?;
            Ok::<(), Failure>(())
        })?;
        itms_alone(session, &mut *exporter, messages)?;
        Ok(exporter.finish(messages.complete())?)
    }
}

/// Follows all sources by several threads.
struct ByThreads<'a, 'b> {
    printing: &'a mut Printing<'b>,
    session: &'a mut Session,
}

impl WithJoin for ByThreads<'_, '_> {
    type Answer = Result<(), Failure>;

    fn with(self, exporter: &mut impl Join) -> Result<(), Failure> {
        let Self { printing: Printing { how, messages, .. }, session } = self;
        exporter.begin()?;
        session.each_source(*messages, |session, source| {
            session.run_in_parts(source, how, exporter, *messages)?;
            Ok::<(), Failure>(())
        })?;
        Ok(exporter.finish(messages.complete())?)
    }
}

/// Reports of ITMs in buffers without any trace of instructions.
fn itms_alone(
    session: &Session,
    exporter: &mut dyn Sink<FlowRecord>,
    messages: &Messages,
) -> Result<(), Failure> {
    let is_alone = |itm: &&Itm| session.sources().iter().all(|source| source.buffer != itm.buffer);
    for itm in session.itms().iter().filter(is_alone) {
        messages.notice(NoticeKind::ItmAlone { source: itm.id }.into());
        if exporter.shows_itm() {
            exporter.section(&Section {
                id: itm.id,
                protocol: itm.protocol().protocol(),
                number: 1,
                code: Code::unknown().into(),
            })?;
            let mut itms = Itms::new(session, vec![itm.clone()]);
            session.wait_for_itms(|| itms.each(|record| exporter.itm(record)))?;
            exporter.end_section()?;
            let counts = itms.finish(messages);
            messages.record(|record| {
                counts.iter().for_each(|(itm, counts)| record.itm(itm, counts));
            });
        }
    }
    Ok(())
}

/// The exporter of all of the flow, of a part, or of the last instructions of a part.
fn exporter<'a>(
    args: &Flow,
    selection: Option<&Selection>,
    at_once: bool,
    out: &'a mut dyn Write,
) -> Box<dyn FlowSink + 'a> {
    let Flow { source_lines, .. } = *args;
    let look = look_for(args.output.as_deref());
    let options = FlowOptions { look, source_lines, at_once };
    let exporter = (args.format.make.sink)(out, &options);
    let exporter: Box<dyn FlowSink + 'a> = match args.last {
        Some(count) => Box::new(LastInstructions::new(exporter, count)),
        None => exporter,
    };
    match selection {
        Some(selection) => Box::new(Excerpt::new(exporter, selection.clone())),
        None => exporter,
    }
}

/// States how much may be what is searched, too.
fn say_possible(Possible { all, after_last }: Possible, messages: &Messages) {
    if all > 0 {
        let text = format!(
            "{all} more instructions may have written it, {after_last} of them after the last one that is known to: what they wrote \
             is not known"
        );
        messages.note("may_match", text);
    }
}
