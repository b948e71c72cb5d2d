//! Encodes bytes on wires and decodes them again.

use super::*;

/// The formats in which a recording can be written.
const CONTAINERS: [&str; 4] = ["a.sr", "a.vcd", "changes.csv", "samples.csv"];

fn written(container: &str, samples: &[u64], rate: f64, names: &[&str]) -> Vec<u8> {
    let hertz = format!("{rate}");
    match container {
        "a.sr" => signals::sigrok(samples, &hertz, names, 2),
        "a.vcd" => signals::vcd(samples, rate, names),
        "changes.csv" => signals::csv_of_changes(samples, rate, names),
        _ => signals::csv_of_samples(samples, &hertz, names),
    }
}

fn assert_read(waveform: &Waveform, rate: f64, names: &[&str], expected: &[u8]) -> Result<(), TestCaseError> {
    let samples = waveform.samples(rate);
    for container in CONTAINERS {
        let bytes = written(container, &samples, rate, names);
        let (found, reading) = read_with(container, bytes, &WireOptions::default()).unwrap();
        prop_assert_eq!(&found, expected, "{} {:?}", container, (reading.wire, reading.ticks_per_bit));
        prop_assert_eq!(reading.errors, 0);
        prop_assert_eq!(reading.times.len(), expected.len());
        prop_assert!(reading.problem.is_none() && reading.is_aligned);
    }
    Ok(())
}

fn bytes_of_trace() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![2 => any::<u8>(), 1 => Just(0)], 40..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_uarts_bytes_come_back_from_every_container_at_odd_rates_and_with_jitter(
        bytes in bytes_of_trace(),
        baud in 0.1e6_f64..20e6,
        samples_in_bit in 2.6_f64..12.0,
        seed: u64,
    ) {
        let bit = 1.0 / baud;
        // Sampling itself moves an edge by up to one sample.
        let jitter = 0.1 - 0.2 / samples_in_bit;
        let timing = Timing { bit, jitter: jitter.max(0.0), rest: 40.0, seed };
        let rate = (samples_in_bit / bit).round();
        assert_read(&signals::uart(&bytes, timing), rate, &["SWO"], &bytes)?;
    }

    #[test]
    fn manchester_codes_bytes_come_back_from_every_container(
        bytes in bytes_of_trace(),
        baud in 0.1e6_f64..10e6,
        samples_in_bit in 6.0_f64..24.0,
        seed: u64,
    ) {
        let bit = 1.0 / baud;
        let timing = Timing { bit, jitter: 0.02, rest: 40.0, seed };
        let rate = (samples_in_bit / bit).round();
        assert_read(&signals::manchester(&bytes, timing), rate, &["TRACESWO"], &bytes)?;
    }

    #[test]
    fn a_ports_bytes_come_back_from_every_container_wherever_the_clock_stands(
        bytes in bytes_of_trace(),
        width in 0_usize..3,
        together: bool,
        edges_a_second in 0.1e6_f64..50e6,
        samples_between_edges in 3.7_f64..12.0,
        seed: u64,
    ) {
        let mut framed = FSYNC.to_vec();
        framed.extend(bytes.iter().map(|byte| byte & 0xfe));
        let distance = 1.0 / edges_a_second;
        let timing = Timing { bit: distance, jitter: 0.0, rest: 5.0, seed };
        let names = ["TRACECLK", "TRACED0", "TRACED1", "TRACED2", "TRACED3"];
        let pins = 1 << width;
        let shift = if together { 0.0 } else { 0.5 };
        let waveform = signals::port(&framed, pins, shift, timing);
        let rate = (samples_between_edges / distance).round();
        assert_read(&waveform, rate, &names[..=pins as usize], &framed)?;
    }
}

