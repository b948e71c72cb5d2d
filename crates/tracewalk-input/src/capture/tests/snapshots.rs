use super::*;

/// A snapshot with one core, one trace source and one buffer, and files that replace or extend it.
fn snapshot(changes: &[(&str, &str)]) -> (TemporaryDirectory, Result<Capture, CaptureError>) {
    let directory = TemporaryDirectory::new();
    directory.write("trace.bin", b"trace");
    directory.write("memory.bin", b"memory");
    let files = [
        (
            "snapshot.ini",
            "[snapshot]\nversion=1.0\n[device_list]\ndevice0=core.ini\ndevice1=etm.ini\n[trace]\nmetadata=trace.ini\n",
        ),
        (
            "core.ini",
            "[device]\nname=cpu_0\nclass=core\ntype=Cortex-A7\n[regs]\nR15=0\n[dump]\nfile=memory.bin\naddress=0x100\n",
        ),
        (
            "etm.ini",
            "[device]\nname=ETM_0\nclass=trace_source\ntype=ETM3.5\n[regs]\nETMCR(0x000)=0x400\nETMTRACEIDR(0x080)=0x10\n",
        ),
        (
            "trace.ini",
            "[trace_buffers]\nbuffers=b0\n[b0]\nname=ETB_0\nfile=trace.bin\nformat=coresight\n[source_buffers]\nETM_0=ETB_0\n[core_trace_sources]\ncpu_0=ETM_0\n",
        ),
    ];
    for (name, text) in files.iter().chain(changes) {
        directory.write(name, text.as_bytes());
    }
    let capture = Capture::open(directory.path());
    (directory, capture)
}

#[test]
fn sources_buffers_and_cores_are_put_together() {
    let (directory, capture) = snapshot(&[]);
    let capture = capture.unwrap();
    assert_eq!(capture.notes, []);
    let [buffer] = capture.buffers.as_slice() else { panic!("one buffer") };
    let origin = Origin::line(&directory.path().join("trace.ini"), 6);
    assert_eq!(buffer.container, Some(Stated::new(Container::Frames, origin)));
    let [source] = buffer.sources.as_slice() else { panic!("one source") };
    assert_eq!((source.name.as_deref(), source.id), (Some("ETM_0"), TraceId::new(0x10)));
    assert_eq!(source.core.as_deref(), Some("cpu_0"));
    let cpu = Stated::new("Cortex-A7".to_owned(), Origin::line(&directory.path().join("core.ini"), 4));
    assert_eq!(source.cpu, Some(cpu));
    let stated = source.registers.stated("ETMCR").unwrap();
    assert_eq!(stated, &Stated::new(0x400, Origin::line(&directory.path().join("etm.ini"), 6)));
    // The snapshot lacks this register, so it has the usual value for the core.
    assert_eq!(source.registers.stated("ETMIDR").unwrap().origin, Origin::Usual("cortex-a7".to_owned()));
    assert_eq!(capture.images_for(source).count(), 1);
}

#[test]
fn registers_have_many_spellings() {
    let device = |registers: &str| {
        format!("[device]\nname=ETM_0\nclass=trace_source\ntype=ETM3.5\n[regs]\n{registers}")
    };
    for registers in [
        "ETMCR=0x500",
        "etmcr(id:0x10)=1280",
        "EtmCr( 0x000 ) = 0x500 ; why",
        "ETMCR(id:0x0,size:32)=\"0x500\"",
        "Control(0x000)=0x500",
    ] {
        let (_directory, capture) = snapshot(&[("etm.ini", &device(registers))]);
        assert_eq!(capture.unwrap().buffers[0].sources[0].registers.get("ETMCR"), Some(0x500), "{registers}");
    }
    let (_directory, capture) = snapshot(&[("etm.ini", &device("ETMTRACEID(0x080)=0x10\nCNTPCT(0x123)=1"))]);
    let capture = capture.unwrap();
    let source = &capture.buffers[0].sources[0];
    assert_eq!((source.id, source.registers.get("CNTPCT")), (TraceId::new(0x10), Some(1)));
    // Only values that affect decoding have to be valid.
    let others = "CNTPCT(size:64)=0x0000043429D1ACFF\nX=unknown\nETMSR=1\nETMSR=2\nETMCR=1\nETMCR=1\n";
    let (_directory, capture) = snapshot(&[("etm.ini", &device(others))]);
    let capture = capture.unwrap();
    let registers = &capture.buffers[0].sources[0].registers;
    assert_eq!((registers.get("CNTPCT"), registers.get("ETMSR")), (None, Some(1)));
}

