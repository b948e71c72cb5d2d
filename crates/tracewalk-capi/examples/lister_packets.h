/* The lines of trc_pkt_lister -decode for packets of instruction trace: `[0x76 ];	ERET : Exception return packet; `.
 *
 * If no line is known for a packet, tracewalk's name of the packet is printed.
 */
#ifndef LISTER_PACKETS_H
#define LISTER_PACKETS_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <tracewalk.h>

enum protocol { ETMV3, PFT, ETMV4 };

/* A field of a packet, or null. */
static const tracewalk_field *field(const tracewalk_packet *packet, const char *name) {
    for (size_t index = 0; index < packet->field_count; index++) {
        if (strcmp(packet->fields[index].name, name) == 0) {
            return &packet->fields[index];
        }
    }
    return NULL;
}

static uint64_t number(const tracewalk_packet *packet, const char *name) {
    const tracewalk_field *found = field(packet, name);
    return found != NULL ? found->value : 0;
}

static const char *words(const tracewalk_packet *packet, const char *name) {
    const tracewalk_field *found = field(packet, name);
    return found != NULL ? found->text : "";
}

/* A line while it is built. */
struct text {
    char letters[1024];
    size_t length;
};

static void say(struct text *text, const char *format, ...) {
    va_list values;
    va_start(values, format);
    int length = vsnprintf(text->letters + text->length, sizeof text->letters - text->length, format, values);
    va_end(values);
    if (length > 0) {
        text->length += (size_t)length < sizeof text->letters - text->length ? (size_t)length : sizeof text->letters - text->length - 1;
    }
}

/* The low bits of a value, if only these were sent. */
static uint64_t low_bits(uint64_t value, unsigned bits) { return bits < 64 ? value & ((UINT64_C(1) << bits) - 1) : value; }

/* The exceptions of PFT, and of ETMv3 for A profile. */
static const char *a_profile_exception(uint64_t number) {
    static const char *const NAMES[] = {"No Exception", "Debug Halt",      "SMC", "Hyp",            "Async Data Abort", "Jazelle", "Reserved", "Reserved",
                                        "PE Reset",     "Undefined Instr", "SVC", "Prefetch Abort", "Data Fault",       "Generic", "IRQ",      "FIQ"};
    return number < sizeof NAMES / sizeof *NAMES ? NAMES[number] : "Reserved";
}

/* The codes of ETMv3 for M profile: 1 to 7 are IRQ1 to IRQ7, 8 is IRQ0, and the others from 24 on. */
static void say_m_profile_exception(struct text *text, uint64_t code) {
    static const char *const NAMES[] = {"UsageFault", "NMI", "SVC", "DebugMonitor", "MemManage", "PendSV", "SysTick", "Reserved", "HardFault", "Reserved",
                                        "BusFault"};
    if (code >= 9 && code < 9 + sizeof NAMES / sizeof *NAMES) {
        say(text, "%s", NAMES[code - 9]);
    } else {
        say(text, "IRQ%" PRIu64, code == 8 ? 0 : code >= 24 ? code - 16 : code);
    }
}

/* The types of ETMv4 for A profile. */
static const char *v4_exception(uint64_t number) {
    static const char *const NAMES[] = {"PE Reset",   "Debug Halt", "Call",     "Trap",     "System Error", "Reserved", "Inst Debug", "Data Debug",
                                        "Reserved", "Reserved",   "Alignment", "Inst Fault", "Data Fault",   "Reserved", "IRQ",        "FIQ"};
    return number < sizeof NAMES / sizeof *NAMES ? NAMES[number] : "Reserved";
}

/* `Addr=0x600000F0 ~[0xF0]; `: an address of ETMv3 and PFT. Each byte has seven bits, and bit 7 if another byte
 * follows; the first byte begins at bit 1 of Thumb addresses, or bit 2 of Arm addresses. */
static void say_address(struct text *text, const tracewalk_packet *packet, size_t first, const char *isa) {
    size_t bytes = 1;
    while (bytes < 5 && first + bytes < packet->byte_count && packet->bytes[first + bytes - 1] & 0x80) {
        bytes++;
    }
    unsigned bits = bytes == 5 ? 32 : 7 * (unsigned)bytes + (strcmp(isa, "A32") == 0 ? 1 : 0);
    uint64_t address = number(packet, "addr");
    say(text, "Addr=0x%08" PRIX64 " ~[0x%" PRIX64 "]; ", address, low_bits(address, bits));
}

/* `ISA=Thumb2; `, if the packet states another instruction set than the one before. */
static void say_isa(struct text *text, const tracewalk_packet *packet, const char *before) {
    const char *isa = words(packet, "isa");
    if (isa[0] != '\0' && strcmp(isa, before) != 0) {
        say(text, "ISA=%s; ", strcmp(isa, "A32") == 0 ? "ARM(32)" : strcmp(isa, "T32") == 0 ? "Thumb2" : isa);
    }
}

