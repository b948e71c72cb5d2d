//! What loads found: which stores, loads and constants each byte came from.
//!
//! ```text
//! for each access in the order of the path
//!     a store at class + offset    its bytes come from it; it may have changed bytes of other classes
//!     a load at class + offset     for each byte: what the byte came from, unless a store of another class since then
//!                                  may have changed it; then the load is what the byte comes from
//! ```
//!
//! Offsets in one class are compared exactly. A store of another class changes a byte unless its address is out of reach,
//! or the byte's value shows that it did not: the last store that had changed it would have left its own bytes.

mod changes;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use crate::bits::{Bits, Width};
use crate::image::{Byte, Contents, Image};
use crate::relation::Operation;
use crate::terms::{Place, Term, Terms, ZERO};

/// An access to memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) address: Term,
    /// The value, with zeros above the bytes of a load.
    pub(crate) value: Term,
    pub(crate) bytes: u8,
    pub(crate) kind: Kind,
    /// The access is made only if this is 1.
    pub(crate) guard: Option<Term>,
    /// The access uses the stack pointer, so the address is memory.
    pub(crate) is_of_stack: bool,
    /// The access loads a constant that is part of the code.
    pub(crate) is_literal: bool,
}

/// The kinds of accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Load,
    Store,
    /// A store that may have failed.
    StoreOrNot,
    /// Anything may have been stored.
    Anything,
}

/// An access in the list, with what the walk noted.
#[derive(Clone, Copy, Debug)]
struct Noted {
    access: Access,
    /// The bytes of a load whose origin was stated.
    linked: u8,
    /// The class of a store's address when the walk passed it.
    root: u32,
    /// The last store before this one whose class was another.
    other: u32,
}

/// What a byte came from: an access's number times 8, plus the byte in it.
type Origin = u32;

/// No access: the byte is as at the start.
const NONE: u32 = u32::MAX;
/// A store that may not have been made. Not next to [`NONE`], so that it never looks like the byte before.
const UNSURE: Origin = u32::MAX - 64;

/// Whether an origin is an access.
const fn is_access(origin: Origin) -> bool {
    origin < UNSURE
}

/// The most stores that are compared with a byte before it counts as changed.
const MOST_STORES: usize = 1_000;

/// Bytes of one origin.
#[derive(Clone, Copy, Debug)]
struct Group {
    place: Place,
    /// The first byte's number in the load.
    first: u8,
    count: u8,
    origin: Origin,
}

/// The accesses, and what each byte came from.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    accesses: Vec<Noted>,
    /// The origins of eight bytes, by class and offset.
    cells: HashMap<(u32, u64), [Origin; 8], FxBuildHasher>,
    /// The stores that may change memory.
    stores: Vec<u32>,
    /// Those of them whose address is unknown.
    unknown_stores: Vec<u32>,
    /// Whether anything may have been stored since the start.
    start_is_forgotten: bool,
}

impl Memory {
    pub(crate) fn new() -> Self {
        Self {
            accesses: Vec::new(),
            cells: HashMap::default(),
            stores: Vec::new(),
            unknown_stores: Vec::new(),
            start_is_forgotten: false,
        }
    }

    /// Appends an access and passes it.
    pub(crate) fn push(&mut self, access: Access, terms: &mut Terms, image: &Image) {
        if access.kind != Kind::Anything {
            terms.is_in_memory(access.address);
            terms.is_in_memory(access.value);
            if let Some(guard) = access.guard {
                terms.is_in_memory(guard);
            }
        }
        let number = self.accesses.len();
        self.accesses.push(Noted { access, linked: 0, root: ZERO, other: NONE });
        self.pass(number, terms, image);
    }

    /// Passes all accesses again, with what is known now.
    pub(crate) fn walk(&mut self, terms: &mut Terms, image: &Image) {
        self.cells.clear();
        self.stores.clear();
        self.unknown_stores.clear();
        self.start_is_forgotten = false;
        for number in 0..self.accesses.len() {
            self.pass(number, terms, image);
        }
    }

    /// The number of accesses.
    pub(crate) const fn len(&self) -> usize {
        self.accesses.len()
    }

    /// Passes the first accesses again.
    pub(crate) fn walk_to(&mut self, count: usize, terms: &mut Terms, image: &Image) {
        self.accesses.truncate(count);
        self.walk(terms, image);
    }

