use std::path::Path;

use proptest::prelude::*;
use tracewalk::ids::{Address, TraceId};

use super::*;
use crate::cpu::Profile;
use crate::file::FileProblem;
use crate::fixtures::{TemporaryDirectory, corpus};
use crate::image::{ImageKind, ImageLoader, ImageRequest};
use crate::origin::{Origin, Stated};
use crate::paths::PathProblem;

/// The file, line and kind of an error: sentences may improve.
pub(crate) fn located(error: &CaptureError) -> String {
    let file = error.file.file_name().unwrap_or_default().display();
    let line = error.line.map(|line| format!(":{line}")).unwrap_or_default();
    format!("{file}{line} {}", error.kind.name())
}

/// A directory with a `capture.toml` and the files that it may name.
fn described(text: &str) -> (TemporaryDirectory, Result<Capture, CaptureError>) {
    let directory = TemporaryDirectory::new();
    directory.write("trace.bin", b"trace");
    directory.write("app.elf", b"");
    directory.write("registers.txt", b"# a comment\nMTB_POSITION=0x1bc\nmtb_master = 0x80000008\n");
    let path = directory.write("capture.toml", text.as_bytes());
    let capture = Capture::open(&path);
    (directory, capture)
}

const FULL: &str = r#"[capture]
file = "trace.bin"
container = "tpiu"
frame_start = 3
name = "ETB_0"
blocks = "dstream"
timestamp_frequency = 25_000_000

[[source]]
protocol = "etmv3"
id = 0x02
cpu = "cortex-m3"
registers = { etmcr = 0x500 }
name = "ETM_0"
core = "cpu_0"

[[source]]
protocol = "itm"
id = 1

[[image]]
file = "app.elf"

[[image]]
file = "trace.bin"
address = 0x2000_0000
offset = 1
length = 3
space = "S"
cores = ["cpu_0", "cpu_1"]
"#;

#[test]
fn a_description_says_everything() {
    let (directory, capture) = described(FULL);
    let capture = capture.unwrap();
    let path = directory.path().join("capture.toml");
    let [buffer] = capture.buffers.as_slice() else { panic!("one buffer") };
    assert_eq!(
        (&*buffer.bytes, buffer.name.as_str(), buffer.blocks),
        (&b"trace"[..], "ETB_0", Blocks::Dstream)
    );
    assert_eq!(buffer.container, Some(Stated::new(Container::TracePort, Origin::line(&path, 3))));
    assert_eq!(buffer.frame_start, Some(Stated::new(3, Origin::line(&path, 4))));
    assert_eq!(capture.timestamp_frequency, Some(Stated::new(25_000_000, Origin::line(&path, 7))));

    let [etm, itm] = buffer.sources.as_slice() else { panic!("two sources") };
    assert_eq!((etm.id, &etm.protocol), (TraceId::new(2), &Protocol::EtmV3));
    assert_eq!(etm.registers.stated("etmcr"), Some(&Stated::new(0x500, Origin::line(&path, 13))));
    assert_eq!(
        etm.registers.stated("ETMIDR"),
        Some(&Stated::new(0x4114_f250, Origin::Usual("cortex-m3".to_owned())))
    );
    assert_eq!((etm.profile(), etm.core.as_deref()), (Some(Profile::M), Some("cpu_0")));
    assert_eq!(etm.origin, Origin::line(&path, 9));
    assert_eq!((itm.id, &itm.protocol), (TraceId::new(1), &Protocol::Itm));

    let [elf, raw] = capture.images.as_slice() else { panic!("two images") };
    assert_eq!((&elf.kind, elf.origin.clone()), (&ImageKind::Addressed, Origin::line(&path, 21)));
    let kind = ImageKind::Raw {
        address: Address::new(0x2000_0000),
        offset: 1,
        length: Some(3),
        space: Some("S".to_owned()),
    };
    assert_eq!(raw.kind, kind);
    assert_eq!(capture.images_for(etm).count(), 2);
    assert_eq!(capture.images_for(itm).count(), 1);
}

#[test]
fn a_description_can_be_short() {
    let (_directory, capture) = described("capture.file = 'trace.bin'\n");
    let capture = capture.unwrap();
    assert_eq!(capture.buffers[0].name, "trace.bin");
    assert_eq!(capture.buffers[0].container, None);
    assert_eq!(capture.sources().count(), 0);
    let (directory, _) = described("[capture]\nfile = 'trace.bin'\ncontainer = 'auto'\n");
    assert_eq!(Capture::open(directory.path()).unwrap().buffers[0].container, None);
}

