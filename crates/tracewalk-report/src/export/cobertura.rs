//! Coverage as Cobertura's XML (its DTD is coverage-04.dtd), which GitLab, Jenkins and Azure show.
//!
//! A folder is a package, a file a class, a linked function a method. Unrecorded lines and branches are left out: Cobertura cannot
//! express them.

use std::collections::BTreeMap;
use std::io::{self, Write};

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};

use crate::words::CUT;
use tracewalk_analysis::coverage::{Branch, File, Line, LineState, OutcomeCount, Report, common_folder};

/// Writes the document. `paths` are those of the report's files, in their order. `time` is the time of the measurement in seconds
/// since 1970.
pub fn write_cobertura(report: &Report, paths: &[String], time: u64, out: &mut dyn Write) -> io::Result<()> {
    let root = common_folder(paths);
    let mut packages = BTreeMap::<&str, Vec<Class<'_>>>::new();
    for (file, path) in report.files.iter().zip(paths) {
        let path = path.strip_prefix(root).unwrap_or(path);
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        packages.entry(folder).or_default().push(Class::of(report, file, path));
    }
    let mut document = Document { writer: Writer::new_with_indent(out, b' ', 1) };
    document.event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let doctype = r#"coverage SYSTEM "http://cobertura.sourceforge.net/xml/coverage-04.dtd""#;
    document.event(Event::DocType(BytesText::from_escaped(doctype)))?;
    if !report.complete {
        document.event(Event::Comment(BytesText::new(&format!(" {CUT} "))))?;
    }
    document.coverage(&packages, root, time)?;
    document.writer.into_inner().write_all(b"\n")
}

/// A file, as far as it can be judged.
struct Class<'a> {
    path: &'a str,
    lines: Vec<JudgedLine>,
    methods: Vec<(String, Vec<JudgedLine>)>,
}

/// A line, and the outcomes of its branches that can be judged.
#[derive(Clone, Debug)]
struct JudgedLine {
    number: u32,
    count: u64,
    /// For each branch, the number of outcomes seen, and the number that can be judged.
    branches: Vec<(&'static str, u64, u64)>,
}

/// Sums over lines.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    lines: (u64, u64),
    branches: (u64, u64),
}

impl<'a> Class<'a> {
    fn of(report: &Report, file: &File, path: &'a str) -> Self {
        let lines = file.lines.iter().filter_map(|line| JudgedLine::of(report, line, None));
        let methods = file.functions.iter().filter_map(|&index| {
            let name = report.functions.get(index)?.name.clone()?;
            let lines = file.lines.iter().filter_map(|line| JudgedLine::of(report, line, Some(index)));
            Some((name, lines.collect()))
        });
        Self { path, lines: lines.collect(), methods: methods.collect() }
    }
}

impl JudgedLine {
    /// A line, or its part in one function; `None` if there is nothing to judge.
    fn of(report: &Report, line: &Line, function: Option<usize>) -> Option<Self> {
        let mut copies = line.copies.clone();
        if let Some(function) = function {
            copies.retain(|copy| report.copies.get(copy.copy).is_some_and(|copy| copy.function == function));
        }
        copies.retain(|copy| copy.state != LineState::Unrecorded);
        if copies.is_empty() || line.state == LineState::Unrecorded {
            return None;
        }
        let count = copies.iter().fold(0, |sum: u64, copy| sum.saturating_add(copy.count));
        let line = Line { copies, ..line.clone() };
        let branches = report.branches(&line).filter_map(|(counted, branch)| {
            let kind = if counted.instruction.is_branch() { "jump" } else { "conditional" };
            let (seen, judged) = judged(&branch);
            (judged > 0).then_some((kind, seen, judged))
        });
        Some(Self { number: line.number, count, branches: branches.collect() })
    }

    fn outcomes(&self) -> (u64, u64) {
        self.branches.iter().fold((0, 0), |(seen, judged), branch| (seen + branch.1, judged + branch.2))
    }
}

/// The number of a branch's outcomes that were seen, and the number that can be judged.
fn judged(branch: &Branch) -> (u64, u64) {
    let outcomes = branch.outcomes();
    let count =
        |wanted: fn(&OutcomeCount) -> bool| outcomes.iter().filter(|outcome| wanted(outcome)).count() as u64;
    (
        count(|outcome| matches!(outcome, OutcomeCount::Seen(_))),
        count(|outcome| *outcome != OutcomeCount::Unrecorded),
    )
}

impl Sums {
    fn of<'a>(lines: impl IntoIterator<Item = &'a JudgedLine>) -> Self {
        let mut sums = Self::default();
        for line in lines {
            let (seen, judged) = line.outcomes();
            sums.lines = (sums.lines.0 + u64::from(line.count > 0), sums.lines.1 + 1);
            sums.branches = (sums.branches.0 + seen, sums.branches.1 + judged);
        }
        sums
    }

    fn rates(&self) -> [(&'static str, String); 2] {
        [("line-rate", rate(self.lines)), ("branch-rate", rate(self.branches))]
    }
}

/// A rate from 0 to 1, rounded down, so that only complete coverage is 1; 1 if there is nothing to cover, as other writers of
/// this format do.
fn rate((covered, found): (u64, u64)) -> String {
    if found == 0 {
        return "1".to_owned();
    }
    let ten_thousandths = u128::from(covered) * 10_000 / u128::from(found);
    format!("{}.{:04}", ten_thousandths / 10_000, ten_thousandths % 10_000)
}

