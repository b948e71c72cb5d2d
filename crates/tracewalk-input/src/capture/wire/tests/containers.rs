//! The contents of containers, and the errors in them.

use super::*;

/// A line with the bytes of "trace".
fn samples() -> Vec<u64> {
    signals::uart(b"trace", TIMING).samples(24e6)
}

fn sentence(name: &str, bytes: impl Into<Vec<u8>>) -> String {
    let options = WireOptions { channels: vec![("SWO".to_owned(), Role::Swo)], ..WireOptions::default() };
    match open(name, bytes.into()).and_then(|recording| read(&recording.expect("a recording"), &options)) {
        Ok((bytes, reading)) => match reading.problem {
            Some(problem) => format!("{} bytes, then {problem}", bytes.len()),
            None => format!("{} bytes", bytes.len()),
        },
        Err(error) => error.to_string(),
    }
}

#[test]
fn other_files_are_no_recordings() {
    let others: [&[u8]; 8] = [
        b"",
        b"\x00\x00\x00\x00\x00\x80\x08",
        b"\x7fELF",
        b"Just some notes.\nAnd, with a comma, more.\n",
        b"[capture]\nfile = \"a.bin\"\n",
        b"$5 a month",
        b"a,b,c\n1,2,3\n",
        b"\xff\xff\xff\x7f,0,1\n",
    ];
    for other in others {
        assert!(open("a", other.to_vec()).unwrap().is_none(), "{other:?}");
    }
}

fn metadata(text: &str) -> Vec<(String, Vec<u8>)> {
    let bytes = samples().iter().map(|level| level.to_le_bytes()[0]).collect();
    vec![("metadata".to_owned(), text.as_bytes().to_vec()), ("logic-1".to_owned(), bytes)]
}

