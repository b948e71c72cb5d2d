/* The kernel's types and objects under the names that Zephyr gives to the same things. */
#ifndef NAMES_H
#define NAMES_H

#include "list.h"

struct _thread_base {
    struct link qnode_dlist;
    uint8_t thread_state;
    int8_t prio;
    uint16_t number;
    uint32_t timeout;
};

struct _callee_saved {
    volatile uint32_t *psp;
};

struct __thread_entry {
    void (*pEntry)(void *);
};

struct k_thread {
    struct _thread_base base;
    struct _callee_saved callee_saved;
    struct __thread_entry entry;
    char name[32];
    uint32_t *stack_info;
};

typedef struct k_thread task_t;

struct _cpu {
    uint32_t nested;
    uint32_t *irq_stack;
    struct k_thread *current;
    struct k_thread *idle_thread;
    uint8_t id;
};

struct _ready_q {
    struct link runq[PRIORITIES];
};

struct z_kernel {
    struct _cpu cpus[1];
    struct _ready_q ready_q;
};

extern struct z_kernel _kernel;

#define OBJECTS struct z_kernel _kernel;

#define CURRENT _kernel.cpus[0].current
#define READY _kernel.ready_q.runq
#define SAVED_STACK callee_saved.psp
#define LINK base.qnode_dlist
#define DELETED base.thread_state
#define NUMBER base.number
#define PRIORITY base.prio
#define WAKE_TIME base.timeout
#define NAME name
#define STACK stack_info
#define ENTRY entry.pEntry

#endif
