/*
 * Crashes of a Cortex-M4 that computes in floating point, in threads and in a handler: exceptions stack 26 words, including S0
 * to S15 and FPSCR. As in crash.c, the debugger writes the number of a crash into `scenario` before the program starts.
 */
#include "cortex-m.h"

#define NOINLINE __attribute__((noinline, noclone))

enum scenario {
    /* In a thread, on the process stack: EXC_RETURN is 0xffffffed. */
    DIVIDE_BY_ZERO,
    /* In an interrupt's handler: 0xffffffe1. */
    CORRUPTED_RETURN_ADDRESS,
    /* In a thread, by a load of a floating-point register. */
    BUS_FAULT,
    /* In a thread that has computed nothing in floating point yet: 0xfffffffd. */
    UNDEFINED_INSTRUCTION,
};

#define SCB_CPACR REGISTER(0xe000ed88)
#define SCB_CCR REGISTER(0xe000ed14)
#define CCR_DIV_0_TRP (1u << 4)
#define SHCSR_FAULTS (7u << 16)

__attribute__((section(".noinit"))) volatile uint32_t scenario;

static volatile uint32_t checksum;
static volatile float level;

/* The filters for each sample, in order. */
typedef float (*filter_fn)(float sample);
static filter_fn filters[3];

static float NOINLINE halve(float sample)
{
    return sample * 0.5f;
}

static float NOINLINE lift(float sample)
{
    return sample + 1.25f;
}

static float NOINLINE filtered(float sample)
{
    for (uint32_t i = 0; i < 3; i++)
        sample = filters[i](sample);
    return sample;
}

/* Samples between two zero crossings. */
static uint32_t NOINLINE period(uint32_t samples, uint32_t crossings)
{
    return samples / crossings;
}

/* Copies a name without checking its length; keeps a level in a callee-saved register. */
static float NOINLINE label(const char *name, float gain)
{
    volatile char line[8];
    uint32_t length = 0;
    while ((line[length] = name[length]) != '\0')
        length++;
    float own = lift(gain);
    return own + lift(own) + (float)length + gain;
}

static const uint32_t converters[2] = { 0x20000000, 0x87654320 };

static float NOINLINE read_converter(uint32_t number)
{
    const volatile float *samples = (const volatile float *)converters[number];
    return samples[4];
}

static uint32_t NOINLINE decode(uint32_t operation)
{
    if (operation == 2)
        __asm__ volatile("udf #7");
    return operation + checksum;
}

/* QEMU does not show the debugger the process stack pointer, so the debugger runs this to read it. */
__attribute__((naked, used)) void read_process_stack(void)
{
    __asm__ volatile("mrs r0, psp\n"
                     "b .\n");
}

static uint32_t thread_stack[96] __attribute__((aligned(8)));

/* Switches thread mode to the process stack, and runs `body`. */
__attribute__((naked)) static void start_thread(__attribute__((unused)) uint32_t *stack,
                                                __attribute__((unused)) void (*body)(void))
{
    __asm__ volatile("msr psp, r0\n"
                     "movs r0, #2\n"
                     "msr control, r0\n"
                     "isb\n"
                     "bx r1\n");
}

static void thread(void)
{
    if (scenario == UNDEFINED_INSTRUCTION)
        checksum = decode(2);
    level = filtered(level);
    if (scenario == DIVIDE_BY_ZERO)
        checksum = period(checksum, (uint32_t)level & 0x80000000u);
    if (scenario == BUS_FAULT)
        level += read_converter(1);
    for (;;) {
    }
}

void Device_Handler(void)
{
    level = label("microphones empty", level);
}

int main(void)
{
    SCB_CCR |= CCR_DIV_0_TRP;
    SCB_SHCSR |= SHCSR_FAULTS;
    filters[0] = halve;
    filters[1] = lift;
    filters[2] = halve;
    checksum = crc32((const uint8_t *)"abc", 3) + decode(1) + period(100, 7);
    /* In this scenario, no floating point is active before the thread starts. */
    if (scenario == UNDEFINED_INSTRUCTION)
        start_thread(thread_stack + 96, thread);
    level = 3.0f;
    for (uint32_t i = 0; i < 4; i++)
        level = filtered(level) + label("left", level) + read_converter(0);
    if (scenario == CORRUPTED_RETURN_ADDRESS) {
        NVIC_ISER0 = 1;
        NVIC_ISPR0 = 1;
    }
    start_thread(thread_stack + 96, thread);
    return 0;
}

extern uint32_t stack_top[], data_start[], data_end[], data_load[], bss_start[], bss_end[];

void Reset_Handler(void)
{
    const uint32_t *from = data_load;
    for (uint32_t *to = data_start; to < data_end; to++)
        *to = *from++;
    for (uint32_t *to = bss_start; to < bss_end; to++)
        *to = 0;
    /* Full access to CP10 and CP11, the floating-point unit. */
    SCB_CPACR |= 0xfu << 20;
    __asm__ volatile("dsb\n"
                     "isb\n");
    main();
    for (;;) {
    }
}

#define SPINNING_HANDLER(name) \
    __attribute__((naked)) void name(void) \
    { \
        __asm__ volatile("b ."); \
    }

SPINNING_HANDLER(HardFault_Handler)
SPINNING_HANDLER(MemManage_Handler)
SPINNING_HANDLER(BusFault_Handler)
SPINNING_HANDLER(UsageFault_Handler)
SPINNING_HANDLER(Default_Handler)

extern void (*const vectors[17])(void);
__attribute__((section(".vectors"), used)) void (*const vectors[17])(void) = {
    (void (*)(void))stack_top, Reset_Handler, Default_Handler, HardFault_Handler,
    MemManage_Handler, BusFault_Handler, UsageFault_Handler, 0, 0, 0, 0,
    Default_Handler, Default_Handler, 0, Default_Handler, Default_Handler,
    Device_Handler,
};
