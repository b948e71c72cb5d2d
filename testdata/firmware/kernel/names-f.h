/* The kernel's types and objects under the names that FreeRTOS gives to the same things. */
#ifndef NAMES_H
#define NAMES_H

#include "list.h"

typedef struct tskTaskControlBlock {
    volatile uint32_t *pxTopOfStack;
    struct link xStateListItem;
    uint8_t ucDeleted;
    uint16_t usNumber;
    uint32_t uxPriority;
    uint32_t xWakeTime;
    char pcTaskName[16];
    uint32_t *pxStack;
    void (*pxEntry)(void *);
} TCB_t;

typedef TCB_t task_t;

extern TCB_t *volatile pxCurrentTCB;
extern struct link pxReadyTasksLists[PRIORITIES];

#define OBJECTS                                                                                                        \
    TCB_t *volatile pxCurrentTCB;                                                                                      \
    struct link pxReadyTasksLists[PRIORITIES];

#define CURRENT pxCurrentTCB
#define READY pxReadyTasksLists
#define SAVED_STACK pxTopOfStack
#define LINK xStateListItem
#define DELETED ucDeleted
#define NUMBER usNumber
#define PRIORITY uxPriority
#define WAKE_TIME xWakeTime
#define NAME pcTaskName
#define STACK pxStack
#define ENTRY pxEntry

#endif
