//! What is known of a source's processor without its path: constants, memory, how its program begins, and where it halted.

use std::path::Path;
use std::sync::Arc;

use tracewalk::ids::{Address, Isa, Profile};
use tracewalk::source::SourceConfig;
use tracewalk_analysis::Code;
use tracewalk_analysis::crash::{CrashRecording, Snapshot};
use tracewalk_analysis::values::{Begin, End, Halt, Image, Profile as ValueProfile, Registers, ValueSetup};
use tracewalk_input::cpu;
use tracewalk_input::image::{ImageForm, VisibleImage};

use crate::error::OpenError;
use crate::model::Source;
use crate::session::Session;

/// M profile's region for memory (DDI 0403E, B3.1), without its part that may be an alias of bits of memory.
const MEMORY: [std::ops::Range<u64>; 2] = [0x2000_0000..0x2200_0000, 0x2400_0000..0x4000_0000];
/// M profile's regions for code and memory, outside which are devices.
const CODE_AND_MEMORY: std::ops::Range<u64> = 0..0x4000_0000;
/// M profile's registers of the processor itself.
const SYSTEM: u32 = 0xe000_0000;
/// M profile's regions for external memory.
const EXTERNAL: std::ops::Range<u64> = 0x6000_0000..0xa000_0000;

impl Session {
    /// What is known of a source's processor without its path. `code` has the program's names, which distinguish code and data. `dump` is as
    /// for [`Session::snapshot`].
    ///
    /// # Errors
    ///
    /// If an image or a file cannot be read, or the file has neither registers nor memory.
    pub fn value_setup(
        &mut self,
        source: &Source,
        code: &Arc<Code>,
        dump: Option<&Path>,
    ) -> Result<ValueSetup, OpenError> {
        let images = self.images(source)?;
        let snapshot = self.snapshot(dump)?;
        let is_wide = images.iter().any(|visible| visible.image.form == ImageForm::Elf64);
        let is_mtb = matches!(source.config, SourceConfig::Mtb(_));
        let profile = match (is_of_m_profile(source, code, &images), is_wide) {
            (true, _) => ValueProfile::M,
            (false, true) => ValueProfile::A64,
            (false, false) => ValueProfile::A32,
        };
        Ok(ValueSetup {
            image: image(code, &images, profile),
            profile,
            is_armv7m: profile == ValueProfile::M && is_armv7m(source, &images),
            states_conditions: matches!(source.config, SourceConfig::Etmv3(_)),
            begin: if is_mtb { None } else { begin(code, &images, profile) },
            halt: halt(&snapshot, profile, is_mtb),
        })
    }
}

impl Session {
    /// States to a recording what is known of the processor of its last source, `source`, if that could prove the cause of a crash. `dump` is as for
    /// [`Session::snapshot`], which `snapshot` is of.
    ///
    /// # Errors
    ///
    /// As for [`Session::value_setup`].
    pub fn prove_crash(
        &mut self,
        recording: &mut CrashRecording,
        source: &Source,
        code: &Arc<Code>,
        (snapshot, dump): (&Snapshot, Option<&Path>),
    ) -> Result<(), OpenError> {
        if recording.needs_values(snapshot) {
            recording.prove(self.value_setup(source, code, dump)?);
        }
        Ok(())
    }
}

/// Whether the processor is an ARMv7-M, by its name, or else by the program's.
fn is_armv7m(source: &Source, images: &[VisibleImage]) -> bool {
    let stated = source.description.cpu.as_ref().map(|cpu| cpu.value.to_string());
    let name = stated.or_else(|| images.iter().find_map(|visible| visible.image.attributes.cpu_name.clone()));
    let names = ["cortex-m3", "cortex-m4", "cortex-m7", "7-m", "7e-m"];
    name.is_some_and(|name| names.contains(&name.to_ascii_lowercase().as_str()))
}

fn is_of_m_profile(source: &Source, code: &Code, images: &[VisibleImage]) -> bool {
    let of_images = || images.iter().find_map(|visible| visible.image.attributes.profile);
    match source.profile().or_else(of_images) {
        Some(profile) => profile == cpu::Profile::M,
        None => code.profile == Profile::M || code.program.vector_table().is_some(),
    }
}

