//! Pushed bytes → elements that are pulled, or given to a callback.

use std::collections::VecDeque;
use std::ffi::{c_char, c_int, c_void};
use std::sync::{Arc, Mutex};

use tracewalk::CaptureDecoder;
use tracewalk::frame::Framing;
use tracewalk::ids::TraceId;
use tracewalk::program::Program;
use tracewalk::source::{FlowStream, SourceConfig};
use tracewalk_input::capture::SourceDescription;
use tracewalk_session::source_config;

use crate::boundary::{enter, fill, give, release, slice, text};
use crate::call::guarded;
use crate::element::{FIRST_SIZE, tracewalk_element, tracewalk_on_element};
use crate::error::tracewalk_error;
use crate::packet::{PacketCallback, tracewalk_on_packet};
use crate::program::tracewalk_program;
use crate::status::{Problem, tracewalk_status};
use crate::tap::Tap;

/// Decodes bytes in pieces of any size. Holds the elements until the program has taken them.
#[derive(Debug)]
pub struct tracewalk_decoder(Mutex<Decoding>);

#[derive(Debug)]
struct Decoding {
    chain: Chain,
    /// Reports packets, if the program requested them.
    tap: Tap,
    /// Whether bytes were pushed.
    begun: bool,
    found: VecDeque<tracewalk_element>,
    /// The bytes of an incomplete frame at the end; `None` before the end.
    finished: Option<u64>,
}

#[derive(Debug)]
enum Chain {
    Source { id: Option<TraceId>, stream: Box<FlowStream>, program: Arc<Program> },
    Formatted(Box<CaptureDecoder<Arc<Program>>>),
}

/// Parses a source in the form of the command's `--source`, as far as a decoder needs it.
fn source(words: &str) -> Result<(Option<TraceId>, SourceConfig), Problem> {
    let description =
        words.parse::<SourceDescription>().map_err(|error| Problem::argument(format!("source: {error}")))?;
    let config =
        source_config(&description).map_err(|error| Problem::argument(format!("source: {error}")))?;
    Ok((description.id.or(config.trace_id()), config))
}

fn code(program: Option<&tracewalk_program>) -> Result<Arc<Program>, Problem> {
    program.map_or_else(|| Ok(Arc::default()), tracewalk_program::built)
}

impl Decoding {
    const fn handle(chain: Chain, tap: Tap) -> tracewalk_decoder {
        let found = VecDeque::new();
        tracewalk_decoder(Mutex::new(Self { chain, tap, begun: false, found, finished: None }))
    }

    /// Refuses work after the end of the trace.
    fn go_on(&mut self) -> Result<(), Problem> {
        if self.finished.is_some() {
            Err(Problem::state("the decoder has finished and accepts no more bytes"))
        } else {
            Ok(())
        }
    }
}

/// Creates a decoder of one source's bytes, without frames around them. `source` has the form of the command's
/// `--source`, like `etmv3,cpu=cortex-m3,etmcr=0x500`. Without a program (null) the decoder finds no instructions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracewalk_decoder_new(
    source: *const c_char,
    program: Option<&tracewalk_program>,
    out: *mut *mut tracewalk_decoder,
    error: *mut *mut tracewalk_error,
) -> tracewalk_status {
    let work = || {
        // SAFETY: the program keeps to the preconditions in the header.
        let (id, config) = self::source(unsafe { text("source", source) }?)?;
        let chain = Chain::Source { id, stream: Box::new(FlowStream::new(&config)), program: code(program)? };
        // SAFETY: as above.
        unsafe { give(out, Decoding::handle(chain, Tap::of_source(id, &config))) }?;
        Ok(tracewalk_status::Ok)
    };
    // SAFETY: as above.
    unsafe { guarded(error, work) }
}

