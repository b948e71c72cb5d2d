//! ELF files whose symbols and debugging information are made to exhaust time and memory: each gives a result
//! or a message, within bounds, and the same execution as without them.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::OnceLock;

use crate::support::{MESSAGES, example, mentions};

/// The command's limits on memory, in KiB, and on processor time, in seconds. Tests run unoptimised.
const MOST_KIBIBYTES: &str = "1500000";
const MOST_SECONDS: &str = "60";

/// A section besides the program's own.
struct Section {
    name: &'static str,
    kind: u32,
    flags: u32,
    link: u32,
    bytes: Vec<u8>,
}

const PROGBITS: u32 = 1;
const SYMTAB: u32 = 2;
const STRTAB: u32 = 3;
const COMPRESSED: u32 = 0x800;

fn section(name: &'static str, bytes: impl Into<Vec<u8>>) -> Section {
    Section { name, kind: PROGBITS, flags: 0, link: 0, bytes: bytes.into() }
}

/// The example's program with these sections instead of its own. The first has the index 1.
fn elf(sections: &[Section]) -> Vec<u8> {
    let mut file = fs::read(example("m3-etmv3/m3.elf")).unwrap();
    let mut names = b"\0".to_vec();
    let mut headers = vec![[0_u32; 10]];
    let strings = [section(".shstrtab", [])];
    for Section { name, kind, flags, link, bytes } in sections.iter().chain(&strings) {
        let name_at = word(names.len());
        names.extend_from_slice(name.as_bytes());
        names.push(0);
        let bytes = if *name == ".shstrtab" { &names } else { bytes };
        let entry = if *kind == SYMTAB { 16 } else { 0 };
        headers.push([name_at, *kind, *flags, 0, word(file.len()), word(bytes.len()), *link, 0, 4, entry]);
        file.extend_from_slice(bytes);
    }
    let count = u16::try_from(headers.len()).unwrap();
    let table = word(file.len()).to_le_bytes();
    file.extend(headers.iter().flatten().flat_map(|word| word.to_le_bytes()));
    file[32..36].copy_from_slice(&table);
    file[48..50].copy_from_slice(&count.to_le_bytes());
    file[50..52].copy_from_slice(&(count - 1).to_le_bytes());
    file
}

fn word(number: usize) -> u32 {
    u32::try_from(number).unwrap()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A number as LEB128.
fn leb(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(u8::try_from(number & 0x7f).unwrap() | 0x80);
        number >>= 7;
    }
    bytes.push(u8::try_from(number).unwrap());
    bytes
}

// DWARF 4, section 7.
const COMPILE_UNIT: u8 = 0x11;
const IMPORTED_UNIT: u8 = 0x3d;
const INLINED: u8 = 0x1d;
const SUBPROGRAM: u8 = 0x2e;
const LOW_PC: u8 = 0x11;
const HIGH_PC: u8 = 0x12;
const STMT_LIST: u8 = 0x10;
const RANGES: u8 = 0x55;
const NAME: u8 = 0x03;
const ABSTRACT_ORIGIN: u8 = 0x31;
const SPECIFICATION: u8 = 0x47;
const IMPORT: u8 = 0x18;
const ADDR: u8 = 0x01;
const DATA4: u8 = 0x06;
const STRING: u8 = 0x08;
const REF4: u8 = 0x13;
const REF_ADDR: u8 = 0x10;
const SEC_OFFSET: u8 = 0x17;
const INDIRECT: u8 = 0x16;

/// An abbreviation: the next entry of this code has this tag and these attributes, each with its form.
fn abbreviation(code: usize, tag: u8, children: bool, attributes: &[[u8; 2]]) -> Vec<u8> {
    [leb(code), vec![tag, children.into()], attributes.concat(), vec![0, 0]].concat()
}

/// A unit of these entries.
fn unit(abbreviations: usize, entries: &[u8]) -> Vec<u8> {
    let head = [&[4, 0][..], &words(&[word(abbreviations)]), &[4]].concat();
    [words(&[word(head.len() + entries.len())]), head, entries.to_vec()].concat()
}

/// The number of bytes in a unit before its first entry.
const HEAD: u32 = 11;

/// From 2 to the end of memory, as an address and a length: the whole program.
fn everywhere() -> Vec<u8> {
    words(&[2, 0xffff_fff0])
}

/// The bounds of an entry, as attributes.
const BOUNDS: [[u8; 2]; 2] = [[LOW_PC, ADDR], [HIGH_PC, DATA4]];