fn image(code: &Code, images: &[VisibleImage], profile: ValueProfile) -> Image {
    let mut image = Image::new();
    let mut variables = Vec::new();
    for visible in images {
        for segment in visible.image.loaded_segments().iter().filter(|segment| segment.is_writable) {
            let range = segment.address..segment.address.saturating_add(segment.memory_size);
            let is_memory = profile != ValueProfile::M
                || range.end <= CODE_AND_MEMORY.end
                || EXTERNAL.start <= range.start && range.end <= EXTERNAL.end;
            if is_memory {
                image.add_memory(range.clone());
            }
            variables.push(range);
            // Start-up code copies the bytes from where they were loaded.
            if segment.physical_address != segment.address {
                image.add_constants(segment.physical_address, segment.bytes);
            }
        }
    }
    if profile == ValueProfile::M {
        MEMORY.into_iter().for_each(|range| image.add_memory(range));
    }
    for stretch in code.symbols.stretches() {
        image.add_stretch(stretch.start.get()..stretch.end, stretch.isa == Some(Isa::T32));
    }
    for region in code.program.regions() {
        add_without(&mut image, region.start().get(), region.bytes(), &variables);
    }
    image
}

/// Adds the bytes that are in no segment with variables.
fn add_without(image: &mut Image, start: u64, bytes: &[u8], variables: &[std::ops::Range<u64>]) {
    let end = start.saturating_add(bytes.len() as u64);
    let overlaps = |range: &&std::ops::Range<u64>| range.start < end && start < range.end;
    let Some(variable) = variables.iter().find(overlaps) else {
        image.add_constants(start, bytes);
        return;
    };
    let index = |address: u64| usize::try_from(address.clamp(start, end) - start).unwrap_or(bytes.len());
    let (before, after) = (index(variable.start), index(variable.end));
    image.add_code(start.saturating_add(before as u64), &bytes[before..after]);
    if before > 0 {
        add_without(image, start, &bytes[..before], variables);
    }
    if after < bytes.len() {
        add_without(image, start.saturating_add(after as u64), &bytes[after..], variables);
    }
}

/// How the program begins: at the reset vector, or where a loader that put it into memory starts it.
fn begin(code: &Code, images: &[VisibleImage], profile: ValueProfile) -> Option<Begin> {
    let mut registers: Registers = [None; 32];
    if profile == ValueProfile::M {
        let table = code.program.vector_table()?;
        let (stack, reset) = (code.program.word(table)?, code.program.word(table.checked_add(4)?)?);
        registers[13] = Some(u64::from(stack & !3));
        return Some(Begin { at: Address::from(reset & !1), registers, variables: Vec::new() });
    }
    let at = images.iter().find_map(|visible| visible.image.entry)?.address;
    let loaded = images.iter().flat_map(|visible| visible.image.loaded_segments());
    let in_place =
        loaded.filter(|segment| segment.is_writable && segment.physical_address == segment.address);
    let variables = in_place.map(|segment| (segment.address, segment.bytes.to_vec())).collect();
    Some(Begin { at, registers, variables })
}

fn halt(snapshot: &Snapshot, profile: ValueProfile, is_mtb: bool) -> Option<Halt> {
    const PROGRAM_COUNTER: u8 = 32;
    let mut registers: Registers = [None; 32];
    let at = if profile == ValueProfile::A64 {
        for (register, number) in registers.iter_mut().zip(0_u8..) {
            *register = snapshot.wide.get(&number).copied();
        }
        Address::new(*snapshot.wide.get(&PROGRAM_COUNTER)?)
    } else {
        let [core @ .., counter] = snapshot.registers;
        for (register, value) in registers.iter_mut().zip(core) {
            *register = value.map(u64::from);
        }
        Address::from(counter? & !1)
    };
    let memory = snapshot.memory.iter();
    let is_memory = |(address, _): &(&u32, &Vec<u8>)| **address < SYSTEM || profile == ValueProfile::A64;
    let memory =
        memory.filter(is_memory).map(|(address, bytes)| (u64::from(*address), bytes.clone())).collect();
    Some(Halt { at: Some(at), end: End { registers, memory }, is_straight: is_mtb })
}
