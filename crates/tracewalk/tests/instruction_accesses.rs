//! Memory accesses of encodings that GNU as assembled, beside the text that objdump gives for them. The
//! expected accesses follow from the text, by the manual's pseudocode.

use tracewalk::ids::{Address, Isa};
use tracewalk::isa::{Access, Direction, classify};

const NONE: Option<Access> = None;

const fn load(bytes: u8, transfers: u8) -> Option<Access> {
    Some(Access { direction: Direction::Load, bytes, transfers })
}

const fn store(bytes: u8, transfers: u8) -> Option<Access> {
    Some(Access { direction: Direction::Store, bytes, transfers })
}

const fn swap(bytes: u8, transfers: u8) -> Option<Access> {
    Some(Access { direction: Direction::Swap, bytes, transfers })
}

const fn any(direction: Direction) -> Option<Access> {
    Some(Access { direction, bytes: 0, transfers: 0 })
}

/// An encoding, its text and its accesses.
type Row = (&'static str, &'static str, Option<Access>);

#[rustfmt::skip]
const A32: &[Row] = &[
    ("e5921004", "ldr r1, [r2, #4]", load(4, 1)),
    ("e7921103", "ldr r1, [r2, r3, lsl #2]", load(4, 1)),
    ("e4021004", "str r1, [r2], #-4", store(4, 1)),
    ("e5d21000", "ldrb r1, [r2]", load(1, 1)),
    ("e4e21001", "strbt r1, [r2], #1", store(1, 1)),
    ("e4b21000", "ldrt r1, [r2], #0", load(4, 1)),
    ("e1d210b0", "ldrh r1, [r2]", load(2, 1)),
    ("e18210b3", "strh r1, [r2, r3]", store(2, 1)),
    ("e1d210d0", "ldrsb r1, [r2]", load(1, 1)),
    ("e1d210f2", "ldrsh r1, [r2, #2]", load(2, 1)),
    ("e0f210b2", "ldrht r1, [r2], #2", load(2, 1)),
    ("e1c420d0", "ldrd r2, [r4]", load(4, 2)),
    ("e18420f5", "strd r2, [r4, r5]", store(4, 2)),
    ("e1031092", "swp r1, r2, [r3]", swap(4, 1)),
    ("e1431092", "swpb r1, r2, [r3]", swap(1, 1)),
    ("e1921f9f", "ldrex r1, [r2]", load(4, 1)),
    ("e1831f92", "strex r1, r2, [r3]", store(4, 1)),
    ("e1b42f9f", "ldrexd r2, [r4]", load(8, 1)),
    ("e1a41f92", "strexd r1, r2, [r4]", store(8, 1)),
    ("e1d21f9f", "ldrexb r1, [r2]", load(1, 1)),
    ("e1e31f92", "strexh r1, r2, [r3]", store(2, 1)),
    ("e52d4004", "push {r4}", store(4, 1)),
    ("e92d4030", "push {r4, r5, lr}", store(4, 3)),
    ("e8bd8030", "pop {r4, r5, pc}", load(4, 3)),
    ("e9301ffe", "ldmdb r0!, {r1, r2, r3, r4, r5, r6, r7, r8, r9, sl, fp, ip}", load(4, 12)),
    ("e9804002", "stmib r0, {r1, lr}", store(4, 2)),
    ("e8d00006", "ldm r0, {r1, r2}^", load(4, 2)),
    ("e8fdffff", "ldm sp!, {r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, sl, fp, ip, sp, lr, pc}^", load(4, 16)),
    ("f96d0513", "srsdb sp!, #19", store(4, 2)),
    ("f8b00a00", "rfeia r0!", load(4, 2)),
    ("ecb05e01", "ldc 14, cr5, [r0], #4", load(4, 1)),
    ("fd805e01", "stc2 14, cr5, [r0, #4]", store(4, 1)),
    ("ed910a00", "vldr s0, [r1]", load(4, 1)),
    ("ed911b02", "vldr d1, [r1, #8]", load(4, 2)),
    ("edc10b00", "vstr d16, [r1]", store(4, 2)),
    ("ed2d8b10", "vpush {d8-d15}", store(4, 16)),
    ("ecbd8a03", "vpop {s16-s18}", load(4, 3)),
    ("ecb00b08", "vldmia r0!, {d0-d3}", load(4, 8)),
    ("ed200a01", "vstmdb r0!, {s0}", store(4, 1)),
    ("ecb00b05", "fldmiax r0!, {d0-d1}", load(4, 4)),
    ("f420070f", "vld1.8 {d0}, [r0]", load(1, 8)),
    ("f420020d", "vld1.8 {d0-d3}, [r0]!", load(1, 32)),
    ("f42006cf", "vld1.64 {d0-d2}, [r0]", load(8, 3)),
    ("f4000a41", "vst1.16 {d0-d1}, [r0], r1", store(2, 8)),
    ("f420098f", "vld2.32 {d0,d2}, [r0]", load(4, 4)),
    ("f420030f", "vld2.8 {d0-d3}, [r0]", load(1, 32)),
    ("f400044f", "vst3.16 {d0-d2}, [r0]", store(2, 12)),
    ("f420008f", "vld4.32 {d0-d3}, [r0]", load(4, 8)),
    ("f4a0088f", "vld1.32 {d0[1]}, [r0]", load(4, 1)),
    ("f480054f", "vst2.16 {d0[1],d1[1]}, [r0]", store(2, 2)),
    ("f4a0024f", "vld3.8 {d0[2],d1[2],d2[2]}, [r0]", load(1, 3)),
    ("f4a00b4f", "vld4.32 {d0[0],d2[0],d4[0],d6[0]}, [r0]", load(4, 4)),
    ("f4a00c4f", "vld1.16 {d0[]}, [r0]", load(2, 1)),
    ("f4a00c2f", "vld1.8 {d0[]-d1[]}, [r0]", load(1, 1)),
    ("f4a00fdf", "vld4.32 {d0[]-d3[]}, [r0 :128]", load(4, 4)),
    ("f4a00d8f", "vld2.32 {d0[]-d1[]}, [r0]", load(4, 2)),
    ("f5d0f000", "pld [r0]", NONE),
    ("f590f004", "pldw [r0, #4]", NONE),
    ("f4d0f000", "pli [r0]", NONE),
    ("f57ff01f", "clrex", NONE),
    ("ee110f10", "mrc 15, 0, r0, cr1, cr0, {0}", NONE),
    ("ec410b10", "vmov d0, r0, r1", NONE),
    ("ee000a10", "vmov s0, r0", NONE),
    ("ec510f02", "mrrc 15, 0, r0, r1, cr2", NONE),
    ("ee300a81", "vadd.f32 s0, s1, s2", NONE),
    ("e0000291", "mul r0, r1, r2", NONE),
    ("e160006e", "eret", NONE),
    ("e1600070", "smc 0", NONE),
    ("e1400070", "hvc 0", NONE),
    ("e1200071", "bkpt 0x0001", NONE),
    ("ef000001", "svc 0x00000001", NONE),
    ("e7f000f1", "udf #1", NONE),
];

