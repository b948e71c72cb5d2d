//! Intel HEX and S-records → the segments of an image.
//!
//! Programs are written in records to be programmed into flash: every byte is at the address where it is stored, and there
//! are no names. Of a dump what can be read is used; a program with a part missing would be followed wrongly, so that
//! whatever is wrong with the file is an error.

use std::path::Path;

use super::attributes::Attributes;
use super::contents::{Image, ImageForm, Segment};
use super::elf::check_count;
use super::error::ImageErrorKind;
use crate::bytes::Bytes;
use crate::records::{Located, RecordForm};
use crate::text::decode;

/// How the records in a file are written; `None` for a file that has none.
pub(super) fn form(bytes: &[u8]) -> Option<RecordForm> {
    // More than the first record has, with a byte order mark.
    let beginning = bytes.get(..1024).unwrap_or(bytes);
    RecordForm::of(decode(beginning)?.as_bytes())
}

/// Whether all of a file is records as they should be.
pub(super) fn is_sound(form: RecordForm, bytes: &Bytes) -> bool {
    read("".as_ref(), form, bytes).is_ok()
}

/// Reads records of this form.
pub(super) fn read(file: &Path, form: RecordForm, bytes: &Bytes) -> Result<Image, ImageErrorKind> {
    let error = |(line, problem): Located| ImageErrorKind::Records { form, line, problem };
    // A letter that texts do not have is damage in its line.
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
