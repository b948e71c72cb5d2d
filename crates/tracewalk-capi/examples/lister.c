/* lister -ss_dir DIR -decode | -decode_only: packets and elements of a snapshot, in the words of OpenCSD's trc_pkt_lister.
 *
 * The program shows where tracewalk has the contents of OpenCSD's packets and generic elements. docs/c.md lists the
 * differences.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tracewalk.h>

#include "lister_index.h"
#include "lister_packets.h"

/* The field `interpretation` of ETMv4's exception packets: the return address is also the target of the branch before. */
#define AT_TARGET 2

/* An atom of ETMv3, which stands for one instruction, and the packet that it is from. */
struct atom {
    uint64_t start, offset;
    char passed;
};

/* A context in a packet: fields that the packet omits keep their values. */
struct context {
    unsigned level, not_secure, is_64_bit, instruction_set;
    uint64_t id, vmid;
    int has_level, has_security, has_id, has_vmid;
};

/* Contents of packets that elements lack: that an exception returns to the target of the branch before, and the cycles
 * of a timestamp. */
struct remark {
    uint64_t start, cycles;
    int at_target, has_cycles;
};

/* A line, and the place in the source's bytes that it belongs to. */
struct line {
    uint64_t start;
    /* For one packet, the text before it comes first, then its elements, then its context. */
    enum { PACKET, BEFORE, ELEMENT, CONTEXT } rank;
    size_t number;
    char *text;
};

/* A source's lines while they are collected. */
struct listing {
    const struct frames *frames;
    const tracewalk_program *program;
    unsigned id;
    enum protocol protocol;
    /* Whether packets are listed, and the profile and instruction set that their addresses depend on. */
    int has_packets, is_m_profile;
    char packet_isa[16];

    struct line *lines;
    size_t line_count;
    uint64_t last_packet;
    struct atom *atoms;
    size_t atom_count, next_atom;
    /* Whether the return from an exception came after the last atom. */
    int returned;

    struct context context;
    /* The context that code is looked up in, if one is known. */
    tracewalk_element code_context;
    int has_code_context;
    struct remark *remarks;
    size_t remark_count, next_remark;
};

static void fail(const char *what) {
    fprintf(stderr, "lister: %s\n", what);
    exit(2);
}

static void must(tracewalk_status status, tracewalk_error *error) {
    if (status < 0) {
        fail(tracewalk_error_message(error));
    }
}

/* Memory for one more value: it doubles at powers of two. */
static void *more(void *values, size_t count, size_t size) {
    if ((count & (count - 1)) == 0 && (values = realloc(values, (count == 0 ? 1 : count * 2) * size)) == NULL) {
        fail("found no memory");
    }
    return values;
}

/* Adds `Idx:…; ID:…; OCSD_GEN_TRC_ELEM_…`. */
static void add_ranked(struct listing *list, int rank, uint64_t start, uint64_t offset, const char *format, ...) {
    char text[1200];
    va_list words;
    /* Packets of a source without frames have no ID. */
    unsigned id = rank == PACKET && list->frames->bytes == NULL ? 0 : list->id;
    int length = snprintf(text, sizeof text, "Idx:%" PRIu64 "; ID:%x; %s", frames_index(list->frames, offset), id,
                          rank == PACKET ? "" : "OCSD_GEN_TRC_ELEM_");
    va_start(words, format);
    vsnprintf(text + length, sizeof text - (size_t)length, format, words);
    va_end(words);
    list->lines = more(list->lines, list->line_count, sizeof *list->lines);
    struct line *line = &list->lines[list->line_count];
    line->start = start;
    line->rank = rank;
    line->number = list->line_count++;
    line->text = malloc(strlen(text) + 1);
    if (line->text == NULL) {
        fail("found no memory");
    }
    strcpy(line->text, text);
}

#define add(list, ...) add_ranked(list, ELEMENT, __VA_ARGS__)

static const char *isa_name(tracewalk_isa isa) {
    static const char *const NAMES[] = {"Unk", "A32", "T32", "TEE", "Jaz", "A64"};
    return isa < sizeof NAMES / sizeof *NAMES ? NAMES[isa] : "Unk";
}

static tracewalk_isa isa_named(const char *name) {
    for (tracewalk_isa isa = TRACEWALK_ISA_A32; isa <= TRACEWALK_ISA_A64; isa++) {
        if (strcmp(name, isa == TRACEWALK_ISA_T32EE ? "T32EE" : isa == TRACEWALK_ISA_JAZELLE ? "Jazelle" : isa_name(isa)) == 0) {
            return isa;
        }
    }
    return TRACEWALK_ISA_NONE;
}

