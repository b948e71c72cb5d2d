//! Captures with impossible claims: one sentence, status 2, and nothing is read outside their directory.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use crate::support::{MESSAGES, example, mentions, run_with_kinds};

/// The text of a file outside the capture's directory: no message and no output may ever show it.
const SECRET: &str = "secret: 4711";

/// A directory with a capture in it, and a secret beside it.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("capture")).unwrap();
        fs::write(directory.path().join("secret.bin"), SECRET.repeat(64)).unwrap();
        Self(directory)
    }

    fn capture(&self) -> std::path::PathBuf {
        self.0.path().join("capture")
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> &Self {
        fs::write(self.capture().join(name), text).unwrap();
        self
    }

    /// The file is refused in one sentence.
    fn refused(&self, name: &str, reported: &[&str]) {
        refused(&["info"], &self.capture().join(name), reported);
    }
}

fn refused(commands: &[&str], path: &Path, reported: &[&str]) {
    for command in commands {
        let outcome = run_with_kinds([*command, path.to_str().unwrap()]);
        let context = format!("{command} {}: {}{}", path.display(), outcome.stdout, outcome.stderr);
        assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""), "{context}");
        assert_eq!(outcome.stderr.lines().count(), 1, "{context}");
        assert!(outcome.stderr.starts_with("error: "), "{context}");
        assert!(
            reported.iter().any(|reported| outcome.stderr.contains(reported)),
            "{reported:?} in {context}"
        );
        assert!(!outcome.stderr.contains("panicked") && !context.contains(SECRET), "{context}");
    }
}

const SNAPSHOT: &str =
    "[snapshot]\nversion=1.0\n\n[device_list]\ndevice1=cpu.ini\n\n[trace]\nmetadata=trace.ini\n";
const CPU: &str = "[device]\nname=cpu_0\nclass=core\ntype=Cortex-A9\n";
const TRACE: &str =
    "[trace_buffers]\nbuffers=buffer0\n\n[buffer0]\nname=ETB_0\nfile=trace.bin\nformat=coresight\n";

/// A snapshot directory in which one file has another text.
fn snapshot(changed: &str, text: &str) -> Place {
    let place = Place::new();
    for (name, usual) in [("snapshot.ini", SNAPSHOT), ("cpu.ini", CPU), ("trace.ini", TRACE)] {
        place.write(name, if name == changed { text } else { usual });
    }
    place.write("trace.bin", [0_u8; 64]);
    place
}

#[test]
fn names_that_lead_out_of_a_snapshot_are_refused() {
    for name in [
        "../secret.bin",
        "../../etc/passwd",
        "/etc/passwd",
        "x/../../secret.bin",
        "..",
        "trace.bin/../../secret.bin",
    ] {
        let outside = ["path_parent", "path_absolute", "file_directory"];
        snapshot("trace.ini", &TRACE.replace("trace.bin", name)).refused("", &outside);
        snapshot("snapshot.ini", &SNAPSHOT.replace("trace.ini", name)).refused("", &outside);
        snapshot("snapshot.ini", &SNAPSHOT.replace("cpu.ini", name)).refused("", &outside);
    }
}

#[test]
fn memory_dumps_outside_of_a_snapshot_are_not_read() {
    for name in ["../secret.bin", "/etc/passwd"] {
        let dump = format!("{CPU}\n[dump1]\nfile={name}\naddress=0x1000\nlength=16\n");
        snapshot("cpu.ini", &dump).refused("", &["path_parent", "path_absolute"]);
    }
}

#[cfg(unix)]
#[test]
fn links_out_of_a_snapshot_and_links_to_themselves_are_refused() {
    use std::os::unix::fs::symlink;

    let replaced = |name: &str, target: &str| {
        let place = snapshot("", "");
        fs::remove_file(place.capture().join(name)).unwrap();
        symlink(target, place.capture().join(name)).unwrap();
        place
    };
    for name in ["snapshot.ini", "trace.ini", "cpu.ini", "trace.bin"] {
        let reported = ["path_link", "symbolic links", "file_missing"];
        if name != "snapshot.ini" {
            replaced(name, "../secret.bin").refused("", &reported);
            replaced(name, "/etc/passwd").refused("", &reported);
        }
        // A link to itself, and two to each other.
        let looped = replaced(name, name);
        looped.refused(if name == "snapshot.ini" { "snapshot.ini" } else { "" }, &reported);
    }
    let place = snapshot("", "");
    fs::remove_file(place.capture().join("trace.bin")).unwrap();
    symlink("other", place.capture().join("trace.bin")).unwrap();
    symlink("trace.bin", place.capture().join("other")).unwrap();
    place.refused("", &["symbolic links"]);
    // A directory that contains itself.
    let place = Place::new();
    symlink(".", place.capture().join("loop")).unwrap();
    place.refused("loop/loop/loop", &["neither snapshot.ini nor capture.toml"]);
}

