/*
 * Four crashes whose cause neither the trace nor the saved state shows, for a Cortex-M0+ and a Cortex-M3. Three load from an
 * unmapped address that was computed from the timer. The last takes its exception at an instruction that is not at fault.
 * The debugger writes the number of a crash into `scenario` before the program starts.
 */
#include "cortex-m.h"

enum scenario {
    /* The handler runs for so long that the trace buffer holds nothing else. */
    OVERWRITTEN_BUFFER,
    /* The processor is stopped in time, and nobody saves its registers. */
    UNSAVED_REGISTERS,
    /* The handler clears the fault status, and the saved registers are its own. */
    CLEARED_STATUS,
    /* A supervisor call with interrupts masked becomes a HardFault, taken at the next instruction: a valid access to a device. */
    ESCALATED_CALL,
};

#define SCB_CFSR REGISTER(0xe000ed28)
#define SCB_HFSR REGISTER(0xe000ed2c)

/* The debugger writes this before the program starts; the reset handler does not clear it. */
__attribute__((section(".noinit"))) volatile uint32_t scenario;

#define NOINLINE __attribute__((noinline, noclone))

static volatile uint32_t checksum;
volatile uint32_t reports;

static uint32_t NOINLINE read_sensor(void)
{
    /* The address is only in a register that an exception does not stack. */
    register uint32_t at __asm__("r4") = 0x90000000 | (SYST_CVR & 0xfff0);
    uint32_t value;
    __asm__ volatile("ldr %0, [%1]\n\tmovs %1, #0" : "=l"(value), "+l"(at));
    return value;
}

static uint32_t NOINLINE ask_kernel(void)
{
    /* The timer's control register, which no dump and no section of the image contains. */
    register uint32_t timer __asm__("r3") = 0xe000e010;
    uint32_t value;
    __asm__ volatile("cpsid i\n\tsvc #0\n\tldr %0, [%1]" : "=l"(value) : "l"(timer) : "memory");
    return value;
}

void NOINLINE report(void)
{
    reports++;
}

void HardFault_Handler(void)
{
    if (scenario == CLEARED_STATUS) {
#ifndef __ARM_ARCH_6M__
        SCB_CFSR = SCB_CFSR;
        SCB_HFSR = SCB_HFSR;
#endif
        checksum = crc32((const uint8_t *)&checksum, 4);
        __asm__ volatile("movs r4, #0" ::: "r4");
    }
    for (;;)
        report();
}

void Watchdog_Handler(void)
{
}

static void NOINLINE work(uint32_t rounds)
{
    for (uint32_t i = 0; i < rounds; i++)
        checksum += fibonacci(i % 5) + gcd(12 + i, 18) + count_words("a fine day");
}

int main(void)
{
    SYST_RVR = 0xffffff;
    SYST_CVR = 0;
    SYST_CSR = 5;
    work(3);
    if (scenario == ESCALATED_CALL)
        checksum += ask_kernel();
    checksum += read_sensor();
    work(1);
    return 0;
}
