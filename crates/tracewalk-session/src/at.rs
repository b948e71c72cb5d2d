//! A place in a recording, as a user names it.

use std::str::FromStr;

/// A step of a recording: an instruction, an event or a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The first one.
    First,
    /// The last one.
    Last,
    /// The one of this number, from 0.
    Step(u64),
}

impl At {
    /// The step's number among `steps`; at most the last one.
    #[must_use]
    pub const fn step(self, steps: u64) -> u64 {
        let last = steps.saturating_sub(1);
        match self {
            Self::First => 0,
            Self::Step(step) if step < last => step,
            Self::Last | Self::Step(_) => last,
        }
    }
}

impl FromStr for At {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "first" => Ok(Self::First),
            "last" => Ok(Self::Last),
            number => number.parse().map(Self::Step).map_err(|_| "expected first, last or a number"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_is_written() {
        assert_eq!("first".parse(), Ok(At::First));
        assert_eq!("last".parse(), Ok(At::Last));
        assert_eq!("18446744073709551615".parse(), Ok(At::Step(u64::MAX)));
        for wrong in ["", "-1", "First", "18446744073709551616"] {
            assert!(wrong.parse::<At>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_step_after_the_last_one_is_the_last_one() {
        let steps = |steps| [At::First, At::Step(3), At::Last].map(|at| at.step(steps));
        assert_eq!(steps(5), [0, 3, 4]);
        assert_eq!(steps(2), [0, 1, 1]);
        assert_eq!(steps(0), [0, 0, 0]);
    }
}
