//! Registers and memory that a debugger saved, beside the trace or in the same file.

use std::path::Path;

use tracewalk_analysis::crash::{Doubt, Snapshot};
use tracewalk_input::capture::dump::{MemoryDump, ProcessorRegisters};
use tracewalk_input::image::ImageError;

use crate::error::OpenError;
use crate::model::Source;
use crate::observer::Observer;
use crate::outcome::{Follow, Outcome};
use crate::session::Session;

impl Session {
    /// The registers and the memory in the capture's files and in `file`, or else in the file that the description names.
    /// `file` takes precedence.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or has neither registers nor memory.
    pub fn snapshot(&self, file: Option<&Path>) -> Result<Snapshot, OpenError> {
        let mut snapshot = Snapshot::default();
        for dumped in self.dumps.iter().flatten() {
            add(&mut snapshot, &dumped.dump);
        }
        let named = self.capture().dump.as_ref().map(|dump| dump.value.as_path());
        if let Some(file) = file.or(named) {
            let dump = MemoryDump::open(file)?.ok_or_else(|| OpenError::NoSnapshot(file.to_owned()))?;
            add(&mut snapshot, &dump);
        }
        Ok(snapshot)
    }

    /// The reasons to doubt how a source's program ended, by an outcome of following the source in the same way.
    ///
    /// # Errors
    ///
    /// If an image cannot be used.
    pub fn doubts_of_end<T>(
        &mut self,
        source: &Source,
        how: &Follow,
        outcome: &Outcome<T>,
        observer: &dyn Observer,
    ) -> Result<Vec<Doubt>, ImageError> {
        let is_refused = outcome.code.program.is_empty()
            && !self.code(source, how.names.as_deref(), observer)?.program.is_empty();
        let other = is_refused.then_some(Doubt::OtherProgram);
        Ok(other.into_iter().chain(Doubt::of_gaps(&outcome.losses.gaps)).collect())
    }
}

fn add(snapshot: &mut Snapshot, dump: &MemoryDump) {
    // The address of a file's bytes in memory is unknown.
    for piece in dump.pieces.iter().filter(|_| !dump.is_file) {
        let Some(address) = piece.address.and_then(|address| u32::try_from(address.get()).ok()) else {
            continue;
        };
        snapshot.memory.insert(address, piece.bytes.to_vec());
    }
    add_registers(snapshot, &dump.processor);
}

fn add_registers(snapshot: &mut Snapshot, found: &ProcessorRegisters) {
    for (known, value) in snapshot.registers.iter_mut().zip(found.core) {
        *known = value.or(*known);
    }
    snapshot.xpsr = found.xpsr.or(snapshot.xpsr);
    for (known, value) in snapshot.stack_pointers.iter_mut().zip(found.stack_pointers) {
        *known = value.or(*known);
    }
    // In a handler the stack pointer is the main one, the only one that OpenOCD prints.
    let in_handler = snapshot.exception_number().is_some();
    let [main, _] = snapshot.stack_pointers;
    if let Some(stack_pointer) = snapshot.registers.get_mut(13)
        && in_handler
    {
        *stack_pointer = stack_pointer.or(main);
    }
    for (address, value) in &found.system {
        if snapshot.word(*address).is_none() {
            snapshot.memory.insert(*address, value.to_le_bytes().to_vec());
        }
    }
}
