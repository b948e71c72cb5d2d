/*
 * Example program in A64, for a Cortex-A53 or A57: three tasks at EL0, one of them in AArch32, each with a context ID.
 * The kernel at EL1 switches them when the virtual timer interrupts, at varying places, or on request, and calls a
 * hypervisor at EL2 and a monitor at EL3. The kernel repairs undefined instructions, breakpoints, an access and a jump
 * to unmapped memory, and returns from them. Address translation is off.
 */
#include "work.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define GICD_CTLR REGISTER(0x08000000)
#define GICD_IGROUPR0 REGISTER(0x08000080)
#define GICD_ISENABLER0 REGISTER(0x08000100)
#define GICC_CTLR REGISTER(0x08010000)
#define GICC_PMR REGISTER(0x08010004)
#define GICC_IAR REGISTER(0x0801000c)
#define GICC_EOIR REGISTER(0x08010010)

enum { TIMER_INTERRUPT = 27, TASKS = 3, STACK_BYTES = 4096 };

struct place { uint64_t registers[13]; };

int save(struct place *place);
void jump_back(struct place *place, int value);
uint64_t table(uint64_t selector);
uint64_t ask_hypervisor(uint64_t value);
uint64_t ask_monitor(uint64_t value);
void finish(void) __attribute__((noreturn));

/* The task in AArch32, which another compiler built. */
extern const char aarch32_task[];

/* The registers of a task: see save_frame. */
struct frame { uint64_t x[31], stack, resumes, status; };

static struct frame tasks[TASKS];
static uint64_t stacks[TASKS][STACK_BYTES / 8] __attribute__((aligned(16), section(".noinit")));
static uint32_t current;
static volatile uint32_t done;
static uint32_t tick_seed = 5;

/* The program's results, for a debugger. */
volatile uint64_t results[8];

static void set_timer(uint64_t ticks)
{
    __asm__ volatile("msr cntv_tval_el0, %0" : : "r"(ticks));
}

static void set_context(uint64_t id)
{
    __asm__ volatile("msr contextidr_el1, %0\n\tisb" : : "r"(id) : "memory");
}

/* At EL3: the interrupt belongs to the Non-secure state. */
void set_up_secure(void)
{
    GICD_IGROUPR0 = ~0u;
    GICC_PMR = 0xff;
}

void acknowledge(void)
{
    uint32_t acknowledged = GICC_IAR;
    if (acknowledged == TIMER_INTERRUPT)
        set_timer(1300 + (next_random(&tick_seed) & 1023));
    results[6]++;
    GICC_EOIR = acknowledged;
}

static void copy(struct frame *to, const struct frame *from)
{
    const uint64_t *source = (const uint64_t *)from;
    uint64_t *target = (uint64_t *)to;
    for (size_t i = 0; i < sizeof *to / sizeof *target; i++)
        target[i] = source[i];
}

/* Replaces the frame of the current task with the frame of the next one. */
static void switch_task(struct frame *frame)
{
    copy(&tasks[current], frame);
    current = (current + 1) % TASKS;
    set_context(0x20000 + current);
    copy(frame, &tasks[current]);
}

void serve_interrupt(struct frame *frame)
{
    acknowledge();
    switch_task(frame);
}

/* The number of a supervisor call is in x0 or r0. */
static void serve_call(struct frame *frame)
{
    results[5]++;
    switch (frame->x[0]) {
    case 0:
        switch_task(frame);
        break;
    case 1:
        frame->x[0] = ask_hypervisor(results[5]);
        break;
    case 2:
        frame->x[0] = ask_monitor(results[5]);
        break;
    case 3:
        /* Interrupts are enabled in the meantime. */
        __asm__ volatile("msr daifclr, #2" : : : "memory");
        frame->x[0] = gcd(84, 36) + crc32((const uint8_t *)"kernel", 6);
        __asm__ volatile("msr daifset, #2" : : : "memory");
        break;
    case 4:
        /* An exception from EL1 to EL1, then a wait for an interrupt that is masked here. */
        __asm__ volatile("brk #2\n\tsvc #2" : : : "memory");
        __asm__ volatile("wfi" : : : "memory");
        break;
    case 5:
        done |= 1u << current;
        if (done == 7)
            finish();
        break;
    default:
        break;
    }
}