fn debugging(abbreviations: &[Vec<u8>], info: impl Into<Vec<u8>>) -> Vec<Section> {
    let abbreviations = [abbreviations.concat(), vec![0]].concat();
    vec![section(".debug_abbrev", abbreviations), section(".debug_info", info)]
}

/// The command's output for the example with an image, within the limits.
fn run(image: &Path, options: &[&str]) -> Output {
    Command::new("sh")
        .args(["-c", "ulimit -v $1; ulimit -t $2; shift 2; exec \"$@\"", "sh", MOST_KIBIBYTES, MOST_SECONDS])
        .arg(env!("CARGO_BIN_EXE_tracewalk"))
        .args(["flow", "--id", "0x10", "--source", "0x10=etmv3,cpu=cortex-m3"])
        .arg(example("m3-etmv3/trace.bin"))
        .arg("--image")
        .arg(image)
        .args(options)
        .args(MESSAGES)
        .output()
        .unwrap()
}

/// The execution with the example's own image.
fn executed() -> &'static [u8] {
    static RUNS: OnceLock<Vec<u8>> = OnceLock::new();
    RUNS.get_or_init(|| run(&example("m3-etmv3/m3.elf"), &["--format", "runs"]).stdout)
}

/// Checks that the file with these sections does not change the execution, and that the search for names and
/// lines ends. The text `reported` must be reported, unless it is empty.
fn survived(what: &str, sections: &[Section], reported: &str) {
    survived_with(what, sections, &[], reported);
}

