//! Recognises common files that hold no trace.

use std::fmt;

/// A kind of file that other programs write: a picture, an archive, a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherFile {
    /// The usual extension of its names, without the dot.
    pub extension: &'static str,
    /// Its media type.
    pub media_type: &'static str,
    /// Whether it is an archive or a compressed file.
    pub is_packed: bool,
}

impl OtherFile {
    /// The kind of a file that begins like this, if it is a common one. Trace may begin the same way: call
    /// this only if nothing else is known about the file.
    #[must_use]
    pub fn of(head: &[u8]) -> Option<Self> {
        let found = infer::get(head)?;
        Some(Self {
            extension: found.extension(),
            media_type: found.mime_type(),
            is_packed: found.matcher_type() == infer::MatcherType::Archive && found.extension() != "pdf",
        })
    }
}

impl fmt::Display for OtherFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a file of type {} ({})", self.extension, self.media_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_give_by_mistake_has_its_name() {
        let cases: [(&[u8], &str, bool); 6] = [
            (b"\xff\xd8\xff\xe0\0\x10JFIF", "jpg", false),
            (b"\x89PNG\r\n\x1a\n", "png", false),
            (b"%PDF-1.7\n", "pdf", false),
            (b"\x1f\x8b\x08\0\0\0\0\0", "gz", true),
            (b"\x28\xb5\x2f\xfd\x04\x58", "zst", true),
            (b"\xfd7zXZ\0\0\x04", "xz", true),
        ];
        for (head, extension, is_packed) in cases {
            let found = OtherFile::of(head).unwrap_or_else(|| panic!("{extension} is known"));
            assert_eq!((found.extension, found.is_packed), (extension, is_packed));
        }
        assert_eq!(OtherFile::of(&[0, 0, 0, 0, 0, 0x80, 8, 0]), None);
        assert_eq!(OtherFile::of(&[]), None);
    }
}
