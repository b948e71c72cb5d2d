/* A small preemptive kernel: tasks with priorities, delays and queues. */
#ifndef KERNEL_H
#define KERNEL_H

/* names-f.h or names-z.h, from the compiler's command line: the two builds differ in names and layouts only. */
#include NAMES

enum { QUEUE_ITEMS = 2 };

struct queue {
    struct link senders, receivers;
    uint32_t first, count;
    uint32_t items[QUEUE_ITEMS];
};

void kernel_prepare(void);
void kernel_start(void) __attribute__((noreturn));

/* The new task runs at once if its priority is higher than the caller's. */
task_t *task_create(const char *name, void (*entry)(void *), void *argument, uint32_t priority);

/* Deletes a task; the running one if `task` is null. Its control block and stack are used again. */
void task_delete(task_t *task);
void task_yield(void);
void task_delay(uint32_t ticks);

void queue_prepare(struct queue *queue);
void queue_send(struct queue *queue, uint32_t item);
uint32_t queue_receive(struct queue *queue);

/* Drops the item if the queue is full. */
void queue_send_from_interrupt(struct queue *queue, uint32_t item);

#endif
