#include "kernel.h"

void start_first_task(void) __attribute__((noreturn));

OBJECTS

static task_t blocks[TASKS];
static uint32_t stacks[TASKS][STACK_WORDS];
static struct link free_blocks, delayed;
static volatile uint32_t ticks;
static uint16_t created;
static uint8_t started;

static uint32_t mask_interrupts(void)
{
    uint32_t before;
    __asm__ volatile("mrs %0, primask\n\tcpsid i" : "=r"(before) : : "memory");
    return before;
}

static void restore_interrupts(uint32_t before)
{
    __asm__ volatile("msr primask, %0" : : "r"(before) : "memory");
}

static void list_prepare(struct link *list)
{
    list->next = list->previous = list;
}

static int is_empty(const struct link *list)
{
    return list->next == list;
}

static void append(struct link *list, struct link *link)
{
    link->next = list;
    link->previous = list->previous;
    list->previous->next = link;
    list->previous = link;
}

static void take_out(struct link *link)
{
    link->previous->next = link->next;
    link->next->previous = link->previous;
}

static task_t *task_of(struct link *link)
{
    return (task_t *)((char *)link - offsetof(task_t, LINK));
}

static void move(task_t *task, struct link *list)
{
    take_out(&task->LINK);
    append(list, &task->LINK);
}

static void make_ready(task_t *task)
{
    move(task, &READY[task->PRIORITY]);
    if (task->PRIORITY > CURRENT->PRIORITY)
        SCB_ICSR = PENDSVSET;
}

static void wake_first(struct link *waiting)
{
    if (!is_empty(waiting))
        make_ready(task_of(waiting->next));
}

/* The caller masks interrupts; other tasks run until this one is ready again. */
static void wait_in(struct link *list)
{
    move(CURRENT, list);
    SCB_ICSR = PENDSVSET;
    __asm__ volatile("cpsie i\n\tisb\n\tcpsid i" : : : "memory");
}

void kernel_prepare(void)
{
    for (size_t i = 0; i < PRIORITIES; i++)
        list_prepare(&READY[i]);
    list_prepare(&free_blocks);
    list_prepare(&delayed);
    for (size_t i = 0; i < TASKS; i++) {
        blocks[i].STACK = stacks[i];
        append(&free_blocks, &blocks[i].LINK);
    }
}

/* A task that returns from its function ends here. */
static void task_end(void)
{
    task_delete(0);
}

task_t *task_create(const char *name, void (*entry)(void *), void *argument, uint32_t priority)
{
    uint32_t before = mask_interrupts();
    task_t *task = task_of(free_blocks.next);
    size_t length = 0;
    for (; name[length] && length < sizeof task->NAME - 1; length++)
        task->NAME[length] = name[length];
    task->NAME[length] = 0;
    task->NUMBER = ++created;
    task->PRIORITY = priority;
    task->DELETED = 0;
    task->ENTRY = entry;

    /* As the switch and an exception return expect it. */
    uint32_t *stack = &task->STACK[STACK_WORDS - 17];
    stack[8] = 0xfffffffd;               /* thread mode, process stack */
    stack[9] = (uint32_t)argument;
    stack[9 + 5] = (uint32_t)task_end;
    stack[9 + 6] = (uint32_t)entry & ~1u;
    stack[9 + 7] = 1u << 24;             /* Thumb state */
    task->SAVED_STACK = stack;

    if (started) {
        make_ready(task);
    } else {
        move(task, &READY[priority]);
        if (!CURRENT || task->PRIORITY > CURRENT->PRIORITY)
            CURRENT = task;
    }
    restore_interrupts(before);
    return task;
}

void task_delete(task_t *task)
{
    uint32_t before = mask_interrupts();
    if (!task)
        task = CURRENT;
    task->DELETED = 1;
    take_out(&task->LINK);
    append(free_blocks.next, &task->LINK);   /* the first: the next new task gets this control block */
    if (task == CURRENT)
        SCB_ICSR = PENDSVSET;
    restore_interrupts(before);
}

void task_yield(void)
{
    SCB_ICSR = PENDSVSET;
    __asm__ volatile("dsb\n\tisb" : : : "memory");
}

void task_delay(uint32_t duration)
{
    uint32_t before = mask_interrupts();
    CURRENT->WAKE_TIME = ticks + duration;
    wait_in(&delayed);
    restore_interrupts(before);
}

void queue_prepare(struct queue *queue)
{
    list_prepare(&queue->senders);
    list_prepare(&queue->receivers);
}

static void put(struct queue *queue, uint32_t item)
{
    queue->items[(queue->first + queue->count++) % QUEUE_ITEMS] = item;
    wake_first(&queue->receivers);
}

void queue_send(struct queue *queue, uint32_t item)
{
    uint32_t before = mask_interrupts();
    while (queue->count == QUEUE_ITEMS)
        wait_in(&queue->senders);
    put(queue, item);
    restore_interrupts(before);
}

void queue_send_from_interrupt(struct queue *queue, uint32_t item)
{
    uint32_t before = mask_interrupts();
    if (queue->count < QUEUE_ITEMS)
        put(queue, item);
    restore_interrupts(before);
}

uint32_t queue_receive(struct queue *queue)
{
    uint32_t before = mask_interrupts();
    while (queue->count == 0)
        wait_in(&queue->receivers);
    uint32_t item = queue->items[queue->first];
    queue->first = (queue->first + 1) % QUEUE_ITEMS;
    queue->count--;
    wake_first(&queue->senders);
    restore_interrupts(before);
    return item;
}

uint32_t *next_task(uint32_t *stack)
{
    uint32_t before = mask_interrupts();
    CURRENT->SAVED_STACK = stack;
    size_t priority = PRIORITIES - 1;
    while (is_empty(&READY[priority]))
        priority--;
    task_t *next = task_of(READY[priority].next);
    move(next, &READY[priority]);        /* tasks of one priority take turns */
    CURRENT = next;
    restore_interrupts(before);
    return (uint32_t *)next->SAVED_STACK;
}

void SysTick_Handler(void)
{
    uint32_t before = mask_interrupts();
    ticks++;
    struct link *link = delayed.next;
    while (link != &delayed) {
        task_t *task = task_of(link);
        link = link->next;
        if (task->WAKE_TIME == ticks)
            make_ready(task);
    }
    /* A task of the same priority takes its turn. */
    if (READY[CURRENT->PRIORITY].next->next != &READY[CURRENT->PRIORITY])
        SCB_ICSR = PENDSVSET;
    restore_interrupts(before);
}

volatile uint32_t *first_stack(void)
{
    started = 1;
    return CURRENT->SAVED_STACK;
}

void kernel_start(void)
{
    SCB_SHPR2 = 0x40000000;              /* SVCall */
    SCB_SHPR3 = 0xe0e00000;              /* SysTick, PendSV lowest */
    SYST_RVR = 999;
    SYST_CVR = 0;
    SYST_CSR = 7;
    start_first_task();
}
