use gimli::write;
use tracewalk::ids::{Address, Isa};

use super::*;
use crate::fixtures::{
    ALLOC, EXECUTE, Elf, FUNCTION, GLOBAL_FUNCTION, GLOBAL_LABEL, LABEL, WEAK_FUNCTION, corpus,
};
use crate::image::{Image, ImageKind, ImageLoader};

fn memory_of(elf: &Elf) -> Memory {
    let image = Image::from_bytes("app.elf".as_ref(), &ImageKind::Addressed, elf.build()).unwrap();
    let mut memory = Memory::default();
    memory.add(Arc::new(image)).unwrap();
    memory
}

fn symbols_of(elf: &Elf) -> SymbolTable {
    SymbolTable::of(&memory_of(elf))
}

/// A program with 64 bytes of code at 0x8000.
fn program() -> Elf {
    let mut elf = Elf::new();
    elf.section(".text", ALLOC | EXECUTE, 0x8000, &[0; 64]);
    elf
}

fn name_at(symbols: &SymbolTable, address: u32) -> Option<&str> {
    symbols.function_at(Address::from(address)).map(|function| function.name.as_str())
}

#[test]
fn functions_have_no_thumb_bit_and_end_at_their_size() {
    let mut elf = program();
    elf.symbol("thumb", 0x8001, 6, GLOBAL_FUNCTION, 1);
    elf.symbol("arm", 0x8008, 8, FUNCTION, 1);
    let symbols = symbols_of(&elf);
    assert_eq!(name_at(&symbols, 0x8000), Some("thumb"));
    assert_eq!(name_at(&symbols, 0x8005), Some("thumb"));
    assert_eq!(name_at(&symbols, 0x8006), None);
    assert_eq!(name_at(&symbols, 0x8008), Some("arm"));
    assert_eq!(name_at(&symbols, 0x7fff), None);
    let isas = symbols.functions().iter().map(|function| (function.isa, function.global));
    assert!(isas.eq([(Some(Isa::T32), true), (Some(Isa::A32), false)]));
    assert_eq!(symbols.isa_at(Address::new(0x8002)), Some(Isa::T32));
    assert_eq!(symbols.isa_at(Address::new(0x8020)), None);
}

#[test]
fn a_missing_size_is_inferred_from_what_comes_next() {
    let mut elf = program();
    elf.symbol("first", 0x8001, 0, GLOBAL_FUNCTION, 1);
    elf.symbol("second", 0x8011, 4, GLOBAL_FUNCTION, 1);
    elf.symbol("last", 0x8021, 0, GLOBAL_FUNCTION, 1);
    let symbols = symbols_of(&elf);
    let sizes = symbols.functions().iter().map(|function| function.size);
    assert!(sizes.eq([0x10, 4, 0x20]), "the last one ends with its section");
    // Code that is not in the file, such as ROM: an absolute symbol.
    elf.symbols.clear();
    elf.symbol("rom", 0x1fff_0001, 0, GLOBAL_FUNCTION, 0xfff1);
    assert_eq!(name_at(&symbols_of(&elf), 0x1fff_0010), Some("rom"));
}

#[test]
fn the_innermost_of_nested_functions_has_the_address() {
    let mut elf = program();
    elf.symbol("outer", 0x8001, 0x20, GLOBAL_FUNCTION, 1);
    elf.symbol("inner", 0x8009, 0x08, FUNCTION, 1);
    elf.symbol("next", 0x801d, 0x10, FUNCTION, 1);
    let symbols = symbols_of(&elf);
    let names = [0x8000, 0x8007, 0x8008, 0x800f, 0x8010, 0x801b, 0x801c, 0x802b, 0x802c];
    let names = names.map(|address| name_at(&symbols, address).unwrap_or("-"));
    assert_eq!(names, ["outer", "outer", "inner", "inner", "outer", "outer", "next", "next", "-"]);
}