#[test]
fn registers_can_be_in_their_own_file() {
    let (directory, capture) = described(
        "[capture]\nfile = 'trace.bin'\ncontainer = 'mtb'\n[[source]]\nprotocol = 'mtb'\nregisters = 'registers.txt'\n",
    );
    let capture = capture.unwrap();
    let registers = &capture.buffers[0].sources[0].registers;
    let origin = Origin::line(&directory.path().join("registers.txt"), 2);
    assert_eq!(registers.stated("MTB_POSITION"), Some(&Stated::new(0x1bc, origin)));
    assert_eq!(registers.get("MTB_MASTER"), Some(0x8000_0008));
}

#[test]
fn mistakes_in_a_description_are_reported_with_their_line() {
    const OK: &str = "[capture]\nfile = 'trace.bin'\n";
    let cases = [
        ("[capture\n", ":1 description_toml"),
        ("", " description_missing_key"),
        ("[capture]\n", ":1 description_missing_key"),
        ("[capture]\nfile = 1\n", ":2 description_type"),
        ("[capture]\nfile = 'gone'\n", ":2 file_missing"),
        ("[capture]\nfile = 'app.elf'\n", ":2 file_empty"),
        ("[capture]\nfile = '.'\n", ":2 file_directory"),
        ("[capture]\nfile = '../trace.bin'\n", ":2 path_parent"),
        ("[capture]\nfile = '/etc/passwd'\n", ":2 path_absolute"),
        ("[captrue]\nfile = 'trace.bin'\n", ":1 description_unknown_key"),
        ("[capture]\nfile = 'trace.bin'\ncontianer = 'raw'\n", ":3 description_unknown_key"),
        ("[capture]\nfile = 'trace.bin'\ncontainer = 'frame'\n", ":3 description_unknown_value"),
        ("[capture]\nfile = 'trace.bin'\nblocks = 'x'\n", ":3 description_unknown_value"),
        ("OK[[source]]\nid = 2\n", ":3 description_missing_key"),
        ("OK[source]\nid = 2\n", ":3 description_type"),
        ("OK[[source]]\nprotocol = 'etm'\n", ":4 description_unknown_value"),
        ("OK[[source]]\nprotocol = 'pft'\nid = 0x80\n", ":5 description_trace_id"),
        ("OK[[source]]\nprotocol = 'pft'\nid = -1\n", ":5 description_type"),
        ("OK[[source]]\nprotocol = 'pft'\ncpu = 'cortex-m33x'\nname = 5\n", ":6 description_type"),
        ("OK[[source]]\nprotocol = 'pft'\nregisters = { etmcr = 1, ETMCR = 1 }\n", ":5 description_repeated"),
        (
            "OK[[source]]\nprotocol = 'pft'\nregisters = { etmcr = 0x1_0000_0000 }\n",
            ":5 description_too_large",
        ),
        ("OK[[image]]\naddress = 1\n", ":3 description_missing_key"),
        ("OK[[image]]\nfile = 'a'\noffset = 1\n", ":3 description_missing_key"),
        ("OK[[image]]\nfile = 'a'\ncores = 'cpu_0'\n", ":5 description_type"),
    ];
    for (text, expected) in cases {
        let (directory, capture) = described(&text.replace("OK", OK));
        let error = capture.expect_err(text);
        drop(directory);
        assert_eq!(located(&error), format!("capture.toml{expected}"), "{text}");
    }
}

#[test]
fn thousands_of_tables_take_no_longer_than_their_text() {
    let tables = "[[image]]\nfile = 'app.elf'\n".repeat(30_000);
    let start = std::time::Instant::now();
    let (_directory, capture) = described(&format!("[capture]\nfile = 'trace.bin'\n{tables}"));
    assert_eq!(capture.unwrap().images.len(), 30_000);
    // If each value's line is counted from the start, this takes minutes.
    assert!(start.elapsed().as_secs() < 20);
}

#[test]
fn a_description_is_written_as_it_was_read() {
    let (directory, capture) = described(FULL);
    let text = capture.unwrap().to_toml(directory.path()).unwrap().text;
    directory.write("again/copy.toml", b"");
    directory.write("capture.toml", text.as_bytes());
    let again = Capture::open(directory.path()).unwrap();
    assert_eq!(again.to_toml(directory.path()).unwrap().text, text);
    // Every field is the same as in the original, except for the place of the timestamp frequency.
    let sorted = |text: &str| {
        let mut lines = text.lines().map(str::to_owned).collect::<Vec<_>>();
        lines.sort();
        lines
    };
    let expected = FULL
        .replace("25_000_000", "25000000")
        .replace("0x500", "0x00000500")
        .replace("id = 1", "id = 0x01")
        .replace("0x2000_0000", "0x20000000")
        .replace("offset = 1", "offset = 0x1")
        .replace("length = 3", "length = 0x3");
    assert_eq!(sorted(&text), sorted(&expected));
}

