//! The command `seek`: checks that a cursor moved to any place of a large capture shows what flow reports
//! there, and measures time and memory.

use std::cell::Cell;
use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use tracewalk::flow::Element;
use tracewalk::frame::Framing;
use tracewalk::ids::TraceId;
use tracewalk::protocol::{Registers, etmv3, pft};
use tracewalk::source::SourceConfig;
use tracewalk::span::CaptureOffset;
use tracewalk_analysis::drive::{Carrier, Cursor, FlowIndex, Input, Progress};
use tracewalk_generate::arguments::Arguments;
use tracewalk_input::capture::{Capture, Protocol, SourceDescription};
use tracewalk_input::image::ImageLoader;

/// The default size of the capture, and the default number of seeks.
const MEGABYTES: u32 = 1024;
const SEEKS: u32 = 10_000;

/// The limit for the time of 99 of 100 seeks, and for the process's memory apart from the mapped file.
const MOST_TIME: Duration = Duration::from_millis(100);
const MOST_MEMORY: u64 = 64 << 20;

pub(crate) fn run(mut arguments: Arguments) -> Result<(), Box<dyn Error>> {
    let megabytes = arguments.number("--megabytes")?.unwrap_or(MEGABYTES);
    let seeks = arguments.number("--seeks")?.unwrap_or(SEEKS);
    let example = arguments.optional("--example")?.unwrap_or_else(|| "testdata/examples/a7-etmv3".to_owned());
    arguments.finish()?;
    let folder =
        tempfile::tempdir_in(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))?;
    let large = folder.path().join("large.bin");
    let described = Capture::open(&Path::new(&example).join("capture.toml"))?;
    let buffer = described.buffers.first().ok_or("no trace")?;
    repeat(&buffer.bytes, u64::from(megabytes) << 20, &large)?;
    let source = buffer.sources.first().ok_or("no source")?;
    let (config, id) = config(source)?;
    let memory = ImageLoader::new().memory(described.images_for(source))?;

    // A file of this size is memory-mapped.
    let capture = Capture::open(&large)?;
    let bytes = &*capture.buffers.first().ok_or("no trace")?.bytes;
    let watch = Watch::default();
    let carrier = Carrier::Frames { framing: Framing::Buffer, id };
    let input = Input { capture: bytes, carrier, rest: None, progress: &watch };
    let start = Instant::now();
    let index = FlowIndex::new(&input, &config, &memory.program);
    let total = index.totals();
    println!(
        "{} MB indexed in {:.1} s: {} waypoints, {} steps, {} instructions",
        bytes.len() / 1_000_000,
        start.elapsed().as_secs_f64(),
        index.waypoints(),
        total.steps,
        total.instructions
    );

    let expected = expected(&index, &input, (&config, &memory.program), steps(total.steps, seeks))?;
    let mut cursor = index.cursor();
    let mut times = Vec::new();
    for number in shuffled(expected.len()) {
        let Some(&(step, element, at)) = expected.get(number) else { continue };
        let start = Instant::now();
        let is_there = cursor.seek_step(step);
        times.push(start.elapsed());
        watch.look();
        compare(&cursor, is_there, (step, element, at))?;
    }
    times.sort_unstable();
    let part = |percent: usize| times.get((times.len() * percent / 100).min(times.len() - 1)).copied();
    let [median, most] = [50, 99].map(|percent| part(percent).unwrap_or_default());
    println!("{} seeks equal flow: {median:.1?} median, {most:.1?} for 99 of 100", times.len());
    println!("{} MiB of memory beside the mapped file", watch.most.get() >> 20);
    match (most <= MOST_TIME, watch.most.get() <= MOST_MEMORY) {
        (true, true) => Ok(()),
        (false, _) => Err(format!("99 of 100 seeks took {most:?}, expected at most {MOST_TIME:?}").into()),
        (_, false) => Err(format!("expected at most {} MiB of memory", MOST_MEMORY >> 20).into()),
    }
}

