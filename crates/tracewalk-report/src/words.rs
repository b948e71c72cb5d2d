//! Numbers in sentences and columns.

use tracewalk_analysis::InDoubt;
use tracewalk_analysis::coverage::Tally;

/// `1 packet`, `2 packets`: the number of things, by the names of one and of several.
#[must_use]
pub fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// What became of instructions in doubt; `None` if there are none.
pub(crate) fn in_doubt(InDoubt { left_out, counted }: InDoubt) -> Option<String> {
    let became = |count, became| match count {
        1 => format!("1 instruction in doubt was {became}"),
        _ => format!("{count} instructions in doubt were {became}"),
    };
    match (left_out, counted) {
        (0, 0) => None,
        (_, 0) => Some(became(left_out, "left out")),
        (0, _) => Some(became(counted, "counted")),
        _ => Some(format!("{}, {counted} were counted", became(left_out, "left out"))),
    }
}

/// `12.3%`, rounded to the next tenth; of nothing it is `0.0%`.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    let permille = match u128::from(whole) {
        0 => 0,
        whole => (u128::from(part) * 2000 + whole) / (2 * whole),
    };
    tenths(permille)
}

/// `12.3%`, rounded down, so that 100.0% is all; `None` where nothing can be judged.
pub(crate) fn percent_covered(tally: Tally) -> Option<String> {
    tally.permille().map(|permille| tenths(permille.into()))
}

fn tenths(permille: u128) -> String {
    format!("{}.{}%", permille / 10, permille % 10)
}
