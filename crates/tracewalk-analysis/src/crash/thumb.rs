//! The effect of a Thumb instruction on core registers and memory (ARMv7-M Architecture Reference Manual, DDI 0403E, A5.2 and
//! A5.3).
//!
//! Instructions that are not described in full are [opaque](Effect::opaque), so that no conclusion rests on them. Flags are not
//! followed.

mod effect;
mod narrow;
mod wide;

pub(super) use effect::{Base, Effect, LR, Operand, Operation, PC, SP, Source, Transfer};
use narrow::narrow;
use wide::wide;

impl Effect {
    /// The effect of the instruction at `at`, with which `code` begins.
    pub(super) fn of(at: u32, code: &[u8]) -> Self {
        let half = |offset: usize| {
            let bytes = code.get(offset..)?.first_chunk()?;
            Some(u32::from(u16::from_le_bytes(*bytes)))
        };
        match (half(0), half(2)) {
            (Some(first), Some(second)) if first >> 11 >= 0b11101 => wide(at, first, second),
            (Some(first), _) if first >> 11 < 0b11101 => narrow(at, first),
            _ => Self::opaque(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(code: &[u8]) -> Effect {
        Effect::of(0x100, code)
    }

    #[test]
    fn pushes_and_pops_move_the_stack_pointer() {
        // push {r4, lr}; pop {r4, pc}
        let push = effect(&[0x10, 0xb5]);
        assert_eq!(push.stores.iter().map(|store| store.register).collect::<Vec<_>>(), [4, LR]);
        assert_eq!(push.stores[1].offset, Operand::Constant(4_u32.wrapping_neg()));
        let pop = effect(&[0x10, 0xbd]);
        assert_eq!(pop.loads[1].register, PC);
        let sum = |by| (SP, Source::Computed(Operation::Add, SP, Operand::Constant(by)));
        assert_eq!(push.writes, [sum(8_u32.wrapping_neg())]);
        assert_eq!(pop.writes, [(4, Source::Loaded(0)), sum(8)]);
        // push.w {r4, r8, lr}; sub sp, #12
        assert_eq!(effect(&[0x2d, 0xe9, 0x10, 0x41]).writes, [sum(12_u32.wrapping_neg())]);
        assert_eq!(effect(&[0x83, 0xb0]).writes, [sum(12_u32.wrapping_neg())]);
    }

    #[test]
    fn loads_have_their_addresses() {
        // ldr r3, [pc, #28] at 0x100; ldr r3, [r3, #64]; ldr.w r0, [r1, r2, lsl #2]; ldr.w r2, [r4], #-4
        let transfer = |base, offset| Transfer { base, offset, bytes: 4, register: 3 };
        let literal = effect(&[0x07, 0x4b]);
        assert_eq!(literal.loads, [transfer(Base::Constant(0x104), Operand::Constant(28))]);
        assert_eq!(effect(&[0x1b, 0x6c]).loads, [transfer(Base::Register(3), Operand::Constant(64))]);
        let indexed = effect(&[0x51, 0xf8, 0x22, 0x00]);
        assert_eq!(indexed.loads[0].offset, Operand::Register(2, 2));
        let after = effect(&[0x54, 0xf8, 0x04, 0x29]);
        assert_eq!(after.loads[0].offset, Operand::Constant(0));
        assert_eq!(after.writes[1].0, 4);
    }

    #[test]
    fn constants_are_put_together() {
        // movw r0, #0x1234; movt r0, #0x8765; mov.w r1, #0xff00ff00; blx r3; udiv r0, r1, r2
        assert_eq!(effect(&[0x41, 0xf2, 0x34, 0x20]).writes, [(0, Source::Constant(0x1234))]);
        let top = Source::Computed(Operation::Top, 0, Operand::Constant(0x8765));
        assert_eq!(effect(&[0xc8, 0xf2, 0x65, 0x70]).writes, [(0, top)]);
        assert_eq!(Operation::Top.of(0x1234, 0x8765), 0x8765_1234);
        assert_eq!(effect(&[0x4f, 0xf0, 0xff, 0x21]).writes, [(1, Source::Constant(0xff00_ff00))]);
        assert_eq!(effect(&[0x98, 0x47]).branches_to, Some(3));
        assert_eq!(effect(&[0x98, 0x47]).writes, [(LR, Source::Constant(0x103))]);
        assert_eq!(effect(&[0xb1, 0xfb, 0xf2, 0xf0]).divides_by, Some(2));
        // ldc p1, c8, [r2]
        assert!(effect(&[0x92, 0xed, 0x00, 0x81]).opaque);
    }

    /// Encodings from an assembler: `arm-none-eabi-objdump -d` of testdata/firmware/crash/float-m4.elf has most of them.
    #[test]
    fn floating_point_keeps_to_its_registers() {
        // vmul.f32 s0, s0, s15; vmov s15, r2; vmrs APSR_nzcv, fpscr
        for code in [[0x20, 0xee, 0x27, 0x0a], [0x07, 0xee, 0x90, 0x2a], [0xf1, 0xee, 0x10, 0xfa]] {
            assert_eq!(effect(&code), Effect::default());
        }
        // vmov r1, s15; vmov r2, r3, d0
        assert_eq!(effect(&[0x17, 0xee, 0x90, 0x1a]).writes, [(1, Source::Unknown)]);
        let both = [(2, Source::Unknown), (3, Source::Unknown)];
        assert_eq!(effect(&[0x53, 0xec, 0x10, 0x2b]).writes, both);
        // vldr s0, [r3, #16]; vstr s0, [r4, #16]
        let load = effect(&[0x93, 0xed, 0x04, 0x0a]);
        assert_eq!((load.loads[0].base, load.loads[0].offset), (Base::Register(3), Operand::Constant(16)));
        assert_eq!((load.loads.len(), load.writes.len()), (1, 0));
        assert_eq!(effect(&[0x84, 0xed, 0x04, 0x0a]).stores[0].base, Base::Register(4));
        // vpush {d8}; vpop {d8}
        let sum = |by| (SP, Source::Computed(Operation::Add, SP, Operand::Constant(by)));
        let push = effect(&[0x2d, 0xed, 0x02, 0x8b]);
        assert_eq!((push.stores.len(), push.stores[0].offset), (2, Operand::Constant(8_u32.wrapping_neg())));
        assert_eq!(push.writes, [sum(8_u32.wrapping_neg())]);
        assert_eq!(effect(&[0xbd, 0xec, 0x02, 0x8b]).writes, [sum(8)]);
    }
}