/// Creates a decoder of CoreSight frames with `count` sources. Each source has its trace ID, like
/// `0x10=etmv3,cpu=cortex-m3`, and its program, which may be null. With `port` other than 0 the frames are a trace
/// port's, with FSYNCs; else a buffer's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracewalk_decoder_new_formatted(
    sources: *const *const c_char,
    programs: *const Option<&tracewalk_program>,
    count: usize,
    port: c_int,
    out: *mut *mut tracewalk_decoder,
    error: *mut *mut tracewalk_error,
) -> tracewalk_status {
    let work = || {
        // SAFETY: the program keeps to the preconditions in the header.
        let (sources, programs) =
            unsafe { (slice("sources", sources, count)?, slice("programs", programs, count)?) };
        let mut given = Vec::<(TraceId, SourceConfig, Arc<Program>)>::new();
        for (&words, &program) in sources.iter().zip(programs) {
            // SAFETY: as above.
            let (id, config) = source(unsafe { text("source", words) }?)?;
            let id = id.ok_or_else(|| {
                Problem::argument("source: found no trace ID, expected one for a source in frames")
            })?;
            if given.iter().any(|(known, ..)| *known == id) {
                return Err(Problem::argument(format!("source: found trace ID {id} twice")));
            }
            given.push((id, config, code(program)?));
        }
        let framing = if port == 0 { Framing::Buffer } else { Framing::Port };
        let tap = Tap::of_frames(framing, given.iter().map(|(id, config, _)| (*id, config)));
        let chain = Chain::Formatted(Box::new(CaptureDecoder::new(framing, given)));
        // SAFETY: as above.
        unsafe { give(out, Decoding::handle(chain, tap)) }?;
        Ok(tracewalk_status::Ok)
    };
    // SAFETY: as above.
    unsafe { guarded(error, work) }
}

/// Reports packets to `callback` while bytes are pushed, each before the elements that it proves. A result other than 0
/// ends the reports. Call this function before the first bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracewalk_decoder_on_packet(
    decoder: Option<&tracewalk_decoder>,
    callback: tracewalk_on_packet,
    user: *mut c_void,
    error: *mut *mut tracewalk_error,
) -> tracewalk_status {
    let work = || {
        let mut decoding = enter(decoder.map(|decoder| &decoder.0))?;
        let callback = callback.ok_or_else(|| Problem::argument("callback: found a null pointer"))?;
        if decoding.begun {
            return Err(Problem::state(
                "the decoder has received bytes: ask for packets before the first push",
            ));
        }
        decoding.tap.callback = Some(PacketCallback::new(callback, user));
        Ok(tracewalk_status::Ok)
    };
    // SAFETY: the program keeps to the preconditions in the header.
    unsafe { guarded(error, work) }
}

/// Decodes the next bytes. The elements are held until `tracewalk_decoder_next` or `tracewalk_decoder_each` takes them:
/// push pieces of some kilobytes, and take elements in between.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracewalk_decoder_push(
    decoder: Option<&tracewalk_decoder>,
    bytes: *const u8,
    size: usize,
    error: *mut *mut tracewalk_error,
) -> tracewalk_status {
    let work = || {
        // SAFETY: the program keeps to the preconditions in the header.
        let bytes = unsafe { slice("bytes", bytes, size) }?;
        let mut decoding = enter(decoder.map(|decoder| &decoder.0))?;
        decoding.go_on()?;
        let Decoding { chain, tap, found, begun, .. } = &mut *decoding;
        *begun = true;
        tap.push(bytes);
        match chain {
            Chain::Source { id, stream, program } => stream.push(bytes, program, &mut |element| {
                found.push_back(tracewalk_element::of(&element, *id, None));
            }),
            Chain::Formatted(capture) => capture.push(bytes, &mut |id, element| {
                found.push_back(tracewalk_element::of(&element, Some(id), None));
            }),
        }
        Ok(tracewalk_status::Ok)
    };
    // SAFETY: as above.
    unsafe { guarded(error, work) }
}

/// Reports that bytes were lost before the next ones: a gap, after which decoding continues at the next
/// synchronisation. A decoder of frames detects losses itself, and refuses this call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracewalk_decoder_lost(
    decoder: Option<&tracewalk_decoder>,
    error: *mut *mut tracewalk_error,
) -> tracewalk_status {
    let work = || {
        let mut decoding = enter(decoder.map(|decoder| &decoder.0))?;
        decoding.go_on()?;
        let Decoding { chain: Chain::Source { id, stream, program }, tap, found, .. } = &mut *decoding else {
            return Err(Problem::state(
                "the decoder is for frames, expected one for a source: frames themselves show what was lost",
            ));
        };
        tap.lose_sync();
        stream.lose_sync(program, &mut |element| {
            found.push_back(tracewalk_element::of(&element, *id, None));
        });
        Ok(tracewalk_status::Ok)
    };
    // SAFETY: the program keeps to the preconditions in the header.
    unsafe { guarded(error, work) }
}