/* `(Periodic); Addr=0x60010358; S;  ISA=Thumb2; `: an I-sync of ETMv3 and PFT. */
static void say_sync(struct text *text, const tracewalk_packet *packet) {
    static const char *const REASONS[] = {"(Periodic); ", "(Trace Enable); ", "(Restart Overflow); ", "(Debug Exit); "};
    say(text, "%sAddr=0x%08" PRIx64 "; %s ", REASONS[number(packet, "reason") & 3], number(packet, "addr"),
        number(packet, "ns") != 0 ? "NS; " : "S; ");
    say_isa(text, packet, "");
}

static void say_etmv3(struct text *text, const tracewalk_packet *packet, const char *isa, int is_m_profile) {
    const char *name = packet->name;
    if (strcmp(name, "a_sync") == 0) {
        say(text, "A_SYNC : Alignment Synchronisation.");
    } else if (strcmp(name, "i_sync") == 0) {
        say(text, "I_SYNC : Instruction Packet synchronisation.; ");
        say_sync(text, packet);
    } else if (strcmp(name, "p_header") == 0) {
        say(text, "P_HDR : Atom P-header.; %s", words(packet, "atoms"));
    } else if (strcmp(name, "exception_return") == 0) {
        say(text, "EXCEPTION_EXIT : Exception return.");
    } else if (strcmp(name, "branch") == 0) {
        say(text, "BRANCH_ADDRESS : Branch address.; ");
        say_address(text, packet, 0, isa);
        if (field(packet, "exception") != NULL) {
            say(text, "%sException=", number(packet, "ns") != 0 ? "NS; " : "S; ");
            if (is_m_profile) {
                say_m_profile_exception(text, number(packet, "exception"));
            } else {
                say(text, "%s; ", a_profile_exception(number(packet, "exception")));
            }
            say(text, "%s", number(packet, "cancel") != 0 ? "; Cancel prev instr" : "");
        }
    } else {
        say(text, "%s", name);
    }
}

static void say_pft(struct text *text, const tracewalk_packet *packet, const char *isa) {
    const char *name = packet->name;
    if (strcmp(name, "a_sync") == 0) {
        say(text, "ASYNC : Alignment Synchronisation Packet; ");
    } else if (strcmp(name, "i_sync") == 0) {
        say(text, "ISYNC : Instruction Synchronisation packet; ");
        say_sync(text, packet);
    } else if (strcmp(name, "atom") == 0) {
        say(text, "ATOM : Atom packet; %s; ", words(packet, "atoms"));
    } else if (strcmp(name, "exception_return") == 0) {
        say(text, "ERET : Exception return packet; ");
    } else if (strcmp(name, "branch") == 0) {
        say(text, "BRANCH_ADDRESS : Branch address packet; ");
        say_address(text, packet, 0, isa);
        say_isa(text, packet, isa);
        if (field(packet, "exception") != NULL) {
            uint64_t exception = number(packet, "exception");
            say(text, "%sExcep=%s [%02" PRIx64 "]; ", number(packet, "ns") != 0 ? "NS; " : "S; ", a_profile_exception(exception), exception);
        }
    } else if (strcmp(name, "waypoint_update") == 0) {
        say(text, "WP_UPDATE : Waypoint update packet; ");
        say_address(text, packet, 1, isa);
        say_isa(text, packet, isa);
    } else if (strcmp(name, "timestamp") == 0) {
        uint64_t time = number(packet, "timestamp");
        unsigned bits = packet->byte_count > 9 ? 64 : 7 * (unsigned)(packet->byte_count - 1);
        say(text, "TIMESTAMP : Timestamp packet; TS=0x%016" PRIX64 " ~[0x%" PRIX64 "](%" PRIu64 "); ", time, low_bits(time, bits), time);
    } else {
        say(text, "%s", name);
    }
}

/* `Ctxt: AArch64,EL1, NS; CID=0x00020000; VMID=0x0000; `: a context of ETMv4. */
static void say_context(struct text *text, const tracewalk_packet *packet) {
    say(text, "Ctxt: %sEL%" PRIu64 ", %s; ", number(packet, "sf") != 0 ? "AArch64," : "AArch32, ", number(packet, "el"),
        number(packet, "ns") != 0 ? "NS" : "S");
    if (field(packet, "context_id") != NULL) {
        say(text, "CID=0x%08" PRIx64 "; ", number(packet, "context_id"));
    }
    if (field(packet, "vmid") != NULL) {
        say(text, "VMID=0x%04" PRIx64 "; ", number(packet, "vmid"));
    }
}

static void say_etmv4_address(struct text *text, const tracewalk_packet *packet) {
    const char *form = words(packet, "form");
    uint64_t address = number(packet, "addr"), set = number(packet, "is");
    int has_context = field(packet, "el") != NULL;
    if (field(packet, "match") != NULL) {
        say(text, "I_ADDR_MATCH : Exact Address Match., [%" PRIu64 "]; Addr=0x%016" PRIX64 "; ", number(packet, "match"), address);
    } else if (strcmp(form, "short") == 0) {
        unsigned bits = 7 * (unsigned)(packet->byte_count - 1) + (packet->byte_count > 2 ? 1 : 0) + (set == 0 ? 2 : 1);
        say(text, "I_ADDR_S_IS%" PRIu64 " : Address, Short, IS%" PRIu64 ".; Addr=0x%016" PRIX64 " ~[0x%" PRIX64 "]", set, set, address,
            low_bits(address, bits));
    } else {
        int is_long = strcmp(form, "long64") == 0;
        /* OpenCSD prints IS0 for IS1 with a context. */
        say(text, "I_ADDR_%sL_%dIS%" PRIu64 " : Address%s, Long, %d bit, IS%" PRIu64 ".; Addr=0x%016" PRIX64 "; ", has_context ? "CTXT_" : "",
            is_long ? 64 : 32, set, has_context ? " & Context" : "", is_long ? 64 : 32, has_context ? 0 : set, address);
        if (has_context) {
            say_context(text, packet);
        }
    }
}

