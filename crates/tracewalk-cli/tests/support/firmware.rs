//! The project's example programs, and traces of their execution.

use std::path::{Path as FilePath, PathBuf};

use tracewalk::protocol::{etmv3 as etmv3_protocol, pft as pft_protocol};
use tracewalk_generate::elf::Elf;
use tracewalk_generate::path::Path;
use tracewalk_generate::trace::Trace;
use tracewalk_generate::{etmv3, firmware, pft};

/// A program and its execution.
pub(crate) struct Firmware {
    pub(crate) file: PathBuf,
    pub(crate) elf: Elf,
    pub(crate) path: Path,
}

/// A trace unit and its settings.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Setup {
    pub(crate) protocol: &'static str,
    pub(crate) cpu: &'static str,
    pub(crate) etmcr: u32,
    pub(crate) etmidr: Option<u32>,
    pub(crate) etmccer: Option<u32>,
    pub(crate) timestamps: Option<u64>,
}

impl Firmware {
    pub(crate) fn load(name: &str) -> Self {
        let folder = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/firmware");
        let file = folder.join(name).join(format!("{name}.elf"));
        let firmware::Firmware { elf, path } =
            firmware::Firmware::read(&folder, name, |file| std::fs::read(file)).unwrap();
        Self { file, elf, path }
    }

    /// The trace that an ETMv3 would have generated.
    pub(crate) fn etmv3(&self, cpu: &'static str, etmcr: u32) -> Trace {
        self.trace(&Setup { protocol: "etmv3", cpu, etmcr, ..Setup::default() })
    }

    /// The trace that this trace unit would have generated.
    pub(crate) fn trace(&self, setup: &Setup) -> Trace {
        let Setup { cpu, etmcr, etmidr, etmccer, timestamps, .. } = *setup;
        if setup.protocol == "etmv3" {
            use etmv3_protocol::{Config, Core, Registers};
            let registers = Registers { etmcr: Some(etmcr), etmidr, etmccer, etmtraceidr: None };
            let config = Config::from_registers(registers, Core::named(cpu)).unwrap();
            let options = etmv3::Options { timestamp_every: timestamps, ..etmv3::Options::default() };
            etmv3::encode(&self.path, &self.elf.program, &config, &options).unwrap()
        } else {
            use pft_protocol::{Config, Core, Registers};
            let registers = Registers { etmcr: Some(etmcr), etmidr, etmccer, etmtraceidr: None };
            let config = Config::from_registers(registers, Core::named(cpu)).unwrap();
            let options = pft::Options { timestamp_every: timestamps, ..pft::Options::default() };
            pft::encode(&self.path, &self.elf.program, &config, &options).unwrap()
        }
    }
}

impl Setup {
    /// The `--source` option for these settings.
    pub(crate) fn option(&self) -> String {
        let mut option = format!("{},cpu={},etmcr=0x{:x}", self.protocol, self.cpu, self.etmcr);
        for (name, value) in [("etmidr", self.etmidr), ("etmccer", self.etmccer)] {
            if let Some(value) = value {
                option.push_str(&format!(",{name}=0x{value:x}"));
            }
        }
        option
    }
}
