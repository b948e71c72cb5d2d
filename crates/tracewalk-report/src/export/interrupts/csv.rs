//! A line for each exception and function, with commas (RFC 4180).

use std::io::{self, Write};

use tracewalk::ids::Exception;

use super::{InterruptReport, rows};
use tracewalk_analysis::call_stack::FunctionId;
use tracewalk_analysis::interrupts::Lengths;

const MEASURES: [&str; 3] = ["with_preemption", "without_preemption", "inter_arrival"];

/// Writes a line with the columns' names, and the others.
pub fn write_interrupts_csv(out: &mut dyn Write, report: &InterruptReport) -> io::Result<()> {
    write!(out, "source,kind,number,address,name,unit,count,tail_chained,preempting,cut")?;
    for measure in MEASURES {
        write!(out, ",{measure}_count,{measure}_min,{measure}_mean,{measure}_p99,{measure}_max")?;
    }
    write!(out, "\r\n")?;
    for (section, activities) in &report.sources {
        let source = section.id.map_or_else(|| "-".to_owned(), |id| id.to_string());
        let source = quoted(&(source + &section.suffix() + &report.of_program(section)));
        for row in rows(&section.code, activities) {
            let kind = if row.function.is_some() { "function" } else { "exception" };
            let number = or_empty(row.exception.map(Exception::number));
            let address = or_empty(row.function.and_then(FunctionId::address));
            let name = quoted(&row.name);
            let unit = report.scale.unit.name();
            let activity = row.activity;
            write!(out, "{source},{kind},{number},{address},{name},{unit}")?;
            write!(
                out,
                ",{},{},{},{}",
                activity.count, activity.tail_chained, activity.preempting, activity.cut
            )?;
            for lengths in [&activity.with_preemption, &activity.without_preemption, &activity.inter_arrival]
            {
                write!(out, ",{}", columns(lengths))?;
            }
            write!(out, "\r\n")?;
        }
    }
    Ok(())
}

fn columns(lengths: &Lengths) -> String {
    let mean = or_empty(lengths.mean().map(|mean| format!("{mean:.3}")));
    let (min, p99, max) =
        (or_empty(lengths.min()), or_empty(lengths.percentile(99)), or_empty(lengths.max()));
    format!("{},{min},{mean},{p99},{max}", lengths.count())
}

fn or_empty<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
