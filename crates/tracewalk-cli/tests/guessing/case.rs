//! One capture of which nobody says anything, and how finding it out goes.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::support::{Outcome, run};

/// A capture, what would say all of it, and what it tells then.
pub(crate) struct Case {
    /// What it is a capture of.
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    /// The program as the user has it, and as it would be right: values of `--image`.
    pub(crate) images: Vec<String>,
    pub(crate) right_images: Vec<String>,
    /// The options that say everything.
    pub(crate) options: Vec<String>,
    /// What it tells, in the format `runs`, where that is known from elsewhere.
    pub(crate) told: Option<String>,
}

/// How finding out went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Guess {
    /// Right, and nothing is warned of.
    Quiet,
    /// Right, with a warning.
    Warned(Warning),
    /// Wrong, and a message says so.
    Told,
    /// Wrong, and nothing says so.
    Silent,
}

/// What a right answer is warned with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Warning {
    /// Another answer tells the same execution with other details.
    OtherDetails,
    /// Another answer tells something else, and nothing speaks against it.
    AnotherAnswer,
    /// Packets of an MTB continue each other in another order as well.
    AnotherOrder,
    /// Nothing shows which packet of an MTB is the newest one.
    EndUnknown,
    /// The image was said to stand elsewhere.
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

/// What the command had to say: the kinds of its warnings, and where each shows.
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

/// With what a capture is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum With {
    /// The program: what was executed.
    Program,
    /// Nothing: which packets there are.
    Nothing,
}

impl Case {
    /// Looks at the capture. What is not right and quiet comes with the commands to repeat it.
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
        let told = self.told.as_ref().filter(|_| with == With::Program);
        let expected = told.cloned().unwrap_or_else(|| complete(&stated));
        let mut guess = judge(&outcome, &expected, &warnings);
        if matches!(guess, Guess::Warned(_)) {
            // What is warned of with everything said has nothing to do with finding it out.
            let (_, anyway) = run_with_warnings(&stated, &file);
            let others = warnings.into_iter().filter(|warning| !anyway.contains(warning));
            guess = judge(&outcome, &expected, &others.collect::<Vec<_>>());
        }
        if guess == Guess::Quiet {
            std::fs::remove_file(&file).unwrap();
            return (guess, String::new());
        }
        if told.is_some() && guess > Guess::Quiet {
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

    /// Where the capture is written to. It stays there if something is to be looked at.
    fn file(&self, with: With) -> PathBuf {
        let folder = folder();
        let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
        let name = self.name.chars().map(plain).collect::<String>();
        folder.join(format!("{name}-{}.bin", if with == With::Program { "program" } else { "nothing" }))
    }
}

/// Where captures are kept that were not inferred without a warning.
pub(crate) fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guessing");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// What a capture tells with everything said.
fn complete(arguments: &[String]) -> String {
    let outcome = run(arguments);
    assert!(outcome.stdout.lines().count() > 2, "{arguments:?}: {}", outcome.stderr);
    outcome.stdout
}

/// Runs the command on `file`, and reads from its provenance what it had to say. A command that fails writes none.
fn run_with_warnings(arguments: &[String], file: &Path) -> (Outcome, Warnings) {
    let provenance = file.with_extension("provenance.json");
    let option = format!("--provenance={}", provenance.display());
    let outcome = run(arguments.iter().chain([&option]));
    let Ok(text) = std::fs::read_to_string(&provenance) else {
        return (outcome, vec![("failed".to_owned(), None)]);
    };
    std::fs::remove_file(&provenance).unwrap();
    let told = serde_json::from_str::<serde_json::Value>(&text).unwrap();
    let notices = told["notices"].as_array().unwrap().iter().filter(|notice| notice["severity"] != "note");
    let warning =
        |notice: &serde_json::Value| (notice["kind"].as_str().unwrap().to_owned(), notice["offset"].as_u64());
    (outcome, notices.map(warning).collect())
}

fn judge(outcome: &Outcome, expected: &str, warnings: &[(String, Option<u64>)]) -> Guess {
    let worst = warnings.iter().map(|(kind, _)| Warning::of(kind)).max();
    match (outcome.stdout == expected, worst) {
        (true, None) => Guess::Quiet,
        (true, Some(warning)) => Guess::Warned(warning),
        (false, Some(_)) => Guess::Told,
        (false, None) => Guess::Silent,
    }
}
