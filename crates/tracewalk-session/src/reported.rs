//! What an ITM reports, if there is no instruction trace beside it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tracewalk::ids::Address;
use tracewalk::source::Instrumentation;
use tracewalk_analysis::itm::Watched;
use tracewalk_analysis::programs::SourceId;
use tracewalk_analysis::record::ItmRecord;
use tracewalk_analysis::{Code, Section, Statistics};
use tracewalk_input::cpu::Profile;
use tracewalk_input::image::ImageError;

use crate::beside::Itms;
use crate::code::Reader;
use crate::error::RunError;
use crate::memory::add_code;
use crate::model::Itm;
use crate::observer::Observer;
use crate::program::FollowedProgram;
use crate::session::Session;

impl Session {
    /// Whether the capture has an ITM and no instruction trace.
    #[must_use]
    pub fn is_itm_alone(&self) -> bool {
        !self.itms_alone().is_empty()
    }

    /// The ITMs, if the capture has no instruction trace.
    #[must_use]
    pub fn itms_alone(&self) -> Vec<Itm> {
        let is_itm = |itm: &&Itm| self.sources.is_empty() && itm.protocol() == Instrumentation::Itm;
        self.itms.iter().filter(is_itm).cloned().collect()
    }

    /// Reads an ITM to its end, and calls `look` with each of its records, as they arrive. Gives `observer` the losses.
    ///
    /// # Errors
    ///
    /// The first error of `look`, or of the rest of the capture.
    pub fn each_report(
        &mut self,
        itm: &Itm,
        observer: &dyn Observer,
        mut look: impl FnMut(&ItmRecord) -> io::Result<()>,
    ) -> Result<(), RunError> {
        let mut itms = Itms::new(self, vec![itm.clone()]);
        self.wait_for_itms(|| itms.each(&mut look))?;
        for (itm, counts) in itms.finish(observer) {
            let (bytes, malformed) = (counts.bytes, counts.malformed);
            let packets = counts.packets.values().sum();
            observer.heard(&itm, &counts, &Statistics { bytes, packets, malformed, ..Statistics::default() });
        }
        Ok(self.end_source(observer)?)
    }

    /// The data that the comparators of an ITM's DWT watch, in a program. The capture's description may state their addresses
    /// (`DWT_COMP0` to `DWT_COMP3`).
    #[must_use]
    pub fn watched(&self, itm: &Itm, code: &Arc<Code>) -> Watched {
        let registers = &itm.description.registers;
        let stated = ["DWT_COMP0", "DWT_COMP1", "DWT_COMP2", "DWT_COMP3"].map(|name| registers.get(name));
        Watched::new(Arc::clone(code), stated.map(|address| address.map(Address::from)))
    }

    /// The section of an ITM in an output.
    #[must_use]
    pub fn itm_section(&self, itm: &Itm, code: Arc<Code>) -> Section {
        let SourceId { id, protocol, number } = self.itm_id(itm);
        Section { id, protocol, number, code }
    }

    /// The program of the core that an ITM belongs to, with names and lines if directories with its source files are given.
    ///
    /// # Errors
    ///
    /// If an image cannot be used.
    pub fn itm_program(
        &mut self,
        itm: &Itm,
        source_dirs: Option<&[PathBuf]>,
        observer: &dyn Observer,
    ) -> Result<FollowedProgram, ImageError> {
        let mut memory = self.loader.memory(self.capture.images_for(&itm.description))?;
        for dump in self.dumps.iter().flatten() {
            add_code(dump, &mut memory, None);
        }
        let interrupts = self.interrupts.clone();
        let reader =
            Reader { profile: Some(Profile::M), interrupts, threads: Default::default(), source_dirs };
        Ok(FollowedProgram::of_all(reader.code(&memory, observer), &memory.images))
    }
}
