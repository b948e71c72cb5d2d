//! Measures the speed of deframing, compared with copying the same bytes.
//!
//! ```text
//! cargo run --release -p tracewalk --example deframe_speed [CAPTURE]
//! ```
//!
//! Without a capture, the program makes three: one source with its ID once, one source that repeats its ID
//! every 8 frames, and four sources that take turns.

use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::Instant;

use tracewalk::frame::{
    Deframer, Discontinuity, Formatter, FormatterOptions, FrameSink, Framing, Owner, Piece,
    RecoveringDeframer,
};
use tracewalk::ids::TraceId;

/// Joins each source's bytes, as a decoder's input buffer would.
struct Joined(Vec<Vec<u8>>);

impl FrameSink for Joined {
    #[inline]
    fn data(&mut self, owner: Owner, piece: Piece<'_>) {
        if let Some(id) = owner.trace_id() {
            piece.append_to(&mut self.0[usize::from(id.get())]);
        }
    }

    fn discontinuity(&mut self, discontinuity: Discontinuity) {
        println!("  {discontinuity}");
    }
}

fn main() {
    match std::env::args().nth(1) {
        Some(path) => {
            let capture = std::fs::read(&path).expect("the capture is readable");
            measure(&path, &capture.repeat(1 + (16 << 20) / capture.len()), Output::Window);
            let kept = capture.repeat(1 + (50 << 20) / capture.len());
            measure(&format!("{path}, all of it kept"), &kept, Output::Kept);
        }
        None => {
            measure("one source, its ID once", &formatted(1, usize::MAX, None), Output::Window);
            let repeated = formatted(1, usize::MAX, NonZeroU32::new(8));
            measure("one source, its ID every 8 frames", &repeated, Output::Window);
            measure("four sources", &formatted(4, 29, None), Output::Window);
        }
    }
}

/// The use of the output.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Output {
    /// The bytes are used at once: the next ones replace them, and both are in the cache.
    Window,
    /// The bytes are kept, and go to memory.
    Kept,
}

fn measure(name: &str, capture: &[u8], output: Output) {
    println!("{name}: {} MiB", capture.len() >> 20);
    let room = if output == Output::Kept { capture.len() } else { CHUNK };
    let mut copy = Vec::with_capacity(room);
    let copying = fastest(capture, || {
        copy.clear();
        for chunk in capture.chunks(CHUNK) {
            copy.extend_from_slice(black_box(chunk));
            black_box(&copy);
            if output == Output::Window {
                copy.clear();
            }
        }
    });
    println!("  copy                {copying:6.2} GB/s");
    let report = |what: &str, speed: f64| {
        println!("  {what:18}  {speed:6.2} GB/s, {:3.0} % of copying", 100.0 * speed / copying);
    };
    macro_rules! deframe {
        ($deframer:ident) => {{
            let mut sink = Joined((0..0x70).map(|_| Vec::with_capacity(CHUNK)).collect());
            fastest(capture, || {
                let mut deframer = $deframer::new(Framing::Buffer);
                sink.0.iter_mut().for_each(Vec::clear);
                for chunk in capture.chunks(CHUNK) {
                    deframer.push(chunk, &mut sink);
                    black_box(&sink.0);
                    if output == Output::Window {
                        sink.0.iter_mut().for_each(Vec::clear);
                    }
                }
                deframer.finish(&mut sink);
            })
        }};
    }
    report("with recovery", deframe!(RecoveringDeframer));
    report("without recovery", deframe!(Deframer));
}

/// The number of input bytes for each call, as a reader of a file would pass them.
const CHUNK: usize = 1 << 16;

/// GB/s of the fastest of several runs.
fn fastest(capture: &[u8], mut run: impl FnMut()) -> f64 {
    let seconds = (0..40).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    });
    capture.len() as f64 / seconds.fold(f64::MAX, f64::min) / 1e9
}

/// Bytes that look a little like an ETM's, from `sources` sources that take turns of `turn` bytes.
fn formatted(sources: u8, turn: usize, repeat_id_after: Option<NonZeroU32>) -> Vec<u8> {
    let mut state = 1_u64;
    let trace: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        [0x84, 0x88, 0x90, 0x41, 0x57, 0x94, 0x40, (state >> 56) as u8][(state >> 48) as usize % 8]
    })
    .take(16 << 20)
    .collect();
    let options = FormatterOptions { repeat_id_after, ..FormatterOptions::default() };
    let mut output = Vec::new();
    let mut formatter = Formatter::new(options);
    for (bytes, source) in trace.chunks(turn.min(trace.len())).zip((0..sources).cycle()) {
        let id = TraceId::new(0x10 + source).expect("a trace source's ID");
        formatter.write(id, bytes, &mut output);
    }
    formatter.flush(&mut output);
    output
}