#[tracewalk_corpus::test]
fn a_real_recording_gives_the_bytes_that_its_owner_decoded() {
    let file = corpus("real/stm32f105/trace_example.sr");
    let expected = std::fs::read(file.with_file_name("swo.bin")).unwrap();
    let recording = Recording::open(&file).unwrap().expect("a session of sigrok");
    assert_eq!(recording.channels(), ["PC9", "SWO", "PC8"]);
    let (bytes, reading) = read(&recording, &WireOptions::default()).unwrap();
    assert_eq!(bytes, expected);
    assert_eq!((reading.wire, reading.errors), (Wire::Uart, 0));
    assert_eq!(reading.channels, [(Role::Swo, "SWO".to_owned())]);
    // The processor's own oscillator is a percent off.
    let baud = reading.bits_per_second().unwrap();
    assert!((8.0e6..8.1e6).contains(&baud), "{baud}");
    assert_eq!(reading.times.at(0), Some(Tick(2418)));
    assert_eq!(reading.times.at(1), Some(Tick(2447)));
    assert_eq!(reading.end, Tick(1_200_000));
    // With a named channel and the nominal rate, the result is the same.
    let options = WireOptions {
        wire: Some(Wire::Uart),
        baud: Some(8_000_000),
        channels: vec![("SWO".to_owned(), Role::Swo)],
        ..WireOptions::default()
    };
    let (bytes, _) = read(&recording, &options).unwrap();
    assert_eq!(bytes, expected);
}

#[test]
fn a_recording_that_begins_within_a_byte_gives_the_bytes_after_it() {
    let bytes = trace_bytes(300, 7);
    let waveform = signals::uart(&bytes, Timing { rest: 12.0, ..TIMING });
    for part in 0..40 {
        let start = (12.0 + f64::from(part) * 0.7) * TIMING.bit;
        let samples = waveform.from(start).samples(30e6);
        let recording = signals::sigrok(&samples, "30 MHz", &["SWO"], 1);
        let (found, reading) = read_with("a.sr", recording, &WireOptions::default()).unwrap();
        assert!(bytes.ends_with(&found) || found.ends_with(&bytes[4..]), "from {start}");
        assert!(found.len() + 5 >= bytes.len(), "{} bytes from {start}", found.len());
        assert_eq!(reading.errors, 0, "from {start}");
    }
    let waveform = signals::manchester(&bytes, TIMING);
    for part in 0..40 {
        let samples = waveform.from((40.0 + f64::from(part) * 0.7) * TIMING.bit).samples(80e6);
        let recording = signals::sigrok(&samples, "80 MHz", &["SWO"], 1);
        let (found, _) = read_with("a.sr", recording, &WireOptions::default()).unwrap();
        // Packets have up to eight bytes, and a packet whose start was not recorded is not read.
        assert!(bytes.ends_with(&found) && found.len() + 12 >= bytes.len(), "{} bytes", found.len());
    }
}

#[test]
fn a_recording_that_ends_within_a_byte_gives_the_bytes_before_it_without_an_error() {
    let bytes = [0x55, 0xaa, 0x00, 0xff, 0x0f, 0x31];
    let whole = signals::uart(&bytes, Timing { rest: 20.0, ..TIMING }).samples(64e6);
    for cut in 0..80 {
        let samples = &whole[..whole.len() - 20 * 8 - cut];
        let recording = signals::sigrok(samples, "64 MHz", &["SWO"], 1);
        let (found, reading) = read_with("a.sr", recording, &WireOptions::default()).unwrap();
        assert!(
            bytes.starts_with(&found) && found.len() + 1 >= bytes.len(),
            "{found:x?} without {cut} samples"
        );
        assert_eq!(reading.errors, 0);
    }
}

#[test]
fn a_disturbed_stop_bit_is_counted_and_spoils_no_byte() {
    let bytes = trace_bytes(400, 11);
    let mut samples = signals::uart(&bytes, Timing { rest: 40.0, ..TIMING }).samples(64e6);
    // Eight samples a bit: the first byte starts at sample 320, its stop bit is at 392.
    let (clean, _) =
        read_with("a.sr", signals::sigrok(&samples, "64 MHz", &["SWO"], 1), &WireOptions::default()).unwrap();
    assert_eq!(clean, bytes);
    samples[393..399].fill(0);
    let recording = signals::sigrok(&samples, "64 MHz", &["SWO"], 1);
    let (found, reading) = read_with("a.sr", recording, &WireOptions::default()).unwrap();
    assert_eq!(found.len(), bytes.len());
    assert_eq!(found[1..], bytes[1..]);
    assert_eq!(reading.errors, 1);
    assert_eq!(reading.first_error.map(|error| error.byte), Some(0));
}

