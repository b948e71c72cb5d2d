//! Traces any path through any program with an MTB set up in any way. Decoding must return the end of the
//! path that the buffer holds, or as much of it as was traced.

use std::ops::Range;

use crate::common::{assert_same, decoded};
use proptest::prelude::*;
use tracewalk::flow::runs_straight;
use tracewalk::ids::{Address, Exception, Isa, Location};
use tracewalk::isa::{self, Class, Instruction};
use tracewalk::program::Program;
use tracewalk::protocol::mtb::order::{Dump, Layout, by_registers};
use tracewalk::protocol::mtb::{BufferSize, Config, Decoder, Lowering, RULES, Watermark};
use tracewalk_generate::mtb::{Buffer, Memory, Options, encode};
use tracewalk_generate::path::{Executed, Path, Step, Taken};
use tracewalk_generate::record::Profile;
use tracewalk_session::mtb_order::{Ending, by_evidence};

/// Where the code starts.
const CODE: u32 = 0x200;
/// The exceptions that have handlers; each handler is a copy of the same few instructions.
const EXCEPTIONS: [u16; 5] = [3, 11, 14, 15, 19];
/// `nop; beq over the next; nop; bx lr`.
const HANDLER: [u16; 4] = [0xbf00, 0xd000, 0xbf00, 0x4770];
const SVC: u16 = 0xdf00;

/// A program, and the addresses of its instructions.
#[derive(Clone, Debug)]
struct Code {
    program: Program,
    starts: Vec<Address>,
}

impl Code {
    /// A program of these instructions, with handlers after them.
    fn of(instructions: &[Vec<u16>]) -> Self {
        let handlers = EXCEPTIONS.iter().flat_map(|_| HANDLER);
        let halfwords = instructions.iter().flatten().copied().chain(handlers);
        let bytes = halfwords.flat_map(u16::to_le_bytes).collect::<Vec<_>>();
        let mut code = Self { program: Program::new(), starts: Vec::new() };
        let length: usize = instructions.iter().map(Vec::len).sum();
        let mut vectors = vec![0; 20];
        (vectors[0], vectors[1]) = (0x2000_1000, CODE | 1);
        for (index, &number) in EXCEPTIONS.iter().enumerate() {
            let halfwords = u32::try_from(length + index * HANDLER.len()).unwrap();
            vectors[usize::from(number)] = (CODE + 2 * halfwords) | 1;
        }
        let vectors = vectors.into_iter().flat_map(u32::to_le_bytes).collect::<Vec<_>>();
        code.program.add(Address::new(0), &vectors).unwrap();
        code.program.add(Address::from(CODE), &bytes).unwrap();
        code.program.set_vector_table(Address::new(0));
        let mut at = CODE;
        for instruction in instructions {
            code.starts.push(Address::from(at));
            at += 2 * u32::try_from(instruction.len()).unwrap();
        }
        code
    }

    fn handler(&self, number: u16) -> Address {
        Address::from(self.program.word(Address::from(4 * u32::from(number))).unwrap() & !1)
    }

    fn instruction(&self, at: Address) -> Option<Instruction> {
        isa::classify(self.program.code(at)?, at, Isa::T32).ok()
    }

    /// A place outside the handlers.
    fn place(&self, choice: u32) -> Address {
        self.starts[choice as usize % self.starts.len()]
    }

    /// Direct branches lead to the starts of instructions, and none to the next instruction, because the
    /// manual leaves open whether an MTB records such a branch.
    fn is_sound(&self) -> bool {
        self.starts.iter().all(|&at| match self.instruction(at) {
            Some(Instruction { class: Class::Direct(target), bytes, .. }) => {
                self.starts.contains(&target.address) && target.address != after(at, bytes)
            }
            instruction => instruction.is_some(),
        })
    }
}

