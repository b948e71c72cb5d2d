//! The captures to try, each generated when its turn comes.

use tracewalk::frame::FSYNC;
use tracewalk::ids::{Address, TraceId};
use tracewalk::protocol::mtb::BufferSize;
use tracewalk_generate::capture::runs_file;
use tracewalk_generate::container::{SourceBytes, itm_text};
use tracewalk_generate::etmcr::{ALTERNATIVE_ETMIDR, BRANCH_BROADCAST, CYCLE_ACCURATE, RETURN_STACK};
use tracewalk_generate::mtb;
use tracewalk_generate::path::Path;
use tracewalk_input::capture::Container;
use tracewalk_session::{MtbStatements, Request, Statements};

use super::case::{Case, Guess, Warning, With};
use super::packing::{Packed, Packing, in_port_frames, swap_words};
use super::units::units;
use crate::support::firmware::{Firmware, Setup};

/// The programs.
pub(crate) struct Programs {
    a9: Firmware,
    a15: Firmware,
    m0: Firmware,
    m3: Firmware,
    m4: Firmware,
}

/// Makes one capture, which counts in a row and a column of the table.
pub(crate) struct Make<'a> {
    pub(crate) row: String,
    pub(crate) column: &'static str,
    pub(crate) case: Box<dyn Fn() -> Case + 'a>,
}

/// A trace unit in a capture.
type Source<'a> = (u8, Setup, &'a Firmware);

impl Programs {
    pub(crate) fn load() -> Self {
        let [a9, a15, m0, m3, m4] = ["a9", "a15", "m0", "m3", "m4"].map(Firmware::load);
        Self { a9, a15, m0, m3, m4 }
    }

    fn named(&self, name: &str) -> &Firmware {
        match name {
            "a9" => &self.a9,
            "m3" => &self.m3,
            _ => &self.m4,
        }
    }