/// Like [`survived`], with further options.
fn survived_with(what: &str, sections: &[Section], further: &[&str], reported: &str) {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("hostile.elf");
    fs::write(&image, elf(sections)).unwrap();
    for options in [["--format", "runs"], ["--format", "text"]] {
        let output = run(&image, &[&options, further].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{what}: {} {stderr}", output.status);
        assert!(!stderr.contains("panicked"), "{what}: {stderr}");
        assert!(stderr.lines().count() <= 3, "{what}: {stderr}");
        if options[1] == "runs" {
            assert!(output.stdout == executed(), "{what}: {stderr}");
        } else {
            assert!(output.stdout.len() > 1000, "{what}: {stderr}");
            assert!(mentions(&stderr, reported), "{what}: expected {reported:?} in {stderr:?}");
        }
    }
}

/// The report for debugging information that refers to itself in circles.
const REPEATS: &str = "names_missing parts";

#[test]
fn entries_that_refer_to_each_other_in_circles_end() {
    let root = abbreviation(1, COMPILE_UNIT, true, &BOUNDS);
    for attribute in [ABSTRACT_ORIGIN, SPECIFICATION] {
        let function = abbreviation(2, SUBPROGRAM, true, &[BOUNDS[0], BOUNDS[1], [attribute, REF4]]);
        let inlined = abbreviation(3, INLINED, false, &[BOUNDS[0], BOUNDS[1], [attribute, REF4]]);
        let first = HEAD + 9;
        let second = first + 13;
        // Each entry refers to itself, or they refer to each other.
        for (one, other) in [(first, second), (second, first)] {
            let function_entry = [vec![2], everywhere(), words(&[one])].concat();
            let inlined_entry = [vec![3], everywhere(), words(&[other])].concat();
            let entries = [vec![1], everywhere(), function_entry, inlined_entry, vec![0, 0]].concat();
            let abbreviations = [root.clone(), function.clone(), inlined.clone()];
            survived("a circle", &debugging(&abbreviations, unit(0, &entries)), "");
        }
    }
}

#[test]
fn units_that_import_each_other_end() {
    let root = abbreviation(1, COMPILE_UNIT, true, &BOUNDS);
    let import = abbreviation(2, IMPORTED_UNIT, false, &[[IMPORT, REF_ADDR]]);
    let imports =
        |offset: u32| unit(0, &[vec![1], everywhere(), vec![2], words(&[offset]), vec![0]].concat());
    let length = word(imports(0).len());
    let info = [imports(length + HEAD), imports(HEAD), imports(2 * length + HEAD)].concat();
    survived("imports", &debugging(&[root, import], info), "");
}

#[test]
fn deeply_nested_entries_are_reported() {
    let root = abbreviation(1, COMPILE_UNIT, true, &BOUNDS);
    let function = abbreviation(2, SUBPROGRAM, true, &BOUNDS);
    let inlined = abbreviation(3, INLINED, true, &BOUNDS);
    let nested = [vec![3], everywhere()].concat().repeat(100_000);
    let entries = [vec![1], everywhere(), vec![2], everywhere(), nested].concat();
    survived("nested", &debugging(&[root, function, inlined], unit(0, &entries)), "names_missing 500");
}

#[test]
fn forms_that_say_that_the_form_follows_end() {
    let root = abbreviation(1, COMPILE_UNIT, false, &[[NAME, INDIRECT]]);
    let entries = [vec![1], vec![INDIRECT; 1 << 20], vec![STRING, 0]].concat();
    survived("indirect", &debugging(&[root], unit(0, &entries)), "");
}

#[test]
fn what_all_units_share_is_not_read_for_each() {
    const UNITS: usize = 20_000;
    // One long abbreviation table, shared by all units, is read once.
    let many =
        (2..100_000).map(|code| abbreviation(code, SUBPROGRAM, false, &[[NAME, STRING]])).collect::<Vec<_>>();
    let root = abbreviation(1, COMPILE_UNIT, false, &BOUNDS);
    let entries = [vec![1], everywhere()].concat();
    let abbreviations = [vec![root], many].concat();
    survived("one table", &debugging(&abbreviations, unit(0, &entries).repeat(UNITS)), "");

    // Each unit uses a different part of such a table.
    let abbreviations = abbreviations.into_iter().rev().collect::<Vec<_>>();
    let starts = abbreviations.iter().scan(0, |at, abbreviation| {
        let start = *at;
        *at += abbreviation.len();
        Some(start)
    });
    let info = starts.take(UNITS).flat_map(|start| unit(start, &entries)).collect::<Vec<_>>();
    survived("parts", &debugging(&abbreviations, info), "names_missing abbreviations memory");

    // One list of ranges, for every unit or for every function.
    let pairs = (0..50_000).flat_map(|number| [2 + number, 0xffff_0000]).chain([0, 0]).collect::<Vec<_>>();
    let ranges = || section(".debug_ranges", words(&pairs));
    let root = abbreviation(1, COMPILE_UNIT, true, &[[RANGES, SEC_OFFSET]]);
    let function = abbreviation(2, SUBPROGRAM, false, &[[RANGES, SEC_OFFSET]]);
    let entries = [vec![1], words(&[0]), vec![0]].concat();
    let mut sections = debugging(&[root.clone(), function.clone()], unit(0, &entries).repeat(UNITS));
    sections.push(ranges());
    survived("ranges-of-units", &sections, REPEATS);
    let functions = [vec![2], words(&[0])].concat().repeat(UNITS);
    let entries = [vec![1], words(&[0]), functions, vec![0]].concat();
    let mut sections = debugging(&[root, function], unit(0, &entries));
    sections.push(ranges());
    survived("ranges-of-functions", &sections, REPEATS);
}

/// A line program after its head (DWARF 4, 6.2.4): instructions of one byte, no directories, these files.
fn line_program(files: usize, program: &[u8], line_range: u8) -> Vec<u8> {
    let head = [
        &[1, 1, 1, 0xfb, line_range, 13][..],
        &[0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1],
        &[0],
        &b"f\0\0\0\0".repeat(files),
        &[0],
    ]
    .concat();
    let header = [words(&[word(head.len())]), head, program.to_vec()].concat();
    [words(&[word(header.len() + 2)]), vec![4, 0], header].concat()
}

#[test]
fn line_programs_that_never_end_are_reported_or_end() {
    let root = abbreviation(1, COMPILE_UNIT, false, &[BOUNDS[0], BOUNDS[1], [STMT_LIST, SEC_OFFSET]]);
    let entries = [vec![1], everywhere(), words(&[0])].concat();
    let lines = |units: usize, program: Vec<u8>| {
        let mut sections = debugging(std::slice::from_ref(&root), unit(0, &entries).repeat(units));
        sections.push(section(".debug_line", program));
        sections
    };
    // A row for each byte, at increasing addresses, without an end of the sequence.
    let rows = vec![0xff; 500_000];
    survived("rows", &lines(1, line_program(1, &rows, 14)), "");
    survived("rows-of-all-units", &lines(10_000, line_program(1, &rows, 14)), REPEATS);
    survived("files-of-all-units", &lines(10_000, line_program(50_000, &[], 14)), REPEATS);
    survived("no-range-of-lines", &lines(1, line_program(1, &rows, 0)), "");
    // A length that exceeds the section, and 2^63 instructions at once.
    let mut cut = line_program(1, &rows, 14);
    cut[..4].copy_from_slice(&[0xef, 0xff, 0xff, 0xff]);
    survived("cut", &lines(1, cut), "");
    let far = [vec![2], vec![0xff; 8], vec![0x7f, 1]].concat().repeat(1000);
    survived("far", &lines(1, line_program(1, &far, 14)), "");
}

/// A compressed section: Elf32_Chdr, and the compressed bytes.
fn compressed(name: &'static str, kind: u32, size: u32, bytes: &[u8]) -> Section {
    let bytes = [&words(&[kind, size, 1])[..], bytes].concat();
    Section { flags: COMPRESSED, ..section(name, bytes) }
}

const ZLIB: u32 = 1;
const ZSTD: u32 = 2;

/// Zeros in their best compression by zlib (RFC 1951, 3.2.5): a zero, then copies of 258 bytes, each in 8 + 5
/// bits of the fixed codes.
fn zlib_zeros(copies: usize) -> Vec<u8> {
    // In bit order: a last block of fixed codes, the literal 0.
    let mut bits = vec![1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0];
    for _ in 0..copies {
        bits.extend([1, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0]);
    }
    bits.extend([0; 7]);
    let bytes = bits.chunks(8).map(|bits| bits.iter().rev().fold(0, |byte, bit| byte << 1 | bit));
    // Adler-32 of zeros only: the first sum stays 1, the second counts them.
    let sum = u32::try_from((copies * 258 + 1) % 65521).unwrap() << 16 | 1;
    [vec![0x78, 0xda], bytes.collect(), sum.to_be_bytes().to_vec()].concat()
}

/// Zeros in their best compression by zstd (RFC 8878, 3.1.1.2): blocks of 128 KiB that repeat one byte.
fn zstd_zeros(blocks: usize) -> Vec<u8> {
    let header = |last: u32| ((128 << 10) << 3 | 1 << 1 | last).to_le_bytes();
    let block = |last| [&header(last)[..3], &[0]].concat();
    // No content size; a window of 128 KiB.
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0, 7 << 3];
    [frame.to_vec(), block(0).repeat(blocks - 1), block(1)].concat()
}