#[test]
fn trace_units_are_known_by_their_types() {
    let types = [
        ("ETM3.5", Protocol::EtmV3),
        ("ETMv3.4", Protocol::EtmV3),
        ("PTM1.1", Protocol::Pft),
        ("PFT1.0", Protocol::Pft),
        ("ITM", Protocol::Itm),
        ("MTB", Protocol::Mtb),
        ("ETM4.0", Protocol::Etmv4),
        ("ETE", Protocol::Etmv4),
    ];
    for (kind, protocol) in types {
        let device =
            format!("[device]\nname=ETM_0\nclass=trace_source\ntype={kind}\n[regs]\nTRCTRACEIDR=0x22\n");
        let (_directory, capture) = snapshot(&[("etm.ini", &device)]);
        assert_eq!(capture.unwrap().buffers[0].sources[0].protocol, protocol);
    }
}

#[test]
fn a_source_may_be_in_several_buffers_and_a_buffer_hold_several_sources() {
    let (_directory, capture) = snapshot(&[
        (
            "snapshot.ini",
            "[device_list]\n1=core.ini\n2=core1.ini\n3=etm.ini\n4=itm.ini\n5=lonely.ini\n[trace]\nmetadata=trace.ini\n",
        ),
        (
            "core1.ini",
            "[device]\nname=cpu_1\nclass=core\ntype=Cortex-A15\n[dump1]\nfile=memory.bin\naddress=0x100\n[dump2]\nfile=memory.bin\naddress=0x200\noffset=1\nlength=2\nspace=N\n",
        ),
        ("itm.ini", "[device]\nname=ITM_0\nclass=trace_source\ntype=ITM\n[regs]\nITMTCR(0x3A0)=0x00200006\n"),
        ("lonely.ini", "[device]\nname=PTM_9\nclass=trace_source\ntype=PTM1.1\n"),
        (
            "trace.ini",
            "[trace_buffers]\nbuffers=b0, b1\n[b0]\nname=ETB_0\nfile=trace.bin\nformat=coresight\n[b1]\nfile=trace.bin\nformat=dstream_coresight\n\
             [source_buffers]\nETM_0=ETB_0,b1\nITM_0=ETB_0\n[core_trace_sources]\ncpu_0=ETM_0\ncpu_1=PTM_9\n",
        ),
    ]);
    let capture = capture.unwrap();
    let names =
        |buffer: &Buffer| buffer.sources.iter().filter_map(|source| source.name.clone()).collect::<Vec<_>>();
    assert_eq!(
        capture.buffers.iter().map(names).collect::<Vec<_>>(),
        [vec!["ETM_0", "ITM_0"], vec!["ETM_0"]]
    );
    assert_eq!(capture.buffers[1].name, "b1");
    assert_eq!(capture.buffers[1].blocks, Blocks::Dstream);
    assert_eq!(capture.buffers[1].container.as_ref().map(|stated| stated.value), Some(Container::TracePort));
    assert_eq!(capture.buffers[0].sources[1].id, TraceId::new(0x20), "in ITMTCR, bits 22:16");
    assert_eq!(capture.buffers[0].sources[1].core, None);
    assert_eq!(capture.other_sources.len(), 1);
    assert_eq!(capture.other_sources[0].core.as_deref(), Some("cpu_1"));

    // The dump that both cores share is one image.
    let cores = capture.images.iter().map(|image| image.cores.as_slice()).collect::<Vec<_>>();
    assert_eq!(cores, [vec!["cpu_0".to_owned(), "cpu_1".to_owned()], vec!["cpu_1".to_owned()]]);
    let kind = ImageKind::Raw {
        address: Address::new(0x200),
        offset: 1,
        length: Some(2),
        space: Some("N".to_owned()),
    };
    assert_eq!(capture.images[1].kind, kind);
    let memory = ImageLoader::new().memory(capture.images_for(&capture.other_sources[0])).unwrap();
    assert_eq!(memory.program.code(Address::new(0x200)), Some(&b"em"[..]));
}

