//! The tables of the page for users, `docs/speed-and-memory.md`: they stand between two marks, and are made anew by
//! `cargo xtask bench --document`.

use std::fmt::Write;
use std::fs;

use super::Options;
use super::record::Provenance;
use super::rows::Row;
use crate::workspace;

/// The page, and the marks in it.
const PAGE: &str = "docs/speed-and-memory.md";
const BEGIN: &str = "<!-- measured: made by `cargo xtask bench --document` -->\n";
const END: &str = "<!-- end of what was measured -->";

/// The measures that the page shows, each with its heading and with what the last column says.
const SHOWN: &[(&str, &str, &str)] = &[
    ("flow", "The program flow alone (`flow --format none`), one thread", "OpenCSD's time ÷ tracewalk's"),
    ("packets", "Packets, counted (`packets --format none`), one thread", "OpenCSD's time ÷ tracewalk's"),
    ("answer", "Each answer beside the program flow alone, one thread", "its time ÷ that of the flow"),
    ("two threads", "Two threads beside one", "one thread's time ÷ that of two"),
    ("runs into a file", "Text beside OpenCSD's `trc_pkt_lister`", "OpenCSD's time ÷ tracewalk's"),
    ("private memory", "Private memory", "limit ÷ used"),
];

/// Puts the rows into the page.
pub(super) fn refresh(rows: &[Row], options: &Options) -> Result<(), String> {
    let file = workspace().join(PAGE);
    let page = fs::read_to_string(&file).map_err(|error| format!("{PAGE}: {error}"))?;
    let Provenance { day, text: machine, .. } = Provenance::now()?;
    let (rounds, size) = (options.rounds, options.capture_bytes() >> 20);
    let introduction = format!(
        "Measured on {day}: {machine} Medians of {rounds} runs in turn, by processor time; repeated captures have {size} MiB.\n"
    );
    let page = replaced(&page, |before| tables(rows, &introduction, before))?;
    fs::write(&file, page).map_err(|error| format!("{PAGE}: {error}"))
}

/// The page with what `make` makes of the text between the marks.
fn replaced(page: &str, make: impl FnOnce(&str) -> String) -> Result<String, String> {
    let marks = page.split_once(BEGIN).and_then(|(before, rest)| {
        let (between, after) = rest.split_once(END)?;
        Some((before, between, after))
    });
    let (before, between, after) =
        marks.ok_or_else(|| format!("{PAGE}: found no marks, expected {BEGIN:?} and {END:?}"))?;
    Ok(format!("{before}{BEGIN}{}\n{END}{after}", make(between)))
}

/// The rows as tables, one for each measure that is shown. Those that were not measured this time are as they were before.
fn tables(rows: &[Row], introduction: &str, before: &str) -> String {
    let mut text = String::new();
    for (measure, heading, ratio) in SHOWN {
        let mut rows = rows.iter().filter(|row| row.measure == *measure).peekable();
        if rows.peek().is_none() {
            let title = format!("\n### {heading}\n");
            if let Some((_, kept)) = before.split_once(&title) {
                let kept = kept.split_once("\n### ").map_or(kept, |(kept, _)| kept);
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{title}{}", kept.trim_end());
            }
            continue;
        }
        let _ = writeln!(
            text,
            "\n### {heading}\n\n{introduction}\n| capture | tracewalk | ms per MB | beside | {ratio} |\n|---|---|---|---|---|"
        );
        for Row { measure, capture, per_megabyte, ours, other, ratio, .. } in rows {
            let each = per_megabyte.map_or_else(String::new, |each| format!("{:.1}", each * 1e3));
            let ratio = if *measure == "answer" { 1.0 / ratio } else { *ratio };
            let _ = writeln!(text, "| {capture} | {ours} | {each} | {other} | {ratio:.2} |");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_between_the_marks_is_replaced_and_nothing_else() {
        let page = format!("before\n{BEGIN}old\n{END}\nafter\n");
        let replaced = |page: &str| replaced(page, |_| "new\n".to_owned());
        let once = replaced(&page).unwrap();
        assert_eq!(once, format!("before\n{BEGIN}new\n\n{END}\nafter\n"));
        assert_eq!(replaced(&once).unwrap(), once);
        assert!(replaced("no marks").is_err());
    }

    fn row(measure: &'static str, ratio: f64) -> Row {
        let (ours, other) = ("1 s".to_owned(), "2 s".to_owned());
        Row { measure, capture: "m3".to_owned(), per_megabyte: Some(0.005), ours, other, ratio, goal: None }
    }

    #[test]
    fn measures_that_were_left_out_stay_as_they_were() {
        let all = tables(&[row("flow", 50.0), row("packets", 3.0), row("answer", 0.5)], "old\n", "");
        let again = tables(&[row("packets", 4.0)], "new\n", &all);
        let changed = tables(&[row("packets", 4.0)], "new\n", "");
        assert!(again.contains(&changed), "{again}");
        let of = |measures: [f64; 2]| [row("flow", measures[0]), row("answer", measures[1])];
        for rows in of([50.0, 0.5]).chunks(1) {
            assert!(again.contains(tables(rows, "old\n", "").trim_end()), "{again}");
        }
        assert_eq!(again.matches("| m3 |").count(), 3);
        assert_eq!(tables(&[], "none\n", &again), again);
    }

    #[test]
    fn an_answer_is_shown_by_how_much_longer_it_takes() {
        let text = tables(&[row("answer", 0.5), row("flow", 50.0), row("frames", 1.0)], "now\n", "");
        let cells = text.lines().filter(|line| line.starts_with("| m3"));
        let cells = cells.map(|line| line.split('|').map(str::trim).collect::<Vec<_>>()).collect::<Vec<_>>();
        assert_eq!(
            cells,
            [["", "m3", "1 s", "5.0", "2 s", "50.00", ""], ["", "m3", "1 s", "5.0", "2 s", "2.00", ""]]
        );
    }
}
