//! `profile --format flamegraph`: an SVG that a browser can zoom and search, and any viewer can show.
//!
//! One rectangle for each function in each chain of calls, as wide as its cost with the functions that it called, which are on
//! top of it. Positions are percentages, so that the drawing is as wide as the window. The drawing's script is self-contained.

use std::io::{self, Write};

use super::profile::ProfileReport;
use crate::words::percent;
use tracewalk_analysis::profile::{Label, LabelKind, Tree};

/// Rectangles narrower than this part of the whole are invisible, and left out.
const NARROWEST: f64 = 1.0 / 5000.0;
/// Chains of calls are drawn up to this depth; recursion can be deeper than any screen.
const DEEPEST: usize = 256;

const ROW: usize = 18;
const TOP: usize = 58;
const BOTTOM: usize = 30;
/// The width for which texts are cut if the script does not run.
const USUAL_WIDTH: f64 = 1200.0;
const CHARACTER: f64 = 6.6;

/// A rectangle.
struct Rectangle<'a> {
    /// `None` for the whole and for a source.
    label: Option<&'a Label>,
    name: String,
    calls: u64,
    own: u64,
    total: u64,
    depth: usize,
    /// The start, in units of cost.
    start: u64,
}

/// Draws all sources' chains of calls.
pub fn write_flamegraph(out: &mut dyn Write, report: &ProfileReport) -> io::Result<()> {
    let trees = report.sources.iter().map(|source| report.tree(source, false)).collect::<Vec<_>>();
    let whole = trees.iter().map(|tree| report.value(&tree.total())).fold(0, u64::saturating_add);
    let mut rectangles = vec![Rectangle {
        label: None,
        name: "all".to_owned(),
        calls: 0,
        own: 0,
        total: whole,
        depth: 0,
        start: 0,
    }];
    let mut start = 0;
    for (tree, (section, _)) in trees.iter().zip(&report.sources) {
        let total = report.value(&tree.total());
        let mut depth = 1;
        if report.sources.len() > 1 {
            let name = report.name_of(section);
            rectangles.push(Rectangle { label: None, name, calls: 0, own: 0, total, depth, start });
            depth += 1;
        }
        lay_out(tree, report, (depth, start, whole), &mut rectangles);
        start = start.saturating_add(total);
    }
    draw(out, report, &rectangles, whole)
}

/// Places a tree's nodes: those called by one node from left to right by name, so that two graphs can be compared.
fn lay_out<'a>(
    tree: &'a Tree,
    report: &ProfileReport,
    (depth, start, whole): (usize, u64, u64),
    rectangles: &mut Vec<Rectangle<'a>>,
) {
    let (mut children, mut outermost) = tree.children(|_| 0);
    for list in children.iter_mut().chain([&mut outermost]) {
        list.sort_by_cached_key(|index| tree.label_of(&tree.nodes[*index]).text());
    }
    #[expect(clippy::cast_precision_loss, reason = "a threshold need not be exact")]
    let visible = |total: u64| total as f64 >= whole as f64 * NARROWEST;
    let mut open = vec![(outermost, depth, start)];
    while let Some((list, depth, mut start)) = open.pop() {
        for index in list {
            let node = &tree.nodes[index];
            let total = report.value(&node.total);
            if total > 0 && visible(total) && depth <= DEEPEST {
                let label = tree.label_of(node);
                rectangles.push(Rectangle {
                    label: Some(label),
                    name: label.text(),
                    calls: node.calls,
                    own: report.value(&node.own),
                    total,
                    depth,
                    start,
                });
                open.push((std::mem::take(&mut children[index]), depth + 1, start));
            }
            start = start.saturating_add(total);
        }
    }
}

