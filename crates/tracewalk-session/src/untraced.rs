//! A log of a halted processor that has no trace: the program, and what `tracewalk_analysis::crash` needs of it.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use tracewalk::ids::Address;
use tracewalk::program::{Scope, ViewId};
use tracewalk_analysis::crash::{Caller, Callers, Crash, Doubt, Halted, Missing, NO_TRACE, Snapshot};
use tracewalk_analysis::{Code, Section};
use tracewalk_input::cpu::Profile;
use tracewalk_input::image::{Image, Memory};
use tracewalk_input::symbols::{CallFrames, VectorTable};

use crate::code::Reader;
use crate::error::OpenError;
use crate::memory::add_code;
use crate::observer::Observer;
use crate::program::every_image;
use crate::session::Session;

/// The end of a program that nothing traced.
#[derive(Debug)]
pub struct Untraced {
    /// The program, in place of a source's.
    pub section: Section,
    /// The fault; `None` if the processor handles none.
    pub crash: Option<Crash>,
    /// The reasons to doubt it.
    pub doubts: Vec<Doubt>,
}

impl Session {
    /// Whether the capture is the log of a halted processor, without trace.
    #[must_use]
    pub fn lacks_trace(&self) -> bool {
        self.dumps.iter().flatten().any(|dumped| !dumped.has_trace)
    }

    /// Refuses work that needs trace, if the capture has none.
    ///
    /// # Errors
    ///
    /// If the capture is the log of a halted processor, without trace.
    pub fn needs_trace(&self) -> Result<(), OpenError> {
        let lacking = self.dumps.iter().zip(&self.capture.buffers).find_map(|(dumped, buffer)| {
            let dumped = dumped.as_ref().filter(|dumped| !dumped.has_trace)?;
            Some((buffer.file.clone(), dumped.dump.pieces.len() as u64))
        });
        lacking.map_or(Ok(()), |(file, pieces)| Err(OpenError::NoPiece { file, pieces }))
    }

    /// How the program of a log without trace ended. The names and lines of the program are read; source files are also searched in
    /// `source_dirs`.
    ///
    /// # Errors
    ///
    /// If an image cannot be used.
    pub fn untraced(
        &mut self,
        snapshot: &Snapshot,
        source_dirs: &[PathBuf],
        observer: &dyn Observer,
    ) -> Result<Untraced, OpenError> {
        let mut memory = every_image(&mut self.loader, &self.capture)?;
        let agreement = compare(&memory, snapshot);
        let has_program = !memory.program.is_empty();
        let is_other = matches!(agreement, Agreement::Differs(_));
        let (mut callers, mut variables) = (ByFrames::default(), Vec::new());
        if !is_other {
            let images = || memory.images.iter().map(|visible| &*visible.image);
            callers = ByFrames(CallFrames::of(images()));
            variables.extend(images().flat_map(Image::variables));
            self.dumps.iter().flatten().for_each(|dumped| add_code(dumped, &mut memory, None));
        }
        let everywhere = memory.seen_in(ViewId::default(), Scope::EVERYWHERE);
        let table = VectorTable::of(&everywhere, Some(Profile::M)).map(|table| table.address);
        if let Some(table) = self.vector_table.or(table) {
            memory.program.set_vector_table(table);
        }
        let reader = Reader {
            profile: Some(Profile::M),
            interrupts: self.interrupts.clone(),
            threads: Default::default(),
            source_dirs: Some(source_dirs),
        };
        let code = if is_other { Arc::new(Code::unknown()) } else { reader.code(&memory, observer) };
        let halted = Halted { code: &code, snapshot, callers: &callers, variables: &variables };
        let mut crash = halted.crash();
        let doubts = match agreement {
            Agreement::Differs(at) => vec![Doubt::OtherCode { at }],
            _ if !has_program => vec![Doubt::NoProgram],
            _ => Vec::new(),
        };
        if let Some(crash) = crash.as_mut().filter(|_| has_program && agreement == Agreement::Unknown) {
            crash.missing.push(Missing::Program);
        }
        let section = Section { id: None, protocol: NO_TRACE, number: 1, code };
        Ok(Untraced { section, crash, doubts })
    }
}

/// Whether the code in memory is the image's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Agreement {
    /// The memory has none of it.
    Unknown,
    Same,
    /// At this address it is not.
    Differs(Address),
}

/// Compares the code of images with memory that was saved.
fn compare(images: &Memory, snapshot: &Snapshot) -> Agreement {
    let mut agreement = Agreement::Unknown;
    for visible in &images.images {
        let image = &visible.image;
        for segment in image.segments.iter().filter(|segment| segment.executable) {
            let code = image.segment_bytes(segment);
            for (start, bytes) in &snapshot.memory {
                let (start, first) = (u64::from(*start), segment.address.get());
                let both = start.max(first)..(start + bytes.len() as u64).min(first + code.len() as u64);
                let Some((saved, known)) = part(bytes, start, &both).zip(part(code, first, &both)) else {
                    continue;
                };
                let differs = saved.iter().zip(known).position(|(saved, known)| saved != known);
                match differs {
                    Some(offset) => return Agreement::Differs(Address::new(both.start + offset as u64)),
                    None => agreement = Agreement::Same,
                }
            }
        }
    }
    agreement
}

/// The bytes at these addresses of memory that starts at `from`; `None` if there are none.
fn part<'a>(bytes: &'a [u8], from: u64, addresses: &Range<u64>) -> Option<&'a [u8]> {
    let offset = |address: u64| usize::try_from(address.checked_sub(from)?).ok();
    bytes.get(offset(addresses.start)?..offset(addresses.end)?).filter(|part| !part.is_empty())
}

/// Callers by call frame information.
#[derive(Debug, Default)]
struct ByFrames(CallFrames);

impl Callers for ByFrames {
    fn caller(
        &self,
        at: Address,
        registers: &[Option<u32>; 16],
        word: &dyn Fn(u32) -> Option<u32>,
    ) -> Caller {
        const LOST: [usize; 6] = [0, 1, 2, 3, 12, 14];
        let known = |number: u16| *registers.get(usize::from(number))?;
        let Some(row) = self.0.row(at).filter(|row| !row.is_outermost) else { return Caller::None };
        let (Some(base), Ok(offset)) = (known(row.register), i32::try_from(row.offset)) else {
            return Caller::None;
        };
        let frame = base.wrapping_add_signed(offset);
        let saved = |offset: i64| word(frame.wrapping_add_signed(i32::try_from(offset).ok()?));
        let returns_to = match row.saved.get(&row.return_register) {
            Some(offset) => match saved(*offset) {
                None => return Caller::NotSaved,
                found => found,
            },
            None => known(row.return_register),
        };
        let mut caller = *registers;
        // A function may change these.
        LOST.into_iter().for_each(|number| caller[number] = None);
        for (number, offset) in &row.saved {
            if let Some(register) = caller.get_mut(usize::from(*number)) {
                *register = saved(*offset);
            }
        }
        (caller[13], caller[14], caller[15]) = (Some(frame), None, returns_to);
        Caller::Known(caller)
    }
}
