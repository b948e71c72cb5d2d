//! Records in several files, or compressed → one copy of all records, without compressed ones.
//!
//! perf writes one zstd stream per file, which continues from record to record and need not end. The records
//! are copied because trace may be among them. A large copy is in a temporary file.

use std::io::{Read, Write};

use ruzstd::decoding::StreamingDecoder;

use super::problem::PerfProblem;
use super::records::walk;
use crate::bytes::Bytes;
use crate::file::LONGEST_CAPTURE;
use crate::spool::Spool;

/// A copy of records.
pub(super) struct Plain {
    pub(super) bytes: Bytes,
    /// Whether one of the files ends in the middle of a record.
    pub(super) is_cut: bool,
}

/// A copy of the records of `files`, each given with the place of its records. Of each file, the unpacked
/// records come first, then the others.
pub(super) fn plain<'a>(
    files: impl IntoIterator<Item = (&'a [u8], (u64, u64))>,
) -> Result<Plain, PerfProblem> {
    let mut out = Spool::default();
    let mut is_cut = false;
    for (file, data) in files {
        let end = usize::try_from(data.0.saturating_add(data.1)).unwrap_or(usize::MAX).min(file.len());
        let file = file.get(..end).unwrap_or_default();
        let mut packed = Spool::default();
        let mut first = None;
        walk(file, data.0, |record| {
            if record.is_compressed() {
                first.get_or_insert(record.at);
                packed.write_all(record.compressed()).map_err(|error| problem(record.at, &error))?;
            }
            Ok(())
        })?;
        if let Some(at) = first {
            let packed = packed.finish().map_err(|error| problem(at, &error))?;
            let mut unpacked = Spool::default();
            unpack(&packed, &mut unpacked, &|why| problem(at, why))?;
            let unpacked = unpacked.finish().map_err(|error| problem(at, &error))?;
            is_cut |= copy(&unpacked, 0, &mut out)?;
        }
        is_cut |= copy(file, data.0, &mut out)?;
    }
    Ok(Plain { bytes: out.finish().map_err(|error| problem(0, &error))?, is_cut })
}

fn problem(at: u64, why: &dyn std::fmt::Display) -> PerfProblem {
    PerfProblem::Compressed { at, why: why.to_string() }
}

/// Copies complete records from a place on, with the trace that follows them. Returns whether the last one is
/// incomplete.
fn copy(bytes: &[u8], start: u64, out: &mut Spool) -> Result<bool, PerfProblem> {
    let end = walk(bytes, start, |record| {
        let start = usize::try_from(record.at).unwrap_or(usize::MAX);
        let length = usize::try_from(record.trace).unwrap_or(usize::MAX).saturating_add(record.bytes.len());
        let whole = bytes.get(start..).and_then(|rest| rest.get(..length)).unwrap_or_default();
        // A record whose trace is cut off is left out: the next record would be read as its trace.
        if record.is_compressed() || record.is_cut {
            return Ok(());
        }
        out.write_all(whole).map_err(|error| problem(record.at, &error))
    })?;
    if out.len() > LONGEST_CAPTURE {
        return Err(problem(start, &"the records are longer than any capture"));
    }
    Ok(end.is_cut || end.is_damaged)
}

/// Unpacks frame after frame; the last one may be incomplete.
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
            // The bytes after the last frame may be a record's padding.
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
                        return Err(problem(&"the records are longer than any capture"));
                    }
                }
                Err(_) if out.len() > 0 => return Ok(()),
                Err(error) => return Err(problem(&error)),
            }
        }
    }
    Ok(())
}
