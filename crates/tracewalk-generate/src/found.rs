//! A decoder's output as a path, to be compared with the path that was encoded.
//!
//! ```
//! use tracewalk::ids::Address;
//! use tracewalk::program::Program;
//! use tracewalk_generate::path::Path;
//! use tracewalk_generate::record::Record;
//! use tracewalk::SourceConfig;
//! use tracewalk::protocol::etmv3::Config;
//! use tracewalk_generate::etmv3::{Options, encode};
//! use tracewalk_generate::found::{Found, first_difference};
//! use tracewalk_generate::record::Profile;
//!
//! # let mut program = Program::new();
//! # program.add(Address::new(0x100), &[0x01, 0x38, 0xfd, 0xd1, 0x70, 0x47])?; // 1: subs r0, #1; bne 1b; bx lr
//! let record = "# tracewalk record 1\nP m\nR 100 104 t32\nR 100 104 t32 !102\n";
//! let path = Path::expand(&Record::parse(record)?, &program)?;
//! let config = Config::for_core("cortex-m3").expect("a known core");
//! let trace = encode(&path, &program, &config, &Options::default())?;
//! let found = Found::of(&SourceConfig::Etmv3(config), &trace.bytes, &program);
//! assert!(first_difference(Profile::M, &path, &found.path).is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use tracewalk::directive::TransferValue;
use tracewalk::flow::{Block, BranchKind, Element, Ending, EventKind, Gap};
use tracewalk::ids::{Address, ContextId, Location};
use tracewalk::isa;
use tracewalk::program::Program;
use tracewalk::source::{FlowStream, SourceConfig};

use crate::path::{Access, Executed, Path, Step, Taken};
use crate::record::{Profile, Record};

/// The decoder's output, collected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The path that was executed.
    pub path: Path,
    /// The cycles that the path took.
    pub cycles: u64,
    /// The timestamps.
    pub timestamps: Vec<u64>,
    /// The context IDs.
    pub contexts: Vec<Option<ContextId>>,
    /// How often tracing began.
    pub starts: usize,
    /// How many triggers there are.
    pub triggers: usize,
    /// Gaps: trace that could not be followed.
    pub gaps: Vec<Gap>,
    /// Whether the trace shows that the condition of a barrier, or of another non-branch with an atom,
    /// failed. ETMv4 trace does; PFT trace does not.
    shows_barriers: bool,
}

/// The first line in which two paths differ, in the form of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The line, from 1.
    pub line: usize,
    /// The line of the encoded path; `None` if that path has ended.
    pub traced: Option<String>,
    /// The line of the decoded path; `None` if that path has ended.
    pub found: Option<String>,
}

impl Found {
    /// Decodes a source's bytes.
    #[must_use]
    pub fn of(config: &SourceConfig, bytes: &[u8], program: &Program) -> Self {
        let shows_barriers = matches!(config, SourceConfig::Etmv4(_));
        let mut found = Self { shows_barriers, ..Self::default() };
        let mut stream = FlowStream::new(config);
        let mut take = |element| found.take(element, program);
        stream.push(bytes, program, &mut take);
        stream.finish(program, &mut take);
        found
    }

    /// Takes the next element.
    pub fn take(&mut self, element: Element, program: &Program) {
        match element {
            Element::Block(block) => self.block(&block, program),
            Element::Event(event) => self.event(event.kind),
            Element::Gap(gap) => self.gaps.push(gap),
            Element::Proof(_) => {}
        }
    }

    fn block(&mut self, block: &Block, program: &Program) {
        let mut at = block.start;
        for _ in 0..block.instructions {
            let code = program.code(at).unwrap_or_default();
            let Ok(instruction) = isa::classify(code, at, block.isa) else { return };
            let passed = match block.ending {
                _ if at != block.last => true,
                Ending::Branch { kind: BranchKind::Direct | BranchKind::Indirect, taken, .. } => taken,
                Ending::ConditionFailed => false,
                Ending::Branch { kind: BranchKind::Barrier, taken, .. } => taken || !self.shows_barriers,
                Ending::Interrupted => true,
            };
            let bytes = instruction.bytes;
            self.path.steps.push(Step::Instruction(Executed { address: at, isa: block.isa, bytes, passed }));
            at = Location::new(at, block.isa).after(bytes.into()).address;
        }
    }

    fn event(&mut self, event: EventKind) {
        let step = match event {
            EventKind::Exception { exception: Some(exception), preferred_return, handler } => {
                let handler = handler.map_or(Address::new(0), |handler| handler.address);
                Step::Exception(Taken { exception, preferred_return, handler })
            }
            EventKind::ExceptionReturn => Step::ExceptionReturn,
            EventKind::Data(data) => Step::Access(Access {
                address: data.address.unwrap_or_default(),
                bytes: data.bytes.unwrap_or_default(),
                store: data.store.unwrap_or_default(),
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
            // Cycles before trace-on belong to no instruction.
            EventKind::TraceOn(_) => {
                self.cycles = 0;
                self.starts += 1;
                return;
            }
            EventKind::Timestamp(time) => return self.timestamps.push(time),
            EventKind::Trigger => {
                self.triggers += 1;
                return;
            }
            // The generator makes no other events.
            _ => return,
        };
        self.path.steps.push(step);
    }
}

/// The first difference between two paths, apart from context IDs and states; `None` if the paths are the
/// same.
#[must_use]
pub fn first_difference(profile: Profile, traced: &Path, found: &Path) -> Option<Difference> {
    let text = |path: &Path| {
        let mut path = path.clone();
        path.steps.retain(|step| !matches!(step, Step::ContextId(_) | Step::State(_)));
        Record::of_path(profile, &path).to_string()
    };
    let (traced, found) = (text(traced), text(found));
    let (mut traced, mut found) = (traced.lines(), found.lines());
    let mut line = 0;
    loop {
        line += 1;
        match (traced.next(), found.next()) {
            (None, None) => return None,
            (traced, found) if traced == found => {}
            (traced, found) => {
                let own = |line: Option<&str>| line.map(str::to_owned);
                return Some(Difference { line, traced: own(traced), found: own(found) });
            }
        }
    }
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let line = |line: &Option<String>| line.clone().unwrap_or_else(|| "nothing".to_owned());
        write!(f, "line {}: traced {}, found {}", self.line, line(&self.traced), line(&self.found))
    }
}
