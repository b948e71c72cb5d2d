//! The captures that are decoded, made from the corpus by repetition.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::{Options, interpreter};

/// A capture, once and repeated.
#[derive(Debug)]
pub(super) struct Capture {
    pub(super) name: &'static str,
    /// A snapshot directory with the capture as it is.
    pub(super) once: PathBuf,
    /// A snapshot directory with the capture repeated.
    pub(super) repeated: PathBuf,
    pub(super) repeats: u64,
    /// A snapshot directory with a shorter repetition, for OpenCSD's text: OpenCSD writes some hundred bytes
    /// for each range.
    pub(super) for_text: PathBuf,
    /// A snapshot directory with an even shorter repetition, for the listing, which has a line for each
    /// instruction.
    pub(super) for_listing: PathBuf,
    pub(super) listing_bytes: u64,
    /// The trace that OpenCSD's harness repeats.
    pub(super) trace_once: PathBuf,
    /// The number of trace bytes that are decoded.
    pub(super) bytes: u64,
    /// How OpenCSD's harness reads the capture: container, address and image, sources.
    pub(super) container: &'static str,
    pub(super) address: &'static str,
    pub(super) image: PathBuf,
    pub(super) sources: &'static [&'static str],
    /// The number of instructions in the capture without repetition, if a third program has counted them.
    pub(super) known: Option<u64>,
    /// Why OpenCSD's number differs, if it does.
    pub(super) differs: Option<&'static str>,
    /// The required speed of the flow relative to OpenCSD's, if a goal is set.
    pub(super) flow_goal: Option<f64>,
    /// Whether goals are set for the capture's packets and text.
    pub(super) has_goal: bool,
}

/// The source of a capture.
struct Case {
    name: &'static str,
    folder: &'static str,
    trace: &'static str,
    container: &'static str,
    address: &'static str,
    /// Files that are consecutive in memory.
    image: &'static [&'static str],
    sources: &'static [&'static str],
    known: Option<u64>,
    differs: Option<&'static str>,
    flow_goal: Option<f64>,
    has_goal: bool,
}

const CASES: &[Case] = &[
    Case {
        name: "tc2-ptm-rstk-t32",
        folder: "real/tc2-ptm-rstk-t32",
        trace: "PTM_0_2.bin",
        container: "raw",
        address: "0x80000000",
        image: &[
            "mem_Cortex-A15_0_0_VECTORS.bin",
            "mem_Cortex-A15_0_1_RO_CODE.bin",
            "mem_Cortex-A15_0_2_RO_DATA.bin",
            "mem_Cortex-A15_0_3_RW_DATA.bin",
        ],
        sources: &["pft,2,0x20000400,0x411cf312,0x34c01ac2"],
        known: None,
        differs: None,
        flow_goal: Some(50.0),
        has_goal: true,
    },
    Case {
        name: "mix-m3-etmv3",
        folder: "synthetic/mix-m3-etmv3",
        trace: "trace.bin",
        container: "raw",
        address: "0x0",
        image: &["program.bin"],
        sources: &["etmv3,2,0x400,0x4114f250,0x18541800"],
        known: None,
        differs: None,
        flow_goal: Some(50.0),
        has_goal: true,
    },
    Case {
        name: "mix-a9-ptm",
        folder: "synthetic/mix-a9-ptm",
        trace: "trace.bin",
        container: "raw",
        address: "0x60010000",
        image: &["program.bin"],
        sources: &["pft,2,0x400,0x411cf312,0x34c01ac2"],
        known: None,
        differs: None,
        flow_goal: Some(50.0),
        has_goal: false,
    },
    Case {
        name: "mix-a7-etmv3",
        folder: "synthetic/mix-a7-etmv3-alternative",
        trace: "trace.bin",
        container: "raw",
        address: "0x60010000",
        image: &["program.bin"],
        sources: &["etmv3,2,0x400,0x411cf250,0x34c01ac2"],
        // The instructions that the emulator executed and the trace contains.
        known: Some(135_886),
        differs: Some("it forgets the instruction set after a direct BLX"),
        flow_goal: Some(50.0),
        has_goal: false,
    },
    Case {
        name: "mix-m33-etmv4",
        folder: "etm4/synthetic/mix-m33-etmv4",
        trace: "trace.bin",
        container: "raw",
        address: "0x0",
        image: &["program.bin"],
        sources: &["etmv4,0x10,0x1,0x280006e1,0x4100f421,0x4"],
        // The instructions that the emulator executed and the trace contains.
        known: Some(104_150),
        differs: Some("OpenCSD 1.3.3 reads it otherwise than 1.8.0, which counts the same"),
        flow_goal: Some(50.0),
        has_goal: false,
    },
    Case {
        name: "mix-a57-etmv4",
        folder: "etm4/synthetic/mix-a57-etmv4",
        trace: "trace.bin",
        container: "raw",
        address: "0x40100000",
        image: &["program.bin"],
        sources: &["etmv4,0x10,0x1,0x28000ea1,0x4100f402,0x488"],
        // The instructions that the emulator executed and the trace contains.
        known: Some(46_262),
        differs: None,
        flow_goal: Some(50.0),
        has_goal: false,
    },
    Case {
        name: "TC2",
        folder: "real/TC2",
        trace: "cstrace.bin",
        container: "frames",
        address: "0xc0008000",
        image: &["kernel_dump.bin"],
        sources: &[
            "etmv3,0x10,0x10001860,0x410cf250,0x344008f2",
            "etmv3,0x11,0x10001860,0x410cf250,0x344008f2",
            "etmv3,0x12,0x10001860,0x410cf250,0x344008f2",
            "pft,0x13,0x10001000,0x411cf312,0x34c01ac2",
            "pft,0x14,0x10001000,0x411cf312,0x34c01ac2",
        ],
        // Arm's DS-5 counted the same (the corpus's README): 16,623 and 9,548.
        known: Some(26_171),
        differs: None,
        flow_goal: Some(30.0),
        has_goal: false,
    },
];

