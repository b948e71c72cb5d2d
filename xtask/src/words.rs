//! `words`: how easy the users' pages are to read, and words that read as if translated, there and in the sources.
//!
//! Reading ease is Flesch's: 206.835 - 1.015 * words / sentences - 84.6 * syllables / words. Only paragraphs and items of lists
//! count: code blocks, tables and headings have no sentences. Code within a sentence counts as one word of one syllable.

mod sources;

use std::fs;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::{Answer, Outcome, workspace};

/// The ease that a page has to reach.
const LEAST_EASE: f64 = 50.0;

/// Words that stand for "after" and "reported" where nothing is behind anything and nobody tells.
const AVOIDED: &[&str] = &["behind", "told"];

/// Phrases for which there is a shorter word: `inferred`, the number with its noun, `wrapped`.
const PHRASES: &[&str] = &["found out", "so many", "went round", "gone round"];

/// Runs the task.
pub(crate) fn run() -> Answer {
    let root = workspace();
    let mut pages = vec!["README.md".to_owned()];
    for entry in fs::read_dir(root.join("docs")).map_err(|error| format!("docs: {error}"))? {
        let name =
            entry.map_err(|error| format!("docs: {error}"))?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") && name != "README.md" {
            pages.push(format!("docs/{name}"));
        }
    }
    pages.sort();
    let mut problems = Vec::new();
    for page in &pages {
        let text = fs::read_to_string(root.join(page)).map_err(|error| format!("{page}: {error}"))?;
        let prose = prose(&text);
        println!("{:6.1}  {page}", ease(&prose));
        problems.extend(findings(page, &prose));
    }
    problems.extend(sources::findings(&root)?);
    if problems.is_empty() {
        Ok(Outcome::Done(format!(
            "{} users' pages have a reading ease of at least {LEAST_EASE}",
            pages.len()
        )))
    } else {
        Err(problems.join("\n"))
    }
}

/// What is wrong with the sentences of a page.
fn findings(page: &str, prose: &str) -> Vec<String> {
    let (ease, avoided) = (ease(prose), avoided(prose));
    let mut findings = Vec::new();
    if ease < LEAST_EASE {
        findings.push(format!("{page}: found a reading ease of {ease:.1}, expected at least {LEAST_EASE}; write shorter sentences and words"));
    }
    if avoided > 0 {
        findings.push(format!("{page}: found {avoided} of {AVOIDED:?} and {PHRASES:?}, expected none; write `after`, `reported`, `inferred`, `wrapped`, or the number"));
    }
    findings
}

/// The sentences of a page; paragraphs and items end as sentences do.
fn prose(text: &str) -> String {
    let (mut prose, mut left_out) = (String::new(), 0_usize);
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::CodeBlock(_) | Tag::Table(_) | Tag::Heading { .. }) => left_out += 1,
            Event::End(TagEnd::CodeBlock | TagEnd::Table | TagEnd::Heading(_)) => left_out -= 1,
            Event::Text(text) if left_out == 0 => prose.push_str(&text),
            Event::Code(_) if left_out == 0 => prose.push('x'),
            Event::SoftBreak | Event::HardBreak => prose.push(' '),
            Event::End(TagEnd::Paragraph | TagEnd::Item) => prose.push_str(". "),
            _ => {}
        }
    }
    prose
}

/// Flesch's reading ease.
#[expect(clippy::cast_precision_loss, reason = "a page has few words")]
fn ease(prose: &str) -> f64 {
    let (mut sentences, mut words, mut syllables, mut open) = (0_usize, 0_usize, 0_usize, false);
    for token in prose.split_whitespace() {
        if token.chars().any(char::is_alphanumeric) {
            words += 1;
            syllables += syllables_of(token);
            open = true;
        }
        if open && token.trim_end_matches([')', '"', '\'']).ends_with(['.', '!', '?', ':', ';']) {
            sentences += 1;
            open = false;
        }
    }
    let sentences = (sentences + usize::from(open)).max(1) as f64;
    let words = words.max(1) as f64;
    206.835 - 1.015 * words / sentences - 84.6 * syllables as f64 / words
}

/// Groups of vowels, without a silent `e` at the end.
fn syllables_of(word: &str) -> usize {
    let word: String =
        word.chars().filter(|letter| letter.is_alphabetic()).flat_map(char::to_lowercase).collect();
    let stem = if word.ends_with("le") { &word } else { word.strip_suffix('e').unwrap_or(&word) };
    let is_vowel = |letter: char| "aeiouy".contains(letter);
    let (mut count, mut before) = (0, false);
    for letter in stem.chars() {
        count += usize::from(is_vowel(letter) && !before);
        before = is_vowel(letter);
    }
    count.max(1)
}

fn avoided(prose: &str) -> usize {
    let prose = prose.to_lowercase();
    let words = prose.split(|letter: char| !letter.is_alphabetic());
    let phrases = PHRASES.iter().map(|phrase| prose.matches(phrase).count()).sum::<usize>();
    words.filter(|word| AVOIDED.contains(word)).count() + phrases
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ease_is_flesch_s() {
        // Six words of one syllable in one sentence: 206.835 - 1.015 * 6 - 84.6.
        assert!((ease("The cat sat on the mat.") - 116.145).abs() < 1e-9);
        assert_eq!(["table", "trace", "decoder", "the", "ETM"].map(syllables_of), [2, 1, 3, 1, 1]);
    }

    #[test]
    fn tables_code_and_headings_are_no_sentences() {
        let page = "# Told\n\nRun `behind` now\n\n```text\nbehind\n```\n\n| told |\n|---|\n| behind |\n";
        assert_eq!(prose(page), "Run x now. ");
        assert_eq!(avoided("Behind it, he told; untold"), 2);
        assert_eq!(avoided("So many bytes were found out"), 2);
    }

    #[test]
    fn a_page_that_is_hard_to_read_or_has_an_avoided_word_is_named() {
        assert_eq!(findings("a.md", "The cat sat on the mat."), Vec::<String>::new());
        assert_eq!(findings("a.md", "The cat sat behind the mat.").len(), 1);
        assert_eq!(
            findings("a.md", "Organisational considerations necessitate comprehensive documentation.").len(),
            1
        );
    }
}
