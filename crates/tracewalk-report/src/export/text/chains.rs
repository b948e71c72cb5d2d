//! `calls --fold chains`: all calls of one chain on one line, with their number and cost.

use std::io::{self, Write};

use super::indent;
use crate::export::profile::ProfileReport;
use crate::layout::Fitted;
use crate::words::{CUT, percent};
use crate::{Look, Palette};
use tracewalk_analysis::profile::{LabelKind, Tree};

/// How a tree of chains of calls is printed.
#[derive(Clone, Copy, Debug)]
pub struct CallChainsOptions {
    /// The colours and the width.
    pub look: Look,
    /// Deeper functions are not printed; they count only in their callers.
    pub depth: Option<usize>,
}

/// Writes each source's tree; the callees of a function are in the order of their first calls.
pub fn write_call_chains(
    out: &mut dyn Write,
    report: &ProfileReport,
    options: &CallChainsOptions,
) -> io::Result<()> {
    let out = &mut Fitted::new(out, options.look.width);
    let Palette { head, quiet, .. } = options.look.palette;
    for (index, source) in report.sources.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        let tree = report.tree(source, false);
        let whole = report.value(&tree.total());
        writeln!(out, "{head}{}{head:#}: {whole} {}", source.0, report.measure())?;
        writeln!(out, "{quiet}{:>12} {:>6} {:>12} {:>9}{quiet:#}", "total", "", "self", "calls")?;
        let mut result = Ok(());
        tree.stacks(|path, _| {
            if result.is_ok() && options.depth.is_none_or(|deepest| path.len() <= deepest + 1) {
                result = line(out, report, options, &tree, path, whole);
            }
        });
        result?;
    }
    if report.complete { Ok(()) } else { writeln!(out, "{CUT}") }
}

fn line(
    out: &mut dyn Write,
    report: &ProfileReport,
    options: &CallChainsOptions,
    tree: &Tree,
    path: &[usize],
    whole: u64,
) -> io::Result<()> {
    let Some(node) = path.last().and_then(|index| tree.nodes.get(*index)) else { return Ok(()) };
    if node.calls == 0 && node.total.is_zero() {
        // The call ran outside the window.
        return Ok(());
    }
    let Palette { quiet, function, exception, .. } = options.look.palette;
    let label = tree.label_of(node);
    let style = match label.kind {
        LabelKind::Function | LabelKind::Inlined => function,
        LabelKind::Exception | LabelKind::Task => exception,
    };
    let (total, own) = (report.value(&node.total), report.value(&node.own));
    let calls = match node.calls {
        0 => String::new(),
        calls => calls.to_string(),
    };
    let place = match &label.place {
        Some(place) if label.kind == LabelKind::Function => format!("  {quiet}{}{quiet:#}", place.short()),
        _ => String::new(),
    };
    let margin = indent(path.len() - 1);
    writeln!(
        out,
        "{total:>12} {:>6} {own:>12} {calls:>9}  {:margin$}{style}{}{style:#}{place}",
        percent(total, whole),
        "",
        label.text()
    )
}