fn draw(
    out: &mut dyn Write,
    report: &ProfileReport,
    rectangles: &[Rectangle<'_>],
    whole: u64,
) -> io::Result<()> {
    let rows = rectangles.iter().map(|rectangle| rectangle.depth + 1).max().unwrap_or(1);
    let height = TOP + rows * ROW + BOTTOM;
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>")?;
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"100%\" height=\"{height}\" \
         font-family=\"Verdana, DejaVu Sans, sans-serif\" font-size=\"11\">"
    )?;
    writeln!(out, "<title>{}</title>", escaped(&report.title()))?;
    writeln!(out, "<style>{}</style>", include_str!("flamegraph.css"))?;
    writeln!(out, "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>")?;
    writeln!(out, "<text class=\"head\" x=\"50%\" y=\"22\">{}</text>", escaped(&report.title()))?;
    let worth = report.seconds(whole).map(|seconds| format!(", {}", super::profile::duration(seconds)));
    let measure = format!("width: {}; {whole} in all{}", report.measure(), worth.unwrap_or_default());
    writeln!(out, "<text class=\"measure\" x=\"50%\" y=\"40\">{}</text>", escaped(&measure))?;
    writeln!(out, "<text id=\"reset\" class=\"button\" x=\"10\" y=\"22\">whole graph</text>")?;
    writeln!(out, "<text id=\"search\" class=\"button\" x=\"100%\" dx=\"-10\" y=\"22\">search</text>")?;
    writeln!(out, "<text id=\"found\" x=\"100%\" dx=\"-10\" y=\"{}\"> </text>", height - 10)?;
    writeln!(out, "<text id=\"details\" x=\"10\" y=\"{}\"> </text>", height - 10)?;
    writeln!(out, "<g id=\"frames\">")?;
    for rectangle in rectangles {
        let y = TOP + (rows - 1 - rectangle.depth) * ROW;
        frame(out, report, rectangle, (y, whole))?;
    }
    writeln!(out, "</g>")?;
    writeln!(out, "<script><![CDATA[\n{}]]></script>", include_str!("flamegraph.js"))?;
    writeln!(out, "</svg>")
}

fn frame(
    out: &mut dyn Write,
    report: &ProfileReport,
    rectangle: &Rectangle<'_>,
    (y, whole): (usize, u64),
) -> io::Result<()> {
    let Rectangle { name, calls, own, total, start, .. } = rectangle;
    #[expect(clippy::cast_precision_loss, reason = "a place on the screen need not be exact")]
    let part = |value: u64| if whole == 0 { 100.0 } else { value as f64 * 100.0 / whole as f64 };
    let (x, width) = (part(*start), part(*total));
    let cost = report.unit.counted(*total);
    let mut details = format!("{name}: {cost}, {}", percent(*total, whole));
    if rectangle.label.is_some() {
        details.push_str(&format!("; itself {own}, {}", percent(*own, whole)));
    }
    if *calls > 0 {
        details.push_str(&format!("; {calls} call{}", if *calls == 1 { "" } else { "s" }));
    }
    let (details, name) = (escaped(&details), escaped_cut(name, width / 100.0 * USUAL_WIDTH));
    writeln!(
        out,
        "<g data-x=\"{start}\" data-w=\"{total}\" data-n=\"{}\"><title>{details}</title>\
         <rect x=\"{x:.4}%\" y=\"{y}\" width=\"{width:.4}%\" height=\"{}\" fill=\"{}\" rx=\"1\"/>\
         <text x=\"{x:.4}%\" dx=\"3\" y=\"{}\">{name}</text></g>",
        escaped(&rectangle.name),
        ROW - 1,
        colour(rectangle),
        y + 13
    )
}

/// Warm colours for functions, by name, so that a function has the same colour everywhere; other colours for other nodes.
fn colour(rectangle: &Rectangle<'_>) -> String {
    // FNV-1a, 32 bits.
    let hash = rectangle
        .name
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let [low, middle, high, _] = hash.to_le_bytes();
    let shade = |base: u32, range: u32, byte: u8| base + range * u32::from(byte) / 255;
    let (red, green, blue) = match rectangle.label.map(|label| label.kind) {
        None => (205, 210, 218),
        Some(LabelKind::Task) => (shade(130, 30, low), shade(170, 25, middle), 220),
        Some(LabelKind::Exception) => (shade(190, 30, low), shade(135, 30, middle), 225),
        Some(LabelKind::Function) => (shade(215, 40, low), shade(95, 120, middle), shade(45, 40, high)),
        Some(LabelKind::Inlined) => (shade(235, 20, low), shade(205, 30, middle), shade(120, 50, high)),
    };
    format!("rgb({red},{green},{blue})")
}

/// The part of a text that fits into a width in pixels.
fn escaped_cut(name: &str, width: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a width is small and positive"
    )]
    let room = ((width - 6.0) / CHARACTER).max(0.0) as usize;
    match name.chars().count() {
        length if length <= room => escaped(name),
        _ if room < 3 => String::new(),
        _ => escaped(&(name.chars().take(room - 1).collect::<String>() + "…")),
    }
}

/// Text for XML; control characters are not allowed in it.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            _ if character.is_control() => escaped.push(' '),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_a_program_cannot_leave_their_element() {
        assert_eq!(escaped("operator<<<\"a\"&\u{1b}>"), "operator&lt;&lt;&lt;&quot;a&quot;&amp; &gt;");
    }

    #[test]
    fn a_name_is_cut_to_its_rectangle() {
        assert_eq!(escaped_cut("quicksort", 600.0), "quicksort");
        assert_eq!(escaped_cut("quicksort", 40.0), "quic…");
        assert_eq!(escaped_cut("quicksort", 10.0), "");
    }
}
