//! An input's bytes, taken from the front as choices. After the last byte, every choice is 0.

use tracewalk::protocol::{Registers, etmv3, etmv4, pft};

pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.byte() & 1 != 0
    }

    pub(crate) fn half(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    pub(crate) fn word(&mut self) -> u32 {
        u32::from(self.half()) | u32::from(self.half()) << 16
    }

    /// At most `most` bytes from the front.
    pub(crate) fn bytes(&mut self, most: usize) -> &'a [u8] {
        let (first, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        first
    }

    /// Any registers, or only a processor's name.
    fn registers(&mut self) -> Registers {
        let mut register = || self.flag().then(|| self.word());
        Registers { etmcr: register(), etmidr: register(), etmccer: register(), etmtraceidr: None }
    }

    pub(crate) fn etmv3(&mut self) -> Option<etmv3::Config> {
        let names = etmv3::Core::names().collect::<Vec<_>>();
        let core = names.get(usize::from(self.byte())).and_then(|name| etmv3::Core::named(name));
        etmv3::Config::from_registers(self.registers(), core).ok()
    }

    /// Any registers of a version that there is.
    pub(crate) fn etmv4(&mut self) -> Option<etmv4::Config> {
        let minor = u32::from(self.byte());
        let version = if self.flag() { (5 << 12) | (minor % 4) << 16 } else { (4 << 12) | (minor % 7) << 16 };
        let profile = if self.flag() { etmv4::Profile::M } else { etmv4::Profile::Ar };
        let registers = etmv4::Registers {
            trcdevarch: Some(version),
            trcconfigr: Some(self.word()),
            trcidr0: Some(self.word()),
            trcidr2: Some(self.word()),
            trcidr8: self.flag().then(|| self.word()),
            ..etmv4::Registers::default()
        };
        etmv4::Config::from_registers(registers, Some(profile)).ok()
    }

    /// A processor's trace unit, with settings that may be chosen.
    pub(crate) fn etmv4_of_core(&mut self) -> Option<etmv4::Config> {
        /// TRCCONFIGR without loads, stores and conditional trace.
        const CHOSEN: u32 = 0b1_1111_1101_1001;
        /// TRCIDR0 of COMMOPT 0, and the same with Q elements.
        const UNITS: [u32; 2] = [0x0800_0ea1, 0x0801_cea1];
        let names = etmv4::Core::names().collect::<Vec<_>>();
        let core = etmv4::Core::named(names.get(usize::from(self.byte()) % names.len())?)?;
        let trcconfigr = u32::from(self.half()) & CHOSEN | 1;
        let registers = etmv4::Registers {
            trcconfigr: Some(trcconfigr),
            trcidr0: UNITS.get(usize::from(self.byte() % 4)).copied(),
            trcidr8: self.flag().then(|| u32::from(self.byte() % 16)),
            ..etmv4::Registers::default()
        };
        etmv4::Config::from_registers(registers.or_usual_of(core), Some(core.profile())).ok()
    }

    pub(crate) fn pft(&mut self) -> Option<pft::Config> {
        let names = pft::Core::names().collect::<Vec<_>>();
        let core = names.get(usize::from(self.byte())).and_then(|name| pft::Core::named(name));
        pft::Config::from_registers(self.registers(), core).ok()
    }
}
