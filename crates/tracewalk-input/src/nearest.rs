//! Suggests the known words for a misspelt one.
//!
//! ```
//! use tracewalk_input::nearest::nearest_few;
//!
//! assert_eq!(nearest_few("strlne", ["memcpy", "strcmp", "strlen"], 1), ["strlen"]);
//! ```

use std::collections::BTreeSet;

/// The word of `known` that takes the fewest changed letters to become `given`, ignoring case.
pub(crate) fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = letters(given);
    known.into_iter().min_by_key(|candidate| distance(&given, &letters(candidate)))
}

/// The words of `known` that take the fewest changed letters to become `given`, ignoring case, the nearest
/// first. Words that begin with `given` come before others.
pub fn nearest_few<'a>(given: &str, known: impl IntoIterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    let letters_given = letters(given);
    let mut best = BTreeSet::new();
    for candidate in known {
        let letters = letters(candidate);
        let begins_so = !letters_given.is_empty() && letters.starts_with(&letters_given);
        best.insert((!begins_so, distance(&letters_given, &letters), candidate));
        if best.len() > most {
            best.pop_last();
        }
    }
    best.into_iter().map(|(_, _, candidate)| candidate).collect()
}

/// As [`nearest`], if at most half of the letters differ: a word further away was not meant.
pub(crate) fn nearest_within<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let nearest = nearest(given, known)?;
    let letters_given = letters(given);
    (distance(&letters_given, &letters(nearest)) * 2 <= letters_given.len()).then_some(nearest)
}

/// The beginning of the word in lower case; the rest of a long word does not matter for its distance.
fn letters(word: &str) -> Vec<char> {
    word.chars().take(64).flat_map(char::to_lowercase).collect()
}

/// The number of letters to insert, remove or replace (Levenshtein), by one row of the table at a time.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row = (0..=b.len()).collect::<Vec<_>>();
    for (index, letter) in a.iter().enumerate() {
        let mut left = index + 1;
        let mut diagonal = index;
        for (above, other) in row.iter_mut().skip(1).zip(b) {
            let here = (diagonal + usize::from(letter != other)).min(left + 1).min(*above + 1);
            diagonal = std::mem::replace(above, here);
            left = here;
        }
        if let Some(first) = row.first_mut() {
            *first = index + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_counts_changed_letters() {
        let distance = |a, b| distance(&letters(a), &letters(b));
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(distance("Container", "container"), 0);
    }

    #[test]
    fn the_nearest_words_come_in_order_and_beginnings_first() {
        let known = ["main", "SysTick_Handler", "maim", "many", "domain", "many"];
        assert_eq!(nearest_few("mai", known, 3), ["maim", "main", "many"]);
        assert_eq!(nearest_few("systick", known, 1), ["SysTick_Handler"]);
        assert!(nearest_few("x", [], 3).is_empty());
    }

    #[test]
    fn the_nearest_word_is_found() {
        let known = ["file", "container", "id", "protocol"];
        assert_eq!(nearest("contaner", known), Some("container"));
        assert_eq!(nearest("FILES", known), Some("file"));
        assert_eq!(nearest("x", []), None);
    }
}
