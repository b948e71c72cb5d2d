//! An open capture: its buffers, sources, settings and program.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tracewalk::frame::Framing;
use tracewalk::ids::Address;
use tracewalk::program::{Scope, ViewId};
use tracewalk::source::PacketStream;
use tracewalk::span::CaptureOffset;
use tracewalk_analysis::Context;
use tracewalk_analysis::call_stack::Task;
use tracewalk_analysis::drive::{FlowIndex, Input, ItmRecords, NoProgress, Progress, Rest, Spread};
use tracewalk_analysis::itm::ItmCounts;
use tracewalk_analysis::programs::SourceId;
use tracewalk_analysis::record::{ItmRecord, PacketRecord};
use tracewalk_analysis::{Code, Interrupts, Section, Statistics};
use tracewalk_input::capture::{Buffer, Capture, CaptureError, Protocol, SourceDescription};
use tracewalk_input::cpu::Profile;
use tracewalk_input::image::{Image, ImageError, ImageLoader, ImageRequest, Memory, VisibleImage};
use tracewalk_input::symbols::VectorTable;
use tracewalk_input::{Origin, Stated};

use crate::code::{Reader, source_files};
use crate::error::OpenError;
use crate::infer::Finding;
use crate::live::Live;
use crate::memory::add_code;
use crate::model::{Contents, Dumped, Itm, Source};
use crate::observer::Observer;
use crate::observer::Watch;
use crate::outcome::Follow;
use crate::program::Known;
use crate::request::Request;
use crate::shared::{ByContent, CodeKey, Shared};

/// An open capture: its buffers, the sources in them that can be decoded, and the program that ran.
#[derive(Debug)]
pub struct Session {
    pub(crate) request: Request,
    pub(crate) capture: Capture,
    pub(crate) contents: Vec<Contents>,
    pub(crate) sources: Vec<Source>,
    pub(crate) itms: Vec<Itm>,
    pub(crate) image_findings: Vec<(usize, Finding)>,
    pub(crate) loader: ImageLoader,
    /// The programs that were put together, by core and profile.
    pub(crate) programs: Vec<(ProgramKey, Arc<Code>)>,
    /// Names of tasks that were found.
    pub(crate) task_names: BTreeMap<Task, String>,
    pub(crate) dumps: Vec<Option<Dumped>>,
    pub(crate) interrupts: Interrupts,
    /// The address of M profile's vector table, if it was stated.
    pub(crate) vector_table: Option<Address>,
    /// Everything known of the programs, for further inference.
    pub(crate) known: Known,
    /// Programs and what was learned of them: a cache of several sessions, unless the capture describes memory, which is its own.
    pub(crate) shared: Shared,
    /// Whether the buffer has only the first bytes of a capture that is still arriving.
    pub(crate) arriving: bool,
    /// The stream of a capture that is still arriving.
    pub(crate) live: Option<Live>,
    /// The number of bytes after which the capture stopped arriving, if it was stopped or failed.
    pub(crate) stopped_at: Option<u64>,
}

/// The part of a program that is visible in one scope, as a program of its own.
#[derive(Debug)]
pub struct ScopedCode {
    /// The contexts in which the part is visible.
    pub scope: Scope,
    /// The program.
    pub code: Arc<Code>,
    /// The images of the program.
    pub images: Vec<Arc<Image>>,
}

/// The memory that a thread needs to decode: its graph of blocks, its memo, and the logs of segments decoded ahead.
const THREAD_BYTES: u64 = 32 << 20;

/// The memory that a thread needs for each byte of the program: the starts of blocks, by words and by halfwords.
const THREAD_TIMES_THE_CODE: u64 = 3;

/// The key of a core's program: the core, its profile, and the directories for names and lines, if these are wanted.
pub(crate) type ProgramKey = (Option<String>, Option<Profile>, Option<Vec<PathBuf>>);

impl Session {
    /// The request.
    #[must_use]
    pub const fn request(&self) -> &Request {
        &self.request
    }

    /// The capture, with its statements.
    #[must_use]
    pub const fn capture(&self) -> &Capture {
        &self.capture
    }