#[test]
fn the_global_name_comes_before_the_weak_and_local_ones() {
    let mut elf = program();
    for (name, info) in [
        ("local", FUNCTION),
        ("NMI_Handler", WEAK_FUNCTION),
        ("BusFault_Handler", WEAK_FUNCTION),
        ("Default_Handler", GLOBAL_FUNCTION),
    ] {
        elf.symbol(name, 0x8001, 2, info, 1);
    }
    let symbols = symbols_of(&elf);
    let function = symbols.function_at(Address::new(0x8000)).unwrap();
    assert_eq!(function.name, "Default_Handler");
    assert_eq!(function.aliases, ["BusFault_Handler", "NMI_Handler", "local"]);
    assert_eq!(symbols.function_named("NMI_Handler"), Some(function));
    assert_eq!(symbols.function_named("nobody"), None);
}

#[test]
fn labels_of_assembly_code_are_functions_where_there_is_no_other() {
    let mut elf = program();
    elf.symbol("$d", 0x8000, 0, LABEL, 1);
    elf.symbol("$a", 0x8008, 0, LABEL, 1);
    elf.symbol("vectors", 0x8000, 0, GLOBAL_LABEL, 1);
    elf.symbol("start", 0x8008, 0, GLOBAL_LABEL, 1);
    elf.symbol("function", 0x8010, 8, GLOBAL_FUNCTION, 1);
    elf.symbol("text_begins", 0x8010, 0, GLOBAL_LABEL, 1);
    elf.symbol("loop", 0x8014, 0, LABEL, 1);
    elf.symbol("text_ends", 0x8040, 0, GLOBAL_LABEL, 1);
    let symbols = symbols_of(&elf);
    let functions =
        symbols.functions().iter().map(|function| (function.name.as_str(), function.size, function.kind));
    assert!(functions.eq([("start", 8, FunctionKind::Label), ("function", 8, FunctionKind::Function)]));
}

#[test]
fn mapping_symbols_distinguish_instruction_sets_and_data() {
    let mut elf = program();
    for (name, address) in [("$a", 0x8000), ("$t.1", 0x8010), ("$d", 0x8018), ("$t", 0x8018), ("$d", 0x8020)]
    {
        elf.symbol(name, address, 0, LABEL, 1);
    }
    elf.symbol("$x", 0x8004, 0, LABEL, 1);
    elf.symbol("$dollar", 0x8004, 0, LABEL, 1);
    elf.section(".debug_frame", 0, 0, &[0; 64]);
    elf.symbol("$d", 0x8, 0, LABEL, 2);
    let symbols = symbols_of(&elf);
    let (arm, thumb) = (Content::Code(Isa::A32), Content::Code(Isa::T32));
    let contents = symbols.contents().map(|(start, end, content)| (start.get(), end, content));
    assert!(contents.eq([(0x8000, 0x8010, arm), (0x8010, 0x8020, thumb), (0x8020, 0x8040, Content::Data)]));
    assert_eq!(symbols.isa_at(Address::new(0x800c)), Some(Isa::A32));
    assert_eq!(symbols.isa_at(Address::new(0x8030)), None);
}

#[test]
fn names_are_demangled() {
    let mut elf = program();
    elf.symbol("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", 0x8001, 2, FUNCTION, 1);
    elf.symbol("_ZN3app4TaskC1Ei", 0x8003, 2, FUNCTION, 1);
    elf.symbol("_Zombie", 0x8005, 2, FUNCTION, 1);
    let symbols = symbols_of(&elf);
    let names = symbols.functions().iter().map(|function| function.name.as_str());
    assert!(names.eq(["core::fmt::Write::write_fmt", "app::Task::Task(int)", "_Zombie"]));
    assert!(symbols.function_named("_ZN3app4TaskC1Ei").is_some());
}

/// A program with a plausible vector table at `address`, and the reset handler after it.
fn with_vectors(address: u32) -> Elf {
    let mut elf = Elf::new();
    let words = [0x2000_1000, address + 9, 0x0000_bf00];
    elf.section(".text", ALLOC | EXECUTE, address, &words.map(u32::to_le_bytes).concat());
    elf
}

