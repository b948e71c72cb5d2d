//! `profile --format folded`: one line for each chain of calls and its own cost, as flame graph tools read them.
//!
//! Names are separated by `;`, and the cost follows the last space. Inlined functions end in `_[i]`, which tools for perf's
//! output colour separately.

use std::io::{self, Write};

use tracewalk::plain::Plain;

use super::profile::ProfileReport;
use tracewalk_analysis::profile::{Label, LabelKind};

/// Writes all sources' chains of calls.
pub fn write_folded(out: &mut dyn Write, report: &ProfileReport) -> io::Result<()> {
    for source in &report.sources {
        let tree = report.tree(source, false);
        let prefix = report.source_name(&source.0).map_or_else(String::new, |name| format!("{name};"));
        let names = tree.labels.iter().map(name).collect::<Vec<_>>();
        let mut result = Ok(());
        tree.stacks(|path, node| {
            let cost = report.value(&node.own);
            if cost > 0 && result.is_ok() {
                let chain = path.iter().map(|index| names[tree.nodes[*index].label.index()].as_str());
                let chain = chain.collect::<Vec<_>>().join(";");
                result = writeln!(out, "{prefix}{chain} {cost}");
            }
        });
        result?;
    }
    Ok(())
}

fn name(label: &Label) -> String {
    let name = Plain(label.name.replace(';', ":")).to_string();
    match label.kind {
        LabelKind::Task | LabelKind::Exception => format!("[{name}]"),
        LabelKind::Function => name,
        LabelKind::Inlined => format!("{name}_[i]"),
    }
}
