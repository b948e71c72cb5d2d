//! A profile as an analysis of a source.

use std::io;
use std::sync::Arc;

use super::{Profile, Profiler};
use crate::analysis::{Analysis, End, FlowSink, Repeated};
use crate::record::FlowRecord;
use crate::sink::Sink;
use crate::{Section, Window};

/// Works out the cost of a source's functions.
#[derive(Debug)]
pub struct Profiling {
    window: Window,
    running: Option<Profiler>,
    left_out: u64,
}

impl Profiling {
    /// Profiles this part of the trace.
    #[must_use]
    pub const fn new(window: Window) -> Self {
        Self { window, running: None, left_out: 0 }
    }
}

impl Sink<FlowRecord> for Profiling {
    fn section(&mut self, section: &Section) -> io::Result<()> {
        self.running = Some(Profiler::new(Arc::clone(&section.code), &self.window));
        Ok(())
    }

    fn record(&mut self, record: FlowRecord) -> io::Result<()> {
        if let Some(profiler) = &mut self.running {
            profiler.element(&record.element, record.at);
        }
        Ok(())
    }

    fn left_out(&mut self, instructions: u64) {
        self.left_out += instructions;
    }
}

impl FlowSink for Profiling {
    fn passage(&mut self, repeated: &Repeated<'_>) -> io::Result<()> {
        if let Some(profiler) = &mut self.running {
            profiler.passage(repeated);
        }
        Ok(())
    }

    fn needs_places(&self) -> bool {
        self.window.needs_places()
    }
}

impl Analysis for Profiling {
    type Found = Profile;

    fn answer(self, _: &End) -> Profile {
        let mut profile = self.running.map(Profiler::finish).unwrap_or_default();
        profile.in_doubt.left_out = self.left_out;
        profile
    }
}
