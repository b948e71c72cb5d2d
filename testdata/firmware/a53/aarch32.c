/* The task that runs in AArch32, T32 after its first instructions, between tasks in AArch64. Linked separately, without data. */
#include "work.h"

static uint32_t supervisor_call(uint32_t wish)
{
    register uint32_t argument __asm__("r0") = wish;
    __asm__ volatile("svc #1" : "+r"(argument) : : "memory", "cc");
    return argument;
}

void aarch32_main(void)
{
    uint32_t sum = 0;
    for (uint32_t round = 0; round < 4; round++) {
        sum += fibonacci(3 + round) + gcd(60, 42 + 6 * round) + count_words("a task of old ");
        sum += (uint32_t)clamp((int32_t)round - 2, -1, 1);
        sum += supervisor_call(1 + round % 3);
        /* A breakpoint takes two bytes, the kernel skips four. */
        __asm__ volatile("bkpt #0\n\tnop" : : : "memory");
    }
    supervisor_call(5);
    for (;;)
        supervisor_call(sum & 0);
}

/* The task begins in A32. */
__asm__(".section .entry, \"ax\", %progbits\n"
        ".arm\n"
        ".global aarch32_entry\n"
        ".type aarch32_entry, %function\n"
        "aarch32_entry:\n"
        "cmp sp, #0\n"
        "moveq sp, lr\n"
        "blx aarch32_main\n"
        "b .\n"
        ".text\n");