#[test]
fn the_vector_table_is_found_by_name_or_place() {
    let find =
        |elf: &Elf| VectorTable::of(&memory_of(elf), None).map(|table| (table.address.get(), table.from));
    let mut elf = with_vectors(0x0800_0000);
    assert_eq!(find(&elf), Some((0x0800_0000, VectorTableFrom::LowestAddress)));
    elf.sections[0].name = ".isr_vector";
    assert_eq!(find(&elf), Some((0x0800_0000, VectorTableFrom::Section(".isr_vector".to_owned()))));
    elf.symbol("g_pfnVectors", 0x0800_0000, 0, GLOBAL_LABEL, 1);
    assert_eq!(find(&elf), Some((0x0800_0000, VectorTableFrom::Symbol("g_pfnVectors".to_owned()))));
    assert_eq!(find(&with_vectors(0)), Some((0, VectorTableFrom::Reset)));
    // A reset handler in A32 is not an M-profile vector, and the table has to be aligned.
    let mut elf = with_vectors(0x0800_0000);
    elf.sections[0].bytes[4] &= !1;
    assert_eq!(find(&elf), None);
    assert_eq!(find(&with_vectors(0x0800_0010)), None);
}

#[test]
fn an_application_processor_has_no_table_of_addresses() {
    let memory = memory_of(&with_vectors(0));
    assert!(VectorTable::of(&memory, Some(Profile::M)).is_some());
    assert!(VectorTable::of(&memory, Some(Profile::A)).is_none());
}

/// Debugging information for a function at 8, and for one that the linker removed and put at 0.
fn removed_function(version: u16) -> Vec<(&'static str, Vec<u8>)> {
    let encoding = gimli::Encoding { format: gimli::Format::Dwarf32, version, address_size: 4 };
    let name = |text: &str| write::LineString::String(text.as_bytes().to_vec());
    let mut lines = write::LineProgram::new(
        encoding,
        gimli::LineEncoding::default(),
        name("/src"),
        None,
        name("a.c"),
        None,
    );
    let directory = lines.default_directory();
    let file = lines.add_file(name("a.c"), directory, None);
    let mut functions = Vec::new();
    for (function, start, size, line) in [("removed", 0, 0x20, 6), ("used", 8, 8, 3)] {
        lines.begin_sequence(Some(write::Address::Constant(start)));
        lines.row().file = file;
        lines.row().line = line;
        lines.generate_row();
        lines.end_sequence(size);
        functions.push((function, start, size));
    }
    let mut dwarf = write::Dwarf::new();
    let id = dwarf.units.add(write::Unit::new(encoding, lines));
    let unit = dwarf.units.get_mut(id);
    let root = unit.root();
    let mut ranges = Vec::new();
    for (function, start, size) in functions {
        let entry = unit.add(root, gimli::DW_TAG_subprogram);
        let entry = unit.get_mut(entry);
        entry.set(gimli::DW_AT_name, write::AttributeValue::String(function.into()));
        entry.set(gimli::DW_AT_low_pc, write::AttributeValue::Address(write::Address::Constant(start)));
        entry.set(gimli::DW_AT_high_pc, write::AttributeValue::Udata(size));
        ranges.push(write::Range::StartLength { begin: write::Address::Constant(start), length: size });
    }
    let ranges = unit.ranges.add(write::RangeList(ranges));
    let root = unit.get_mut(root);
    root.set(gimli::DW_AT_comp_dir, write::AttributeValue::String(b"/src".to_vec()));
    root.set(gimli::DW_AT_low_pc, write::AttributeValue::Address(write::Address::Constant(0)));
    root.set(gimli::DW_AT_ranges, write::AttributeValue::RangeListRef(ranges));
    let mut sections = write::Sections::new(write::EndianVec::new(gimli::LittleEndian));
    dwarf.write(&mut sections).unwrap();
    let mut written = Vec::new();
    sections
        .for_each(|id, bytes| {
            written.push((id.name(), bytes.slice().to_vec()));
            Ok::<_, gimli::Error>(())
        })
        .unwrap();
    written
}