    /// Every setting of every trace unit, in each of three packings.
    pub(crate) fn settings(&self) -> Vec<Make<'_>> {
        let mut makes = Vec::new();
        for unit in units() {
            for (index, setup) in unit.setups.into_iter().enumerate() {
                let start = index % 15 + 1;
                for (column, packing) in
                    [("raw", Packing::Raw), ("buffer", Packing::Frames), ("port", Packing::Port(start))]
                {
                    let firmware = self.named(unit.program);
                    makes.push(Make {
                        row: unit.name.to_owned(),
                        column,
                        case: Box::new(move || traced(&[(0x10, setup, firmware)], None, packing, false)),
                    });
                }
            }
        }
        makes
    }

    /// Every arrangement of frames, with two setups of each trace unit.
    fn arrangements(&self) -> Vec<Make<'_>> {
        let turned = [3, 8, 13].map(Packing::Turned).map(|packing| (TURNED, packing, false));
        let ports = (0..16).map(|start| ("port, each alignment", Packing::Port(start), false));
        let without = (0..16).step_by(3).map(Packing::PortWithoutFullSync);
        let arrangements = [
            ("after a barrier", Packing::AfterBarrier, false),
            ("barrier in the middle", Packing::BarrierBetween, false),
            ("words swapped, raw", Packing::Raw, true),
            ("words swapped, buffer", Packing::Frames, true),
            ("words swapped, port", Packing::Port(4), true),
        ];
        let arrangements = arrangements
            .into_iter()
            .chain(turned)
            .chain(ports)
            .chain(without.map(|packing| ("port without FSYNC", packing, false)))
            .collect::<Vec<_>>();
        let mut makes = Vec::new();
        for (setup, program) in setups() {
            for &(row, packing, swapped) in &arrangements {
                let firmware = self.named(program);
                let case = move || traced(&[(0x10, setup, firmware)], None, packing, swapped);
                makes.push(Make { row: row.to_owned(), column: "all units", case: Box::new(case) });
            }
        }
        makes
    }

    /// The buffers that wrapped, and the others.
    pub(crate) fn arrangements_turned_and_in_order(&self) -> (Vec<Make<'_>>, Vec<Make<'_>>) {
        self.arrangements().into_iter().partition(|make| make.row == TURNED)
    }

    /// Several trace units in one capture, with different protocols and settings, and ITMs.
    pub(crate) fn several(&self) -> Vec<Make<'_>> {
        let a7 =
            Setup { protocol: "etmv3", cpu: "cortex-a7", etmcr: 0x4000 | CYCLE_ACCURATE, ..Setup::default() };
        let a7_plain = Setup { etmcr: 0xc000, ..a7 };
        let a15 =
            Setup { protocol: "pft", cpu: "cortex-a15", etmcr: 0x8000 | RETURN_STACK, ..Setup::default() };
        let a9 = Setup { cpu: "cortex-a9", etmcr: CYCLE_ACCURATE, ..a15 };
        let m3 = Setup { protocol: "etmv3", cpu: "cortex-m3", ..Setup::default() };
        let m4 = Setup { cpu: "cortex-m4", etmcr: BRANCH_BROADCAST, ..m3 };
        let combinations: [(&str, Vec<Source<'_>>, bool); 7] = [
            ("ETMv3 and ETMv3", vec![(0x10, a7, &self.a9), (0x11, a7_plain, &self.a9)], false),
            ("ETMv3 and PFT", vec![(0x10, a7, &self.a9), (0x12, a15, &self.a9)], false),
            ("ETMv3 and PFT of two programs", vec![(0x10, a7, &self.a9), (0x12, a15, &self.a15)], false),
            ("PFT v1.0 and v1.1, and ITM", vec![(0x01, a9, &self.a9), (0x12, a15, &self.a9)], true),
            (
                "two ETMv3, two PFT",
                vec![
                    (0x10, a7, &self.a9),
                    (0x11, a7_plain, &self.a9),
                    (0x12, a15, &self.a9),
                    (0x13, a9, &self.a9),
                ],
                false,
            ),
            ("Cortex-M3 and ITM", vec![(0x02, m3, &self.m3)], true),
            ("Cortex-M4 and ITM", vec![(0x02, m4, &self.m4)], true),
        ];
        let packings = [
            ("buffer", Packing::Frames, false),
            ("port", Packing::Port(5), false),
            ("port", Packing::Port(12), false),
            ("port", Packing::PortWithoutFullSync(7), false),
            ("swapped", Packing::Frames, true),
        ];
        let mut makes = Vec::new();
        for (row, sources, has_itm) in combinations {
            for (column, packing, swapped) in packings {
                let sources = sources.clone();
                let itm = has_itm.then_some(0x6f);
                let case = move || traced(&sources, itm, packing, swapped);
                makes.push(Make { row: row.to_owned(), column, case: Box::new(case) });
            }
        }
        makes
    }

    /// Dumps of a Micro Trace Buffer: larger than the trace, and wrapped, with the end anywhere.
    pub(crate) fn mtbs(&self) -> Vec<Make<'_>> {
        let mut makes = Vec::new();
        for size in [256, 512, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 17] {
            for ends in [41, 67, 83, 100] {
                for process_stack in [false, true] {
                    for noisy in [false, true] {
                        let case = move || self.mtb(size, ends, process_stack, noisy);
                        let row = format!("MTB of {size} bytes");
                        makes.push(Make { row, column: "memory", case: Box::new(case) });
                    }
                }
            }
        }
        makes
    }

    /// If `noisy`, memory that was not written holds other data.
    fn mtb(&self, size: u64, percent: usize, process_stack: bool, noisy: bool) -> Case {
        let steps = self.m0.path.steps.len() * percent / 100;
        let path = Path { steps: self.m0.path.steps[..steps].to_vec() };
        let options = mtb::Options {
            process_stack,
            writes_branches_to_next: true,
            ..mtb::Options::new(BufferSize::new(size).unwrap(), Address::new(0x2000_0000))
        };
        let mut buffer = mtb::encode(&path, &self.m0.elf.program, &options).unwrap();
        let registers = buffer.registers;
        const WRAPPED: u32 = 1 << 2;
        if noisy && registers.position & WRAPPED == 0 {
            let written = usize::try_from(registers.position & !0b111).unwrap();
            add_noise(&mut buffer.bytes[written..]);
        }
        let [position, master] = [registers.position, registers.master].map(Some);
        let mtb = MtbStatements { position, master, base: registers.base, ..MtbStatements::default() };
        Case {
            name: format!("MTB {size} {percent} {process_stack} {noisy}"),
            bytes: buffer.bytes,
            images: vec![elf(&self.m0)],
            right_images: vec![elf(&self.m0)],
            stated: Statements { container: Some(Container::Mtb), mtb, ..Statements::default() },
            runs: Some(text(runs_file(None::<TraceId>, self.m0.elf.profile, &buffer.path).bytes)),
        }
    }

    /// Images of raw bytes, stated at their true address and at others.
    pub(crate) fn images(&self) -> Vec<Make<'_>> {
        let mut makes = Vec::new();
        for (setup, program) in setups() {
            let firmware = self.named(program);
            for (row, moved) in OFFSETS {
                let case = move || {
                    let case = traced(&[(0x10, setup, firmware)], None, Packing::Frames, false);
                    with_raw_image(case, firmware, moved)
                };
                makes.push(Make { row: row.to_owned(), column: "ETMv3 and PFT", case: Box::new(case) });
            }
        }
        for size in [1 << 10, 1 << 17] {
            for (row, moved) in OFFSETS {
                let case = move || with_raw_image(self.mtb(size, 100, false, false), &self.m0, moved);
                makes.push(Make { row: row.to_owned(), column: "MTB", case: Box::new(case) });
            }
        }
        makes
    }

    /// Captures that were once guessed wrongly, or with a false warning, though there is enough evidence.
    pub(crate) fn lessons(&self) -> Vec<(With, Guess, Case)> {
        let a7 = |etmcr, etmidr, etmccer, timestamps| {
            let setup = Setup { protocol: "etmv3", cpu: "cortex-a7", etmcr, etmidr, etmccer, timestamps };
            (0x10, setup, &self.a9)
        };
        let alternative = Some(ALTERNATIVE_ETMIDR);
        let a15 = Setup {
            protocol: "pft",
            cpu: "cortex-a15",
            etmcr: RETURN_STACK | CYCLE_ACCURATE,
            etmccer: Some(0x05c0_1ac2),
            ..Setup::default()
        };
        let gray =
            Setup { etmcr: RETURN_STACK | 0x4000, etmccer: Some(0x24c0_1ac2), timestamps: Some(20), ..a15 };
        let traced = |source, packing| traced(&[source], None, packing, false);
        let moved = Guess::Warned(Warning::ImageMoved);
        vec![
            // Frames at another place were equally likely, and named three sources that do not exist.
            (
                With::Nothing,
                Guess::Quiet,
                traced(a7(0x9108, None, Some(0x3440_08f2), Some(200)), Packing::Port(10)),
            ),
            // Nine MTB packets were as likely as five thousand ETM packets.
            (
                With::Nothing,
                Guess::Quiet,
                traced(a7(0xc100, alternative, Some(0x3440_08f2), Some(200)), Packing::Raw),
            ),
            // Neither another timestamp format alone nor another processor alone improved the result.
            (With::Program, Guess::Quiet, traced((0x10, gray, &self.a9), Packing::Raw)),
            (With::Program, Guess::Quiet, traced((0x10, gray, &self.a9), Packing::Port(3))),
            // At the wrong address, flow ran through memory without code for long.
            (
                With::Program,
                moved,
                with_raw_image(traced((0x10, a15, &self.a9), Packing::Frames), &self.a9, 0x40),
            ),
            // With an MTB, the program's address was not searched for.
            (With::Program, moved, with_raw_image(self.mtb(1 << 10, 100, false, false), &self.m0, 0x1000)),
        ]
    }
}

