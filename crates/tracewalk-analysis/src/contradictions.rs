//! Whether the image is the program that was traced.
//!
//! A trace checks the image all the time: a condition cannot fail where the instruction has none, execution cannot
//! jump where no branch stands. One contradiction may be a damaged byte or code that changed at run time. Where they
//! are frequent the image is another program, and whatever flow says in between is chance.

/// Whether the image is the traced program, by the contradictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// None were found.
    Fits,
    /// A few were found: the image is the right one, and something in it or in the trace is damaged.
    Doubtful,
    /// They are frequent: this is not the program that was traced.
    DoesNotFit,
}

/// With one contradiction for fewer ranges than this the image does not fit.
///
/// Another program, or another build of the same one, contradicts ETMv3 and PFT every 1 to 26 ranges (eight readings of
/// five captures), and every 92 where only the last of its functions had moved. A right image has no contradictions but
/// for code that was patched at run time.
const RANGES_FOR_EACH: u64 = 200;

impl Verdict {
    /// The verdict from the numbers of contradictions and of ranges that were followed to their end.
    #[must_use]
    pub const fn of(contradictions: u64, ranges: u64) -> Self {
        match contradictions {
            0 => Self::Fits,
            // One alone proves nothing about the rest, unless there is no rest.
            1 if ranges > 3 => Self::Doubtful,
            count if count.saturating_mul(RANGES_FOR_EACH) > ranges => Self::DoesNotFit,
            _ => Self::Doubtful,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_contradictions_condemn_the_image_and_rare_ones_do_not() {
        assert_eq!(Verdict::of(0, 0), Verdict::Fits);
        assert_eq!(Verdict::of(1, 2000), Verdict::Doubtful);
        assert_eq!(Verdict::of(1, 20), Verdict::Doubtful);
        assert_eq!(Verdict::of(10, 4000), Verdict::Doubtful);
        assert_eq!(Verdict::of(200, 2000), Verdict::DoesNotFit);
        assert_eq!(Verdict::of(1, 0), Verdict::DoesNotFit);
    }
}
