//! `profile --format folded`: one line for each chain of calls and its own cost, as flame graph tools read them.
//!
//! Names are separated by `;`, the cost stands behind the last space. Inlined functions end in `_[i]`, which tools that
//! know perf colour in their own way.

use std::io::{self, Write};

use super::profile::ProfileReport;
use crate::analysis::profile::{Label, LabelKind};

/// Writes all sources' chains of calls.
pub fn write_folded(out: &mut dyn Write, report: &ProfileReport) -> io::Result<()> {
    for source in &report.sources {
        let tree = report.tree(source, false);
        let (children, mut open) = tree.children(|_| 0);
        open.reverse();
        let mut path: Vec<(usize, String)> = Vec::new();
        while let Some(index) = open.pop() {
            let node = &tree.nodes[index];
            while path.last().is_some_and(|(last, _)| Some(*last) != node.parent) {
                path.pop();
            }
            path.push((index, name(tree.label_of(node))));
            let cost = report.value(&node.own);
            if cost > 0 {
                if let Some(source) = report.source_name(&source.0) {
                    write!(out, "{source};")?;
                }
                let names = path.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>();
                writeln!(out, "{} {cost}", names.join(";"))?;
            }
            open.extend(children[index].iter().rev());
        }
    }
    Ok(())
}

fn name(label: &Label) -> String {
    let name = label.name.replace(';', ":").replace(char::is_control, " ");
    match label.kind {
        LabelKind::Task | LabelKind::Exception => format!("[{name}]"),
        LabelKind::Function => name,
        LabelKind::Inlined => format!("{name}_[i]"),
    }
}
