/*
 * Example program for a Cortex-M4: long jumps that report errors over many frames at once, from one catcher to the next,
 * and out of recursion, while SysTick interrupts at varying places.
 */
#include "cortex-m.h"

typedef uint32_t jmp_buf[10];

int setjmp(jmp_buf place) __attribute__((returns_twice));
void longjmp(jmp_buf place, int value) __attribute__((noreturn));
void finish(void) __attribute__((noreturn));

#define OF_ITS_OWN __attribute__((noinline, noclone))

/* The program's results, for a debugger. */
volatile uint32_t results[6];

static uint32_t tick_seed = 9;
static jmp_buf outer, inner;

void SysTick_Handler(void)
{
    SYST_RVR = 90 + (next_random(&tick_seed) & 127);
    results[0]++;
}

/* Six nested functions; each does work after its call, so that no call is a tail call. */
static OF_ITS_OWN uint32_t sixth(uint32_t input)
{
    if (input % 3 == 0)
        longjmp(outer, (int)input + 1);
    return input * 2;
}

static OF_ITS_OWN uint32_t fifth(uint32_t input)
{
    uint32_t bytes[2] = { input, input + 1 };
    return sixth(input) + crc32((const uint8_t *)bytes, sizeof bytes);
}

static OF_ITS_OWN uint32_t fourth(uint32_t input)
{
    return fifth(input) ^ results[1];
}

static OF_ITS_OWN uint32_t third(uint32_t input)
{
    uint32_t sum = fourth(input);
    return sum + fibonacci(3);
}

static OF_ITS_OWN uint32_t second(uint32_t input)
{
    return third(input) + results[2];
}

static OF_ITS_OWN uint32_t first(uint32_t input)
{
    return second(input) - results[3];
}

/* Recursion that the compiler cannot turn into a loop: the result of the inner call is used twice. */
static OF_ITS_OWN uint32_t descend(uint32_t depth)
{
    if (depth == 0) {
        if (results[0] < 1000)
            longjmp(inner, 3);
        return 1;
    }
    uint32_t below = descend(depth - 1);
    return below * below + results[1];
}

/* Catches the error that `descend` reports, and passes it on. */
static OF_ITS_OWN void passes_on(uint32_t depth)
{
    int caught = setjmp(inner);
    if (caught == 0)
        results[4] += descend(depth);
    results[4] += (uint32_t)caught;
    longjmp(outer, caught + 10);
}

int main(void)
{
    SCB_SHPR3 = 0x80000000;
    SYST_RVR = 120;
    SYST_CVR = 0;
    SYST_CSR = 7;
    for (volatile uint32_t round = 0; round < 32; round++) {
        int caught = setjmp(outer);
        if (caught == 0) {
            if (round % 4 == 3)
                passes_on(5 + round % 12);
            results[5] += first(round);
        } else {
            results[5] += fibonacci(2) + (uint32_t)caught;
        }
    }
    SYST_CSR = 0;
    finish();
}
