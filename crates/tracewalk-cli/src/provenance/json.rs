//! JSON that is written once and small.

use std::fmt::Write as _;

/// An object that is being written.
pub(super) struct Object(String);

impl Object {
    pub(super) fn new() -> Self {
        Self("{".to_owned())
    }

    pub(super) fn raw(&mut self, name: &str, value: &str) -> &mut Self {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push_str(&quoted(name));
        self.0.push(':');
        self.0.push_str(value);
        self
    }

    pub(super) fn number(&mut self, name: &str, value: u64) -> &mut Self {
        self.raw(name, &value.to_string())
    }

    pub(super) fn text(&mut self, name: &str, value: &str) -> &mut Self {
        self.raw(name, &quoted(value))
    }

    pub(super) fn end(&self) -> String {
        format!("{}}}", self.0)
    }
}

/// An array of values that are written already.
pub(super) fn array(values: &[String]) -> String {
    format!("[{}]", values.join(","))
}

/// A string.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for character in text.chars() {
        match character {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(character);
            }
            // Writing to a string cannot fail.
            control if control.is_control() => drop(write!(quoted, "\\u{:04x}", u32::from(control))),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
