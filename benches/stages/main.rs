//! Measures the speed of each stage on its own: frames, packets, flow, analyses, outputs.
//!
//! `cargo bench -p tracewalk-benches` measures; `cargo test -p tracewalk-benches --benches` only tries each once.
use std::sync::Arc;

use std::path::Path;

use divan::Bencher;
use divan::counter::BytesCount;
use tracewalk::flow::{Element, Engine};
use tracewalk::frame::{Discontinuity, FrameSink, Framing, Owner, Piece, RecoveringDeframer};
use tracewalk::program::Program;
use tracewalk::protocol::{etmv3, pft};
use tracewalk::source::{FlowStream, PacketStream, SourceConfig};
use tracewalk::span::CaptureOffset;
use tracewalk_analysis::coverage::{Conditions, Recorder};
use tracewalk_analysis::record::FlowRecord;
use tracewalk_analysis::sink::Sink;
use tracewalk_analysis::{Code, Doubtful, Section};
use tracewalk_input::capture::{Capture, Protocol};
use tracewalk_input::image::ImageLoader;
use tracewalk_report::export::{FlowJsonl, Runs};

fn main() {
    divan::main();
}

/// The examples whose trace consists of atoms: all have one source, in frames.
const EXAMPLES: &[&str] = &["m3-etmv3", "a7-etmv3", "a15-pft"];

/// Traces are repeated to about this size.
const BYTES: usize = 1 << 20;

/// An example's bytes, configuration and program.
struct Example {
    /// In frames.
    capture: Vec<u8>,
    /// The source's.
    trace: Vec<u8>,
    config: SourceConfig,
    program: Program,
}

/// Collects the bytes of all sources.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl FrameSink for Bytes {
    #[inline]
    fn data(&mut self, owner: Owner, piece: Piece<'_>) {
        if owner.trace_id().is_some() {
            piece.append_to(&mut self.0);
        }
    }

    fn discontinuity(&mut self, _: Discontinuity) {}
}

impl Example {
    fn open(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/examples").join(name);
        let capture = Capture::open(&folder).expect("the example is a part of the project");
        let buffer = capture.buffers.first().expect("a capture has a buffer");
        let source = capture.sources().next().expect("the example describes its source");
        let register = |name| source.registers.get(name);
        let cpu = source.cpu.as_ref().map_or("", |cpu| cpu.value.as_str());
        let config = if source.protocol == Protocol::Pft {
            let registers = pft::Registers { etmcr: register("ETMCR"), ..pft::Registers::default() };
            pft::Config::from_registers(registers, pft::Core::named(cpu)).map(SourceConfig::Pft).ok()
        } else {
            let registers = etmv3::Registers { etmcr: register("ETMCR"), ..etmv3::Registers::default() };
            etmv3::Config::from_registers(registers, etmv3::Core::named(cpu)).map(SourceConfig::Etmv3).ok()
        };
        let memory = ImageLoader::new().memory(capture.images_for(source));
        let capture = buffer.bytes.repeat(1 + BYTES / buffer.bytes.len());
        Self {
            trace: deframed(&capture).0,
            capture,
            config: config.expect("the example says all of its registers"),
            program: memory.expect("the example has its program").program,
        }
    }

    fn flow(&self, engine: Engine, mut look: impl FnMut(Element)) {
        let mut stream = FlowStream::with_engine(&self.config, engine);
        stream.push(&self.trace, &self.program, &mut look);
        stream.finish(&self.program, &mut look);
    }

    fn records(&self) -> Vec<FlowRecord> {
        let mut records = Vec::new();
        self.flow(Engine::Graph, |element| records.push(FlowRecord { element, at: CaptureOffset(0) }));
        records
    }
}

fn deframed(capture: &[u8]) -> Bytes {
    let mut bytes = Bytes(Vec::with_capacity(capture.len()));
    let mut deframer = RecoveringDeframer::new(Framing::Buffer);
    deframer.push(capture, &mut bytes);
    deframer.finish(&mut bytes);
    bytes
}

#[divan::bench(args = EXAMPLES)]
fn frames(bencher: Bencher<'_, '_>, name: &str) {
    let example = Example::open(name);
    bencher
        .counter(BytesCount::of_slice(&example.capture))
        .bench_local(|| deframed(&example.capture).0.len());
}

#[divan::bench(args = EXAMPLES)]
fn packets(bencher: Bencher<'_, '_>, name: &str) {
    let example = Example::open(name);
    bencher.counter(BytesCount::of_slice(&example.trace)).bench_local(|| {
        let mut count = 0_u64;
        let mut stream = PacketStream::new(&example.config);
        stream.push(&example.trace, &mut |_, _, _| count += 1);
        stream.finish(&mut |_, _, _| count += 1);
        count
    });
}

#[divan::bench(args = EXAMPLES)]
fn flow(bencher: Bencher<'_, '_>, name: &str) {
    let example = Example::open(name);
    bencher.counter(BytesCount::of_slice(&example.trace)).bench_local(|| count(&example, Engine::Graph));
}

/// The walk without the block graph, for comparison.
#[divan::bench(args = EXAMPLES, sample_count = 10)]
fn plain_walk(bencher: Bencher<'_, '_>, name: &str) {
    let example = Example::open(name);
    bencher.counter(BytesCount::of_slice(&example.trace)).bench_local(|| count(&example, Engine::Walk));
}

fn count(example: &Example, engine: Engine) -> u64 {
    let mut instructions = 0;
    example.flow(engine, |element| {
        if let Element::Block(block) = element {
            instructions += u64::from(block.instructions);
        }
    });
    instructions
}

#[divan::bench(args = EXAMPLES)]
fn coverage(bencher: Bencher<'_, '_>, name: &str) {
    let example = Example::open(name);
    let records = example.records();
    bencher.counter(BytesCount::of_slice(&example.trace)).bench_local(|| {
        let mut recorder = Recorder::new(Conditions::OfBranches, Doubtful::Drop);
        records.iter().for_each(|record| recorder.element(&record.element, false));
        recorder
    });
}

#[divan::bench(args = EXAMPLES)]
fn runs(bencher: Bencher<'_, '_>, name: &str) {
    export(bencher, name, |out| Box::new(Runs::new(out)));
}

#[divan::bench(args = EXAMPLES)]
fn jsonl(bencher: Bencher<'_, '_>, name: &str) {
    export(bencher, name, |out| Box::new(FlowJsonl::new(out)));
}

fn export(
    bencher: Bencher<'_, '_>,
    name: &str,
    exporter: impl for<'a> Fn(&'a mut Vec<u8>) -> Box<dyn Sink<FlowRecord> + 'a>,
) {
    let example = Example::open(name);
    let records = example.records();
    let section =
        Section { id: None, protocol: example.config.protocol(), number: 1, code: Arc::new(Code::unknown()) };
    bencher.counter(BytesCount::of_slice(&example.trace)).bench_local(|| {
        let mut text = Vec::new();
        let mut exporter = exporter(&mut text);
        exporter.section(&section).expect("memory takes everything");
        records.iter().for_each(|&record| exporter.record(record).expect("memory takes everything"));
        exporter.end_section().expect("memory takes everything");
        drop(exporter);
        text.len()
    });
}
