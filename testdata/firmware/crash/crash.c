/*
 * Ten crashes of firmware, for a Cortex-M0+, a Cortex-M3 and a Cortex-M4. The debugger writes the number of a crash into
 * `scenario` before the program starts; the program works for a while, and then crashes that way.
 */
#include "cortex-m.h"

enum scenario {
    NULL_FUNCTION_POINTER,
    CORRUPTED_RETURN_ADDRESS,
    UNALIGNED_ACCESS,
    DIVIDE_BY_ZERO,
    STACK_OVERFLOW,
    UNDEFINED_INSTRUCTION,
    BUS_FAULT,
    MISSING_HANDLER,
    WILD_JUMP,
    WATCHDOG,
};

#define SCB_CCR REGISTER(0xe000ed14)
#define CCR_UNALIGN_TRP (1u << 3)
#define CCR_DIV_0_TRP (1u << 4)
#define SHCSR_FAULTS (7u << 16)

/* The debugger writes this before the program starts; the reset handler does not clear it. */
__attribute__((section(".noinit"))) volatile uint32_t scenario;

#define NOINLINE __attribute__((noinline, noclone))

static volatile uint32_t checksum;
volatile uint32_t watchdog_warnings;

/* A queue of deferred calls. */
typedef void (*callback_fn)(uint32_t argument);

static struct {
    callback_fn callback;
    uint32_t argument;
} timers[4];

static void NOINLINE count_call(uint32_t argument)
{
    checksum += argument;
}

static void NOINLINE run_timers(void)
{
    for (uint32_t i = 0; i < 4; i++)
        timers[i].callback(timers[i].argument);
}

static void NOINLINE start_timer(uint32_t slot, callback_fn callback)
{
    timers[slot].callback = callback;
    timers[slot].argument = slot + 1;
}

/* Copies a name without checking its length. */
static uint32_t NOINLINE greet(const char *name)
{
    volatile char line[8];
    uint32_t length = 0;
    while ((line[length] = name[length]) != '\0')
        length++;
    return crc32((const uint8_t *)line, 3);
}

/* A packed message, as received: one type byte, then a length. */
static const uint8_t message[12] __attribute__((aligned(4))) = { 1, 4, 0, 0, 0, 2, 9, 8, 7, 6, 5, 4 };

static uint32_t NOINLINE read_length(const uint8_t *at)
{
    return *(const volatile uint32_t *)at;
}

static uint32_t NOINLINE average(uint32_t sum, uint32_t count)
{
    return sum / count;
}

/* A list that has become a ring: walking it never ends. */
struct node {
    const struct node *next;
    uint32_t value;
};

extern const struct node ring[3];
const struct node ring[3] = { { &ring[1], 1 }, { &ring[2], 2 }, { &ring[0], 3 } };

static uint32_t NOINLINE weigh(uint32_t value)
{
    return value * 3;
}

/* The memory below the stack. When the stack reaches it, `walk` saves the node over the function pointer. */
#ifdef __ARM_ARCH_6M__
#define VISITOR_SPARE 4
#else
#define VISITOR_SPARE 3
#endif
__attribute__((section(".below_stack"))) static struct {
    uint32_t spare[VISITOR_SPARE];
    uint32_t (*weigh)(uint32_t value);
} visitor;

static uint32_t NOINLINE walk(const struct node *node)
{
    if (node == 0)
        return 0;
    uint32_t own = visitor.weigh(node->value);
    return own + walk(node->next) + node->value;
}

static uint32_t NOINLINE decode(uint32_t operation)
{
    switch (operation) {
    case 0:
        return 11;
    case 1:
        return checksum;
    default:
        __asm__ volatile("udf #7");
        return 0;
    }
}

/* A driver that reads the address of its device from a table. */
static const uint32_t devices[2] = { 0x20000000, 0x87654320 };

static uint32_t NOINLINE poll_device(uint32_t number)
{
    volatile uint32_t *status = (volatile uint32_t *)devices[number];
    return status[4];
}

/* Data in place of code. */
static uint32_t scratch[4] = { 0xdeadde01, 0xdeadde02, 0xdeadde03, 0xdeadde04 };

static void NOINLINE call_loaded(const uint32_t *from)
{
    ((void (*)(void))((uintptr_t)from | 1))();
}

static volatile uint32_t sensor_ready;

static void NOINLINE wait_for_sensor(void)
{
    while ((sensor_ready & 1) == 0) {
    }
}

/* The last warning before the watchdog's reset: the handler waits for the reset. */
void Watchdog_Handler(void)
{
    for (;;)
        watchdog_warnings++;
}

static void NOINLINE start_watchdog(void)
{
#ifdef __ARM_ARCH_6M__
    /* The nRF51's TIMER0 interrupts as IRQ 8. */
    REGISTER(0x40008510) = 0;            /* PRESCALER */
    REGISTER(0x40008508) = 3;            /* BITMODE */
    REGISTER(0x40008540) = 600;          /* CC[0] */
    REGISTER(0x40008304) = 1 << 16;      /* INTENSET */
    NVIC_ISER0 = 1u << 8;
    REGISTER(0x40008000) = 1;            /* START */
#else
    /* The MPS2's watchdog raises an NMI at its first expiry and resets the processor at the second. */
    REGISTER(0x40008000) = 1200;
    REGISTER(0x40008008) = 3;
#endif
}

static void NOINLINE work(uint32_t rounds)
{
    for (uint32_t i = 0; i < rounds; i++) {
        checksum += crc32(message, 4);
        checksum += fibonacci(i % 5) + gcd(12 + i, 18) + count_words("a fine day");
        checksum += decode(i % 2) + average(checksum & 0xff, i % 3 + 1) + poll_device(0);
        checksum += greet("you") + read_length(message + 4);
    }
}

int main(void)
{
    for (uint32_t i = 0; i < 4; i++)
        start_timer(i, count_call);
    visitor.weigh = weigh;
    work(3);
    run_timers();
    switch ((enum scenario)scenario) {
    case NULL_FUNCTION_POINTER:
        start_timer(2, 0);
        run_timers();
        break;
    case CORRUPTED_RETURN_ADDRESS:
        checksum += greet("the whole family");
        break;
    case UNALIGNED_ACCESS:
        SCB_CCR |= CCR_UNALIGN_TRP;
        SCB_SHCSR |= SHCSR_FAULTS;
        checksum += read_length(message + 1);
        break;
    case DIVIDE_BY_ZERO:
        SCB_CCR |= CCR_DIV_0_TRP;
        checksum += average(checksum, timers[0].argument - 1);
        break;
    case STACK_OVERFLOW:
        checksum += walk(ring);
        break;
    case UNDEFINED_INSTRUCTION:
        SCB_SHCSR |= SHCSR_FAULTS;
        checksum += decode(2);
        break;
    case BUS_FAULT:
        checksum += poll_device(1);
        break;
    case MISSING_HANDLER:
        NVIC_ISER0 = 1u << 5;
        NVIC_ISPR0 = 1u << 5;
        checksum += crc32(message, 4);
        break;
    case WILD_JUMP:
        call_loaded(scratch);
        break;
    case WATCHDOG:
        start_watchdog();
        wait_for_sensor();
        break;
    }
    return 0;
}

#ifdef __ARM_ARCH_6M__
/* The run-time library calls this on a division by zero. */
int __aeabi_idiv0(int result)
{
    (void)result;
    __builtin_trap();
}
#endif
