/*
 * A QEMU plugin that writes each load and store into QEMU's log, between the instructions that `-d exec` writes:
 *
 *     Access INSTRUCTION ADDRESS SIZE r|w VALUE
 *
 * hexadecimal, SIZE in bytes, VALUE `-` outside RAM. The plugin interface of QEMU 7.2 reports the address of an access
 * but not its value, so RAM must be a file (`-object memory-backend-file,share=on`). The plugin maps this file and reads
 * the value right after the access. Virtual addresses must equal physical ones.
 *
 *     -plugin accesses.so,ram=FILE,base=ADDRESS -d plugin
 *     -plugin accesses.so,ram=FILE,base=ADDRESS,stores=POINTER,object=BYTES
 *     -plugin accesses.so,limit=COUNT
 *
 * With `stores`, it writes only the stores to the pointer at this address, and after each the bytes of the object to which the
 * pointer then points:
 *
 *     Object ADDRESS BYTES
 *
 * With `limit`, the plugin ends the emulation after COUNT instructions, for programs that do not end by themselves.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The declarations that this plugin uses of QEMU's plugin interface, version 1. */
extern void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, void (*translated)(uint64_t id, void *block));
extern size_t qemu_plugin_tb_n_insns(const void *block);
extern void *qemu_plugin_tb_get_insn(const void *block, size_t index);
extern uint64_t qemu_plugin_insn_vaddr(const void *instruction);
extern void qemu_plugin_register_vcpu_mem_cb(void *instruction,
                                             void (*accessed)(unsigned cpu, uint32_t info, uint64_t address, void *data),
                                             int registers_read, int loads_and_stores, void *data);
extern void qemu_plugin_register_vcpu_insn_exec_cb(void *instruction, void (*executed)(unsigned cpu, void *data),
                                                   int registers_read, void *data);
extern unsigned qemu_plugin_mem_size_shift(uint32_t info);
extern bool qemu_plugin_mem_is_store(uint32_t info);
extern void qemu_plugin_outs(const char *text);

#define EXPORT __attribute__((visibility("default")))
#define NO_REGISTERS 0
#define LOADS_AND_STORES 3

EXPORT int qemu_plugin_version = 1;

static const unsigned char *ram;
static uint64_t ram_base;
static uint64_t ram_size;
static uint64_t instructions_left;
static uint64_t pointer;
static uint64_t object_size;

static const unsigned char *at(uint64_t address, uint64_t size)
{
    return address >= ram_base && address - ram_base + size <= ram_size ? ram + (address - ram_base) : NULL;
}

static void write_object(uint32_t address)
{
    const unsigned char *bytes = at(address, object_size);
    if (!bytes)
        return;
    char line[300];
    int length = snprintf(line, sizeof line, "Object %" PRIx32 " ", address);
    for (uint64_t i = 0; i < object_size && i < 128; i++)
        length += snprintf(line + length, sizeof line - (size_t)length, "%02x", bytes[i]);
    snprintf(line + length, sizeof line - (size_t)length, "\n");
    qemu_plugin_outs(line);
}

static void accessed(unsigned cpu, uint32_t info, uint64_t address, void *instruction)
{
    (void)cpu;
    unsigned size = 1u << qemu_plugin_mem_size_shift(info);
    if (pointer && (address != pointer || !qemu_plugin_mem_is_store(info)))
        return;
    char value[20] = "-";
    uint64_t bytes = 0;
    const unsigned char *here = at(address, size);
    if (here) {
        memcpy(&bytes, here, size); /* host and guest are little endian */
        snprintf(value, sizeof value, "%" PRIx64, bytes);
    }
    char line[100];
    snprintf(line, sizeof line, "Access %" PRIxPTR " %" PRIx64 " %u %c %s\n", (uintptr_t)instruction, address, size,
             qemu_plugin_mem_is_store(info) ? 'w' : 'r', value);
    qemu_plugin_outs(line);
    if (pointer)
        write_object((uint32_t)bytes);
}

static void executed(unsigned cpu, void *data)
{
    (void)cpu;
    (void)data;
    /* QEMU flushes its log after every entry, so nothing is lost. */
    if (--instructions_left == 0)
        _exit(0);
}

static void translated(uint64_t id, void *block)
{
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++) {
        void *instruction = qemu_plugin_tb_get_insn(block, i);
        if (ram)
            qemu_plugin_register_vcpu_mem_cb(instruction, accessed, NO_REGISTERS, LOADS_AND_STORES,
                                             (void *)(uintptr_t)qemu_plugin_insn_vaddr(instruction));
        if (instructions_left)
            qemu_plugin_register_vcpu_insn_exec_cb(instruction, executed, NO_REGISTERS, NULL);
    }
}

EXPORT int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv)
{
    (void)info;
    const char *path = NULL;
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "ram=", 4) == 0)
            path = argv[i] + 4;
        else if (strncmp(argv[i], "base=", 5) == 0)
            ram_base = strtoull(argv[i] + 5, NULL, 0);
        else if (strncmp(argv[i], "stores=", 7) == 0)
            pointer = strtoull(argv[i] + 7, NULL, 0);
        else if (strncmp(argv[i], "object=", 7) == 0)
            object_size = strtoull(argv[i] + 7, NULL, 0);
        else if (strncmp(argv[i], "limit=", 6) == 0)
            instructions_left = strtoull(argv[i] + 6, NULL, 0);
        else
            return -1;
    }
    if (path) {
        int file = open(path, O_RDONLY);
        struct stat status;
        if (file < 0 || fstat(file, &status) != 0)
            return -1;
        ram_size = (uint64_t)status.st_size;
        ram = mmap(NULL, ram_size, PROT_READ, MAP_SHARED, file, 0);
        if (ram == MAP_FAILED)
            return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    return 0;
}
