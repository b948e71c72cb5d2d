/* calls EXAMPLES: uses every function of the library correctly and incorrectly. Compares kinds and numbers. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tracewalk.h>

#define EXPECT(truth)                                                           \
    do {                                                                        \
        if (!(truth)) {                                                         \
            fprintf(stderr, "%s:%d: found no %s\n", __FILE__, __LINE__, #truth); \
            exit(1);                                                            \
        }                                                                       \
    } while (0)

/* A-sync, I-sync at 0x100 in Thumb, an atom for each of two instructions. */
static const uint8_t TRACE[] = {0, 0, 0, 0, 0, 0x80, 0x08, 0x21, 0x01, 0x01, 0, 0, 0x88};
/* movs r0, #1; bx lr */
static const uint8_t CODE[] = {0x01, 0x20, 0x70, 0x47};
static const char SOURCE[] = "0x10=etmv3,cpu=cortex-m3";

/* Checks that the call failed with this status, and that its error states the status. */
static void fails(tracewalk_status expected, tracewalk_status status, tracewalk_error **error) {
    EXPECT(status == expected);
    EXPECT(tracewalk_error_status(*error) == expected);
    EXPECT(tracewalk_error_kind(*error)[0] != '\0' && tracewalk_error_message(*error)[0] != '\0');
    tracewalk_error_free(*error);
    *error = NULL;
}

static void versions(void) {
    EXPECT(tracewalk_abi_version() == TRACEWALK_ABI);
    EXPECT(strchr(tracewalk_version(), '.') != NULL);
    EXPECT(tracewalk_error_status(NULL) == TRACEWALK_STATUS_OK);
    EXPECT(tracewalk_error_kind(NULL) == NULL && tracewalk_error_message(NULL) == NULL);
    tracewalk_error_free(NULL);
}

static void programs(void) {
    tracewalk_error *error = NULL;
    tracewalk_instruction instruction;
    tracewalk_element context;
    uint8_t bytes[8];
    size_t got = 9;
    tracewalk_program *program = tracewalk_program_new();
    memset(&context, 0, sizeof context);
    context.has = TRACEWALK_HAS_CONTEXT_ID;
    context.context_id = 7;
    EXPECT(tracewalk_program_add(program, 0x100, CODE, sizeof CODE, &error) == TRACEWALK_STATUS_OK && error == NULL);
    EXPECT(tracewalk_program_add_in_context(program, 7, 0x100, CODE + 2, 2, NULL) == TRACEWALK_STATUS_OK);
    EXPECT(tracewalk_program_set_vector_table(program, 0, NULL) == TRACEWALK_STATUS_OK);
    EXPECT(tracewalk_program_read(program, NULL, 0x102, bytes, sizeof bytes, &got, NULL) == TRACEWALK_STATUS_OK);
    EXPECT(got == 2 && bytes[0] == 0x70 && bytes[1] == 0x47);
    EXPECT(tracewalk_program_read(program, &context, 0x100, bytes, 2, &got, NULL) == TRACEWALK_STATUS_OK);
    EXPECT(got == 2 && bytes[0] == 0x70);
    EXPECT(tracewalk_program_read(program, NULL, 0x200, bytes, sizeof bytes, &got, NULL) == TRACEWALK_STATUS_OK && got == 0);
    EXPECT(tracewalk_program_instruction(program, NULL, 0x102, TRACEWALK_ISA_T32, &instruction, sizeof instruction, NULL) ==
           TRACEWALK_STATUS_OK);
    EXPECT(instruction.bytes == 2 && instruction.flow == TRACEWALK_CLASS_INDIRECT);
    EXPECT(instruction.returns == TRACEWALK_RETURNS_FUNCTION && instruction.conditional == 0);
    EXPECT(tracewalk_program_instruction(program, NULL, 0x200, TRACEWALK_ISA_T32, &instruction, sizeof instruction, NULL) ==
           TRACEWALK_STATUS_END);
    /* A32: b . */
    EXPECT(tracewalk_classify((const uint8_t *)"\xfe\xff\xff\xea", 4, 0x400, TRACEWALK_ISA_A32, &instruction, sizeof instruction,
                              NULL) == TRACEWALK_STATUS_OK);
    EXPECT(instruction.flow == TRACEWALK_CLASS_DIRECT && instruction.target == 0x400);
    EXPECT(instruction.target_isa == TRACEWALK_ISA_A32);

    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_classify(CODE, 1, 0, TRACEWALK_ISA_T32, &instruction, sizeof instruction, &error), &error);
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_classify(CODE, 2, 0, 99, &instruction, sizeof instruction, &error), &error);
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_classify(CODE, 2, 0, TRACEWALK_ISA_T32, &instruction, 4, &error), &error);
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_program_add(program, 0x100, CODE + 1, 2, &error), &error);
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_program_add(program, 0x100, NULL, 4, &error), &error);
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_program_add(program, 0x100, CODE, SIZE_MAX, &error), &error);
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_program_add(NULL, 0x100, CODE, sizeof CODE, &error), &error);
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_program_read(program, NULL, 0, NULL, 1, &got, &error), &error);
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_program_add_file(program, NULL, &error), &error);
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_program_add_file(program, "\xff", &error), &error);
    fails(TRACEWALK_STATUS_OPEN, tracewalk_program_add_file(program, "no/such.elf", &error), &error);
    EXPECT(tracewalk_program_add_file(program, "no/such.elf", NULL) == TRACEWALK_STATUS_OPEN);
    tracewalk_program_free(program);
    tracewalk_program_free(NULL);
}

