//! How much of a stack was looked at, and which addresses no frame of any stack returns to.
//!
//! What elements do to a stack depends on no more than the frames that were looked at while they were followed. A search
//! for the frame that returns to an address looks at all of them where it finds none; but where no frame ever
//! returned there, it finds none in any stack.

use tracewalk::ids::Address;

use crate::quick::mix;

/// The frames that were looked at since somebody set this, by the outermost of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Looks {
    /// Whose function was looked at.
    pub(super) function: usize,
    /// Of which more was looked at.
    pub(super) whole: usize,
    /// Whether it mattered how many there are.
    pub(super) everywhere: bool,
    /// How many there were at most.
    pub(super) most: usize,
}

/// Where frames return to, of all stacks, as far as a few bits tell addresses apart.
#[derive(Clone, Debug, Default)]
pub(super) struct Returns {
    /// Addresses that a frame returned to; empty before the first.
    seen: Box<[u64]>,
    /// Addresses that something is remembered of, because no frame returned there.
    watched: Box<[u64]>,
    /// How often a frame came that returns to one of those.
    surprises: u32,
}

/// How many bits there are: a power of two.
const BITS: usize = 1 << 16;

impl Looks {
    /// Nothing of so many frames was looked at.
    pub(super) const fn begin(depth: usize) -> Self {
        Self { function: depth, whole: depth, everywhere: false, most: depth }
    }

    #[inline]
    pub(super) fn function(&mut self, index: usize) {
        self.function = self.function.min(index);
    }

    #[inline]
    pub(super) fn whole(&mut self, index: usize) {
        self.whole = self.whole.min(index);
    }
}

impl Returns {
    /// A frame comes that returns there.
    #[inline]
    pub(super) fn add(&mut self, to: Address) {
        let (word, bit) = place_of(to);
        match self.seen.get_mut(word) {
            Some(seen) if *seen & bit != 0 => return,
            Some(seen) => *seen |= bit,
            None => {
                self.seen = vec![0; BITS / 64].into();
                return self.add(to);
            }
        }
        if self.watched.get(word).is_some_and(|watched| watched & bit != 0) {
            self.surprises += 1;
            self.watched.fill(0);
        }
    }

    /// Frames come that may return anywhere.
    pub(super) fn add_all(&mut self) {
        self.seen = vec![u64::MAX; BITS / 64].into();
        self.surprises += 1;
    }

    /// Whether no frame has ever returned there. If one comes, it is a [surprise](Returns::surprises).
    pub(super) fn is_none(&mut self, at: Address) -> bool {
        let (word, bit) = place_of(at);
        if self.seen.get(word).is_some_and(|seen| seen & bit != 0) {
            return false;
        }
        if self.watched.is_empty() {
            self.watched = vec![0; BITS / 64].into();
        }
        if let Some(watched) = self.watched.get_mut(word) {
            *watched |= bit;
        }
        true
    }

    /// Changes when what was said of an address is no longer so.
    #[inline]
    pub(super) const fn surprises(&self) -> u32 {
        self.surprises
    }
}

const fn place_of(at: Address) -> (usize, u64) {
    let bit = (mix(at.get()) >> 40) as usize % BITS;
    (bit / 64, 1 << (bit % 64))
}
