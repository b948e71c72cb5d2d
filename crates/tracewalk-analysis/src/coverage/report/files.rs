//! The source files of a report, and their names.

use std::collections::HashMap;
use std::sync::Arc;

/// The source files, numbered in the order of their appearance.
#[derive(Default)]
pub(super) struct Files {
    names: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, usize>,
    /// The last of them, which is often the next one, too.
    last: Option<(Arc<str>, usize)>,
}

impl Files {
    /// The number of a file.
    pub(super) fn number(&mut self, name: &Arc<str>) -> usize {
        match &self.last {
            Some((last, number)) if Arc::ptr_eq(last, name) => *number,
            _ => {
                let Self { names, numbers, .. } = self;
                let number = *numbers.entry(Arc::clone(name)).or_insert_with_key(|name| {
                    names.push(Arc::clone(name));
                    names.len() - 1
                });
                self.last = Some((Arc::clone(name), number));
                number
            }
        }
    }

    /// The name of a file with a number.
    pub(super) fn name(&self, number: usize) -> &str {
        self.names.get(number).map_or("", |name| name)
    }
}