#[test]
fn what_cannot_be_used_is_a_note_if_the_rest_can() {
    let (directory, capture) = described(
        "[[capture]]\nfile = 'trace.bin'\nname = 'a'\ndump = 'gone.log'\n[[capture]]\nfile = 'app.elf'\nname = 'b'\n\
         [[source]]\nprotocol = 'etmv4'\ncapture = 'a'\nregisters = { trcidr9 = 1, trcidr8 = 2 }\n\
         [[source]]\nprotocol = 'itm'\ncapture = 'b'\n",
    );
    let capture = capture.unwrap();
    drop(directory);
    let notes = capture.notes.iter().map(located).collect::<Vec<_>>();
    let expected = [
        "capture.toml:4 file_missing",
        "capture.toml:6 file_empty",
        "capture.toml:11 description_unknown_key",
    ];
    assert_eq!(notes, expected);
    let [buffer] = capture.buffers.as_slice() else { panic!("one buffer") };
    assert_eq!(buffer.sources[0].registers.get("TRCIDR8"), Some(2));
    assert_eq!((buffer.sources.len(), capture.other_sources.len(), capture.dump), (1, 1, None));
}

#[test]
fn text_is_quoted_when_it_is_written() {
    let (directory, capture) =
        described("[capture]\nfile = 'trace.bin'\nname = \"a\\\"b\\\\c\\n\\u0007é\"\n");
    let capture = capture.unwrap();
    let text = capture.to_toml(directory.path()).unwrap().text;
    directory.write("capture.toml", text.as_bytes());
    assert_eq!(Capture::open(directory.path()).unwrap().buffers[0].name, capture.buffers[0].name);
}

#[test]
fn only_what_can_be_read_again_is_written() {
    let (directory, capture) = described("[capture]\nfile = 'trace.bin'\n");
    let mut capture = capture.unwrap();
    let pipe = Capture::read_from("-".as_ref(), &b"1234"[..], &WireOptions::default()).unwrap();
    assert_eq!(pipe.to_toml(directory.path()), Err(DescribeError::NotAFile { file: "-".into() }));
    capture.buffers.push(capture.buffers[0].clone());
    let name = capture.buffers[0].name.clone();
    assert_eq!(capture.to_toml(directory.path()), Err(DescribeError::SameName { name }));
}

#[test]
fn a_description_elsewhere_is_opened_where_its_files_are_allowed() {
    let (share, capture) = described("[capture]\nfile = 'trace.bin'\n");
    let capture = capture.unwrap();
    let elsewhere = TemporaryDirectory::new();
    let written = capture.to_toml(elsewhere.path()).unwrap();
    assert_eq!(written.roots, [share.path().canonicalize().unwrap()]);
    let description = elsewhere.write("capture.toml", written.text.as_bytes());
    let open = |roots: &[PathBuf]| Capture::open_with(elsewhere.path(), &WireOptions::default(), roots);
    assert_eq!(&*open(&written.roots).unwrap().buffers[0].bytes, b"trace");
    // The list of files that opening reads contains the trace in the share.
    let read = files(&description, &written.roots);
    assert!(
        read.iter()
            .any(|file| file.canonicalize().ok() == share.path().join("trace.bin").canonicalize().ok())
    );
    assert_eq!(files(&description, &[]).len(), 1);
    let problem = |roots: &[PathBuf]| match open(roots).unwrap_err().kind {
        CaptureErrorKind::Path { problem, .. } => Some(problem),
        _ => None,
    };
    assert_eq!(problem(&[]), Some(PathProblem::Parent));
    let other = TemporaryDirectory::new();
    assert_eq!(problem(&[other.path().to_owned()]), Some(PathProblem::Outside));
    let missing = open(&[other.path().join("missing")]).unwrap_err();
    assert_eq!((missing.kind, missing.file), (CaptureErrorKind::NotADirectory, other.path().join("missing")));
}

#[test]
fn a_file_of_trace_says_nothing_about_itself() {
    let directory = TemporaryDirectory::new();
    let capture = Capture::open(&directory.write("swo.bin", b"1234")).unwrap();
    assert_eq!((&*capture.buffers[0].bytes, capture.buffers[0].name.as_str()), (&b"1234"[..], "swo.bin"));
    assert_eq!(capture.buffers[0].container, None);

    let error = Capture::open(&directory.write("empty.bin", b"")).unwrap_err();
    assert_eq!(error.kind, CaptureErrorKind::File(FileProblem::Empty));
    let error = Capture::open(&directory.path().join("missing.bin")).unwrap_err();
    assert_eq!(error.kind, CaptureErrorKind::File(FileProblem::Missing));
    let error = Capture::open(directory.path()).unwrap_err();
    let files = ["empty.bin", "swo.bin"].map(str::to_owned).to_vec();
    assert_eq!(error.kind, CaptureErrorKind::NoDescription { files });
    let error = Capture::open(&directory.write("bad.toml", b"\xff")).unwrap_err();
    assert_eq!(error.kind, CaptureErrorKind::File(FileProblem::NotText { offset: 0 }));
}

