//! `itm`: reports of ITMs.

use std::collections::BTreeMap;
use std::sync::Arc;

use tracewalk::source::Instrumentation;
use tracewalk_analysis::Code;
use tracewalk_analysis::itm::ItmEvent;
use tracewalk_report::export::WatchedBy;
use tracewalk_report::formats::ItmOptions;

use tracewalk_session::{Itm as Instrument, Itms};

use crate::args::Itm;
use crate::failure::Failure;
use crate::messages::Messages;
use crate::open;
use crate::output::{Destination, Stream, look_for};
use crate::task::{Reads, Task};
use tracewalk_report::counted;

impl Task for Itm {
    fn reads(&self) -> Reads<'_> {
        Reads::one(&self.capture)
    }

    fn writes(&self) -> Vec<Destination<'_>> {
        vec![Destination::output(self.output.as_deref())]
    }

    fn is_for_people(&self) -> bool {
        // An ITM's text may contain anything, and is usually watched live.
        false
    }

    /// Prints the reports of ITMs.
    fn run(&self, messages: &Messages) -> Result<(), Failure> {
        if !self.ports.is_empty() && !self.format.make.of_ports {
            let problem = "--port is for --format text; other formats include every port";
            return Err(Failure::input("option_of_other_format", problem, "leave out --port"));
        }
        let mut session = open::for_itms(&self.capture, messages)?;
        if session.itms().is_empty() {
            return Err(Failure::input(
                "no_itm",
                format!(
                    "{}: contains no recognisable trace of an ITM or STM",
                    self.capture.capture.display()
                ),
                "state its trace ID with --source ID=itm or ID=stm, or state that all bytes are its with --container raw \
             --source itm (or stm)",
            ));
        }
        let ports = if self.ports.is_empty() { vec![0] } else { self.ports.clone() };
        let output = self.output.as_deref();
        let is_itm = |itm: &Instrument| itm.protocol() == Instrumentation::Itm;
        let has_itm = session.itms().iter().any(is_itm);
        let (mut code, mut watched) = (Arc::new(Code::unknown()), WatchedBy::new());
        let itms = session.itms().iter().filter(|itm| is_itm(itm) && !self.format.make.of_ports);
        for itm in itms.cloned().collect::<Vec<_>>() {
            // Comparators are named by the data that they watch.
            code = session.itm_program(&itm, Some(&[]), messages)?.code;
            watched.insert(itm.id, session.watched(&itm, &code));
        }
        if !session.itms().iter().all(is_itm) {
            code = session.kernel(messages)?;
        }
        let options = ItmOptions { look: look_for(output), ports, code, watched, table: self.table };
        let mut written = Written::default();
        Stream::to(output, &session).write(|out| {
            let mut exporter = (self.format.make.export)(out, &options);
            let mut itms = Itms::new(&session, session.itms().to_vec());
            session.wait_for_itms(|| {
                itms.each(|record| {
                    written.add(&record.event);
                    exporter.record(record)
                })
            })?;
            let counts = itms.finish(messages);
            messages.record(|record| {
                counts.iter().for_each(|(itm, counts)| record.itm(itm, counts));
            });
            let counted = counts.into_iter().map(|(itm, counts)| (itm.id, counts)).collect::<Vec<_>>();
            Ok(exporter.finish(&counted, messages.complete())?)
        })?;
        if self.format.make.of_ports && has_itm {
            written.report_missing(&options.ports, !self.ports.is_empty(), messages);
        }
        Ok(session.end_source(messages)?)
    }
}

/// The number of bytes that software wrote to each stimulus port.
#[derive(Debug, Default)]
struct Written(BTreeMap<u8, u64>);

impl Written {
    fn add(&mut self, event: &ItmEvent) {
        let (port, bytes) = match event {
            ItmEvent::Text { port, bytes } => (port, bytes.len() as u64),
            ItmEvent::Value { port, size, .. } => (port, u64::from(size.bytes())),
            _ => return,
        };
        *self.0.entry(*port).or_default() += bytes;
    }

    /// Reports the requested ports without bytes, and the ports with bytes.
    fn report_missing(&self, ports: &[u8], asked: bool, messages: &Messages) {
        /// The most ports in a sentence.
        const NAMED: usize = 8;
        let missing = ports.iter().filter(|port| !self.0.contains_key(port)).map(u8::to_string);
        let missing = missing.collect::<Vec<_>>().join(", ");
        if missing.is_empty() {
            return;
        }
        let found =
            self.0.iter().take(NAMED).map(|(port, bytes)| format!("{port} ({})", counted(*bytes, "byte")));
        let mut found = found.collect::<Vec<_>>().join(", ");
        if self.0.len() > NAMED {
            found += &format!(" and {} more", self.0.len() - NAMED);
        }
        let message = if found.is_empty() {
            format!(
                "nothing was written to stimulus port {missing} or to any other; --format events shows everything else"
            )
        } else {
            format!("nothing was written to stimulus port {missing}, only to {found}; choose with --port")
        };
        let kind = "port_not_written";
        if asked { messages.incomplete(kind, message) } else { messages.note(kind, message) }
    }
}
