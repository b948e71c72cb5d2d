//! Generated ETMv3 traces, decoded by `tracewalk`: it has to find what the emulator recorded.

use std::path::PathBuf;

use tracewalk::directive::{Directive, TransferValue};
use tracewalk::flow::{BranchKind, Element, Ending, EventKind, Walk};
use tracewalk::ids::{ContextId, SecurityState};
use tracewalk::isa;
use tracewalk::program::Program;
use tracewalk::protocol::etmv3::{Config, Core, Decoder, Lowering, Packet, Registers};
use tracewalk::protocol::{Item, Lower, Packets};
use tracewalk::span::Span;
use tracewalk_generate::elf::{self, Elf};
use tracewalk_generate::etmv3::{Cancel, Options, encode};
use tracewalk_generate::path::{Access, Executed, Path, Step, Taken};
use tracewalk_generate::record::Record;
use tracewalk_generate::trace::Trace;

struct Firmware {
    elf: Elf,
    path: Path,
}

fn firmware(name: &str) -> Firmware {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/firmware").join(name);
    let elf = elf::read(&std::fs::read(folder.join(format!("{name}.elf"))).unwrap()).unwrap();
    let record = std::fs::read_to_string(folder.join(format!("{name}.record"))).unwrap();
    let path = Path::expand(&Record::parse(&record).unwrap(), &elf.program).unwrap();
    Firmware { elf, path }
}

fn config(core: &str, etmcr: u32, etmidr: Option<u32>) -> Config {
    let registers = Registers { etmcr: Some(etmcr), etmidr, ..Registers::default() };
    Config::from_registers(registers, Core::named(core)).unwrap()
}

/// What the core library makes of a trace.
#[derive(Default)]
struct Decoded {
    path: Path,
    cycles: u64,
    timestamps: Vec<u64>,
    contexts: Vec<Option<ContextId>>,
    packets: Vec<Packet>,
}

fn decode(bytes: &[u8], config: &Config, program: &Program) -> Decoded {
    let mut decoded = Decoded::default();
    let mut packets = Packets::new(Decoder::new(config));
    let mut found = Vec::new();
    let mut note = |item: Item<Packet>, span: Span, bytes: &[u8]| match item {
        Item::Packet(packet) => found.push((packet, span)),
        other => panic!("{other:?} at {span}: {bytes:02x?}"),
    };
    packets.push(bytes, &mut note);
    packets.finish(&mut note);
    let mut lowering = Lowering::new(config);
    let mut directives = Vec::new();
    let mut emit = |directive: Directive, span: Span| directives.push((directive, span));
    for (packet, span) in &found {
        lowering.lower(packet, *span, &mut emit);
        decoded.packets.push(*packet);
    }
    lowering.finish(&mut emit);
    let mut walk = Walk::new(config.rules());
    let mut take = |element| decoded.take(element, program);
    for (directive, span) in directives {
        walk.follow(program, directive, span, &mut take);
    }
    walk.finish(&mut take);
    decoded
}

impl Decoded {
    fn take(&mut self, element: Element, program: &Program) {
        let block = match element {
            Element::Block(block) => block,
            Element::Event(event) => return self.event(event.kind),
            Element::Gap(gap) => panic!("{gap:?}"),
        };
        let mut at = block.start;
        while at != block.end {
            let bytes = isa::classify(program.code(at).unwrap(), at, block.isa).unwrap().bytes;
            let passed = match block.ending {
                _ if at != block.last => true,
                Ending::Branch { kind: BranchKind::Direct | BranchKind::Indirect, taken, .. } => taken,
                Ending::ConditionFailed => false,
                Ending::Branch { kind: BranchKind::Barrier, .. } | Ending::Interrupted => true,
            };
            self.path.steps.push(Step::Instruction(Executed { address: at, isa: block.isa, bytes, passed }));
            at = at.plus(u32::from(bytes));
        }
    }

    fn event(&mut self, event: EventKind) {
        let step = match event {
            EventKind::Exception { exception, preferred_return, handler } => Step::Exception(Taken {
                exception: exception.unwrap(),
                preferred_return,
                handler: handler.unwrap().address,
            }),
            EventKind::ExceptionReturn => Step::ExceptionReturn,
            EventKind::Data(data) => Step::Access(Access {
                address: data.address.unwrap_or_default(),
                bytes: data.bytes.unwrap(),
                store: data.store.unwrap(),
                value: match data.value {
                    TransferValue::Value(value) => Some(value.into()),
                    _ => None,
                },
            }),
            EventKind::Context { context_id, .. } => {
                self.contexts.push(context_id);
                return;
            }
            EventKind::Cycles(cycles) => {
                self.cycles += cycles;
                return;
            }
            EventKind::Timestamp(time) => {
                self.timestamps.push(time);
                return;
            }
            EventKind::TraceOn(_) => {
                // Those before it are no instruction's.
                self.cycles = 0;
                return;
            }
            EventKind::Trigger => return,
        };
        self.path.steps.push(step);
    }
}

