/* The Non-secure half: see secure.c. */
#include "../common/cortex-m.h"

/* The gateways of the Secure half. */
uint32_t ask_checksum(const uint8_t *data, uint32_t length);
uint32_t ask_count(const char *text);
uint32_t ask_back(uint32_t argument, uint32_t (*nonsecure)(uint32_t));

static uint32_t tick_seed = 7;
static volatile uint32_t ticks;
static volatile uint32_t deferred;
static int32_t samples[10];

/* The program's results, for a debugger. */
volatile uint32_t nonsecure_results[4];

void nonsecure_systick(void)
{
    ticks++;
    SYST_RVR = 250 + (next_random(&tick_seed) & 127);
    if (ticks % 2 == 0)
        SCB_ICSR = PENDSVSET;
    if (ticks % 3 == 0)
        NVIC_ISPR0 = 1u << 2 | 1u << 9;
}

/* Calls the Secure state from a handler. */
void nonsecure_pendsv(void)
{
    deferred += ask_count("deferred");
}

void nonsecure_device(void)
{
    nonsecure_results[3]++;
}

void nonsecure_svc(void)
{
    nonsecure_results[2] += ask_checksum((const uint8_t *)"svc", 3);
}

static uint32_t __attribute__((noinline)) twice(uint32_t value)
{
    return 2 * value + ask_count("a b");
}

uint32_t nonsecure_start(uint32_t round)
{
    if (round == 0) {
        SCB_SHPR3 = 0x80c00000;          /* SysTick, PendSV lowest */
        NVIC_ISER0 = 1u << 2 | 1u << 9;
        SYST_RVR = 200;
        SYST_CVR = 0;
        SYST_CSR = 7;
    }
    nonsecure_results[0] += ask_checksum((const uint8_t *)samples, 8);
    nonsecure_results[0] += ask_count("it  was the best of times ");
    nonsecure_results[0] += ask_back(round, twice);
    return fibonacci(4 + round);
}

uint32_t nonsecure_sort(uint32_t seed)
{
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++)
        samples[i] = (int32_t)(next_random(&seed) % 200) - 100;
    quicksort(samples, sizeof samples / sizeof samples[0], seed & 1 ? by_magnitude : ascending);
    __asm__ volatile("svc #5");
    return (uint32_t)clamp(samples[3], -20, 20);
}

uint32_t nonsecure_wait(uint32_t more)
{
    uint32_t until = ticks + more;
    while (ticks < until)
        nonsecure_results[1] += gcd(84, 36);
    return deferred;
}