    /// The content of each buffer of the capture.
    #[must_use]
    pub fn contents(&self) -> &[Contents] {
        &self.contents
    }

    /// The sources whose program flow can be decoded, by buffer and trace ID. A capture that is still arriving may have
    /// more when all of it has arrived.
    #[must_use]
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// The ITMs.
    #[must_use]
    pub fn itms(&self) -> &[Itm] {
        &self.itms
    }

    /// The inferred addresses of the capture's images, with the index of each image.
    #[must_use]
    pub fn image_findings(&self) -> &[(usize, Finding)] {
        &self.image_findings
    }

    /// The memory that the file of a buffer describes, for a file that is not plain bytes.
    #[must_use]
    pub fn memory_of(&self, buffer: usize) -> Option<&Dumped> {
        self.dumps.get(buffer)?.as_ref()
    }

    /// The names of the chip's interrupts.
    #[must_use]
    pub const fn interrupts(&self) -> &Interrupts {
        &self.interrupts
    }

    /// The buffer that a source is in.
    #[must_use]
    pub fn buffer(&self, source: &Source) -> &Buffer {
        &self.capture.buffers[source.buffer]
    }

    /// The bytes of a source.
    #[must_use]
    pub fn input<'a>(&'a self, source: &Source, progress: &'a dyn Progress) -> Input<'a> {
        let capture = &*self.buffer(source).bytes;
        Input { capture, carrier: source.carrier.clone(), rest: self.rest(), progress }
    }

