//! Maps the lines of one revision of a file to those of another.

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::source_diff::{Hunk, HunkLine};

/// Lines that two revisions of a file share, as stretches of equal lines in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LineMap(Vec<Equal>);

/// A stretch of equal lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Equal {
    /// The first line in the old revision.
    old: u32,
    /// The first line in the new revision.
    new: u32,
    /// The number of lines.
    count: u32,
}

impl LineMap {
    /// Of a file that did not change.
    pub(super) fn identity() -> Self {
        Self(vec![Equal { old: 1, new: 1, count: u32::MAX }])
    }

    /// Of a file with these changes, which are in order and do not overlap.
    pub(super) fn of_hunks(hunks: &[Hunk]) -> Self {
        let mut map = Self::default();
        let (mut old, mut new) = (1, 1);
        for hunk in hunks {
            map.push(Equal { old, new, count: hunk.old_first.saturating_sub(old) });
            (old, new) = (hunk.old_first, hunk.new_first);
            for line in &hunk.lines {
                match line {
                    HunkLine::Context(_) => {
                        map.push(Equal { old, new, count: 1 });
                        (old, new) = (old.saturating_add(1), new.saturating_add(1));
                    }
                    HunkLine::Deleted(_) => old = old.saturating_add(1),
                    HunkLine::Added(_) => new = new.saturating_add(1),
                }
            }
        }
        map.push(Equal { old, new, count: u32::MAX });
        map
    }

    /// Of two texts, by lines.
    pub(super) fn between(old: &[&[u8]], new: &[&[u8]]) -> Self {
        let number = |index: usize| u32::try_from(index + 1).unwrap_or(u32::MAX);
        let mut map = Self::default();
        for step in capture_diff_slices(Algorithm::Histogram, old, new) {
            if let DiffOp::Equal { old_index, new_index, len } = step {
                let count = u32::try_from(len).unwrap_or(u32::MAX);
                map.push(Equal { old: number(old_index), new: number(new_index), count });
            }
        }
        map
    }

    fn push(&mut self, equal: Equal) {
        match self.0.last_mut() {
            Some(last)
                if last.old.checked_add(last.count) == Some(equal.old)
                    && last.new.checked_add(last.count) == Some(equal.new) =>
            {
                last.count = last.count.saturating_add(equal.count);
            }
            _ if equal.count > 0 => self.0.push(equal),
            _ => {}
        }
    }

    /// The line of the old revision that corresponds to this line of the new one; `None` for an added line.
    pub(super) fn line_in_old(&self, new: u32) -> Option<u32> {
        let index = self.0.partition_point(|equal| equal.new <= new).checked_sub(1)?;
        let equal = self.0.get(index)?;
        let offset = new - equal.new;
        (offset < equal.count).then(|| equal.old.saturating_add(offset))
    }

    /// The line of the new revision that corresponds to this line of the old one; `None` for a deleted line.
    pub(super) fn line_in_new(&self, old: u32) -> Option<u32> {
        let index = self.0.partition_point(|equal| equal.old <= old).checked_sub(1)?;
        let equal = self.0.get(index)?;
        let offset = old - equal.old;
        (offset < equal.count).then(|| equal.new.saturating_add(offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines 2 and 3 replaced by one, two added before line 5.
    #[test]
    fn hunks_and_texts_map_the_same_lines() {
        let line = |text: &str| text.as_bytes().to_vec();
        let hunks = [
            Hunk {
                at: 1,
                old_first: 1,
                new_first: 1,
                lines: vec![
                    HunkLine::Context(line("a")),
                    HunkLine::Deleted(line("b")),
                    HunkLine::Deleted(line("c")),
                    HunkLine::Added(line("x")),
                ],
            },
            // Without context, as `-U0` writes it.
            Hunk {
                at: 7,
                old_first: 5,
                new_first: 4,
                lines: vec![HunkLine::Added(line("y")), HunkLine::Added(line("z"))],
            },
        ];
        let by_hunks = LineMap::of_hunks(&hunks);
        let old: Vec<&[u8]> = vec![b"a", b"b", b"c", b"d", b"e", b"f"];
        let new: Vec<&[u8]> = vec![b"a", b"x", b"d", b"y", b"z", b"e", b"f"];
        let by_texts = LineMap::between(&old, &new);
        let olds = [Some(1), None, Some(4), None, None, Some(5), Some(6)];
        let news = [Some(1), None, None, Some(3), Some(6), Some(7)];
        for map in [by_hunks, by_texts] {
            assert_eq!((1..=7).map(|line| map.line_in_old(line)).collect::<Vec<_>>(), olds);
            assert_eq!((1..=6).map(|line| map.line_in_new(line)).collect::<Vec<_>>(), news);
        }
        assert_eq!((LineMap::identity().line_in_old(9), LineMap::default().line_in_old(9)), (Some(9), None));
    }
}