impl Programs {
    /// A trace port's bytes that begin with the last bytes of a frame and an FSYNC, the runs in them, and what
    /// describes the source. Its timestamps have an unusual format, so its first packets look odd
    /// until that format is tried.
    pub(crate) fn after_full_sync(&self, in_front: usize) -> (Vec<u8>, String, Request) {
        let setup = Setup {
            protocol: "etmv3",
            cpu: "cortex-a7",
            etmcr: 0xd500,
            etmccer: Some(0x2440_08f2),
            timestamps: Some(10),
            ..Setup::default()
        };
        let id = TraceId::new(0x10).unwrap();
        let trace = self.a9.trace(&setup);
        let frames = in_port_frames(&[SourceBytes { id, bytes: trace.bytes }]);
        let runs = text(runs_file(Some(id), self.a9.elf.profile, &trace.path).bytes);
        let request = described(Container::TracePort, &format!("{id}={}", setup.option()), &self.a9);
        ([vec![0; in_front], FSYNC.to_vec(), frames].concat(), runs, request)
    }

    /// A trace with Gray timestamps whose beginning is cut off, so that their upper bits are unknown; and what
    /// describes it.
    pub(crate) fn gray_times_without_a_whole_one(&self) -> (Vec<u8>, Request) {
        let setup = Setup {
            protocol: "pft",
            cpu: "cortex-a9",
            etmcr: RETURN_STACK | 0x4000,
            etmccer: Some(0x00c0_1ac2),
            timestamps: Some(20),
            ..Setup::default()
        };
        let mut bytes = self.a9.trace(&setup).bytes;
        // Cuts after the timestamp that follows the first synchronisation.
        bytes.drain(..200);
        (bytes, described(Container::Raw, &setup.option(), &self.a9))
    }
}

