//! Configurations and packets of ETMv4: with speculation and cycle counts, with either, and with neither.

use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::SourceConfig;
use crate::protocol::etmv4::{Config, Profile, Registers};

/// A-sync, trace info without sections, and the address of the code's start.
pub(super) fn start() -> Vec<u8> {
    [&[0; 11][..], &[0x80], &[0x01, 0x00], &[0x9b, 0x00, 0x10, 0x00, 0x00]].concat()
}

pub(super) fn any_config() -> impl Strategy<Value = SourceConfig> {
    let config = |(configr, greatest_speculation): (u32, u32)| {
        let registers = Registers {
            trcconfigr: Some(1 | configr),
            // Without bit 29, cycle counts commit.
            trcidr0: Some(if greatest_speculation > 0 { 0x0800_06e1 } else { 0x2800_06e1 }),
            trcidr1: Some(0x4100_f421),
            trcidr2: Some(0x4),
            trcidr8: Some(greatest_speculation),
            ..Registers::default()
        };
        SourceConfig::Etmv4(Config::from_registers(registers, Some(Profile::M)).expect("sound registers"))
    };
    // CCI, RS.
    let bits = prop_oneof![Just(0_u32), Just(0x10), Just(0x1000), Just(0x1010)];
    (bits, prop_oneof![Just(0_u32), Just(0), Just(3), Just(30)]).prop_map(config)
}

/// Atoms and addresses, and fewer of the others.
pub(super) fn any_packet() -> impl Strategy<Value = Vec<u8>> {
    let atoms = prop_oneof![0xf6..=0xff_u8, 0xd5..=0xdf_u8, Just(0xc0), Just(0xe1)];
    let to = || 0..24_u8;
    prop_oneof![
        12 => atoms.prop_map(|header| vec![header]),
        6 => to().prop_map(|to| vec![0x96, to]),
        3 => (0x90..=0x92_u8).prop_map(|header| vec![header]),
        1 => to().prop_map(|to| vec![0x9b, to, 0x10, 0, 0]),
        // Commit, cancel, mispredict.
        3 => (0..6_u8).prop_map(|count| vec![0x2d, count]),
        2 => (0x2e..=0x2f_u8, 0..4_u8).prop_map(|(header, count)| vec![header, count]),
        3 => (0x30..=0x3f_u8).prop_map(|header| vec![header]),
        // Cycle counts of the formats 3, 2 and 1.
        3 => (0x10..=0x1f_u8).prop_map(|header| vec![header]),
        1 => (0x0c..=0x0d_u8, any::<u8>()).prop_map(|(header, counts)| vec![header, counts]),
        1 => (0..4_u8, 0..0x80_u8).prop_map(|(commit, count)| vec![0x0e, commit, count]),
        // Exceptions with their addresses, and returns.
        2 => (0..16_u8, to()).prop_map(|(number, to)| vec![0x06, 0x01 | number << 1, 0x96, to]),
        1 => (0..16_u8, to()).prop_map(|(number, to)| vec![0x06, 0x40 | number << 1, 0x96, to]),
        1 => Just(vec![0x07]),
        1 => Just(vec![0x81, 0x01]),
        1 => Just(vec![0x71]),
        1 => (0..128_u8).prop_map(|time| vec![0x02, time]),
        1 => Just(vec![0x04]),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
    ]
}