#[test]
fn compressed_sections_that_are_too_much_are_reported() {
    let with = |info: Section| [section(".debug_abbrev", [0]), info];
    let claims = "names_missing 4294967295";
    survived("zlib claims", &with(compressed(".debug_info", ZLIB, u32::MAX, &zlib_zeros(10))), claims);
    survived("zstd claims", &with(compressed(".debug_info", ZSTD, u32::MAX, &zstd_zeros(32))), claims);
    // Sections with the size that they claim: too large for so short a file, and acceptable.
    let most = zstd_zeros(32 << 10);
    survived("zstd holds 4 GiB", &with(compressed(".debug_info", ZSTD, u32::MAX, &most)), claims);
    let much = zlib_zeros((192 << 20) / 258);
    survived(
        "zlib holds 192 MiB",
        &with(compressed(".debug_info", ZLIB, 192 << 20, &much)),
        "names_missing 201326592",
    );
    let little = zlib_zeros((32 << 20) / 258);
    let size = word(1 + 258 * ((32 << 20) / 258));
    survived("zlib holds 32 MiB", &with(compressed(".debug_info", ZLIB, size, &little)), "");
    // Sections that hold more, or less, than they claim.
    let lies = "names_missing";
    survived("zlib lies", &with(compressed(".debug_info", ZLIB, 100, &zlib_zeros(1 << 20))), lies);
    survived("zstd lies", &with(compressed(".debug_info", ZSTD, 100, &zstd_zeros(32 << 10))), lies);
    survived("zlib lacks", &with(compressed(".debug_info", ZLIB, 50 << 20, &zlib_zeros(10))), lies);
    survived("zstd lacks", &with(compressed(".debug_info", ZSTD, 50 << 20, &zstd_zeros(1))), lies);
    survived("no zlib", &with(compressed(".debug_info", ZLIB, 100, &[0xff; 100])), lies);
    survived("no zstd", &with(compressed(".debug_info", ZSTD, 100, &[0xff; 100])), lies);
    survived("nothing known", &with(compressed(".debug_info", 77, 100, &[0; 100])), lies);
}

