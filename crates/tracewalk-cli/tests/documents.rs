//! README.md and the pages in `docs` show what the command prints.
//!
//! A block of `console` with one command on a file of this repository, followed by a block of `text`, is run
//! and compared. A line of `text` that is only `…` stands for omitted lines.

use std::path::{Path, PathBuf};

use crate::support::tracewalk;

/// The line that stands for omitted lines.
const LEFT_OUT: &str = "…";

/// A command of a page and what the page shows of its output.
struct Shown {
    page: PathBuf,
    command: String,
    output: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The commands of a page that have output to compare. Commands on the reader's own files have none.
fn shown(page: &Path) -> Vec<Shown> {
    let text = std::fs::read_to_string(page).unwrap();
    let mut found = Vec::new();
    for example in text.split("```console\n$ tracewalk ").skip(1) {
        let (command, rest) = example.split_once('\n').unwrap();
        let Some(output) = rest.strip_prefix("```\n\n```text\n") else { continue };
        if command.split(' ').any(|word| word.starts_with("testdata/")) {
            let (output, _) = output.split_once("```").unwrap();
            found.push(Shown {
                page: page.to_owned(),
                command: command.to_owned(),
                output: output.to_owned(),
            });
        }
    }
    found
}

/// Whether a page shows this output: whole, except for the lines that it omits.
fn shows(shown: &str, printed: &str) -> bool {
    let shown = shown.lines().collect::<Vec<_>>();
    let mut parts = shown.split(|line| *line == LEFT_OUT);
    let printed = printed.lines().collect::<Vec<_>>();
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = printed.strip_prefix(first) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        if is_last {
            return rest.ends_with(part);
        }
        let Some(at) = (0..=rest.len()).find(|&at| rest[at..].starts_with(part)) else { return false };
        rest = &rest[at + part.len()..];
    }
    true
}

#[test]
fn the_documents_show_what_is_printed() {
    let mut pages = vec![root().join("README.md")];
    let docs = std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    pages.extend(docs.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    let examples = pages.iter().flat_map(|page| shown(page)).collect::<Vec<_>>();
    for Shown { page, command, output } in &examples {
        let printed = tracewalk().current_dir(root()).args(command.split(' ')).output().unwrap();
        let text = String::from_utf8(printed.stdout).unwrap();
        let page = page.display();
        assert!(shows(output, &text), "{page}: {command}: shown\n{output}\nprinted\n{text}");
        let notices = String::from_utf8(printed.stderr).unwrap();
        assert!(notices.lines().all(|line| line.starts_with("note: ")), "{page}: {command}: {notices}");
    }
    // README.md alone shows five.
    assert!(examples.len() >= 12, "{} examples", examples.len());
}

#[test]
fn a_page_shows_an_output_but_for_what_it_leaves_out() {
    assert!(shows("a\nb\n", "a\nb\n"));
    assert!(!shows("a\n", "a\nb\n"));
    assert!(!shows("a\nb\n", "a\n"));
    assert!(shows("a\n…\n", "a\nb\n"));
    assert!(shows("a\n…\nc\n…\ne\n", "a\nb\nc\nd\ne\n"));
    assert!(!shows("a\n…\ne\n…\nc\n", "a\nb\nc\nd\ne\n"));
    assert!(!shows("…\nc\n", "c\nd\n"));
}