/* The counts of a callback. */
struct seen {
    unsigned blocks, instructions, traced, packets, atoms, stops;
    uint64_t bytes;
    tracewalk_decoder *decoder;
};

static int on_element(void *user, const tracewalk_element *element) {
    struct seen *seen = user;
    EXPECT(element->size == sizeof *element && element->trace_id == 0x10);
    if (element->kind == TRACEWALK_KIND_BLOCK) {
        seen->blocks++;
        seen->instructions += element->instructions;
    }
    seen->traced += element->kind == TRACEWALK_KIND_TRACE_ON;
    if (seen->decoder != NULL) {
        /* A callback must not use the handle that calls it; the call fails with a status. */
        EXPECT(tracewalk_decoder_finish(seen->decoder, NULL) == TRACEWALK_STATUS_STATE);
    }
    return seen->stops != 0;
}

static int on_packet(void *user, const tracewalk_packet *packet) {
    struct seen *seen = user;
    EXPECT(packet->size == sizeof *packet && packet->trace_id == 0x10 && packet->stream_start == seen->bytes);
    seen->bytes += packet->byte_count;
    seen->packets += packet->kind == TRACEWALK_PACKET_KIND_PACKET;
    for (size_t index = 0; index < packet->field_count; index++) {
        const tracewalk_field *field = &packet->fields[index];
        if (strcmp(field->name, "atoms") == 0) {
            EXPECT(field->kind == TRACEWALK_FIELD_KIND_TEXT);
            seen->atoms += (unsigned)strlen(field->text);
        }
        EXPECT(strcmp(field->name, "addr") != 0 || field->kind == TRACEWALK_FIELD_KIND_ADDRESS);
    }
    return seen->stops != 0;
}