/// A table of `count` symbols, and their names.
fn symbols(count: usize, names: Vec<u8>, symbol: impl Fn(u32) -> [u32; 3], kind: u8) -> Vec<Section> {
    let mut table = vec![0; 16];
    table.reserve(16 * count);
    for number in 0..word(count) {
        let [name, value, size] = symbol(number);
        table.extend([name, value, size].iter().flat_map(|word| word.to_le_bytes()));
        table.extend([kind, 0, 0xf1, 0xff]);
    }
    let names = Section { kind: STRTAB, ..section(".strtab", names) };
    vec![Section { kind: SYMTAB, link: 2, ..section(".symtab", table) }, names]
}

#[test]
fn millions_of_symbols_are_read_or_reported() {
    const GLOBAL_FUNCTION: u8 = 0x12;
    let short = || b"\0name\0".to_vec();
    let functions = symbols(2_000_000, short(), |number| [1, number * 2 + 1, 2], GLOBAL_FUNCTION);
    survived("2,000,000 functions", &functions, "");
    let aliases = symbols(2_000_000, short(), |number| [1 + number % 4, 0xc1, 2], GLOBAL_FUNCTION);
    survived("2,000,000 names for 1 function", &aliases, "");
    let too_many = symbols(5_000_000, short(), |number| [1, number * 2 + 1, 2], GLOBAL_FUNCTION);
    survived("five million", &too_many, "names_missing 5000001 2097152");
    // Each name is a suffix of one long name.
    let long = [vec![0], vec![b'x'; 1 << 16], vec![0]].concat();
    let names = symbols(2_000_000, long, |number| [1 + number % 100, number * 2 + 1, 2], GLOBAL_FUNCTION);
    survived("long names", &names, "names_missing symbols long");
}

#[test]
fn what_does_not_fit_into_its_share_of_memory_is_left_out_with_a_sentence() {
    let memory = ["--memory", "32M"];
    let functions = symbols(50_000, b"\0name\0".to_vec(), |number| [1, number * 2 + 1, 2], 0x12);
    survived("few symbols", &functions, "");
    survived_with("symbols", &functions, &memory, "names_missing 50001 20971");
    let info = compressed(".debug_info", ZLIB, 1 + 258 * 100_000, &zlib_zeros(100_000));
    let reported = "names_missing .debug_info 25800001 8388607";
    survived_with("lines", &[section(".debug_abbrev", [0]), info], &memory, reported);

    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("long.elf");
    fs::write(&image, [fs::read(example("m3-etmv3/m3.elf")).unwrap(), vec![0; 9 << 20]].concat()).unwrap();
    let output = run(&image, &memory);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{stderr}");
    assert!(mentions(&stderr, "file_too_long long.elf 8388608"), "{stderr}");
}

#[cfg(target_os = "linux")]
#[test]
fn where_memory_runs_out_what_was_found_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("long.bin");
    fs::write(&capture, fs::read(example("m3-etmv3/trace.bin")).unwrap().repeat(120)).unwrap();
    let run = |memory| {
        let output = Command::new(env!("CARGO_BIN_EXE_tracewalk"))
            .args(["flow", "--id", "0x10", "--source", "0x10=etmv3,cpu=cortex-m3", "--memory", memory])
            .args(["--quiet", "--format", "runs", "--last", "100000000", "--image"])
            .args([example("m3-etmv3/m3.elf"), capture.clone()])
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (status, whole, stderr) = run("1G");
    assert_eq!((status, stderr.as_str()), (Some(0), ""));
    let (status, part, stderr) = run("32M");
    assert_eq!((status, stderr.lines().count()), (Some(2), 1), "{stderr}");
    assert!(stderr.contains("MiB of memory are in use; decoding ends after byte "), "{stderr}");
    // One section of the capture decodes to less than the reserve for writing the results.
    let used = stderr
        .split(" MiB of memory")
        .next()
        .and_then(|reported| reported.rsplit(' ').next()?.parse::<u32>().ok());
    assert!(used.is_some_and(|used| (28..32).contains(&used)), "{stderr}");
    assert!(part.len() > whole.len() / 8 && part.len() < whole.len());
    let (part, cut) = part.trim_end().rsplit_once('\n').unwrap();
    assert!(cut.starts_with("# cut "), "{cut}");
    let (before, last) = part.rsplit_once('\n').unwrap();
    assert!(whole.starts_with(before), "what was found is what is found with more memory; last {last}");
}