/// All captures.
#[derive(Debug)]
pub(super) struct Captures {
    pub(super) decoded: Vec<Capture>,
    /// A snapshot directory with a capture that is larger than the memory limit, and the size of its program.
    pub(super) large: PathBuf,
    pub(super) large_bytes: u64,
    pub(super) large_code: u64,
    /// A dump of a 4 KiB trace buffer, its registers, and its program.
    pub(super) mtb: PathBuf,
}

impl Captures {
    /// Makes the captures in `folder`.
    pub(super) fn make(
        corpus: &Path,
        folder: &Path,
        generator: &Path,
        options: Options,
    ) -> Result<Self, String> {
        let decoded = CASES.iter().map(|case| case.make(corpus, folder, options));
        let mut decoded = decoded.collect::<Result<Vec<_>, _>>()?;
        let case = CASES.iter().find(|case| case.name == "mix-m3-etmv3").ok_or("found no case to repeat")?;
        let large = folder.join("large");
        let (_, large_bytes) = case.snapshot(&corpus.join(case.folder), &large, options.memory_bytes())?;
        let large_code = size(&large.join("program.bin"))?;
        let mtb = corpus.join("synthetic/mix-m0-mtb-4k");
        match interpreter::capture(folder, generator, options) {
            Err(error) if options.short => println!("skipped: no capture of an interpreter: {error}"),
            made => decoded.push(made?),
        }
        Ok(Self { decoded, large, large_bytes, large_code, mtb })
    }
}

impl Case {
    fn make(&self, corpus: &Path, folder: &Path, options: Options) -> Result<Capture, String> {
        let source = corpus.join(self.folder);
        let repeated = folder.join(self.name);
        let (repeats, bytes) = self.snapshot(&source, &repeated, options.capture_bytes())?;
        let for_text = folder.join(format!("{}.text", self.name));
        self.snapshot(&source, &for_text, options.text_bytes())?;
        let for_listing = folder.join(format!("{}.listing", self.name));
        let (_, listing_bytes) = self.snapshot(&source, &for_listing, options.listing_bytes())?;
        let image = folder.join(format!("{}.image", self.name));
        let mut code = Vec::new();
        for file in self.image {
            code.append(&mut read(&source.join(file))?);
        }
        fs::write(&image, code).map_err(|error| format!("{}: {error}", image.display()))?;
        Ok(Capture {
            name: self.name,
            trace_once: source.join(self.trace),
            once: source,
            repeated,
            repeats,
            for_text,
            for_listing,
            listing_bytes,
            bytes,
            container: self.container,
            address: self.address,
            image,
            sources: self.sources,
            known: self.known,
            differs: self.differs,
            flow_goal: self.flow_goal,
            has_goal: self.has_goal,
        })
    }

    /// Copies a snapshot directory and repeats its trace to at least `bytes`. Returns the number of
    /// repetitions and the size.
    fn snapshot(&self, source: &Path, target: &Path, bytes: u64) -> Result<(u64, u64), String> {
        fs::create_dir_all(target).map_err(|error| format!("{}: {error}", target.display()))?;
        let fail = |error: std::io::Error| format!("{}: {error}", source.display());
        for entry in fs::read_dir(source).map_err(fail)? {
            let file = entry.map_err(fail)?.path();
            let is_wanted =
                file.extension().is_some_and(|extension| extension == "ini" || extension == "bin");
            if let Some(name) = file.file_name().filter(|name| is_wanted && *name != self.trace) {
                let copy = target.join(name);
                fs::write(&copy, read(&file)?).map_err(|error| format!("{}: {error}", copy.display()))?;
            }
        }
        let trace = read(&source.join(self.trace))?;
        let repeats = bytes.div_ceil(trace.len().max(1) as u64);
        let copy = target.join(self.trace);
        let whole = repeats * trace.len() as u64;
        if size(&copy).ok() != Some(whole) {
            let fail = |error: std::io::Error| format!("{}: {error}", copy.display());
            let mut out = std::io::BufWriter::new(File::create(&copy).map_err(fail)?);
            for _ in 0..repeats {
                out.write_all(&trace).map_err(fail)?;
            }
            out.flush().map_err(fail)?;
        }
        Ok((repeats, whole))
    }
}

pub(super) fn read(file: &Path) -> Result<Vec<u8>, String> {
    fs::read(file).map_err(|error| format!("{}: {error}", file.display()))
}

pub(super) fn size(file: &Path) -> Result<u64, String> {
    fs::metadata(file).map(|metadata| metadata.len()).map_err(|error| format!("{}: {error}", file.display()))
}
