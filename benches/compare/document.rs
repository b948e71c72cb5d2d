//! The tables of the users' page `docs/speed-and-memory.md`. `cargo xtask bench --document` replaces the text
//! between two marks.

use std::fmt::Write;
use std::fs;

use super::Options;
use super::record::Provenance;
use super::rows::Row;
use crate::process::workspace;

/// The page, and the marks in it.
const PAGE: &str = "docs/speed-and-memory.md";
const BEGIN: &str = "<!-- measured: made by `cargo xtask bench --document` -->\n";
const END: &str = "<!-- end of what was measured -->";

/// The measures that the page shows, each with its heading and the heading of the last column.
const SHOWN: &[(&str, &str, &str)] = &[
    ("flow", "The program flow alone (`flow --format none`), one thread", "OpenCSD's time ÷ tracewalk's"),
    ("packets", "Packets, counted (`packets --format none`), one thread", "OpenCSD's time ÷ tracewalk's"),
    ("answer", "Each answer beside the program flow alone, one thread", "its time ÷ that of the flow"),
    ("two threads", "Two threads beside one", "one thread's time ÷ that of two"),
    ("runs into a file", "Text beside OpenCSD's `trc_pkt_lister`", "OpenCSD's time ÷ tracewalk's"),
    ("private memory", "Private memory", "limit ÷ used"),
];

/// Puts the rows into the page.
pub(super) fn refresh(rows: &[Row], options: Options) -> Result<(), String> {
    let file = workspace().join(PAGE);
    let page = fs::read_to_string(&file).map_err(|error| format!("{PAGE}: {error}"))?;
    let Provenance { day, text: machine, .. } = Provenance::now()?;
    let rounds = options.rounds;
    let introduction =
        format!("Measured on {day}: {machine} Medians of {rounds} runs in turn, by processor time.\n");
    let page = replaced(&page, &format!("{introduction}{}", tables(rows)))?;
    fs::write(&file, page).map_err(|error| format!("{PAGE}: {error}"))
}

/// The page with `measured` between the marks.
fn replaced(page: &str, measured: &str) -> Result<String, String> {
    let marks = page.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let (before, after) =
        marks.ok_or_else(|| format!("{PAGE}: found no marks, expected {BEGIN:?} and {END:?}"))?;
    Ok(format!("{before}{BEGIN}\n{measured}\n{END}{after}"))
}

/// The rows as tables, one for each measure that the page shows.
fn tables(rows: &[Row]) -> String {
    let mut text = String::new();
    for (measure, heading, ratio) in SHOWN {
        let mut rows = rows.iter().filter(|row| row.measure == *measure).peekable();
        if rows.peek().is_none() {
            continue;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "\n### {heading}\n\n| capture | tracewalk | ms per MB | beside | {ratio} |\n|---|---|---|---|---|"
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
        let once = replaced(&page, "new\n").unwrap();
        assert_eq!(once, format!("before\n{BEGIN}\nnew\n\n{END}\nafter\n"));
        assert_eq!(replaced(&once, "new\n").unwrap(), once);
        assert!(replaced("no marks", "new").is_err());
    }

    #[test]
    fn an_answer_is_shown_by_how_much_longer_it_takes() {
        let row = |measure, ratio| Row {
            measure,
            capture: "m3".to_owned(),
            per_megabyte: Some(0.005),
            ours: "1 s".to_owned(),
            other: "2 s".to_owned(),
            ratio,
            goal: None,
        };
        let text = tables(&[row("answer", 0.5), row("flow", 50.0), row("frames", 1.0)]);
        let cells = text.lines().filter(|line| line.starts_with("| m3"));
        let cells = cells.map(|line| line.split('|').map(str::trim).collect::<Vec<_>>()).collect::<Vec<_>>();
        assert_eq!(
            cells,
            [["", "m3", "1 s", "5.0", "2 s", "50.00", ""], ["", "m3", "1 s", "5.0", "2 s", "2.00", ""]]
        );
    }
}