#[test]
fn reading_goes_on_after_a_disturbance() {
    let bytes = trace_bytes(2000, 13);
    let samples = signals::uart(&bytes, TIMING).samples(37e6);
    for place in [3000_usize, 20_000, 50_000] {
        let mut samples = samples.clone();
        let mut noise = Noise::new(place as u64);
        samples[place..place + 100].fill_with(|| noise.bits() & 1);
        let recording = signals::sigrok(&samples, "37 MHz", &["SWO"], 1);
        let (found, reading) = read_with("a.sr", recording, &WireOptions::default()).unwrap();
        let same_start = found.iter().zip(&bytes).take_while(|(a, b)| a == b).count();
        let same_end = found.iter().rev().zip(bytes.iter().rev()).take_while(|(a, b)| a == b).count();
        // A hundred samples span two or three bytes.
        assert!(same_start + same_end + 8 >= bytes.len(), "{same_start} and {same_end} of {}", bytes.len());
        assert!(reading.errors <= 6, "{} errors", reading.errors);
    }
}

#[test]
fn a_line_that_stays_low_for_a_while_sends_nothing() {
    let bytes = trace_bytes(200, 17);
    let mut samples = signals::uart(&bytes, TIMING).samples(64e6);
    let after = samples.len();
    samples.extend([0; 5000]);
    samples.extend([1; 400]);
    samples.extend(signals::uart(&bytes, TIMING).samples(64e6));
    let recording = signals::sigrok(&samples, "64 MHz", &["SWO"], 1);
    let (found, reading) = read_with("a.sr", recording, &WireOptions::default()).unwrap();
    assert_eq!(found, [&bytes[..], &bytes].concat());
    assert_eq!(reading.errors, 1);
    assert_eq!(reading.first_error, Some(WireError { byte: 200, at: Tick(after as u64) }));
}

#[test]
fn a_port_without_a_name_for_its_pins_is_read_as_the_options_say() {
    let bytes = [&FSYNC[..], &trace_bytes(100, 19)].concat();
    let samples = signals::port(&bytes, 2, 0.5, TIMING).samples(64e6);
    let recording = signals::sigrok(&samples, "64 MHz", &["PE2", "PE3", "PE4"], 1);
    let channels = [("PE2", Role::Clock), ("PE3", Role::Data(0)), ("PE4", Role::Data(1))];
    let channels = channels.map(|(name, role)| (name.to_owned(), role)).to_vec();
    let options = WireOptions { channels, ..WireOptions::default() };
    let (found, reading) = read_with("a.sr", recording, &options).unwrap();
    assert_eq!((found, reading.wire), (bytes, Wire::Port));
}

