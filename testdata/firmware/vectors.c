// Code of Armv8.1-M for the comparison of texts with a disassembler: vectors that the compiler finds, vectors by intrinsics with and
// without predicates, shifts of 64 bits, conditional selection, and a Secure entry. It is never run.
#include <arm_cmse.h>
#include <arm_mve.h>

void scale(float *restrict to, const float *restrict from, float by, int count) {
    for (int i = 0; i < count; i++) to[i] = to[i] * by + from[i];
}

void halve(float16_t *restrict to, const float16_t *restrict from, int count) {
    for (int i = 0; i < count; i++) to[i] = from[i] * (float16_t)0.5;
}

void widen(int32_t *restrict to, const int8_t *restrict from, int count) {
    for (int i = 0; i < count; i++) to[i] = (from[i] << 3) - to[i];
}

void narrow(uint8_t *restrict to, const uint16_t *restrict from, int count) {
    for (int i = 0; i < count; i++) to[i] = from[i] >> 4;
}

void positive(int16_t *values, int count) {
    for (int i = 0; i < count; i++) values[i] = values[i] < 0 ? -values[i] : values[i] & 0x7f;
}

void masks(uint32_t *values, int count) {
    for (int i = 0; i < count; i++) values[i] = (values[i] | 0xff00) ^ ~values[i];
}

int32_t dot(const int8_t *a, const int8_t *b, int count) {
    int32_t sum = 0;
    for (; count > 0; count -= 16, a += 16, b += 16) {
        mve_pred16_t lanes = vctp8q(count);
        sum = vmladavaq_p_s8(sum, vldrbq_z_s8(a, lanes), vldrbq_z_s8(b, lanes), lanes);
    }
    return sum;
}

void clamp(int32_t *values, int32_t limit, int count) {
    for (; count > 0; count -= 4, values += 4) {
        mve_pred16_t lanes = vctp32q(count);
        int32x4_t all = vldrwq_z_s32(values, lanes);
        mve_pred16_t above = vcmpgtq_m_n_s32(all, limit, lanes);
        all = vdupq_m_n_s32(all, limit, above);
        all = vaddq_m_s32(all, all, vmvnq_n_s32(0x12), vpnot(above));
        vstrwq_p_s32(values, all, lanes);
    }
}

void scatter(uint32_t *to, const uint16_t *from, uint32x4_t places) {
    uint32x4_t values = vldrhq_gather_shifted_offset_u32(from, places);
    vstrwq_scatter_shifted_offset_u32(to, places, vrev64q_u32(values));
    vstrwq_scatter_base_u32(places, 16, vbrsrq_n_u32(values, 7));
}

void interleave(uint8_t *bytes, int16_t *halves) {
    uint8x16x4_t four = vld4q_u8(bytes);
    four.val[2] = vsliq_n_u8(four.val[0], four.val[1], 3);
    vst4q_u8(bytes + 64, four);
    int16x8x2_t two = vld2q_s16(halves);
    two.val[0] = vqrdmulhq_s16(two.val[0], two.val[1]);
    vst2q_s16(halves + 16, two);
}

uint32x4_t indices(uint32_t *start, uint32_t end) {
    return vaddq_u32(viwdupq_wb_u32(start, end, 4), vddupq_n_u32(end, 2));
}

float32x4_t rotate(float32x4_t a, float32x4_t b) {
    return vcmlaq_rot90_f32(vcmulq_rot180_f32(a, b), vcaddq_rot270_f32(a, b), vmaxnmq_f32(a, vrndaq_f32(b)));
}

int16x8_t rounds(int16x8_t a, int32x4_t b) {
    a = vqrshrnbq_n_s32(vqshrntq_n_s32(a, b, 7), b, 3);
    a = vmovnbq_s32(vrshlq_s16(a, vshlcq_s16(a, &(uint32_t){1}, 5)), vmullbq_int_s16(a, a));
    return vpselq_s16(a, vcvtq_s16_f16(vcvttq_f16_f32(vreinterpretq_f16_s16(a), vcvtq_f32_s32(b))), 0x0f0f);
}

int64_t across(int32x4_t a, int32x4_t b, int64_t sum) {
    sum = vrmlaldavhaq_s32(vmlaldavaxq_s32(vaddlvaq_s32(sum, a), a, b), a, b);
    return sum + vmaxvq_s32(vminnmavq_f32(1.0F, vreinterpretq_f32_s32(a)), b) + vgetq_lane_s8(vreinterpretq_s8_s32(a), 13);
}

int64_t shifts(int64_t value, int by) {
    value = sqrshrl(uqrshll(lsll(asrl(value, by), 7), by), 3);
    return value + sqshl(uqrshl(srshr((int32_t)value, 4), by), 2);
}

int selection(int a, int b, int c) {
    int found = a > b ? c : c + 1;
    return found + (b < c ? ~a : b) + (a == c ? -b : c) + (a != b);
}

// What this compiler does not use.
__asm__(".arch_extension pacbti\n"
        "loops: pacbti r12, lr, sp\n"
        "bf 1f, loops\n"
        "wlstp.16 lr, r2, 2f\n"
        "1: vldrh.u16 q0, [r1], #16\n"
        "vpte.f16 lt, q0, q1\n"
        "vmult.f16 q0, q0, q1\n"
        "vmove q0, q1\n"
        "letp lr, 1b\n"
        "2: dls lr, r3\n"
        "le lr, 2b\n"
        "aut r12, lr, sp\n"
        "bxaut r3, lr, sp\n");

__attribute__((cmse_nonsecure_entry)) float entry(float value) { return value * 2; }