/// Opening a pipe without a writer blocks forever.
#[cfg(unix)]
#[test]
fn pipes_in_a_snapshot_are_refused() {
    let pipe = |place: &Place, name: &str| {
        let path = place.capture().join(name);
        fs::remove_file(&path).unwrap_or(());
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    let reported = ["path_special"];
    for name in ["snapshot.ini", "trace.ini", "cpu.ini", "trace.bin"] {
        let place = snapshot("", "");
        pipe(&place, name);
        place.refused("", &reported);
    }
    let place = Place::new();
    pipe(&place, "trace.bin");
    place.write("capture.toml", "[capture]\nfile = \"trace.bin\"\n").refused("", &reported);
    pipe(&place, "capture.toml");
    place.refused("", &reported);
}

#[test]
fn ini_files_that_are_none_are_refused_with_their_line() {
    for (text, reported) in [
        ("[snapshot\nversion=1.0\n", "snapshot.ini:1"),
        ("version=1.0\n", ""),
        ("", ""),
        ("\u{0}\u{1}\u{2}\u{3}", ""),
        ("[device_list]\n[trace]\nmetadata=trace.ini\n[trace]\nmetadata=trace.ini\n", ""),
    ] {
        snapshot("snapshot.ini", text).refused("", &[reported]);
    }
    snapshot("trace.ini", &"[x]\n".repeat(1_000_000)).refused("", &[""]);
    snapshot("trace.ini", &TRACE.replace("buffer0\n\n", &format!("{}\n\n", "b,".repeat(100_000))))
        .refused("", &[""]);
    snapshot("trace.ini", &TRACE.replace("coresight", "coresihgt")).refused("", &["coresight"]);
}

#[test]
fn toml_files_that_are_none_are_refused_with_their_line() {
    for (text, reported) in [
        (
            "[capture]\nfile = \"trace.bin\"\n[[source]]\nid = 99999999999999999999\nprotocol = \"etmv3\"\n",
            "capture.toml:4",
        ),
        (
            "[capture]\nfile = \"trace.bin\"\n[[source]]\nid = 2\nprotocol = \"pft\"\n[[source]]\nid = 2\nprotocol = \"itm\"\n",
            "description_repeated: ",
        ),
        ("\u{feff}\u{0}", ""),
    ] {
        let place = Place::new();
        place.write("capture.toml", text).write("trace.bin", [0_u8; 64]);
        place.refused("", &[reported]);
    }
    let place = Place::new();
    place.write("capture.toml", "[capture\nfile = \"trace.bin\"\n");
    refused(&["info", "packets", "flow", "describe"], &place.capture(), &["capture.toml:1"]);
    place.write(
        "capture.toml",
        format!("[capture]\nfile = {}1{}\n", "[".repeat(100_000), "]".repeat(100_000)),
    );
    place.refused("", &[""]);
}

#[test]
fn absurd_sizes_are_refused_without_taking_them() {
    // A 16 EB dump from a 16-byte file, and one that starts after the file's end.
    for (length, offset) in [("0xffffffffffffffff", "0"), ("16", "0xffffffffffffffff"), ("0xffffffff", "8")] {
        let dump =
            format!("{CPU}\n[dump1]\nfile=trace.bin\naddress=0x1000\nlength={length}\noffset={offset}\n");
        snapshot("cpu.ini", &dump).refused("", &["length", "offset", "bytes"]);
    }
    let place = Place::new();
    place.write(
        "long.vcd",
        "$timescale 1ns $end\n$var wire 99999999999999999999 ! swo $end\n$enddefinitions $end\n",
    );
    place.refused("long.vcd", &[""]);
    // A sparse file of huge size is reported as too long, or as not recognised.
    let sparse = fs::File::create(place.capture().join("trace.bin")).unwrap();
    sparse.set_len(1 << 45).unwrap_or(());
    if sparse.metadata().unwrap().len() > 1 << 40 {
        place.refused("trace.bin", &["at most"]);
    }
}

/// A sigrok session of these files.
fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    use std::io::Write;
    let mut archive = zip_writer();
    for (name, bytes) in files {
        archive.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

fn zip_writer() -> zip::ZipWriter<std::io::Cursor<Vec<u8>>> {
    zip::ZipWriter::new(std::io::Cursor::new(Vec::new()))
}

#[test]
fn archives_that_are_none_and_archives_that_are_too_much_are_refused() {
    let place = Place::new();
    let metadata = |unitsize: &str, rate: &str| {
        format!(
            "[global]\nsigrok version=0.5.2\n\n[device 1]\ncapturefile=logic-1\ntotal probes=8\nsamplerate={rate}\n\
             total analog=0\nprobe1=SWO\nunitsize={unitsize}\n"
        )
    };
    let good = metadata("1", "24 MHz");
    let samples = [1_u8; 4096];
    let whole = zip(&[("version", b"2"), ("metadata", good.as_bytes()), ("logic-1-1", &samples)]);
    for cut in [4, 20, whole.len() / 2, whole.len() - 5] {
        place.write("cut.sr", &whole[..cut]);
        place.refused("cut.sr", &[""]);
    }
    for (unitsize, rate) in
        [("0", "24 MHz"), ("99999999999", "24 MHz"), ("1", "-1"), ("1", "1e400 Hz"), ("x", "24 MHz")]
    {
        let text = metadata(unitsize, rate);
        place.write(
            "odd.sr",
            zip(&[("version", b"2"), ("metadata", text.as_bytes()), ("logic-1-1", &samples)]),
        );
        place.refused("odd.sr", &["odd.sr"]);
    }
    let outside = good.replace("logic-1", "../../secret.bin");
    place.write(
        "out.sr",
        zip(&[("version", b"2"), ("metadata", outside.as_bytes()), ("../../secret.bin-1", &samples)]),
    );
    place.refused("out.sr", &["out.sr"]);
    place.write("empty.sr", zip(&[]));
    place.refused("empty.sr", &["empty.sr"]);
    // A thousand bytes for each byte of the archive, without a single change on the wire.
    let zeros = vec![0_u8; 8 << 20];
    place.write("bomb.sr", zip(&[("version", b"2"), ("metadata", good.as_bytes()), ("logic-1-1", &zeros)]));
    place.refused("bomb.sr", &["bomb.sr"]);
}

/// An ELF file of ARM with these segments: offset, address, bytes in the file, bytes in memory.
fn elf(segments: &[(u32, u32, u32, u32)]) -> Vec<u8> {
    let mut file = b"\x7fELF\x01\x01\x01".to_vec();
    file.resize(16, 0);
    let halfword = |file: &mut Vec<u8>, value: u16| file.extend(value.to_le_bytes());
    let word = |file: &mut Vec<u8>, value: u32| file.extend(value.to_le_bytes());
    // ET_EXEC, EM_ARM, version, entry, program headers, section headers, flags, sizes and counts.
    [2, 40].into_iter().for_each(|value| halfword(&mut file, value));
    [1, 0, 52, 0, 0x0500_0200].into_iter().for_each(|value| word(&mut file, value));
    let count = u16::try_from(segments.len()).unwrap();
    [52, 32, count, 40, 0, 0].into_iter().for_each(|value| halfword(&mut file, value));
    for &(offset, address, in_file, in_memory) in segments {
        [1, offset, address, address, in_file, in_memory, 5, 4]
            .into_iter()
            .for_each(|value| word(&mut file, value));
    }
    file.resize(file.len() + 4096, 0);
    file
}

/// The shell limits the command's memory, in KiB.
#[test]
fn elf_files_that_claim_much_memory_are_refused_without_taking_it() {
    const MOST_KIBIBYTES: &str = "1500000";
    let folder = tempfile::tempdir().unwrap();
    let many = (0..3000).map(|number| (0, 0x1000 * (number % 8), 4096, 0xffff_0000)).collect::<Vec<_>>();
    let files = [
        (elf(&[(84, 0, u32::MAX, u32::MAX)]), "image_truncated 4294967379"),
        (elf(&many), "image_too_many_segments 1024"),
    ];
    for (bytes, reported) in files {
        let image = folder.path().join("hostile.elf");
        fs::write(&image, bytes).unwrap();
        let output = std::process::Command::new("sh")
            .args([
                "-c",
                "ulimit -v $1; shift; exec \"$@\"",
                "sh",
                MOST_KIBIBYTES,
                env!("CARGO_BIN_EXE_tracewalk"),
            ])
            .args(["flow", "--threads", "2", "--format", "none"])
            .args(MESSAGES)
            .arg(example("m3-etmv3/trace.bin"))
            .arg("--image")
            .arg(&image)
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(mentions(&stderr, reported), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
}

#[test]
fn files_of_other_programs_are_named_as_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let noise =
        (0..3000_u32).map(|index| index.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect::<Vec<_>>();
    let cases: [(&str, &[u8]); 4] = [
        ("image/jpeg", b"\xff\xd8\xff\xe0\0\x10JFIF"),
        ("application/pdf", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"),
        ("application/gzip", b"\x1f\x8b\x08\0\0\0\0\0"),
        ("application/zstd", b"\x28\xb5\x2f\xfd\x04\x58"),
    ];
    for (media_type, head) in cases {
        let file = folder.path().join("capture");
        fs::write(&file, [head, &noise].concat()).unwrap();
        let outcome = run_with_kinds(["flow", file.to_str().unwrap()]);
        assert_eq!(outcome.status, 2, "{media_type}: {}", outcome.stderr);
        assert!(
            mentions(&outcome.stderr, &format!("error: nothing_recognised: {media_type}")),
            "{}",
            outcome.stderr
        );
        assert!(!mentions(&outcome.stderr, "--container"), "{}", outcome.stderr);
    }
}

/// Without the program, or with another one, there are no instructions to count: each address counts.
#[test]
fn the_last_places_are_few_without_the_program_too() {
    let (trace, other) = (example("m3-etmv3/trace.bin"), example("a7-etmv3/a9.elf"));
    let (mtb, a9) = (example("m0-crash-mtb/trace.bin"), other.to_str().unwrap());
    let (trace, mtb) = (trace.to_str().unwrap(), mtb.to_str().unwrap());
    let captures: [&[&str]; 4] = [
        &[trace],
        &[trace, "--image", a9],
        &[mtb, "--container", "mtb"],
        &[mtb, "--source", "mtb,position=0x34", "--source", "mtb,master=0x80000006", "--container", "mtb"],
    ];
    for capture in captures {
        let places = |last: &str| {
            let outcome =
                run_with_kinds([&["flow"], capture, &["--last", last, "--format", "runs"]].concat());
            outcome.stdout.lines().filter(|line| line.starts_with("N ")).count()
        };
        assert_eq!([places("1"), places("3"), places("20")], [1, 3, 20], "{capture:?}");
    }
}

/// A buffer that was erased, or never written: the message names the byte, and suggests no container.
#[test]
fn a_file_of_one_value_is_named_as_such() {
    let place = Place::new();
    for value in [0x00_u8, 0xff] {
        place.write("blank.bin", [value; 4096]);
        let capture = place.capture().join("blank.bin");
        let outcome = run_with_kinds(["info", capture.to_str().unwrap()]);
        let expected = format!("error: nothing_recognised: 4096 0x{value:02x}");
        assert!(outcome.status == 2 && mentions(&outcome.stderr, &expected), "{}", outcome.stderr);
        assert!(!mentions(&outcome.stderr, "--container"), "{}", outcome.stderr);
    }
}

/// A file of `megabytes` MiB without any pattern, the same in every run.
fn noise(path: &Path, megabytes: usize) {
    let mut state = 1_u64;
    let mut piece = vec![0; 1 << 20];
    let mut file = fs::File::create(path).unwrap();
    for _ in 0..megabytes {
        for word in piece.chunks_exact_mut(8) {
            // Knuth's multiplier; the high bits are the random ones.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            word.copy_from_slice(&(state ^ (state >> 32)).to_le_bytes());
        }
        file.write_all(&piece).unwrap();
    }
}

/// The command's memory limit besides mapped files, in KiB: the shell enforces it, and limits processor time to 5 s.
const MOST_PRIVATE: &str = "65536";

fn in_little_memory(arguments: &[&str], temporary: &Path) -> (Option<i32>, String) {
    in_little_memory_from(Stdio::null(), arguments, temporary)
}

/// Like [`in_little_memory`], with this standard input.
fn in_little_memory_from(input: Stdio, arguments: &[&str], temporary: &Path) -> (Option<i32>, String) {
    let output = std::process::Command::new("sh")
        .args([
            "-c",
            "ulimit -t 5; ulimit -d $1; shift; exec \"$@\"",
            "sh",
            MOST_PRIVATE,
            env!("CARGO_BIN_EXE_tracewalk"),
        ])
        .args(arguments)
        .args(MESSAGES)
        .env("TMPDIR", temporary)
        .stdin(input)
        .output()
        .unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[cfg(target_os = "linux")]
#[test]
fn guessing_takes_little_memory_however_long_the_file_is_and_leaves_nothing() {
    let (folder, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = folder.path().join("noise.bin");
    noise(&file, 1024);
    let refused = Some(2);
    for command in ["info", "flow", "packets"] {
        let (status, stderr) = in_little_memory(&[command, file.to_str().unwrap()], temporary.path());
        assert_eq!(status, refused, "{command}: {stderr}");
        assert!(mentions(&stderr, "nothing_recognised"), "{command}: {stderr}");
    }
    // Those that wait for the end of a pipe keep the bytes in a temporary file.
    for command in ["info", "crash"] {
        let mut head = std::process::Command::new("head");
        let mut pipe = head.args(["-c", "100000000"]).arg(&file).stdout(Stdio::piped()).spawn().unwrap();
        let input = pipe.stdout.take().unwrap().into();
        let (status, stderr) = in_little_memory_from(input, &[command, "-"], temporary.path());
        assert_eq!(status, refused, "{command} -: {stderr}");
        assert!(mentions(&stderr, "nothing_recognised 100000000"), "{command} -: {stderr}");
        pipe.wait().unwrap();
    }
    for device in ["/dev/zero", "/dev/urandom"] {
        let (status, stderr) = in_little_memory(&["info", device], temporary.path());
        assert_eq!(status, refused, "{device}: {stderr}");
        assert!(mentions(&stderr, "file_endless"), "{device}: {stderr}");
    }
    let text = folder.path().join("memory.txt");
    let lines =
        (0..20_000_u32).map(|line| format!("0x{:08x}:\t0x0000010c\t0x00000116\n", 0x2000_0000 + 8 * line));
    let piece = lines.collect::<String>();
    let mut out = fs::File::create(&text).unwrap();
    (0..60).for_each(|_| out.write_all(piece.as_bytes()).unwrap());
    let (status, stderr) = in_little_memory(&["info", text.to_str().unwrap()], temporary.path());
    assert_eq!(status, refused, "{stderr}");
    assert!(mentions(&stderr, "dump_too_long"), "{stderr}");
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
}

/// Each branch of the trace would be looked for in all of the image, at each place where the image might be.
#[cfg(target_os = "linux")]
#[test]
fn an_image_without_branches_takes_little_time_and_stays_where_it_was_stated() {
    let place = Place::new();
    // ADDS R0, #0 to #255, over and over.
    let straight = (0..1_u32 << 15).flat_map(|number| [number.to_le_bytes()[0], 0x30]).collect::<Vec<_>>();
    let trace = example("m33-etmv4/trace.bin").display().to_string();
    for (address, bytes, reported) in [
        ("0x0", vec![0; 1 << 18], "image_refused blank.bin"),
        ("0x20000000", straight, "code_missing 0x20000000"),
    ] {
        place.write("blank.bin", bytes);
        let image = format!("{address}:{}", place.capture().join("blank.bin").display());
        let source = ["--container", "frames", "--source", "0x10=etmv4,cpu=cortex-m33", "--image", &image];
        let arguments = [&["flow", &trace, "--format", "none"], &source[..]].concat();
        let (status, stderr) = in_little_memory(&arguments, place.0.path());
        assert_eq!((status, stderr.lines().count()), (Some(2), 1), "{address}: {stderr}");
        assert!(mentions(&stderr, reported), "{address}: {stderr}");
    }
}
