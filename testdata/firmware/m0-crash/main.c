/*
 * A crash for the trace to explain: a logger on a Cortex-M0+ works for a while, then `log_message` copies a message
 * that is longer than its slot. The bytes after the slot are the timer's callback, and the next SysTick interrupt
 * calls them. The program ends in HardFault_Handler, which only spins: the registers do not show how the program
 * got there.
 */
#include "work.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define SYST_CSR REGISTER(0xe000e010)
#define SYST_RVR REGISTER(0xe000e014)
#define SYST_CVR REGISTER(0xe000e018)

static void on_tick(void);

static struct {
    char slots[4][16];
    void (*on_tick)(void);
    uint32_t written;
} logger = { .on_tick = on_tick };

static volatile uint32_t ticks;
static uint32_t checksum;

static void on_tick(void)
{
    ticks++;
    SYST_RVR = 900 + (ticks * 37 & 255);
}

void SysTick_Handler(void)
{
    logger.on_tick();
}

/* Does not look at the length: this is the mistake. */
static void __attribute__((noinline)) log_message(const char *message)
{
    char *to = logger.slots[logger.written++ % 4];
    while ((*to++ = *message++) != '\0') {
    }
}

static const char *const messages[] = {
    "started", "reading sensor", "sensor is fine", "waiting", "reading sensor", "sensor is warm", "waiting",
    "sensor 3 is far too hot",
};

int main(void)
{
    SYST_RVR = 1000;
    SYST_CVR = 0;
    SYST_CSR = 7;
    for (uint32_t i = 0;; i++) {
        if (i % 2 == 0) {
            const char *message = messages[i / 2 % 8];
            log_message(message);
            checksum += crc32((const uint8_t *)message, 6) + count_words(message);
        }
        checksum += fibonacci(i % 8) ^ gcd(12 + i, 18);
    }
}