#[test]
fn the_only_core_is_the_one_that_is_traced() {
    let trace = "[trace_buffers]\nbuffers=b0\n[b0]\nfile=trace.bin\n[source_buffers]\nETM_0=b0\n";
    let (_directory, capture) = snapshot(&[("trace.ini", trace)]);
    let capture = capture.unwrap();
    assert_eq!(capture.buffers[0].sources[0].core.as_deref(), Some("cpu_0"));
    assert_eq!(capture.buffers[0].container, None, "no format is said");
}

#[test]
fn what_does_not_fit_together_is_a_note() {
    let (directory, capture) = snapshot(&[
        (
            "core.ini",
            "[device]\nname=cpu_0\nclass=core\ntype=Cortex-A7\n[dump]\nfile=memory.bin\naddress=0x100000000\n",
        ),
        (
            "trace.ini",
            "[trace_buffers]\nbuffers=b0\n[b0]\nname=ETB_0\nfile=trace.bin\n[source_buffers]\nETM_0=ETB_0\nETM_1=ETB_0\nETM_0=ETB_9\n\
             [core_trace_sources]\ncpu_0=ETM_0\ncpu_9=PTM_0\n",
        ),
    ]);
    let capture = capture.unwrap();
    let path = format!("{}/", directory.path().display());
    let notes = capture.notes.iter().map(|note| note.to_string().replace(&path, "")).collect::<Vec<_>>();
    assert_eq!(
        notes,
        [
            "trace.ini:12: there is no trace source `PTM_0`, the nearest name is `ETM_0`",
            "trace.ini:8: there is no trace source `ETM_1`, the nearest name is `ETM_0`",
            "trace.ini:9: there is no trace buffer `ETB_9`, the nearest name is `ETB_0`",
        ]
    );
    assert_eq!(capture.buffers[0].sources.len(), 1);
}

#[test]
fn a_source_of_another_class_is_named_with_it() {
    let etm = "[device]\nname=ETM_0\nclass=trace_sorce\ntype=ETM3.5\n";
    let (_directory, capture) = snapshot(&[("etm.ini", etm)]);
    let notes = capture.unwrap().notes.iter().map(|note| note.kind.to_string()).collect::<Vec<_>>();
    assert_eq!(notes, ["expected the class trace_source for `ETM_0`, found `trace_sorce`"; 2]);
}

#[test]
fn a_buffer_that_cannot_be_read_is_a_note_if_another_can_be() {
    let trace = "[trace_buffers]\nbuffers=b0,b1\n[b0]\nfile=trace.bin\n[b1]\nfile=empty.bin\n\
                 [source_buffers]\nETM_0=b0,b1\n";
    let (_directory, capture) = snapshot(&[("trace.ini", trace), ("empty.bin", "")]);
    let capture = capture.unwrap();
    assert_eq!(capture.notes.iter().map(located).collect::<Vec<_>>(), ["trace.ini:6 file_empty"]);
    assert_eq!((capture.buffers.len(), capture.buffers[0].sources.len()), (1, 1));
}

