/*
 * A Lua interpreter on a Cortex-M3 (QEMU's mps2-an385), interrupted by SysTick: a program whose trace does not repeat.
 * `cargo xtask bench` builds it with the sources of the `lua-src` crate.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"
#include "script.h"

extern uint32_t stack_top[], data_load[], data_start[], data_end[], bss_start[], bss_end[];
extern char heap_start[], heap_end[];

#define SYSTICK ((volatile uint32_t *)0xe000e010)
#define TICK 25000

static volatile uint32_t ticks;
static volatile uint32_t histogram[16];

/* The work of a typical interrupt: short, of varying length. */
static uint32_t account(uint32_t now)
{
    uint32_t sum = 0;
    for (uint32_t bit = 0; bit < (now & 15); bit++)
        sum += histogram[bit] ^ now;
    histogram[now & 15]++;
    return sum;
}

void SysTick_Handler(void)
{
    uint32_t now = ++ticks;
    if (account(now) == now)
        histogram[0] = 0;
}

int main(void)
{
    SYSTICK[1] = TICK - 1;
    SYSTICK[2] = 0;
    SYSTICK[0] = 7;
    lua_State *lua = luaL_newstate();
    luaL_openlibs(lua);
    for (lua_Integer round = 1;; round++) {
        if (luaL_loadbuffer(lua, script, sizeof script - 1, "=script") != LUA_OK)
            abort();
        lua_pushinteger(lua, round);
        if (lua_pcall(lua, 1, 0, 0) != LUA_OK)
            abort();
    }
}

void Reset_Handler(void)
{
    for (uint32_t *to = data_start, *from = data_load; to < data_end;)
        *to++ = *from++;
    for (uint32_t *to = bss_start; to < bss_end;)
        *to++ = 0;
    main();
    for (;;) {
    }
}

void Unexpected_Handler(void)
{
    for (;;) {
    }
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    stack_top, Reset_Handler, Unexpected_Handler, Unexpected_Handler, Unexpected_Handler, Unexpected_Handler,
    Unexpected_Handler, 0, 0, 0, 0, Unexpected_Handler, Unexpected_Handler, 0, Unexpected_Handler, SysTick_Handler,
};

/* The system calls that the C library needs. */
void *_sbrk(ptrdiff_t by)
{
    static char *end = heap_start;
    if (by > heap_end - end) {
        errno = ENOMEM;
        return (void *)-1;
    }
    char *before = end;
    end += by;
    return before;
}

int _write(int file, const char *from, int bytes) { (void)file, (void)from; return bytes; }
int _read(int file, char *to, int bytes) { (void)file, (void)to, (void)bytes; return 0; }
int _open(const char *name, int flags, int mode) { (void)name, (void)flags, (void)mode; return -1; }
int _close(int file) { (void)file; return -1; }
int _lseek(int file, int at, int from) { (void)file, (void)at, (void)from; return 0; }
int _fstat(int file, struct stat *status) { (void)file; status->st_mode = S_IFCHR; return 0; }
int _isatty(int file) { (void)file; return 1; }
int _unlink(const char *name) { (void)name; return -1; }
int _link(const char *from, const char *to) { (void)from, (void)to; return -1; }
int _kill(int process, int signal) { (void)process, (void)signal; return -1; }
int _getpid(void) { return 1; }
int _gettimeofday(void *now, void *zone) { (void)now, (void)zone; return -1; }
int _times(void *now) { (void)now; return -1; }
void _init(void) {}
void _fini(void) {}
void _exit(int status) { (void)status; for (;;) { } }
