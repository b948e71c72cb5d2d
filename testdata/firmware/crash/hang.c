/*
 * Programs that go on no more without a fault, and programs that seem so, for a Cortex-M0+ and a Cortex-M3. The debugger writes the number of
 * one into `scenario` before the program starts.
 */
#include "cortex-m.h"

enum scenario {
    /* A flag that nothing writes, with all interrupts off. */
    WAIT,
    /* The same flag, while a timer's interrupts write something else. */
    WAIT_WITH_TICKS,
    /* A flag of a device. */
    WAIT_FOR_DEVICE,
    /* The same flag as above, but not for ever. */
    TIMEOUT,
    /* Work that waits for the next tick: nothing is wrong. */
    TICKS,
    /* Nothing to do until an interrupt comes: nothing is wrong. */
    IDLE,
    /* A failed assertion, which ends in a loop. */
    ASSERTION,
    /* An error that ends at a breakpoint. */
    BREAKPOINT,
};

/* The debugger writes this before the program starts; the reset handler does not clear it. */
__attribute__((section(".noinit"))) volatile uint32_t scenario;

#define NOINLINE __attribute__((noinline, noclone))
/* The debugger counts how often execution comes here. */
#define HERE(name) __asm__ volatile(".global " #name "\n" #name ":")

#ifdef __ARM_ARCH_6M__
#define RECEIVED REGISTER(0x40002108)
#else
#define RECEIVED REGISTER(0x40004008)
#endif

volatile uint32_t sensor_ready;
static volatile uint32_t ticks;
static volatile uint32_t checksum;

void SysTick_Handler(void)
{
    ticks++;
}

static void start_ticks(uint32_t cycles)
{
    SYST_RVR = cycles;
    SYST_CVR = 0;
    SYST_CSR = 7;
}

static void NOINLINE wait_for_sensor(void)
{
    while ((sensor_ready & 1) == 0)
        HERE(in_sensor);
}

static void NOINLINE wait_for_device(void)
{
    while (RECEIVED == 0)
        HERE(in_device);
}

static uint32_t NOINLINE wait_until(uint32_t rounds)
{
    while ((sensor_ready & 1) == 0 && rounds != 0) {
        HERE(in_timeout);
        rounds--;
    }
    return rounds;
}

static void NOINLINE wait_for_tick(void)
{
    uint32_t last = ticks;
    while (ticks == last)
        HERE(in_tick);
}

void NOINLINE assertion_failed(const char *file, uint32_t line)
{
    checksum = crc32((const uint8_t *)file, 4) + line;
    for (;;) {
        HERE(in_assertion);
        __asm__ volatile("nop");
    }
}

void NOINLINE stop_with(uint32_t error)
{
    checksum = error;
    HERE(in_breakpoint);
    __asm__ volatile("bkpt #1");
}

static uint32_t NOINLINE checked(uint32_t value)
{
    if (value > 5)
        assertion_failed(__FILE__, __LINE__);
    return value + 1;
}

static uint32_t NOINLINE opened(uint32_t file)
{
    if (file > 5)
        stop_with(file);
    return file + 1;
}

static void NOINLINE work(uint32_t rounds)
{
    for (uint32_t i = 0; i < rounds; i++) {
        checksum += fibonacci(i % 5) + gcd(12 + i, 18) + count_words("a fine day");
        checksum += checked(i % 3) + opened(i % 4);
    }
}

void Watchdog_Handler(void)
{
    for (;;)
        ;
}

int main(void)
{
    sensor_ready = 2;
    work(3);
    switch ((enum scenario)scenario) {
    case WAIT:
        wait_for_sensor();
        break;
    case WAIT_WITH_TICKS:
        start_ticks(900);
        wait_for_sensor();
        break;
    case WAIT_FOR_DEVICE:
        wait_for_device();
        break;
    case TIMEOUT:
        checksum += wait_until(1000000);
        break;
    case TICKS:
        start_ticks(20000);
        for (;;) {
            wait_for_tick();
            work(1);
        }
    case IDLE:
        start_ticks(3000);
        for (;;) {
            HERE(in_idle);
            __asm__ volatile("nop");
        }
    case ASSERTION:
        checksum += checked(7);
        break;
    case BREAKPOINT:
        checksum += opened(9);
        break;
    }
    return 0;
}