#[test]
fn mistakes_in_a_snapshot_are_reported_with_their_line() {
    let cases = [
        ("snapshot.ini", "[snapshot]\nversion=2.0\n", "snapshot.ini:2 description_version"),
        ("snapshot.ini", "[device_list]\na=core.ini\n", "snapshot.ini description_no_buffer"),
        ("snapshot.ini", "[device_list]\na=gone.ini\n", "snapshot.ini:2 file_missing"),
        ("snapshot.ini", "[device_list]\na=../core.ini\n", "snapshot.ini:2 path_parent"),
        ("snapshot.ini", "[device_list]\na=core.ini\nb=core.ini\n", "snapshot.ini:3 description_repeated"),
        ("core.ini", "nonsense\n", "core.ini:1 description_line"),
        ("core.ini", "[regs]\n", "core.ini description_missing_key"),
        ("core.ini", "[device]\nclass=core\n", "core.ini:1 description_missing_key"),
        (
            "core.ini",
            "[device]\nname=c\nclass=core\n[dump]\nfile=memory.bin\n",
            "core.ini:4 description_missing_key",
        ),
        (
            "core.ini",
            "[device]\nname=c\nclass=core\n[dump1]\nfile=memory.bin\nadress=1\n",
            "core.ini:6 description_unknown_key",
        ),
        (
            "core.ini",
            "[device]\nname=c\nclass=core\n[dump]\nfile=/etc/passwd\naddress=1\n",
            "core.ini:5 path_absolute",
        ),
        (
            "core.ini",
            "[device]\nname=c\nclass=core\n[dump]\nfile=memory.bin\naddress=1\nlength=x\n",
            "core.ini:7 description_type",
        ),
        (
            "etm.ini",
            "[device]\nname=ETM_0\nclass=trace_source\n[regs]\nETMCR(0)=x\n",
            "etm.ini:5 description_type",
        ),
        (
            "etm.ini",
            "[device]\nname=ETM_0\nclass=trace_source\n[regs]\nETMCR=1\nETMCR(0)=2\n",
            "etm.ini:6 description_repeated",
        ),
        ("trace.ini", "[b0]\n", "trace.ini description_no_buffer"),
        ("trace.ini", "[trace_buffers]\nbuffers=\n", "trace.ini:2 description_no_buffer"),
        (
            "trace.ini",
            "[trace_buffers]\nbuffers=b0\n[b1]\nfile=trace.bin\n",
            "trace.ini:2 description_undefined",
        ),
        (
            "trace.ini",
            "[trace_buffers]\nbuffers=b0,b0\n[b0]\nfile=trace.bin\n",
            "trace.ini:3 description_repeated",
        ),
        ("trace.ini", "[trace_buffers]\nbuffers=b0\n[b0]\nname=x\n", "trace.ini:3 description_missing_key"),
        ("trace.ini", "[trace_buffers]\nbuffers=b0\n[b0]\nfile=gone.bin\n", "trace.ini:4 file_missing"),
        (
            "trace.ini",
            "[trace_buffers]\nbuffers=b0\n[b0]\nfile=trace.bin\nformat=coresite\n",
            "trace.ini:5 description_unknown_value",
        ),
    ];
    for (file, text, expected) in cases {
        let (directory, capture) = snapshot(&[(file, text)]);
        drop(directory);
        assert_eq!(located(&capture.expect_err(expected)), expected, "{text}");
    }
}

#[test]
fn what_nobody_here_has_a_use_for_is_kept() {
    let (directory, capture) = snapshot(&[
        (
            "snapshot.ini",
            "[snapshot]\nversion=1.0\ndescription=a board\n[device_list]\n1=core.ini\n2=etm.ini\n[trace]\nmetadata=trace.ini\n\
             [clusters]\nbig=cpu_0\n",
        ),
        (
            "core.ini",
            "[device]\nname=cpu_0\nclass=core\ntype=Cortex-A7\nlocation=DAP\n[regs]\nR15=0\n[dump]\nfile=memory.bin\n\
             address=0x100\nflags=rx\n",
        ),
        (
            "trace.ini",
            "[trace_buffers]\nbuffers=b0\n[b0]\nfile=trace.bin\nformat=coresight\nsize=5\n[b1]\nfile=x\n\
             [source_buffers]\nETM_0=b0\n",
        ),
    ]);
    let unused = capture.unwrap().unused;
    let path = format!("{}/", directory.path().display());
    let unused = unused.iter().map(|unused| unused.to_string().replace(&path, "")).collect::<Vec<_>>();
    assert_eq!(
        unused,
        [
            "snapshot.ini:3: [snapshot] description=a board",
            "snapshot.ini:10: [clusters] big=cpu_0",
            "core.ini:5: [device] location=DAP",
            "core.ini:11: [dump] flags=rx",
            "trace.ini:6: [b0] size=5",
            "trace.ini:8: [b1] file=x",
        ]
    );
}