    /// The index of a source's flow in its program, for cursors. Bytes of the capture are counted as in [`Session::input`].
    ///
    /// ```
    /// use tracewalk_analysis::Position;
    /// use tracewalk_session::{Notices, Request, Session};
    ///
    /// let notices = Notices::default();
    /// let request = Request::new("../../testdata/examples/a7-etmv3/capture.toml");
    /// let mut session = Session::open_observed(request, &notices)?;
    /// let source = session.sources()[0].clone();
    /// let code = session.code(&source, None, &notices)?;
    /// let index = session.index(&source, &code);
    /// let mut cursor = index.cursor();
    /// assert!(cursor.seek(Position::Instructions(index.totals().instructions / 2)));
    /// assert!(cursor.current().is_some_and(|here| here.instruction.is_some()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn index<'a>(&'a self, source: &Source, code: &'a Code) -> FlowIndex<'a> {
        self.index_kept(source, code, None, &NoProgress, Follow::default().threads)
    }

    /// Watches work on a source: reports progress to `observer`, and ends the work if memory runs out.
    pub fn watch<'a>(&self, source: &Source, observer: &'a dyn Observer) -> Watch<'a> {
        Watch::new(self.buffer(source).bytes.len() as u64, self.request.limit, observer)
    }

    /// The byte of the capture after which watched work ended early, or the capture stopped arriving: results cover the
    /// part before it. `None` if the work was finished.
    #[must_use]
    pub fn ended_early(&self, watch: &Watch<'_>) -> Option<u64> {
        let stopped = || self.live.as_ref().map_or(self.stopped_at, Live::stopped_at);
        watch.ended_at().or_else(stopped)
    }

    /// How work on a program is spread over at most `threads` threads: fewer if memory limits it.
    #[must_use]
    pub fn spread(&self, threads: u16, code: &Code) -> Spread {
        let threads = usize::from(threads);
        let fit = self.request.limit.share().map_or(threads, |share| {
            let regions = code.program.regions_in_scopes();
            let code = regions.map(|(_, region)| region.bytes().len() as u64).sum::<u64>();
            let each = THREAD_BYTES + THREAD_TIMES_THE_CODE * code;
            usize::try_from(share / each).unwrap_or(threads)
        });
        let spread = Spread::over(threads.min(fit).max(1));
        Spread { segment: self.request.segment.unwrap_or(spread.segment), ..spread }
    }

    /// The program of a source's core, with names and lines if directories with its source files are given.
    ///
    /// # Errors
    ///
    /// If an image cannot be used.
    pub fn code(
        &mut self,
        source: &Source,
        source_dirs: Option<&[PathBuf]>,
        observer: &dyn Observer,
    ) -> Result<Arc<Code>, ImageError> {
        let key = (source.description.core.clone(), source.profile(), source_dirs.map(<[PathBuf]>::to_vec));
        if let Some((_, code)) = self.programs.iter().find(|(known, _)| *known == key) {
            return Ok(Arc::clone(code));
        }
        let shared_key = self.code_key(source, source_dirs)?;
        let code = match self.shared.code(&shared_key) {
            Some(code) => code,
            None => {
                let memory = self.memory(source, key.1)?;
                let interrupts = self.interrupts.clone();
                let reader = Reader { profile: key.1, interrupts, threads: self.threads(), source_dirs };
                let mut code = reader.code(&memory, observer);
                if let Some(code) = Arc::get_mut(&mut code) {
                    code.states_tasks = !self.task_names.is_empty();
                }
                self.shared.keep_code(shared_key, code)
            }
        };
        self.programs.push((key, Arc::clone(&code)));
        Ok(code)
    }

    /// The key of a source's program in the shared cache.
    fn code_key(&mut self, source: &Source, source_dirs: Option<&[PathBuf]>) -> Result<CodeKey, ImageError> {
        let images = self.images(source)?;
        let beside = images.iter().filter_map(|visible| visible.image.file.parent().map(Path::to_owned));
        let source_dirs = source_dirs.map(|dirs| dirs.iter().cloned().chain(beside).collect());
        Ok(CodeKey {
            images: ByContent::scoped(&images),
            leaves_out: self.leaves_out(),
            vector_table: self.vector_table,
            interrupts: self.interrupts.clone(),
            threads: self.threads(),
            profile: source.profile(),
            source_dirs,
        })
    }

    /// Whether the images of processes are visible only in their own contexts.
    fn leaves_out(&self) -> bool {
        self.capture.recorded.as_ref().is_some_and(|recorded| recorded.contexts.has_address_spaces())
    }

    /// The parts of a source's program that are visible only in some contexts, each as a program of its own.
    ///
    /// # Errors
    ///
    /// If an image cannot be used.
    pub fn scoped_code(
        &mut self,
        source: &Source,
        source_dirs: &[PathBuf],
        observer: &dyn Observer,
    ) -> Result<Vec<ScopedCode>, ImageError> {
        let profile = source.profile();
        let memory = self.memory(source, profile)?;
        let (interrupts, threads) = (self.interrupts.clone(), self.threads());
        let reader = Reader { profile, interrupts, threads, source_dirs: Some(source_dirs) };
        let of_scope = |scope| {
            let memory = memory.of_scope(scope);
            let images = memory.images.iter().map(|visible| Arc::clone(&visible.image)).collect();
            ScopedCode { scope, code: reader.code(&memory, observer), images }
        };
        Ok(memory.program.scopes().map(of_scope).collect())
    }

    /// The memory of a source's core.
    pub(crate) fn memory(&mut self, source: &Source, profile: Option<Profile>) -> Result<Memory, ImageError> {
        let mut memory = self.loader.memory(self.capture.images_for(&source.description))?;
        if self.leaves_out() {
            memory.program.leave_out_address_spaces();
        }
        for dump in self.dumps.iter().flatten() {
            add_code(dump, &mut memory, None);
        }
        let everywhere = memory.seen_in(ViewId::default(), Scope::EVERYWHERE);
        let found = || VectorTable::of(&everywhere, profile).map(|table| table.address);
        if let Some(table) = self.vector_table.or_else(found) {
            memory.program.set_vector_table(table);
        }
        Ok(memory)
    }

    /// The images that a source's program was put together from, and in which contexts each is visible.
    ///
    /// # Errors
    ///
    /// If an image cannot be used.
    pub fn images(&mut self, source: &Source) -> Result<Vec<VisibleImage>, ImageError> {
        let load = |request: &ImageRequest| {
            Ok(VisibleImage { image: self.loader.load(request)?, scope: request.scope })
        };
        self.capture.images_for(&source.description).map(load).collect()
    }

    /// The content of an image's file, if it was read. The file may be inside an archive.
    #[must_use]
    pub fn image_content(&self, file: &Path) -> Option<&[u8]> {
        self.loader.content(file)
    }

    /// The source files that the programs' debug information names, searched in `directories` as well. An output must
    /// not overwrite them.
    pub fn source_files(&mut self, directories: &[PathBuf]) -> BTreeSet<PathBuf> {
        source_files(&self.capture.images, &mut self.loader, directories)
    }

    /// The image file with the code at `address` of a source's program, in a context.
    #[must_use]
    pub fn file_at(&self, source: &Source, address: Address, context: Context) -> Option<&Path> {
        let program = self.known.program(&source.description);
        let scope = program.scope_at(context.0, context.1, address);
        self.known.file_at(&source.description, address, scope)
    }

    /// The section of a source in an output.
    #[must_use]
    pub fn section(&self, source: &Source, code: Arc<Code>) -> Section {
        let SourceId { id, protocol, number } = self.source_id(source);
        Section { id, protocol, number, code }
    }

    /// The identity of a source in all captures of its program.
    #[must_use]
    pub fn source_id(&self, source: &Source) -> SourceId {
        let (id, protocol) = (source.id, source.config.protocol());
        let is_alike = |other: &&Source| {
            other.id == id && other.config.protocol() == protocol && other.buffer < source.buffer
        };
        let before = self.sources.iter().filter(is_alike).count();
        let number = u16::try_from(before).unwrap_or(u16::MAX).saturating_add(1);
        SourceId { id, protocol, number }
    }

    /// The identity of an ITM among ITMs and sources.
    #[must_use]
    pub fn itm_id(&self, itm: &Itm) -> SourceId {
        let before = self.itms.iter().filter(|other| other.id == itm.id && other.buffer < itm.buffer).count();
        let number = u16::try_from(before).unwrap_or(u16::MAX).saturating_add(1);
        SourceId { id: itm.id, protocol: "itm", number }
    }

    /// The capture with all settings, stated and inferred.
    #[must_use]
    pub fn describe(&self) -> Capture {
        let mut capture = self.capture.clone();
        for (buffer, contents) in capture.buffers.iter_mut().zip(&self.contents) {
            buffer.container = Some(contents.container.clone());
            if let Some(Framing::PortFrom(start)) = contents.frames.as_ref().map(|frames| frames.framing) {
                buffer.frame_start.get_or_insert(Stated::new(start.bytes(), Origin::Detected));
            }
            buffer.sources.clone_from(&contents.sources);
            let frames = contents.frames.iter().flat_map(|frames| frames.sources.keys());
            for &id in frames {
                if !buffer.sources.iter().any(|source| source.id == Some(id)) {
                    let protocol = Protocol::Unknown(String::new());
                    let source = SourceDescription::new(protocol, Origin::Detected);
                    buffer.sources.push(SourceDescription { id: Some(id), ..source });
                }
            }
        }
        capture
    }

    /// The bytes of the frame that the end of a trace buffer's file cuts off, as far as the capture has arrived. 0 for a trace port,
    /// whose recording may end anywhere.
    #[must_use]
    pub fn cut_frame_bytes(&self, source: &Source) -> u64 {
        let frames = self.contents.get(source.buffer).and_then(|contents| contents.frames.as_ref());
        frames.filter(|frames| frames.framing == Framing::Buffer).map_or(0, |frames| frames.account.tail)
    }

    /// The records of an ITM, with their offsets in the file.
    #[must_use]
    pub fn itm_records<'a>(&'a self, itm: &Itm) -> ItmRecords<'a> {
        let capture = self.capture.buffers.get(itm.buffer).map(|buffer| &*buffer.bytes).unwrap_or_default();
        Input { capture, carrier: itm.carrier.clone(), rest: None, progress: &NoProgress }
            .instrumentation(itm.protocol())
    }

    /// Decodes the packets of an ITM, and calls `look` with each and its offset in the file. A capture that is still arriving is
    /// read to its end.
    ///
    /// # Errors
    ///
    /// The first error of `look`, or of the rest of the capture.
    pub fn itm_packets(
        &self,
        itm: &Itm,
        look: &mut dyn FnMut(PacketRecord<'_>) -> io::Result<()>,
    ) -> io::Result<Statistics> {
        let Some(buffer) = self.capture.buffers.get(itm.buffer) else { return Ok(Statistics::default()) };
        let (carrier, rest) = (itm.carrier.clone(), self.rest());
        let input = Input { capture: &buffer.bytes, carrier, rest, progress: &NoProgress };
        input.packets_of(PacketStream::of(itm.protocol()), &mut |record| {
            look(PacketRecord { at: CaptureOffset(buffer.file_offset(record.at)), ..record })
        })
    }

    /// The names of the kernel that wrote through an STM: those of the capture's images, and of the list that the caller states.
    ///
    /// # Errors
    ///
    /// If an image or the list cannot be used.
    pub fn kernel(&mut self, observer: &dyn Observer) -> Result<Arc<Code>, OpenError> {
        let mut memory = self.loader.memory(&self.capture.images).map_err(OpenError::Image)?;
        if let Some(file) = &self.request.stated.binaries.kallsyms {
            let list = Image::read_names(file).map_err(|problem| CaptureError::of_file(file, problem));
            let image = Arc::new(list.map_err(OpenError::Capture)?);
            memory.images.push(VisibleImage { image, scope: Scope::EVERYWHERE });
        }
        if memory.images.is_empty() {
            return Ok(Code::unknown().into());
        }
        let (interrupts, threads) = (self.interrupts.clone(), BTreeMap::new());
        let reader = Reader { profile: None, interrupts, threads, source_dirs: Some(&[]) };
        Ok(reader.code(&memory, observer))
    }

    /// The ITMs to be read with a source: for the first source of a buffer, all ITMs in the buffer; for other sources,
    /// none.
    #[must_use]
    pub fn itms_beside(&self, source: &Source) -> Vec<Itm> {
        let is_first = self
            .sources
            .iter()
            .find(|other| other.buffer == source.buffer)
            .is_some_and(|first| first.id == source.id);
        self.itms.iter().filter(|itm| is_first && itm.buffer == source.buffer).cloned().collect()
    }
}