/// Ends the trace. The last elements can be taken.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracewalk_decoder_finish(
    decoder: Option<&tracewalk_decoder>,
    error: *mut *mut tracewalk_error,
) -> tracewalk_status {
    let work = || {
        let mut decoding = enter(decoder.map(|decoder| &decoder.0))?;
        decoding.go_on()?;
        let Decoding { chain, tap, found, finished, .. } = &mut *decoding;
        tap.finish();
        *finished = Some(match chain {
            Chain::Source { id, stream, program } => {
                stream.finish(program, &mut |element| {
                    found.push_back(tracewalk_element::of(&element, *id, None));
                });
                0
            }
            Chain::Formatted(capture) => {
                let tail = capture.finish(&mut |id, element| {
                    found.push_back(tracewalk_element::of(&element, Some(id), None));
                });
                tail.bytes
            }
        });
        Ok(tracewalk_status::Ok)
    };
    // SAFETY: the program keeps to the preconditions in the header.
    unsafe { guarded(error, work) }
}

/// The number of bytes at the end of the trace that are not decoded because their frame is incomplete; 0 without frames. Call
/// this function after `tracewalk_decoder_finish`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracewalk_decoder_cut(
    decoder: Option<&tracewalk_decoder>,
    bytes: *mut u64,
    error: *mut *mut tracewalk_error,
) -> tracewalk_status {
    let work = || {
        let decoding = enter(decoder.map(|decoder| &decoder.0))?;
        let cut = decoding.finished.ok_or_else(|| Problem::state("the decoder has not finished"))?;
        if bytes.is_null() || !bytes.is_aligned() {
            return Err(Problem::argument("bytes: found a null pointer, expected a place to write to"));
        }
        // SAFETY: the program keeps to the preconditions in the header.
        unsafe { bytes.write(cut) };
        Ok(tracewalk_status::Ok)
    };
    // SAFETY: as above.
    unsafe { guarded(error, work) }
}

/// Takes the next element; `size` is `sizeof(tracewalk_element)`. `TRACEWALK_STATUS_NEED_INPUT`: there is none until
/// more bytes are pushed; `TRACEWALK_STATUS_END`: there are no more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracewalk_decoder_next(
    decoder: Option<&tracewalk_decoder>,
    out: *mut tracewalk_element,
    size: usize,
    error: *mut *mut tracewalk_error,
) -> tracewalk_status {
    let work = || {
        let mut decoding = enter(decoder.map(|decoder| &decoder.0))?;
        let Some(element) = decoding.found.front() else {
            return Ok(if decoding.finished.is_some() {
                tracewalk_status::End
            } else {
                tracewalk_status::NeedInput
            });
        };
        // SAFETY: the program keeps to the preconditions in the header.
        unsafe { fill(out, size, FIRST_SIZE, element) }?;
        decoding.found.pop_front();
        Ok(tracewalk_status::Ok)
    };
    // SAFETY: as above.
    unsafe { guarded(error, work) }
}

/// Gives all elements so far to a callback. If the callback ends the work (`TRACEWALK_STATUS_STOPPED`), the element
/// that it received is taken, and the later ones can still be taken.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracewalk_decoder_each(
    decoder: Option<&tracewalk_decoder>,
    callback: tracewalk_on_element,
    user: *mut c_void,
    error: *mut *mut tracewalk_error,
) -> tracewalk_status {
    let work = || {
        let mut decoding = enter(decoder.map(|decoder| &decoder.0))?;
        let callback = callback.ok_or_else(|| Problem::argument("callback: found a null pointer"))?;
        while let Some(element) = decoding.found.pop_front() {
            // SAFETY: `callback` and `user` come from the program, which passed them together.
            if unsafe { callback(user, &raw const element) } != 0 {
                return Ok(tracewalk_status::Stopped);
            }
        }
        Ok(if decoding.finished.is_some() { tracewalk_status::End } else { tracewalk_status::NeedInput })
    };
    // SAFETY: the program keeps to the preconditions in the header.
    unsafe { guarded(error, work) }
}

/// Frees a decoder; a null pointer is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn tracewalk_decoder_free(decoder: Option<Box<tracewalk_decoder>>) {
    release(decoder);
}
