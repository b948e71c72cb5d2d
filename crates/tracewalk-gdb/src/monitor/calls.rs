//! The calls that a function has made so far.

use std::collections::VecDeque;
use std::fmt::Write as _;

use super::text;
use crate::core::Core;

/// The most calls that are printed: the last ones.
const MOST: usize = 100;

/// The most steps that are followed.
const LONGEST: u64 = 1 << 22;

pub(super) fn calls(core: &mut Core<'_>) -> String {
    let Some((depth, began)) = core.state().and_then(|state| {
        let innermost = state.levels.last()?;
        Some((state.levels.len(), innermost.frame.mark.began))
    }) else {
        return String::new();
    };
    let now = core.step_number();
    let from = began.max(now.saturating_sub(LONGEST));
    let mut found = VecDeque::new();
    core.each_call(from, now, depth, &mut |step, at| {
        if found.len() == MOST {
            found.pop_front();
        }
        found.push_back((step, at));
    });
    let mut out = String::new();
    if from > began {
        let _ = writeln!(out, "from step {from} on; the function began at step {began}");
    }
    if found.is_empty() {
        out.push_str("no calls\n");
    }
    for (step, at) in found {
        let _ = writeln!(out, "step {step}  {}", text::named(core.seen(), at));
    }
    out
}
