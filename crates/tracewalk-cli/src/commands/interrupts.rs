//! `interrupts`: how often exceptions were taken, and how long they took.

use std::time::Instant;

use tracewalk_report::export::{
    InterruptRecording, write_interrupts_csv, write_interrupts_json, write_interrupts_text,
};

use super::print_statistics;
use super::timeline::{follow_all, scale};
use crate::args::{Interrupts, InterruptsFormat};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::output::{palette_for, write_to};
use crate::work::Work;

/// Measures exceptions.
pub(crate) fn run(args: &Interrupts, messages: &Messages) -> Result<(), Failure> {
    let start = Instant::now();
    let axis = &args.axis;
    let mut work = Work::open(&axis.follow.capture, messages)?;
    let scale = scale(&mut work, axis, messages)?;
    let mut recording = InterruptRecording::new(scale, axis.window.window(), args.functions);
    let total = follow_all(&mut work, axis, &mut recording, messages)?;
    let report = recording.finish();
    let output = args.output.as_deref();
    write_to(output, |out| match args.format {
        InterruptsFormat::Text => write_interrupts_text(out, &report, &palette_for(output)),
        InterruptsFormat::Csv => write_interrupts_csv(out, &report),
        InterruptsFormat::Json => write_interrupts_json(out, &report),
    })?;
    if args.work.stats {
        print_statistics(&total, start.elapsed(), args.work.threads);
    }
    Ok(())
}
