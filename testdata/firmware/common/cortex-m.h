/* The system registers that the Cortex-M programs use. */
#ifndef CORTEX_M_H
#define CORTEX_M_H

#include "work.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define SYST_CSR REGISTER(0xe000e010)
#define SYST_RVR REGISTER(0xe000e014)
#define SYST_CVR REGISTER(0xe000e018)
#define NVIC_ISER0 REGISTER(0xe000e100)
#define NVIC_ISPR0 REGISTER(0xe000e200)
#define NVIC_IPR0 REGISTER(0xe000e400)
#define SCB_ICSR REGISTER(0xe000ed04)
#define SCB_SHPR2 REGISTER(0xe000ed1c)
#define SCB_SHPR3 REGISTER(0xe000ed20)
#define SCB_SHCSR REGISTER(0xe000ed24)

#define PENDSVSET (1u << 28)

#endif
