//! Values that this build may lack: the feature `full` adds those that take long to build.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use glob::MatchOptions;
use tracewalk_report::export::LACKING;
use tracewalk_report::formats::{self, Format};
use tracewalk_session::Pattern;

/// Reads the name of a format of a registry, and refuses one that is not built in before anything is decoded.
pub(super) fn listed<Make: Copy + Send + Sync + 'static>(
    all: &'static [Format<Make>],
) -> impl TypedValueParser<Value = &'static Format<Make>> {
    let values = all.iter().map(|format| PossibleValue::new(format.name).help(format.help));
    PossibleValuesParser::new(values.collect::<Vec<_>>()).try_map(|name| {
        refuse(&name, LACKING)?;
        formats::find(all, &name).ok_or_else(|| format!("expected one of {} formats", all.len()))
    })
}

/// Reads the name of one of these tables.
pub(super) fn table(all: &'static [&'static str]) -> impl TypedValueParser<Value = &'static str> {
    PossibleValuesParser::new(all.iter().map(PossibleValue::new).collect::<Vec<_>>()).try_map(|name| {
        let known = all.iter().copied().find(|known| *known == name);
        known.ok_or_else(|| format!("expected one of {} tables", all.len()))
    })
}

/// Refuses the name of a format that is not built in.
pub(super) fn refuse(name: &str, lacking: &[&str]) -> Result<(), String> {
    if lacking.contains(&name) {
        Err("not in this build: build it with `--features full`".to_owned())
    } else {
        Ok(())
    }
}

/// A pattern for paths: a star stays in its folder, and the pattern may begin at any folder.
pub(super) fn path(text: &str) -> Result<Pattern, String> {
    let anywhere = if text.starts_with('/') || text.starts_with("**") { "" } else { "**/" };
    pattern(text, &format!("{anywhere}{text}"), true)
}

/// A pattern for names of functions, where a slash is like any other character.
pub(super) fn name(text: &str) -> Result<Pattern, String> {
    pattern(text, text, false)
}

fn pattern(text: &str, glob: &str, is_path: bool) -> Result<Pattern, String> {
    let mut globs = Vec::new();
    alternatives(glob, &mut globs)?;
    let globs = globs.iter().map(|glob| glob::Pattern::new(glob)).collect::<Result<Vec<_>, _>>();
    let globs = globs.map_err(|error| error.to_string())?;
    let options = MatchOptions { require_literal_separator: is_path, ..MatchOptions::new() };
    Ok(Pattern::new(text, move |name| globs.iter().any(|glob| glob.matches_with(name, options))))
}

/// Adds the patterns that one with `{a,b}` stands for.
fn alternatives(glob: &str, found: &mut Vec<String>) -> Result<(), String> {
    const MOST: usize = 1000;
    let Some((before, after)) = glob.split_once('}') else {
        return match glob.contains('{') {
            true => Err("found { without }".to_owned()),
            false if found.len() == MOST => Err(format!("found more than {MOST} alternatives")),
            false => {
                found.push(glob.to_owned());
                Ok(())
            }
        };
    };
    let (before, inside) = before.rsplit_once('{').ok_or("found } without {")?;
    inside.split(',').try_for_each(|one| alternatives(&format!("{before}{one}{after}"), found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lacking_is_refused() {
        assert!(refuse("pprof", &["firefox", "pprof"]).is_err());
        assert!(refuse("folded", &["firefox", "pprof"]).is_ok());
    }

    #[test]
    fn a_command_takes_the_formats_of_its_registry_and_no_others() {
        let mut command = crate::args::Cli::arranged();
        command.build();
        for (name, formats) in formats::registries() {
            let expected = formats.iter().map(|(name, _)| *name).collect::<Vec<_>>();
            let command = command.find_subcommand_mut(name).unwrap();
            let format = command.get_arguments().find(|argument| argument.get_id() == "format").unwrap();
            let values = format.get_possible_values();
            assert_eq!(values.iter().map(PossibleValue::get_name).collect::<Vec<_>>(), expected, "{name}");
        }
    }

    #[test]
    fn a_path_pattern_may_begin_at_any_folder() {
        let matches = |pattern, name| path(pattern).unwrap().is_match(name);
        assert!(matches("src/*.c", "/home/me/project/src/main.c"));
        assert!(matches("src/*.c", "src/main.c"));
        assert!(!matches("src/*.c", "src/drivers/uart.c"));
        assert!(matches("src/**", "src/drivers/uart.c"));
        assert!(matches("*.{c,h}", "drivers/uart.h"));
        assert!(!matches("/src/*.c", "/home/src/main.c"));
        assert!(matches("{src,lib/{a,b}}/*.c", "lib/b/c.c") && !matches("{src,lib/{a,b}}/*.c", "lib/c.c"));
        for wrong in ["src/[", "src/{a", "src/a}", &"{a,b}".repeat(10)] {
            assert!(path(wrong).is_err(), "{wrong}");
        }
    }
}
