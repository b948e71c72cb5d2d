/* Ordinary work for the example programs: every function has a shape that exercises a trace decoder. */
#ifndef WORK_H
#define WORK_H

#include <stddef.h>
#include <stdint.h>

/* One step of a linear congruential generator, so that runs repeat exactly. */
uint32_t next_random(uint32_t *state);

/* CRC-32, one bit at a time: short loops, one unpredictable condition. */
uint32_t crc32(const uint8_t *data, size_t length);

/* Recursion that calls a function pointer for every comparison. */
typedef int (*compare_fn)(int32_t left, int32_t right);
int ascending(int32_t left, int32_t right);
int by_magnitude(int32_t left, int32_t right);
void quicksort(int32_t *items, int count, compare_fn compare);

/* Plain recursion: an expression with two calls. */
uint32_t fibonacci(uint32_t n);

/* Conditional execution without branches. */
int32_t clamp(int32_t value, int32_t low, int32_t high);
uint32_t gcd(uint32_t a, uint32_t b);

/* A bytecode interpreter: a dense switch, which compiles to a table branch for each operation. */
enum operation { PUSH, ADD, SUB, MUL, DUP, SWAP, DROP, NEGATE, CLAMP, JUMP_IF, HALT };
int32_t interpret(const uint8_t *program, size_t length);

/* A state machine of tail calls: each state ends in a branch to the next one. */
uint32_t count_words(const char *text);

#endif
