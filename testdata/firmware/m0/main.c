/*
 * Example program for a Cortex-M0, in ARMv6-M instructions only. SysTick interrupts the program at varying places and
 * pends PendSV, which is tail-chained, or a device interrupt of higher priority, which preempts SysTick and pends
 * another device interrupt.
 */
#include "cortex-m.h"

static volatile uint32_t ticks;
static volatile uint32_t deferred;
static volatile uint32_t device_interrupts[2];
static uint32_t tick_seed = 3;

/* The program's results, for a debugger. */
volatile uint32_t results[6];

void SysTick_Handler(void)
{
    ticks++;
    SYST_RVR = 250 + (next_random(&tick_seed) & 127);
    if (ticks % 3 == 0)
        SCB_ICSR = PENDSVSET;
    if (ticks % 5 == 0)
        NVIC_ISPR0 = 1u << 1;
}

void PendSV_Handler(void)
{
    deferred++;
}

void IRQ0_Handler(void)
{
    device_interrupts[0] += gcd(12, deferred + 1);
}

void IRQ1_Handler(void)
{
    device_interrupts[1]++;
    NVIC_ISPR0 = 1u << 0;
}

void SVC_Handler(void)
{
    results[4]++;
}

static const uint8_t countdown[] = {
    PUSH, 4, PUSH, 1, SUB, DUP, JUMP_IF, 2, DROP, PUSH, 7, PUSH, 30, MUL, CLAMP, NEGATE, HALT,
};

static int32_t samples[16];

int main(void)
{
    SCB_SHPR2 = 0x40000000;              /* SVCall */
    SCB_SHPR3 = 0x80c00000;              /* SysTick, PendSV lowest */
    NVIC_IPR0 = 0x0000c0 | 0x4000;       /* IRQ 0 as low as PendSV, IRQ 1 above SysTick */
    NVIC_ISER0 = 3;
    SYST_RVR = 200;
    SYST_CVR = 0;
    SYST_CSR = 7;
    for (uint32_t round = 0; round < 2; round++) {
        uint32_t seed = round;
        for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++)
            samples[i] = (int32_t)(next_random(&seed) % 200) - 100;
        quicksort(samples, sizeof samples / sizeof samples[0], round & 1 ? by_magnitude : ascending);
        results[0] += crc32((const uint8_t *)samples, 8);
        results[1] += fibonacci(7);
        results[2] += (uint32_t)interpret(countdown, sizeof countdown);
        results[3] += count_words("it  was the best of times ");
        __asm__ volatile("svc #3");
        results[5] += gcd(360, 84) + (uint32_t)clamp((int32_t)round * 9 - 4, 0, 7);
    }
    SYST_CSR = 0;
    return 0;
}
