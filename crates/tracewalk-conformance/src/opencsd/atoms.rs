//! The ETMv3 packet that contains each instruction's atom.
//!
//! A block names only the packet of its last instruction. In a loop, nothing but the packets distinguishes
//! one iteration from the next, so two readings can be aligned only if the places of all instructions are
//! known.

use tracewalk::ids::{Address, Isa, Location};

use super::model::{Packet, Value};

/// The atoms of an ETMv3 trace, and how many of them are used up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Atoms {
    /// The packet of each atom.
    places: Vec<u64>,
    /// For each packet with an address, the number of atoms before it, and whether the packet is a branch.
    addresses: Vec<(usize, bool)>,
    /// Whether a wide Thumb instruction has two atoms.
    pairs: bool,
    /// The number of atoms that are used up.
    used: usize,
    /// Whether flow was lost after the used atoms; it continues at an address.
    lost: bool,
}

impl Atoms {
    /// The atoms of these packets; with `pairs`, each wide Thumb instruction has two.
    #[must_use]
    pub(super) fn new(packets: &[Packet], pairs: bool) -> Self {
        let (mut places, mut addresses) = (Vec::new(), Vec::new());
        for packet in packets {
            if ["branch", "i_sync"].contains(&packet.kind) {
                addresses.push((places.len(), packet.kind == "branch"));
            }
            if let Some(Value::Text(atoms)) = packet.fields.get("atoms") {
                let count = atoms.bytes().filter(|atom| matches!(atom, b'E' | b'N')).count();
                places.extend(std::iter::repeat_n(packet.at, count));
            }
        }
        Self { places, addresses, pairs, used: 0, lost: false }
    }

    /// Skips the atoms before `at`, which remain unused.
    pub(super) fn skip_to(&mut self, at: u64) {
        self.used = self.used.max(self.places.partition_point(|place| *place < at));
    }

    /// Skips the atoms up to the next packet with an address.
    pub(super) fn lose(&mut self) {
        self.lost = true;
    }

    /// The places of consecutive instructions up to `after`. The packet at `last` shows that the last one
    /// completed: its atom is in that packet, or in the packet of atoms before it.
    pub(super) fn take(&mut self, instructions: &[Location], after: Address, last: u64) -> Vec<u64> {
        let ends = instructions.iter().skip(1).map(|next| next.address).chain([after]);
        let is_pair = |at: &Location, end: Address| {
            self.pairs && at.isa != Isa::A32 && end.get().wrapping_sub(at.address.get()) == 4
        };
        let count = |(at, end)| if is_pair(at, end) { 2 } else { 1 };
        let counts = instructions.iter().zip(ends).map(count).collect::<Vec<_>>();
        self.places(&counts, last)
    }

    /// The places of instructions with these numbers of atoms.
    fn places(&mut self, counts: &[usize], last: u64) -> Vec<u64> {
        let first_there = self.places.partition_point(|place| *place < last);
        let after = self.places.partition_point(|place| *place <= last);
        let all = counts.iter().sum::<usize>();
        // After a loss, flow continues after a packet with an address, and no branch packet is within a
        // block. If nothing fits, the nearest atom is good enough.
        let later = self.addresses.partition_point(|(address, _)| *address <= self.used);
        let later = self.addresses.get(later..).unwrap_or_default();
        let is_at_address = self.addresses.iter().any(|(address, _)| *address == self.used);
        let lost = std::mem::take(&mut self.lost) && !is_at_address;
        let here = Some(self.used).filter(|_| !lost);
        let mut starts = here.into_iter().chain(later.iter().map(|(address, _)| *address)).chain([self.used]);
        let fits = |start: &usize| {
            let end = start + all;
            let within = later.iter().skip_while(|(at, _)| at <= start).take_while(|(at, _)| *at < end);
            (first_there..=after).contains(&end) && !within.into_iter().any(|(_, is_branch)| *is_branch)
        };
        let end = starts.find(fits).map(|start| start + all);
        let end = end.unwrap_or_else(|| (self.used + all).clamp(first_there, after));
        let mut rest = all;
        let mut places = Vec::new();
        for count in counts {
            rest -= count;
            let index = end.checked_sub(rest + 1).filter(|index| *index >= self.used);
            let place = index.or(Some(self.used)).and_then(|index| self.places.get(index));
            places.push(place.copied().unwrap_or(last).min(last));
        }
        self.used = self.used.max(end);
        places
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn packets(atoms: &[(u64, &str)]) -> Vec<Packet> {
        let packet = |&(at, atoms): &(u64, &str)| Packet {
            at,
            kind: "p_header",
            fields: BTreeMap::from([("atoms", Value::Text(atoms.to_owned()))]),
        };
        atoms.iter().map(packet).collect()
    }

    #[test]
    fn each_instruction_stands_in_the_packet_of_its_atom() {
        let mut atoms = Atoms::new(&packets(&[(6, "EE"), (7, "WEWN"), (9, "E")]), false);
        assert_eq!(atoms.places(&[1, 1, 1], 7), [6, 6, 7]);
        assert_eq!(atoms.places(&[1, 1], 9), [7, 9]);
    }

    #[test]
    fn the_next_packet_may_state_that_an_instruction_completed() {
        let mut atoms = Atoms::new(&packets(&[(6, "EE"), (7, "EE"), (9, "E")]), false);
        assert_eq!(atoms.places(&[1, 1], 7), [6, 6]);
        assert_eq!(atoms.places(&[1, 1, 1], 9), [7, 7, 9]);
    }

    #[test]
    fn atoms_of_which_nothing_was_made_are_passed_over() {
        let mut trace = packets(&[(6, "EE"), (7, "EEEE"), (8, ""), (9, "EE"), (10, "E")]);
        trace[2].kind = "branch";
        let mut atoms = Atoms::new(&trace, false);
        assert_eq!(atoms.places(&[1], 6), [6]);
        assert_eq!(atoms.places(&[1, 1, 1], 10), [9, 9, 10], "after the address");
        let mut atoms = Atoms::new(&trace, false);
        assert_eq!(atoms.places(&[1], 6), [6]);
        atoms.skip_to(9);
        assert_eq!(atoms.places(&[1, 1], 9), [9, 9]);
    }

    #[test]
    fn flow_that_was_lost_continues_after_an_address() {
        let mut trace = packets(&[(6, "EEN"), (9, ""), (15, "EEE"), (16, "EE")]);
        trace[1].kind = "i_sync";
        let mut atoms = Atoms::new(&trace, false);
        assert_eq!(atoms.places(&[1, 1], 6), [6, 6]);
        atoms.lose();
        assert_eq!(atoms.places(&[1, 1, 1], 15), [15, 15, 15], "an atom that failed has no instruction");
        assert_eq!(atoms.places(&[1], 16), [16]);
    }

    #[test]
    fn an_instruction_without_an_atom_stands_where_its_block_does() {
        let mut atoms = Atoms::new(&packets(&[(6, "EE"), (20, "E")]), false);
        assert_eq!(atoms.places(&[1, 1], 6), [6, 6]);
        assert_eq!(atoms.places(&[1], 12), [12], "an I-sync with a load in progress");
        assert_eq!(atoms.places(&[1], 20), [20]);
    }
}