void serve(struct frame *frame, uint64_t syndrome)
{
    switch (syndrome >> 26) {
    case 0x11:                           /* SVC, in AArch32 and AArch64 */
    case 0x15:
        serve_call(frame);
        return;
    case 0x20:                           /* instruction abort: back to the caller */
        frame->resumes = frame->x[30];
        break;
    case 0x00:                           /* undefined, breakpoint, data abort: skipped */
    case 0x38:                           /* breakpoint in AArch32 */
    case 0x3c:
    case 0x24:
        frame->resumes += 4;
        break;
    default:
        finish();
    }
    results[7]++;
}

void serve_kernel(struct frame *frame, uint64_t syndrome)
{
    results[7]++;
    if (syndrome >> 26 == 0x3c)
        frame->resumes += 4;
}

static uint64_t supervisor_call(uint64_t wish)
{
    register uint64_t argument __asm__("x0") = wish;
    __asm__ volatile("svc #1" : "+r"(argument) : : "memory", "cc");
    return argument;
}

static struct place way_out;

static uint64_t __attribute__((noinline)) dig(uint64_t depth)
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
        results[0] += supervisor_call(1) + supervisor_call(2) + supervisor_call(3);
    }
    supervisor_call(5);
    for (;;)
        supervisor_call(0);
}

/* Exceptions at EL0 that the kernel repairs. */
static void faults(void)
{
    __asm__ volatile(".inst 0x00000000");
    __asm__ volatile("brk #1");
    __asm__ volatile("ldr w9, [%0]" : : "r"(1ul << 49) : "x9", "memory");
    __asm__ volatile("str xzr, [%0]" : : "r"((1ul << 49) + 8) : "memory");
    void (*nowhere)(void) = (void (*)(void))(1ul << 49);
    nowhere();
}

static void second_task(void)
{
    static const uint8_t countdown[] = {
        PUSH, 5, PUSH, 1, SUB, DUP, JUMP_IF, 2, DROP, PUSH, 7, PUSH, 30, MUL, CLAMP, NEGATE, HALT,
    };
    for (uint32_t round = 0; round < 3; round++) {
        results[1] += fibonacci(4 + round);
        results[1] += (uint32_t)interpret(countdown, sizeof countdown);
        for (uint32_t selector = 0; selector < 7; selector++)
            results[2] += table(selector);
        results[2] += count_words("tasks give way ");
        supervisor_call(4);
        faults();
    }
    supervisor_call(5);
    for (;;)
        supervisor_call(0);
}

/* The first registers of a task that never ran. */
static void prepare(uint32_t task, const void *entry, uint64_t status)
{
    struct frame *frame = &tasks[task];
    frame->resumes = (uint64_t)entry;
    frame->status = status;
    frame->stack = (uint64_t)&stacks[task + 1];
    frame->x[13] = frame->stack;         /* SP of AArch32's User mode */
}

void set_up_kernel(struct frame *frame)
{
    prepare(0, (const void *)first_task, 0);
    prepare(1, (const void *)second_task, 0);
    prepare(2, aarch32_task, 0x10);      /* User mode, A32 */
    GICD_CTLR = 1;
    GICD_ISENABLER0 = 1u << TIMER_INTERRUPT;
    GICC_PMR = 0xff;
    GICC_CTLR = 1;
    set_context(0x20000);
    set_timer(900);
    __asm__ volatile("msr cntv_ctl_el0, %0" : : "r"(1ul) : "memory");
    copy(frame, &tasks[0]);
}
