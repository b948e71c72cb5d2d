/*
 * Example program for an ARMv7-A core: this file is ARM code; common/work.c and half of startup.s are Thumb code, so
 * every call between them changes the instruction set. The private timer interrupts both.
 */
#include "work.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define GICC_CTLR REGISTER(0x1e000100)
#define GICC_PMR REGISTER(0x1e000104)
#define GICC_IAR REGISTER(0x1e00010c)
#define GICC_EOIR REGISTER(0x1e000110)
#define TIMER_LOAD REGISTER(0x1e000600)
#define TIMER_CONTROL REGISTER(0x1e000608)
#define TIMER_STATUS REGISTER(0x1e00060c)
#define GICD_CTLR REGISTER(0x1e001000)
#define GICD_ISENABLER0 REGISTER(0x1e001100)
#define GICD_SGIR REGISTER(0x1e001f00)

#define TIMER_INTERRUPT 29

uint32_t through_bx(uint32_t value);
uint32_t through_load(uint32_t value);
uint32_t thumb_pair(uint32_t value);
uint32_t thumb_service(uint32_t value);
void arm_faults(void);
void thumb_faults(void);

volatile uint32_t undefined_count;
/* The data abort handler redirects faulting accesses to the count and the words after it. */
volatile uint32_t abort_count[4];
static volatile uint32_t ticks;
static volatile uint32_t software_interrupts;
static uint32_t tick_seed = 1;

/* The program's results, for a debugger. */
volatile uint32_t results[8];

static void set_context(uint32_t id)
{
    __asm__ volatile("mcr p15, 0, %0, c13, c0, 1\n\tisb" : : "r"(id) : "memory");
}

void serve_timer(void)
{
    uint32_t acknowledged = GICC_IAR;
    if (acknowledged == TIMER_INTERRUPT) {
        TIMER_STATUS = 1;
        ticks++;
        /* Each period differs, so that the interrupts fall on varying places. */
        TIMER_LOAD = 700 + (next_random(&tick_seed) & 511);
        /* Every fourth time, another interrupt is pending when this one returns. */
        if (ticks % 4 == 0)
            GICD_SGIR = 2 << 24 | 3;
    } else {
        software_interrupts++;
    }
    GICC_EOIR = acknowledged;
}

uint32_t serve_supervisor_call(uint32_t value)
{
    return gcd(value, 84);
}

/* Called from Thumb code. */
int32_t scale(int32_t value)
{
    switch (value & 7) {
    case 0:
        return value * 3;
    case 1:
        return value + 100;
    case 2:
        return value / 4;
    case 3:
        return clamp(value, 4, 20);
    case 4:
        return value ^ 0x55;
    case 5:
        return -value;
    default:
        return value;
    }
}

static int descending(int32_t left, int32_t right)
{
    return left > right;
}

static void start_interrupts(void)
{
    GICD_CTLR = 1;
    GICD_ISENABLER0 = 1u << TIMER_INTERRUPT | 1u << 3;
    GICC_PMR = 0xff;
    GICC_CTLR = 1;
    TIMER_LOAD = 1000;
    TIMER_CONTROL = 7;
    __asm__ volatile("cpsie i" : : : "memory");
}

static const uint8_t countdown[] = {
    PUSH, 5, PUSH, 1, SUB, DUP, JUMP_IF, 2, DROP, PUSH, 7, PUSH, 30, MUL, CLAMP, NEGATE, HALT,
};

static int32_t samples[20];

int main(void)
{
    start_interrupts();
    for (uint32_t round = 0; round < 2; round++) {
        uint32_t seed = round;
        set_context(1);
        for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++)
            samples[i] = (int32_t)(next_random(&seed) & 255) - 128;
        quicksort(samples, sizeof samples / sizeof samples[0], round == 0 ? descending : by_magnitude);
        results[0] += crc32((const uint8_t *)samples, 12);
        results[1] += fibonacci(6);
        set_context(2);
        results[2] += (uint32_t)interpret(countdown, sizeof countdown);
        results[3] += count_words("it  was the best of times ");
        for (uint32_t i = 0; i < 16; i++)
            results[4] += through_bx(i) + through_load(i) + thumb_pair(i);
        results[5] += thumb_service(36);
        arm_faults();
        thumb_faults();
    }
    return 0;
}
