//! Arrays of any length for serde, whose own implementations stop at 32 elements.

use alloc::vec::Vec;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(crate) fn serialize<S: Serializer, T: Serialize, const N: usize>(
    array: &[T; N],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    array.as_slice().serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>, T: Deserialize<'de>, const N: usize>(
    deserializer: D,
) -> Result<[T; N], D::Error> {
    let elements = Vec::deserialize(deserializer)?;
    elements
        .try_into()
        .map_err(|found: Vec<T>| D::Error::invalid_length(found.len(), &"as many as the array has"))
}
