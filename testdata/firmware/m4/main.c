/*
 * Example program for a Cortex-M4: three tasks and a scheduler like that of an RTOS. SysTick pends PendSV, which saves one
 * task and resumes another; tasks also yield, jump out of nested calls, call the supervisor and cause faults, which the
 * fault handlers repair.
 */
#include "cortex-m.h"

struct place { uint32_t registers[10]; };

int save(struct place *place);
void jump_back(struct place *place, int value);
void faults(void);
void start_first_task(uint32_t *stack) __attribute__((noreturn));
void finish(void) __attribute__((noreturn));

enum { TASKS = 3, STACK_WORDS = 192 };

static uint32_t stacks[TASKS][STACK_WORDS];
static uint32_t *saved[TASKS];
static uint32_t current;
static volatile uint32_t done;
static uint32_t tick_seed = 5;

/* The program's results, for a debugger. */
volatile uint32_t results[8];

static void give_way(void)
{
    SCB_ICSR = PENDSVSET;
    __asm__ volatile("dsb\n\tisb" : : : "memory");
}

uint32_t *next_task(uint32_t *stack)
{
    saved[current] = stack;
    current = (current + 1) % TASKS;
    return saved[current];
}

void SysTick_Handler(void)
{
    SYST_RVR = 300 + (next_random(&tick_seed) & 255);
    SCB_ICSR = PENDSVSET;
    if (tick_seed & 0x100)
        NVIC_ISPR0 = 1u << 2;
}

void IRQ2_Handler(void)
{
    results[6]++;
}

void SVC_Handler(void)
{
    results[5]++;
    if (results[5] % 3 == 0)
        SCB_ICSR = PENDSVSET;            /* tail-chained after the supervisor call */
}

/* All undefined instructions of this program are 16-bit. */
void skip_instruction(uint32_t *frame)
{
    results[4]++;
    frame[6] += 2;
}

/* The base register of every faulting access is r0. */
void repair_address(uint32_t *frame)
{
    results[7]++;
    frame[0] = (uint32_t)&results[7];
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

void first_task(void)
{
    SYST_CSR = 7;
    for (uint32_t round = 0; round < 3; round++) {
        uint32_t seed = round;
        for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++)
            samples[i] = (int32_t)(next_random(&seed) % 64) - 32;
        quicksort(samples, sizeof samples / sizeof samples[0], round & 1 ? by_magnitude : ascending);
        results[0] += crc32((const uint8_t *)samples, 8);
        if (save(&way_out) == 0)
            results[0] += dig(4 + round);
        give_way();
    }
    done |= 1;
    while (done != 7)
        give_way();
    SYST_CSR = 0;
    finish();
}

static void second_task(void)
{
    static const uint8_t countdown[] = {
        PUSH, 5, PUSH, 1, SUB, DUP, JUMP_IF, 2, DROP, PUSH, 7, PUSH, 30, MUL, CLAMP, NEGATE, HALT,
    };
    for (uint32_t round = 0; round < 4; round++) {
        results[1] += fibonacci(4 + round);
        results[1] += (uint32_t)interpret(countdown, sizeof countdown);
        __asm__ volatile("svc #1");
    }
    done |= 2;
    for (;;)
        give_way();
}

static void third_task(void)
{
    for (uint32_t round = 0; round < 3; round++) {
        results[2] += count_words("tasks give way ");
        faults();
        __asm__ volatile("svc #2");
    }
    done |= 4;
    for (;;)
        __asm__ volatile("svc #3");
}

/* The stack of a task that never ran, as PendSV_Handler and an exception return expect it. */
static void prepare(uint32_t task, void (*entry)(void))
{
    uint32_t *stack = &stacks[task][STACK_WORDS - 17];
    stack[8] = 0xfffffffd;               /* thread mode, process stack */
    stack[9 + 6] = (uint32_t)entry & ~1u;
    stack[9 + 7] = 1u << 24;             /* Thumb state */
    saved[task] = stack;
}

int main(void)
{
    prepare(1, second_task);
    prepare(2, third_task);
    SCB_SHCSR = 7u << 16;                /* usage, bus and memory faults have handlers */
    SCB_SHPR2 = 0x40000000;              /* SVCall */
    SCB_SHPR3 = 0x80e00000;              /* SysTick, PendSV lowest */
    NVIC_IPR0 = 0x00600000;              /* IRQ 2 above SysTick */
    NVIC_ISER0 = 1u << 2;
    SYST_RVR = 400;
    SYST_CVR = 0;
    start_first_task(&stacks[0][STACK_WORDS - 17]);
}