#[test]
fn a_file_has_the_checksums_of_all_units_that_were_compiled_from_it() {
    let mut dwarf = write::Dwarf::new();
    let encoding = gimli::Encoding { format: gimli::Format::Dwarf32, version: 5, address_size: 4 };
    let name = |text: &str| write::LineString::String(text.as_bytes().to_vec());
    // The directory of the compilation, the header's directory and name, its checksum.
    let units = [
        ("/src", "include", "a.h", 1),
        ("/src/lib", "/src/include", "a.h", 2),
        ("C:\\src", "include", "a.h", 3),
        ("/src", "include", "b.h", 0),
        // The same path in other spellings.
        (".", "./lib/../include", "./c.h", 4),
        ("lib/..", "include/", "c.h", 4),
        ("../lib", "../..", "c.h", 5),
    ];
    for (compiled_in, directory, file, md5) in units {
        let mut lines = write::LineProgram::new(
            encoding,
            gimli::LineEncoding::default(),
            name(compiled_in),
            None,
            name("main.c"),
            None,
        );
        lines.file_has_md5 = true;
        let directory = lines.add_directory(name(directory));
        let info = write::FileInfo { md5: [md5; 16], ..write::FileInfo::default() };
        lines.add_file(name(file), directory, Some(info));
        lines.begin_sequence(Some(write::Address::Constant(0)));
        lines.generate_row();
        lines.end_sequence(2);
        let id = dwarf.units.add(write::Unit::new(encoding, lines));
        let unit = dwarf.units.get_mut(id);
        let root = unit.get_mut(unit.root());
        root.set(gimli::DW_AT_comp_dir, write::AttributeValue::String(compiled_in.into()));
    }
    let mut sections = write::Sections::new(write::EndianVec::new(gimli::LittleEndian));
    dwarf.write(&mut sections).unwrap();
    let mut elf = Elf::new();
    elf.section(".text", ALLOC | EXECUTE, 0, &[0; 32]);
    sections
        .for_each(|id, bytes| {
            elf.section(id.name(), 0, 0, bytes.slice());
            Ok::<_, gimli::Error>(())
        })
        .unwrap();
    let found = symbols_of(&elf).source_lines().checksums();
    let found = found.iter().map(|(file, md5)| (&**file, md5[0])).collect::<Vec<_>>();
    // Zeros are not a checksum.
    let expected = [
        ("../../c.h", 5),
        ("/src/include/a.h", 1),
        ("/src/include/a.h", 2),
        ("C:/src/include/a.h", 3),
        ("include/c.h", 4),
    ];
    assert_eq!(found, expected);
}

#[test]
fn functions_that_the_linker_removed_do_not_lie_over_the_code_at_zero() {
    for version in [4, 5] {
        let mut elf = Elf::new();
        elf.section(".text", ALLOC | EXECUTE, 0, &[0; 32]);
        for (name, bytes) in removed_function(version) {
            elf.section(name, 0, 0, &bytes);
        }
        elf.symbol("$d", 0, 0, LABEL, 1);
        elf.symbol("$t", 8, 0, LABEL, 1);
        elf.symbol("used", 9, 8, GLOBAL_FUNCTION, 1);
        let mut lines = symbols_of(&elf).source_lines();
        assert_eq!(lines.notes(), []);
        let frames = lines.lines_for(Address::new(8));
        let frame = Frame {
            function: Some("used".into()),
            file: Some("/src/a.c".into()),
            line: Some(3),
            column: None,
        };
        assert_eq!(*frames, [frame], "DWARF {version}");
        assert!(lines.lines_for(Address::new(0x18)).is_empty(), "DWARF {version}");
        let rows = lines.rows(Address::new(0)..Address::new(0x20));
        assert_eq!(rows.len(), 1, "DWARF {version}");
        assert_eq!((rows[0].start.get(), rows[0].bytes, rows[0].line), (8, 8, 3));

        // If code does start at 0, the information about it is used.
        elf.symbols.clear();
        elf.symbol("removed", 1, 8, GLOBAL_FUNCTION, 1);
        let frames = symbols_of(&elf).source_lines().lines_for(Address::new(2));
        assert_eq!(frames.first().and_then(|frame| frame.function.as_deref()), Some("removed"));
    }
}

