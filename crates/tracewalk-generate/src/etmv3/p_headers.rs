//! Instructions → P-headers (IHI 0014Q, 7.3.1).

use tracewalk::protocol::etmv3::PHeader;

/// An atom that is still to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pending {
    /// W atoms before it; none without cycle accuracy.
    pub(super) cycles: u32,
    /// E or N.
    pub(super) passed: bool,
}

/// The most W atoms in one P-header.
const MOST_WAITS: u32 = 8;

/// The P-headers for `atoms` without cycle accuracy.
///
/// Format 1 holds a run of E atoms and an N; format 2 holds any two atoms, and is used if an N comes first.
pub(super) fn plain(atoms: &[Pending]) -> Vec<PHeader> {
    let mut headers = Vec::new();
    let mut rest = atoms;
    while let Some(first) = rest.first() {
        if let (false, Some(second)) = (first.passed, rest.get(1)) {
            headers.extend(format_2(*first, *second, false));
            rest = rest.get(2..).unwrap_or_default();
            continue;
        }
        let executed = rest.iter().take(15).take_while(|atom| atom.passed).count();
        let failed = usize::from(rest.get(executed).is_some_and(|atom| !atom.passed));
        headers.extend(format_1(executed, failed, false));
        rest = rest.get(executed + failed..).unwrap_or_default();
    }
    headers
}

/// The P-headers for `atoms` in cycle-accurate mode.
pub(super) fn timed(atoms: &[Pending]) -> Vec<PHeader> {
    let mut headers = Vec::new();
    let mut rest = atoms.to_vec();
    while let Some(&first) = rest.first() {
        let consumed = match first {
            Pending { cycles: 0, passed } => {
                headers.extend(PHeader::new(0b1001_0010 | u8::from(!passed) << 2, true));
                1
            }
            Pending { cycles: 1, .. } => one_cycle_each(&rest, &mut headers),
            Pending { cycles, passed } => {
                // Format 3 ends in an E or in nothing: the last cycle of an N goes into format 1 together
                // with the N.
                let waits = if passed { cycles } else { cycles - 1 };
                let completes = passed && waits <= MOST_WAITS;
                let waits = waits.min(MOST_WAITS);
                headers.extend(format_3(waits, completes));
                if let Some(first) = rest.first_mut() {
                    first.cycles -= waits;
                }
                usize::from(completes)
            }
        };
        rest.drain(..consumed);
    }
    headers
}

/// P-headers for cycles in which nothing completes.
pub(super) fn waits(cycles: u32) -> Vec<PHeader> {
    let full = (0..cycles / MOST_WAITS).filter_map(|_| format_3(MOST_WAITS, false));
    full.chain(format_3(cycles % MOST_WAITS, false)).collect()
}

/// Formats 1 and 2; returns how many atoms they took.
fn one_cycle_each(atoms: &[Pending], headers: &mut Vec<PHeader>) -> usize {
    if let [first, second @ Pending { cycles: 0, .. }, ..] = atoms {
        headers.extend(format_2(*first, *second, true));
        return 2;
    }
    let single = |index: usize| {
        let alone = atoms.get(index + 1).is_none_or(|next| next.cycles != 0);
        atoms.get(index).filter(|atom| atom.cycles == 1 && alone)
    };
    let executed = (0..7).take_while(|&index| single(index).is_some_and(|atom| atom.passed)).count();
    let failed = usize::from(single(executed).is_some_and(|atom| !atom.passed));
    headers.extend(format_1(executed, failed, true));
    executed + failed
}

fn format_1(executed: usize, failed: usize, cycle_accurate: bool) -> Option<PHeader> {
    let executed = u8::try_from(executed).ok()?;
    let failed = u8::try_from(failed).ok()?;
    PHeader::new(0b1000_0000 | failed << 6 | executed << 2, cycle_accurate)
}

fn format_2(first: Pending, second: Pending, cycle_accurate: bool) -> Option<PHeader> {
    PHeader::new(0b1000_0010 | u8::from(!first.passed) << 3 | u8::from(!second.passed) << 2, cycle_accurate)
}

/// `None` for no cycles at all.
fn format_3(waits: u32, completes: bool) -> Option<PHeader> {
    let field = u8::try_from(waits.checked_sub(1)?).ok()?;
    PHeader::new(0b1010_0000 | u8::from(completes) << 6 | field << 2, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracewalk::protocol::etmv3::Atom;

    /// Every sixth sequence of up to five atoms with up to ten cycles; all of them would be too many.
    fn sequences() -> impl Iterator<Item = Vec<Pending>> {
        let cycles = [0, 1, 2, 8, 9, 17];
        (0..12_u32.pow(5)).step_by(6).map(move |mut number| {
            let mut sequence = Vec::new();
            for _ in 0..5 {
                let cycles = cycles[(number / 2 % 6) as usize];
                sequence.push(Pending { cycles, passed: number % 2 == 0 });
                number /= 12;
            }
            sequence
        })
    }

    fn read_back(headers: &[PHeader]) -> Vec<Pending> {
        let mut cycles = 0;
        let mut atoms = Vec::new();
        for atom in headers.iter().flat_map(|header| header.atoms()) {
            match atom {
                Atom::W => cycles += 1,
                Atom::E | Atom::N => {
                    atoms.push(Pending { cycles: std::mem::take(&mut cycles), passed: atom == Atom::E });
                }
            }
        }
        assert_eq!(cycles, 0);
        atoms
    }

    #[test]
    fn headers_hold_the_atoms_and_their_cycles() {
        for sequence in sequences() {
            assert_eq!(read_back(&timed(&sequence)), sequence);
            let untimed = sequence.iter().map(|atom| Pending { cycles: 0, ..*atom }).collect::<Vec<_>>();
            assert_eq!(read_back(&plain(&untimed)), untimed);
        }
    }

    #[test]
    fn waits_are_as_many_as_asked_for() {
        for cycles in 0..40 {
            let atoms = waits(cycles).iter().flat_map(|header| header.atoms()).collect::<Vec<_>>();
            assert_eq!(atoms, vec![Atom::W; cycles as usize]);
        }
    }
}