#[test]
fn a_snapshot_is_read_as_it_was_written() {
    use super::super::{Snapshot, SnapshotBuffer, SnapshotCore, SnapshotSource};
    let registers = [("ETMCR", 0x1000), ("ETMIDR", 0x410c_f250), ("ETMTRACEIDR", 0x10), ("ETMTEEVR", 0x6f)];
    let registers = registers.map(|(name, value)| (name.to_owned(), value)).to_vec();
    let source = |name: &str, protocol, core: Option<&str>| SnapshotSource {
        name: name.to_owned(),
        protocol,
        minor_version: 5,
        registers: registers.clone(),
        core: core.map(str::to_owned),
    };
    let (zeros, trace) = (vec![0; 32], b"trace".to_vec());
    let written = Snapshot {
        cores: vec![SnapshotCore {
            name: "cpu_a".to_owned(),
            cpu: "cortex-a7".to_owned(),
            memory: vec![(Address::new(0x100), b"memory"), (Address::new(0x2000), b"more")],
        }],
        sources: vec![source("ETM_0", Protocol::EtmV3, Some("cpu_a")), source("ITM_0", Protocol::Itm, None)],
        buffers: vec![
            SnapshotBuffer {
                name: "ETB_0".to_owned(),
                frames: true,
                bytes: &zeros,
                sources: vec!["ETM_0".to_owned(), "ITM_0".to_owned()],
            },
            SnapshotBuffer {
                name: "ETB_1".to_owned(),
                frames: false,
                bytes: &trace,
                sources: vec!["ETM_0".to_owned()],
            },
        ],
        timestamp_frequency: Some(25_000_000),
    };
    let directory = TemporaryDirectory::new();
    for file in written.files() {
        let mut bytes = Vec::new();
        file.write(&mut bytes).unwrap();
        directory.write(&file.name, &bytes);
    }
    let read = Capture::open(directory.path()).unwrap();
    assert_eq!((read.notes.len(), read.unused.len()), (0, 0));
    let buffers = read.buffers.iter().map(|buffer| {
        let container = buffer.container.as_ref().map(|stated| stated.value);
        (buffer.name.as_str(), container, buffer.bytes.len(), buffer.sources.len())
    });
    let expected = [("ETB_0", Some(Container::Frames), 32, 2), ("ETB_1", Some(Container::Raw), 5, 1)];
    assert!(buffers.eq(expected));
    let etm = &read.buffers[0].sources[0];
    assert_eq!(
        (etm.name.as_deref(), etm.id, etm.core.as_deref()),
        (Some("ETM_0"), TraceId::new(0x10), Some("cpu_a"))
    );
    assert_eq!((&etm.protocol, etm.registers.get("ETMCR")), (&Protocol::EtmV3, Some(0x1000)));
    assert_eq!(etm.registers.get("ETMTEEVR"), Some(0x6f));
    assert_eq!(etm.cpu.as_ref().map(|cpu| cpu.value.as_str()), Some("Cortex-A7"));
    assert_eq!(read.buffers[0].sources[1].protocol, Protocol::Itm);
    let memory = ImageLoader::new().memory(read.images_for(etm)).unwrap();
    assert_eq!(memory.program.code(Address::new(0x2000)), Some(&b"more"[..]));
    assert_eq!(read.timestamp_frequency.as_ref().map(|stated| stated.value), Some(25_000_000));
}