    /// States that memory at the end has these bytes.
    pub(crate) fn end(&self, terms: &mut Terms, image: &Image, byte: impl Fn(u64) -> Option<u8>) {
        for (address, origins) in self.known_cells() {
            let mut index = 0;
            while index < 8 {
                let (origin, first) = (origins[index], index);
                index += 1;
                let place = Place { root: ZERO, offset: address.wrapping_add(first as u64) };
                let Some(value) = byte(place.offset) else { continue };
                if !is_access(origin)
                    || image.at(place.offset) == Contents::Other && !self.is_of_stack(origin)
                {
                    continue;
                }
                let (mut bytes, mut count) = (u64::from(value), 1_u8);
                while index < 8 && origins[index] == origin + u32::from(count) {
                    let Some(value) = byte(address.wrapping_add(index as u64)) else { break };
                    bytes |= u64::from(value) << (8 * count);
                    count += 1;
                    index += 1;
                }
                let group = Group { place, first: 0, count, origin };
                let bits = Bits::constant(bytes);
                if self.is_intact(group, bits, terms) {
                    let from = 8 * (origin & 7);
                    let value = self.accesses[(origin >> 3) as usize].access.value;
                    terms.learn(value, bits.placed(from, 8 * u32::from(count), Width::Double));
                }
            }
        }
    }

    /// The bytes of memory with bits that are known at the end, by address.
    pub(crate) fn known_bytes(&self, terms: &Terms, image: &Image) -> Vec<(u64, Byte)> {
        let mut known = Vec::new();
        for (address, origins) in self.known_cells() {
            for (index, &origin) in origins.iter().enumerate() {
                let place = Place { root: ZERO, offset: address.wrapping_add(index as u64) };
                if !is_access(origin) || matches!(image.at(place.offset), Contents::Constant(_)) {
                    continue;
                }
                let value = self.accesses[(origin >> 3) as usize].access.value;
                let bits = terms.bits(value).field(8 * (origin & 7), 8);
                let group = Group { place, first: 0, count: 1, origin };
                let byte = Byte::of(bits);
                if byte.known != 0 && self.is_intact(group, bits, terms) {
                    known.push((place.offset, byte));
                }
            }
        }
        known
    }

    /// Whether memory at the start of the path may have changed by the end at this address.
    pub(crate) fn is_as_at_start(&self, address: u64, byte: Byte, terms: &Terms) -> bool {
        let place = Place { root: ZERO, offset: address };
        let cell = self.cells.get(&(ZERO, address >> 3));
        let is_stored = cell.is_some_and(|cell| cell[(address & 7) as usize] != NONE);
        let group = Group { place, first: 0, count: 1, origin: NONE };
        !is_stored && !self.start_is_forgotten && self.is_intact(group, byte.bits(), terms)
    }

    fn known_cells(&self) -> impl Iterator<Item = (u64, [Origin; 8])> {
        let known = self.cells.iter().filter(|((root, _), _)| *root == ZERO);
        known.map(|((_, number), origins)| (number << 3, *origins))
    }

    fn is_of_stack(&self, origin: Origin) -> bool {
        self.accesses[(origin >> 3) as usize].access.is_of_stack
    }

    fn pass(&mut self, number: usize, terms: &mut Terms, image: &Image) {
        let Access { address, kind, guard, .. } = self.accesses[number].access;
        if kind == Kind::Anything {
            self.cells.clear();
            self.stores.clear();
            self.unknown_stores.clear();
            self.start_is_forgotten = true;
            return;
        }
        let guard = guard.map_or(Some(1), |guard| terms.value(guard));
        if guard == Some(0) {
            return;
        }
        let place = terms.place(address);
        match kind {
            // A load that may not be made tells nothing.
            Kind::Load if guard.is_none() => {}
            Kind::Load => self.load(number, place, terms, image),
            _ => self.store(number, place, guard.is_some() && kind == Kind::Store, terms, image),
        }
    }

