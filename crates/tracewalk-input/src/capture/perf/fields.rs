//! Numbers and names in a file's bytes. The bytes may end anywhere.

/// The little-endian number at a place; `None` if the bytes end too early.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
}

/// As [`u32_at`].
pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().copied().map(u64::from_le_bytes)
}

/// As [`u32_at`].
pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().copied().map(u16::from_le_bytes)
}

/// The bytes of a section, clipped to the file.
pub(super) fn section(bytes: &[u8], offset: u64, size: u64) -> &[u8] {
    let [start, end] = [offset, offset.saturating_add(size)]
        .map(|at| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len()));
    bytes.get(start..end).unwrap_or_default()
}

/// The bytes up to the first 0.
pub(super) fn name(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
}

/// A string of a feature section: its length, then its bytes. Returns the bytes after the string as well.
pub(super) fn string(bytes: &[u8]) -> Option<(String, &[u8])> {
    let length = usize::try_from(u32_at(bytes, 0)?).ok()?;
    let (text, rest) = bytes.get(4..)?.split_at_checked(length)?;
    Some((name(text), rest))
}
