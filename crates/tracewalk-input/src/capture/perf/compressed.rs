//! Records that hold other records, compressed by zstd → a copy of the file's records without any.
//!
//! perf writes one stream for the whole file, which goes on from record to record and need not end. A copy is made because trace
//! may be among them; it lies in a temporary file if it is large.

use std::io::{Read, Write};

use ruzstd::decoding::StreamingDecoder;

use super::problem::PerfProblem;
use super::records::walk;
use crate::bytes::Bytes;
use crate::file::LONGEST_CAPTURE;
use crate::spool::Spool;

/// The unpacked records, then the others.
pub(super) fn unpacked(file: &[u8], data: (u64, u64), first: u64) -> Result<Bytes, PerfProblem> {
    let problem = |why: &dyn std::fmt::Display| PerfProblem::Compressed { at: first, why: why.to_string() };
    let end = usize::try_from(data.0.saturating_add(data.1)).unwrap_or(usize::MAX).min(file.len());
    let file = file.get(..end).unwrap_or_default();
    let mut packed = Spool::with_room(file.len() as u64);
    walk(file, data.0, |record| {
        if record.is_compressed() {
            packed.write_all(record.compressed()).map_err(|error| problem(&error))?;
        }
        Ok(())
    })?;
    let packed = packed.finish().map_err(|error| problem(&error))?;
    let mut out = Spool::default();
    unpack(&packed, &mut out, &problem)?;
    walk(file, data.0, |record| {
        if record.is_compressed() {
            return Ok(());
        }
        let start = usize::try_from(record.at).unwrap_or(usize::MAX);
        let length = usize::try_from(record.trace).unwrap_or(usize::MAX).saturating_add(record.bytes.len());
        let bytes = file.get(start..).and_then(|rest| rest.get(..length)).unwrap_or_default();
        out.write_all(bytes).map_err(|error| problem(&error))
    })?;
    out.finish().map_err(|error| problem(&error))
}

/// Unpacks frame after frame; the last one need not be whole.
fn unpack(
    packed: &[u8],
    out: &mut Spool,
    problem: &dyn Fn(&dyn std::fmt::Display) -> PerfProblem,
) -> Result<(), PerfProblem> {
    let mut rest = packed;
    let mut piece = vec![0; 1 << 16];
    while !rest.is_empty() {
        let mut decoder = match StreamingDecoder::new(&mut rest) {
            Ok(decoder) => decoder,
            // What is behind the last frame may be a record's padding.
            Err(_) if out.len() > 0 => return Ok(()),
            Err(error) => return Err(problem(&error)),
        };
        loop {
            match decoder.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => {
                    let bytes = piece.get(..read).unwrap_or_default();
                    out.write_all(bytes).map_err(|error| problem(&error))?;
                    if out.len() > LONGEST_CAPTURE {
                        return Err(problem(&"they are longer than any capture"));
                    }
                }
                Err(_) if out.len() > 0 => return Ok(()),
                Err(error) => return Err(problem(&error)),
            }
        }
    }
    Ok(())
}