/* `PE_CONTEXT((ISA=A64) EL1N; 64-bit; VMID=0x0; CTXTID=0x0; )`. */
static void add_context(struct listing *list, const tracewalk_packet *packet, tracewalk_isa isa) {
    const struct context *context = &list->context;
    char level[16] = "", vmid[32] = "", id[32] = "";
    if (context->has_level) {
        snprintf(level, sizeof level, "EL%u", context->level & 7);
    }
    if (context->has_vmid) {
        snprintf(vmid, sizeof vmid, "VMID=0x%" PRIx64 "; ", context->vmid);
    }
    if (context->has_id) {
        snprintf(id, sizeof id, "CTXTID=0x%" PRIx64 "; ", context->id);
    }
    add_ranked(list, CONTEXT, packet->stream_start, packet->capture_offset, "PE_CONTEXT((ISA=%s) %s%s%s%s%s)", isa_name(isa), level,
        !context->has_security ? "" : context->not_secure ? "N; " : "S; ", context->is_64_bit ? "64-bit; " : "32-bit; ", vmid, id);
}

/* The context in a packet: OpenCSD repeats it with each such packet, tracewalk has an element only if something
 * changes. */
static void on_context(struct listing *list, const tracewalk_packet *packet) {
    struct context *context = &list->context, before = *context;
    tracewalk_isa isa = TRACEWALK_ISA_NONE;
    int is_sync = strcmp(packet->name, "i_sync") == 0, states = is_sync;
    for (size_t index = 0; index < packet->field_count; index++) {
        const tracewalk_field *found = &packet->fields[index];
        if (strcmp(found->name, "el") == 0) {
            context->level = (unsigned)found->value;
            context->has_level = states = 1;
        } else if (strcmp(found->name, "ns") == 0) {
            context->not_secure = found->value != 0;
            context->has_security = 1;
        } else if (strcmp(found->name, "sf") == 0) {
            context->is_64_bit = found->value != 0;
        } else if (strcmp(found->name, "is") == 0) {
            context->instruction_set = (unsigned)found->value;
        } else if (strcmp(found->name, "context_id") == 0) {
            context->id = found->value;
            context->has_id = 1;
        } else if (strcmp(found->name, "vmid") == 0) {
            context->vmid = found->value;
            context->has_vmid = 1;
        } else if (strcmp(found->name, "isa") == 0) {
            isa = isa_named(found->text);
        }
    }
    if (list->protocol == ETMV4) {
        isa = context->is_64_bit ? TRACEWALK_ISA_A64 : context->instruction_set ? TRACEWALK_ISA_T32 : TRACEWALK_ISA_A32;
    }
    if (states && (list->protocol != PFT || memcmp(&before, context, sizeof before) != 0)) {
        add_context(list, packet, isa);
    }
}

static void remark(struct listing *list, struct remark remark) {
    list->remarks = more(list->remarks, list->remark_count, sizeof *list->remarks);
    list->remarks[list->remark_count++] = remark;
}

/* Collects the contents of packets for lines: contexts, and the atom of each instruction for ETMv3. */
static int on_packet(void *user, const tracewalk_packet *packet) {
    struct listing *list = user;
    int cancels = 0;
    if (packet->stream_start == 0) {
        add_ranked(list, BEFORE, 0, packet->capture_offset, "NO_SYNC( [init-decoder])");
    }
    list->last_packet = packet->capture_offset;
    if (list->has_packets) {
        struct text text = packet_text(list->protocol, list->is_m_profile, list->packet_isa, packet);
        add_ranked(list, PACKET, packet->stream_start, packet->capture_offset, "%s", text.letters);
    }
    if (field(packet, "isa") != NULL) {
        snprintf(list->packet_isa, sizeof list->packet_isa, "%s", words(packet, "isa"));
    }
    if (packet->kind != TRACEWALK_PACKET_KIND_PACKET) {
        return 0;
    }
    on_context(list, packet);
    list->returned |= strcmp(packet->name, "exception_return") == 0;
    for (size_t index = 0; index < packet->field_count; index++) {
        const tracewalk_field *found = &packet->fields[index];
        for (const char *atom = strcmp(found->name, "atoms") == 0 ? found->text : ""; *atom != '\0'; atom++) {
            if (*atom == 'E' || *atom == 'N') {
                list->atoms = more(list->atoms, list->atom_count, sizeof *list->atoms);
                list->atoms[list->atom_count++] = (struct atom){packet->stream_start, packet->capture_offset, *atom};
                list->returned = 0;
            }
        }
        if (strcmp(found->name, "interpretation") == 0 && found->value == AT_TARGET) {
            remark(list, (struct remark){packet->stream_start, 0, 1, 0});
        }
        if (list->protocol == ETMV4 && strcmp(packet->name, "timestamp") == 0 && strcmp(found->name, "cycles") == 0) {
            remark(list, (struct remark){packet->stream_start, found->value, 0, 1});
        }
        cancels |= strcmp(found->name, "cancel") == 0 && found->value != 0;
    }
    if (cancels && !list->returned && list->atom_count > 0) {
        /* The instruction of the last atom was not executed. After a return, the return was cancelled instead. */
        list->atom_count--;
    }
    return 0;
}

