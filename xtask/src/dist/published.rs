//! Tests that those who publish and install a release look for what `dist` writes: the workflow and `cargo binstall`.

use std::collections::BTreeSet;
use std::fs;

use saphyr_parser::{Event, Parser};

use super::{OF_HOMEBREW, REPOSITORY, VERSION, archive_name, inside};
use crate::target::Target;
use crate::workspace;

/// The target for Windows.
const WINDOWS: &str = "x86_64-pc-windows-msvc";

fn read(file: &str) -> String {
    fs::read_to_string(workspace().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// A list or a table that has begun in a YAML text.
enum Open {
    List(usize),
    Table(Option<String>),
}

/// The scalars of a YAML text, each with its path: `jobs.dist.steps.0.uses`.
fn scalars(text: &str) -> Vec<(String, String)> {
    let (mut open, mut found) = (Vec::<Open>::new(), Vec::new());
    let end = |open: &mut Vec<Open>| match open.last_mut() {
        Some(Open::List(place)) => *place += 1,
        Some(Open::Table(key)) => *key = None,
        None => {}
    };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.unwrap_or_else(|error| panic!("{error}"));
        match event {
            Event::SequenceStart(..) => open.push(Open::List(0)),
            Event::MappingStart(..) => open.push(Open::Table(None)),
            Event::SequenceEnd | Event::MappingEnd => {
                open.pop();
                end(&mut open);
            }
            Event::Scalar(value, ..) => {
                if let Some(Open::Table(key @ None)) = open.last_mut() {
                    *key = Some(value.into_owned());
                    continue;
                }
                let path = open.iter().map(|open| match open {
                    Open::List(place) => place.to_string(),
                    Open::Table(key) => key.clone().unwrap_or_default(),
                });
                found.push((path.collect::<Vec<_>>().join("."), value.into_owned()));
                end(&mut open);
            }
            Event::Alias(_) => panic!("found a reference in line {}", span.start.line()),
            _ => {}
        }
    }
    found
}

/// The values below a path, of keys that end like this.
fn values<'a>(scalars: &'a [(String, String)], below: &str, key: &str) -> Vec<&'a str> {
    let is_meant = |path: &str| path.starts_with(below) && path.ends_with(key);
    scalars.iter().filter(|(path, _)| is_meant(path)).map(|(_, value)| value.as_str()).collect()
}

/// The targets of the workflow.
fn published() -> BTreeSet<String> {
    let workflow = scalars(&read(".github/workflows/release.yml"));
    let targets = values(&workflow, "jobs.dist.strategy.matrix.include.", ".targets");
    targets.iter().flat_map(|targets| targets.split_whitespace()).map(str::to_owned).collect()
}

#[test]
fn the_workflow_makes_what_is_installed_with_the_tested_task() {
    let workflow = scalars(&read(".github/workflows/release.yml"));
    let installed = OF_HOMEBREW.into_iter().chain([WINDOWS]).map(str::to_owned).collect();
    assert_eq!(published(), installed);
    assert_eq!(values(&workflow, "on.push.tags", ""), ["v*"]);
    let runs = values(&workflow, "jobs.dist.steps.", ".run");
    let tasks = runs.iter().filter(|run| run.contains("xtask")).collect::<Vec<_>>();
    assert_eq!(tasks, [&"cargo xtask dist ${{ matrix.targets }}"]);
    let uploaded = values(&workflow, "jobs.dist.steps.", ".with.path").concat();
    for target in published() {
        let name = archive_name(&Target::named(&target));
        let is_uploaded =
            |line: &str| line.strip_prefix("target/dist-files/*").is_some_and(|end| name.ends_with(end));
        assert!(uploaded.lines().any(is_uploaded), "{name}");
    }
    for kind in ["deb", "whl", "sha256"] {
        assert!(uploaded.contains(&format!("target/dist-files/*.{kind}")), "{kind}");
    }
    assert_eq!(values(&workflow, "jobs.release.needs", ""), ["dist"]);
    assert!(values(&workflow, "jobs.release.steps.", ".run").contains(&"cargo xtask dist --formula dist"));
}

/// What `cargo binstall` puts for `archive-suffix`, by its package_formats.rs.
fn suffixes(format: &str) -> &'static [&'static str] {
    match format {
        "tgz" => &[".tgz", ".tar.gz"],
        "zip" => &[".zip"],
        other => panic!("found format {other}"),
    }
}

#[test]
fn cargo_binstall_finds_each_archive_and_the_command_in_it() {
    let manifest = read("crates/tracewalk-cli/Cargo.toml").parse::<toml::Table>().unwrap();
    let metadata = &manifest["package"]["metadata"]["binstall"];
    for triple in published() {
        let target = Target::named(&triple);
        let special = metadata["overrides"].get(&triple);
        let value = |key: &str| special.and_then(|special| special.get(key)).unwrap_or(&metadata[key]);
        let filled = |key: &str, suffix: &str| {
            let values = [
                ("repo", REPOSITORY),
                ("version", VERSION),
                ("target", &triple),
                ("archive-suffix", suffix),
                ("bin", "tracewalk"),
                ("binary-ext", if target.is_windows() { ".exe" } else { "" }),
            ];
            let fill =
                |text: String, (key, value): (&str, &str)| text.replace(&format!("{{ {key} }}"), value);
            values.into_iter().fold(value(key).as_str().unwrap().to_owned(), fill)
        };
        let looked_for =
            suffixes(value("pkg-fmt").as_str().unwrap()).iter().map(|suffix| filled("pkg-url", suffix));
        let written = format!("{REPOSITORY}/releases/download/v{VERSION}/{}", archive_name(&target));
        assert!(
            looked_for.clone().any(|url| url == written),
            "{written}: {:?}",
            looked_for.collect::<Vec<_>>()
        );
        assert_eq!(filled("bin-dir", ""), inside(&target));
    }
    assert_eq!(manifest["bin"][0]["name"].as_str(), Some("tracewalk"));
}