struct Document<W: Write> {
    writer: Writer<W>,
}

type Attributes = [(&'static str, String)];

impl<W: Write> Document<W> {
    fn coverage(
        &mut self,
        packages: &BTreeMap<&str, Vec<Class<'_>>>,
        root: &str,
        time: u64,
    ) -> io::Result<()> {
        let all = packages.values().flatten();
        let sums = Sums::of(all.flat_map(|class| &class.lines));
        let [line_rate, branch_rate] = sums.rates();
        let attributes = [
            line_rate,
            branch_rate,
            ("lines-covered", sums.lines.0.to_string()),
            ("lines-valid", sums.lines.1.to_string()),
            ("branches-covered", sums.branches.0.to_string()),
            ("branches-valid", sums.branches.1.to_string()),
            ("complexity", "0".to_owned()),
            ("version", concat!("tracewalk ", env!("CARGO_PKG_VERSION")).to_owned()),
            ("timestamp", time.to_string()),
        ];
        self.element("coverage", &attributes, |document| {
            document.element("sources", &[], |document| {
                document.element("source", &[], |document| {
                    let root = if root.len() > 1 { root.trim_end_matches('/') } else { root };
                    document.event(Event::Text(BytesText::new(if root.is_empty() { "." } else { root })))
                })
            })?;
            document.element("packages", &[], |document| {
                packages.iter().try_for_each(|(folder, classes)| document.package(folder, classes))
            })
        })
    }

    fn package(&mut self, folder: &str, classes: &[Class<'_>]) -> io::Result<()> {
        let [line_rate, branch_rate] = Sums::of(classes.iter().flat_map(|class| &class.lines)).rates();
        let name = if folder.is_empty() { "." } else { folder };
        let attributes = [("name", name.to_owned()), line_rate, branch_rate, ("complexity", "0".to_owned())];
        self.element("package", &attributes, |document| {
            document.element("classes", &[], |document| {
                classes.iter().try_for_each(|class| document.class(class))
            })
        })
    }

    fn class(&mut self, class: &Class<'_>) -> io::Result<()> {
        let [line_rate, branch_rate] = Sums::of(&class.lines).rates();
        let name = class.path.rsplit_once('/').map_or(class.path, |(_, name)| name);
        let attributes = [
            ("name", name.to_owned()),
            ("filename", class.path.to_owned()),
            line_rate,
            branch_rate,
            ("complexity", "0".to_owned()),
        ];
        self.element("class", &attributes, |document| {
            document.element("methods", &[], |document| {
                class.methods.iter().try_for_each(|(name, lines)| document.method(name, lines))
            })?;
            document.lines(&class.lines)
        })
    }

    fn method(&mut self, name: &str, lines: &[JudgedLine]) -> io::Result<()> {
        let [line_rate, branch_rate] = Sums::of(lines).rates();
        let attributes = [
            ("name", name.to_owned()),
            ("signature", String::new()),
            line_rate,
            branch_rate,
            ("complexity", "0".to_owned()),
        ];
        self.element("method", &attributes, |document| document.lines(lines))
    }

    fn lines(&mut self, lines: &[JudgedLine]) -> io::Result<()> {
        self.element("lines", &[], |document| lines.iter().try_for_each(|line| document.line(line)))
    }

    fn line(&mut self, line: &JudgedLine) -> io::Result<()> {
        let mut attributes = vec![("number", line.number.to_string()), ("hits", line.count.to_string())];
        let (seen, judged) = line.outcomes();
        if judged == 0 {
            attributes.push(("branch", "false".to_owned()));
            return self.empty("line", &attributes);
        }
        attributes.push(("branch", "true".to_owned()));
        attributes.push(("condition-coverage", format!("{}% ({seen}/{judged})", seen * 100 / judged)));
        self.element("line", &attributes, |document| {
            document.element("conditions", &[], |document| {
                line.branches.iter().zip(0..).try_for_each(|(&(kind, seen, judged), number): (_, u32)| {
                    let attributes = [
                        ("number", number.to_string()),
                        ("type", kind.to_owned()),
                        ("coverage", format!("{}%", seen * 100 / judged)),
                    ];
                    document.empty("condition", &attributes)
                })
            })
        })
    }

    fn element(
        &mut self,
        name: &str,
        attributes: &Attributes,
        content: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        self.event(Event::Start(tag(name, attributes)))?;
        content(self)?;
        self.event(Event::End(BytesEnd::new(name)))
    }

    fn empty(&mut self, name: &str, attributes: &Attributes) -> io::Result<()> {
        self.event(Event::Empty(tag(name, attributes)))
    }

    fn event(&mut self, event: Event<'_>) -> io::Result<()> {
        self.writer.write_event(event)
    }
}

fn tag<'a>(name: &'a str, attributes: &Attributes) -> BytesStart<'a> {
    let attributes = attributes.iter().map(|(name, value)| (*name, value.as_str()));
    BytesStart::new(name).with_attributes(attributes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_coverage_is_1() {
        assert_eq!(rate((25_001, 25_002)), "0.9999");
        assert_eq!(rate((1, 8)), "0.1250");
        assert_eq!(rate((25_002, 25_002)), "1.0000");
        assert_eq!(rate((0, 0)), "1");
    }
}
