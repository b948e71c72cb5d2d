//! `weight`: how large the project is, with the limits that it keeps.
//!
//! Lines are those of Rust that are neither blank nor a comment. Tests are the files of tests, benchmarks and fuzz targets, and
//! what follows `#[cfg(test)] mod …` in a file. Options are the long names that the built command's help lists, each once.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::process::output;
use crate::{Answer, target_folder, workspace};

/// Each figure, what it is to come down to, and what it may be until then: lowered with each step, raised only by what a new
/// capability needs.
const LIMITS: [(&str, usize, usize); 6] = [
    ("lines of code", 97_000, 122_150),
    ("lines of tests", 40_000, 53_000),
    ("commands", 15, 17),
    ("options", 70, 82),
    ("words for users", 26_000, 30_250),
    ("words for developers", 9_000, 9_000),
];

/// Runs the task.
pub(crate) fn run() -> Answer {
    let root = workspace();
    let files = output(Command::new("git").args(["ls-files", "*.rs", "*.md"]).current_dir(&root))?;
    let (mut code, mut tests, mut users, mut developers) = (0, 0, 0, 0);
    for file in files.lines().filter(|file| root.join(file).is_file()) {
        let text = fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"))?;
        let folder = Path::new(file).parent().and_then(Path::to_str);
        match folder {
            _ if file.ends_with(".rs") => {
                let lines = lines(file, &text);
                (code, tests) = (code + lines.0, tests + lines.1);
            }
            _ if file == "README.md" => users += words(&text),
            Some("docs") => users += words(&text),
            Some("docs/dev") => developers += words(&text),
            _ => {}
        }
    }
    let (commands, options) = command_line()?;
    let mut heavy = Vec::new();
    let mut table = String::from("\n");
    let figures = [code, tests, commands, options, users, developers];
    for ((name, aim, limit), found) in LIMITS.into_iter().zip(figures) {
        table += &format!("{name:22}{found:>8}, at most {limit:>6}, to come down to {aim:>6}\n");
        if found > limit {
            heavy.push(format!("found {found} {name}, the limit is {limit}"));
        }
    }
    if heavy.is_empty() { Ok(table) } else { Err(format!("{table}{}", heavy.join("\n"))) }
}

/// The lines of code and of tests in a file.
fn lines(file: &str, text: &str) -> (usize, usize) {
    let is_test_file = ["tests", "benches", "fuzz", "examples"]
        .iter()
        .any(|folder| file.split('/').rev().skip(1).any(|part| part == *folder));
    let mut is_test = is_test_file || file.ends_with("/tests.rs") || file.ends_with("/fixtures.rs");
    let mut count = (0, 0);
    let mut follows_cfg = false;
    for line in text.lines().map(str::trim_start) {
        if line.is_empty() || line.starts_with("//") {
            continue;
        }
        is_test |= follows_cfg && line.starts_with("mod ") && line.ends_with('{');
        follows_cfg = line.starts_with("#[cfg(test)]");
        if is_test {
            count.1 += 1;
        } else {
            count.0 += 1;
        }
    }
    count
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

/// The number of commands and of options in the help of the command that the tests built.
fn command_line() -> Result<(usize, usize), String> {
    let command = target_folder().join("debug/tracewalk");
    let help = |arguments: &[&str]| output(Command::new(&command).args(arguments).arg("--help"));
    let whole =
        help(&[]).map_err(|error| format!("{error}\ncargo test --workspace --features full builds it"))?;
    let listed =
        whole.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect::<Vec<_>>();
    let mut options = BTreeSet::new();
    for name in &names {
        options.extend(long_options(&help(&[name])?).map(str::to_owned));
    }
    Ok((names.len(), options.len()))
}

/// The options that a help defines: `-i, --image FILE` at the beginning of a line.
fn long_options(help: &str) -> impl Iterator<Item = &str> {
    help.lines().filter_map(|line| {
        let line = line.trim_start();
        let line = if line.starts_with("--") { line } else { line.get(2..)?.strip_prefix(", ")? };
        let name = line.strip_prefix("--")?.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').next();
        name.filter(|name| !name.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_code_or_tests() {
        let text = "// a\n\nfn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n";
        assert_eq!(lines("src/a.rs", text), (2, 3));
        assert_eq!(lines("src/a/tests/b.rs", "fn a() {}\n"), (0, 1));
        assert_eq!(lines("src/a.rs", "#[cfg(test)]\nmod tests;\nfn a() {}\n"), (3, 0));
    }

    #[test]
    fn an_option_is_where_its_help_begins() {
        let help = "  -o, --output FILE\n          As --image does\n      --id <ID>\n";
        assert_eq!(long_options(help).collect::<Vec<_>>(), ["output", "id"]);
    }
}