#[test]
fn a_register_file_names_the_mtb_registers() {
    let directory = TemporaryDirectory::new();
    let read = |text: &str| {
        let path = directory.write("registers.txt", text.as_bytes());
        let registers = Registers::read_mtb(&path).map_err(|error| error.to_string());
        registers.map_err(|error| error.replace(&format!("{}:", path.display()), ""))
    };
    let registers = read("MTB_POSITION=0x000001BC\r\nMTB_BASE=536870912 ; SRAM\n").unwrap();
    assert_eq!(registers.get("mtb_position"), Some(0x1bc));
    assert_eq!(registers.get("MTB_BASE"), Some(0x2000_0000));
    let cases = [
        (
            "MTB_POSITON=1",
            "1: unknown key `MTB_POSITON` in registers, the nearest known one is `MTB_POSITION`",
        ),
        ("\nMTB_FLOW", "2: expected `[section]`, `key=value` or a comment, found `MTB_FLOW`"),
        ("MTB_FLOW=x", "1: expected a number for `MTB_FLOW`, found `x`"),
        ("MTB_FLOW=1\nmtb_flow=2", "2: `MTB_FLOW` is given twice"),
    ];
    for (text, message) in cases {
        assert_eq!(read(text).unwrap_err(), message);
    }
}

#[test]
fn a_description_may_have_several_buffers() {
    const SEVERAL: &str = "\
[[capture]]
file = \"trace.bin\"
name = \"ETB_0\"
timestamp_frequency = 25000000

[[capture]]
file = \"trace.bin\"
name = \"ETB_1\"

[[source]]
protocol = \"pft\"
capture = \"ETB_1\"
id = 0x02
core = \"cpu_0\"
";
    let (directory, capture) = described(SEVERAL);
    let capture = capture.unwrap();
    let sources = capture.buffers.iter().map(|buffer| (buffer.name.as_str(), buffer.sources.len()));
    assert!(sources.eq([("ETB_0", 0), ("ETB_1", 1)]));
    assert_eq!(capture.timestamp_frequency.as_ref().map(|stated| stated.value), Some(25_000_000));
    assert_eq!(capture.to_toml(directory.path()).unwrap().text, SEVERAL);

    let cases = [
        ("name = \"ETB_1\"", "name = \"ETB_0\"", ":8: `ETB_0` is given twice"),
        ("capture = \"ETB_1\"\n", "", ":10: [[source]] has no `capture`"),
        (
            "capture = \"ETB_1\"",
            "capture = \"ETB\"",
            ":12: there is no trace buffer `ETB`, the nearest name is `ETB_0`",
        ),
    ];
    for (from, to, message) in cases {
        let (directory, capture) = described(&SEVERAL.replace(from, to));
        let path = directory.path().display();
        assert_eq!(capture.unwrap_err().to_string(), format!("{path}/capture.toml{message}"));
    }
    let many = "[[capture]]\nfile = 'trace.bin'\n".repeat(300);
    assert!(matches!(described(&many).1.unwrap_err().kind, CaptureErrorKind::TooMany { found: 300, .. }));
}

mod formats;
mod perf;
mod recordings;
mod snapshots;

/// A list of text pieces that make up files of these formats.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "[capture]",
        "[[source]]",
        "[[image]]",
        "[device]",
        "[regs]",
        "[dump1]",
        "[trace_buffers]",
        "[",
        "]",
        "=",
        "\n",
        "file",
        "'trace.bin'",
        "name",
        "class=core",
        "address=0x1",
        "buffers=a",
        "\"",
        "..",
        "/",
        "{",
        "}",
        ",",
        "1",
        "é",
        "[device_list]",
        "a=b.ini",
        "[trace]",
        "metadata=b.ini",
        "protocol",
        "= 'pft'",
        "registers",
        "etmcr = 1",
        "\0",
    ]);
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_text_makes_a_reader_panic(description in pieces(), list in pieces(), device in pieces(), anything in ".{0,200}") {
        let directory = TemporaryDirectory::new();
        directory.write("trace.bin", b"trace");
        directory.write("b.ini", device.as_bytes());
        for text in [&description, &list, &anything] {
            let _ = Capture::open(&directory.write("capture.toml", text.as_bytes()));
            let _ = Capture::open(&directory.write("snapshot.ini", text.as_bytes()));
            let _ = Registers::read_mtb(&directory.write("registers.txt", text.as_bytes()));
            let _ = text.parse::<SourceDescription>();
            let _ = text.parse::<ImageRequest>();
        }
    }
}
