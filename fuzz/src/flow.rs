//! Flow: any trace through any program, by the graph and by the walk, whole and in pieces, by one thread and by two.

use tracewalk::flow::{Element, Engine};
use tracewalk::ids::Address;
use tracewalk::program::Program;
use tracewalk::protocol::mtb;
use tracewalk::source::{FlowStream, SourceConfig};

use crate::input::Input;
use crate::parts::parts;

/// The most elements for a byte of trace: fifteen atoms, each with a block, and the packet's other elements.
const MOST_ELEMENTS_PER_BYTE: usize = 64;

fn config(input: &mut Input<'_>) -> Option<SourceConfig> {
    Some(match input.byte() % 4 {
        0 => SourceConfig::Etmv3(input.etmv3()?),
        1 => SourceConfig::Pft(input.pft()?),
        2 => SourceConfig::Etmv4(input.etmv4()?),
        _ => SourceConfig::Mtb(mtb::Source { halted_at: input.flag().then(|| Address::from(input.word())) }),
    })
}

/// Some regions of any bytes; if two contradict each other, the first one stays.
pub(crate) fn program(input: &mut Input<'_>) -> Program {
    let mut program = Program::new();
    for _ in 0..input.byte() % 4 {
        let start = Address::from(input.word());
        let length = usize::from(input.byte());
        let _ = program.add(start, input.bytes(length));
    }
    if input.flag() {
        program.set_vector_table(Address::from(input.word() & 0xffff_ff00));
    }
    program
}

/// Any trace, any program, any configuration.
pub fn flow(data: &[u8]) {
    let mut input = Input(data);
    let Some(config) = config(&mut input) else { return };
    let program = program(&mut input);
    let (size, lost_at) = (usize::from(input.byte()).max(1), usize::from(input.byte()));
    let trace = input.0;
    let elements = |engine, size: usize, stops: bool| {
        let mut elements = Vec::new();
        let mut note = |element: Element| {
            let span = match element {
                Element::Block(block) => {
                    assert!(block.instructions > 0 && block.end != block.start);
                    block.span
                }
                Element::Event(event) => event.span,
                Element::Gap(gap) => gap.span,
                Element::Proof(proof) => proof.span,
            };
            assert!(span.start <= span.end && span.end.0 <= trace.len() as u64, "{span} is not in the trace");
            elements.push(element);
        };
        let mut stream = FlowStream::with_engine(&config, engine);
        let (before, after) = trace.split_at(if stops { lost_at.min(trace.len()) } else { 0 });
        before.chunks(size).for_each(|piece| stream.push(piece, &program, &mut note));
        if stops {
            stream.lose_sync(&program, &mut note);
        }
        after.chunks(size).for_each(|piece| stream.push(piece, &program, &mut note));
        stream.finish(&program, &mut note);
        elements
    };
    let whole = elements(Engine::Graph, trace.len().max(1), false);
    assert!(whole.len() <= MOST_ELEMENTS_PER_BYTE * (trace.len() + 1), "{} elements", whole.len());
    let walk = elements(Engine::Walk, trace.len().max(1), false);
    if let Some(index) = (0..whole.len().max(walk.len())).find(|&index| whole.get(index) != walk.get(index)) {
        panic!("graph {:?}, walk {:?}", whole.get(index), walk.get(index));
    }
    assert!(elements(Engine::Graph, size, false) == whole, "the cut changes the flow");
    assert!(
        elements(Engine::Graph, size, true) == elements(Engine::Walk, size, true),
        "graph and walk disagree after a loss"
    );
    // Threads take long to start.
    if size % 4 == 0 {
        parts(&config, &program, trace, size);
    }
}