/// Encodes and decodes; the two have to agree on everything that this configuration tells.
fn check(name: &str, config: &Config, options: &Options) -> (Trace, Decoded) {
    let firmware = firmware(name);
    let trace = encode(&firmware.path, &firmware.elf.program, config, options).unwrap();
    let decoded = decode(&trace.bytes, config, &firmware.elf.program);
    let compare = |path: &Path, without_contexts: bool| {
        let mut path = path.clone();
        path.steps.retain(|step| !(without_contexts && matches!(step, Step::ContextId(_))));
        for step in &mut path.steps {
            if let Step::Access(access) = step {
                access.address = if config.data.addresses { access.address } else { Default::default() };
                access.value = access.value.filter(|_| config.data.values);
            }
        }
        Record::of_path(firmware.elf.profile, &path).to_string()
    };
    let (told, found) = (compare(&trace.told, true), compare(&decoded.path, false));
    for (number, (told, found)) in told.lines().zip(found.lines()).enumerate() {
        assert_eq!(told, found, "line {number}, {config:?}, {options:?}");
    }
    assert_eq!(told.lines().count(), found.lines().count());
    (trace, decoded)
}

#[test]
fn the_m3_program_is_found_whatever_the_options() {
    for etmcr in [0, 0x100] {
        for cancel in [Cancel::Never, Cancel::Multiple, Cancel::Always] {
            for synchronise_every in [None, Some(0), Some(40), Some(1024)] {
                for tail_chaining_cancels in [false, true] {
                    let options = Options {
                        cancel,
                        synchronise_every,
                        tail_chaining_cancels,
                        timestamp_every: Some(100),
                        ..Options::default()
                    };
                    let (trace, _) = check("m3", &config("cortex-m3", etmcr, None), &options);
                    assert!(trace.told.instructions().count() > 17_000);
                }
            }
        }
    }
}

#[test]
fn the_a9_program_is_found_in_both_address_encodings() {
    const ALTERNATIVE: u32 = 0x411c_f250;
    for etmidr in [None, Some(ALTERNATIVE)] {
        for etmcr in [0, 0x100, 0x1000, 0x1100, 0xc000, 0x500c] {
            for cancel in [Cancel::Never, Cancel::Multiple, Cancel::Always] {
                let options = Options { cancel, synchronise_every: Some(200), ..Options::default() };
                check("a9", &config("cortex-a7", etmcr, etmidr), &options);
            }
        }
    }
}

#[test]
fn exception_returns_are_told_from_version_3_5_on() {
    let returns = |core| {
        let (trace, _) = check("a9", &config(core, 0, None), &Options::default());
        trace.told.steps.iter().filter(|step| matches!(step, Step::ExceptionReturn)).count()
    };
    assert_eq!(returns("cortex-a8"), 0);
    assert_eq!(returns("cortex-a7"), 60);
}

#[test]
fn every_cycle_is_found() {
    for cancel in [Cancel::Never, Cancel::Always] {
        let options = Options { cancel, ..Options::default() };
        let (trace, decoded) = check("a9", &config("cortex-a7", 0x1000, None), &options);
        assert_eq!(decoded.cycles, trace.cycles);
    }
}

#[test]
fn timestamps_rise_with_the_cycles() {
    let options = Options { timestamp_every: Some(50), ..Options::default() };
    let (_, decoded) = check("a9", &config("cortex-a7", 0, None), &options);
    assert!(decoded.timestamps.len() > 100);
    assert!(decoded.timestamps.is_sorted());
    assert_eq!(decoded.timestamps[0], 0x12_3456_0000);
}

#[test]
fn context_ids_are_found_in_every_size() {
    for (bits, bytes) in [(0b01, 1), (0b10, 2), (0b11, 4)] {
        let config = config("cortex-a7", bits << 14, None);
        assert_eq!(config.context_id_bytes, bytes);
        let (_, decoded) = check("a9", &config, &Options::default());
        let mut contexts = decoded.contexts.into_iter().flatten().collect::<Vec<_>>();
        contexts.dedup();
        assert_eq!(contexts, [0, 1, 2, 1, 2].map(ContextId));
    }
}

#[test]
fn data_is_found_with_addresses_values_or_both() {
    for etmcr in [0x4, 0x8, 0xc] {
        let (trace, _) = check("a9", &config("cortex-a7", etmcr, None), &Options::default());
        let accesses = trace.told.steps.iter().filter(|step| matches!(step, Step::Access(_))).count();
        assert!(accesses > 3000);
    }
}

#[test]
fn deprecated_exception_codes_name_the_same_exceptions() {
    let options = Options { deprecated_exceptions: true, ..Options::default() };
    check("a9", &config("arm1136", 0, Some(0x4105_3211)), &options);
}

#[test]
fn security_state_is_sent_with_every_exception() {
    let security = SecurityState { non_secure: true, hypervisor: false };
    check("a9", &config("cortex-a7", 0, None), &Options { security, ..Options::default() });
}

#[test]
fn old_cores_count_the_halves_of_thumb_pairs() {
    for cancel in [Cancel::Never, Cancel::Multiple, Cancel::Always] {
        let config = config("arm926", 0x100, None);
        assert!(config.two_atoms_per_thumb_pair);
        check("a9", &config, &Options { cancel, synchronise_every: Some(100), ..Options::default() });
    }
}