#[test]
fn unreadable_debugging_information_is_a_note() {
    let mut elf = program();
    elf.section(".debug_info", 0, 0, &[0xff; 16]);
    elf.symbol("main", 0x8001, 4, GLOBAL_FUNCTION, 1);
    let mut lines = symbols_of(&elf).source_lines();
    assert_eq!(lines.notes().len(), 1);
    assert!(lines.notes()[0].to_string().starts_with("app.elf: its source lines cannot be read: "));
    assert_eq!(lines.lines_for(Address::new(0x8002))[0].to_string(), "main");
}

#[test]
fn a_compressed_section_cannot_claim_any_size() {
    let mut elf = program();
    // Elf32_Chdr: zlib, 4 GiB.
    let header = [1, 0xffff_ffff, 1].map(u32::to_le_bytes).concat();
    elf.section(".debug_info", 0x800, 0, &header);
    let lines = symbols_of(&elf).source_lines();
    let problem = &lines.notes()[0].problem;
    let beginning = "its source lines cannot be read: section .debug_info has 4294967295 bytes uncompressed, expected at most ";
    assert!(problem.starts_with(beginning), "{problem}");
}

/// A program of a unit with an entry for each byte of `entries`, which are codes of `abbreviations`.
fn with_entries(abbreviations: &[u8], entries: &[u8]) -> Elf {
    let mut elf = program();
    let size = u32::try_from(entries.len() + 7).unwrap();
    // The version, the offset of the abbreviations, the size of an address.
    let unit = [&size.to_le_bytes(), &[4, 0, 0, 0, 0, 0, 4][..], entries].concat();
    elf.section(".debug_info", 0, 0, &unit);
    elf.section(".debug_abbrev", 0, 0, abbreviations);
    elf
}

#[test]
fn entries_have_few_attributes_without_bytes() {
    for form in [&[0x19][..], &[0x21, 0]] {
        let attributes = [&[0x3f], form].concat().repeat(10_000);
        // DW_TAG_subprogram, without children.
        let table = [&[1, 0x2e, 0][..], &attributes, &[0, 0, 0]].concat();
        let lines = symbols_of(&with_entries(&table, &[1; 20_000])).source_lines();
        let problem = &lines.notes()[0].problem;
        assert!(problem.contains("damaged debugging information: "), "{problem}");
    }
}

#[test]
fn abbreviations_count_as_memory() {
    let table = (1..100_000_u32).flat_map(|code| {
        let bytes =
            [code & 0x7f | 0x80, code >> 7 & 0x7f | 0x80, code >> 14].map(|part| part.to_le_bytes()[0]);
        [&bytes[..], &[0x2e, 0, 0, 0]].concat()
    });
    let elf = with_entries(&table.chain([0]).collect::<Vec<_>>(), &[0]);
    let mut memory = memory_of(&elf);
    assert_eq!(SymbolTable::of(&memory).source_lines().notes(), []);
    memory.limit = MemoryLimit::of(MemoryLimit::LEAST).unwrap();
    assert_eq!(SymbolTable::of(&memory).source_lines().notes().len(), 1);
}

#[test]
fn symbols_and_finders_can_be_sent_to_threads() {
    fn shared<T: Send + Sync>() {}
    fn sent<T: Send>() {}
    shared::<SymbolTable>();
    sent::<SourceLines>();
}

/// Functions and places of an address in the format of `addr2line -i` of GNU binutils, without directories.
fn places(lines: &mut SourceLines, address: u32) -> Vec<String> {
    let frames = lines.lines_for(Address::from(address));
    let place = |frame: &Frame| {
        let file = frame.file.as_deref().unwrap_or("?").rsplit('/').next().unwrap_or("?").to_owned();
        format!("{} {file}:{}", frame.function.as_deref().unwrap_or("?"), frame.line.unwrap_or(0))
    };
    frames.iter().map(place).collect()
}

