//! Captures from hardware and from an emulator, through the command.

use std::path::Path;

use crate::support::{assert_same_runs, comparable, corpus, run};

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).expect("the corpus is complete")
}

/// The output of `flow --format runs` for a capture.
fn runs(arguments: &[&str], status: i32) -> Vec<String> {
    let all = ["flow"].iter().chain(arguments).chain(&["--format", "runs"]);
    let outcome = run(all);
    assert_eq!(outcome.status, status, "{}", outcome.stderr);
    comparable(&outcome.stdout)
}

#[tracewalk_corpus::test]
fn a_cortex_m3_over_swo_reads_as_opencsd_reads_it() {
    let case = corpus("real/stm32f105");
    let expected = comparable(&text(&case.join("runs-02.txt")));
    let (swo, elf) = (case.join("swo.bin"), case.join("trace_example.elf"));
    let found = runs(&[swo.to_str().unwrap(), "--image", elf.to_str().unwrap()], 0);
    assert_same_runs(&found, &expected);

    let directory = tempfile::tempdir().unwrap();
    std::fs::copy(&swo, directory.path().join("swo.bin")).unwrap();
    std::fs::copy(&elf, directory.path().join("trace_example.elf")).unwrap();
    let description = directory.path().join("capture.toml");
    let toml = "\
[capture]
file = \"swo.bin\"
container = \"frames\"

[[source]]
id = 0x02
protocol = \"etmv3\"
cpu = \"cortex-m3\"
registers = { etmcr = 0x500 }

[[image]]
file = \"trace_example.elf\"
";
    std::fs::write(&description, toml).unwrap();
    assert_same_runs(&runs(&[description.to_str().unwrap()], 0), &expected);
}

#[tracewalk_corpus::test]
fn frames_are_found_wherever_the_capture_of_a_trace_port_starts() {
    let case = corpus("real/stm32f105");
    let expected = comparable(&text(&case.join("runs-02.txt")));
    let swo = std::fs::read(case.join("swo.bin")).unwrap();
    let elf = case.join("trace_example.elf");
    let directory = tempfile::tempdir().unwrap();
    for start in 0..16 {
        let cut = directory.path().join("cut.bin");
        std::fs::write(&cut, &swo[start..]).unwrap();
        assert_same_runs(&runs(&[cut.to_str().unwrap(), "--image", elf.to_str().unwrap()], 0), &expected);
    }
}

/// sigrok's decoder and ours agree on the same packets: branch targets, and instructions passed.
#[tracewalk_corpus::test]
fn the_packets_of_a_cortex_m3_are_those_that_sigrok_sees() {
    let case = corpus("real/stm32f105");
    let mut expected = Vec::new();
    for line in text(&case.join("sigrok-packets.txt")).lines() {
        let quoted = line.split('"').nth(1).unwrap_or_default();
        if let Some(target) = quoted.strip_prefix("Branch to ") {
            expected.push(target.split(' ').next().unwrap_or_default().to_owned());
        } else if let Some((executed, rest)) = quoted.split_once(" instructions executed") {
            let skipped = rest.strip_prefix(", ").and_then(|rest| rest.split(' ').next()).unwrap_or("0");
            expected.push(format!("{executed} executed, {skipped} skipped"));
        }
    }
    let swo = case.join("swo.bin");
    let arguments =
        ["packets", swo.to_str().unwrap(), "--source", "2=etmv3,cpu=cortex-m3", "--format", "jsonl"];
    let mut found = Vec::new();
    for line in run(arguments).stdout.lines() {
        let packet: serde_json::Value = serde_json::from_str(line).unwrap();
        match packet["packet"].as_str().unwrap() {
            "branch" => found.push(packet["addr"].as_str().unwrap().to_owned()),
            "p_header" => {
                let atoms = packet["atoms"].as_str().unwrap();
                let (executed, skipped) = (atoms.matches('E').count(), atoms.matches('N').count());
                found.push(format!("{executed} executed, {skipped} skipped"));
            }
            _ => {}
        }
    }
    assert!(expected.len() > 600, "{} lines were understood", expected.len());
    assert_same_runs(&found, &expected);
}

