#include "work.h"

uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

uint32_t crc32(const uint8_t *data, size_t length)
{
    uint32_t crc = ~0u;
    for (size_t i = 0; i < length; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++) {
            if (crc & 1)
                crc = (crc >> 1) ^ 0xedb88320u;
            else
                crc >>= 1;
        }
    }
    return ~crc;
}

int ascending(int32_t left, int32_t right)
{
    return left < right;
}

int by_magnitude(int32_t left, int32_t right)
{
    if (left < 0)
        left = -left;
    if (right < 0)
        right = -right;
    return left < right;
}

static int partition(int32_t *items, int count, compare_fn compare)
{
    int32_t pivot = items[count - 1];
    int store = 0;
    for (int i = 0; i < count - 1; i++) {
        if (compare(items[i], pivot)) {
            int32_t kept = items[store];
            items[store++] = items[i];
            items[i] = kept;
        }
    }
    items[count - 1] = items[store];
    items[store] = pivot;
    return store;
}

void quicksort(int32_t *items, int count, compare_fn compare)
{
    if (count < 2)
        return;
    int middle = partition(items, count, compare);
    quicksort(items, middle, compare);
    quicksort(items + middle + 1, count - middle - 1, compare);
}

uint32_t fibonacci(uint32_t n)
{
    if (n < 2)
        return n;
    return fibonacci(n - 1) + fibonacci(n - 2);
}

int32_t clamp(int32_t value, int32_t low, int32_t high)
{
    if (value < low)
        return low;
    if (value > high)
        return high;
    return value;
}

uint32_t gcd(uint32_t a, uint32_t b)
{
    while (a != b) {
        if (a > b)
            a -= b;
        else
            b -= a;
    }
    return a;
}

int32_t interpret(const uint8_t *program, size_t length)
{
    int32_t stack[8];
    size_t depth = 0;
    size_t at = 0;
    while (at < length) {
        int32_t kept;
        switch (program[at++]) {
        case PUSH:
            stack[depth++] = program[at++];
            break;
        case ADD:
            depth--;
            stack[depth - 1] += stack[depth];
            break;
        case SUB:
            depth--;
            stack[depth - 1] -= stack[depth];
            break;
        case MUL:
            depth--;
            stack[depth - 1] *= stack[depth];
            break;
        case DUP:
            stack[depth] = stack[depth - 1];
            depth++;
            break;
        case SWAP:
            kept = stack[depth - 1];
            stack[depth - 1] = stack[depth - 2];
            stack[depth - 2] = kept;
            break;
        case DROP:
            depth--;
            break;
        case NEGATE:
            stack[depth - 1] = -stack[depth - 1];
            break;
        case CLAMP:
            stack[depth - 1] = clamp(stack[depth - 1], -100, 100);
            break;
        case JUMP_IF:
            kept = stack[--depth];
            if (kept != 0)
                at = program[at];
            else
                at++;
            break;
        case HALT:
            return stack[depth - 1];
        default:
            return -1;
        }
    }
    return 0;
}

/* `noinline` keeps the states apart; at -O2 each `return state(...)` is a branch, not a call. */
static uint32_t __attribute__((noinline)) in_word(const char *text, uint32_t words);
static uint32_t __attribute__((noinline)) in_space(const char *text, uint32_t words);

static uint32_t in_word(const char *text, uint32_t words)
{
    while (*text != ' ') {
        if (*text == '\0')
            return words;
        text++;
    }
    return in_space(text, words);
}

static uint32_t in_space(const char *text, uint32_t words)
{
    while (*text == ' ')
        text++;
    if (*text == '\0')
        return words;
    return in_word(text, words + 1);
}

uint32_t count_words(const char *text)
{
    return in_space(text, 0);
}