fn any_instruction() -> impl Strategy<Value = Vec<u16>> {
    prop_oneof![
        4 => Just(vec![0xbf00]),                                               // nop
        1 => Just(vec![0xf3bf, 0x8f6f]),                                       // isb
        1 => Just(vec![SVC]),                                                  // svc 0
        1 => Just(vec![0x4770]),                                               // bx lr
        1 => Just(vec![0xbd10]),                                               // pop {r4, pc}
        1 => Just(vec![0x4798]),                                               // blx r3
        2 => (-12_i16..12).prop_map(|to| vec![0xd100 | to.cast_unsigned() & 0xff]),   // bne
        1 => (-12_i16..12).prop_map(|to| vec![0xe000 | to.cast_unsigned() & 0x7ff]),  // b
        1 => (1_u16..12).prop_map(|to| vec![0xf000, 0xf800 | to]),             // bl
    ]
}

/// The address after an instruction.
fn after(at: Address, bytes: u8) -> Address {
    Location::new(at, Isa::T32).after(bytes.into()).address
}

/// Programs that end in a branch back, so that execution never leaves them.
fn any_code() -> impl Strategy<Value = Code> {
    proptest::collection::vec(any_instruction(), 3..30)
        .prop_map(|mut instructions| {
            instructions.push(vec![0x4770]);
            // A branch to anywhere but an instruction's start becomes a nop.
            loop {
                let code = Code::of(&instructions);
                let starts = code.starts.clone();
                let wrong = starts.iter().position(|&at| match code.instruction(at) {
                    Some(Instruction { class: Class::Direct(target), bytes, .. }) => {
                        !starts.contains(&target.address) || target.address == after(at, bytes)
                    }
                    _ => false,
                });
                let Some(wrong) = wrong else { return code };
                instructions[wrong] = vec![0xbf00];
            }
        })
        .prop_filter("sound code", Code::is_sound)
}

/// A walk through a program; `choices` determine its turns.
struct Walker<'a> {
    code: &'a Code,
    at: Address,
    /// The active exceptions, with their return addresses.
    active: Vec<(u16, Address)>,
    /// Whether a handler may be interrupted before its first instruction. If the buffer has overwritten that
    /// exception, the return to the handler cannot be distinguished from a tail-chained exception.
    interrupts_beginning: bool,
    begins: bool,
    steps: Vec<Step>,
}

impl Walker<'_> {
    fn walk(mut self, choices: &[u32]) -> Path {
        for &choice in choices {
            let interrupt = choice % 16 == 0 && (self.interrupts_beginning || !self.begins);
            match self.next_exception(choice >> 4).filter(|_| interrupt) {
                Some(number) => self.enter(number, Some(self.at), self.at),
                None => self.execute(choice >> 4),
            }
        }
        Path { steps: self.steps }
    }

    /// An exception that is not active.
    fn next_exception(&self, choice: u32) -> Option<u16> {
        let number = EXCEPTIONS[choice as usize % EXCEPTIONS.len()];
        (!self.active.iter().any(|&(active, _)| active == number)).then_some(number)
    }

    fn enter(&mut self, number: u16, preferred_return: Option<Address>, returns_to: Address) {
        let handler = self.code.handler(number);
        self.steps.push(Step::Exception(Taken {
            exception: Exception::M(number),
            preferred_return,
            handler,
        }));
        self.active.push((number, returns_to));
        (self.at, self.begins) = (handler, true);
    }

    fn execute(&mut self, choice: u32) {
        let instruction = self.code.instruction(self.at).expect("execution stays in the code");
        let next = after(self.at, instruction.bytes);
        let passed = !instruction.conditional || choice & 1 == 1;
        let (address, bytes) = (self.at, instruction.bytes);
        let supervisor_call = instruction.raises.is_some();
        if supervisor_call && self.active.iter().any(|&(number, _)| number == 11) {
            // The supervisor call would be a fault, which this path leaves out.
            self.at = next;
            self.steps.push(Step::Instruction(Executed { address, isa: Isa::T32, bytes, passed: true }));
            return;
        }
        self.begins = false;
        self.steps.push(Step::Instruction(Executed { address, isa: Isa::T32, bytes, passed }));
        match instruction.class {
            _ if supervisor_call => self.enter(11, Some(next), next),
            Class::Direct(target) if passed => self.at = target.address,
            Class::Indirect if self.in_handler(address) => self.leave(choice),
            Class::Indirect => self.at = self.elsewhere(choice, next),
            _ => self.at = next,
        }
    }

    fn in_handler(&self, at: Address) -> bool {
        self.code.starts.last().is_some_and(|&last| at > last)
    }

    fn elsewhere(&self, choice: u32, next: Address) -> Address {
        let place = self.code.place(choice);
        if place == next { self.code.place(choice + 1) } else { place }
    }

    /// Returns from a handler to the interrupted code, or into the next handler.
    fn leave(&mut self, choice: u32) {
        let Some((_, returns_to)) = self.active.pop() else {
            self.at = self.elsewhere(choice, Address::new(0));
            return;
        };
        self.steps.push(Step::ExceptionReturn);
        match self.next_exception(choice >> 2).filter(|_| choice & 0b11 == 0) {
            Some(number) => self.enter(number, None, returns_to),
            None => (self.at, self.begins) = (returns_to, false),
        }
    }
}