#[test]
fn a_ports_bytes_are_found_at_any_skew_and_again_after_missing_edges() {
    let trace = TraceId::new(0x10).unwrap();
    let mut formatter = Formatter::new(FormatterOptions {
        full_sync_every: std::num::NonZeroU32::new(4),
        ..FormatterOptions::default()
    });
    let mut bytes = Vec::new();
    formatter.write(trace, &trace_bytes(2000, 23), &mut bytes);
    let names = ["TRACECLK", "TRACEDATA[0]"];
    let whole = signals::port(&bytes, 1, 0.5, TIMING);
    for skew in 0..8 {
        let waveform = whole.from((40.0 + f64::from(skew)) * TIMING.bit);
        let samples = waveform.samples(64e6);
        let recording = signals::sigrok(&samples, "64 MHz", &names, 1);
        let (found, reading) = read_with("a.sr", recording, &WireOptions::default()).unwrap();
        assert!(bytes.ends_with(&found), "skew {skew}");
        assert!(found.len() + 1 >= bytes.len() && reading.errors == 0, "skew {skew}");
    }
    // Five bits are missing in the middle: the next FSYNC ends in the middle of what looks like a byte.
    let samples = whole.samples(64e6);
    let middle = samples.len() / 2;
    let recording =
        signals::sigrok(&[&samples[..middle], &samples[middle + 40..]].concat(), "64 MHz", &names, 1);
    let (found, reading) = read_with("a.sr", recording, &WireOptions::default()).unwrap();
    assert_eq!(reading.errors, 1);
    let same_end = found.iter().rev().zip(bytes.iter().rev()).take_while(|(a, b)| a == b).count();
    assert!(same_end > bytes.len() / 2 - 80, "{same_end} of {}", bytes.len());
}

#[test]
fn the_channel_that_carries_bytes_is_found_among_others() {
    let bytes = trace_bytes(300, 29);
    let samples = signals::uart(&bytes, TIMING).samples(64e6);
    // Channel 0 is a clock, channel 1 is idle, channel 3 has a slow and irregular signal.
    let mut noise = Noise::new(31);
    let mut slow = 0;
    let with_others = samples.iter().enumerate().map(|(number, level)| {
        if noise.bits().is_multiple_of(97) {
            slow ^= 1;
        }
        ((number as u64 / 3) & 1) | level << 2 | slow << 3
    });
    let with_others = with_others.collect::<Vec<_>>();
    let names = ["A0", "A1", "A2", "A3"];
    let recording = signals::sigrok(&with_others, "64 MHz", &names, 1);
    let (found, reading) = read_with("a.sr", recording, &WireOptions::default()).unwrap();
    assert_eq!(found, bytes);
    assert_eq!(reading.channels, [(Role::Swo, "A2".to_owned())]);
    // Two channels carry bytes: the choice is ambiguous.
    let twice = samples.iter().map(|level| level | level << 1).collect::<Vec<_>>();
    let recording = signals::sigrok(&twice, "64 MHz", &["A0", "A1"], 1);
    let error = read_with("a.sr", recording.clone(), &WireOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "a.sr: several channels carry bytes: A0, A1");
    let options = WireOptions { channels: vec![("a1".to_owned(), Role::Swo)], ..WireOptions::default() };
    assert_eq!(read_with("a.sr", recording, &options).unwrap().0, bytes);
}

#[test]
fn a_line_on_which_nothing_happens_is_reported() {
    let recording = |names: &[&str]| signals::sigrok(&[1; 1000], "1 MHz", names, 1);
    let sentence = |names, options| read_with("a.sr", recording(names), &options).unwrap_err().to_string();
    assert_eq!(
        sentence(&["SWO"], WireOptions::default()),
        "a.sr: channel `SWO` carries no signal: SWO stays high"
    );
    assert_eq!(
        sentence(&["A", "B"], WireOptions::default()),
        "a.sr: no channel carries a signal: A stays high, B stays low"
    );
    let port = WireOptions { wire: Some(Wire::Port), ..WireOptions::default() };
    assert_eq!(
        sentence(&["CLK", "D0"], port),
        "a.sr: channel `CLK` carries no signal: CLK stays high, D0 stays low"
    );
    let slow = WireOptions { baud: Some(700_000), ..WireOptions::default() };
    let samples = signals::uart(b"abc", Timing { bit: 1e-6, ..TIMING }).samples(1e6);
    let error = read_with("a.sr", signals::sigrok(&samples, "1 MHz", &["SWO"], 1), &slow).unwrap_err();
    assert_eq!(error.to_string(), "a.sr: has only 1.4 samples per bit, expected 2 or more");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_edges_are_read_without_panic(
        steps in prop::collection::vec((prop_oneof![0_u64..20, 0_u64..1000, Just(1 << 40)], 0_u64..32), 0..600),
        names in prop::sample::select(vec![&["SWO", "A", "B", "C", "D"], &["CLK", "D0", "D1", "D2", "D3"]]),
        options in (
            prop::option::of(prop::sample::select(Wire::ALL.to_vec())),
            prop::option::of(1_u64..1_000_000_000),
        ),
    ) {
        let mut text = String::from("Time [ns],") + &names.join(",") + "\n";
        let mut at = 0;
        for (step, level) in steps {
            let bits = (0..5).map(|bit| (level >> bit & 1).to_string()).collect::<Vec<_>>();
            text += &format!("{at},{}\n", bits.join(","));
            at += step;
        }
        let options = WireOptions { wire: options.0, baud: options.1, ..WireOptions::default() };
        if let Ok(Some(recording)) = open("a.csv", text.into_bytes()) {
            let _ = read(&recording, &options);
        }
    }
}

