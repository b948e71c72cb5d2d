//! `sentences`: counts the sentences that the tests of public interfaces compare. Tests compare kinds and
//! numbers, so that sentences can be improved. Comparisons of words are listed here with their reasons; more
//! are refused.
//!
//! A sentence is a string with three lower-case words in a row. The output of a failed test and its
//! expectations of the test itself (`expect`, the message of an assertion) may be any text. If tests compare
//! fewer sentences, lower the allowance.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::{Answer, Outcome, workspace};

/// The files whose tests compare sentences: the number, and the reason.
const KEPT: &[(&str, usize, &str)] = &[
    ("crates/tracewalk-cli/tests/arrangements.rs", 6, TEXT),
    ("crates/tracewalk-cli/tests/belonging.rs", 1, OF_PROGRAMS),
    ("crates/tracewalk-cli/tests/captures.rs", 5, TEXT),
    ("crates/tracewalk-cli/tests/coverage.rs", 4, TEXT),
    ("crates/tracewalk-cli/tests/diff.rs", 1, TEXT),
    ("crates/tracewalk-cli/tests/doubt.rs", 3, TEXT),
    ("crates/tracewalk-cli/tests/dumps.rs", 1, TEXT),
    ("crates/tracewalk-cli/tests/gdb.rs", 8, COMMANDS),
    ("crates/tracewalk-cli/tests/guessing/captures.rs", 13, NAMES),
    ("crates/tracewalk-cli/tests/guessing/mod.rs", 1, NAMES),
    ("crates/tracewalk-cli/tests/hostile_elf.rs", 1, TEXT),
    ("crates/tracewalk-cli/tests/itm.rs", 1, TEXT),
    ("crates/tracewalk-cli/tests/pictures.rs", 1, NAMES),
    ("crates/tracewalk-cli/tests/profile_formats.rs", 2, TEXT),
    ("crates/tracewalk-cli/tests/profile_truth.rs", 2, NAMES),
    ("crates/tracewalk-cli/tests/provenance.rs", 1, SCRIPTS),
    ("crates/tracewalk-cli/tests/streams.rs", 1, OF_PROGRAMS),
    ("crates/tracewalk-cli/tests/support/python.rs", 1, SCRIPTS),
    ("crates/tracewalk-cli/tests/timeline.rs", 1, TEXT),
    ("crates/tracewalk-conformance/tests/damage.rs", 1, NAMES),
    ("crates/tracewalk-conformance/tests/doubt.rs", 1, NAMES),
    ("crates/tracewalk/tests/etmv4_vectors.rs", 1, WORDS_OF_THE_CORE),
    ("crates/tracewalk/tests/instruction_accesses.rs", 2, ASSEMBLER),
    ("crates/tracewalk/tests/mtb_flow.rs", 5, WORDS_OF_THE_CORE),
    ("crates/tracewalk/tests/pft_vectors.rs", 3, WORDS_OF_THE_CORE),
];

/// The reasons why a file's tests compare words.
const TEXT: &str = "parts of the text that is written for people";
const OF_PROGRAMS: &str = "what the program of a capture wrote to its ITM";
const NAMES: &str = "names of cases, printed where they fail";
const SCRIPTS: &str = "programs in Python";
const COMMANDS: &str = "commands to GDB";
const ASSEMBLER: &str = "assembler";
const WORDS_OF_THE_CORE: &str = "how the core displays contradictions, or names of deviations";

/// Macros that print, and compare nothing.
const PRINTING: &[&str] = &["eprint", "eprintln", "panic", "print", "println", "unreachable"];

/// Macros that compare their first arguments, and print the others.
const COMPARING: &[(&str, usize)] = &[
    ("assert", 1),
    ("assert_data_eq", 2),
    ("assert_eq", 2),
    ("assert_ne", 2),
    ("prop_assert", 1),
    ("prop_assert_eq", 2),
];

/// Runs the task.
pub(crate) fn run() -> Answer {
    let found = found(&workspace())?;
    if std::env::args().nth(2).is_some_and(|argument| argument == "--list") {
        for (file, sentences) in &found {
            sentences.iter().for_each(|(line, sentence)| println!("{file}:{line}: {sentence:?}"));
        }
    }
    let findings = findings(&found, KEPT);
    if findings.is_empty() {
        let count = found.values().map(Vec::len).sum::<usize>();
        let most = KEPT.iter().map(|(_, most, _)| most).sum::<usize>();
        Ok(Outcome::Done(format!("tests compare {count} sentences, at most {most} are allowed")))
    } else {
        Err(findings.join("\n"))
    }
}

/// The sentences in each file, by line.
type Found = BTreeMap<String, Vec<(usize, String)>>;

fn findings(found: &Found, kept: &[(&str, usize, &str)]) -> Vec<String> {
    let mut findings = Vec::new();
    for (file, sentences) in found {
        let most = kept.iter().find(|(name, ..)| name == file).map_or(0, |(_, most, _)| *most);
        if sentences.len() > most {
            let (line, sentence) = &sentences[sentences.len() - 1];
            findings.push(format!(
                "{file}: found {} sentences in tests, expected at most {most}; compare kinds and numbers (the last: line {line}, {sentence:?})",
                sentences.len()
            ));
        }
    }
    for (file, most, _) in kept {
        let count = found.get(*file).map_or(0, Vec::len);
        if count < *most {
            findings
                .push(format!("{file}: found {count} sentences in tests, {most} are allowed: allow fewer"));
        }
    }
    findings
}