    fn store(&mut self, number: usize, place: Place, is_certain: bool, terms: &Terms, image: &Image) {
        let access = self.accesses[number].access;
        let is_known = place.root == ZERO;
        if is_known && !self.is_memory(place.offset, access, image) {
            return;
        }
        let entry = u32::try_from(number).expect("a window has fewer accesses");
        let last = self.stores.last().map(|&last| (last, self.accesses[last as usize]));
        let other = match last {
            Some((_, noted)) if noted.root == place.root => noted.other,
            Some(_) => u32::try_from(self.stores.len() - 1).expect("fewer stores than accesses"),
            None => NONE,
        };
        (self.accesses[number].root, self.accesses[number].other) = (place.root, other);
        self.stores.push(entry);
        if !is_known {
            self.unknown_stores.push(entry);
        }
        if is_known || terms.is_stack(place.root) {
            for byte in 0..access.bytes {
                let origin = if is_certain { entry << 3 | u32::from(byte) } else { UNSURE };
                self.set(place, byte, origin, access);
            }
        }
    }

    /// Whether an address is memory that can change.
    fn is_memory(&self, address: u64, access: Access, image: &Image) -> bool {
        match image.at(address) {
            Contents::Constant(_) => false,
            Contents::Memory(_) => true,
            Contents::Other => access.is_of_stack || self.cells.contains_key(&(ZERO, address >> 3)),
        }
    }

    fn set(&mut self, place: Place, byte: u8, origin: Origin, access: Access) {
        let offset = place.offset.wrapping_add(byte.into()) & access.address.width.mask();
        let cell = self.cells.entry((place.root, offset >> 3)).or_insert([NONE; 8]);
        cell[(offset & 7) as usize] = origin;
    }

    fn origin(&self, place: Place, byte: u8, access: Access) -> Origin {
        let offset = place.offset.wrapping_add(byte.into()) & access.address.width.mask();
        self.cells.get(&(place.root, offset >> 3)).map_or(NONE, |cell| cell[(offset & 7) as usize])
    }

    fn load(&mut self, number: usize, place: Place, terms: &mut Terms, image: &Image) {
        let Noted { access, linked, .. } = self.accesses[number];
        let is_known = place.root == ZERO;
        if is_known && self.load_constant(number, place, terms, image) {
            return;
        }
        if !is_known {
            self.load_candidates(number, place, terms, image);
        }
        let is_memory =
            if is_known { self.is_memory(place.offset, access, image) } else { terms.is_stack(place.root) };
        if !is_memory {
            return;
        }
        let mut first = 0;
        while first < access.bytes {
            let origin = self.origin(place, first, access);
            let mut count = 1;
            while first + count < access.bytes
                && (origin == NONE && self.origin(place, first + count, access) == NONE
                    || origin != NONE
                        && self.origin(place, first + count, access) == origin + u32::from(count))
            {
                count += 1;
            }
            let start = Place { offset: place.offset.wrapping_add(first.into()), ..place };
            let group = Group { place: start, first, count, origin };
            let bits = terms.bits(access.value).field(8 * u32::from(first), 8 * u32::from(count));
            // What is part of the code does not change, unless a store of the path changed it.
            let is_stored =
                is_access(origin) && self.accesses[(origin >> 3) as usize].access.kind != Kind::Load;
            if access.is_literal && is_known && !is_stored && origin != UNSURE {
                Self::load_literal(access, group, terms, image);
            }
            let is_intact = is_access(origin) && self.is_intact(group, bits, terms);
            let mask = (u8::MAX >> (8 - count)) << first;
            if is_intact && linked & mask != mask {
                self.link(number, group, terms);
                self.accesses[number].linked |= mask;
            }
            if origin == NONE && is_known {
                self.load_initial(number, group, bits, terms, image);
            }
            // What was loaded is there from now on.
            let covers = is_intact && {
                let from = self.accesses[(origin >> 3) as usize].access;
                from.bytes == access.bytes && count == access.bytes
            };
            if !is_intact || covers {
                let entry = u32::try_from(number).expect("a window has fewer accesses");
                for byte in first..first + count {
                    self.set(place, byte, entry << 3 | u32::from(byte), access);
                }
            }
            first += count;
        }
    }

    /// States what a load at one of few addresses found.
    fn load_candidates(&mut self, number: usize, place: Place, terms: &mut Terms, image: &Image) {
        terms.make_source(place);
        let Some(candidates) = terms.candidates(place) else { return };
        let access = self.accesses[number].access;
        let value = terms.bits(access.value);
        let found = candidates
            .into_iter()
            .map(|(index, address)| (index, self.contents(address, access, value, terms, image)));
        let found = found.collect::<Vec<_>>();
        if found.iter().any(|(_, bits)| bits.known & crate::bits::low_mask(bits_of(access.bytes.into())) != 0)
        {
            terms.found(place, access.value, &found);
        }
    }