static void decoders(void) {
    tracewalk_error *error = NULL;
    tracewalk_decoder *decoder = NULL;
    tracewalk_element element;
    struct seen seen = {0};
    tracewalk_program *program = tracewalk_program_new();
    const tracewalk_program *programs[2];
    const char *sources[2] = {SOURCE, "0x20=pft,cpu=cortex-a9"};
    programs[0] = programs[1] = program;
    EXPECT(tracewalk_program_add(program, 0x100, CODE, sizeof CODE, NULL) == TRACEWALK_STATUS_OK);

    /* Pulled after single bytes were pushed, with packets reported. */
    EXPECT(tracewalk_decoder_new(SOURCE, program, &decoder, NULL) == TRACEWALK_STATUS_OK);
    EXPECT(tracewalk_decoder_on_packet(decoder, on_packet, &seen, NULL) == TRACEWALK_STATUS_OK);
    EXPECT(tracewalk_decoder_next(decoder, &element, sizeof element, NULL) == TRACEWALK_STATUS_NEED_INPUT);
    for (size_t at = 0; at < sizeof TRACE; at++) {
        EXPECT(tracewalk_decoder_push(decoder, TRACE + at, 1, NULL) == TRACEWALK_STATUS_OK);
    }
    EXPECT(tracewalk_decoder_lost(decoder, NULL) == TRACEWALK_STATUS_OK);
    EXPECT(tracewalk_decoder_push(decoder, TRACE, sizeof TRACE, NULL) == TRACEWALK_STATUS_OK);
    EXPECT(tracewalk_decoder_finish(decoder, NULL) == TRACEWALK_STATUS_OK);
    unsigned gaps = 0, blocks = 0;
    while (tracewalk_decoder_next(decoder, &element, sizeof element, NULL) == TRACEWALK_STATUS_OK) {
        gaps += element.kind == TRACEWALK_KIND_GAP && element.reason == TRACEWALK_GAP_TRACE_LOST;
        if (element.kind == TRACEWALK_KIND_BLOCK) {
            blocks++;
            EXPECT(element.start == 0x100 && element.end == 0x104 && element.last == 0x102 && element.instructions == 2);
            EXPECT(element.isa == TRACEWALK_ISA_T32 && element.ending == TRACEWALK_ENDING_INDIRECT && element.taken == 1);
            EXPECT(element.returns == TRACEWALK_RETURNS_FUNCTION && element.trace_id == 0x10);
        }
    }
    EXPECT(gaps == 1 && blocks == 2 && seen.packets == 6 && seen.atoms == 4 && seen.bytes == 2 * sizeof TRACE);
    EXPECT(tracewalk_decoder_next(decoder, &element, sizeof element, NULL) == TRACEWALK_STATUS_END);
    fails(TRACEWALK_STATUS_STATE, tracewalk_decoder_push(decoder, TRACE, 1, &error), &error);
    fails(TRACEWALK_STATUS_STATE, tracewalk_decoder_on_packet(decoder, on_packet, &seen, &error), &error);
    tracewalk_decoder_free(decoder);

    /* Given to a callback that stops, and to one that tries to use the handle. */
    EXPECT(tracewalk_decoder_new(SOURCE, program, &decoder, NULL) == TRACEWALK_STATUS_OK);
    EXPECT(tracewalk_decoder_push(decoder, TRACE, sizeof TRACE, NULL) == TRACEWALK_STATUS_OK);
    memset(&seen, 0, sizeof seen);
    seen.stops = 1;
    EXPECT(tracewalk_decoder_each(decoder, on_element, &seen, NULL) == TRACEWALK_STATUS_STOPPED);
    EXPECT(seen.traced == 1 && seen.blocks == 0);
    seen.stops = 0;
    seen.decoder = decoder;
    EXPECT(tracewalk_decoder_each(decoder, on_element, &seen, NULL) == TRACEWALK_STATUS_NEED_INPUT);
    EXPECT(tracewalk_decoder_finish(decoder, NULL) == TRACEWALK_STATUS_OK);
    EXPECT(tracewalk_decoder_each(decoder, on_element, &seen, NULL) == TRACEWALK_STATUS_END);
    EXPECT(seen.traced == 1 && seen.blocks == 1 && seen.instructions == 2);
    tracewalk_decoder_free(decoder);

    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_decoder_new("etmv9", program, &decoder, &error), &error);
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_decoder_new("etmv3", program, &decoder, &error), &error);
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_decoder_new("itm", program, &decoder, &error), &error);
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_decoder_new(NULL, program, &decoder, &error), &error);
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_decoder_new(SOURCE, program, NULL, &error), &error);
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_decoder_push(NULL, TRACE, 1, &error), &error);
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_decoder_next(NULL, &element, sizeof element, &error), &error);
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_decoder_each(NULL, on_element, NULL, &error), &error);

    /* Without a program, as with an empty one. */
    EXPECT(tracewalk_decoder_new(SOURCE, NULL, &decoder, NULL) == TRACEWALK_STATUS_OK);
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_decoder_each(decoder, NULL, NULL, &error), &error);
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_decoder_on_packet(decoder, NULL, NULL, &error), &error);
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_decoder_push(decoder, NULL, 1, &error), &error);
    EXPECT(tracewalk_decoder_push(decoder, NULL, 0, NULL) == TRACEWALK_STATUS_OK);
    EXPECT(tracewalk_decoder_push(decoder, TRACE, sizeof TRACE, NULL) == TRACEWALK_STATUS_OK);
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_decoder_next(decoder, &element, 8, &error), &error);
    /* A structure of a later version is longer: fields that the library does not know are 0. */
    struct {
        tracewalk_element element;
        uint64_t later;
    } longer;
    longer.later = 1;
    EXPECT(tracewalk_decoder_next(decoder, &longer.element, sizeof longer, NULL) == TRACEWALK_STATUS_OK);
    EXPECT(longer.later == 0 && longer.element.size == sizeof longer.element);
    tracewalk_decoder_free(decoder);

    /* Frames: a decoder that refuses to lose bytes, a source that is given twice, and one without a trace ID. */
    EXPECT(tracewalk_decoder_new_formatted(sources, programs, 2, 0, &decoder, NULL) == TRACEWALK_STATUS_OK);
    fails(TRACEWALK_STATUS_STATE, tracewalk_decoder_lost(decoder, &error), &error);
    /* The end within a frame: 16 bytes are a frame, the other 7 are none. */
    uint64_t cut = 0;
    fails(TRACEWALK_STATUS_STATE, tracewalk_decoder_cut(decoder, &cut, &error), &error);
    EXPECT(tracewalk_decoder_push(decoder, (const uint8_t[23]){0}, 23, NULL) == TRACEWALK_STATUS_OK);
    EXPECT(tracewalk_decoder_finish(decoder, NULL) == TRACEWALK_STATUS_OK);
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_decoder_cut(decoder, NULL, &error), &error);
    EXPECT(tracewalk_decoder_cut(decoder, &cut, NULL) == TRACEWALK_STATUS_OK && cut == 7);
    tracewalk_decoder_free(decoder);
    sources[1] = SOURCE;
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_decoder_new_formatted(sources, programs, 2, 0, &decoder, &error), &error);
    sources[1] = "mtb";
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_decoder_new_formatted(sources, programs, 2, 0, &decoder, &error), &error);
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_decoder_new_formatted(NULL, programs, 2, 0, &decoder, &error), &error);
    tracewalk_program_free(program);
    tracewalk_decoder_free(NULL);
}