fn path(code: &Code, choices: &[u32], interrupts_beginning: bool) -> Path {
    let walker = Walker {
        code,
        at: code.starts[0],
        active: Vec::new(),
        interrupts_beginning,
        begins: false,
        steps: Vec::new(),
    };
    walker.walk(choices)
}

/// The path that `tracewalk` finds in these pieces of a dump.
fn found(dump: &[u8], layout: &Layout, program: &Program) -> Path {
    let bytes = layout.pieces.iter().flat_map(|piece| &dump[piece.bytes.clone()]).copied();
    let bytes = bytes.collect::<Vec<_>>();
    decoded(&bytes, Decoder, Lowering::new(), RULES, program).path
}

fn layout_of(buffer: &Buffer, memory: Memory) -> Layout {
    let config = Config::from_registers(buffer.registers).with_pointer_bits(memory.pointer_bits);
    let config = config.expect("an MTB has such a memory");
    let dump = Dump::new(&buffer.bytes, Some(memory.base));
    by_registers(dump, &config).expect("the dump is the memory")
}

/// The range of `path` that equals `part`.
fn place_of(part: &Path, path: &Path) -> Option<Range<usize>> {
    let (part, path) = (&part.steps, &path.steps);
    (0..=path.len().checked_sub(part.len())?)
        .rev()
        .map(|start| start..start + part.len())
        .find(|place| path[place.clone()] == part[..])
}

/// Whether these steps, the last of a path, run straight on and so need no packet. The path does not show
/// where its last instruction went.
fn need_no_packet(steps: &[Step], program: &Program) -> bool {
    let jumps = |executed: &Executed| {
        let instruction = executed.classify(program).expect("the path is in the program");
        executed.passed && instruction.is_branch()
    };
    let straight = match steps {
        [straight @ .., Step::Instruction(_), Step::ExceptionReturn] => straight,
        [straight @ .., _] => straight,
        [] => &[],
    };
    straight.iter().all(|step| matches!(step, Step::Instruction(executed) if !jumps(executed)))
}

fn any_choices() -> impl Strategy<Value = Vec<u32>> {
    proptest::collection::vec(any::<u32>(), 1..300)
}

/// A memory, and the position of a buffer of `2^exponent` bytes in it.
fn any_memory(exponent: u8) -> impl Strategy<Value = (Memory, u32)> {
    (exponent..15, 0_u32..64, 0_u32..16, any::<bool>()).prop_map(move |(bits, buffer, base, aligned)| {
        let size = 1_u32 << exponent;
        let quarter = (1_u32 << bits) / 4;
        let base = if aligned { 0x2000_0000 } else { 0x2000_0000 - quarter.max(8) * (base % 4) };
        let memory = Memory { base: Address::from(base), bytes: 1 << bits, pointer_bits: bits };
        (memory, buffer * size)
    })
}