/// The expected position of a cursor.
type Expected = (u64, Element, CaptureOffset);

fn compare(cursor: &Cursor<'_>, is_there: bool, (step, element, at): Expected) -> Result<(), String> {
    let here = cursor.current().filter(|_| is_there).ok_or_else(|| format!("step {step}: nowhere"))?;
    match (here.step, *here.element, here.at) == (step, element, at) {
        true => Ok(()),
        false => Err(format!("step {step}: found {here:?}, expected {element:?} at {at}")),
    }
}

/// The elements that flow reports at these steps, which ascend.
fn expected(
    index: &FlowIndex<'_>,
    input: &Input<'_>,
    (config, program): (&SourceConfig, &tracewalk::program::Program),
    steps: Vec<u64>,
) -> Result<Vec<Expected>, Box<dyn Error>> {
    let mut wanted = steps.into_iter().peekable();
    let (mut expected, mut before) = (Vec::new(), 0);
    input.flow(config, program, |record| {
        before += match record.element {
            Element::Block(block) => block.instructions.into(),
            Element::Event(_) | Element::Gap(_) => 1,
            Element::Proof(_) => 0,
        };
        while let Some(step) = wanted.next_if(|step| *step < before) {
            expected.push((step, record.element, record.at));
        }
        Ok(())
    })?;
    match before == index.totals().steps {
        true => Ok(expected),
        false => Err(format!("flow has {before} steps, the index {}", index.totals().steps).into()),
    }
}

/// Writes the file's bytes repeatedly, up to about `size` bytes.
fn repeat(bytes: &[u8], size: u64, file: &Path) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(file)?);
    for _ in 0..size / bytes.len() as u64 + 1 {
        out.write_all(bytes)?;
    }
    out.flush()
}

fn config(source: &SourceDescription) -> Result<(SourceConfig, TraceId), Box<dyn Error>> {
    let register = |name| source.registers.get(name);
    let registers = Registers {
        etmcr: register("ETMCR"),
        etmidr: register("ETMIDR"),
        etmccer: register("ETMCCER"),
        etmtraceidr: register("ETMTRACEIDR"),
    };
    let cpu = source.cpu.as_ref().map_or("", |cpu| cpu.value.as_str());
    let config = match source.protocol {
        Protocol::EtmV3 => {
            SourceConfig::Etmv3(etmv3::Config::from_registers(registers, etmv3::Core::named(cpu))?)
        }
        Protocol::Pft => SourceConfig::Pft(pft::Config::from_registers(registers, pft::Core::named(cpu))?),
        _ => return Err("expected a source in frames".into()),
    };
    Ok((config, source.id.ok_or("expected a trace ID")?))
}

/// `count` pseudo-random steps out of `all`, in order.
fn steps(all: u64, count: u32) -> Vec<u64> {
    let mut number = 1_u64;
    let mut steps = (0..count).map(|_| {
        number = next(number);
        (number >> 16) % all.max(1)
    });
    let mut steps = steps.by_ref().collect::<Vec<_>>();
    steps.sort_unstable();
    steps
}

/// The numbers below `count`, in a pseudo-random order.
fn shuffled(count: usize) -> Vec<usize> {
    let mut numbers = (0..count).collect::<Vec<_>>();
    let mut number = 2_u64;
    for last in (1..count).rev() {
        number = next(number);
        let other = usize::try_from(number >> 33).unwrap_or_default() % (last + 1);
        numbers.swap(last, other);
    }
    numbers
}

const fn next(number: u64) -> u64 {
    number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
}

/// Measures the peak of anonymous memory (memory that belongs to no file).
#[derive(Debug, Default)]
struct Watch {
    most: Cell<u64>,
}

impl Watch {
    fn look(&self) {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let used = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        self.most.set(self.most.get().max(used.unwrap_or_default() << 10));
    }
}

impl Progress for Watch {
    fn done(&self, _: u64) -> bool {
        self.look();
        true
    }
}
