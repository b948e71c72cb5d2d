use std::sync::Arc;

use proptest::prelude::*;
use tracewalk::ids::{ContextId, Location};

use super::*;
use crate::cpu::Profile;
use crate::file::FileProblem;
use crate::fixtures::{ALLOC, ARM_ATTRIBUTES, EXECUTE, Elf, TemporaryDirectory, WRITE, corpus};
use crate::origin::{Origin, Setting};
use crate::symbols::{SymbolTable, VectorTable};

fn read(bytes: &[u8]) -> Result<Image, ImageError> {
    Image::from_bytes("app.elf".as_ref(), &ImageKind::Addressed, bytes.to_vec())
}

fn problem(bytes: &[u8]) -> ImageErrorKind {
    read(bytes).expect_err("this is no image").kind
}

fn program() -> Elf {
    let mut elf = Elf::new();
    elf.section(".text", ALLOC | EXECUTE, 0x0800_0000, b"code");
    elf
}

#[test]
fn code_and_constants_are_loaded_at_their_virtual_addresses() {
    let mut elf = program();
    elf.entry = 0x0800_0001;
    elf.section(".rodata", ALLOC, 0x0800_1000, b"constant");
    elf.section(".data", ALLOC | WRITE, 0x2000_0000, b"variable");
    let image = read(&elf.build()).unwrap();
    let segments = image.segments.iter().map(|segment| (segment.address.get(), image.segment_bytes(segment)));
    assert!(segments.eq([(0x0800_0000, &b"code"[..]), (0x0800_1000, b"constant")]));
    assert_eq!(image.entry, Some(Location::new(Address::new(0x0800_0000), Isa::T32)));
}

#[tracewalk_corpus::test]
fn a_64_bit_program_is_loaded_at_its_addresses() {
    let case = corpus("etm4/synthetic/mix-a57-etmv4");
    let (elf, memory) = (case.join("program.elf"), case.join("program.bin"));
    let image = read(&std::fs::read(elf).unwrap()).unwrap();
    assert_eq!(image.entry.map(|entry| entry.isa), Some(Isa::A64));
    assert!(image.elf_bytes().is_some());
    let memory = std::fs::read(memory).unwrap();
    let first = &image.segments[0];
    assert!(
        memory.starts_with(image.segment_bytes(first)) || image.segment_bytes(first).starts_with(&memory)
    );
}

#[test]
fn code_in_a_writable_segment_is_loaded() {
    let mut elf = Elf::new();
    elf.section(".ramfunc", ALLOC | WRITE | EXECUTE, 0x2000_0000, b"code").segment_flags = Some(0b110);
    elf.section(".data", ALLOC | WRITE, 0x2000_1000, b"variable");
    let image = read(&elf.build()).unwrap();
    assert_eq!(image.segments.len(), 1);
    assert!(image.segments[0].executable);
}

#[test]
fn the_elf_header_in_a_segment_is_not_code() {
    let mut file = program().build();
    // GNU ld lets the segment start at the file's beginning: offset 0, and the section at the same place.
    file[52 + 4..52 + 8].copy_from_slice(&0_u32.to_le_bytes());
    let section = 52 + 32_u32;
    file[52 + 8..52 + 12].copy_from_slice(&(0x0800_0000 - section).to_le_bytes());
    file[52 + 16..52 + 20].copy_from_slice(&(section + 4).to_le_bytes());
    let image = read(&file).unwrap();
    assert_eq!(image.segments[0].address, Address::new(0x0800_0000));
    assert_eq!(image.segment_bytes(&image.segments[0]), b"code");
}

#[test]
fn sections_are_loaded_where_there_are_no_segments() {
    let mut elf = program();
    elf.section(".data", ALLOC | WRITE, 0x2000_0000, b"variable");
    elf.segments = false;
    let image = read(&elf.build()).unwrap();
    assert_eq!(image.segments.len(), 1);
    assert_eq!((image.segments[0].name.as_str(), image.segments[0].len()), (".text", 4));
}

#[test]
fn an_object_file_has_addresses_only_for_one_section() {
    let mut elf = Elf::new();
    (elf.kind, elf.segments) = (1, false);
    elf.section(".text", ALLOC | EXECUTE, 0, b"code");
    elf.section(".rodata", ALLOC, 0, b"constant");
    assert_eq!(read(&elf.build()).unwrap().segments.len(), 1);
    elf.section(".text.other", ALLOC | EXECUTE, 0, b"more");
    assert_eq!(problem(&elf.build()), ImageErrorKind::Unlinked);
}

