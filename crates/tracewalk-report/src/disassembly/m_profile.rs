//! Encodings of M profile that A profile lacks or uses otherwise (Armv8-M Architecture Reference Manual, DDI 0553B, C2.4), except for
//! those that a VPT block predicates. The disassembler is made from A-profile tables. The template module explains the rows.

use tracewalk::ids::Location;

use super::template::{Row, Written, core_register, rows, written};

#[cfg(test)]
mod tests;

/// The instruction, if its encoding is one of M profile's own; its text lacks the condition of an IT block.
pub(super) fn disassemble(word: u32, at: Location) -> Option<Written> {
    written(&ROWS, word, at)
}

/// Whether the disassembler has an instruction of A profile here that M profile lacks: BLX to A32, Advanced SIMD, banked registers,
/// or a coprocessor other than the floating-point unit's 9 to 11 and the implementer's 0 to 7. ORR, VLDM, SMMLA and SMMLS have
/// unpredictable forms where M profile selects and shifts, clears, and authenticates.
pub(super) fn is_a_profile_only(word: u32) -> bool {
    let blx = word & 0xf800_d000 == 0xf000_c000;
    let data_processing = word & 0xef00_0000 == 0xef00_0000;
    let structures = word & 0xff10_0000 == 0xf900_0000;
    let coprocessor = word & 0xec00_0000 == 0xec00_0000 && matches!(word >> 8 & 0xf, 8 | 12..=15);
    let lanes = word & 0xff00_0f10 == 0xee00_0b10 && word & 0x00c0_0060 != 0;
    let orr = word >> 20 == 0xea5 && (word & 0x8000 != 0 || word & 0b1101 == 0b1101);
    let vldm = word & 0xffbf_0e00 == 0xec9f_0a00;
    let smmla = word & 0xfff0_0fe0 == 0xfb50_0f00 || word & 0xfff0_f0f0 == 0xfb60_f000;
    let special = matches!(word & 0xffe0_d000, 0xf380_8000 | 0xf3e0_8000);
    blx || data_processing || structures || coprocessor || lanes || orr || vldm || smmla || special
}

/// BXNS and BLXNS: 0100 0111 L mmmm 100.
pub(super) fn non_secure_branch(code: u16) -> Option<Written> {
    let mnemonic = match code & 0xff87 {
        0x4704 => "bxns",
        0x4784 => "blxns",
        _ => return None,
    };
    let register = core_register(u32::from(code >> 3 & 0xf))?;
    Some(Written { text: format!("{mnemonic} {register}"), address: None })
}

static ROWS: [Row; TEXTS.len()] = rows(TEXTS);

