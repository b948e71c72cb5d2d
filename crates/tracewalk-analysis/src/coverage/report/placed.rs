//! The instructions of each source line.

use std::ops::Range;

/// Consecutive instructions of one line and one copy.
pub(super) struct Placed {
    /// The file's number.
    pub(super) file: usize,
    pub(super) line: Option<u32>,
    pub(super) copy: usize,
    /// The instructions' indices.
    pub(super) instructions: Range<usize>,
}

impl Placed {
    /// Adds an instruction, by its index, of a copy of a line of a file.
    pub(super) fn add(all: &mut Vec<Self>, (file, line, copy): (usize, Option<u32>, usize), index: usize) {
        match all.last_mut() {
            Some(last)
                if (last.file, last.line, last.copy) == (file, line, copy)
                    && last.instructions.end == index =>
            {
                last.instructions.end += 1;
            }
            _ => all.push(Self { file, line, copy, instructions: index..index + 1 }),
        }
    }

    /// Sorts by file and line, and in each line by copy.
    pub(super) fn sort(all: &mut [Self]) {
        // One number is compared several times as fast as three.
        all.sort_by_key(|placed| {
            (placed.file as u64) << 33 | placed.line.map_or(0, |line| u64::from(line) + 1)
        });
        for of_line in all.chunk_by_mut(|one, other| one.file == other.file && one.line == other.line) {
            of_line.sort_by_key(|placed| placed.copy);
        }
    }
}