#[rustfmt::skip]
const T32: &[Row] = &[
    ("6851", "ldr r1, [r2, #4]", load(4, 1)),
    ("4901", "ldr r1, [pc, #4]", load(4, 1)),
    ("9901", "ldr r1, [sp, #4]", load(4, 1)),
    ("50d1", "str r1, [r2, r3]", store(4, 1)),
    ("52d1", "strh r1, [r2, r3]", store(2, 1)),
    ("54d1", "strb r1, [r2, r3]", store(1, 1)),
    ("56d1", "ldrsb r1, [r2, r3]", load(1, 1)),
    ("5ad1", "ldrh r1, [r2, r3]", load(2, 1)),
    ("5cd1", "ldrb r1, [r2, r3]", load(1, 1)),
    ("5ed1", "ldrsh r1, [r2, r3]", load(2, 1)),
    ("7851", "ldrb r1, [r2, #1]", load(1, 1)),
    ("8051", "strh r1, [r2, #2]", store(2, 1)),
    ("9101", "str r1, [sp, #4]", store(4, 1)),
    ("b510", "push {r4, lr}", store(4, 2)),
    ("b4ff", "push {r0, r1, r2, r3, r4, r5, r6, r7}", store(4, 8)),
    ("bd10", "pop {r4, pc}", load(4, 2)),
    ("bcf0", "pop {r4, r5, r6, r7}", load(4, 4)),
    ("c80e", "ldmia r0!, {r1, r2, r3}", load(4, 3)),
    ("c002", "stmia r0!, {r1}", store(4, 1)),
    ("f8d2 1190", "ldr.w r1, [r2, #400]", load(4, 1)),
    ("f852 1904", "ldr.w r1, [r2], #-4", load(4, 1)),
    ("f852 1c04", "ldr.w r1, [r2, #-4]", load(4, 1)),
    ("f852 1e00", "ldrt r1, [r2]", load(4, 1)),
    ("f852 1023", "ldr.w r1, [r2, r3, lsl #2]", load(4, 1)),
    ("f85f 1008", "ldr.w r1, [pc, #-8]", load(4, 1)),
    ("f8df f008", "ldr.w pc, [pc, #8]", load(4, 1)),
    ("f85d fb04", "ldr.w pc, [sp], #4", load(4, 1)),
    ("f850 f021", "ldr.w pc, [r0, r1, lsl #2]", load(4, 1)),
    ("f882 1190", "strb.w r1, [r2, #400]", store(1, 1)),
    ("f822 1b02", "strh.w r1, [r2], #2", store(2, 1)),
    ("f842 1003", "str.w r1, [r2, r3]", store(4, 1)),
    ("f9b2 1190", "ldrsh.w r1, [r2, #400]", load(2, 1)),
    ("f912 1c01", "ldrsb.w r1, [r2, #-1]", load(1, 1)),
    ("f89f 1008", "ldrb.w r1, [pc, #8]", load(1, 1)),
    ("f890 f000", "pld [r0]", NONE),
    ("f89f f004", "pld [pc, #4]", NONE),
    ("f910 fc04", "pli [r0, #-4]", NONE),
    ("f8b0 f000", "pldw [r0]", NONE),
    ("e9d2 0102", "ldrd r0, r1, [r2, #8]", load(4, 2)),
    ("e8e2 0102", "strd r0, r1, [r2], #8", store(4, 2)),
    ("e9df 0102", "ldrd r0, r1, [pc, #8]", load(4, 2)),
    ("e851 0f01", "ldrex r0, [r1, #4]", load(4, 1)),
    ("e842 1000", "strex r0, r1, [r2]", store(4, 1)),
    ("e8d1 0f4f", "ldrexb r0, [r1]", load(1, 1)),
    ("e8d1 0f5f", "ldrexh r0, [r1]", load(2, 1)),
    ("e8d2 017f", "ldrexd r0, r1, [r2]", load(8, 1)),
    ("e8c2 1f40", "strexb r0, r1, [r2]", store(1, 1)),
    ("e8c3 1270", "strexd r0, r1, r2, [r3]", store(8, 1)),
    ("e8df f000", "tbb [pc, r0]", load(1, 1)),
    ("e8df f010", "tbh [pc, r0, lsl #1]", load(2, 1)),
    ("e930 4006", "ldmdb r0!, {r1, r2, lr}", load(4, 3)),
    ("e92d 5fff", "stmdb sp!, {r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, sl, fp, ip, lr}", store(4, 14)),
    ("e8bd 8ff0", "ldmia.w sp!, {r4, r5, r6, r7, r8, r9, sl, fp, pc}", load(4, 9)),
    ("e82d c013", "srsdb sp!, #19", store(4, 2)),
    ("e9b0 c000", "rfeia r0!", load(4, 2)),
    ("ed91 0b00", "vldr d0, [r1]", load(4, 2)),
    ("ed2d 8b04", "vpush {d8-d9}", store(4, 4)),
    ("f920 0a0f", "vld1.8 {d0-d1}, [r0]", load(1, 16)),
    ("f9a0 088f", "vld1.32 {d0[1]}, [r0]", load(4, 1)),
    ("ecb0 5e01", "ldc 14, cr5, [r0], #4", load(4, 1)),
    ("f3bf 8f2f", "clrex", NONE),
    ("bf30", "wfi", NONE),
];

