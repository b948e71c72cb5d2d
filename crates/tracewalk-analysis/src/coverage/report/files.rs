//! The source files of a report, and their names.

use std::collections::HashMap;
use std::sync::Arc;

/// The source files, numbered in the order of their appearance.
#[derive(Default)]
pub(super) struct Files {
    names: Vec<String>,
    numbers: HashMap<String, usize>,
    /// The numbers of names as the debug information spells them.
    spelled: HashMap<Arc<str>, usize>,
    /// The last of them, which is often the next one, too.
    last: Option<(Arc<str>, usize)>,
}

impl Files {
    /// The number of the file that the debug information calls `spelled`.
    pub(super) fn number(&mut self, spelled: &Arc<str>) -> usize {
        match &self.last {
            Some((last, number)) if Arc::ptr_eq(last, spelled) => *number,
            _ => {
                let number = self.find(spelled);
                self.last = Some((Arc::clone(spelled), number));
                number
            }
        }
    }

    fn find(&mut self, spelled: &Arc<str>) -> usize {
        if let Some(&number) = self.spelled.get(spelled) {
            return number;
        }
        let name = source_name(spelled);
        let Self { names, numbers, .. } = self;
        let number = *numbers.entry(name).or_insert_with_key(|name| {
            names.push(name.clone());
            names.len() - 1
        });
        self.spelled.insert(Arc::clone(spelled), number);
        number
    }

    /// The name of a file with a number.
    pub(super) fn name(&self, number: usize) -> &str {
        self.names.get(number).map_or("", String::as_str)
    }
}

/// A source file's name, with slashes and without `.` and redundant `..`. Compilers write the same name in several ways.
pub(super) fn source_name(file: &str) -> String {
    let file = file.replace('\\', "/");
    let mut parts = Vec::new();
    for part in file.split('/').skip(usize::from(file.starts_with('/'))) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let root = if file.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}
