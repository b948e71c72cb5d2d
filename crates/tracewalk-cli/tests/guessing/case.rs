//! One capture without a description, and how well tracewalk infers it.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::support::{Outcome, run};

/// A capture, the options that describe it, and its content.
pub(crate) struct Case {
    /// A short description of the capture.
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    /// The program as the user has it, and at its true address: values of `--image`.
    pub(crate) images: Vec<String>,
    pub(crate) right_images: Vec<String>,
    /// The options that describe the capture completely.
    pub(crate) options: Vec<String>,
    /// The capture's content in the format `runs`, if it is known independently.
    pub(crate) runs: Option<String>,
}

/// The result of inferring a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Guess {
    /// Right, without a warning.
    Quiet,
    /// Right, with a warning.
    Warned(Warning),
    /// Wrong, with a warning.
    Reported,
    /// Wrong, without a warning.
    Silent,
}

/// The warning with a right answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Warning {
    /// Another answer gives the same execution with other details.
    OtherDetails,
    /// Another answer gives a different result, and nothing contradicts it.
    AnotherAnswer,
    /// Packets of an MTB also continue each other in another order.
    AnotherOrder,
    /// Nothing shows which packet of an MTB is the newest.
    EndUnknown,
    /// The image was stated at another address.
    ImageMoved,
    Other,
}

impl Warning {
    fn of(kind: &str) -> Self {
        match kind {
            "other_details" => Self::OtherDetails,
            "another_answer" => Self::AnotherAnswer,
            "mtb_another_order" => Self::AnotherOrder,
            "mtb_end_unknown" => Self::EndUnknown,
            "image_moved" => Self::ImageMoved,
            _ => Self::Other,
        }
    }
}

/// The command's warnings: the kind of each, and its place.
type Warnings = Vec<(String, Option<u64>)>;

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherDetails => "other details",
            Self::AnotherAnswer => "another answer",
            Self::AnotherOrder => "another order",
            Self::EndUnknown => "end unknown",
            Self::ImageMoved => "image moved",
            Self::Other => "other",
        })
    }
}

/// The input besides the capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum With {
    /// The program, to decode execution.
    Program,
    /// Nothing, to decode packets.
    Nothing,
}

impl Case {
    /// Infers the capture. Unless the result is right and quiet, returns the commands that repeat it.
    pub(crate) fn try_with(&self, with: With) -> (Guess, String) {
        let file = self.file(with);
        std::fs::write(&file, &self.bytes).unwrap();
        let arguments = |images: &[String], options: &[String]| {
            let (command, format) = match with {
                With::Program => ("flow", "runs"),
                With::Nothing => ("packets", "jsonl"),
            };
            let mut arguments =
                [command, file.to_str().unwrap(), "--format", format].map(str::to_owned).to_vec();
            if with == With::Program {
                arguments.extend(images.iter().flat_map(|image| ["--image".to_owned(), image.clone()]));
            }
            arguments.extend(options.iter().cloned());
            arguments
        };
        let (asked, stated) = (arguments(&self.images, &[]), arguments(&self.right_images, &self.options));
        let (outcome, warnings) = run_with_warnings(&asked, &file);
        let runs = self.runs.as_ref().filter(|_| with == With::Program);
        let expected = runs.cloned().unwrap_or_else(|| complete(&stated));
        let mut guess = judge(&outcome, &expected, &warnings);
        if matches!(guess, Guess::Warned(_)) {
            // Warnings that remain with all options given are unrelated to inferring.
            let (_, anyway) = run_with_warnings(&stated, &file);
            let others = warnings.into_iter().filter(|warning| !anyway.contains(warning));
            guess = judge(&outcome, &expected, &others.collect::<Vec<_>>());
        }
        if guess == Guess::Quiet {
            std::fs::remove_file(&file).unwrap();
            return (guess, String::new());
        }
        if runs.is_some() && guess > Guess::Quiet {
            assert!(complete(&stated) == expected, "{}: not even with {stated:?}", self.name);
        }
        let said = format!(
            "{guess:?}: {}\n    tracewalk {}\n    tracewalk {}\n{}",
            self.name,
            asked.join(" "),
            stated.join(" "),
            outcome.stderr.lines().map(|line| format!("    | {line}\n")).collect::<String>(),
        );
        (guess, said)
    }

    /// The capture's file, which is kept for inspection unless the result is right and quiet.
    fn file(&self, with: With) -> PathBuf {
        let folder = folder();
        let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
        let name = self.name.chars().map(plain).collect::<String>();
        folder.join(format!("{name}-{}.bin", if with == With::Program { "program" } else { "nothing" }))
    }
}

/// The folder of captures that were not inferred without a warning.
pub(crate) fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guessing");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The output with all options given.
fn complete(arguments: &[String]) -> String {
    let outcome = run(arguments);
    assert!(outcome.stdout.lines().count() > 2, "{arguments:?}: {}", outcome.stderr);
    outcome.stdout
}

/// Runs the command on `file`, and reads its warnings from the provenance. A command that fails writes none.
fn run_with_warnings(arguments: &[String], file: &Path) -> (Outcome, Warnings) {
    let provenance = file.with_extension("provenance.json");
    let option = format!("--provenance={}", provenance.display());
    let outcome = run(arguments.iter().chain([&option]));
    let Ok(text) = std::fs::read_to_string(&provenance) else {
        return (outcome, vec![("failed".to_owned(), None)]);
    };
    std::fs::remove_file(&provenance).unwrap();
    let provenance = serde_json::from_str::<serde_json::Value>(&text).unwrap();
    let notices =
        provenance["notices"].as_array().unwrap().iter().filter(|notice| notice["severity"] != "note");
    let warning =
        |notice: &serde_json::Value| (notice["kind"].as_str().unwrap().to_owned(), notice["offset"].as_u64());
    (outcome, notices.map(warning).collect())
}

fn judge(outcome: &Outcome, expected: &str, warnings: &[(String, Option<u64>)]) -> Guess {
    let worst = warnings.iter().map(|(kind, _)| Warning::of(kind)).max();
    match (outcome.stdout == expected, worst) {
        (true, None) => Guess::Quiet,
        (true, Some(warning)) => Guess::Warned(warning),
        (false, Some(_)) => Guess::Reported,
        (false, None) => Guess::Silent,
    }
}
