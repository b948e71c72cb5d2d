//! Whether a store may have changed bytes of another class: not if its address is out of reach, or if the bytes have another value.

use super::{Access, Group, MOST_STORES, Memory, NONE, bits_of};
use crate::bits::{Bits, Width};
use crate::terms::{Terms, ZERO};

impl Memory {
    /// Whether no store since the origin of these bytes, or since the start, has changed them. `bits` is what is known of their value.
    pub(super) fn is_intact(&self, group: Group, bits: Bits, terms: &Terms) -> bool {
        let since = if group.origin == NONE { 0 } else { group.origin >> 3 };
        if group.place.root == ZERO {
            let after = self.unknown_stores.partition_point(|&store| store <= since && group.origin != NONE);
            let later = &self.unknown_stores[after..];
            return later.len() <= MOST_STORES
                && later.iter().rev().all(|&store| !self.may_change(store, group, bits, terms));
        }
        let mut index = self.stores.len();
        let mut compared = 0;
        while index > 0 {
            let store = self.stores[index - 1];
            if store <= since {
                return true;
            }
            let noted = &self.accesses[store as usize];
            if noted.root == group.place.root {
                index = if noted.other == NONE { 0 } else { noted.other as usize + 1 };
                continue;
            }
            compared += 1;
            if compared > MOST_STORES || self.may_change(store, group, bits, terms) {
                return false;
            }
            index -= 1;
        }
        true
    }

    /// Whether a store may have changed bytes of another class.
    fn may_change(&self, store: u32, group: Group, bits: Bits, terms: &Terms) -> bool {
        let Access { address, bytes, value, .. } = self.accesses[store as usize].access;
        let (place, target) = (terms.place(address), group.place);
        let (bytes, count) = (u64::from(bytes), u64::from(group.count));
        if place.root == target.root {
            let distance = target.offset.wrapping_sub(place.offset) & address.width.mask();
            let back = place.offset.wrapping_sub(target.offset) & address.width.mask();
            return distance < bytes || back < count;
        }
        // The bytes that the store would have left.
        let stored = terms.bits(value);
        if let (Some(addresses), ZERO) = (terms.candidates(place), target.root) {
            return addresses.into_iter().any(|(_, from)| {
                let (before, after) = (target.offset.wrapping_sub(from), from.wrapping_sub(target.offset));
                let overlap = match (before < bytes, after < count) {
                    (true, _) => Some((before, 0)),
                    (false, true) => Some((0, after)),
                    (false, false) => None,
                };
                overlap.is_some_and(|(before, after)| {
                    let length = bits_of((bytes - before).min(count - after));
                    bits.field(bits_of(after), length).may_equal(stored.field(bits_of(before), length))
                })
            });
        }
        let (least, greatest) = terms.bounds(place);
        let (low, high) = terms.bounds(target);
        if greatest.saturating_add(bytes) <= low || high.saturating_add(count) <= least {
            return false;
        }
        // At each distance of the store's address from the bytes' one.
        let (from, to) = (terms.bits_at(place), terms.bits_at(target));
        (1..bytes + count).any(|step| {
            let before = step.saturating_sub(count);
            let after = count.saturating_sub(step);
            // The store begins `before` bytes before the first byte, or `after` bytes after it.
            let reaches = after_or_before(from, to, step, count, address.width);
            let length = (bytes - before).min(count - after);
            let there = bits.field(bits_of(after), bits_of(length));
            let left = stored.field(bits_of(before), bits_of(length));
            reaches && there.may_equal(left)
        })
    }
}

/// Whether a store's address can be the target's plus `count - step`.
fn after_or_before(from: Bits, to: Bits, step: u64, count: u64, width: Width) -> bool {
    from.may_equal(to.plus(count.wrapping_sub(step), width))
}