#[test]
fn wrong_files_are_refused() {
    let with = |change: fn(&mut Elf)| {
        let mut elf = program();
        change(&mut elf);
        elf.build()
    };
    let cases: [(Vec<u8>, &str); 12] = [
        (Vec::new(), "file_empty"),
        (b"int main(void)\n".to_vec(), "image_not_elf"),
        (b":020000040800F2\r\n".to_vec(), "dump_cut_off"),
        (b"S0030000FC\n".to_vec(), "dump_cut_off"),
        (b"!<arch>\nx".to_vec(), "image_not_elf"),
        (vec![0x00, 0x50, 0x00, 0x20], "image_not_elf"),
        (with(|elf| (elf.class, elf.machine) = (2, 62)), "image_machine"),
        (with(|elf| elf.machine = 243), "image_machine"),
        (with(|elf| elf.machine = 9999), "image_machine"),
        (with(|elf| (elf.order, elf.machine) = (2, 40 << 8)), "image_big_endian"),
        (with(|elf| elf.sections[0].flags = ALLOC), "image_no_code"),
        (b"\x7fELF\x01\x01\x01".to_vec(), "image_truncated"),
    ];
    for (bytes, expected) in cases {
        assert_eq!(read(&bytes).expect_err(expected).kind.name(), expected);
    }
}

#[test]
fn files_that_are_not_there_are_reported() {
    let directory = TemporaryDirectory::new();
    let load = |path: &Path| {
        let request = ImageRequest::new(path, ImageKind::Addressed, Origin::Stated(Setting::Image));
        ImageLoader::new().load(&request).expect_err("there is no image").kind
    };
    assert_eq!(load(&directory.path().join("missing.elf")), ImageErrorKind::File(FileProblem::Missing));
    assert_eq!(load(directory.path()), ImageErrorKind::File(FileProblem::Directory));
}

#[test]
fn every_beginning_of_a_file_is_an_error_and_no_panic() {
    let file = program().build();
    assert!(read(&file).is_ok());
    for end in 0..file.len() {
        assert!(read(&file[..end]).is_err(), "{end} bytes");
    }
}

#[test]
fn claimed_sizes_are_bounded() {
    let mut elf = program();
    elf.sections[0].claimed = Some(0xffff_f000);
    elf.sections[0].address = 0;
    assert!(matches!(
        problem(&elf.build()),
        ImageErrorKind::Truncated { what: "a segment", end: 0xffff_f054, bytes: _ }
    ));

    // The same bytes at many addresses.
    let mut elf = Elf::new();
    elf.section(".text", ALLOC | EXECUTE, 0, &[0; 0x4000]);
    for index in 1..20 {
        let section = elf.section(".text", ALLOC | EXECUTE, index * 0x1_0000, b"");
        section.claimed = Some(0x4000);
    }
    let mut file = elf.build();
    for index in 1..20 {
        let header = 52 + 32 * index;
        file.copy_within(52 + 4..52 + 8, header + 4);
    }
    assert!(matches!(problem(&file), ImageErrorKind::Oversized { claimed: 0x5_0000, .. }));

    let mut elf = Elf::new();
    for index in 0..1025 {
        elf.section(".text", ALLOC | EXECUTE, index * 16, b"code");
    }
    assert_eq!(problem(&elf.build()), ImageErrorKind::TooManySegments { found: 1025, limit: 1024 });
}

#[test]
fn a_segment_cannot_pass_the_end_of_memory() {
    let mut elf = Elf::new();
    elf.section(".text", ALLOC | EXECUTE, 0xffff_fffe, b"code");
    let expected = ImageErrorKind::PastEndOfMemory { start: Address::new(0xffff_fffe), bytes: 4 };
    assert_eq!(problem(&elf.build()), expected);
    let raw = Image::from_bytes("x".as_ref(), &ImageKind::raw(Address::new(0xffff_fffe)), b"code".to_vec());
    assert_eq!(raw.unwrap_err().kind, expected);
}

#[test]
fn a_part_of_a_raw_file_has_to_be_in_it() {
    let part = |offset, length| {
        let kind = ImageKind::Raw { address: Address::new(0x100), offset, length, space: None };
        let image = Image::from_bytes("x".as_ref(), &kind, b"0123456789".to_vec())?;
        Ok::<_, ImageError>(image.segment_bytes(&image.segments[0]).to_vec())
    };
    assert_eq!(part(2, Some(3)).unwrap(), b"234");
    assert_eq!(part(8, None).unwrap(), b"89");
    for (offset, length) in [(8, Some(3)), (10, None), (u64::MAX, Some(2)), (0, Some(0)), (u64::MAX, None)] {
        assert!(matches!(part(offset, length).unwrap_err().kind, ImageErrorKind::OutsideFile { .. }));
    }
}