/* `E BR  b+link `: the type of a range's last instruction. */
static void range(struct listing *list, const tracewalk_element *block, struct atom atom, uint64_t from, uint64_t until, unsigned count,
                  const tracewalk_instruction *last) {
    static const char *const TYPES[] = {"--- ", "BR  ", "iBR ", "ISB ", "DSB.DMB", "DSB.DMB", "WFI.WFE", "TSTART"};
    const char *type = last->flow < sizeof TYPES / sizeof *TYPES ? TYPES[last->flow] : "--- ";
    const char *detail = last->link && last->flow != TRACEWALK_CLASS_OTHER ? "b+link "
                         : last->flow != TRACEWALK_CLASS_INDIRECT ? ""
                         : last->returns == TRACEWALK_RETURNS_FUNCTION ? (block->isa == TRACEWALK_ISA_A64 ? "A64:ret " : "V7:impl ret")
                         : last->returns == TRACEWALK_RETURNS_EXCEPTION && block->isa == TRACEWALK_ISA_A64 ? "A64:eret "
                                                                                                          : "";
    add(list, atom.start, atom.offset, "INSTR_RANGE(exec range=0x%" PRIx64 ":[0x%" PRIx64 "] num_i(%u) last_sz(%u) (ISA=%s) %c %s%s%s)",
        from, until, count, last->bytes, isa_name(block->isa), atom.passed, type, detail, last->conditional ? " <cond>" : "");
}

/* A block: one range for PFT and ETMv4, and one for each instruction for ETMv3. */
static void on_block(struct listing *list, const tracewalk_element *block) {
    tracewalk_error *error = NULL;
    tracewalk_instruction instruction;
    const tracewalk_element *context = list->has_code_context ? &list->code_context : NULL;
    struct atom atom = {block->stream_start, block->capture_offset, 'E'};
    int interrupted = block->ending == TRACEWALK_ENDING_INTERRUPTED;
    if (list->protocol != ETMV3) {
        atom.passed = block->taken || interrupted ? 'E' : 'N';
        must(tracewalk_program_instruction(list->program, context, block->last, block->isa, &instruction, sizeof instruction, &error), error);
        range(list, block, atom, block->start, block->end, block->instructions, &instruction);
    }
    for (uint64_t address = block->start; list->protocol == ETMV3 && address < block->end; address += instruction.bytes) {
        must(tracewalk_program_instruction(list->program, context, address, block->isa, &instruction, sizeof instruction, &error), error);
        if (list->next_atom < list->atom_count) {
            atom = list->atoms[list->next_atom++];
        }
        range(list, block, atom, address, address + instruction.bytes, 1, &instruction);
    }
}

/* The remark on the packet of an element. */
static struct remark remark_at(struct listing *list, uint64_t start) {
    const struct remark none = {start, 0, 0, 0};
    while (list->next_remark < list->remark_count && list->remarks[list->next_remark].start < start) {
        list->next_remark++;
    }
    int found = list->next_remark < list->remark_count && list->remarks[list->next_remark].start == start;
    return found ? list->remarks[list->next_remark] : none;
}

