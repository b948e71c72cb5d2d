//! Crashes that nothing traced, with damaged registers and memory: the claim is that of the undamaged log, or there is none.

use std::fs;
use std::path::{Path, PathBuf};

use tracewalk_analysis::crash::{CauseKind, Snapshot};
use tracewalk_session::{Notices, Request, Session, Untraced};

use crate::support::{bare, corpus};

/// A log, the program, and what is claimed of it.
struct Case {
    session: Session,
    snapshot: Snapshot,
    kind: Option<&'static str>,
}

impl Case {
    fn open(log: &Path, image: &Path) -> Self {
        let text = fs::read_to_string(log).unwrap();
        // Without the trace of an MTB.
        let is_trace = |line: &&str| line.starts_with("MTB_") || line.starts_with("0x20001");
        let kept = text.lines().filter(|line| !is_trace(line)).map(|line| format!("{line}\n"));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("crash.log");
        fs::write(&file, kept.collect::<String>()).unwrap();
        let request = Request { may_lack_trace: true, ..bare(&file, image) };
        let (session, _) = Session::open(request).unwrap();
        assert!(session.lacks_trace(), "{}", log.display());
        let snapshot = session.snapshot(None).unwrap();
        let mut case = Self { session, snapshot, kind: None };
        case.kind = case.claim(&case.snapshot.clone());
        case
    }

    fn found(&mut self, snapshot: &Snapshot) -> Untraced {
        self.session.untraced(snapshot, &[], &Notices::default()).unwrap()
    }

    fn claim(&mut self, snapshot: &Snapshot) -> Option<&'static str> {
        let cause = self.found(snapshot).crash.expect("a fault").cause?;
        assert!(!cause.proof.is_empty());
        Some(match cause.kind {
            CauseKind::StackLimit { .. } => "stack limit",
            CauseKind::FetchAbort { .. } => "fetch",
            CauseKind::UndefinedInstruction { .. } => "undefined",
            CauseKind::DivideByZero { .. } => "division",
            CauseKind::Unaligned { .. } => "unaligned",
            CauseKind::BusFault { .. } => "bus",
            CauseKind::MemoryProtection { .. } => "memory protection",
            CauseKind::NoHandler { .. } => "no handler",
            other => panic!("{other:?} needs a trace"),
        })
    }

    /// Flips each bit of the stacked words and of the fault status; returns how often there still is a claim, and how often there is none.
    fn flip(&mut self, name: &str) -> [u32; 2] {
        const STATUS: [u32; 5] = [0xe000_ed04, 0xe000_ed28, 0xe000_ed2c, 0xe000_ed34, 0xe000_ed38];
        let link = self.snapshot.registers[14].unwrap();
        let process = self.snapshot.stack_pointers[1].filter(|_| link & 4 != 0);
        let start = process.or(self.snapshot.registers[13]).unwrap();
        let words = (0..8).map(|word| start + 4 * word).chain(STATUS);
        let mut counts = [0, 0];
        for (address, bit) in words.flat_map(|word| (0..32).map(move |bit| (word + bit / 8, bit % 8))) {
            let mut damaged = self.snapshot.clone();
            let piece = damaged.memory.range_mut(..=address).next_back();
            let byte = piece.and_then(|(start, bytes)| bytes.get_mut((address - start) as usize));
            *byte.unwrap() ^= 1 << bit;
            let claim = self.claim(&damaged);
            assert!(claim.is_none() || claim == self.kind, "{name} 0x{address:x} bit {bit}: {claim:?}");
            counts[usize::from(claim.is_none())] += 1;
        }
        counts
    }
}

/// A recorded crash, and its program.
fn recorded(name: &str, program: &str) -> [PathBuf; 2] {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    [folder.join("crashes").join(name).join("crash.log"), folder.join("firmware/crash").join(program)]
}

#[test]
fn no_damaged_bit_makes_another_claim_without_a_trace() {
    for (name, program, kind) in [
        ("m0-unaligned", "crash-m0.elf", Some("unaligned")),
        ("m0-bus-fault", "crash-m0.elf", Some("bus")),
        ("m0-null-pointer", "crash-m0.elf", None),
        ("m0-escalated", "unproven-m0.elf", None),
        ("m3-bus-fault", "crash-m3.elf", Some("bus")),
        ("m3-divide", "crash-m3.elf", Some("division")),
        ("m3-undefined", "crash-m3.elf", Some("undefined")),
        ("m3-return-address", "crash-m3.elf", Some("fetch")),
        ("m3-wild-jump", "crash-m3.elf", None),
        ("m3-escalated", "unproven-m3.elf", None),
        ("m4-thread-bus-fault", "float-m4.elf", Some("bus")),
    ] {
        let [log, image] = recorded(name, program);
        let mut case = Case::open(&log, &image);
        assert_eq!(case.kind, kind, "{name}");
        let [claims, none] = case.flip(name);
        // A changed r0 is not the handler's any more; a changed address is accessed by no instruction.
        assert_eq!(claims > 0, kind.is_some(), "{name}");
        assert!(none > 8, "{name}: {claims} claims");
    }
}

#[tracewalk_corpus::test]
fn no_damaged_bit_of_a_log_makes_another_claim() {
    for name in ["mailer", "lookup", "gain", "guard"] {
        let folder = corpus("crash2").join(name);
        let mut case = Case::open(&folder.join("gdb.log"), &folder.join("program.elf"));
        assert!(case.kind.is_some(), "{name}");
        let [claims, none] = case.flip(name);
        assert!(claims > 0 && none > 8, "{name}: {claims} claims");
    }
}

/// The stack is in memory of another security state, or EXC_RETURN is none.
#[test]
fn a_link_register_that_is_no_exception_return_leads_to_no_frame() {
    let [log, image] = recorded("m3-divide", "crash-m3.elf");
    let mut case = Case::open(&log, &image);
    for link in [0xffff_ffff, 0xffff_fff1, 0xffff_fff8, 0xffff_ffb9, 0xffff_fffd, 0x155, 0xfff9] {
        let mut snapshot = case.snapshot.clone();
        snapshot.registers[14] = Some(link);
        let crash = case.found(&snapshot).crash.unwrap();
        assert!(crash.frame.is_none() && crash.at.is_none() && crash.stack.is_empty(), "{link:x}");
    }
    // Ten more words below the frame, where the Secure state stacks r4 to r11.
    let mut snapshot = case.snapshot.clone();
    snapshot.registers[14] = Some(0xffff_ffd9);
    snapshot.registers[13] = snapshot.registers[13].map(|pointer| pointer - 40);
    let crash = case.found(&snapshot).crash.unwrap();
    assert_eq!(crash.frame.map(|frame| frame.words[6]), Some(0x154));
}