/// Work on a capture that is still arriving.
impl Session {
    /// Whether the capture is still arriving.
    #[must_use]
    pub const fn is_live(&self) -> bool {
        self.live.is_some()
    }

    /// The rest of a capture that is still arriving.
    fn rest(&self) -> Option<&dyn Rest> {
        self.live.as_ref().map(|live| live as &dyn Rest)
    }

    /// Calls `flush` as soon as nothing arrives, if the capture is still arriving. Returns whether it is.
    pub fn on_quiet(&self, flush: impl FnMut() -> io::Result<()> + 'static) -> bool {
        if let Some(live) = &self.live {
            live.on_quiet(Box::new(flush));
        }
        self.live.is_some()
    }

    /// Listens to these ITMs of a capture that is still arriving, from its first byte on.
    pub fn listen(&self, itms: &[Itm]) {
        if let (Some(live), Some(buffer)) = (&self.live, self.capture.buffers.first()) {
            live.listen(itms, &buffer.bytes);
        }
    }

    /// The next record that has arrived of an ITM that is [listened](Self::listen) to.
    #[must_use]
    pub fn heard(&self, itm: &Itm) -> Option<ItmRecord> {
        self.live.as_ref()?.heard(itm.id)
    }

    /// The counts so far of an ITM that is listened to.
    #[must_use]
    pub fn heard_counts(&self, itm: &Itm) -> Option<ItmCounts> {
        self.live.as_ref()?.heard_counts(itm.id)
    }

    /// Waits for the rest of the capture, if only its ITMs are decoded; calls `look` whenever some of it has arrived.
    ///
    /// # Errors
    ///
    /// The first error of `look`, or of the `flush` of [`Session::on_quiet`].
    pub fn wait_for_itms(&self, mut look: impl FnMut() -> io::Result<()>) -> io::Result<()> {
        let mut looked = look();
        if let Some(live) = &self.live {
            live.each(&mut |_| {
                looked = looked.as_ref().map_or(Ok(()), |()| look());
                looked.is_ok()
            })?;
            looked?;
            looked = look();
        }
        looked
    }
}