#[test]
fn images_that_disagree_are_named_with_the_address() {
    let directory = TemporaryDirectory::new();
    let request = |name: &str, address: u32, bytes: &[u8]| {
        ImageRequest::new(
            directory.write(name, bytes),
            ImageKind::raw(Address::from(address)),
            Origin::Stated(Setting::Image),
        )
    };
    let first = request("first", 0x100, b"abcdef");
    let agrees = request("agrees", 0x104, b"efgh");
    let differs = request("differs", 0x102, b"cdXf");
    let mut loader = ImageLoader::new();
    let memory = loader.memory([&first, &agrees]).unwrap();
    assert_eq!(memory.program.code(Address::new(0x100)), Some(&b"abcdefgh"[..]));
    assert_eq!(memory.given_by(Address::new(0x107), Scope::EVERYWHERE).unwrap().0.file, agrees.file);
    assert!(memory.given_by(Address::new(0x108), Scope::EVERYWHERE).is_none());

    let error = loader.memory([&agrees, &first, &differs]).unwrap_err();
    assert_eq!(error.file, differs.file);
    let other = format!("the file of {}", agrees.file.display());
    let expected = ImageErrorKind::Conflict { other, part: "the file".to_owned(), at: Address::new(0x104) };
    assert_eq!(error.kind, expected);
}

#[test]
fn cores_with_the_same_images_share_their_bytes() {
    let directory = TemporaryDirectory::new();
    let [first, second] = [("first", 0x100), ("second", 0x200)].map(|(name, address)| {
        let file = directory.write(name, name.as_bytes());
        ImageRequest::new(file, ImageKind::raw(Address::new(address)), Origin::Stated(Setting::Image))
    });
    let mut loader = ImageLoader::new();
    let mut place = |requests: &[&ImageRequest]| {
        let memory = loader.memory(requests.iter().copied()).unwrap();
        let bytes = |address| memory.program.code(Address::new(address)).map(<[u8]>::as_ptr);
        (memory.images.len(), bytes(0x100), bytes(0x200))
    };
    let both = place(&[&first, &second]);
    assert_eq!(both.0, 2);
    assert_eq!(place(&[&first, &second, &first]), both);
    let (images, alone, nothing) = place(&[&first]);
    assert_eq!((images, nothing), (1, None));
    assert_ne!(alone, both.1);
    assert_eq!(place(&[&first]).1, alone);
    assert_eq!(place(&[&second, &first]).0, 2);
}

#[test]
fn sections_of_one_file_that_disagree_are_named() {
    let mut elf = program();
    elf.section(".overlay", ALLOC | EXECUTE, 0x0800_0002, b"xx");
    let mut memory = Memory::default();
    let error = memory.add(Arc::new(read(&elf.build()).unwrap())).unwrap_err();
    assert_eq!(
        error.to_string(),
        "app.elf: segment 1 differs from segment 0 of app.elf at address 0x08000002"
    );
}

#[test]
fn a_file_is_read_once() {
    let directory = TemporaryDirectory::new();
    let file = directory.write("app.elf", &program().build());
    let request = ImageRequest::new(&file, ImageKind::Addressed, Origin::Stated(Setting::Image));
    let mut loader = ImageLoader::new();
    let first = loader.load(&request).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(Arc::ptr_eq(&first, &loader.load(&request).unwrap()));
    let memory = loader.memory([&request, &request]).unwrap();
    assert_eq!(memory.images.len(), 1);
}

#[tracewalk_corpus::test]
fn the_corpus_programs_are_loaded_as_readelf_shows_them() {
    // file, address and size of the code, profile, processor: from readelf -lA
    let cases = [
        ("synthetic/mix-m0-mtb-4k/program.elf", 0, 0x4b8, Profile::M, "6S-M"),
        ("synthetic/mix-a9-ptm/program.elf", 0x6001_0000, 0x3b0, Profile::A, "7-A"),
        ("real/stm32f105/trace_example.elf", 0x0800_0000, 0x384, Profile::M, "Cortex-M3"),
    ];
    for (file, address, size, profile, cpu) in cases {
        let path = corpus(file);
        let image = ImageLoader::new().load(&path.to_str().unwrap().parse().unwrap()).unwrap();
        let segments = image.segments.iter().map(|segment| (segment.address.get(), segment.len()));
        assert!(segments.eq([(address, size)]), "{file}");
        assert_eq!(image.attributes.profile, Some(profile), "{file}");
        assert_eq!(image.attributes.cpu_name.as_deref(), Some(cpu), "{file}");
    }
}

