//! Whether the image is the program that was traced.
//!
//! A trace checks the image all the time: an instruction without a condition cannot fail one, and execution cannot jump if the
//! instruction is no branch. One contradiction may be a damaged byte or code that changed at run time. Frequent contradictions
//! mean that the image is another program, and that the flow between them is meaningless.

/// Whether the image is the traced program, by the contradictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No contradictions were found.
    Fits,
    /// A few contradictions were found, at most one for 200 blocks: the image is the right one, but the image or the trace is
    /// damaged.
    Doubtful,
    /// Contradictions are frequent: this is not the program that was traced.
    DoesNotFit,
}

/// The image does not fit if there is one contradiction for fewer ranges than this.
///
/// Another program, or another build of the same one, contradicts ETMv3 and PFT every 1 to 26 ranges (eight readings of five
/// captures), and every 92 if only the last of its functions had moved. The right image has no contradictions except for code that
/// was patched at run time.
const RANGES_FOR_EACH: u64 = 200;

impl Verdict {
    /// The verdict from the number of gaps with [`GapReason::Contradiction`](tracewalk::flow::GapReason) and the number of
    /// blocks. Without blocks nothing was compared: the verdict is [`Verdict::Fits`] for any image.
    #[must_use]
    pub const fn of(contradictions: u64, ranges: u64) -> Self {
        match contradictions {
            0 => Self::Fits,
            // A single contradiction is weak evidence about the other ranges, unless there are almost none.
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