#[test]
fn a_snapshot_has_a_bounded_number_of_devices_and_buffers() {
    let devices = (0..5000).map(|index| format!("d{index}=core.ini\n")).collect::<String>();
    let (_directory, capture) = snapshot(&[("snapshot.ini", &format!("[device_list]\n{devices}"))]);
    assert!(matches!(
        capture.unwrap_err().kind,
        CaptureErrorKind::TooMany { what: "devices", found: 5000, limit: 4096 }
    ));
    let names = (0..300).map(|index| format!("b{index}")).collect::<Vec<_>>();
    let sections = names.iter().map(|name| format!("[{name}]\nfile=trace.bin\n")).collect::<String>();
    let trace = format!("[trace_buffers]\nbuffers={}\n{sections}", names.join(","));
    let (_directory, capture) = snapshot(&[("trace.ini", &trace)]);
    assert!(matches!(capture.unwrap_err().kind, CaptureErrorKind::TooMany { what: "trace buffers", .. }));
}

#[test]
fn a_snapshot_with_one_buffer_can_be_described_in_one_file() {
    let (directory, capture) = snapshot(&[]);
    let capture = capture.unwrap();
    let path = directory.write("capture.toml", capture.to_toml(directory.path()).unwrap().text.as_bytes());
    let again = Capture::open(&path).unwrap();
    let known = |capture: &Capture| {
        let source = &capture.buffers[0].sources[0];
        let registers = registers::DECODING.map(|name| source.registers.get(name));
        let images =
            capture.images.iter().map(|image| (image.file.clone(), image.kind.clone(), image.cores.clone()));
        (source.id, source.protocol.clone(), source.core.clone(), registers, images.collect::<Vec<_>>())
    };
    assert_eq!(known(&again), known(&capture));
}

#[tracewalk_corpus::test]
fn the_tc2_snapshot_is_five_cores_and_an_itm_in_one_buffer() {
    let path = corpus("real/TC2");
    let capture = Capture::open(&path).unwrap();
    assert_eq!(capture.notes, []);
    let [buffer] = capture.buffers.as_slice() else { panic!("one buffer") };
    assert_eq!((buffer.name.as_str(), buffer.bytes.len()), ("ETB_0", 32768));
    assert_eq!(buffer.container.as_ref().map(|stated| stated.value), Some(Container::Frames));
    let sources = buffer.sources.iter().map(|source| {
        let cpu = source.cpu.as_ref().map(|cpu| cpu.value.as_str());
        (source.id.map(TraceId::get), source.protocol.name(), source.core.as_deref(), cpu)
    });
    assert!(sources.eq([
        (Some(0x10), "etmv3", Some("cpu_0"), Some("Cortex-A7")),
        (Some(0x11), "etmv3", Some("cpu_1"), Some("Cortex-A7")),
        (Some(0x12), "etmv3", Some("cpu_2"), Some("Cortex-A7")),
        (Some(0x13), "pft", Some("cpu_3"), Some("Cortex-A15")),
        (Some(0x14), "pft", Some("cpu_4"), Some("Cortex-A15")),
        (Some(0x20), "itm", None, None),
    ]));
    let registers = &buffer.sources[0].registers;
    assert_eq!(registers.get("ETMCR"), Some(0x1000_1860));
    assert_eq!(registers.get("ETMIDR"), Some(0x410c_f250));
    assert_eq!(registers.get("ETMCCER"), Some(0x3440_08f2));
    // Five cores name the same dump: it is one image, loaded once.
    assert_eq!((capture.images.len(), capture.images[0].cores.len()), (1, 5));
    let mut images = ImageLoader::new();
    for source in buffer.sources.iter().filter(|source| source.core.is_some()) {
        let memory = images.memory(capture.images_for(source)).unwrap();
        assert_eq!(memory.program.code(Address::new(0xc000_8000)).map(<[u8]>::len), Some(0x5_0000));
    }
}