/// Assembled and disassembled by LLVM 22. For A64, only the direction is reported.
#[rustfmt::skip]
const A64: &[Row] = &[
    ("f9400441", "ldr x1, [x2, #0x8]", any(Direction::Load)),
    ("b8004441", "str w1, [x2], #0x4", any(Direction::Store)),
    ("b8a37841", "ldrsw x1, [x2, x3, lsl #2]", any(Direction::Load)),
    ("58000040", "ldr x0, 0x14", any(Direction::Load)),
    ("f9800020", "prfm pldl1keep, [x1]", NONE),
    ("d8000040", "prfm pldl1keep, 0x1c", NONE),
    ("f89ff020", "prfum pldl1keep, [x1, #-0x1]", NONE),
    ("a8c17bfd", "ldp x29, x30, [sp], #0x10", any(Direction::Load)),
    ("ad000400", "stp q0, q1, [x0]", any(Direction::Store)),
    ("a8400440", "ldnp x0, x1, [x2]", any(Direction::Load)),
    ("3dc00420", "ldr q0, [x1, #0x10]", any(Direction::Load)),
    ("3d000020", "str b0, [x1]", any(Direction::Store)),
    ("c85f7c20", "ldxr x0, [x1]", any(Direction::Load)),
    ("c8200c22", "stxp w0, x2, x3, [x1]", any(Direction::Store)),
    ("88dffc20", "ldar w0, [x1]", any(Direction::Load)),
    ("889ffc20", "stlr w0, [x1]", any(Direction::Store)),
    ("c8a07c41", "cas x0, x1, [x2]", any(Direction::Swap)),
    ("48207c82", "casp x0, x1, x2, x3, [x4]", any(Direction::Swap)),
    ("f8208041", "swp x0, x1, [x2]", any(Direction::Swap)),
    ("f8200041", "ldadd x0, x1, [x2]", any(Direction::Swap)),
    ("b820305f", "stset w0, [x2]", any(Direction::Swap)),
    ("f8bfc020", "ldapr x0, [x1]", any(Direction::Load)),
    ("d9408020", "ldapur x0, [x1, #0x8]", any(Direction::Load)),
    ("d9008020", "stlur x0, [x1, #0x8]", any(Direction::Store)),
    ("f8201420", "ldraa x0, [x1, #0x8]", any(Direction::Load)),
    ("f83fd020", "ld64b x0, [x1]", any(Direction::Load)),
    ("f820b022", "st64bv x0, x2, [x1]", any(Direction::Store)),
    ("4c40a000", "ld1 { v0.16b, v1.16b }, [x0]", any(Direction::Load)),
    ("0d202400", "st4 { v0.b, v1.b, v2.b, v3.b }[1], [x0]", any(Direction::Store)),
    ("4d40c800", "ld1r { v0.4s }, [x0]", any(Direction::Load)),
    ("d9600020", "ldg x0, [x1]", any(Direction::Load)),
    ("d9200820", "stg x0, [x1]", any(Direction::Store)),
    ("69000440", "stgp x0, x1, [x2]", any(Direction::Store)),
    ("d9200020", "stzgm x0, [x1]", any(Direction::Store)),
    ("1d010440", "cpyp [x0]!, [x1]!, x2!", any(Direction::Swap)),
    ("19c20420", "setp [x0]!, x1!, x2", any(Direction::Store)),
    ("1ddf0020", "setgop [x0]!, x1!", any(Direction::Store)),
    ("c5e1c000", "ld1d { z0.d }, p0/z, [x0, z1.d, lsl #3]", any(Direction::Load)),
    ("e540e000", "st1w { z0.s }, p0, [x0]", any(Direction::Store)),
    ("85800000", "ldr p0, [x0]", any(Direction::Load)),
    ("e5804000", "str z0, [x0]", any(Direction::Store)),
    ("85c06000", "prfd pldl1keep, p0, [x0]", NONE),
    ("8420e020", "ldff1b { z0.s }, p0/z, [z1.s]", any(Direction::Load)),
    ("a0812000", "smopa za0.s, p0/m, p1/m, z0.b, z1.b", NONE),
    ("e0ff0000", "st1d {za0h.d[w12, 0]}, p0, [x0]", any(Direction::Store)),
    ("c95f7c20", "ldtxr x0, [x1]", any(Direction::Load)),
    ("49807c82", "caspt x0, x1, x2, x3, [x4]", any(Direction::Swap)),
    ("bc200041", "ldfadd s0, s1, [x2]", any(Direction::Swap)),
    ("19218040", "swpp x0, x1, [x2]", any(Direction::Swap)),
    ("d9411840", "ldiapp x0, x1, [x2]", any(Direction::Load)),
    ("d91f0c20", "gcsstr x0, [x1]", any(Direction::Store)),
    ("d50b7420", "dc zva, x0", NONE),
    ("d50b7b20", "dc cvau, x0", NONE),
    ("8b020020", "add x0, x1, x2", NONE),
    ("9e670000", "fmov d0, x0", NONE),
];