#[test]
fn sessions_of_sigrok_are_read_as_their_metadata_say() {
    let device = "[device 1]\ncapturefile=logic-1\nprobe1=SWO\n";
    let cases = [
        (format!("{device}samplerate=24 MHz\nunitsize=1\n"), "5 bytes"),
        // Older files state less.
        (device.to_owned(), "5 bytes"),
        (format!("{device}samplerate=0\n"), "5 bytes"),
        (format!("{device}unitsize=0\n"), "a.sr: expected a number from 1 to 8 for `unitsize`, found `0`"),
        (format!("{device}unitsize=9\n"), "a.sr: expected a number from 1 to 8 for `unitsize`, found `9`"),
        (format!("{device}unitsize=x\n"), "a.sr: expected a number from 1 to 8 for `unitsize`, found `x`"),
        (
            format!("{device}samplerate=fast\n"),
            "a.sr: expected a rate like 24 MHz for `samplerate`, found `fast`",
        ),
        (
            format!("{device}samplerate=-1 Hz\n"),
            "a.sr: expected a rate like 24 MHz for `samplerate`, found `-1 Hz`",
        ),
        ("[device 1]\ncapturefile=logic-1\n".to_owned(), "a.sr: contains no channels"),
        (
            "[device 1]\ncapturefile=logic-2\nprobe1=SWO\n".to_owned(),
            "a.sr: is a zip file without `logic-2-1`, expected a sigrok session",
        ),
        ("[global]\nversion=1\n".to_owned(), "a.sr: has no `capturefile`"),
        (
            "nonsense\n".to_owned(),
            "a.sr: `metadata` in the archive has `nonsense` in line 1, expected key=value",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(sentence("a.sr", signals::archive(metadata(&text))), expected, "{text}");
    }
}

#[test]
fn rates_are_written_in_several_ways() {
    for (text, rate) in
        [("24 MHz", 24e6), ("1.5 kHz", 1.5e3), ("1 GHz", 1e9), ("200000", 2e5), ("12.5MHz", 12.5e6)]
    {
        assert_eq!(parse_rate(text), Some(rate), "{text}");
    }
    for text in ["", "MHz", "-1", "inf", "nan", "1e400", "24 MHz a", "24 THz", "0x10"] {
        assert_eq!(parse_rate(text), None, "{text}");
    }
}

#[test]
fn archives_that_lie_or_are_damaged_are_reported() {
    let whole = signals::sigrok(&samples(), "24 MHz", &["SWO"], 1);
    let cut = whole[..whole.len() / 2].to_vec();
    assert!(sentence("a.sr", cut).starts_with("a.sr: is not a complete zip file: "));
    let other = signals::archive([("a.txt".to_owned(), b"text".to_vec())]);
    assert_eq!(
        sentence("a.zip", other),
        "a.zip: is a zip file without `metadata`, expected a sigrok session"
    );
    // The samples' checksum and size are in the archive's directory, at its end.
    let place = whole.windows(9).rposition(|bytes| bytes == b"logic-1-1").unwrap() - 46;
    let damaged = |offset: usize, bytes: &[u8]| {
        let mut archive = whole.clone();
        archive[place + offset..place + offset + bytes.len()].copy_from_slice(bytes);
        sentence("a.sr", archive)
    };
    assert_eq!(damaged(0, b"PK"), "5 bytes");
    assert_eq!(
        damaged(16, &[1, 2, 3, 4]),
        "a.sr: `logic-1-1` in the archive is damaged: its checksum is wrong"
    );
    assert_eq!(
        damaged(24, &u32::MAX.wrapping_sub(1).to_le_bytes()),
        "4 bytes, then a.sr: `logic-1-1` in the archive is damaged: it is shorter than the archive states"
    );
    // Samples in another compression are not even tried.
    assert!(
        damaged(10, &[12, 0]).starts_with("a.sr: `logic-1-1` in the archive is compressed with "),
        "{}",
        damaged(10, &[12, 0])
    );
}

#[test]
fn what_comes_before_a_damaged_part_is_read() {
    let bytes = trace_bytes(1000, 37);
    let samples = signals::uart(&bytes, TIMING).samples(24e6);
    let mut archive = signals::sigrok(&samples, "24 MHz", &["SWO"], 1);
    let place = archive.windows(9).rposition(|bytes| bytes == b"logic-1-3").unwrap() - 46;
    archive[place + 16] ^= 1;
    let recording = open("a.sr", archive).unwrap().unwrap();
    let (found, reading) = read(&recording, &WireOptions::default()).unwrap();
    // Two chunks of 10,007 samples, of 30 samples for each byte.
    assert!(bytes.starts_with(&found) && found.len() > 500, "{} bytes", found.len());
    let problem = reading.problem.unwrap();
    assert_eq!(problem.to_string(), "a.sr: `logic-1-3` in the archive is damaged: its checksum is wrong");
}

#[test]
fn samples_that_claim_to_be_endless_are_refused() {
    // A session whose directory claims sixteen chunks of nearly 4 GiB each.
    let names = (1..=16).map(|number| format!("logic-1-{number}")).collect::<Vec<_>>();
    let text = "[device 1]\ncapturefile=logic-1\nprobe1=SWO\n";
    let files = names.iter().map(|name| (name.clone(), vec![0; 64]));
    let mut archive =
        signals::archive([("metadata".to_owned(), text.as_bytes().to_vec())].into_iter().chain(files));
    for name in &names {
        // `logic-1-1` is also the beginning of `logic-1-10`; only the length distinguishes the two.
        let places = archive.windows(name.len()).enumerate().filter(|(_, bytes)| *bytes == name.as_bytes());
        let places = places.map(|(place, _)| place).collect::<Vec<_>>();
        for place in places {
            let Some(entry) =
                place.checked_sub(46).filter(|entry| archive[*entry..].starts_with(b"PK\x01\x02"))
            else {
                continue;
            };
            archive[entry + 24..entry + 28].copy_from_slice(&0xffff_fffe_u32.to_le_bytes());
        }
    }
    assert_eq!(sentence("a.sr", archive), "a.sr: has more than 17179869184 bytes of samples");
}

#[test]
fn dumps_are_read_in_the_forms_that_programs_write() {
    let head = "$timescale 1us $end $scope module top $end $var wire 1 ! SWO $end $var wire 8 \" bus [7:0] $end \
                $upscope $end $enddefinitions $end\n";
    let line = [(20, 0), (21, 1), (22, 0), (27, 1), (28, 0), (29, 1)];
    let changes = line.map(|(at, level)| format!("#{at}\n{level}!\nb0101 \"\n")).concat();
    let cases = [
        (format!("{head}#0\n$dumpvars\n1!\nbxxxxxxxx \"\n$end\n{changes}#40\n"), "1 bytes"),
        // An unknown initial level, a comment, and a real and a string value in between.
        (format!("{head}#0 x! r1.5 % $comment #7 0! $end ssome %\n#1 1! z!\n{changes}#40\n"), "1 bytes"),
        // One bit of a vector.
        (format!("{head}#0 b1 !\n{changes}#40"), "1 bytes"),
        (format!("{head}#9 1!\n#8 0!\n"), "a.vcd:3: a time is earlier than the one before it"),
        (format!("{head}#x 1!\n"), "a.vcd:2: expected a time for a change, found `#x`"),
        (format!("{head}#0 hello\n"), "a.vcd:2: expected a time or a value for a change, found `hello`"),
        ("$timescale 1 ns $end $enddefinitions $end".to_owned(), "a.vcd: contains no channels"),
        (
            "$timescale 3 ns $end".to_owned(),
            "a.vcd:1: expected a time like 1 ns for `$timescale`, found `3ns`",
        ),
        ("$timescale 1 ns".to_owned(), "a.vcd:1: has no `$end`"),
        ("$comment no end".to_owned(), "a.vcd:1: has no `$end`"),
        (
            "$var wire 1 $end".to_owned(),
            "a.vcd:1: expected type, width, code and name for `$var`, found `wire 1`",
        ),
        ("$var wire 0 ! a $end".to_owned(), "a.vcd:1: expected a width in bits for `$var`, found `0`"),
        (format!("$date {} $end", "x".repeat(100_000)), "a.vcd:1: has more than 65536 letters in a word"),
    ];
    for (text, expected) in cases {
        let found = sentence("a.vcd", text.clone());
        // Bytes read before the error do not matter here.
        assert!(found == expected || found.ends_with(&format!("then {expected}")), "{found}\n{text:.400}");
    }
}

#[test]
fn a_vectors_bits_are_channels_and_equal_names_get_their_scope() {
    let text = "$timescale 10 ns $end $scope module a $end $var wire 4 ! TRACEDATA [3:0] $end $var wire 1 # clk $end \
                $upscope $end $scope module b $end $var wire 1 $ clk $end $var wire 2 % d[1:0] $end $upscope $end \
                $enddefinitions $end #0 b0010 !\n";
    let recording = open("a.vcd", text.as_bytes().to_vec()).unwrap().unwrap();
    let expected =
        ["TRACEDATA[0]", "TRACEDATA[1]", "TRACEDATA[2]", "TRACEDATA[3]", "a.clk", "b.clk", "d[0]", "d[1]"];
    assert_eq!(recording.channels(), expected);
    assert_eq!(recording.ticks_per_second(), Some(1e8));
    let changes = recording.changes(&[1, 0]).unwrap().collect::<Result<Vec<_>, _>>().unwrap();
    assert_eq!(changes.iter().map(|change| change.levels.0).collect::<Vec<_>>(), [0b01]);
}

#[test]
fn tables_are_read_in_the_forms_that_programs_write() {
    // At 1 MHz and 1 Mbaud with four samples a bit, one row for each.
    let levels = signals::uart(b"csv", Timing { bit: 1e-6, ..TIMING }).samples(4e6);
    let rows = |row: fn(usize, u64) -> String| {
        levels.iter().enumerate().map(|(n, l)| row(n, *l)).collect::<String>()
    };
    let tables = [
        // sigrok, with a column of times in whole nanoseconds, and with names.
        format!(
            "; CSV generated by libsigrok\n; Channels (1/8): SWO\n; Samplerate: 4 MHz\nnanoseconds,logic\n{}",
            rows(|number, level| format!("{},{level}\n", (number + 1) * 250))
        ),
        format!(
            "; Samplerate: 4 MHz\nTime,SWO\n{}",
            rows(|number, level| format!("{},{level}\n", (number + 1) * 250))
        ),
        // Saleae Logic 2, with a trigger in the middle, and Logic 1.
        format!(
            "Time [s],SWO\n{}",
            rows(|number, level| format!("{:.9},{level}\n", number as f64 / 4e6 - 1e-4))
        ),
        format!("Time[s], SWO\n{}", rows(|number, level| format!("{:.15}, {level}\n", number as f64 / 4e6))),
        format!(
            "\"Time [us]\",\"SWO\"\r\n{}",
            rows(|number, level| format!("{:e},{level}\r\n", number as f64 / 4.0))
        ),
        // DSView.
        format!(
            "; CSV, generated by libsigrok4DSL\n; Channels (1/16)\n; Sample rate: 4 MHz\nTime(s),SWO\n{}",
            rows(|number, level| format!("{:.8},{level}\n", number as f64 / 4e6))
        ),
        // A table of a country where the decimal point is a comma.
        format!(
            "Time [s];SWO\n{}",
            rows(|number, level| format!("{:.9};{level}\n", number as f64 / 4e6).replace('.', ","))
        ),
        // Only levels, with semicolons.
        format!("SWO;other\n{}", rows(|_, level| format!("{level};0\n"))),
    ];
    for table in tables {
        let recording = open("a.csv", table.clone().into_bytes()).unwrap().unwrap();
        let (bytes, reading) = read(&recording, &WireOptions::default()).unwrap();
        assert_eq!(bytes, b"csv", "{table:.200}");
        if let Some(baud) = reading.bits_per_second() {
            assert!((0.97e6..1.03e6).contains(&baud), "{baud} {table:.200}");
        } else {
            assert!(table.starts_with("SWO"));
        }
    }
}

#[test]
fn separators_in_quotes_belong_to_the_cell() {
    let cases: [(&str, &[&str]); 5] = [
        ("\"GND, left\",\"SWO\"\n0,1\n0,0\n", &["GND, left", "SWO"]),
        ("\"Time [s]\",\"GND, left\",\"SWO\"\n0.1,0,1\n0.2,0,0\n", &["GND, left", "SWO"]),
        // The semicolon separates, not the comma in quotes.
        ("\"GND, left\";\"SWO\"\n0;1\n0;0\n", &["GND, left", "SWO"]),
        ("\"a \"\"loud\"\" one\",SWO\n0,1\n0,0\n", &["a \"loud\" one", "SWO"]),
        ("A, SWO\n\"0\",\"1\"\n\"0\",\"0\"\n", &["A", "SWO"]),
    ];
    for (text, channels) in cases {
        let recording = open("a", text.as_bytes().to_vec()).unwrap().unwrap();
        assert_eq!(recording.channels(), channels, "{text}");
        let changes = recording.changes(&[1, 0]).unwrap().collect::<Result<Vec<_>, _>>().unwrap();
        let levels = changes.iter().map(|change| change.levels.0).collect::<Vec<_>>();
        assert_eq!(levels[..2], [0b01, 0b00], "{text}");
    }
}

#[test]
fn mistakes_in_tables_are_reported_with_their_line() {
    let cases = [
        ("SWO,B\n1,0\n0,0\n1,x\n", "1 bytes"),
        ("Time [s],SWO\n0.1,1\n0.2,2\n", "a.csv:3: expected 0 or 1 for a level, found `2`"),
        ("Time [s],SWO\n0.1,1\n0.05,0\n", "a.csv:3: a time is earlier than the one before it"),
        ("Time [s],SWO\n0.1,1\nsoon,0\n", "a.csv:3: expected a number for a time, found `soon`"),
        (
            "Time [s],A,SWO\n0.1,1,1\n0.2,1\n",
            "a.csv:3: expected a column for each channel for a row, found `0.2,1`",
        ),
        ("Time [s],SWO\n", "a.csv: names channels but has no samples"),
        ("SWO\nhello\n", "a.csv:2: is not a recording: no column has levels"),
    ];
    for (text, expected) in cases.into_iter().skip(1) {
        let found = sentence("a.csv", text);
        assert!(found == expected || found.contains("carries no signal"), "{found}");
        let recording = open("a.csv", text.as_bytes().to_vec());
        let found = match recording {
            Err(error) => error.to_string(),
            Ok(recording) => {
                let recording = recording.unwrap();
                let swo = recording.channels().len() - 1;
                let changes = recording.changes(&[swo]).unwrap();
                changes.filter_map(Result::err).map(|error| error.to_string()).collect()
            }
        };
        assert_eq!(found, expected);
    }
    let long = format!("Time [s],SWO\n0,1\n{}\n", "0".repeat(100_000));
    assert!(open("a.csv", long.into_bytes()).unwrap().unwrap().changes(&[0]).unwrap().any(|change| {
        change.is_err_and(|error| error.to_string() == "a.csv:3: has more than 65536 bytes in a line")
    }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_bytes_in_any_container_are_read_without_panic(
        noise in prop::collection::vec(any::<u8>(), 0..300),
        place in any::<prop::sample::Index>(),
        which in 0_usize..4,
    ) {
        let samples = samples();
        let mut bytes = match which {
            0 => signals::sigrok(&samples, "24 MHz", &["SWO"], 1),
            1 => signals::vcd(&samples, 24e6, &["SWO"]),
            2 => signals::csv_of_changes(&samples, 24e6, &["SWO"]),
            _ => signals::csv_of_samples(&samples, "24 MHz", &["SWO"]),
        };
        let start = place.index(bytes.len());
        let end = (start + noise.len() / 2).min(bytes.len());
        bytes.splice(start..end, noise);
        if let Ok(Some(recording)) = open("a", bytes) {
            let _ = read(&recording, &WireOptions::default());
        }
    }
}
