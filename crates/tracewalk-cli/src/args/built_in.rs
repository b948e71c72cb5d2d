//! Values that this build may not have: what takes long to build is behind the feature `full`.

use clap::ValueEnum;
use clap::builder::{EnumValueParser, TypedValueParser};
use tracewalk_report::export::LACKING;

/// Reads a format, and refuses one that is not built in before anything is decoded.
pub(super) fn format<T: ValueEnum + Clone + Send + Sync + 'static>() -> impl TypedValueParser<Value = T> {
    EnumValueParser::<T>::new().try_map(|format| {
        let name = format.to_possible_value().map(|value| value.get_name().to_owned());
        refuse(&name.unwrap_or_default(), LACKING).map(|()| format)
    })
}

fn refuse(name: &str, lacking: &[&str]) -> Result<(), String> {
    if lacking.contains(&name) { Err(needs_full()) } else { Ok(()) }
}

fn needs_full() -> String {
    "not in this build: `--features full` brings it".to_owned()
}

#[cfg(feature = "full")]
mod pattern {
    use globset::{GlobBuilder, GlobMatcher};

    /// A pattern for names.
    pub(crate) type Pattern = GlobMatcher;

    /// A pattern for paths: a star stays in its folder, and the pattern may begin at any folder.
    pub(crate) fn path(text: &str) -> Result<Pattern, String> {
        let anywhere = if text.starts_with('/') || text.starts_with("**") { "" } else { "**/" };
        let glob = GlobBuilder::new(&format!("{anywhere}{text}")).literal_separator(true).build();
        glob.map(|glob| glob.compile_matcher()).map_err(|error| error.kind().to_string())
    }

    /// A pattern for names of functions, where a slash is like any other character.
    pub(crate) fn name(text: &str) -> Result<Pattern, String> {
        let glob = GlobBuilder::new(text).build();
        glob.map(|glob| glob.compile_matcher()).map_err(|error| error.kind().to_string())
    }
}

#[cfg(not(feature = "full"))]
mod pattern {
    /// A pattern for names: there is none.
    #[derive(Clone, Debug)]
    pub(crate) enum Pattern {}

    impl Pattern {
        pub(crate) fn is_match(&self, _: &str) -> bool {
            match *self {}
        }
    }

    pub(crate) fn path(_: &str) -> Result<Pattern, String> {
        Err(super::needs_full())
    }

    pub(crate) fn name(_: &str) -> Result<Pattern, String> {
        Err(super::needs_full())
    }
}

pub(crate) use pattern::Pattern;
pub(super) use pattern::{name, path};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lacking_is_refused() {
        assert!(refuse("pprof", &["firefox", "pprof"]).is_err());
        assert!(refuse("folded", &["firefox", "pprof"]).is_ok());
    }

    #[cfg(feature = "full")]
    #[test]
    fn a_path_pattern_may_begin_at_any_folder() {
        let matches = |pattern, name| path(pattern).unwrap().is_match(name);
        assert!(matches("src/*.c", "/home/me/project/src/main.c"));
        assert!(matches("src/*.c", "src/main.c"));
        assert!(!matches("src/*.c", "src/drivers/uart.c"));
        assert!(matches("src/**", "src/drivers/uart.c"));
        assert!(matches("*.{c,h}", "drivers/uart.h"));
        assert!(!matches("/src/*.c", "/home/src/main.c"));
        assert!(path("src/[").is_err());
    }
}
