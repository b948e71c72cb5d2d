//! `calls --format none`: follows calls and writes nothing.

use std::io;
use std::sync::Arc;

use tracewalk_analysis::analysis::{FlowSink, Repeated};
use tracewalk_analysis::call_stack::{CallStack, Remembered, Unobserved};
use tracewalk_analysis::record::FlowRecord;
use tracewalk_analysis::sink::Sink;
use tracewalk_analysis::{Code, Section};

/// Follows calls.
#[derive(Debug)]
pub struct CallsOnly {
    calls: CallStack<()>,
    remembered: Remembered<(), ()>,
}

impl Default for CallsOnly {
    fn default() -> Self {
        Self { calls: CallStack::new(Arc::new(Code::unknown())), remembered: Remembered::default() }
    }
}

impl Sink<FlowRecord> for CallsOnly {
    fn section(&mut self, section: &Section) -> io::Result<()> {
        self.calls = CallStack::new(Arc::clone(&section.code));
        self.remembered = Remembered::default();
        Ok(())
    }

    fn record(&mut self, record: FlowRecord) -> io::Result<()> {
        self.remembered.disturb(&mut self.calls);
        self.calls.element(&record.element, &mut Unobserved);
        Ok(())
    }

    fn end_section(&mut self) -> io::Result<()> {
        self.remembered.disturb(&mut self.calls);
        self.calls.finish(&mut Unobserved);
        Ok(())
    }
}

impl FlowSink for CallsOnly {
    fn passage(&mut self, repeated: &Repeated<'_>) -> io::Result<()> {
        self.remembered.take(repeated, &mut self.calls);
        Ok(())
    }

    fn needs_places(&self) -> bool {
        false
    }

    fn takes_groups(&self) -> bool {
        self.remembered.takes_groups()
    }
}
