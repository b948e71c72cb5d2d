//! A program with transactions, and what an ETE trace unit would send of it.
//!
//! ```text
//! main     1000  bl work
//!          1004  b main
//! work     2000  tstart x0
//!          2004  cbnz x0, 2018       taken after a failure
//!          2008  bl helper
//!          200c  tcommit
//!          2010  nop
//!          2014  ret
//!          2018  nop
//!          201c  ret
//! helper   3000  nop
//!          3004  subs x1, x1, #1
//!          3008  b.ne 3004
//!          300c  ret
//! ```

use std::fs;
use std::path::PathBuf;

use tracewalk::ids::{Address, ContextId};
use tracewalk::protocol::etmv4::{
    AddressForm, AddressPacket, AddressUnit, Atoms, Config, Context, Encoder, Packet, Registers, SentAddress,
    TraceInfo,
};

/// `code.bin` begins at this address.
pub(crate) const BASE: Address = Address::new(0x1000);

const WORDS: [(u64, u32); 14] = [
    (0x1000, 0x9400_0400),
    (0x1004, 0x17ff_ffff),
    (0x2000, 0xd523_3060),
    (0x2004, 0xb500_00a0),
    (0x2008, 0x9400_03fe),
    (0x200c, 0xd503_307f),
    (0x2010, 0xd503_201f),
    (0x2014, 0xd65f_03c0),
    (0x2018, 0xd503_201f),
    (0x201c, 0xd65f_03c0),
    (0x3000, 0xd503_201f),
    (0x3004, 0xf100_0421),
    (0x3008, 0x54ff_ffe1),
    (0x300c, 0xd65f_03c0),
];

const IN_TRANSACTION: u64 = 0b0100_0000;

/// A trace, and what is in it.
#[derive(Default)]
pub(crate) struct Traced {
    pub bytes: Vec<u8>,
    /// The number of transactions by their end. One may be open at the end of the trace.
    pub committed: u64,
    pub failed: u64,
    pub lost: u64,
    /// All instructions that flow reports, and those of transactions without a commit.
    pub instructions: u64,
    pub uncommitted: u64,
}

/// How a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Commit,
    Failure,
    Overflow,
}

/// The registers, by the names of `capture.toml`. Whether the start of a transaction is a P0 element depends on the unit.
fn registers(start_is_p0: bool) -> Registers {
    let trcidr0 = if start_is_p0 { 0x2801_cea1 } else { 0x6801_cea1 };
    Registers {
        // With context IDs.
        trcconfigr: Some(0x41),
        trcidr0: Some(trcidr0),
        trcidr1: Some(0x4100_fff0),
        trcidr2: Some(0xd000_1088),
        trcidr8: Some(0),
        trcdevarch: Some(0x4770_5a13),
        ..Registers::default()
    }
}

/// A trace unit.
pub(crate) struct Unit {
    encoder: Encoder,
    pub traced: Traced,
    random: u64,
    /// The instructions of the open transaction.
    open: u64,
}

impl Unit {
    /// A unit whose choices depend on `seed`.
    pub(crate) fn new(seed: u64, start_is_p0: bool) -> Self {
        let (encoder, traced) = (Encoder::new(&config(start_is_p0)), Traced::default());
        Self { encoder, traced, random: seed, open: 0 }
    }