#[tracewalk_corpus::test]
fn lines_and_inlined_functions_are_those_of_binutils() {
    let path = corpus("synthetic/mix-m0-mtb-4k/program.elf");
    let memory = ImageLoader::new().memory(&[path.to_str().unwrap().parse().unwrap()]).unwrap();
    let symbols = SymbolTable::of(&memory);
    let mut lines = symbols.source_lines();
    assert_eq!(places(&mut lines, 0xc0), ["semi m_start.c:4", "quit m_start.c:5"]);
    assert_eq!(
        places(&mut lines, 0x364),
        ["__udivsi3 lib1funcs.S:1081"],
        "assembly code, named by its symbol"
    );
    assert_eq!(name_at(&symbols, 0x134), Some("Default_Handler"));
    assert_eq!(VectorTable::of(&memory, None).map(|table| table.address), Some(Address::new(0)));
    assert_eq!(symbols.content_at(Address::new(0xbc)), Some(Content::Data));

    let path = corpus("real/stm32f105/trace_example.elf");
    let memory = ImageLoader::new().memory(&[path.to_str().unwrap().parse().unwrap()]).unwrap();
    let symbols = SymbolTable::of(&memory);
    let mut lines = symbols.source_lines();
    assert_eq!(places(&mut lines, 0x0800_02b4), ["bubble_sort trace_example.c:133"]);
    assert_eq!(places(&mut lines, 0x0800_0306), ["TIM2_IRQ trace_example.c:155"]);
    assert_eq!(places(&mut lines, 0x0800_0310), ["TIM2_IRQ trace_example.c:156"]);
    let table = VectorTable::of(&memory, None);
    assert_eq!(table.map(|table| table.address), Some(Address::new(0x0800_0000)));
}

/// Every instruction's lines and frames, for programs with many inlined functions.
#[test]
fn what_compilers_write_is_never_read_too_often() {
    let firmware = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/firmware");
    for name in ["rust-m3/rust-m3.elf", "rust-a9/rust-a9.elf", "m4/m4.elf", "a9/a9.elf"] {
        let file = firmware.join(name);
        let memory = ImageLoader::new().memory(&[file.to_str().unwrap().parse().unwrap()]).unwrap();
        let mut lines = SymbolTable::of(&memory).source_lines();
        for segment in memory.images.iter().flat_map(|visible| &visible.image.segments) {
            let at = |offset| segment.address.checked_add(offset).unwrap();
            let bytes = segment.len() as u64;
            for offset in (0..bytes).step_by(2) {
                lines.lines_for(at(offset));
            }
            lines.rows(segment.address..at(bytes));
        }
        assert_eq!(lines.notes(), [], "{name}");
    }
}

/// Symbols, mapping symbols and lines of a 64-bit file, as `nm -S` and `addr2line -i -f` of GNU binutils
/// print them.
#[tracewalk_corpus::test]
fn a_program_of_64_bits_has_functions_and_lines() {
    let path = corpus("etm4/synthetic/mix-a57-etmv4/program.elf");
    let memory = ImageLoader::new().memory(&[path.to_str().unwrap().parse().unwrap()]).unwrap();
    let symbols = SymbolTable::of(&memory);
    assert!(symbols.notes().is_empty());
    let fib = symbols.function_named("fib").unwrap();
    assert_eq!((fib.start, fib.size, fib.isa), (Address::new(0x4010_1030), 0x3f0, Some(Isa::A64)));
    assert_eq!(name_at(&symbols, 0x4010_18a4), Some("main"));
    assert_eq!(symbols.isa_at(Address::new(0x4010_1030)), Some(Isa::A64));
    assert_eq!(
        symbols.object_at(Address::new(0x4010_18d4)).map(|object| object.name.as_str()),
        Some("ticks")
    );
    assert_eq!(VectorTable::of(&memory, None), None, "a table of addresses is M profile's");
    let mut lines = symbols.source_lines();
    for (address, place) in [
        (0x4010_1030, "fib a64_mix.c:11"),
        (0x4010_1490, "work a64_mix.c:19"),
        (0x4010_1740, "irq_init a64_mix.c:8"),
        (0x4010_1890, "user_main a64_mix.c:25"),
    ] {
        assert_eq!(places(&mut lines, address).first().map(String::as_str), Some(place));
    }
    let rows = lines.rows(Address::new(0)..Address::new(u64::MAX));
    assert!(rows.iter().any(|row| row.start.get() == 0x4010_1740 && row.line == 8));
    assert!(lines.notes().is_empty());
}