#[tracewalk_corpus::test]
fn the_return_stack_snapshot_is_one_source_with_nine_dumps() {
    let path = corpus("real/tc2-ptm-rstk-t32");
    let capture = Capture::open(&path.join("snapshot.ini")).unwrap();
    let [buffer] = capture.buffers.as_slice() else { panic!("one buffer") };
    assert_eq!(buffer.container.as_ref().map(|stated| stated.value), Some(Container::Raw));
    assert_eq!(capture.timestamp_frequency.as_ref().map(|stated| stated.value), Some(25_000_000));
    let [source] = buffer.sources.as_slice() else { panic!("one source") };
    assert_eq!((source.id, source.protocol.name()), (TraceId::new(2), "pft"));
    assert_eq!(source.core.as_deref(), Some("Cortex-A15_0"));
    assert_eq!(source.registers.get("etmcr"), Some(0x2000_0400), "the return stack is on");
    assert_eq!(source.registers.get("etmccer"), Some(0x34c0_1ac2));
    assert_eq!(capture.images.len(), 9);
    let memory = ImageLoader::new().memory(capture.images_for(source)).unwrap();
    // VECTORS, RO_CODE, RO_DATA, RW_DATA and ZI_DATA touch.
    let first = &memory.program.regions()[0];
    assert_eq!(
        (first.start(), first.bytes().len()),
        (Address::new(0x8000_0000), 632 + 6576 + 304 + 16 + 576)
    );
    // The cores Cortex-A7_0 to _2 have no device files, but their trace sources do.
    assert_eq!(capture.notes, []);
    assert_eq!(capture.other_sources.len(), 4);
    assert!(capture.other_sources.iter().all(|source| source.core.is_some()));
}

#[tracewalk_corpus::test]
fn every_synthetic_capture_opens() {
    let path = corpus("synthetic");
    let mut snapshots = 0;
    for case in std::fs::read_dir(&path).unwrap() {
        let case = case.unwrap().path();
        if case.join("registers.txt").exists() {
            let registers = Registers::read_mtb(&case.join("registers.txt")).unwrap();
            assert_eq!(registers.get("MTB_BASE"), Some(0x2000_0000));
            assert!(registers.get("MTB_POSITION").is_some() && registers.get("MTB_MASTER").is_some());
            assert!(!Capture::open(&case.join("mtb.bin")).unwrap().buffers[0].bytes.is_empty());
            continue;
        }
        let capture = Capture::open(&case).unwrap();
        let [source] = capture.buffers[0].sources.as_slice() else { panic!("one source") };
        assert_eq!(source.id, TraceId::new(2));
        let protocol = if case.ends_with("mix-a9-ptm") { Protocol::Pft } else { Protocol::EtmV3 };
        assert_eq!(source.protocol, protocol);
        assert!(source.profile().is_some());
        let mut loader = ImageLoader::new();
        let memory = loader.memory(capture.images_for(source)).unwrap();
        // The dump and the ELF file agree on every byte that both contain.
        let elf = case.join("program.elf").to_str().unwrap().parse().unwrap();
        let both = loader.memory(capture.images_for(source).chain([&elf])).unwrap();
        assert!(!memory.program.is_empty() && both.images.len() == 2);
        snapshots += 1;
    }
    assert_eq!(snapshots, 5);
}

#[cfg(unix)]
#[test]
fn a_link_out_of_the_directory_is_refused() {
    let secret = TemporaryDirectory::new();
    let target = secret.write("secret", b"secret");
    let (directory, capture) = snapshot(&[]);
    assert!(capture.is_ok());
    let link = directory.path().join("trace.bin");
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(target, &link).unwrap();
    let error = Capture::open(Path::new(directory.path())).unwrap_err();
    assert!(
        error.to_string().ends_with("leaves the directory of the description through a symbolic link"),
        "{error}"
    );
}
