//! Tests that the documents that users look for exist, every link in a Markdown file leads
//! somewhere, every block of code ends, and GDB accepts the comments in its commands.
//!
//! Links to the project's files and folders must exist, and links to a heading need that heading. Links to
//! other sites are not followed, because their targets change independently.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::workspace;

/// The documents that every user and contributor may look for.
const REQUIRED: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "docs/README.md",
    "docs/coverage.md",
    "docs/crash.md",
    "docs/formats.md",
    "docs/profiling.md",
    "docs/protocols.md",
    "docs/timelines.md",
    "docs/trust.md",
    "docs/speed-and-memory.md",
    "testdata/examples/README.md",
    "testdata/firmware/README.md",
];

/// Folders of generated files.
const NOT_OURS: &[&str] = &["target", ".git", "node_modules", "corpus", "artifacts"];

/// The required documents that are missing or empty.
fn lacking(root: &Path) -> Vec<String> {
    let is_there = |file: &str| fs::metadata(root.join(file)).is_ok_and(|metadata| metadata.len() > 0);
    let missing = REQUIRED.iter().filter(|file| !is_there(file));
    missing.map(|file| format!("found no {file}")).collect()
}

/// The Markdown files below a folder.
fn markdown(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (path, kind) = (entry.path(), entry.file_type().map_err(failed)?);
        let name = entry.file_name().to_string_lossy().into_owned();
        if kind.is_dir() && !NOT_OURS.contains(&name.as_str()) {
            files.extend(markdown(&path)?);
        } else if kind.is_file() && path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The blocks of code that contain the beginning of another, or that do not end. A lost end would show the
/// following text as code.
fn open_blocks(text: &str) -> Vec<String> {
    let (mut problems, mut open) = (Vec::new(), None);
    for (index, line) in text.lines().enumerate() {
        let Some(info) = line.trim_start().strip_prefix("```") else { continue };
        match open {
            Some(began) if !info.trim().is_empty() => {
                problems
                    .push(format!("{began}: found a code block without an end before line {}", index + 1));
                open = Some(index + 1);
            }
            Some(_) => open = None,
            None => open = Some(index + 1),
        }
    }
    problems.extend(open.map(|began| format!("{began}: found a code block without an end")));
    problems
}

/// The comments after GDB commands. GDB accepts a comment only on a line of its own.
fn gdb_comments(text: &str) -> Vec<String> {
    let mut is_gdb = false;
    let mut problems = Vec::new();
    for (line, number) in text.lines().map(str::trim_start).zip(1..) {
        match line.strip_prefix("```") {
            Some(info) => is_gdb = !is_gdb && info.trim() == "gdb",
            None if is_gdb && !line.starts_with('#') && line.contains(" #") => {
                problems.push(format!("{number}: found a comment after a command, which GDB rejects"));
            }
            None => {}
        }
    }
    problems
}

/// The broken links of `file` with this text, each with its line.
fn broken_links(file: &Path, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        let (Event::Start(Tag::Link { dest_url: link, .. })
        | Event::Start(Tag::Image { dest_url: link, .. })) = event
        else {
            continue;
        };
        if let Some(problem) = problem(file, text, &link) {
            let line = text[..range.start].matches('\n').count() + 1;
            problems.push(format!("{line}: link {link}: {problem}"));
        }
    }
    problems
}

fn problem(file: &Path, text: &str, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() { file.to_owned() } else { file.parent()?.join(path) };
    if !target.exists() {
        return Some("found no such file".to_owned());
    }
    if heading.is_empty() || target.extension().is_none_or(|extension| extension != "md") {
        return None;
    }
    let other = if path.is_empty() { text.to_owned() } else { fs::read_to_string(&target).ok()? };
    (!headings(&other).contains(heading)).then(|| "found no such heading".to_owned())
}

/// The headings of a document as links refer to them: in lower case, words joined by hyphens, without
/// punctuation.
fn headings(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => found.extend(heading.take().map(|words| anchor(&words))),
            Event::Text(words) | Event::Code(words) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&words);
                }
            }
            _ => {}
        }
    }
    found
}

fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_projects_links_lead_somewhere() {
        let root = workspace();
        let mut problems = lacking(&root);
        for file in markdown(&root).unwrap() {
            let text = fs::read_to_string(&file).unwrap();
            let found =
                broken_links(&file, &text).into_iter().chain(open_blocks(&text)).chain(gdb_comments(&text));
            problems.extend(found.map(|problem| format!("{}:{problem}", file.display())));
        }
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }

    #[test]
    fn what_leads_nowhere_is_found_with_its_line() {
        let file = workspace().join("README.md");
        let broken = |text: &str| broken_links(&file, text).len();
        assert_eq!(
            broken("[a](ARCHITECTURE.md) [b](docs) [c](https://example.org/x.md) [d](docs/formats.md)"),
            0
        );
        assert_eq!(broken("`[a](cellar.md)`\n\n```\n[b](cellar.md)\n```"), 0, "code links nothing");
        for text in [
            "[a](cellar.md)",
            "![a](docs/cellar.svg)",
            "[a][b]\n\n[b]: cellar.md",
            "| a |\n|---|\n| [a](x.md) |",
        ] {
            assert_eq!(broken(text), 1, "{text}");
        }
        assert!(broken_links(&file, "a\n\n[b](cellar.md)")[0].starts_with("3: "));
    }

    #[test]
    fn a_block_of_code_that_does_not_end_is_found_with_its_line() {
        assert_eq!(
            open_blocks("```yaml\necho '```' >> a\n```\n\n- a\n\n  ```c\n  b\n  ```\n"),
            Vec::<String>::new()
        );
        assert_eq!(open_blocks("a\n\n```yaml\necho '\n\nb\n\n```yaml\nc\n```\n").len(), 1);
        assert!(open_blocks("a\n\n```yaml\necho '\n\nb\n\n```yaml\nc\n```\n")[0].starts_with("3: "));
        assert!(open_blocks("a\n```\nb\n")[0].starts_with("2: "));
    }

    #[test]
    fn a_comment_after_a_command_of_gdb_is_found_with_its_line() {
        assert_eq!(
            gdb_comments("```gdb\n# a\nset $x = 1\n```\n\n```sh\nls # b\n```\n"),
            Vec::<String>::new()
        );
        let found = gdb_comments("a\n```gdb\ninfo registers\n  set $x = 1  # a\n```\nb # c\n");
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("4: "));
    }

    #[test]
    fn headings_are_what_links_name_them() {
        let text = "# Processes, overlays and `capture.toml`\n\n[a](#processes-overlays-and-capturetoml) [b](#cellar)";
        let found = broken_links(&workspace().join("README.md"), text);
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn documents_that_are_lacking_are_found() {
        assert_eq!(lacking(&workspace()), Vec::<String>::new());
        assert_eq!(lacking(&workspace().join("xtask")).len(), REQUIRED.len());
    }
}
