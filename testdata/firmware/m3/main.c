/*
 * Example program for a Cortex-M3: work in thread mode, which SysTick interrupts at varying places.
 * SysTick sometimes pends PendSV, which is then tail-chained, and sometimes a device interrupt of higher priority,
 * which preempts SysTick.
 */
#include "work.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define SYST_CSR REGISTER(0xe000e010)
#define SYST_RVR REGISTER(0xe000e014)
#define SYST_CVR REGISTER(0xe000e018)
#define NVIC_ISER0 REGISTER(0xe000e100)
#define NVIC_ISPR0 REGISTER(0xe000e200)
#define NVIC_IPR0 REGISTER(0xe000e400)
#define NVIC_IPR5 REGISTER(0xe000e414)
#define SCB_ICSR REGISTER(0xe000ed04)
#define SCB_SHPR2 REGISTER(0xe000ed1c)
#define SCB_SHPR3 REGISTER(0xe000ed20)

#define PENDSVSET (1u << 28)

uint32_t supervisor_call(uint32_t argument);
uint32_t choose(uint32_t selector);
int32_t sign_and_parity(int32_t value);

static volatile uint32_t ticks;
static volatile uint32_t deferred;
static volatile uint32_t device_interrupts[3];
static uint32_t tick_seed = 1;

/* The program's results, for a debugger. */
volatile uint32_t results[8];

void SysTick_Handler(void)
{
    ticks++;
    /* Each reload value differs, so that the interrupts fall on varying places. */
    SYST_RVR = 150 + (next_random(&tick_seed) & 127);
    if (ticks % 3 == 0)
        SCB_ICSR = PENDSVSET;
    if (ticks % 7 == 0)
        NVIC_ISPR0 = 1u << 20;
}

void PendSV_Handler(void)
{
    deferred++;
    if (deferred % 4 == 0)
        results[7] = crc32((const uint8_t *)&deferred, sizeof deferred);
}

void First_IRQHandler(void)
{
    device_interrupts[0]++;
}

void Third_IRQHandler(void)
{
    device_interrupts[1]++;
    /* Lower in priority than this handler, and so entered when this handler returns. */
    NVIC_ISPR0 = 1u << 0;
}

void Twentieth_IRQHandler(void)
{
    device_interrupts[2]++;
}

/* Called with the exception's stack frame: r0 is its first word. */
void serve_supervisor_call(uint32_t *frame)
{
    frame[0] = gcd(frame[0], 36);
}

static void start_interrupts(void)
{
    SCB_SHPR2 = 0x40000000;              /* SVCall */
    SCB_SHPR3 = 0x80e00000;              /* SysTick, PendSV lowest */
    NVIC_IPR0 = 0x400000c0;              /* IRQ 3 above IRQ 0 */
    NVIC_IPR5 = 0x00000020;              /* IRQ 20 above SysTick */
    NVIC_ISER0 = 1u << 0 | 1u << 3 | 1u << 20;
    SYST_RVR = 200;
    SYST_CVR = 0;
    SYST_CSR = 7;
}

/* ((((5 - 1) ... ) counted down to zero), then 7 * 30 clamped */
static const uint8_t countdown[] = {
    PUSH, 5, PUSH, 1, SUB, DUP, JUMP_IF, 2, DROP, PUSH, 7, PUSH, 30, MUL, CLAMP, NEGATE, HALT,
};

static int32_t samples[24];

static uint32_t sort_samples(compare_fn compare, uint32_t seed)
{
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++)
        samples[i] = (int32_t)(next_random(&seed) % 200) - 100;
    quicksort(samples, sizeof samples / sizeof samples[0], compare);
    return crc32((const uint8_t *)samples, 16);
}

int main(void)
{
    start_interrupts();
    for (uint32_t round = 0; round < 3; round++) {
        results[0] += sort_samples(round & 1 ? by_magnitude : ascending, round);
        results[1] += fibonacci(6 + round);
        results[2] += (uint32_t)interpret(countdown, sizeof countdown);
        results[3] += count_words("it  was the best of times ");
        results[4] += supervisor_call(48 + round * 6);
        for (uint32_t i = 0; i < 6; i++)
            results[5] += choose(i);
        for (int32_t i = -5; i < 25; i += 3)
            results[6] += (uint32_t)sign_and_parity(i);
        NVIC_ISPR0 = 1u << 3;
    }
    SYST_CSR = 0;
    return 0;
}
