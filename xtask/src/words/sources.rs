//! Avoided words in the sources: in comments, from which API documentation and help texts are made, in texts of more than one
//! word, and in names of items, tests and variables. Code in backticks or braces is not prose.

use std::fs;
use std::path::Path;

use super::{AVOIDED, avoided};

/// The folders that are searched.
const FOLDERS: &[&str] = &["crates", "xtask", "fuzz", "benches"];

/// Files and folders with such words, the number of lines, and the reason.
const KEPT: &[(&str, usize, &str)] = &[
    ("crates/tracewalk-cli/tests/saved.rs", 1, "the name of a kind"),
    ("crates/tracewalk-report/src/export/coverage_json.rs", 2, "the name of a field in JSON"),
    ("crates/tracewalk-report/src/export/diff/json.rs", 2, "the name of a field in JSON"),
    ("xtask/src/words", 19, "names the words"),
];

/// Something that stands behind something else, or is left behind.
const MEANT: &[&str] = &[
    "behind the feature",
    "behind a feature",
    "behind the pager",
    "behind a pointer",
    "leave behind",
    "leaves behind",
    "left behind",
    "leaving half an output behind",
    "leaves an empty one behind",
    "leaves anything else behind",
];

/// One finding for each line, and for each file or folder that has another number of lines than stated.
pub(super) fn findings(root: &Path) -> Result<Vec<String>, String> {
    let mut lines = Vec::new();
    for folder in FOLDERS {
        search(&root.join(folder), root, &mut lines)?;
    }
    let mut findings = Vec::new();
    for &(kept, expected, _) in KEPT {
        let count = lines.iter().filter(|(file, _)| file.starts_with(kept)).count();
        if count != expected {
            findings.push(format!("{kept}: found {count} lines with avoided words, expected {expected}"));
        }
    }
    let is_kept = |file: &str| KEPT.iter().any(|(kept, ..)| file.starts_with(kept));
    let others = lines.into_iter().filter(|(file, _)| !is_kept(file));
    findings.extend(others.map(|(file, line)| {
        format!("{file}:{line}: write `after`, `reported`, `inferred` or `wrapped`, name the number, or say who reports it")
    }));
    Ok(findings)
}

/// Adds the lines of the sources below a folder, each with its file.
fn search(folder: &Path, root: &Path, lines: &mut Vec<(String, usize)>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let is_target = path.file_name().is_some_and(|name| name == "target" || name == "node_modules");
        if path.is_dir() && !is_target {
            search(&path, root, lines)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).map_err(failed)?;
            let file = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            let found =
                text.lines().enumerate().filter(|(_, line)| is_avoided(line) || has_avoided_name(line));
            lines.extend(found.map(|(index, _)| (file.clone(), index + 1)));
        }
    }
    Ok(())
}

/// Whether a line has an avoided word in its prose.
fn is_avoided(line: &str) -> bool {
    prose(line).iter().any(|prose| {
        let prose = MEANT.iter().fold(prose.clone(), |prose, meant| prose.replace(meant, ""));
        avoided(&prose) > 0
    })
}

/// Whether an avoided word is part of a name in a line's code. `retold` and `untold` are other words.
fn has_avoided_name(line: &str) -> bool {
    let code = parts(line).0.split('"').step_by(2);
    let mut names =
        code.flat_map(|code| code.split(|letter: char| !letter.is_alphanumeric() && letter != '_'));
    names.any(|name| words(name).iter().any(|word| AVOIDED.contains(&word.as_str())))
}

/// The words of a name: they end at an underscore, and before a capital letter that follows a small one.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for letter in name.chars() {
        if letter == '_' || was_small && letter.is_uppercase() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter != '_') {
            word.extend(letter.to_lowercase());
        }
        was_small = !letter.is_uppercase() && letter != '_';
    }
    words
}

/// The code and the comment of a line.
fn parts(line: &str) -> (&str, &str) {
    match line.trim_start() {
        comment if comment.starts_with("//") => ("", comment),
        _ => line.split_once(" // ").unwrap_or((line, "")),
    }
}

/// The comment and the texts of a line.
fn prose(line: &str) -> Vec<String> {
    let (code, comment) = parts(line);
    let texts = code.split('"').skip(1).step_by(2).filter(|text| text.contains(' '));
    texts.map(|text| without(text, '{', '}')).chain([without(comment, '`', '`')]).collect()
}

/// A text without what stands between these.
fn without(text: &str, open: char, close: char) -> String {
    let (mut kept, mut is_inside) = (String::new(), false);
    for letter in text.chars() {
        if is_inside {
            is_inside = letter != close;
        } else if letter == open {
            is_inside = true;
        } else {
            kept.push(letter);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_comments_and_sentences() {
        assert!(is_avoided("    /// The address behind it."));
        assert!(is_avoided("let behind = at; // Nothing is told."));
        assert!(is_avoided(r#"write!(out, "found {told} behind {place}")"#));
        for line in [
            "/// The text up to `behind`.",
            r#"assert_eq!(object["behind"], 3);"#,
            r#"assert!(found, "found {told} there");"#,
            "/// What a packet leaves behind.",
        ] {
            assert!(!is_avoided(line), "{line}");
        }
    }

    #[test]
    fn a_name_has_its_words_between_underscores_and_capitals() {
        assert_eq!(words("IsaAfter_BLX"), ["isa", "after", "blx"]);
        for line in [
            "let behind = after(at);",
            "    fn mistakes_are_told_with_their_line() {",
            "    RemoteBehind(Place),",
            "const MOST_TOLD: usize = 8; // Enough.",
            r#"found("told", behind);"#,
        ] {
            assert!(has_avoided_name(line), "{line}");
        }
        for line in [
            "Verdict::Untold => self.untold += 1,",
            "/// The text up to `behind`.",
            r#"assert_eq!(object["behind"], "told");"#,
        ] {
            assert!(!has_avoided_name(line), "{line}");
        }
    }
}
