//! Measures the length of one bit from the edges.
//!
//! Three steps, each based on the previous one:
//!
//! ```text
//! 1. the shortest pulses that are not disturbances  → rough candidates
//! 2. around each, the unit that the distances between edges in the same direction are nearest to multiples of
//! 3. least squares over those distances             → a unit that is exact to far below a sample
//! ```
//!
//! This module does not choose between candidates: decoding with each shows which one gives errors.

use super::changes::Line;

/// The most edges that are examined.
pub(super) const EDGES: usize = 20_000;

/// The most candidates; the shortest pulses may be disturbances.
const CANDIDATES: usize = 5;

/// The longest distance that counts, in units: a UART's byte takes 10, and the time between bytes is
/// arbitrary.
const LONGEST: f64 = 10.4;

/// The possible units of the line, in ticks.
pub(super) fn candidates(line: &Line) -> Vec<f64> {
    let mut pulses = line.pulses().filter(|pulse| *pulse > 0.0).collect::<Vec<_>>();
    pulses.sort_by(f64::total_cmp);
    // Crosstalk makes a few pulses of any width; pulses of one bit are frequent.
    let enough = (pulses.len() / 500).max(2);
    let mut rest = pulses.as_slice();
    let mut found = Vec::new();
    while let (Some(&shortest), true) = (rest.first(), found.len() < CANDIDATES) {
        let (group, longer) = rest.split_at(rest.partition_point(|pulse| *pulse <= shortest * 1.5));
        if group.len() >= enough {
            let mean = group.iter().sum::<f64>() / group.len() as f64;
            found.push(refine(line, nearest_multiples(line, mean)));
        }
        rest = longer;
    }
    found
}

/// The unit within a fifth of `rough` that best divides the distances into whole multiples.
fn nearest_multiples(line: &Line, rough: f64) -> f64 {
    let periods = line.periods().filter(|period| *period <= rough * LONGEST).collect::<Vec<_>>();
    let misfit = |unit: f64| {
        let misfits = periods.iter().map(|period| (period / unit - (period / unit).round()).abs());
        misfits.sum::<f64>()
    };
    // From long to short: if two units fit equally well, the longer one is right, because all multiples of a
    // unit also fit its fractions.
    let units = (80..=125).rev().map(|percent| rough * f64::from(percent) / 100.0);
    let fits = units.map(|unit| (unit, misfit(unit)));
    fits.min_by(|(_, a), (_, b)| a.total_cmp(b)).map_or(rough, |(unit, _)| unit)
}

/// The unit near `rough` that fits best, by least squares.
pub(super) fn refine(line: &Line, rough: f64) -> f64 {
    let mut unit = rough;
    for _ in 0..4 {
        let (mut products, mut squares) = (0.0, 0.0);
        for period in line.periods().filter(|period| *period <= unit * LONGEST) {
            let count = (period / unit).round();
            products += period * count;
            squares += count * count;
        }
        let better = products / squares;
        // There is no period at all, or the search diverges.
        if !better.is_finite() || (better / rough - 1.0).abs() > 0.05 {
            break;
        }
        unit = better;
    }
    unit
}
