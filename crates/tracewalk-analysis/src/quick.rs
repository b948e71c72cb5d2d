//! A hash that is fast but not collision-resistant: chosen keys can make a table slow, and do no other harm.
//!
//! ```
//! use tracewalk_analysis::quick::QuickMap;
//!
//! let mut names = QuickMap::default();
//! names.insert(0x100_u32, "main");
//! assert_eq!(names.get(&0x100), Some(&"main"));
//! ```

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by quick hashes, for frequent look-ups.
pub type QuickMap<K, V> = HashMap<K, V, BuildHasherDefault<QuickHasher>>;

/// Mixes words by multiplication.
#[derive(Clone, Copy, Debug, Default)]
pub struct QuickHasher(u64);

/// Spreads differences over all bits of a word.
#[inline]
pub(crate) const fn mix(value: u64) -> u64 {
    let product = value.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ product >> 32
}

/// The tag of a hash in a table of items seen once; never 0.
#[inline]
pub(crate) const fn tag_of(hash: u64) -> u32 {
    (hash >> 32) as u32 | 1
}

impl Hasher for QuickHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    #[inline]
    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.0 = mix(self.0.rotate_left(5) ^ value);
    }

    #[inline]
    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    #[inline]
    fn write_isize(&mut self, value: isize) {
        self.write_u64(value.cast_unsigned() as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}