/* Pushes a file's bytes: the elements and packets are the same as a session's. */
static void pushed(const char *path, const tracewalk_program *program, struct seen *seen, struct seen *packets) {
    static const char *const WORDS = SOURCE;
    tracewalk_decoder *decoder = NULL;
    uint8_t bytes[1000];
    size_t got;
    FILE *file = fopen(path, "rb");
    EXPECT(file != NULL);
    EXPECT(tracewalk_decoder_new_formatted(&WORDS, &program, 1, 0, &decoder, NULL) == TRACEWALK_STATUS_OK);
    EXPECT(tracewalk_decoder_on_packet(decoder, on_packet, packets, NULL) == TRACEWALK_STATUS_OK);
    while ((got = fread(bytes, 1, sizeof bytes, file)) > 0) {
        EXPECT(tracewalk_decoder_push(decoder, bytes, got, NULL) == TRACEWALK_STATUS_OK);
        EXPECT(tracewalk_decoder_each(decoder, on_element, seen, NULL) == TRACEWALK_STATUS_NEED_INPUT);
    }
    EXPECT(tracewalk_decoder_finish(decoder, NULL) == TRACEWALK_STATUS_OK);
    EXPECT(tracewalk_decoder_each(decoder, on_element, seen, NULL) == TRACEWALK_STATUS_END);
    tracewalk_decoder_free(decoder);
    fclose(file);
}

/* Only the thread that opened a session can use it: others are refused, and free nothing. */
static void *elsewhere(void *handle) {
    tracewalk_error *error = NULL;
    tracewalk_session *session = handle;
    tracewalk_program *program = NULL;
    EXPECT(tracewalk_session_source_count(session) == 0);
    fails(TRACEWALK_STATUS_STATE, tracewalk_session_program(session, 0, &program, &error), &error);
    tracewalk_session_free(session);
    return NULL;
}

