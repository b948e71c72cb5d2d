//! How often exceptions were taken and how long they took, as text, CSV and JSON.

mod json;
mod table;
mod text;
use std::sync::Arc;

use std::io;

use tracewalk::ids::Exception;
use tracewalk_analysis::call_stack::FunctionId;
use tracewalk_analysis::interrupts::{Activities, Activity, ActivityRecorder};
use tracewalk_analysis::timeline::{Scale, Timeline};
use tracewalk_analysis::{Code, InDoubt, Section, Window};

use super::profile::of_program;
use tracewalk_analysis::record::FlowRecord;
use tracewalk_analysis::sink::Sink;

pub use json::write_interrupts_json;
pub use text::write_interrupts_text;

/// What was found of each source.
#[derive(Debug)]
pub struct InterruptReport {
    /// What times are measured in.
    pub scale: Scale,
    /// The sources.
    pub sources: Vec<(Section, Activities)>,
    /// What the sources' programs are called, where there are several.
    pub programs: Vec<(Arc<Code>, String)>,
    /// Whether every capture was decoded to its end.
    pub complete: bool,
}

impl InterruptReport {
    /// ` of m3.elf` where a source of another program has the same trace ID; else nothing.
    fn of_program(&self, section: &Section) -> String {
        of_program(section, &self.sources, &self.programs)
    }
}

/// Finds out how long exceptions took, source by source.
#[derive(Debug)]
pub struct InterruptRecording {
    report: InterruptReport,
    window: Window,
    functions: bool,
    running: Option<(Section, Timeline, ActivityRecorder)>,
    left_out: u64,
}

impl InterruptRecording {
    /// On this axis, in this part of the trace, with or without functions.
    #[must_use]
    pub fn new(scale: Scale, window: Window, functions: bool) -> Self {
        Self {
            report: InterruptReport { scale, sources: Vec::new(), programs: Vec::new(), complete: true },
            window,
            functions,
            running: None,
            left_out: 0,
        }
    }

    /// What was found.
    #[must_use]
    pub fn finish(self) -> InterruptReport {
        self.report
    }
}

impl Sink<FlowRecord> for InterruptRecording {
    fn section(&mut self, section: &Section) -> io::Result<()> {
        let scale = self.report.scale;
        let timeline = Timeline::new(Arc::clone(&section.code), &scale, self.window);
        let recorder = ActivityRecorder::new(scale.unit, self.functions);
        self.running = Some((section.clone(), timeline, recorder));
        Ok(())
    }

    fn record(&mut self, record: FlowRecord) -> io::Result<()> {
        if let Some((_, timeline, recorder)) = &mut self.running {
            timeline.element(&record.element, record.at, &mut |item| recorder.item(&item));
        }
        Ok(())
    }

    fn left_out(&mut self, instructions: u64) {
        self.left_out += instructions;
    }

    fn end_section(&mut self) -> io::Result<()> {
        if let Some((section, mut timeline, mut recorder)) = self.running.take() {
            timeline.finish(&mut |item| recorder.item(&item));
            let in_doubt = InDoubt { left_out: std::mem::take(&mut self.left_out), counted: 0 };
            self.report.sources.push((section, Activities { in_doubt, ..recorder.finish() }));
        }
        Ok(())
    }
}

/// What a row is about.
struct Row<'a> {
    name: String,
    exception: Option<Exception>,
    function: Option<FunctionId>,
    activity: &'a Activity,
}

/// A source's rows: exceptions by number, functions by address.
fn rows<'a>(code: &'a Code, activities: &'a Activities) -> impl Iterator<Item = Row<'a>> {
    let exceptions = activities.exceptions.iter().map(|(&exception, activity)| {
        let name = exception.map_or_else(
            || "an exception".to_owned(),
            |exception| code.interrupts.name_or_number(exception).into_owned(),
        );
        Row { name, exception, function: None, activity }
    });
    let functions = activities.functions.iter().map(|(&function, activity)| Row {
        name: function.name(code),
        exception: None,
        function: Some(function),
        activity,
    });
    exceptions.chain(functions)
}
