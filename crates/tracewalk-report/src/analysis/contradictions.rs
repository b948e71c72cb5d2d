//! Whether the image is the program that was traced.
//!
//! A trace checks the image all the time: a condition cannot fail where the instruction has none, execution cannot
//! jump where no branch stands. One contradiction may be a damaged byte or code that changed at run time. Where they
//! are frequent the image is another program, and whatever flow says in between is chance.

use tracewalk::flow::{Contradiction, Element, GapReason};
use tracewalk::span::CaptureOffset;

/// Counts the contradictions between trace and image.
#[derive(Clone, Debug, Default)]
pub struct Contradictions {
    count: u64,
    /// Ranges that were followed to their end: what contradictions are measured against.
    ranges: u64,
    first: Vec<(CaptureOffset, Contradiction)>,
}

/// What the contradictions say of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// None were found.
    Fits,
    /// A few were found: the image is the right one, and something in it or in the trace is damaged.
    Doubtful,
    /// They are frequent: this is not the program that was traced.
    DoesNotFit,
}

/// How many contradictions are kept as examples.
const EXAMPLES: usize = 3;

/// With one contradiction for fewer ranges than this the image does not fit.
///
/// Another program, or another build of the same one, contradicts ETMv3 and PFT every 1 to 26 ranges (eight readings of
/// five captures), and every 92 where only the last of its functions had moved. A right image has no contradictions but
/// for code that was patched at run time.
const RANGES_FOR_EACH: u64 = 200;

impl Contradictions {
    /// Looks at an element of program flow.
    pub fn element(&mut self, element: &Element, at: CaptureOffset) {
        match element {
            Element::Block(_) => self.ranges += 1,
            Element::Gap(gap) => {
                if let GapReason::Contradiction(contradiction) = gap.reason {
                    self.count += 1;
                    if self.first.len() < EXAMPLES {
                        self.first.push((at, contradiction));
                    }
                }
            }
            Element::Event(_) => {}
        }
    }

    /// How many there were.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// How many ranges were followed to their end.
    #[must_use]
    pub const fn ranges(&self) -> u64 {
        self.ranges
    }

    /// The first ones, and where the trace shows them.
    #[must_use]
    pub fn first(&self) -> &[(CaptureOffset, Contradiction)] {
        &self.first
    }

    /// What they say of the image.
    #[must_use]
    pub const fn verdict(&self) -> Verdict {
        match self.count {
            0 => Verdict::Fits,
            // One alone proves nothing about the rest, unless there is no rest.
            1 if self.ranges > 3 => Verdict::Doubtful,
            count if count.saturating_mul(RANGES_FOR_EACH) > self.ranges => Verdict::DoesNotFit,
            _ => Verdict::Doubtful,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::samples::{block, gap, taken};
    use tracewalk::ids::{Address, Isa, Location};

    fn counted(ranges: u64, contradictions: u64) -> Contradictions {
        let mut counts = Contradictions::default();
        let at = Location::new(Address(0x100), Isa::T32);
        for _ in 0..ranges {
            counts.element(&block(0x100, 0x104, taken()), CaptureOffset(0));
        }
        for index in 0..contradictions {
            let found = gap(GapReason::Contradiction(Contradiction::UnconditionalFailed(at)));
            counts.element(&found, CaptureOffset(index));
        }
        counts
    }

    #[test]
    fn frequent_contradictions_condemn_the_image_and_rare_ones_do_not() {
        assert_eq!(counted(0, 0).verdict(), Verdict::Fits);
        assert_eq!(counted(2000, 1).verdict(), Verdict::Doubtful);
        assert_eq!(counted(20, 1).verdict(), Verdict::Doubtful);
        assert_eq!(counted(4000, 10).verdict(), Verdict::Doubtful);
        assert_eq!(counted(2000, 200).verdict(), Verdict::DoesNotFit);
        assert_eq!(counted(0, 1).verdict(), Verdict::DoesNotFit);
    }

    #[test]
    fn the_first_examples_are_kept() {
        let counts = counted(0, 10);
        let offsets: Vec<_> = counts.first().iter().map(|(at, _)| at.0).collect();
        assert_eq!(offsets, [0, 1, 2]);
        assert_eq!(counts.count(), 10);
    }
}