static int on_element(void *user, const tracewalk_element *element) {
    struct listing *list = user;
    uint64_t start = element->stream_start, at = element->capture_offset;
    char cycles[32] = "";
    switch (element->kind) {
    case TRACEWALK_KIND_BLOCK:
        on_block(list, element);
        break;
    case TRACEWALK_KIND_TRACE_ON:
        if (element->reason == TRACEWALK_BEGIN_SYNCHRONISED) {
            break;
        }
        add(list, start, at, "TRACE_ON( [%s])",
            element->reason == TRACEWALK_BEGIN_OVERFLOW     ? "overflow"
            : element->reason == TRACEWALK_BEGIN_DEBUG_EXIT ? "debug restart"
                                                            : "begin or filter");
        break;
    case TRACEWALK_KIND_CONTEXT:
        list->code_context = *element;
        list->has_code_context = 1;
        break;
    case TRACEWALK_KIND_EXCEPTION:
        if (list->protocol == ETMV3 || !(element->has & TRACEWALK_HAS_RETURN_ADDRESS)) {
            add(list, start, at, "EXCEPTION(excep num (0x%02x) )", element->exception);
        } else {
            add(list, start, at, "EXCEPTION(pref ret addr:0x%" PRIx64 "%s; excep num (0x%02x) )", element->return_address,
                remark_at(list, start).at_target ? " [addr also prev br tgt]" : "",
                element->exception);
        }
        break;
    case TRACEWALK_KIND_EXCEPTION_RETURN:
        add(list, start, at, "EXCEPTION_RET()");
        break;
    case TRACEWALK_KIND_TIMESTAMP:
        if (remark_at(list, start).has_cycles) {
            snprintf(cycles, sizeof cycles, " [CC=%" PRIu64 "]; ", remark_at(list, start).cycles);
        }
        add(list, start, at, "TIMESTAMP( [ TS=0x%012" PRIx64 "]; %s)", element->value, cycles);
        break;
    case TRACEWALK_KIND_CYCLES:
        add(list, start, at, "CYCLE_COUNT( [CC=%" PRIu64 "]; )", element->value);
        break;
    case TRACEWALK_KIND_EVENTS:
        for (unsigned event = 0; event < 4; event++) {
            if (element->value >> event & 1) {
                add(list, start, at, "EVENT( Numbered:%u; )", event);
            }
        }
        break;
    case TRACEWALK_KIND_TRIGGER:
        add(list, start, at, "EVENT( Trigger; )");
        break;
    case TRACEWALK_KIND_GAP:
        if (element->reason == TRACEWALK_GAP_NO_CODE) {
            add(list, start, at, "ADDR_NACC( 0x%" PRIx64 " )", element->address);
        } else if (element->reason == TRACEWALK_GAP_ADDRESS_UNKNOWN) {
            add(list, start, at, "ADDR_UNKNOWN()");
        }
        break;
    default:
        break;
    }
    return 0;
}

static int in_order(const void *one, const void *other) {
    const struct line *a = one, *b = other;
    if (a->start != b->start) {
        return a->start < b->start ? -1 : 1;
    }
    return a->rank != b->rank ? (int)a->rank - (int)b->rank : a->number < b->number ? -1 : a->number > b->number;
}

/* Prints a source's lines. */
static void list_source(const tracewalk_session *session, size_t index, const struct frames *frames, int has_packets) {
    tracewalk_error *error = NULL;
    tracewalk_source source;
    tracewalk_program *program = NULL;
    struct listing list = {0};
    must(tracewalk_session_source(session, index, &source, sizeof source, &error), error);
    must(tracewalk_session_program(session, index, &program, &error), error);
    list.frames = frames;
    list.program = program;
    list.id = source.trace_id;
    list.has_packets = has_packets;
    list.is_m_profile = source.profile == TRACEWALK_PROFILE_M;
    list.protocol = strcmp(source.protocol, "etmv3") == 0 ? ETMV3 : strcmp(source.protocol, "pft") == 0 ? PFT : ETMV4;
    must(tracewalk_session_packets(session, index, on_packet, &list, NULL, 0, &error), error);
    must(tracewalk_session_each(session, index, on_element, &list, NULL, 0, &error), error);
    qsort(list.lines, list.line_count, sizeof *list.lines, in_order);
    for (size_t number = 0; number < list.line_count; number++) {
        puts(list.lines[number].text);
        free(list.lines[number].text);
    }
    if (list.line_count > 0) {
        printf("Idx:%" PRIu64 "; ID:%x; OCSD_GEN_TRC_ELEM_EO_TRACE( [end-of-trace])\n", frames_index(frames, list.last_packet), list.id);
    }
    free(list.lines);
    free(list.atoms);
    free(list.remarks);
    tracewalk_program_free(program);
}

int main(int count, char **words) {
    tracewalk_error *error = NULL;
    tracewalk_session *session = NULL;
    int has_packets = count == 4 && strcmp(words[3], "-decode") == 0;
    if (count != 4 || strcmp(words[1], "-ss_dir") != 0 || (!has_packets && strcmp(words[3], "-decode_only") != 0)) {
        fail("found other arguments, expected -ss_dir DIR and -decode or -decode_only");
    }
    struct frames frames = frames_of(words[2]);
    /* OpenCSD follows an image that does not fit the trace. */
    tracewalk_options *options = tracewalk_options_new();
    must(tracewalk_options_set(options, "trust-image", "true", &error), error);
    must(tracewalk_session_open(words[2], options, &session, &error), error);
    tracewalk_options_free(options);
    for (size_t index = 0; index < tracewalk_session_source_count(session); index++) {
        list_source(session, index, &frames, has_packets);
    }
    tracewalk_session_free(session);
    free(frames.bytes);
    return 0;
}
