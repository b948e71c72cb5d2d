//! Command-line arguments of this crate's program and of the program that checks its traces.
//!
//! ```
//! use tracewalk_generate::arguments::Arguments;
//!
//! let words = ["--times", "--size", "0x40", "trace.bin"].map(str::to_owned);
//! let mut arguments = Arguments::new(&words);
//! assert!(arguments.flag("--times"));
//! assert_eq!(arguments.number("--size")?, Some(64));
//! assert_eq!(arguments.words(), ["trace.bin"]);
//! # Ok::<(), String>(())
//! ```

/// A command's arguments that nothing has consumed yet.
#[derive(Clone, Debug)]
pub struct Arguments(Vec<String>);

impl Arguments {
    /// All arguments, without the name of the command.
    #[must_use]
    pub fn new(arguments: &[String]) -> Self {
        Self(arguments.to_vec())
    }

    /// Whether `flag` is given.
    pub fn flag(&mut self, flag: &str) -> bool {
        let index = self.0.iter().position(|argument| argument == flag);
        index.map(|index| self.0.remove(index)).is_some()
    }

    /// The value after `option`, if the option is given.
    pub fn optional(&mut self, option: &str) -> Result<Option<String>, String> {
        let Some(index) = self.0.iter().position(|argument| argument == option) else { return Ok(None) };
        self.0.remove(index);
        if index < self.0.len() {
            Ok(Some(self.0.remove(index)))
        } else {
            Err(format!("{option} needs a value"))
        }
    }

    /// The value after `option`.
    pub fn required(&mut self, option: &str) -> Result<String, String> {
        self.optional(option)?.ok_or_else(|| format!("{option} is missing"))
    }

    /// The number after `option`, if the option is given.
    pub fn number(&mut self, option: &str) -> Result<Option<u32>, String> {
        self.optional(option)?.map(|text| number(option, &text)).transpose()
    }

    /// The remaining words, which belong to no option.
    #[must_use]
    pub fn words(self) -> Vec<String> {
        self.0
    }

    /// Fails if an argument was not consumed.
    pub fn finish(&self) -> Result<(), String> {
        self.0.first().map_or(Ok(()), |excess| Err(format!("\"{excess}\" is not an option here")))
    }
}

/// A decimal number, or a hexadecimal one after `0x`.
pub fn number(name: &str, text: &str) -> Result<u32, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|_| format!("{name}: \"{text}\" is not a number"))
}
