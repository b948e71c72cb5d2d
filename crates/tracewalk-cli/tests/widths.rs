//! Every text view fits a terminal of 80 columns, and uses 200.
#![cfg(unix)]

use tracewalk_report::formats::registries;
use unicode_width::UnicodeWidthStr;

use crate::pager::at_terminal;
use crate::support::{corpus, example, run};

/// A command whose answer is text for people, and the arguments after its capture.
type View = (&'static str, &'static [&'static str]);

const VIEWS: &[View] = &[
    ("info", &[]),
    ("flow", &[]),
    ("flow", &["--src-lines"]),
    ("flow", &["--last", "40"]),
    ("packets", &[]),
    ("itm", &["--format", "events"]),
    ("coverage", &[]),
    ("counts", &[]),
    ("profile", &[]),
    ("profile", &["--table", "lines"]),
    ("profile", &["--table", "calls"]),
    ("profile", &["--table", "binaries"]),
    ("calls", &[]),
    ("calls", &["--fold", "none"]),
    ("calls", &["--fold", "chains"]),
    ("timeline", &[]),
    ("interrupts", &[]),
    ("interrupts", &["--functions"]),
    ("tasks", &[]),
    ("crash", &[]),
    ("diff", &["OTHER"]),
];

/// Commands whose answers are files, or nothing.
const NO_VIEWS: &[&str] = &["describe", "help", "gdb", "record", "view"];

const EXAMPLES: [&str; 4] = ["m3-etmv3", "a7-etmv3", "a15-pft", "m0-crash-mtb"];

/// A view, written elsewhere and at terminals of 80 and of 200 columns. `None` if the capture has nothing to show in it.
fn shown(capture: &str, (command, more): View) -> Option<[String; 3]> {
    let other = example("m3-etmv3/capture.toml").display().to_string();
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("saved").display().to_string();
    let more = more.iter().map(|word| match *word {
        "OTHER" => other.as_str(),
        "SAVED" => saved.as_str(),
        word => word,
    });
    let arguments =
        [command, capture, "-q", "--messages", "json"].into_iter().chain(more).collect::<Vec<_>>();
    let piped = run(&arguments);
    if !matches!(piped.status, 0 | 1) || piped.stdout.is_empty() {
        return None;
    }
    let [narrow, wide] = [80, 200].map(|columns| {
        let (shown, status) = at_terminal(columns, &arguments, &[("NO_COLOR", "1"), ("PAGER", "cat")]);
        assert_eq!(status, Some(piped.status), "{arguments:?}");
        // Messages are no view: the terminal breaks them, so that an option in them can be copied.
        shown.split_inclusive('\n').filter(|line| !line.starts_with("{\"")).collect::<String>()
    });
    Some([piped.stdout, narrow, wide])
}

/// A text without its layout.
fn letters(text: &str) -> String {
    text.chars().filter(|char| !char.is_whitespace() && *char != '─').collect()
}

#[tracewalk_corpus::test]
fn every_view_of_every_example_fits_80_columns_and_uses_200() {
    let mut drawn = std::collections::BTreeSet::new();
    let others = ["etm4/synthetic/mix-a57-etmv4", "real/stm32f105/trace_example.sr"];
    let others = others.iter().map(|path| corpus(path));
    let captures = EXAMPLES.map(|name| example(name).join("capture.toml")).into_iter().chain(others);
    for capture in captures.map(|path| path.display().to_string()) {
        for view in VIEWS {
            let Some([piped, narrow, wide]) = shown(&capture, *view) else { continue };
            drawn.insert(*view);
            for (text, columns) in [(&narrow, 80), (&wide, 200)] {
                let line = text.lines().find(|line| line.width() > columns);
                assert_eq!(line, None, "{view:?} of {capture} at {columns}");
            }
            assert!(wide.lines().count() <= narrow.lines().count(), "{view:?} of {capture}");
            // Bars are only for terminals, and a crash is one screen of 80 columns elsewhere.
            if !matches!(view.0, "coverage" | "crash") {
                assert_eq!(
                    letters(&wide),
                    letters(&piped),
                    "{view:?} of {capture} leaves something out at 200"
                );
            }
            assert!(!wide.contains('…') || piped.contains('…'), "{view:?} of {capture}");
        }
    }
    let missing = VIEWS.iter().filter(|view| !drawn.contains(*view)).collect::<Vec<_>>();
    assert!(missing.is_empty(), "no capture shows {missing:?}");
}

#[test]
fn a_crash_fits_a_narrow_terminal_and_uses_a_wide_one() {
    let capture = example("m0-crash-mtb/capture.toml").display().to_string();
    let [narrow, wide] = [60, 200].map(|columns| {
        let (shown, _) = at_terminal(columns, &["crash", &capture], &[("NO_COLOR", "1"), ("PAGER", "cat")]);
        shown.lines().map(UnicodeWidthStr::width).max()
    });
    assert!(narrow <= Some(60) && wide > Some(80), "{narrow:?} {wide:?}");
}

#[test]
fn no_command_is_forgotten_here() {
    for (command, formats) in registries() {
        assert!(VIEWS.iter().any(|(known, _)| *known == command), "{command}");
        assert_eq!(formats[0].0, "text");
    }
    let help = run(["--help"]).stdout;
    let commands = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    for command in commands.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()) {
        let known = VIEWS.iter().map(|(command, _)| *command).chain(NO_VIEWS.iter().copied());
        assert!(command.is_empty() || known.into_iter().any(|known| known == command), "{command}");
    }
}