proptest! {
    #[test]
    fn the_end_of_any_path_comes_back_from_a_buffer_of_any_size(
        code in any_code(),
        choices in any_choices(),
        (exponent, (memory, position)) in (4_u8..12).prop_flat_map(|exponent| (Just(exponent), any_memory(exponent))),
        process_stack in any::<bool>(),
    ) {
        let size = BufferSize::new(1 << exponent).expect("a size that there is");
        let path = path(&code, &choices, exponent == 11);
        let options = Options { position, memory, process_stack, ..Options::new(size, memory.base) };
        let buffer = encode(&path, &code.program, &options).expect("the path is in the program");
        let layout = layout_of(&buffer, memory);
        prop_assert!(layout.missing.is_empty());
        assert_same(Profile::M, &buffer.path, &found(&buffer.bytes, &layout, &code.program), "any path");
        let place = place_of(&buffer.path, &path);
        prop_assert!(place.is_some(), "{:?}\nin {:?}", buffer.path, path);
        let end = place.map_or(0, |place| place.end);
        let rest = &path.steps[end..];
        prop_assert!(buffer.path.steps.is_empty() || need_no_packet(rest, &code.program), "{:?}", rest);
    }

    #[test]
    fn what_was_traced_between_restarts_and_before_the_watermark_comes_back(
        code in any_code(),
        choices in any_choices(),
        exponent in 7_u8..12,
        off in proptest::collection::vec((0_usize..300, 0_usize..60), 0..4),
        watermark in proptest::option::of(1_u32..64),
        stops in any::<bool>(),
    ) {
        let size = BufferSize::new(1 << exponent).expect("a size that there is");
        let path = path(&code, &choices, false);
        let options = Options {
            untraced: off.into_iter().map(|(start, length)| start..start + length).collect(),
            watermark: watermark.map(|place| Watermark { pointer: 8 * place, stops, halts: !stops }),
            ..Options::new(size, Address::new(0x2000_0000))
        };
        let buffer = encode(&path, &code.program, &options).expect("the path is in the program");
        let layout = layout_of(&buffer, options.memory);
        assert_same(Profile::M, &buffer.path, &found(&buffer.bytes, &layout, &code.program), "parts");
        let config = Config::from_registers(buffer.registers);
        if !config.enabled() || config.halt_request() {
            prop_assert_eq!(Some(config.pointer()), options.watermark.map(|watermark| watermark.pointer));
        }
    }

    #[test]
    fn without_registers_a_buffer_that_breaks_in_one_place_only_is_read_from_there(
        code in any_code(),
        choices in any_choices(),
        exponent in 6_u8..10,
    ) {
        let size = BufferSize::new(1 << exponent).expect("a size that there is");
        let path = path(&code, &choices, false);
        let options = Options::new(size, Address::new(0x2000_0000));
        let buffer = encode(&path, &code.program, &options).expect("the path is in the program");
        let dump = Dump::new(&buffer.bytes, None);
        let reaches = |from, to| runs_straight(&code.program, Location::new(from, Isa::T32), to);
        if let Some(guess) = by_evidence(dump, reaches) {
            prop_assert_eq!(guess.best.evidence.breaks, 0);
            // If the newest packet happens to fit before the oldest one, the place where they meet cannot be
            // determined. If the newest packet is at the end of the dump, newer ones may follow. The evidence
            // shows both cases.
            let is_shown = guess.best.evidence.end == Ending::Shown;
            if is_shown && (guess.best.evidence.breaks_at_wrap || !guess.best.evidence.wrapped) {
                let fits_by_chance = guess.best.evidence.bytes.len() == buffer.bytes.len()
                    && !guess.best.evidence.breaks_at_wrap;
                prop_assert!(fits_by_chance || guess.best.layout == layout_of(&buffer, options.memory));
            }
        }
    }
}
