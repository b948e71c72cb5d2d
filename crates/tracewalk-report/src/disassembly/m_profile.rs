//! Encodings with another meaning in M profile (ARMv8-M Architecture Reference Manual, DDI 0553B, C2.4). The disassembler is made
//! from A-profile tables, which lack them.

use super::instruction::Disassembled;

/// The instruction, if its encoding has another meaning in M profile.
pub(super) fn disassemble(first: u16, second: Option<u16>) -> Option<Disassembled> {
    let Some(second) = second else { return non_secure_branch(first) };
    let (mnemonic, operands) = match (first, second) {
        (0xe97f, 0xe97f) => ("sg", String::new()),
        // MRS: 1111 0011 1110 1111 | 1000 dddd SYSm
        (0xf3ef, 0x8000..=0x8fff) => ("mrs", format!("{}, {}", register(second >> 8), special(second)?)),
        // MSR: 1111 0011 1000 nnnn | 1000 mask 00 SYSm
        (0xf380..=0xf38f, _) if second & 0xf300 == 0x8000 => {
            ("msr", format!("{}{}, {}", special(second)?, written_flags(second), register(first)))
        }
        // TT: 1110 1000 0100 nnnn | 1111 dddd A T 00 0000
        (0xe840..=0xe84f, _) if second & 0xf03f == 0xf000 => {
            let mnemonic = match (second >> 6) & 0b11 {
                0b00 => "tt",
                0b01 => "ttt",
                0b10 => "tta",
                _ => "ttat",
            };
            (mnemonic, format!("{}, {}", register(second >> 8), register(first)))
        }
        _ => return None,
    };
    Some(text(4, mnemonic, operands))
}

/// BXNS and BLXNS: 0100 0111 L mmmm 100.
fn non_secure_branch(code: u16) -> Option<Disassembled> {
    let mnemonic = match code & 0xff87 {
        0x4704 => "bxns",
        0x4784 => "blxns",
        _ => return None,
    };
    Some(text(2, mnemonic, register(code >> 3)))
}

fn text(bytes: u8, mnemonic: &str, operands: String) -> Disassembled {
    Disassembled { bytes, mnemonic: mnemonic.to_owned(), operands, target: None, literal: None }
}

/// The name of the core register in the low four bits.
fn register(number: u16) -> String {
    match number & 0xf {
        13 => "sp".to_owned(),
        14 => "lr".to_owned(),
        15 => "pc".to_owned(),
        number => format!("r{number}"),
    }
}

/// The special register SYSm in the low eight bits (DDI 0553B, "MRS").
fn special(second: u16) -> Option<&'static str> {
    Some(match second & 0xff {
        0x00 => "apsr",
        0x01 => "iapsr",
        0x02 => "eapsr",
        0x03 => "xpsr",
        0x05 => "ipsr",
        0x06 => "epsr",
        0x07 => "iepsr",
        0x08 => "msp",
        0x09 => "psp",
        0x0a => "msplim",
        0x0b => "psplim",
        0x10 => "primask",
        0x11 => "basepri",
        0x12 => "basepri_max",
        0x13 => "faultmask",
        0x14 => "control",
        0x88 => "msp_ns",
        0x89 => "psp_ns",
        0x8a => "msplim_ns",
        0x8b => "psplim_ns",
        0x90 => "primask_ns",
        0x91 => "basepri_ns",
        0x93 => "faultmask_ns",
        0x94 => "control_ns",
        0x98 => "sp_ns",
        _ => return None,
    })
}

/// The parts of a status register that MSR writes; empty for other registers.
fn written_flags(second: u16) -> &'static str {
    match (second & 0xff, (second >> 10) & 0b11) {
        (0x00..=0x03, 0b01) => "_g",
        (0x00..=0x03, 0b10) => "_nzcvq",
        (0x00..=0x03, 0b11) => "_nzcvqg",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected texts are those of arm-none-eabi-objdump 2.40 for ARMv8-M, in lower case.
    #[test]
    fn special_registers_have_their_m_profile_names() {
        let cases = [
            (0xf3ef, 0x8010, "mrs r0, primask"),
            (0xf3ef, 0x8314, "mrs r3, control"),
            (0xf3ef, 0x8009, "mrs r0, psp"),
            (0xf380, 0x8811, "msr basepri, r0"),
            (0xf383, 0x8808, "msr msp, r3"),
            (0xf380, 0x8800, "msr apsr_nzcvq, r0"),
            (0xe841, 0xf000, "tt r0, r1"),
            (0xe97f, 0xe97f, "sg"),
        ];
        for (first, second, expected) in cases {
            let text = disassemble(first, Some(second)).unwrap();
            assert_eq!(format!("{} {}", text.mnemonic, text.operands).trim(), expected);
        }
        assert_eq!(disassemble(0x479c, None).unwrap().mnemonic, "blxns");
        assert_eq!(disassemble(0x4770, None), None);
    }
}