/// A program with everything that is read: code, symbols, attributes.
fn rich_program() -> Vec<u8> {
    let mut elf = program();
    elf.section(".ARM.attributes", 0, 0, b"A\x1a\0\0\0aeabi\0\x01\x10\0\0\0\x056S-M\0\x06\x0c\x07M").kind =
        ARM_ATTRIBUTES;
    elf.section(".debug_info", 0, 0, &[0x0b, 0, 0, 0, 4, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0]);
    elf.section(".debug_abbrev", 0, 0, &[1, 0x11, 1, 0x11, 1, 0, 0, 0]);
    elf.symbol("main", 0x0800_0001, 4, crate::fixtures::GLOBAL_FUNCTION, 1);
    elf.symbol("$t", 0x0800_0000, 0, crate::fixtures::LABEL, 1);
    elf.build()
}

proptest! {
    #[test]
    fn damaged_files_do_no_harm(damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut file = rich_program();
        for (place, value) in damage {
            let place = place.index(file.len());
            file[place] = value;
        }
        if let Ok(image) = read(&file) {
            let mut memory = Memory::default();
            let _ = memory.add(Arc::new(image));
            let symbols = SymbolTable::of(&memory);
            for function in symbols.functions().iter().take(8) {
                symbols.source_lines().lines_for(function.start);
            }
            let _ = VectorTable::of(&memory, None);
        }
    }
}

#[test]
fn sections_that_conflict_are_named_on_one_line_and_by_their_numbers_where_they_have_no_name() {
    let conflict = |first, second| {
        let mut elf = Elf::new();
        elf.segments = false;
        elf.section(first, ALLOC | EXECUTE, 0x10, b"code....");
        elf.section(second, ALLOC | EXECUTE, 0x10, b"codeelse");
        let image = Image::from_bytes("a\nb.elf".as_ref(), &ImageKind::Addressed, elf.build()).unwrap();
        Memory::default().add(Arc::new(image)).unwrap_err().to_string()
    };
    assert_eq!(
        conflict("", "\n\n)\n\n\n\n"),
        "a\u{fffd}b.elf: \u{fffd}\u{fffd})\u{fffd}\u{fffd}\u{fffd}\u{fffd} differs from section 1 of a\u{fffd}b.elf \
         at address 0x00000014"
    );
    assert_eq!(
        conflict("\u{1b}[2J", ""),
        "a\u{fffd}b.elf: section 2 differs from \u{fffd}[2J of a\u{fffd}b.elf at address 0x00000014"
    );
}

#[test]
fn images_of_contexts_cover_what_is_visible_everywhere_and_conflict_only_with_their_own() {
    let raw = |address, bytes: &[u8]| {
        let kind = ImageKind::raw(Address::from(address));
        Arc::new(Image::from_bytes(Path::new("raw.bin"), &kind, bytes.to_vec()).unwrap())
    };
    let process = Scope::context(ContextId(0x42));
    let mut memory = Memory::default();
    memory.add(raw(0x100, &[1, 1, 1, 1])).unwrap();
    memory.add_in(raw(0x102, &[2, 2, 2, 2]), process).unwrap();
    let conflict = memory.add_in(raw(0x104, &[3]), process).unwrap_err();
    assert!(matches!(conflict.kind, ImageErrorKind::Conflict { at, .. } if at == Address::new(0x104)));
    let seen = memory.seen_in(memory.program.view_in(process.context_id, None), process);
    assert_eq!(seen.program.code(Address::new(0x100)), Some(&[1, 1, 2, 2, 2, 2][..]));
    assert_eq!(
        seen.images.iter().map(|visible| visible.scope).collect::<Vec<_>>(),
        [process, Scope::EVERYWHERE]
    );
    assert_eq!(memory.seen_in(ViewId::default(), Scope::EVERYWHERE).images.len(), 1);
    assert_eq!(memory.of_scope(process).program.regions().len(), 1);
    // The same file may be for several contexts.
    let image = raw(0x200, &[1]);
    memory.add_in(Arc::clone(&image), process).unwrap();
    memory.add_in(image, Scope::context(ContextId(0x43))).unwrap();
    assert_eq!(memory.images.len(), 4);
}
