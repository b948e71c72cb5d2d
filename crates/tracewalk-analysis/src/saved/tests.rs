use super::*;
use crate::coverage::Coverage;

/// A file with these lines and the line that ends it.
pub(crate) fn ended(lines: &str) -> String {
    format!("{lines}{{\"end\":[{},{}]}}\n", lines.lines().count(), crc32fast::hash(lines.as_bytes()))
}

pub(crate) fn saved<T: Save>(programs: &Programs<T>) -> String {
    let mut out = Vec::new();
    programs.save(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

pub(crate) fn read<T: Save>(text: &str) -> Result<Programs<T>, (usize, SavedErrorKind)> {
    Programs::read(text.as_bytes()).map_err(|error| {
        let sentence = error.to_string();
        assert!(!sentence.contains('\n') && sentence.starts_with("line "), "{sentence:?}");
        (error.line, error.kind)
    })
}

/// Checks that what is read from `lines` is saved as they are.
pub(crate) fn is_saved_again<T: Save>(lines: &str) {
    let text = ended(lines);
    assert_eq!(saved(&read::<T>(&text).unwrap()), text);
}

const SAVED: &str = r#"{"saved":"coverage","version":1,"complete":true}
{"program":{"id":{"build":["0abc","ff"]},"images":["a name.elf"]}}
{"block":["100","104","t32","taken","every",15]}
{"program":{"id":{"code":"0101010101010101010101010101010101010101010101010101010101010101"},"images":[]}}
"#;

#[test]
fn programs_stand_one_after_the_other() {
    is_saved_again::<crate::coverage::ProgramCoverage>(SAVED);
    let coverage: Coverage = read(&ended(SAVED)).unwrap();
    assert_eq!(coverage.programs.len(), 2);
}

#[test]
fn what_is_of_a_part_of_a_capture_stays_so() {
    is_saved_again::<crate::coverage::ProgramCoverage>(&SAVED.replace("true", "false"));
}

#[test]
fn whatever_is_lost_or_added_is_refused_where_it_shows() {
    let kind = |text: &str| read::<crate::coverage::ProgramCoverage>(text).unwrap_err();
    let saved = ended(SAVED);
    let lines = saved.split_inclusive('\n').collect::<Vec<_>>();
    for end in 1..lines.len() {
        assert_eq!(kind(&lines[..end].concat()), (end, SavedErrorKind::CutOff), "{end}");
    }
    assert_eq!(kind(&saved[..saved.len() - 1]), (lines.len(), SavedErrorKind::CutOff));
    assert_eq!(kind(&saved.repeat(2)), (lines.len() + 1, SavedErrorKind::AfterEnd));
    let (last, before) = lines.split_last().unwrap();
    let fewer = [&before[..1], &before[2..], &[*last]].concat().concat();
    assert!(kind(&fewer).0 <= lines.len(), "{fewer}");
    let without_block = saved.replace("{\"block\":[\"100\",\"104\",\"t32\",\"taken\",\"every\",15]}\n", "");
    assert_eq!(kind(&without_block), (4, SavedErrorKind::Lines { found: 3, expected: 4 }));
    let (line, damaged) = kind(&saved.replace("15]", "14]"));
    assert_eq!((line, damaged.name()), (5, "saved_damaged"));
}

#[test]
fn what_is_no_saved_file_is_distinguished_from_one_of_another_kind_or_version() {
    let kind = |text: &str| read::<crate::coverage::ProgramCoverage>(text).unwrap_err();
    for text in ["", "x", "{}", "# tracewalk coverage 1\n", "{\"saved\":\"coverage\",\"version\":1}\n"] {
        assert_eq!(kind(text), (1, SavedErrorKind::NotSaved), "{text}");
    }
    let other = (1, SavedErrorKind::Other { found: "profile".to_owned() });
    assert_eq!(kind(&SAVED.replace("coverage", "profile")), other);
    for (text, found) in [
        (SAVED.replace("\"version\":1", "\"version\":5"), 5),
        (SAVED.replace("\"version\":1,\"complete\":true", "\"version\":9"), 9),
    ] {
        assert_eq!(kind(&text), (1, SavedErrorKind::Version { found }));
    }
    let names = ["coverage", "profile"];
    let heads = [
        "{\"saved\":\"coverage\",\"version\":9",
        "{\"saved\":\"profile\",\"v",
        "{\"saved\":\"coverages\",\"version\":1",
        "{\"version\":1",
    ];
    let kinds = heads.map(|head| saved_kind(head.as_bytes(), &names));
    assert_eq!(kinds, [Some("coverage"), Some("profile"), None, None]);
}

#[test]
fn bytes_that_are_no_text_and_lines_that_are_no_items_are_refused() {
    let kind = |line: &[u8]| {
        let text = [b"{\"saved\":\"coverage\",\"version\":1,\"complete\":true}\n", line, b"\n"].concat();
        let error = Coverage::read(&text[..]).unwrap_err();
        assert!(!error.to_string().contains(char::is_control), "{error}");
        (error.line, error.kind.name())
    };
    let misplaced = (2, "saved_misplaced");
    assert_eq!(kind(br#"{"block":["100","104","t32","taken","every",15]}"#), misplaced);
    assert_eq!(kind(b"\xff\xff"), misplaced);
    let in_program = |line: &[u8]| {
        let program = br#"{"program":{"id":{"build":["0a"]},"images":[]}}"#;
        kind(&[program, &b"\n"[..], line].concat()).1
    };
    for line in [
        &b"\xff\xff"[..],
        b"",
        b"[",
        br#"{"some":1}"#,
        b"{\"\x1b[31m\":1}",
        br#"{"block":["100","104","t32","taken","every"]}"#,
        br#"{"block":["0x100","104","t32","taken","every",15]}"#,
        br#"{"block":["100","104","t33","taken","every",15]}"#,
        br#"{"block":["100","104","t32","taken","every",-1]}"#,
        br#"{"program":{"id":{"build":["0a"]},"images":[],"more":1}}"#,
        br#"{"program":{"id":{"code":"0a"},"images":[]}}"#,
        br#"{"program":{"id":{"build":["abc"]},"images":[]}}"#,
    ] {
        assert_eq!(in_program(line), "saved_item", "{}", String::from_utf8_lossy(line));
    }
    assert_eq!(in_program(&[b'['; 100_000]), "saved_item");
    assert_eq!(in_program(br#"{"block":["104","104","t32","taken","every",15]}"#), "saved_field");
}
