//! Captures of ETMv4 and ETE through the command.

use crate::support::{assert_same_runs, comparable, corpus, run};

/// Captures that an emulator's record was traced into: the folder, and what `--source` has to say where a processor's name
/// stands for its ID registers.
const SYNTHETIC: [(&str, &str); 6] = [
    ("mix-a57-etmv4", "etmv4,cpu=cortex-a57"),
    ("mix-a57-etmv4-cycles", "etmv4,cpu=cortex-a57,trcconfigr=0x811"),
    ("mix-a57-etmv4-return-stack", "etmv4,cpu=cortex-a57,trcconfigr=0x1801"),
    ("mix-a57-etmv4-speculative", "etmv4,cpu=cortex-a57,trcidr0=0x08000ea1,trcidr8=0x1e"),
    ("mix-m33-etmv4", "etmv4,cpu=cortex-m33"),
    ("mix-m33-etmv4-return-stack", "etmv4,cpu=cortex-m33,trcconfigr=0x1811"),
];

fn runs(arguments: &[&str]) -> Vec<String> {
    let outcome = run(["flow"].iter().chain(arguments).chain(&["--format", "runs"]));
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    comparable(&outcome.stdout)
}

#[test]
fn what_an_emulator_recorded_is_what_flow_finds() {
    let Some(folder) = corpus("etm4/synthetic") else { return };
    for (name, source) in SYNTHETIC {
        let case = folder.join(name);
        let expected =
            comparable(&std::fs::read_to_string(case.join("runs.txt")).expect("the corpus is complete"));
        assert!(expected.len() > 1000, "{name}");
        let [snapshot, trace, program] = [case.clone(), case.join("trace.bin"), case.join("program.elf")];
        let [snapshot, trace, program] =
            [&snapshot, &trace, &program].map(|path| path.to_str().expect("plain names"));
        assert_same_runs(&runs(&[snapshot]), &expected);
        let described = [trace, "--container", "raw", "--source", source, "--image", program];
        assert_same_runs(&runs(&described), &expected);
    }
}
