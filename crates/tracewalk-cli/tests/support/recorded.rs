//! Programs whose execution an emulator recorded, each with a trace of it.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::corpus;

/// A trace of a recorded run.
pub(crate) struct Recorded {
    pub(crate) name: String,
    pub(crate) elf: PathBuf,
    pub(crate) record: PathBuf,
    /// The processor's profile, as in the record.
    pub(crate) profile: &'static str,
    /// The capture, and the options that it needs.
    pub(crate) arguments: Vec<String>,
    /// How the script keeps stacks; `None` if it cannot.
    pub(crate) stacks: Option<&'static [&'static str]>,
    pub(crate) protocol: &'static str,
}

/// Without context IDs, handlers return to other tasks.
const TASKS: &[&str] = &["--tasks"];
const CONTEXTS: &[&str] = &["--contexts"];

/// Program, profile, protocol, further options of the generator, stacks.
type Row = (&'static str, &'static str, &'static str, &'static [&'static str], &'static [&'static str]);

const FIRMWARE: [Row; 20] = [
    ("m3", "m", "etmv3,cpu=cortex-m3", &[], &[]),
    ("m3", "m", "etmv4,cpu=cortex-m33", &["--return-stack"], &[]),
    ("m0", "m", "etmv3,cpu=cortex-m3", &[], &[]),
    ("m0", "m", "etmv4,cpu=cortex-m33", &["--branch-broadcast"], &[]),
    ("m4", "m", "etmv3,cpu=cortex-m4", &[], TASKS),
    ("m4", "m", "etmv4,cpu=cortex-m33", &[], TASKS),
    ("jumps", "m", "etmv3,cpu=cortex-m4", &["--branch-broadcast"], &[]),
    ("jumps", "m", "etmv4,cpu=cortex-m33", &[], &[]),
    ("m33", "m", "etmv4,cpu=cortex-m33", &[], &[]),
    ("m0-crash", "m", "etmv4,cpu=cortex-m33", &[], &[]),
    ("rev-old", "m", "etmv3,cpu=cortex-m3", &[], &[]),
    ("rev-new", "m", "etmv4,cpu=cortex-m33", &[], &[]),
    ("rust-m3", "m", "etmv3,cpu=cortex-m3", &[], &[]),
    ("rust-m3", "m", "etmv4,cpu=cortex-m33", &[], &[]),
    ("rust-a9", "ar", "etmv3,cpu=cortex-a7", &[], &[]),
    ("rust-a9", "ar", "pft,cpu=cortex-a15", &["--return-stack"], &[]),
    ("a9", "ar", "etmv3,cpu=cortex-a7", &["--context-id-bytes", "1"], CONTEXTS),
    ("a9", "ar", "pft,cpu=cortex-a15", &["--return-stack"], &[]),
    ("a15", "ar", "pft,cpu=cortex-a15", &[], TASKS),
    ("a53", "a64", "etmv4,cpu=cortex-a53", &[], TASKS),
];

/// The project's own programs, with traces made in this folder.
pub(crate) fn firmware(folder: &Path) -> Vec<Recorded> {
    // The binary is in the same package of the workspace's tests.
    let generator = assert_cmd::cargo::cargo_bin!("tracewalk").with_file_name("tracewalk-generate");
    let made = |(program, profile, unit, options, stacks): Row| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/firmware").join(program);
        let file = |extension: &str| source.join(program).with_extension(extension);
        let (elf, record) = (file("elf"), file("record"));
        let protocol = unit.split(',').next().expect("a protocol");
        let capture = folder.join(format!("{program}-{protocol}"));
        let mut command = Command::new(&generator);
        command.args(["capture", "--protocol", unit, "--output"]).arg(&capture).args(options);
        let output = command.arg("--record").arg(&record).arg("--elf").arg(&elf).output();
        let output = output.expect("`cargo test --workspace` has built the generator");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let arguments = vec![capture.join("capture.toml").display().to_string()];
        let name = format!("{program}, {protocol}");
        Recorded { name, elf, record, profile, arguments, stacks: Some(stacks), protocol }
    };
    FIRMWARE.into_iter().map(made).collect()
}

/// The corpus's programs.
pub(crate) fn emulated() -> Vec<Recorded> {
    let rows: [(&str, &str, &str, Option<&[&str]>); 10] = [
        ("synthetic/mix-m3-etmv3", "m", "etmv3", Some(&[])),
        ("synthetic/mix-m3-etmv3-broadcast", "m", "etmv3", Some(&[])),
        ("synthetic/mix-a7-etmv3-original", "ar", "etmv3", Some(&[])),
        ("synthetic/mix-a7-etmv3-alternative", "ar", "etmv3", Some(&[])),
        ("synthetic/mix-a9-ptm", "ar", "pft", Some(&[])),
        ("synthetic/mix-m0-mtb-full", "m", "mtb", Some(&["--behind-first-run"])),
        // The script cannot tell tasks apart that wait at one place, or that no exception switches, nor how C++ unwinds.
        ("found3/truth/03-preempting-in-svc", "m", "etmv3", Some(TASKS)),
        ("found3/truth/04-cooperative-switch", "m", "etmv3", None),
        ("found3/truth/05-unresolved-tasks", "m", "etmv3", None),
        ("found3/truth/06-cpp-exceptions-recursive", "m", "etmv3", None),
    ];
    let found = |(name, profile, protocol, stacks): (&str, _, _, _)| {
        let case = corpus(name);
        let file = |file: &str| case.join(file).display().to_string();
        let arguments = match protocol {
            _ if name.starts_with("found3") => vec![file("capture.toml")],
            "mtb" => vec![file("mtb.bin"), "--registers".to_owned(), file("registers.txt")],
            _ => vec![case.display().to_string()],
        };
        let image = ["--image".to_owned(), file("program.elf")];
        let images = if name.starts_with("found3") { &[][..] } else { &image[..] };
        Recorded {
            name: name.rsplit('/').next().expect("a name").to_owned(),
            elf: case.join("program.elf"),
            record: case.join("runs.txt"),
            profile,
            arguments: [&arguments, images].concat(),
            stacks,
            protocol,
        }
    };
    rows.map(found).into()
}

impl Recorded {
    /// What the scripts have to know about the trace's instructions.
    pub(crate) fn counted(&self) -> &'static [&'static str] {
        if self.protocol == "etmv4" { &["--without-undefined"] } else { &[] }
    }

    /// The options of a script.
    pub(crate) fn script(&self) -> [&str; 6] {
        let [elf, record] = [&self.elf, &self.record].map(|path| path.to_str().expect("a plain name"));
        ["--elf", elf, "--record", record, "--profile", self.profile]
    }

    pub(crate) fn arguments(&self) -> Vec<&str> {
        self.arguments.iter().map(String::as_str).collect()
    }
}
