//! Intel HEX and S-records → the segments of an image.
//!
//! Records are used to program flash: every byte is at the address at which it is stored, and there are no
//! names. Any flaw in the file is an error, because flow through a program with a missing part would be
//! wrong. (In a dump of trace, by contrast, the readable parts are used.)

use std::path::Path;

use super::attributes::Attributes;
use super::contents::{Image, ImageForm, Segment};
use super::elf::check_count;
use super::error::ImageErrorKind;
use crate::bytes::Bytes;
use crate::records::{Located, RecordForm};
use crate::text::decode;

/// The form of the records in a file; `None` for a file without records.
pub(super) fn form(bytes: &[u8]) -> Option<RecordForm> {
    // Longer than the first record with a byte order mark.
    let beginning = bytes.get(..1024).unwrap_or(bytes);
    RecordForm::of(decode(beginning)?.as_bytes())
}

/// Whether the whole file is valid records.
pub(super) fn is_sound(form: RecordForm, bytes: &Bytes) -> bool {
    read("".as_ref(), form, bytes).is_ok()
}

/// Reads records of this form.
pub(super) fn read(file: &Path, form: RecordForm, bytes: &Bytes) -> Result<Image, ImageErrorKind> {
    let error = |(line, problem): Located| ImageErrorKind::Records { form, line, problem };
    // An invalid character damages only its own line.
    let text = decode(bytes).unwrap_or_else(|| String::from_utf8_lossy(bytes).into_owned());
    let (memory, flaws) = form.read(&text).map_err(error)?;
    if let Some(flaw) = flaws.all().next() {
        return Err(error(flaw));
    }
    let (mut segments, mut all) = (Vec::new(), Vec::new());
    for (address, bytes) in memory.finish().map_err(error)? {
        let start = all.len();
        all.extend_from_slice(&bytes);
        let name = format!("the records from {address} on");
        segments.push(Segment { name, address, executable: true, range: start..all.len() });
        check_count(segments.len())?;
    }
    Ok(Image {
        file: file.to_owned(),
        segments,
        build_id: None,
        attributes: Attributes::default(),
        entry: None,
        bytes: all.into(),
        moved: 0,
        form: ImageForm::Records(form),
    })
}
