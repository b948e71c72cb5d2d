/*
 * Example program for a Cortex-M33 with the Security Extension: the Secure half. The Secure half calls functions of the
 * Non-secure half, which call back through gateways. Each half has its own SysTick, which interrupts both states at
 * varying places.
 */
#include "../common/cortex-m.h"

#define SAU_CTRL REGISTER(0xe000edd0)
#define SAU_RNR REGISTER(0xe000edd8)
#define SAU_RBAR REGISTER(0xe000eddc)
#define SAU_RLAR REGISTER(0xe000ede0)
#define SCB_VTOR_NS REGISTER(0xe002ed08)
#define NVIC_ITNS0 REGISTER(0xe000e380)
#define NSCCFG REGISTER(0x50080014)
/* Memory protection controllers of the board's first two memories. */
#define MPC0 0x58007000
#define MPC1 0x58008000

uint32_t call(uint32_t argument, uint32_t (*nonsecure)(uint32_t));
void finish(void) __attribute__((noreturn));

/* The Non-secure half. */
extern uint32_t vectors_ns[];
uint32_t nonsecure_start(uint32_t round);
uint32_t nonsecure_sort(uint32_t seed);
uint32_t nonsecure_wait(uint32_t ticks);

static uint32_t tick_seed = 2;

/* The program's results, for a debugger. */
volatile uint32_t results[6];

void secure_systick(void)
{
    results[5]++;
    SYST_RVR = 350 + (next_random(&tick_seed) & 255);
    if (results[5] % 4 == 0)
        NVIC_ISPR0 = 1u << 30;           /* a device of the Secure state */
}

void secure_device(void)
{
    results[4] += gcd(12, results[5] + 1);
}

void secure_svc(void)
{
    results[3]++;
}

uint32_t secure_checksum(const uint8_t *data, uint32_t length)
{
    return crc32(data, length);
}

uint32_t secure_count(const char *text)
{
    __asm__ volatile("svc #1");
    return count_words(text);
}

/* Sets a region of the attribution unit: `start` to `end`, both inclusive. */
static void attribute(uint32_t region, uint32_t start, uint32_t end, uint32_t callable)
{
    SAU_RNR = region;
    SAU_RBAR = start;
    SAU_RLAR = (end & ~31u) | callable << 1 | 1;
}

/* Makes the blocks from `first_word` on Non-secure; a word of the table is 32 blocks. */
static void open_memory(uint32_t controller, uint32_t first_word)
{
    uint32_t last = REGISTER(controller + 0x10);
    for (uint32_t word = first_word; word <= last; word++) {
        REGISTER(controller + 0x18) = word;
        REGISTER(controller + 0x1c) = ~0u;
    }
}

void set_up(void)
{
    open_memory(MPC0, 64);               /* from 2 MiB on */
    open_memory(MPC1, 0);
    NSCCFG = 1;
    attribute(0, 0x00000000, 0x0fffffff, 0);
    attribute(1, 0x28000000, 0x281fffff, 0);
    attribute(2, 0x10010000, 0x1001ffff, 1);
    SAU_CTRL = 1;
    SCB_VTOR_NS = (uint32_t)vectors_ns;
    NVIC_ITNS0 = 1u << 2 | 1u << 9;
    NVIC_ISER0 = 1u << 30;
    __asm__ volatile("dsb\n\tisb" : : : "memory");
}

void secure_main(void)
{
    SYST_RVR = 300;
    SYST_CVR = 0;
    SYST_CSR = 7;
    for (uint32_t round = 0; round < 3; round++) {
        results[0] += call(round, nonsecure_start);
        results[1] += fibonacci(5) + call(round, nonsecure_sort);
        __asm__ volatile("svc #0");
        results[2] += call(2, nonsecure_wait);
    }
    SYST_CSR = 0;
    finish();
}
