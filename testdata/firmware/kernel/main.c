/*
 * Example program for a Cortex-M3: tasks on a preemptive kernel. A timer's interrupt wakes the sampler through a queue; two
 * workers of one function share its jobs; two tasks of low priority take turns; the supervisor creates tasks again and
 * again in the control blocks and on the stacks of tasks that ended or that it deleted.
 */
#include "kernel.h"

void finish(void) __attribute__((noreturn));

#define TIMER0_CTRL REGISTER(0x40000000)
#define TIMER0_RELOAD REGISTER(0x40000008)
#define TIMER0_INTCLEAR REGISTER(0x4000000c)

enum { ROUNDS = 14 };

static struct queue samples, jobs, finished;
static uint32_t interrupts;

/* The program's results, for a debugger. */
volatile uint32_t results[8];

void Timer0_Handler(void)
{
    TIMER0_INTCLEAR = 1;
    queue_send_from_interrupt(&samples, ++interrupts);
}

static void sampler(void *argument)
{
    (void)argument;
    for (;;) {
        uint32_t sample = queue_receive(&samples);
        results[0] += crc32((const uint8_t *)&sample, 1);
        queue_send(&jobs, sample);
    }
}

static void worker(void *argument)
{
    volatile uint32_t *result = argument;
    for (;;) {
        uint32_t job = queue_receive(&jobs);
        *result += fibonacci(4 + job % 3);
        if (job % 3 == 0)
            task_delay(1);
        queue_send(&finished, job);
    }
}

static void sorter(void *argument)
{
    static int32_t items[12];
    uint32_t seed = (uint32_t)argument;
    for (;;) {
        for (size_t i = 0; i < sizeof items / sizeof items[0]; i++)
            items[i] = (int32_t)(next_random(&seed) % 64) - 32;
        quicksort(items, sizeof items / sizeof items[0], seed & 1 ? by_magnitude : ascending);
        results[3] += (uint32_t)items[0];
        task_yield();
        if (items[0] & 1)
            task_delay(1);
    }
}

static void machine(void *argument)
{
    static const uint8_t countdown[] = {
        PUSH, 5, PUSH, 1, SUB, DUP, JUMP_IF, 2, DROP, PUSH, 7, PUSH, 30, MUL, CLAMP, NEGATE, HALT,
    };
    (void)argument;
    for (;;) {
        results[4] += (uint32_t)interpret(countdown, sizeof countdown);
        results[4] += (uint32_t)interpret(countdown, sizeof countdown);
        task_delay(2);
    }
}

/* Ends by returning. */
static void burst(void *argument)
{
    results[5] += count_words(argument);
    task_delay(1);
    results[5] += count_words(argument);
}

/* Deletes itself inside a call. */
static void probe(void *argument)
{
    results[6] += gcd((uint32_t)argument, 84);
    task_yield();
    task_delete(0);
}

static void supervisor(void *argument)
{
    static const char *const names[] = { "sort 1", "sort 2", "sort 3", "sort 4", "sort 5", "sort 6", "sort 7" };
    task_t *low = task_create("machine", machine, argument, 1);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        task_create("burst", burst, "a task that returns", 2 + 2 * (round & 1));
        queue_receive(&finished);
        task_create("probe", probe, (void *)(36 + round), 4);
        queue_receive(&finished);
        task_delay(2);
        /* The task is ready or delayed. Its control block is the next new task's. */
        task_delete(low);
        if (round & 1)
            low = task_create("machine", machine, argument, 1);
        else
            low = task_create(names[round / 2], sorter, (void *)(round + 1), 1);
        queue_receive(&finished);
    }
    finish();
}

static void idle(void *argument)
{
    (void)argument;
    for (;;)
        __asm__ volatile("wfi");
}

int main(void)
{
    kernel_prepare();
    queue_prepare(&samples);
    queue_prepare(&jobs);
    queue_prepare(&finished);
    task_create("IDLE", idle, 0, 0);
    task_create("worker A", worker, (void *)&results[1], 2);
    task_create("worker B", worker, (void *)&results[2], 2);
    task_create("sampler", sampler, 0, 4);
    task_create("sorter", sorter, (void *)7, 1);
    task_create("supervisor", supervisor, 0, 3);
    NVIC_ISER0 = 1u << 8;
    TIMER0_RELOAD = 2311;
    TIMER0_CTRL = 9;                     /* enabled, with its interrupt */
    kernel_start();
}