/// The bytes of a word, or of halfwords with a space between them.
fn code(hex: &str) -> Vec<u8> {
    hex.split(' ')
        .flat_map(|unit| {
            let number = u32::from_str_radix(unit, 16).expect("the table is hexadecimal");
            number.to_le_bytes().into_iter().take(unit.len() / 2)
        })
        .collect()
}

fn check(rows: &[Row], isa: Isa) {
    for &(hex, text, expected) in rows {
        let code = code(hex);
        let instruction = classify(&code, Address::new(0x8000), isa).expect("the whole instruction is there");
        assert_eq!(instruction.access, expected, "{hex} {text}");
        assert_eq!(usize::from(instruction.bytes), code.len(), "{hex} {text}");
    }
}

#[test]
fn a32_loads_and_stores_have_their_direction_size_and_number() {
    check(A32, Isa::A32);
}

#[test]
fn t32_loads_and_stores_have_their_direction_size_and_number() {
    check(T32, Isa::T32);
}

#[test]
fn a64_loads_and_stores_have_their_direction() {
    check(A64, Isa::A64);
}

#[test]
fn thumb_ee_has_loads_and_stores_in_the_place_of_ldm_and_stm() {
    // DDI 0406C, A9.3; no assembler here knows these.
    let rows = [
        ("c844", "ldr r4, [r0, #-4]", load(4, 1)),
        ("cb44", "ldr r4, [r10, #32]", load(4, 1)),
        ("cc44", "ldr r4, [r9, #32]", load(4, 1)),
        ("ce44", "str r4, [r9, #32]", store(4, 1)),
        ("ca44", "chka r4, r8", NONE),
        ("6851", "ldr r1, [r2, #4]", load(4, 1)),
    ];
    check(&rows, Isa::T32EE);
    assert_eq!(classify(&code("ce44"), Address::new(0), Isa::T32).expect("it is whole").access, load(4, 2));
}
