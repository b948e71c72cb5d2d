//! `profile --format callgrind`: the format of Valgrind's callgrind, for callgrind_annotate and KCachegrind.
//!
//! The format is described in Valgrind's manual, "Callgrind Format Specification". Functions are those of the symbols; lines
//! inlined into a function belong to it. Sources are objects (`ob=`). `callgrind_annotate` adds up functions with the same file
//! and name in several objects: such functions have their source in their name.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use tracewalk::plain::Plain;

use super::profile::ProfileReport;
use crate::words::CUT;
use tracewalk_analysis::clock::{Cost, Unit};
use tracewalk_analysis::profile::{Label, LabelId, LabelKind, Place, Tree, TreeOptions};

const UNKNOWN_FILE: &str = "???";

/// Writes all sources' functions, their lines and their calls.
pub fn write_callgrind(out: &mut dyn Write, report: &ProfileReport) -> io::Result<()> {
    let has = |unit| report.sources.iter().any(|(_, profile)| profile.measures.has(unit));
    let units = Unit::ALL.into_iter().filter(|unit| has(*unit));
    let units = units.collect::<Vec<_>>();
    writeln!(out, "# callgrind format")?;
    writeln!(out, "version: 1")?;
    writeln!(out, "creator: tracewalk {}", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, "cmd: {}", Plain(&report.name))?;
    writeln!(out, "desc: Measured: {}", report.measure())?;
    if !report.complete {
        writeln!(out, "desc: Part: {CUT}")?;
    }
    writeln!(out, "positions: line")?;
    writeln!(out, "events: {}", units.iter().map(|unit| event(*unit)).collect::<Vec<_>>().join(" "))?;
    let mut total = Cost::default();
    report.sources.iter().for_each(|(_, profile)| total += profile.total());
    writeln!(out, "summary: {}", costs(&total, &units))?;
    let trees = report.sources.iter().map(|(section, profile)| {
        Tree::of(profile, &section.code, TreeOptions { inlined: false, sites: true })
    });
    let trees = trees.collect::<Vec<_>>();
    let shared = shared(&trees);
    for (source, tree) in report.sources.iter().zip(&trees) {
        let object = report.name_of(&source.0);
        Object { tree, name: &object, shared: &shared, units: &units }.write(out)?;
    }
    Ok(())
}

/// The key by which `callgrind_annotate` identifies a function: its file and its name.
type Key<'a> = (&'a str, &'a str);

/// The functions that several sources have.
fn shared(trees: &[Tree]) -> BTreeSet<Key<'_>> {
    let (mut once, mut twice) = (BTreeSet::new(), BTreeSet::new());
    for tree in trees {
        let keys = tree.labels.iter().map(key).collect::<BTreeSet<_>>();
        twice.extend(keys.into_iter().filter(|key| !once.insert(*key)));
    }
    twice
}

fn key(label: &Label) -> Key<'_> {
    (file(label.place.as_ref()), &label.name)
}

/// A source, as an object.
struct Object<'a> {
    tree: &'a Tree,
    name: &'a str,
    shared: &'a BTreeSet<Key<'a>>,
    units: &'a [Unit],
}

/// The lines and calls of one function.
#[derive(Default)]
struct Function<'a> {
    lines: BTreeMap<Option<&'a Place>, Cost>,
    /// By line and callee.
    calls: BTreeMap<(Option<&'a Place>, LabelId), (u64, Cost)>,
}

impl Object<'_> {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let lines = self.tree.lines(|_| 0);
        let edges = self.tree.edges(|_| 0);
        let mut functions = BTreeMap::<LabelId, Function<'_>>::new();
        for line in &lines {
            *functions.entry(line.function).or_default().lines.entry(line.place.as_ref()).or_default() +=
                line.own;
        }
        for edge in &edges {
            let calls = &mut functions.entry(edge.caller).or_default().calls;
            let (count, total) = calls.entry((edge.site.as_ref(), edge.callee)).or_default();
            *count = count.saturating_add(edge.calls);
            *total += edge.total;
        }
        writeln!(out, "\nob={}", self.name)?;
        for (id, function) in &functions {
            let label = &self.tree.labels[id.index()];
            if matches!(label.kind, LabelKind::Function | LabelKind::Inlined) {
                self.write_function(out, label, function)?;
            }
        }
        Ok(())
    }

    fn write_function<'p>(
        &self,
        out: &mut dyn Write,
        label: &'p Label,
        function: &Function<'p>,
    ) -> io::Result<()> {
        let own_file = file(label.place.as_ref());
        let first_line = label.place.as_ref().map_or(0, |place| place.line);
        writeln!(out, "\nfl={own_file}\nfn={}", self.name_of(label))?;
        let mut current = own_file;
        // Code without a line counts to the function's first line.
        let at = |place: Option<&'p Place>| {
            place.map_or((own_file, first_line), |place| (&*place.file, place.line))
        };
        for (place, cost) in function.lines.iter().filter(|(_, cost)| !cost.is_zero()) {
            let (file, line) = at(*place);
            change_file(out, &mut current, file, own_file)?;
            writeln!(out, "{line} {}", costs(cost, self.units))?;
        }
        for ((place, callee), (count, total)) in &function.calls {
            let (site_file, line) = at(*place);
            change_file(out, &mut current, site_file, own_file)?;
            let callee = &self.tree.labels[callee.index()];
            writeln!(out, "cfi={}\ncfn={}", file(callee.place.as_ref()), self.name_of(callee))?;
            writeln!(out, "calls={count} {}", callee.place.as_ref().map_or(0, |place| place.line))?;
            writeln!(out, "{line} {}", costs(total, self.units))?;
        }
        Ok(())
    }

    fn name_of(&self, label: &Label) -> String {
        let name = Plain(&label.name).to_string();
        if self.shared.contains(&key(label)) { format!("{name} ({})", self.name) } else { name }
    }
}

/// Writes a change of the file for the next lines.
fn change_file<'a>(
    out: &mut dyn Write,
    current: &mut &'a str,
    file: &'a str,
    own_file: &str,
) -> io::Result<()> {
    if *current == file {
        return Ok(());
    }
    *current = file;
    writeln!(out, "{}={file}", if file == own_file { "fe" } else { "fi" })
}

fn file(place: Option<&Place>) -> &str {
    place.map_or(UNKNOWN_FILE, |place| &place.file)
}

const fn event(unit: Unit) -> &'static str {
    match unit {
        Unit::Instructions => "Instructions",
        Unit::Cycles => "Cycles",
        Unit::Time => "Ticks",
        Unit::Samples => "Samples",
    }
}

fn costs(cost: &Cost, units: &[Unit]) -> String {
    let costs = units.iter().map(|unit| cost.in_unit(*unit).to_string());
    costs.collect::<Vec<_>>().join(" ")
}
