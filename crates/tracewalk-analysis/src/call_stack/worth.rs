//! Decides whether learning pays.

/// Compares what was learned with how often it was used. If learning does not pay, it pauses for a while.
#[derive(Debug)]
pub(super) struct Worth {
    /// The number of effects after which is decided.
    trial: u64,
    /// Learning an effect costs as much as this number of hits saves.
    worth: u64,
    /// The effects that were learned, and the hits, since the last decision.
    learned: u64,
    pub(super) found: u64,
    /// The remaining length of the pause, and the next one's, in look-ups.
    asleep: u64,
    sleep: u64,
}

/// The first pause, and the longest.
const SLEEP: u64 = 1 << 18;
const LONGEST_SLEEP: u64 = 1 << 22;

impl Worth {
    /// Decides each time that `trial` effects were learned. Each has to be applied `worth` times.
    pub(super) const fn of(trial: u64, worth: u64) -> Self {
        Self { trial, worth, learned: 0, found: 0, asleep: 0, sleep: SLEEP }
    }

    /// An effect was learned.
    pub(super) fn learn(&mut self) {
        self.learned += 1;
        if self.learned < self.trial {
            return;
        }
        if self.found < self.worth * self.learned {
            self.asleep = self.sleep;
            self.sleep = (self.sleep * 2).min(LONGEST_SLEEP);
        } else {
            self.sleep = SLEEP;
        }
        (self.learned, self.found) = (0, 0);
    }

    /// Whether effects are learned at present.
    pub(super) const fn pays(&self) -> bool {
        self.asleep == 0
    }

    /// Whether this look-up is skipped.
    #[inline]
    pub(super) const fn skips(&mut self) -> bool {
        let skips = self.asleep > 0;
        self.asleep = self.asleep.saturating_sub(1);
        skips
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seldom_used_is_not_learned_for_a_while() {
        let mut worth = Worth::of(10, 4);
        for pause in [SLEEP, SLEEP * 2] {
            (0..10).for_each(|_| worth.learn());
            for _ in 0..pause {
                assert!(worth.skips());
            }
            assert!(!worth.skips());
        }
        worth.found = 40;
        (0..10).for_each(|_| worth.learn());
        assert!(!worth.skips());
    }
}
