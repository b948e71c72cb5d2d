/*
 * Example program for a Cortex-A15: an interrupt handler in ARM code switches between tasks in Thumb code, each with
 * its own context ID. The virtual timer interrupts at varying places; tasks also request a switch by a software
 * interrupt, jump out of nested calls and call the supervisor.
 */
#include "work.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define GICD_CTLR REGISTER(0x2c001000)
#define GICD_ISENABLER0 REGISTER(0x2c001100)
#define GICD_SGIR REGISTER(0x2c001f00)
#define GICC_CTLR REGISTER(0x2c002000)
#define GICC_PMR REGISTER(0x2c002004)
#define GICC_IAR REGISTER(0x2c00200c)
#define GICC_EOIR REGISTER(0x2c002010)

enum { TIMER_INTERRUPT = 27, SOFTWARE_INTERRUPT = 3, TASKS = 3, STACK_WORDS = 256 };

struct place { uint32_t registers[10]; };

int save(struct place *place);
void jump_back(struct place *place, int value);
uint32_t table(uint32_t selector);
void finish(void) __attribute__((noreturn));

static uint32_t stacks[TASKS][STACK_WORDS];
static uint32_t *saved[TASKS];
static uint32_t current;
static volatile uint32_t done;
static uint32_t tick_seed = 9;

/* The program's results, for a debugger. */
volatile uint32_t results[8];

static void set_timer(uint32_t ticks)
{
    __asm__ volatile("mcr p15, 0, %0, c14, c3, 0" : : "r"(ticks));
}

static void set_context(uint32_t id)
{
    __asm__ volatile("mcr p15, 0, %0, c13, c0, 1\n\tisb" : : "r"(id) : "memory");
}

uint32_t *switch_task(uint32_t *stack)
{
    uint32_t acknowledged = GICC_IAR;
    if (acknowledged == TIMER_INTERRUPT)
        set_timer(1500 + (next_random(&tick_seed) & 1023));
    results[6]++;
    saved[current] = stack;
    current = (current + 1) % TASKS;
    GICC_EOIR = acknowledged;
    set_context(0x10000 + current);
    return saved[current];
}

static void give_way(void)
{
    GICD_SGIR = 2 << 24 | SOFTWARE_INTERRUPT;
    __asm__ volatile("dsb\n\tisb" : : : "memory");
}

void serve_supervisor_call(uint32_t wish)
{
    results[5]++;
    if (wish == 0)
        GICD_SGIR = 2 << 24 | SOFTWARE_INTERRUPT;
}

static void supervisor_call(uint32_t wish)
{
    register uint32_t argument __asm__("r0") = wish;
    __asm__ volatile("svc #1" : : "r"(argument) : "memory", "cc", "lr");
}

static struct place way_out;

static uint32_t __attribute__((noinline)) dig(uint32_t depth)
{
    if (depth == 0) {
        jump_back(&way_out, 7);
        return 0;
    }
    return dig(depth - 1) + depth;
}

static int32_t samples[12];

static void first_task(void)
{
    for (uint32_t round = 0; round < 3; round++) {
        uint32_t seed = round;
        for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++)
            samples[i] = (int32_t)(next_random(&seed) & 63) - 32;
        quicksort(samples, sizeof samples / sizeof samples[0], round & 1 ? by_magnitude : ascending);
        results[0] += crc32((const uint8_t *)samples, 8);
        if (save(&way_out) == 0)
            results[0] += dig(4 + round);
        give_way();
    }
    done |= 1;
    while (done != 7)
        give_way();
    __asm__ volatile("cpsid i");
    finish();
}

static void second_task(void)
{
    static const uint8_t countdown[] = {
        PUSH, 5, PUSH, 1, SUB, DUP, JUMP_IF, 2, DROP, PUSH, 7, PUSH, 30, MUL, CLAMP, NEGATE, HALT,
    };
    for (uint32_t round = 0; round < 3; round++) {
        results[1] += fibonacci(4 + round);
        results[1] += (uint32_t)interpret(countdown, sizeof countdown);
        supervisor_call(round);
    }
    done |= 2;
    for (;;)
        give_way();
}

static void third_task(void)
{
    for (uint32_t round = 0; round < 14; round++) {
        results[2] += table(round % 7);
        if (round % 4 == 0)
            results[2] += count_words("tasks give way ");
    }
    done |= 4;
    for (;;)
        supervisor_call(0);
}

/* The stack of a task that never ran, as irq_handler expects it. */
static void prepare(uint32_t task, void (*entry)(void))
{
    uint32_t *stack = &stacks[task][STACK_WORDS - 16];
    stack[14] = (uint32_t)entry & ~1u;
    stack[15] = 0x1f | 1u << 5;          /* system mode, Thumb */
    saved[task] = stack;
}

int main(void)
{
    prepare(1, second_task);
    prepare(2, third_task);
    GICD_CTLR = 1;
    GICD_ISENABLER0 = 1u << TIMER_INTERRUPT | 1u << SOFTWARE_INTERRUPT;
    GICC_PMR = 0xff;
    GICC_CTLR = 1;
    set_context(0x10000);
    set_timer(2000);
    __asm__ volatile("mcr p15, 0, %0, c14, c3, 1\n\tcpsie i" : : "r"(1) : "memory");
    first_task();
    return 0;
}