static void sessions(const char *examples) {
    tracewalk_error *error = NULL;
    tracewalk_session *session = NULL;
    tracewalk_program *program = NULL;
    tracewalk_source source;
    tracewalk_outcome outcome;
    tracewalk_notice notice;
    struct seen seen = {0}, packets = {0}, pushed_seen = {0}, pushed_packets = {0};
    char path[4096];
    tracewalk_options *options = tracewalk_options_new();
    snprintf(path, sizeof path, "%s/m3-etmv3/trace.bin", examples);
    EXPECT(tracewalk_options_set(options, "source", "0x10=etmv3,cpu=cortex-m3", NULL) == TRACEWALK_STATUS_OK);
    EXPECT(tracewalk_options_set(options, "container", "frames", NULL) == TRACEWALK_STATUS_OK);
    EXPECT(tracewalk_options_set(options, "threads", "2", NULL) == TRACEWALK_STATUS_OK);
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_options_set(options, "no-such-option", "1", &error), &error);
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_options_set(options, "id", "0x70", &error), &error);
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_options_set(options, "strict", "perhaps", &error), &error);
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_options_set(options, "strict", NULL, &error), &error);
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_options_set(NULL, "strict", "true", &error), &error);
    char image[4096 + 16];
    snprintf(image, sizeof image, "%s/m3-etmv3/m3.elf", examples);
    EXPECT(tracewalk_options_set(options, "image", image, NULL) == TRACEWALK_STATUS_OK);
    EXPECT(tracewalk_session_open(path, options, &session, &error) == TRACEWALK_STATUS_OK);
    tracewalk_options_free(options);

    EXPECT(tracewalk_session_source_count(session) == 1 && tracewalk_session_source_count(NULL) == 0);
    EXPECT(tracewalk_session_source(session, 0, &source, sizeof source, NULL) == TRACEWALK_STATUS_OK);
    EXPECT(source.profile == TRACEWALK_PROFILE_M && source.trace_id == 0x10 && strcmp(source.protocol, "etmv3") == 0 && strcmp(source.cpu, "cortex-m3") == 0);
    EXPECT(tracewalk_session_source(session, 1, &source, sizeof source, NULL) == TRACEWALK_STATUS_END);
    EXPECT(tracewalk_session_each(session, 0, on_element, &seen, &outcome, sizeof outcome, NULL) == TRACEWALK_STATUS_END);
    EXPECT(outcome.size == sizeof outcome && outcome.complete == 1 && outcome.instructions == seen.instructions);
    EXPECT(seen.blocks > 100 && outcome.malformed == 0);
    EXPECT(tracewalk_session_packets(session, 0, on_packet, &packets, &outcome, sizeof outcome, NULL) == TRACEWALK_STATUS_END);
    EXPECT(outcome.packets == packets.packets && packets.packets > 100);
    EXPECT(tracewalk_session_program(session, 0, &program, NULL) == TRACEWALK_STATUS_OK);
    pushed(path, program, &pushed_seen, &pushed_packets);
    EXPECT(memcmp(&pushed_seen, &seen, sizeof seen) == 0 && memcmp(&pushed_packets, &packets, sizeof packets) == 0);

    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, elsewhere, session) == 0 && pthread_join(thread, NULL) == 0);
    size_t notices = 0;
    while (tracewalk_session_notice(session, notices, &notice, sizeof notice, NULL) == TRACEWALK_STATUS_OK) {
        EXPECT(notice.size == sizeof notice && notice.kind[0] != '\0' && notice.sentence[0] != '\0');
        notices++;
    }
    seen.stops = packets.stops = 1;
    packets.bytes = 0;
    EXPECT(tracewalk_session_each(session, 0, on_element, &seen, NULL, 0, NULL) == TRACEWALK_STATUS_STOPPED);
    EXPECT(tracewalk_session_packets(session, 0, on_packet, &packets, NULL, 0, NULL) == TRACEWALK_STATUS_STOPPED);
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_session_each(session, 1, on_element, &seen, NULL, 0, &error), &error);
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_session_each(session, 0, NULL, &seen, NULL, 0, &error), &error);
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_session_each(session, 0, on_element, &seen, &outcome, 4, &error), &error);
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_session_packets(NULL, 0, on_packet, &seen, NULL, 0, &error), &error);
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_session_program(session, 0, NULL, &error), &error);
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_session_program(session, 9, &program, &error), &error);
    tracewalk_session_free(session);

    /* The program of a session outlives the session. */
    size_t got = 0;
    EXPECT(tracewalk_program_read(program, NULL, 0xc0, (uint8_t *)path, 2, &got, NULL) == TRACEWALK_STATUS_OK && got == 2);
    tracewalk_program_free(program);

    fails(TRACEWALK_STATUS_OPEN, tracewalk_session_open("no/such/capture", NULL, &session, &error), &error);
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_session_open(NULL, NULL, &session, &error), &error);
    snprintf(path, sizeof path, "%s/m3-etmv3/capture.toml", examples);
    fails(TRACEWALK_STATUS_ARGUMENT, tracewalk_session_open(path, NULL, NULL, &error), &error);
    tracewalk_options_free(NULL);
    tracewalk_session_free(NULL);
}

int main(int count, char **words) {
    EXPECT(count == 2);
    versions();
    programs();
    decoders();
    sessions(words[1]);
    printf("calls: all as expected\n");
    return 0;
}
