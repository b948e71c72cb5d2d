//! The part of a command line that a result depends on.

use std::ffi::OsString;

use clap::ValueHint;
use clap::parser::ValueSource;

use super::Cli;
use super::output::format_of_output;

/// The command's name, and the options and values on the command line that the result depends on: each option by its long
/// name with its value after it, without the folders of files.
pub(crate) fn effective(words: impl IntoIterator<Item = OsString>) -> (String, Vec<String>) {
    /// Options that do not affect the result.
    const WITHOUT_EFFECT: [&str; 12] = [
        "threads",
        "segment",
        "stats",
        "quiet",
        "color",
        "messages",
        "no_pager",
        "provenance",
        "output",
        "save",
        "captures",
        "resume",
    ];
    let mut command = Cli::arranged();
    let matches = command.try_get_matches_from_mut(words).unwrap_or_default();
    let Some((name, matches)) = matches.subcommand() else { return Default::default() };
    let Some(command) = command.find_subcommand(name) else { return Default::default() };
    let mut found = Vec::new();
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        let is_said = matches.value_source(id) == Some(ValueSource::CommandLine);
        if WITHOUT_EFFECT.contains(&id) || !is_said {
            continue;
        }
        let option = argument.get_long().map(|long| format!("--{long}"));
        let names_file = !matches!(argument.get_value_hint(), ValueHint::Unknown | ValueHint::Other);
        let takes_values = argument.get_action().takes_values();
        let values = matches.get_raw(id).into_iter().flatten().filter(|_| takes_values);
        let values = values.map(|value| value.to_string_lossy());
        let values =
            values.map(|value| if names_file { without_folders(&value) } else { value.into_owned() });
        let mut places = matches.indices_of(id).into_iter().flatten();
        if !takes_values {
            found.push((places.next(), option.into_iter().collect()));
            continue;
        }
        found
            .extend(values.map(|value| (places.next(), option.clone().into_iter().chain([value]).collect())));
    }
    // A file's extension states the format, and the file is left out.
    if let Ok(Some(format)) = format_of_output(name, matches) {
        found.push((Some(usize::MAX), vec!["--format".to_owned(), format.to_owned()]));
    }
    found.sort_by_key(|(place, _): &(_, Vec<String>)| *place);
    (name.to_owned(), found.into_iter().flat_map(|(_, words)| words).collect())
}

/// `0x8000:/home/me/code.bin@context=1` → `0x8000:code.bin@context=1`.
fn without_folders(word: &str) -> String {
    let Some(first) = word.find('/') else { return word.to_owned() };
    let (before, path) = word.split_at(first);
    // The text before the path, if it is not a part of the path.
    let start = before.rfind([':', '=']).map_or(0, |at| at + 1);
    let name = path.rsplit('/').find(|part| !part.is_empty()).unwrap_or_default();
    format!("{}{name}", before.get(..start).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(words: &[&str]) -> Vec<String> {
        effective(std::iter::once("tracewalk").chain(words.iter().copied()).map(OsString::from)).1
    }

    #[test]
    fn what_changes_nothing_in_the_result_and_folders_are_left_out() {
        let words = ["coverage", "/a/b/trace.bin", "--threads", "7", "--image"];
        let more = ["0x8000:/home/me/code.bin@context=1", "-o", "/tmp/x", "--provenance=/y", "--id", "2"];
        let kept = kept(&[&words[..], &more].concat());
        assert_eq!(kept, ["trace.bin", "--image", "0x8000:code.bin@context=1", "--id", "2"]);
    }

    #[test]
    fn options_are_known_however_they_are_written_and_a_file_may_be_called_like_the_command() {
        assert_eq!(kept(&["flow", "flow"]), ["flow"]);
        assert_eq!(kept(&["--quiet", "flow", "-q", "flow", "--src-lines"]), ["flow", "--src-lines"]);
        for output in [&["-oout.json"][..], &["-o=out.json"], &["-o", "out.json"], &["--output=out.json"]] {
            let kept = kept(&[&["coverage", "a"], output].concat());
            assert_eq!(kept, ["a", "--format", "json"], "{output:?}");
        }
        let expected = ["--format", "json", "a", "--include", "src/**/*.c", "b"];
        assert_eq!(kept(&["coverage", "--format=json", "a", "--include=src/**/*.c", "b"]), expected);
        assert_eq!(kept(&["flow", "a", "--id=2", "-f"]), ["a", "--id", "2", "--follow"]);
        assert_eq!(kept(&["coverage", "a", "--fail-under", "lines=80,branches=60"]).len(), 5);
    }
}