#[test]
fn an_inverted_line_is_found_out_where_that_leaves_no_doubt() {
    let bytes = trace_bytes(300, 9);
    let read_inverted = |count: usize, inverted: Option<bool>, is_uart: bool| {
        let part = &bytes[..count];
        let waveform = if is_uart { signals::uart(part, TIMING) } else { signals::manchester(part, TIMING) };
        let samples = waveform.samples(64e6).into_iter().map(|level| level ^ 1).collect::<Vec<_>>();
        let options = WireOptions { inverted, ..WireOptions::default() };
        read_with("a.vcd", signals::vcd(&samples, 64e6, &["SWO"]), &options)
    };
    for is_uart in [true, false] {
        for said in [None, Some(true)] {
            let (found, reading) = read_inverted(300, said, is_uart).unwrap();
            assert_eq!(found, bytes, "{said:?}, UART {is_uart}");
            assert_eq!((reading.inverted, reading.errors), (true, 0));
        }
        let as_it_is = read_inverted(300, Some(false), is_uart);
        assert!(as_it_is.is_err() || as_it_is.is_ok_and(|(found, _)| found != bytes), "UART {is_uart}");
        // A few error-free bytes may be chance.
        let few = read_inverted(10, None, is_uart);
        assert!(few.is_err() || few.is_ok_and(|(_, reading)| !reading.inverted), "UART {is_uart}");
    }
}

#[test]
fn samples_that_say_nothing_of_themselves_are_read_as_the_options_say() {
    let bytes = trace_bytes(100, 10);
    let samples = signals::uart(&bytes, TIMING).samples(32e6);
    for unit in [1_u8, 2, 8] {
        let bit = 8 * u32::from(unit) - 3;
        let packed = |sample: &u64| (sample << bit).to_le_bytes().into_iter().take(unit.into());
        let file = samples.iter().flat_map(packed).collect::<Vec<_>>();
        for channels in [Vec::new(), vec![(bit.to_string(), Role::Swo)]] {
            let samples = Some(Samples { rate: 32_000_000, bytes: unit });
            let options = WireOptions { channels, samples, ..WireOptions::default() };
            let recording = Recording::from_bytes_with(Path::new("a.bin"), file.clone().into(), &options);
            let (found, reading) = read(&recording.unwrap().expect("samples"), &options).unwrap();
            assert_eq!((found, reading.errors), (bytes.clone(), 0), "{unit} bytes");
            assert!(reading.bits_per_second().is_some_and(|rate| (7.9e6..8.1e6).contains(&rate)));
            assert_eq!(reading.channels, [(Role::Swo, bit.to_string())]);
        }
    }
    // A recording that states its rate accepts no other.
    let session = signals::sigrok(&samples, "32 MHz", &["SWO"], 1);
    let options = WireOptions { samples: Some(Samples { rate: 1, bytes: 1 }), ..WireOptions::default() };
    let twice = Recording::from_bytes_with(Path::new("a.sr"), session.into(), &options);
    assert!(twice.is_err_and(|error| matches!(
        error.kind,
        crate::capture::CaptureErrorKind::Recording(RecordingProblem::RateTwice)
    )));
}
