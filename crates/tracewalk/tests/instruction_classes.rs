//! The corpus's table of encodings, each read by hand from the manual or by another decoder.

use serde_json::Value;
use tracewalk::ids::{Address, Isa};
use tracewalk::isa::{Barrier, Class, Instruction, Return, classify};

/// The address that the table's targets are given for.
const ADDRESS: Address = Address::new(0xc000_8000);

/// The table's entries.
fn instruction_classes() -> Vec<Value> {
    let vectors = crate::support::vectors_file();
    vectors["instruction_classes"].as_array().expect("the table is an array").clone()
}

fn isa(entry: &Value) -> Isa {
    match entry["isa"].as_str() {
        Some("A32") => Isa::A32,
        Some("T32") => Isa::T32,
        other => panic!("found instruction set {other:?}, expected A32 or T32"),
    }
}

/// The encoding's bytes in memory: an A32 word, or T32 halfwords, little-endian.
fn code(entry: &Value) -> Vec<u8> {
    let encoding = entry["encoding"].as_str().expect("an encoding is a string");
    encoding
        .split(' ')
        .flat_map(|unit| {
            let bytes = u32::from_str_radix(unit, 16).expect("an encoding is hexadecimal").to_le_bytes();
            bytes[..unit.len() / 2].to_vec()
        })
        .collect()
}

fn class_name(instruction: &Instruction) -> &'static str {
    match instruction.class {
        Class::Other => "other",
        Class::Direct(_) => "direct",
        Class::Indirect => "indirect",
        Class::Barrier(Barrier::Isb) => "isb",
        Class::Barrier(Barrier::Dsb | Barrier::Dmb) => "dmb_dsb",
        Class::Wait => "wfx",
        Class::TransactionStart => "tstart",
    }
}

fn target_address(entry: &Value) -> Option<Address> {
    let text = entry["target_if_at_0xC0008000"].as_str()?;
    let number = u32::from_str_radix(text.trim_start_matches("0x"), 16).expect("a target is hexadecimal");
    Some(Address::from(number))
}

#[tracewalk_corpus::test]
fn every_encoding_of_the_table_has_its_class_link_condition_and_target() {
    let entries = instruction_classes();
    for entry in &entries {
        let name = &entry["mnemonic"];
        let code = code(entry);
        let instruction = classify(&code, ADDRESS, isa(entry)).expect("the whole instruction is there");
        assert_eq!(usize::from(instruction.bytes), code.len(), "size of {name}");
        // WFI and WFE are waypoints in none of the traces that this table is for.
        let class = match class_name(&instruction) {
            "wfx" => "other",
            class => class,
        };
        assert_eq!(Some(class), entry["class"].as_str(), "class of {name}");
        assert_eq!(Some(instruction.link), entry["link"].as_bool(), "link of {name}");
        let conditional = entry["conditional_by_encoding"].as_bool();
        assert_eq!(Some(instruction.conditional), conditional, "condition of {name}");
        if let (Some(expected), Class::Direct(target)) = (target_address(entry), instruction.class) {
            assert_eq!(target.address, expected, "target of {name}");
            let changes_isa = entry["to_other_isa"].as_bool() == Some(true);
            assert_eq!(target.isa != isa(entry), changes_isa, "instruction set after {name}");
        }
    }
    assert!(entries.len() >= 92, "found {} entries, expected at least 92", entries.len());
}

/// The entries for 64-bit processors and for ARMv8-M.
#[tracewalk_corpus::test]
fn every_encoding_of_the_table_for_later_architectures_has_its_class_link_condition_and_target() {
    let corpus = crate::support::corpus();
    let text = std::fs::read_to_string(corpus.join("a64-classes.json")).expect("the table is readable");
    let table = serde_json::from_str::<Value>(&text).expect("the table is JSON");
    let entries = table["instruction_classes"].as_array().expect("the table is an array");
    for entry in entries {
        let name = &entry["mnemonic"];
        let (isa, at, target) = match entry["isa"].as_str() {
            Some("A64") => (Isa::A64, 0x40_0000, "target_if_at_0x400000"),
            Some("T32") => (Isa::T32, 0x2000, "target_if_at_0x2000"),
            other => panic!("found instruction set {other:?}, expected A64 or T32"),
        };
        let code = code(entry);
        let instruction = classify(&code, Address::new(at), isa).expect("the whole instruction is there");
        assert_eq!(usize::from(instruction.bytes), code.len(), "size of {name}");
        // The table does not name the barriers that are waypoints in none of these traces.
        let class = match class_name(&instruction) {
            "dmb_dsb" => "other",
            class => class,
        };
        assert_eq!(Some(class), entry["class"].as_str(), "class of {name}");
        assert_eq!(Some(instruction.link), entry["link"].as_bool(), "link of {name}");
        let conditional = entry["conditional_by_encoding"].as_bool();
        assert_eq!(Some(instruction.conditional), conditional, "condition of {name}");
        let returns = instruction.returns.map(|returns| match returns {
            Return::Function => "function",
            Return::Exception => "exception",
        });
        assert_eq!(returns, entry["return"].as_str(), "return of {name}");
        let found = match instruction.class {
            Class::Direct(target) => Some((target.address.get(), target.isa)),
            _ => None,
        };
        let expected = crate::support::number(&entry[target]);
        assert_eq!(found, expected.map(|address| (address, isa)), "target of {name}");
    }
    assert!(entries.len() >= 144, "found {} entries, expected at least 144", entries.len());
}