const TEXTS: &[(&str, &str); 52] = &[
    // Security and special registers.
    ("1110 1001 0111 1111 1110 1001 0111 1111", "sg"),
    ("1110 1000 0100 nnnn 1111 dddd at00 0000", "tt<a:|a><t:|t> <rd>, <rn>"),
    ("1111 0011 1110 1111 1000 dddd yyyy yyyy", "mrs <rd>, <Yy>"),
    ("1111 0011 1000 nnnn 1000 mm00 yyyy yyyy", "msr <Yy><mm>, <rn>"),
    ("1110 1000 1001 1111 llll llll llll llll", "clrm <ll>"),
    // Pointer authentication and branch targets.
    ("1111 0011 1010 1111 1000 0000 0000 1101", "pacbti r12, lr, sp"),
    ("1111 0011 1010 1111 1000 0000 0000 1111", "bti"),
    ("1111 0011 1010 1111 1000 0000 0001 1101", "pac r12, lr, sp"),
    ("1111 0011 1010 1111 1000 0000 0010 1101", "aut r12, lr, sp"),
    ("1111 1011 0101 nnnn aaaa 1111 000x mmmm", "<x:autg|bxaut> <ra>, <rn>, <rm>"),
    ("1111 1011 0110 nnnn 1111 dddd 0000 mmmm", "pacg <rd>, <rn>, <rm>"),
    // Shifts of a register and of two. 15 in place of the upper register is for one.
    ("1110 1010 0101 dddd mmmm 1111 0000 1101", "uqrshl <rd>, <rm>"),
    ("1110 1010 0101 dddd mmmm 1111 0010 1101", "sqrshr <rd>, <rm>"),
    ("1110 1010 0101 dddd 0iii 1111 iioo 1111", "<o:uqshl|urshr|srshr|sqshl> <rd>, #<Ni>"),
    ("1110 1010 0101 lll0 0iii hhh1 iioo 1111", "<o:lsll|lsrl|asrl|-> <el>, <oh>, #<Ni>"),
    ("1110 1010 0101 lll1 0iii hhh1 iioo 1111", "<o:uqshll|urshrl|srshrl|sqshll> <el>, <oh>, #<Ni>"),
    ("1110 1010 0101 lll0 mmmm hhh1 00o0 1101", "<o:lsll|asrl> <el>, <oh>, <rm>"),
    ("1110 1010 0101 lll1 mmmm hhh1 s0o0 1101", "<o:uqrshll|sqrshrl> <el>, <oh>, #<s:64|48>, <rm>"),
    // Conditional selection.
    ("1110 1010 0101 1111 1001 dddd cccc 1111", "cset <rd>, <Cc>"),
    ("1110 1010 0101 1111 1010 dddd cccc 1111", "csetm <rd>, <Cc>"),
    ("1110 1010 0101 nnnn 1001 dddd cccc mmmm", "cinc<=> <rd>, <zn>, <Cc>"),
    ("1110 1010 0101 nnnn 1010 dddd cccc mmmm", "cinv<=> <rd>, <zn>, <Cc>"),
    ("1110 1010 0101 nnnn 1011 dddd cccc mmmm", "cneg<=> <rd>, <zn>, <Cc>"),
    ("1110 1010 0101 nnnn 10oo dddd cccc mmmm", "cs<o:el|inc|inv|neg> <rd>, <zn>, <zm>, <cc>"),
    // Loops.
    ("1111 0000 0000 1111 1100 liii iiii iii1", "le lr, <J>"),
    ("1111 0000 0010 1111 1100 liii iiii iii1", "le <J>"),
    ("1111 0000 0001 1111 1100 liii iiii iii1", "letp lr, <J>"),
    ("1111 0000 0000 1111 1110 0000 0000 0001", "lctp"),
    ("1111 0000 0100 nnnn 1110 0000 0000 0001", "dls lr, <rn>"),
    ("1111 0000 00ss nnnn 1110 0000 0000 0001", "dlstp.<s:8|16|32|64> lr, <rn>"),
    ("1111 0000 0100 nnnn 1100 liii iiii iii1", "wls lr, <rn>, <j>"),
    ("1111 0000 00ss nnnn 1100 liii iiii iii1", "wlstp.<s:8|16|32|64> lr, <rn>, <j>"),
    // Branches of the future: a branch zero halfwords ahead is one of the above.
    ("1111 0bbb b10a aaaa 1110 liii iiii iii1", "bf <b>, <j>"),
    ("1111 0bbb b0cc ccta 1110 liii iiii iii1", "bfcsel <b>, <j>, <t>, <cc>"),
    ("1111 0bbb b11o nnnn 1110 0000 0000 0001", "bf<o:|l>x <b>, <rn>"),
    ("1111 0bbb baaa aaaa 1100 liii iiii iii1", "bfl <b>, <j>"),
    // The floating-point system.
    ("1110 1110 1111 yyyy nnnn 1010 0001 0000", "vmrs <rn>, <yy>"),
    ("1110 1110 1110 yyyy nnnn 1010 0001 0000", "vmsr <yy>, <rn>"),
    ("1110 110p ayw1 nnnn yyy0 1111 1iii iiii", "vldr <yy>, <a2>"),
    ("1110 110p ayw0 nnnn yyy0 1111 1iii iiii", "vstr <yy>, <a2>"),
    ("1110 1100 1h01 1111 vvvv 1011 iiii iii0", "vscclrm <di>"),
    ("1110 1100 1h01 1111 vvvv 1010 iiii iiii", "vscclrm <si>"),
    // Lanes. Those of 32 bits are named by double registers, as on cores without vectors.
    ("1110 1110 01i0 dddh nnnn 1011 0ii1 0000", "vmov.8 <qd>[<xi>], <rn>"),
    ("1110 1110 00i0 dddh nnnn 1011 0i11 0000", "vmov.16 <qd>[<xi>], <rn>"),
    ("1110 1110 u1i1 dddh nnnn 1011 0ii1 0000", "vmov.<u:s|u>8 <rn>, <qd>[<xi>]"),
    ("1110 1110 u0i1 dddh nnnn 1011 0i11 0000", "vmov.<u:s|u>16 <rn>, <qd>[<xi>]"),
    ("1110 1100 0001 mmmm ddd0 1111 000i nnnn", "vmov <qd>[<i:2|3>], <qd>[<i:0|1>], <rn>, <rm>"),
    ("1110 1100 0000 mmmm ddd0 1111 000i nnnn", "vmov <rn>, <rm>, <qd>[<i:2|3>], <qd>[<i:0|1>]"),
    // Interleaved elements.
    ("1111 1100 10w1 nnnn ddd1 111s s0p0 0000", "vld2<np>.<s:8|16|32> <2d>, [<rn>]<w:|!>"),
    ("1111 1100 10w1 nnnn ddd1 111s spp0 0001", "vld4<np>.<s:8|16|32> <4d>, [<rn>]<w:|!>"),
    ("1111 1100 10w0 nnnn ddd1 111s s0p0 0000", "vst2<np>.<s:8|16|32> <2d>, [<rn>]<w:|!>"),
    ("1111 1100 10w0 nnnn ddd1 111s spp0 0001", "vst4<np>.<s:8|16|32> <4d>, [<rn>]<w:|!>"),
];

/// The registers of the floating-point system that M profile adds (DDI 0553B, "VLDR (System Register)"); FPSCR is one of its operands
/// there.
pub(super) fn floating_point_register(number: u32) -> Option<&'static str> {
    Some(match number {
        1 => "fpscr",
        2 => "fpscr_nzcvqc",
        12 => "vpr",
        13 => "p0",
        14 => "fpcxt_ns",
        15 => "fpcxt_s",
        _ => return None,
    })
}

/// The special register SYSm (DDI 0553B, "MRS").
pub(super) fn special(number: u32) -> Option<&'static str> {
    Some(match number {
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
pub(super) fn written_flags(special: u32, mask: u32) -> &'static str {
    match (special, mask) {
        (0x00..=0x03, 0b01) => "_g",
        (0x00..=0x03, 0b10) => "_nzcvq",
        (0x00..=0x03, 0b11) => "_nzcvqg",
        _ => "",
    }
}