    /// What is known of memory at an address now, for a load that may be there.
    fn contents(&self, address: u64, access: Access, value: Bits, terms: &Terms, image: &Image) -> Bits {
        let mut all = Bits::of_low(8 * u32::from(access.bytes));
        for byte in 0..access.bytes {
            let place = Place { root: ZERO, offset: address.wrapping_add(byte.into()) };
            let at = 8 * u32::from(byte);
            let part = value.field(at, 8);
            let origin = self.origin(place, 0, access);
            let group = Group { place, first: byte, count: 1, origin };
            let bits = match image.at(place.offset) {
                Contents::Constant(value) => Some(Bits::constant(value.into())),
                Contents::Memory(byte)
                    if origin == NONE && byte != Byte::default() && !self.start_is_forgotten =>
                {
                    self.is_intact(group, part, terms).then_some(byte.bits())
                }
                _ if !is_access(origin) || !self.is_memory(place.offset, access, image) => None,
                _ => {
                    let from = self.accesses[(origin >> 3) as usize].access.value;
                    let bits = terms.bits(from).field(8 * (origin & 7), 8);
                    self.is_intact(group, part, terms).then_some(bits)
                }
            };
            if let Some(bits) = bits {
                all.known |= (bits.known & 0xff) << at;
                all.ones |= (bits.ones & 0xff) << at;
            }
        }
        all
    }

    /// States the value of a load of constants. Whether there is nothing else.
    fn load_constant(&mut self, number: usize, place: Place, terms: &mut Terms, image: &Image) -> bool {
        let Noted { access, linked, .. } = self.accesses[number];
        let mut all = true;
        let mut bits = Bits { known: 0, ones: 0 };
        for byte in 0..access.bytes {
            match image.at(place.offset.wrapping_add(byte.into())) {
                Contents::Constant(value) => {
                    bits.known |= 0xff << (8 * byte);
                    bits.ones |= u64::from(value) << (8 * byte);
                }
                _ => all = false,
            }
        }
        if bits.known != 0 && linked != u8::MAX {
            terms.learn(access.value, bits);
            if all {
                self.accesses[number].linked = u8::MAX;
            }
        }
        all
    }

    /// States that bytes are those of the code.
    fn load_literal(access: Access, group: Group, terms: &mut Terms, image: &Image) {
        for byte in 0..group.count {
            if let Some(value) = image.code_byte(group.place.offset.wrapping_add(byte.into())) {
                let at = 8 * u32::from(group.first + byte);
                terms.learn(access.value, Bits::constant(value.into()).placed(at, 8, Width::Double));
            }
        }
    }

    /// States that bytes are those of the start.
    fn load_initial(&mut self, number: usize, group: Group, bits: Bits, terms: &mut Terms, image: &Image) {
        let access = self.accesses[number].access;
        for byte in 0..group.count {
            let address = group.place.offset.wrapping_add(byte.into());
            let Contents::Memory(initial) = image.at(address) else { continue };
            let place = Place { root: ZERO, offset: address };
            let one = Group { place, first: byte, count: 1, origin: NONE };
            if initial != Byte::default()
                && !self.start_is_forgotten
                && self.is_intact(one, bits.field(8 * u32::from(byte), 8), terms)
            {
                let at = 8 * u32::from(group.first + byte);
                terms.learn(access.value, initial.bits().placed(at, 8, Width::Double));
            }
        }
    }

    /// States that bytes of a load are those of their origin.
    fn link(&mut self, number: usize, group: Group, terms: &mut Terms) {
        let access = self.accesses[number].access;
        let from = self.accesses[(group.origin >> 3) as usize].access.value;
        let byte = u8::try_from(group.origin & 7).expect("three bits");
        if group.count == 4
            && byte == 0
            && group.first == 0
            && access.bytes == 4
            && from.width == access.value.width
            && from.width == Width::Word
            || group.count == 8
                && byte == 0
                && from.width == Width::Double
                && access.value.width == Width::Double
        {
            terms.equate(access.value, from);
            return;
        }
        let share = Operation::Share { to: 8 * group.first, from: 8 * byte, count: 8 * group.count };
        terms.relate(share, access.value.width, access.value, &[from]);
    }
}

/// The number of bits of up to eight bytes.
fn bits_of(bytes: u64) -> u32 {
    8 * u32::try_from(bytes).unwrap_or(8)
}