/// With their descriptions, and with nothing but the trace and the memory.
#[tracewalk_corpus::test]
fn boards_read_as_opencsd_reads_them() {
    const MEMORY: [(&str, &str); 9] = [
        ("0x80000000", "0_VECTORS"),
        ("0x80000278", "1_RO_CODE"),
        ("0x80001c28", "2_RO_DATA"),
        ("0x80001d58", "3_RW_DATA"),
        ("0x80001d68", "4_ZI_DATA"),
        ("0x80040000", "5_ARM_LIB_HEAP"),
        ("0x80080000", "6_ARM_LIB_STACK"),
        ("0x80090000", "7_IRQ_STACK"),
        ("0x80100000", "8_TTB"),
    ];
    let (cores, stack) = (corpus("real/TC2"), corpus("real/tc2-ptm-rstk-t32"));
    let image = |address: &str, file: &Path| ["--image".to_owned(), format!("{address}:{}", file.display())];
    let only = |file: &Path, images: Vec<[String; 2]>| {
        [vec![file.display().to_string()], images.concat()].concat()
    };
    let of_cores = only(&cores.join("cstrace.bin"), vec![image("0xc0008000", &cores.join("kernel_dump.bin"))]);
    let memory = MEMORY.map(|(at, name)| image(at, &stack.join(format!("mem_Cortex-A15_0_{name}.bin"))));
    let of_stack = only(&stack.join("PTM_0_2.bin"), memory.to_vec());
    for (case, bare, sources) in [
        (&cores, of_cores, &[("10", 0), ("11", 0), ("12", 0), ("13", 2)][..]),
        (&stack, of_stack, &[("02", 0)]),
    ] {
        for (capture, (id, status)) in
            [only(case, Vec::new()), bare].iter().flat_map(|capture| sources.iter().map(move |it| (capture, *it)))
        {
            let expected = comparable(&text(&case.join(format!("runs-{id}.txt"))));
            let mut arguments = capture.iter().map(String::as_str).collect::<Vec<_>>();
            let id = format!("0x{id}");
            if sources.len() > 1 {
                arguments.extend(["--id", &id]);
            }
            assert_same_runs(&runs(&arguments, status), &expected);
        }
    }
}

/// The emulator's record ends an instruction or two after the last one that the trace proves.
#[tracewalk_corpus::test]
fn emulated_programs_ran_as_the_emulator_recorded() {
    let names = [
        "mix-m3-etmv3",
        "mix-m3-etmv3-broadcast",
        "mix-a7-etmv3-original",
        "mix-a7-etmv3-alternative",
        "mix-a9-ptm",
    ];
    for name in names {
        let case = corpus(&format!("synthetic/{name}"));
        let expected = comparable(&text(&case.join("runs.txt")));
        let found = runs(&[case.to_str().unwrap()], 0);
        let proven = expected.len() - 1;
        assert!(found.len() >= proven, "{name}: {} of {} lines", found.len(), expected.len());
        assert_same_runs(&found[..proven], &expected[..proven]);
        let start = |line: &String| line.rsplitn(3, ' ').last().map(str::to_owned);
        assert!(found.get(proven).is_none_or(|last| start(last) == start(&expected[proven])), "{name}");
    }
}

/// The emulator's record begins and ends a little outside the traced part, and distinguishes exceptions that
/// share a handler.
fn assert_traced(name: &str, found: &[String], record: &[String]) {
    let is_traced = |found: &String, recorded: &String| {
        let at = |line: &String| line.rsplit_once(' ').map(|(rest, at)| (rest.to_owned(), at.to_owned()));
        found == recorded
            || found.starts_with("X - ")
                && recorded.starts_with("X ")
                && at(found).map(|(_, at)| at) == at(recorded).map(|(_, at)| at)
    };
    let starts_at = |skipped: &usize| record.get(1 + skipped).is_some_and(|line| is_traced(&found[1], line));
    let skipped = (0..3).find(starts_at).unwrap_or_else(|| panic!("{name}: begins with {}", found[0]));
    let record = &record[skipped..];
    assert!(found.len() + 12 >= record.len() && found.len() <= record.len(), "{name}: {} lines", found.len());
    for (index, (found, recorded)) in found.iter().zip(record).enumerate().skip(1) {
        assert!(is_traced(found, recorded), "{name}, line {index}: {found}, recorded {recorded}");
    }
}

#[tracewalk_corpus::test]
fn captures_that_were_read_wrongly_once_are_read_as_they_were_recorded() {
    let folder = corpus("found");
    let path = |name: &str| folder.join(name).display().to_string();
    let mtb = |name: &str| {
        let [buffer, registers, program] =
            ["mtb.bin", "registers.txt", "program.elf"].map(|file| path(&format!("{name}/{file}")));
        ["--container", "mtb", &buffer, "--registers", &registers, "--image", &program]
            .map(str::to_owned)
            .to_vec()
    };
    let fsync = path("tpiu-fsync-outvoted/capture.toml");
    let gray = path("auto-pft-timestamps-64-gray/trace.bin");
    let gray_image = path("auto-pft-timestamps-64-gray/program.elf");
    let cases = [
        ("tpiu-fsync-outvoted", vec![fsync.clone()]),
        ("tpiu-fsync-outvoted", vec![fsync, "--strict".to_owned()]),
        ("mtb-return-to-shared-handler", mtb("mtb-return-to-shared-handler")),
        ("mtb-tail-chain-to-shared-handler", mtb("mtb-tail-chain-to-shared-handler")),
        ("pft-gray-timestamps-before-t-sync", vec![path("pft-gray-timestamps-before-t-sync/capture.toml")]),
        ("auto-pft-timestamps-64-gray", vec![path("auto-pft-timestamps-64-gray/capture.toml")]),
        ("auto-pft-timestamps-64-gray", vec![gray, "--image".to_owned(), gray_image]),
    ];
    for (name, arguments) in cases {
        let record = comparable(&text(&folder.join(name).join("runs.txt")));
        let arguments = arguments.iter().map(String::as_str).collect::<Vec<_>>();
        assert_traced(name, &runs(&arguments, 0), &record);
    }
}
