//! Regions → the decisions of a function.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::regions::{Region, RegionKind};
use super::{Condition, Decision, FaultKind, Place, SourceRange};

/// The deepest nesting of macros.
const DEEPEST: usize = 256;
/// The most pairs of a decision and a region.
const MOST_PAIRS: usize = 1 << 23;

/// The places of a region, from its own text out to the function's file.
struct Nested<'a> {
    region: &'a Region,
    /// The virtual file and the range.
    places: Vec<(usize, SourceRange)>,
}

impl Nested<'_> {
    fn is_in(&self, decision: &Region) -> bool {
        let place = self.places.iter().find(|(file, _)| *file == decision.file);
        place.is_some_and(|(_, range)| decision.range.start <= range.start && range.end <= decision.range.end)
    }

    /// The place in the function's file.
    fn outermost(&self) -> SourceRange {
        self.places.last().map_or(self.region.range, |(_, range)| *range)
    }
}

/// The decisions, in the order of the mapping.
pub(super) fn decisions(
    function: &Arc<str>,
    files: &Arc<[Arc<str>]>,
    regions: &[Region],
) -> Result<Vec<Decision>, FaultKind> {
    let mut expansions = vec![None; files.len()];
    for region in regions {
        if let RegionKind::Expansion(into) = region.kind
            && let Some(expansion) = expansions.get_mut(into)
        {
            *expansion = Some((region.file, region.range));
        }
    }
    let nested = |region| nest(region, &expansions);
    let of_kind = |is: fn(&RegionKind) -> bool| {
        regions.iter().filter(move |region| is(&region.kind)).map(nested).collect::<Result<Vec<_>, _>>()
    };
    let decisions = of_kind(|kind| matches!(kind, RegionKind::Decision { .. }))?;
    let conditions = of_kind(|kind| matches!(kind, RegionKind::Condition { .. }))?;
    if decisions.len().saturating_mul(regions.len()) > MOST_PAIRS {
        return Err(FaultKind::TooMany);
    }
    let mut members = vec![Vec::new(); decisions.len()];
    for condition in &conditions {
        let Some(owner) = innermost(condition, &decisions) else { continue };
        if let (RegionKind::Condition { id, if_true, if_false, is_constant }, Some(members)) =
            (condition.region.kind, members.get_mut(owner))
        {
            members.push(Condition { id, if_true, if_false, range: condition.outermost(), is_constant });
        }
    }
    let gaps = regions.iter().filter(|region| region.file == 0 && region.kind == RegionKind::Gap);
    let gaps = gaps.map(|gap| (gap.range.start, gap.range.end)).collect();
    let made = decisions.iter().zip(members).map(|(decision, mut conditions)| {
        // The sort is stable: the others keep the order of the mapping.
        conditions.sort_by_key(|condition| condition.id != 1);
        Decision {
            function: Arc::clone(function),
            files: Arc::clone(files),
            file_id: decision.region.file,
            own: decision.region.range,
            range: decision.outermost(),
            is_whole: is_whole(decision.region, &conditions),
            body: body(decision.outermost().end, regions, &gaps),
            conditions,
        }
    });
    Ok(made.collect())
}

fn nest<'a>(
    region: &'a Region,
    expansions: &[Option<(usize, SourceRange)>],
) -> Result<Nested<'a>, FaultKind> {
    let mut places = vec![(region.file, region.range)];
    let mut file = region.file;
    while let Some((outer, range)) = expansions.get(file).copied().flatten() {
        if places.len() > DEEPEST {
            return Err(FaultKind::TooDeep);
        }
        places.push((outer, range));
        file = outer;
    }
    Ok(Nested { region, places })
}

/// The index of the innermost decision that holds the condition.
fn innermost(condition: &Nested<'_>, decisions: &[Nested<'_>]) -> Option<usize> {
    let holders = decisions.iter().enumerate().filter(|(_, decision)| condition.is_in(decision.region));
    let inner = holders.reduce(|best, next| if next.1.is_in(best.1.region) { next } else { best });
    inner.map(|(index, _)| index)
}

/// Whether the ids are 1 to the stated number.
fn is_whole(decision: &Region, conditions: &[Condition]) -> bool {
    let mut ids = conditions.iter().map(|condition| condition.id).collect::<Vec<_>>();
    ids.sort_unstable();
    let stated = match decision.kind {
        RegionKind::Decision { conditions } => conditions,
        _ => 0,
    };
    let leads_inside = |next: u64| next <= stated;
    ids.into_iter().eq(1..=stated)
        && conditions
            .iter()
            .all(|condition| leads_inside(condition.if_true) && leads_inside(condition.if_false))
}

/// The region after the gap right after the decision; in a `for`, after the increment. `gaps` is the ends of gaps by their starts.
fn body(decision_end: Place, regions: &[Region], gaps: &BTreeMap<Place, Place>) -> Option<SourceRange> {
    /// The most characters between a decision and the gap.
    const NEAR: u32 = 4;
    let last = |from: Place| Place { column: from.column.saturating_add(NEAR), ..from };
    let gap = |from: Place| gaps.range(from..=last(from)).next().map(|(_, end)| *end);
    let code = || regions.iter().filter(|region| region.file == 0 && region.kind == RegionKind::Code);
    let increment = code().map(|region| region.range).find(|SourceRange { start, end }| {
        let is_next = decision_end < *start && *start <= last(decision_end) && end.line == decision_end.line;
        is_next && gap(*end).is_some()
    });
    let start = gap(increment.map_or(decision_end, |range| range.end))?;
    code().map(|region| region.range).find(|range| range.start == start)
}