fn found(root: &Path) -> Result<Found, String> {
    let mut found = Found::new();
    let crates = root.join("crates");
    for package in fs::read_dir(&crates).map_err(|error| format!("{}: {error}", crates.display()))? {
        let tests = package.map_err(|error| format!("{}: {error}", crates.display()))?.path().join("tests");
        if tests.is_dir() {
            found_in(root, &tests, &mut found)?;
        }
    }
    Ok(found)
}

fn found_in(root: &Path, folder: &Path, found: &mut Found) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            found_in(root, &path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            let text = fs::read_to_string(&path).map_err(|error| format!("{shown}: {error}"))?;
            let sentences = sentences(&text).map_err(|error| format!("{shown}: {error}"))?;
            if !sentences.is_empty() {
                found.insert(shown, sentences);
            }
        }
    }
    Ok(())
}

/// The sentences that this code compares or passes on, each with its line.
fn sentences(text: &str) -> Result<Vec<(usize, String)>, proc_macro2::LexError> {
    let mut found = Vec::new();
    look(text.parse::<TokenStream>()?, &mut found);
    found.sort();
    Ok(found)
}

fn look(tokens: TokenStream, found: &mut Vec<(usize, String)>) {
    let tokens = tokens.into_iter().collect::<Vec<_>>();
    for (index, token) in tokens.iter().enumerate() {
        let before = |back: usize| index.checked_sub(back).and_then(|at| tokens.get(at));
        match token {
            TokenTree::Group(group) => {
                let macro_name = before(2).filter(|_| is_punct(before(1), '!')).and_then(ident);
                let method = before(1).filter(|_| is_punct(before(2), '.')).and_then(ident);
                let is_attribute = group.delimiter() == Delimiter::Bracket
                    && (is_punct(before(1), '#') || (is_punct(before(1), '!') && is_punct(before(2), '#')));
                let compared = macro_name.as_deref().and_then(|name| {
                    COMPARING.iter().find(|(comparing, _)| *comparing == name).map(|(_, count)| *count)
                });
                if is_attribute
                    || method.is_some_and(|name| name == "expect")
                    || macro_name.is_some_and(|name| PRINTING.contains(&name.as_str()))
                {
                    continue;
                }
                match compared {
                    Some(count) => look(first_arguments(group.stream(), count), found),
                    None => look(group.stream(), found),
                }
            }
            TokenTree::Literal(literal) => {
                if let Ok(text) = syn::parse_str::<syn::LitStr>(&literal.to_string())
                    && is_sentence(&text.value())
                {
                    found.push((literal.span().start().line, text.value()));
                }
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
    }
}

/// The tokens of the first `count` arguments.
fn first_arguments(tokens: TokenStream, count: usize) -> TokenStream {
    let mut commas = 0;
    let compared = tokens.into_iter().take_while(|token| {
        commas += usize::from(is_punct(Some(token), ','));
        commas < count
    });
    compared.collect()
}

fn is_punct(token: Option<&TokenTree>, sign: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == sign)
}

fn ident(token: &TokenTree) -> Option<String> {
    match token {
        TokenTree::Ident(ident) => Some(ident.to_string()),
        _ => None,
    }
}

fn is_sentence(text: &str) -> bool {
    let mut in_a_row = 0;
    text.split(' ').any(|word| {
        let word = word.trim_end_matches([',', ':', ';']);
        let is_word = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
        in_a_row = if is_word { in_a_row + 1 } else { 0 };
        in_a_row == 3
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        sentences(text).unwrap().into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn what_is_compared_counts_and_what_is_printed_does_not() {
        for compared in [
            r#"fn f() { assert!(text.contains("this is wrong")); }"#,
            r#"fn f() { assert!(text.lines().any(|line| line.starts_with("warning: this is wrong"))); }"#,
            r#"fn f() { assert_eq!(text, "this is wrong"); }"#,
            r#"fn f() { assert_eq!("this is wrong", text, "and more"); }"#,
            r#"const TEXTS: [&str; 1] = ["--wire: leave it out, please"];"#,
            r#"fn f() { refused("a", "this is wrong"); }"#,
        ] {
            assert_eq!(lines(compared), [1], "{compared}");
        }
        for printed in [
            r#"fn f() { assert!(text.contains("--wire"), "this is wrong"); }"#,
            r#"fn f() { assert_eq!(a, b, "this is wrong"); }"#,
            r#"fn f() { thing().expect("this is always there"); }"#,
            r#"fn f() { println!("this is wrong"); panic!("this is wrong") }"#,
            r#"/// This is a comment, and this is no assertion.
            fn f() {}"#,
            r#"#[allow(dead_code, reason = "this is for others")] fn f() {}"#,
            r#"fn f() { run("flow --format runs"); let text = "mov r0, r1"; }"#,
        ] {
            assert_eq!(lines(printed), [0; 0], "{printed}");
        }
    }

    #[test]
    fn more_than_is_allowed_is_refused() {
        let found =
            |count: usize| Found::from([("a.rs".to_owned(), vec![(1, "this is wrong".to_owned()); count])]);
        let kept = [("a.rs", 2, "help")];
        let count = |found: &Found| findings(found, &kept).len();
        assert_eq!(
            [count(&found(1)), count(&found(2)), count(&found(3)), count(&Found::new())],
            [1, 0, 1, 1]
        );
        assert_eq!(findings(&found(1), &[]).len(), 1);
    }
}
