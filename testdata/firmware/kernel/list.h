/* Circular lists: the list itself is a link. */
#ifndef LIST_H
#define LIST_H

#include "cortex-m.h"

enum { PRIORITIES = 5, TASKS = 9, STACK_WORDS = 128 };

struct link { struct link *next, *previous; };

#endif
