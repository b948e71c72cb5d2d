//! The trace units that may have made a trace, by the processors that may have run the program.

use tracewalk_input::capture::{Protocol, SourceDescription};
use tracewalk_input::cpu::{Profile, UsualRegisters};
use tracewalk_input::image::Memory;
use tracewalk_input::{Origin, Stated};

use crate::sources::config;

/// ETMIDR of a Cortex-A's ETM with the alternative branch encoding. No such chip is known, but a simulator may have it.
const ALTERNATIVE_ENCODING: (&str, u32) = ("ETMIDR", 0x411c_f250);

/// TRCDEVARCH of ETE 1.3, which has packets that earlier versions lack.
const NEWEST_EXTENSION: (&str, u32) = ("TRCDEVARCH", 0x4773_5a13);

/// A kind of trace unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(super) protocol: Protocol,
    /// The processor that the unit traces, or another one with the same trace unit.
    pub(super) cpu: String,
    /// The register that identifies the unit, if its value is not the usual one.
    pub(super) identification: Option<(&'static str, u32)>,
}

impl Unit {
    const fn usual(protocol: Protocol, cpu: String) -> Self {
        Self { protocol, cpu, identification: None }
    }

    /// The source, completed with this unit's values.
    pub(super) fn completed(&self, source: &SourceDescription) -> SourceDescription {
        let mut source = source.clone();
        source.cpu = Some(Stated::new(self.cpu.clone(), Origin::Detected));
        if let Some((register, value)) = self.identification
            && source.registers.get(register).is_none()
        {
            source.registers.set(register, value, Origin::Detected);
        }
        source.add_usual_registers();
        source
    }

    /// The source that this unit makes if it traces only instructions.
    pub(super) fn source(&self) -> SourceDescription {
        self.completed(&SourceDescription::new(self.protocol.clone(), Origin::Detected))
    }
}

/// The trace units that are possible for a program, the most likely first.
pub(crate) fn units(memory: &Memory) -> Vec<Unit> {
    let attributes = memory.images.iter().map(|visible| &visible.image.attributes);
    let profile = attributes.clone().find_map(|attributes| attributes.profile);
    let named = attributes.filter_map(|attributes| attributes.cpu_name.as_deref());
    let named = named.filter_map(UsualRegisters::of_cpu).next();
    let mut units = Vec::new();
    for cpu in named.map(|named| named.cpu).iter().copied().chain(usual_processors(profile).iter().copied()) {
        for protocol in [Protocol::EtmV3, Protocol::Pft, Protocol::Etmv4] {
            let unit = Unit::usual(protocol, cpu.to_owned());
            if !units.contains(&unit) && config(&unit.source()).is_ok() {
                units.push(unit);
            }
        }
    }
    // Without an image the profile is unknown.
    if matches!(profile, Some(Profile::A) | None) {
        units.push(Unit {
            protocol: Protocol::EtmV3,
            cpu: "cortex-a7".to_owned(),
            identification: Some(ALTERNATIVE_ENCODING),
        });
        units.push(Unit {
            protocol: Protocol::Etmv4,
            cpu: "cortex-a725".to_owned(),
            identification: Some(NEWEST_EXTENSION),
        });
    }
    units
}

/// Processors of this profile whose trace units differ, the most usual first.
const fn usual_processors(profile: Option<Profile>) -> &'static [&'static str] {
    match profile {
        Some(Profile::M) => &["cortex-m3", "cortex-m33"],
        Some(Profile::A) => {
            &["cortex-a7", "cortex-a15", "cortex-a9", "cortex-a8", "cortex-a53", "cortex-a76", "cortex-a510"]
        }
        Some(Profile::R) => &["cortex-r4", "cortex-r52"],
        Some(Profile::Classic) => &["arm1136", "arm926"],
        None => &[
            "cortex-m3",
            "cortex-a7",
            "cortex-a15",
            "cortex-a9",
            "cortex-m33",
            "cortex-a53",
            "cortex-a76",
            "cortex-a510",
        ],
    }
}