    pub(crate) fn below(&mut self, count: u64) -> u64 {
        self.random = self.random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.random >> 33) % count
    }

    fn send(&mut self, packet: &Packet) {
        self.encoder.encode(packet, &mut self.traced.bytes).expect("the unit sends such packets");
    }

    pub(crate) fn go_to(&mut self, address: u64, context: Option<Context>) {
        let sent = SentAddress {
            address: Some(Address::new(address)),
            alignment: AddressUnit::Words,
            form: AddressForm::Long32,
        };
        self.send(&Packet::Address(AddressPacket { sent, context }));
    }

    /// Some instructions, up to a P0 instruction.
    pub(crate) fn atom(&mut self, taken: bool, instructions: u64) {
        self.send(&Packet::Atom(Atoms::one(taken)));
        self.traced.instructions += instructions;
        self.open += instructions;
    }

    pub(crate) fn synchronise(&mut self, address: u64, is_inside: bool, begins: bool) {
        self.send(&Packet::ASync);
        let info = if is_inside { IN_TRANSACTION } else { 0 };
        self.send(&Packet::TraceInfo(TraceInfo { info, ..TraceInfo::default() }));
        if begins {
            self.send(&Packet::TraceOn);
        }
        self.go_to(address, Some(context(1, None)));
    }

    /// One turn of `main`, which begins at its first instruction.
    fn turn(&mut self, end: End) {
        self.atom(true, 1);
        self.atom(true, 1);
        self.send(&Packet::TransactionStart);
        self.open = 0;
        self.atom(false, 1);
        self.atom(true, 1);
        let turns = 1 + self.below(6);
        for turn in 0..turns {
            if turn == 2 && self.below(4) == 0 {
                self.synchronise(0x3004, true, false);
            }
            let is_last = turn + 1 == turns;
            self.atom(!is_last, if turn == 0 { 3 } else { 2 });
        }
        match end {
            End::Commit => {
                self.atom(true, 1);
                self.go_to(0x200c, None);
                self.send(&Packet::TransactionCommit);
                self.traced.committed += 1;
                self.atom(true, 3);
                self.go_to(0x1004, None);
                self.atom(true, 1);
            }
            End::Failure => {
                self.send(&Packet::TransactionFailure);
                self.traced.failed += 1;
                self.traced.uncommitted += self.open;
                self.go_to(0x2004, None);
                self.atom(true, 1);
                self.atom(true, 2);
                self.go_to(0x1004, None);
                self.atom(true, 1);
            }
            End::Overflow => {
                self.send(&Packet::Overflow);
                self.traced.lost += 1;
                self.traced.uncommitted += self.open;
                self.synchronise(0x1000, false, true);
            }
        }
    }
}

/// The trace of this many transactions, which end as `seed` decides. The last one has no end.
pub(crate) fn trace(transactions: u64, seed: u64, start_is_p0: bool) -> Traced {
    let mut unit = Unit::new(seed, start_is_p0);
    unit.synchronise(0x1000, false, true);
    for _ in 0..transactions {
        let end = match unit.below(16) {
            0 => End::Overflow,
            1..=6 => End::Failure,
            _ => End::Commit,
        };
        unit.turn(end);
        if unit.below(8) == 0 {
            unit.synchronise(0x1000, false, false);
        }
    }
    unit.atom(true, 1);
    unit.atom(true, 1);
    unit.send(&Packet::TransactionStart);
    unit.open = 0;
    unit.atom(false, 1);
    unit.traced.uncommitted += unit.open;
    unit.traced
}

/// A context of Non-secure state.
pub(crate) fn context(exception_level: u8, context_id: Option<ContextId>) -> Context {
    Context {
        exception_level,
        is_64_bit: true,
        non_secure: true,
        non_secure_extension: false,
        vmid: None,
        context_id,
    }
}

/// The unit's configuration.
pub(crate) fn config(start_is_p0: bool) -> Config {
    Config::from_registers(registers(start_is_p0), None).expect("an ETE's registers")
}

/// The content of `code.bin`.
pub(crate) fn code() -> Vec<u8> {
    let mut code = vec![0; 0x2010];
    for (address, word) in WORDS {
        let at = usize::try_from(address - BASE.get()).expect("the program is small");
        code[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }
    code
}

/// A folder with such a trace, its program and their description.
pub(crate) fn capture(trace: &[u8], start_is_p0: bool) -> (tempfile::TempDir, PathBuf) {
    let Registers { trcconfigr, trcidr0, trcidr1, trcidr2, trcdevarch, .. } = registers(start_is_p0);
    let given = [
        ("trcconfigr", trcconfigr),
        ("trcidr0", trcidr0),
        ("trcidr1", trcidr1),
        ("trcidr2", trcidr2),
        ("trcdevarch", trcdevarch),
    ];
    let registers =
        given.map(|(name, value)| format!("{name} = {:#x}", value.unwrap_or_default())).join(", ");
    let description = format!(
        "[capture]\nfile = \"trace.bin\"\ncontainer = \"raw\"\n\n\
         [[source]]\nprotocol = \"ete\"\nregisters = {{ {registers} }}\n\n\
         [[image]]\nfile = \"code.bin\"\naddress = {:#x}\n",
        BASE.get()
    );
    let folder = tempfile::tempdir().expect("there is room for a folder");
    for (name, bytes) in
        [("code.bin", &*code()), ("trace.bin", trace), ("capture.toml", description.as_bytes())]
    {
        fs::write(folder.path().join(name), bytes).expect("there is room for the files");
    }
    let path = folder.path().join("capture.toml");
    (folder, path)
}