/// The row of buffers that were read from their lowest address.
const TURNED: &str = "buffer that wrapped";

/// The offsets between an image's stated and true addresses.
const OFFSETS: [(&str, u32); 7] = [
    ("image where it stood", 0),
    ("image 4 bytes off", 4),
    ("image 0x40 bytes off", 0x40),
    ("image a page off", 0x1000),
    ("image 64 KiB off", 0xffff_0000),
    ("image at the other end of memory", 0x8000_0000),
    ("image linked for 0x01000000 more", 0x0100_0000),
];

/// Two setups of each trace unit: the usual one, and one with most kinds of packets.
fn setups() -> Vec<(Setup, &'static str)> {
    let usual_and_rich = units().into_iter().flat_map(|unit| {
        let rich = unit.setups[unit.setups.len() * 2 / 3];
        let usual = unit.setups[unit.setups.len() - 1 - (unit.setups.len() - 1) % 4];
        [(usual, unit.program), (rich, unit.program)]
    });
    usual_and_rich.collect()
}

/// The capture of these sources, traced together.
fn traced(sources: &[Source<'_>], itm: Option<u8>, packing: Packing, swapped: bool) -> Case {
    let mut bytes = Vec::new();
    let mut runs = String::from("# tracewalk runs 1\n");
    let mut stated = Vec::new();
    let mut names = Vec::new();
    let mut images = Vec::new();
    for (id, setup, firmware) in sources {
        let id = TraceId::new(*id).unwrap();
        let trace = firmware.trace(setup);
        let option = setup.option();
        let of_source = packing.has_ids().then_some(id);
        let own = text(runs_file(of_source, firmware.elf.profile, &trace.path).bytes);
        runs.push_str(own.split_once('\n').unwrap().1);
        let source = of_source.map_or_else(|| option.clone(), |id| format!("{id}={option}"));
        stated.push(source.parse().expect("a source"));
        names.push(option);
        bytes.push(SourceBytes { id, bytes: trace.bytes });
        if !images.contains(&elf(firmware)) {
            images.push(elf(firmware));
        }
    }
    if let Some(id) = itm.and_then(TraceId::new) {
        let bytes_sent = (0..40).map(|line| format!("line {line}: all is well\n")).collect::<String>();
        bytes.push(SourceBytes { id, bytes: itm_text(&bytes_sent) });
        stated.push(format!("{id}=itm").parse().expect("a source"));
    }
    let how = format!("{packing:?}");
    let mut packed = packing.pack(&bytes);
    if swapped {
        packed = swap_words(packed);
    }
    let Packed { bytes, stated: packing, is_whole } = packed;
    let swapped = if swapped { " swapped" } else { "" };
    Case {
        name: format!("{} {how}{swapped}", names.join(" ")),
        bytes,
        right_images: images.clone(),
        images,
        stated: Statements { sources: stated, ..packing },
        runs: is_whole.then_some(runs),
    }
}

/// The same capture with the program as raw bytes, stated at another address.
fn with_raw_image(case: Case, firmware: &Firmware, moved: u32) -> Case {
    let region = firmware.elf.program.regions().iter().max_by_key(|region| region.bytes().len()).unwrap();
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join(format!("{}.image", firmware.file.file_stem().unwrap().to_str().unwrap()));
    if !file.exists() {
        std::fs::write(&file, region.bytes()).unwrap();
    }
    let image = |address: u32| format!("{address:#x}:{}", file.display());
    let start = region.start().low_word();
    Case {
        name: format!("{} image moved by {moved:#x}", case.name),
        images: vec![image(start.wrapping_add(moved))],
        right_images: vec![image(start)],
        ..case
    }
}

/// Fills memory as it is after power-up.
fn add_noise(bytes: &mut [u8]) {
    let mut state = 1_u32;
    for byte in bytes {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *byte = state.to_be_bytes()[0];
    }
}

/// One source of this program.
fn described(container: Container, source: &str, firmware: &Firmware) -> Request {
    let sources = vec![source.parse().expect("a source")];
    let stated = Statements { container: Some(container), sources, ..Statements::default() };
    Request { stated, images: vec![elf(firmware).parse().expect("an image")], ..Request::default() }
}

fn elf(firmware: &Firmware) -> String {
    firmware.file.display().to_string()
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}
