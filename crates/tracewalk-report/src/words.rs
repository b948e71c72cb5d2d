//! Numbers in sentences and columns.

use std::cmp::Ordering;

use tracewalk_analysis::InDoubt;
use tracewalk_analysis::coverage::{Losses, Stale, Tally};

/// The note in a result of an incomplete capture.
pub(crate) const CUT: &str = "The trace was not decoded to its end.";

/// `1 packet`, `2 packets`, `2 stretches`, `2 discontinuities`.
#[must_use]
pub fn counted(count: u64, thing: &str) -> String {
    match (count, thing.strip_suffix('y')) {
        (1, _) => format!("1 {thing}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) if thing.ends_with("ch") => format!("{count} {thing}es"),
        (_, None) => format!("{count} {thing}s"),
    }
}

/// Why a source file is not, or may not be, the one that was compiled.
#[must_use]
pub const fn why_stale(reason: Stale) -> &'static str {
    match reason {
        Stale::Checksum => "its checksum differs from the one in the program",
        Stale::Shorter => "the program has line numbers beyond its end",
        Stale::Newer => "it is newer than the capture or the program",
    }
}

/// The treatment of instructions in doubt, in words; `None` if there are none.
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

/// The instructions of transactions that count nowhere, in words; `None` if there are none.
pub(crate) fn uncommitted(instructions: u64) -> Option<String> {
    let verb = if instructions == 1 { "was" } else { "were" };
    (instructions > 0).then(|| {
        format!(
            "{} of transactions that failed, or whose commit is not in the trace, {verb} left out",
            counted(instructions, "instruction")
        )
    })
}

/// What coverage could not follow, each loss in a few words: `trace malformed or lost 1 time (17 bytes)`.
pub(crate) fn not_followed(losses: &Losses) -> Vec<String> {
    let reasons = [
        ("trace malformed or lost", losses.trace_lost),
        ("address unknown", losses.address_unknown),
        ("contradiction of trace and image", losses.contradictions),
        ("code that cannot be decoded", losses.undecodable),
    ];
    let occurred = reasons.into_iter().filter(|(_, lost)| lost.stretches > 0);
    let mut parts = occurred
        .map(|(what, lost)| {
            format!("{what} {} ({})", counted(lost.stretches, "time"), counted(lost.bytes, "byte"))
        })
        .collect::<Vec<_>>();
    if losses.overflows > 0 {
        parts.push(format!("overflow of the trace unit {}", counted(losses.overflows, "time")));
    }
    if losses.cut_frame_bytes > 0 {
        parts.push(format!(
            "the end of the capture cuts off a frame ({})",
            counted(losses.cut_frame_bytes, "byte")
        ));
    }
    parts
}

/// The memory that execution went to and that no image holds: `0x20000000 to 0x20000fff 3 times`.
pub(crate) fn outside_images(losses: &Losses) -> String {
    let regions = losses.regions_without_image().into_iter();
    let regions = regions
        .map(|(start, end, times)| format!("0x{start:08x} to 0x{:08x} {}", end - 1, counted(times, "time")));
    regions.collect::<Vec<_>>().join(", ")
}

/// All that a trace lost: what coverage could not follow, code in no image, and execution in doubt. Empty if the trace shows all
/// that it should.
#[must_use]
pub fn losses_in_words(losses: &Losses) -> Vec<String> {
    let mut parts = not_followed(losses);
    if !losses.no_image.is_empty() {
        parts.push(format!("execution in no image, {}", outside_images(losses)));
    }
    parts.extend(in_doubt(losses.in_doubt));
    parts
}

/// `12.3%`, rounded to the nearest tenth; `-` if the whole is 0.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    match u128::from(whole) {
        0 => "-".to_owned(),
        whole => tenths((u128::from(part) * 2000 + whole) / (2 * whole)),
    }
}

/// `12.3%`, rounded down, so that 100.0% means complete; `None` if nothing can be judged.
pub(crate) fn percent_covered(tally: Tally) -> Option<String> {
    tally.permille().map(|permille| tenths(permille.into()))
}

fn tenths(permille: u128) -> String {
    format!("{}.{}%", permille / 10, permille % 10)
}

/// The order that people expect of names: `run-2` before `run-10`.
#[cfg_attr(not(feature = "full"), allow(dead_code, reason = "the page alone sorts names"))]
pub(crate) fn natural_order(a: &str, b: &str) -> Ordering {
    let (mut a_rest, mut b_rest) = (a, b);
    while let (Some(a_next), Some(b_next)) = (a_rest.chars().next(), b_rest.chars().next()) {
        let ((a_digits, a_after), (b_digits, b_after)) = (digits(a_rest), digits(b_rest));
        if a_digits.is_empty() || b_digits.is_empty() {
            if a_next != b_next {
                return a_next.cmp(&b_next);
            }
            (a_rest, b_rest) = (&a_rest[a_next.len_utf8()..], &b_rest[b_next.len_utf8()..]);
            continue;
        }
        let value = |digits: &str| digits.trim_start_matches('0').to_owned();
        let (a_value, b_value) = (value(a_digits), value(b_digits));
        match a_value.len().cmp(&b_value.len()).then(a_value.cmp(&b_value)) {
            Ordering::Equal => (a_rest, b_rest) = (a_after, b_after),
            order => return order,
        }
    }
    a_rest.len().cmp(&b_rest.len()).then(a.cmp(b))
}

/// The digits that a text begins with, and the rest.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plurals_are_regular() {
        assert_eq!(counted(1, "discontinuity"), "1 discontinuity");
        assert_eq!(counted(0, "discontinuity"), "0 discontinuities");
        assert_eq!(counted(2, "malformed stretch"), "2 malformed stretches");
        assert_eq!(counted(3, "byte"), "3 bytes");
    }

    #[test]
    fn numbers_in_names_are_compared_as_numbers() {
        let mut names = ["rev1-10", "rev1-2", "rev10-1", "rev2", "rev", "a", "rev1-02", "ä3"];
        names.sort_by(|a, b| natural_order(a, b));
        assert_eq!(names, ["a", "rev", "rev1-02", "rev1-2", "rev1-10", "rev2", "rev10-1", "ä3"]);
    }

    #[test]
    fn of_nothing_there_is_no_part() {
        assert_eq!(
            (percent(0, 0), percent(0, 3), percent(1, 3)),
            ("-".into(), "0.0%".into(), "33.3%".into())
        );
    }
}
