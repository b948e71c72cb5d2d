//! How long exceptions took, as an analysis of a source.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use tracewalk::ids::TraceId;

use super::{Activities, ActivityRecorder, ReportedActivities};
use crate::analysis::{Analysis, End, FlowSink, Repeated};
use crate::record::{FlowRecord, ItmRecord};
use crate::sink::Sink;
use crate::timeline::{Scale, Timeline};
use crate::{InDoubt, Section, Window};

/// Works out how often a source's exceptions were taken, and how long they took.
#[derive(Debug)]
pub struct Measuring {
    scale: Scale,
    window: Window,
    functions: bool,
    running: Option<(Timeline, ActivityRecorder)>,
    left_out: u64,
    /// The reports of ITMs in the window, if they are counted here.
    reported: Option<BTreeMap<Option<TraceId>, ReportedActivities>>,
}

/// Each ITM's reports of exceptions.
pub type Reported = BTreeMap<Option<TraceId>, Activities>;

impl Measuring {
    /// Measures on this axis, in this part of the trace, with or without functions.
    #[must_use]
    pub const fn new(scale: Scale, window: Window, functions: bool) -> Self {
        Self { scale, window, functions, running: None, left_out: 0, reported: None }
    }

    /// Also counts ITM reports while the trace is in the window. Records then come in order, which takes longer than reading
    /// the ITMs separately.
    #[must_use]
    pub fn with_itms(self) -> Self {
        Self { reported: Some(BTreeMap::new()), ..self }
    }
}

impl Sink<FlowRecord> for Measuring {
    fn section(&mut self, section: &Section) -> io::Result<()> {
        let timeline = Timeline::new(Arc::clone(&section.code), &self.scale, &self.window);
        let timeline = if self.functions { timeline } else { timeline.without_functions() };
        self.running = Some((timeline, ActivityRecorder::new(self.scale.unit, self.functions)));
        Ok(())
    }

    fn record(&mut self, record: FlowRecord) -> io::Result<()> {
        if let Some((timeline, recorder)) = &mut self.running {
            timeline.element(&record.element, record.at, &mut |item| recorder.take(&item));
        }
        Ok(())
    }

    fn shows_itm(&self) -> bool {
        self.reported.is_some()
    }

    fn itm(&mut self, record: &ItmRecord) -> io::Result<()> {
        let is_inside = self.running.as_ref().is_some_and(|(timeline, _)| timeline.is_inside());
        if let Some(reported) = self.reported.as_mut().filter(|_| is_inside) {
            reported.entry(record.id).or_default().event(&record.event);
        }
        Ok(())
    }

    fn left_out(&mut self, instructions: u64) {
        self.left_out += instructions;
    }
}

impl FlowSink for Measuring {
    fn passage(&mut self, repeated: &Repeated<'_>) -> io::Result<()> {
        if let Some((timeline, recorder)) = &mut self.running {
            timeline.passage(repeated, &mut |item| recorder.take(&item));
        }
        Ok(())
    }

    fn needs_places(&self) -> bool {
        self.window.needs_places()
    }
}

impl Analysis for Measuring {
    type Found = (Activities, Reported);

    fn answer(self, _: &End) -> (Activities, Reported) {
        let reported = self.reported.unwrap_or_default().into_iter();
        let mut reported = reported.map(|(id, found)| (id, found.counts())).collect::<Reported>();
        reported.retain(|_, found| !found.exceptions.is_empty());
        let Some((mut timeline, mut recorder)) = self.running else {
            return (Activities::default(), reported);
        };
        timeline.finish(&mut |item| recorder.take(&item));
        let in_doubt = InDoubt { left_out: self.left_out, counted: 0 };
        (Activities { in_doubt, ..recorder.finish() }, reported)
    }
}
