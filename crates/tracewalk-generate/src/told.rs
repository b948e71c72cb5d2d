//! What a trace says, written while it is encoded: the runs that decoding should print, and the times of the steps.

use std::collections::VecDeque;

use tracewalk::ids::TraceId;
use tracewalk_generate::capture::runs_head;
use tracewalk_generate::convert::Compactor;
use tracewalk_generate::elf::Elf;
use tracewalk_generate::path::Step;
use tracewalk_generate::stream::Stream;
use tracewalk_generate::trace::Trace;

use crate::files::{Output, each_piece};

/// Encodes a record's path piece by piece; the trace's bytes go into a file, or else are given back.
pub(crate) fn encode(
    (record, elf): (&str, &Elf),
    mut stream: Stream<'_>,
    trace_file: Option<&str>,
    told: &mut Told,
) -> Result<Vec<u8>, String> {
    let mut file = trace_file.map(Output::create).transpose()?;
    let mut bytes = Vec::new();
    let mut keep = |trace: Trace, told: &mut Told| -> Result<(), String> {
        match &mut file {
            Some(file) => file.write(&trace.bytes)?,
            None => bytes.extend_from_slice(&trace.bytes),
        }
        told.trace(&trace)
    };
    each_piece(record, elf, |steps| {
        told.steps(steps);
        stream.add(steps);
        stream.advance().map_err(|error| error.to_string())?;
        keep(stream.take(), told)
    })?;
    stream.finish().map_err(|error| error.to_string())?;
    keep(stream.take(), told)?;
    file.map_or(Ok(()), Output::finish)?;
    Ok(bytes)
}

/// The files that say what the trace says.
pub(crate) struct Told {
    runs: Option<Output>,
    compactor: Compactor,
    times: Option<Times>,
    instructions: u64,
}

/// Where the times go, and the steps whose times are not known yet.
struct Times {
    file: Output,
    steps: VecDeque<Step>,
}

impl Told {
    pub(crate) fn create(
        runs_file: Option<&str>,
        id: TraceId,
        times_file: Option<&str>,
    ) -> Result<Self, String> {
        let mut runs = runs_file.map(Output::create).transpose()?;
        if let Some(runs) = &mut runs {
            runs.print(&runs_head(Some(id)))?;
        }
        let times = times_file
            .map(|file| Ok::<_, String>(Times { file: Output::create(file)?, steps: VecDeque::new() }));
        Ok(Self { runs, compactor: Compactor::default(), times: times.transpose()?, instructions: 0 })
    }

    /// Steps that are about to be encoded.
    fn steps(&mut self, steps: &[Step]) {
        if let Some(times) = &mut self.times {
            times.steps.extend(steps);
        }
    }

    /// What was encoded.
    fn trace(&mut self, trace: &Trace) -> Result<(), String> {
        self.instructions += trace.told.instructions().count() as u64;
        if let Some(runs) = &mut self.runs {
            let mut lines = Vec::new();
            trace.told.steps.iter().for_each(|step| self.compactor.step(step, &mut lines));
            lines.iter().try_for_each(|line| runs.print(&line.runs()))?;
        }
        if let Some(Times { file, steps }) = &mut self.times {
            file.print(&trace.times_text(&*steps))?;
            steps.drain(..trace.times.len().min(steps.len()));
        }
        Ok(())
    }

    /// How many instructions the trace tells.
    pub(crate) const fn instructions(&self) -> u64 {
        self.instructions
    }

    pub(crate) fn finish(mut self) -> Result<(), String> {
        if let Some(mut runs) = self.runs {
            let mut lines = Vec::new();
            self.compactor.finish(&mut lines);
            lines.iter().try_for_each(|line| runs.print(&line.runs()))?;
            runs.finish()?;
        }
        self.times.map_or(Ok(()), |times| times.file.finish())
    }
}
