//! What the tests of all protocols share: the firmware, and decoding with `tracewalk`.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod opencsd;

use std::path::PathBuf;

use tracewalk::directive::{Directive, Rules, TransferValue};
use tracewalk::flow::{BranchKind, Element, Ending, EventKind, Walk};
use tracewalk::ids::{Address, ContextId};
use tracewalk::isa;
use tracewalk::program::Program;
use tracewalk::protocol::{Decode, Item, Lower, Packets};
use tracewalk::span::Span;
use tracewalk_generate::elf::{self, Elf};
use tracewalk_generate::path::{Access, Executed, Path, Step, Taken};
use tracewalk_generate::record::{Profile, Record};

/// A program, and what it executed.
pub(crate) struct Firmware {
    pub(crate) elf: Elf,
    pub(crate) path: Path,
}

impl Firmware {
    pub(crate) fn load(name: &str) -> Self {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/firmware").join(name);
        let mut elf = elf::read(&std::fs::read(folder.join(format!("{name}.elf"))).unwrap()).unwrap();
        if elf.profile == Profile::M {
            elf.program.set_vector_table(Address(0));
        }
        let record = std::fs::read_to_string(folder.join(format!("{name}.record"))).unwrap();
        let path = Path::expand(&Record::parse(&record).unwrap(), &elf.program).unwrap();
        Self { elf, path }
    }
}

/// What the core library makes of a trace.
#[derive(Default)]
pub(crate) struct Decoded {
    pub(crate) path: Path,
    pub(crate) cycles: u64,
    pub(crate) timestamps: Vec<u64>,
    pub(crate) contexts: Vec<Option<ContextId>>,
}

impl Decoded {
    /// Decodes all of `bytes`, which have to be nothing but packets.
    pub(crate) fn of<D: Decode, L: Lower<Packet = D::Packet>>(
        bytes: &[u8],
        decoder: D,
        mut lowering: L,
        rules: Rules,
        program: &Program,
    ) -> Self {
        let mut packets = Packets::new(decoder);
        let mut found = Vec::new();
        let mut note = |item: Item<D::Packet>, span: Span, bytes: &[u8]| match item {
            Item::Packet(packet) => found.push((packet, span)),
            Item::Malformed(reason) => panic!("{reason} at {span}: {bytes:02x?}"),
            Item::Unsynchronised => panic!("unsynchronised at {span}: {bytes:02x?}"),
        };
        packets.push(bytes, &mut note);
        packets.finish(&mut note);
        let mut directives = Vec::new();
        let mut emit = |directive: Directive, span: Span| directives.push((directive, span));
        for (packet, span) in &found {
            lowering.lower(packet, *span, &mut emit);
        }
        lowering.finish(&mut emit);
        let mut decoded = Self::default();
        let mut walk = Walk::new(rules);
        let mut take = |element| decoded.take(element, program);
        for (directive, span) in directives {
            walk.follow(program, directive, span, &mut take);
        }
        walk.finish(&mut take);
        decoded
    }

    fn take(&mut self, element: Element, program: &Program) {
        let block = match element {
            Element::Block(block) => block,
            Element::Event(event) => return self.event(event.kind),
            Element::Gap(gap) => panic!("{gap:x?} behind {:x?}", self.path.steps.last()),
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
            EventKind::Context { context_id, .. } => return self.contexts.push(context_id),
            EventKind::Cycles(cycles) => {
                self.cycles += cycles;
                return;
            }
            // Cycles before it are no instruction's.
            EventKind::TraceOn(_) => {
                self.cycles = 0;
                return;
            }
            EventKind::Timestamp(time) => return self.timestamps.push(time),
            EventKind::Trigger => return,
        };
        self.path.steps.push(step);
    }
}

/// The two have to be the same, but for the steps that say a context ID.
pub(crate) fn assert_same(profile: Profile, told: &Path, found: &Path, what: &str) {
    let text = |path: &Path| {
        let mut path = path.clone();
        path.steps.retain(|step| !matches!(step, Step::ContextId(_)));
        Record::of_path(profile, &path).to_string()
    };
    let (told, found) = (text(told), text(found));
    for (number, (told, found)) in told.lines().zip(found.lines()).enumerate() {
        assert_eq!(told, found, "line {number}, {what}");
    }
    assert_eq!(told.lines().count(), found.lines().count(), "{what}");
}