/* `Atom: EE, `, if the packet has atoms. */
static void say_atoms(struct text *text, const tracewalk_packet *packet) {
    if (field(packet, "atoms") != NULL) {
        say(text, "Atom: %s, ", words(packet, "atoms"));
    }
}

static void say_etmv4(struct text *text, const tracewalk_packet *packet) {
    const char *name = packet->name;
    if (strcmp(name, "a_sync") == 0) {
        say(text, "I_ASYNC : Alignment Synchronisation.");
    } else if (strcmp(name, "trace_info") == 0) {
        say(text, "I_TRACE_INFO : Trace Info.; INFO=0x%" PRIx64 " { CC.%" PRIu64 " }", number(packet, "info"), number(packet, "info") & 1);
        if (number(packet, "info") & 1) {
            say(text, "; CC_THRESHOLD=0x%" PRIx64, number(packet, "threshold"));
        }
    } else if (strcmp(name, "trace_on") == 0) {
        say(text, "I_TRACE_ON : Trace On.");
    } else if (strcmp(name, "atom") == 0) {
        say(text, "I_ATOM_F%" PRIu64 " : Atom format %" PRIu64 ".; %s", number(packet, "format"), number(packet, "format"),
            words(packet, "atoms"));
    } else if (strcmp(name, "exception") == 0) {
        say(text, "I_EXCEPT : Exception.;  %s; Ret Addr Follows%s;", v4_exception(number(packet, "exception")),
            number(packet, "interpretation") == 2 ? ", Match Prev" : "");
    } else if (strcmp(name, "cycle_count") == 0) {
        say(text, "I_CCNT_F%" PRIu64 " : Cycle Count format %" PRIu64 ".; Count=0x%" PRIx64, number(packet, "format"), number(packet, "format"),
            number(packet, "cycles"));
    } else if (strcmp(name, "commit") == 0) {
        say(text, "I_COMMIT : Commit; Commit(%" PRIu64 ")", number(packet, "commit"));
    } else if (strcmp(name, "cancel") == 0) {
        int mispredicts = number(packet, "mispredict") != 0, says_so = mispredicts && number(packet, "format") == 1;
        say(text, "I_CANCEL_F%" PRIu64 "%s : Cancel Format %" PRIu64 "%s.; ", number(packet, "format"), says_so ? "_MISPRED" : "",
            number(packet, "format"), says_so ? " + Mispredict" : "");
        say_atoms(text, packet);
        say(text, "Cancel(%" PRIu64 ")%s", number(packet, "cancel"), mispredicts ? ", Mispredict" : "");
    } else if (strcmp(name, "mispredict") == 0) {
        say(text, "I_MISPREDICT : Mispredict.; ");
        say_atoms(text, packet);
        say(text, "Mispredict");
    } else if (strcmp(name, "exception_return") == 0) {
        say(text, "I_EXCEPT_RTN : Exception Return.");
    } else if (strcmp(name, "timestamp") == 0) {
        say(text, "I_TIMESTAMP : Timestamp.; Updated val = 0x%" PRIx64, number(packet, "timestamp"));
        if (field(packet, "cycles") != NULL) {
            say(text, "; CC=0x%" PRIx64, number(packet, "cycles"));
        }
    } else if (strcmp(name, "context") == 0) {
        say(text, "I_CTXT : Context Packet.; ");
        say_context(text, packet);
    } else if (strcmp(name, "address") == 0) {
        say_etmv4_address(text, packet);
    } else {
        say(text, "%s", name);
    }
}

/* A packet's line without its index. `isa` is the instruction set of the last address sent before it. */
static struct text packet_text(enum protocol protocol, int is_m_profile, const char *isa, const tracewalk_packet *packet) {
    struct text text = {"", 0};
    say(&text, "[");
    for (size_t index = 0; index < packet->byte_count; index++) {
        say(&text, "0x%02x ", packet->bytes[index]);
    }
    say(&text, "];\t");
    if (packet->kind == TRACEWALK_PACKET_KIND_UNSYNCHRONISED) {
        say(&text, protocol == ETMV4 ? "I_NOT_SYNC : I Stream not synchronised" : "NOTSYNC : Trace Stream not synchronised");
    } else if (protocol == ETMV4) {
        say_etmv4(&text, packet);
    } else if (protocol == PFT) {
        say_pft(&text, packet, isa);
    } else {
        say_etmv3(&text, packet, isa, is_m_profile);
    }
    return text;
}

#endif
