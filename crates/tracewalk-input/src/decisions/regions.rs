//! The regions of a function's mapping.

use super::cursor::Cursor;
use super::{Fault, FaultKind, Place, SourceRange};

/// A stretch of source text and what the mapping says of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    /// The virtual file: 0 is the function's own, the others are macro expansions.
    pub(super) file: usize,
    pub(super) range: SourceRange,
    pub(super) kind: RegionKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RegionKind {
    Code,
    /// Text between statements.
    Gap,
    /// A macro's use, expanded in this virtual file.
    Expansion(usize),
    Skipped,
    /// A condition that is a decision by itself.
    Branch,
    Decision {
        conditions: u64,
    },
    Condition {
        id: u64,
        if_true: u64,
        if_false: u64,
        is_constant: bool,
    },
}

/// The indexes of the virtual files' names, and the regions in the order of the mapping.
pub(super) fn read(mut data: Cursor<'_>) -> Result<(Vec<u64>, Vec<Region>), Fault> {
    let mut files = Vec::new();
    for _ in 0..data.uleb()? {
        files.push(data.uleb()?);
    }
    // Expressions: two counters each.
    for _ in 0..data.uleb()? {
        data.uleb()?;
        data.uleb()?;
    }
    let mut regions = Vec::new();
    for file in 0..files.len() {
        let mut line = 0;
        for _ in 0..data.uleb()? {
            regions.push(region(&mut data, file, files.len(), &mut line)?);
        }
    }
    if data.is_empty() { Ok((files, regions)) } else { Err(data.fault(FaultKind::Trailing)) }
}

fn region(data: &mut Cursor<'_>, file: usize, files: usize, line: &mut u32) -> Result<Region, Fault> {
    /// The mark of a gap in an end column.
    const GAP: u32 = 1 << 31;
    let start = *data;
    let mut kind = kind(data)?;
    if let RegionKind::Expansion(into) = kind
        && into >= files
    {
        return Err(start.fault(FaultKind::NoFile(into as u64)));
    }
    let too_large = |number: u32| start.fault(FaultKind::TooLarge(number.into()));
    let delta = data.small()?;
    *line = line.checked_add(delta).ok_or(too_large(delta))?;
    let column = data.small()?;
    let lines = data.small()?;
    let end_column = data.small()?;
    if end_column & GAP != 0 {
        kind = RegionKind::Gap;
    }
    let end = Place { line: line.checked_add(lines).ok_or(too_large(lines))?, column: end_column & !GAP };
    let range = SourceRange { start: Place { line: *line, column }, end };
    Ok(Region { file, range, kind })
}

fn kind(data: &mut Cursor<'_>) -> Result<RegionKind, Fault> {
    let start = *data;
    let header = data.uleb()?;
    let rest = header >> 3;
    if header & 0b011 != 0 {
        return Ok(RegionKind::Code);
    }
    if header & 0b100 != 0 {
        let into = usize::try_from(rest).map_err(|_| start.fault(FaultKind::NoFile(rest)))?;
        return Ok(RegionKind::Expansion(into));
    }
    Ok(match rest {
        0 => RegionKind::Code,
        2 => RegionKind::Skipped,
        4 => {
            data.uleb()?;
            data.uleb()?;
            RegionKind::Branch
        }
        5 => {
            data.uleb()?; // The index in the bitmap.
            RegionKind::Decision { conditions: data.uleb()? }
        }
        6 => RegionKind::Condition {
            is_constant: {
                let (if_true, if_false) = (data.uleb()?, data.uleb()?);
                if_true == 0 || if_false == 0
            },
            id: data.uleb()?,
            if_true: data.uleb()?,
            if_false: data.uleb()?,
        },
        unknown => return Err(start.fault(FaultKind::Region(unknown))),
    })
}
