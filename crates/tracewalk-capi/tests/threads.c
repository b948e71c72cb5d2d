/* threads IMAGE CAPTURE SOURCE THREADS TIMES: many decoders in many threads over one program. All threads must find the
 * same. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <tracewalk.h>

static uint8_t capture[1 << 20];
static size_t size;
static const char *source;
static const tracewalk_program *program;
static unsigned long times;

/* The number of instructions that the capture proves; 0 after a failed call. */
static uint64_t decode(void) {
    tracewalk_decoder *decoder = NULL;
    tracewalk_element element;
    uint64_t instructions = 0;
    int failed = tracewalk_decoder_new_formatted(&source, &program, 1, 0, &decoder, NULL) < 0;
    for (size_t at = 0; at < size; at += 512) {
        failed |= tracewalk_decoder_push(decoder, capture + at, size - at < 512 ? size - at : 512, NULL) < 0;
        while (tracewalk_decoder_next(decoder, &element, sizeof element, NULL) == TRACEWALK_STATUS_OK) {
            instructions += element.instructions;
        }
    }
    failed |= tracewalk_decoder_finish(decoder, NULL) < 0;
    while (tracewalk_decoder_next(decoder, &element, sizeof element, NULL) == TRACEWALK_STATUS_OK) {
        instructions += element.instructions;
    }
    tracewalk_decoder_free(decoder);
    return failed ? 0 : instructions;
}

static void *work(void *found) {
    uint64_t first = decode();
    for (unsigned long time = 1; time < times; time++) {
        if (decode() != first) {
            first = 0;
        }
    }
    *(uint64_t *)found = first;
    return NULL;
}

int main(int count, char **words) {
    tracewalk_error *error = NULL;
    FILE *file = count == 6 ? fopen(words[2], "rb") : NULL;
    if (file == NULL) {
        fprintf(stderr, "usage: threads IMAGE CAPTURE SOURCE THREADS TIMES\n");
        return 2;
    }
    size = fread(capture, 1, sizeof capture, file);
    fclose(file);
    source = words[3];
    times = strtoul(words[5], NULL, 10);
    tracewalk_program *made = tracewalk_program_new();
    if (tracewalk_program_add_file(made, words[1], &error) < 0) {
        fprintf(stderr, "%s\n", tracewalk_error_message(error));
        return 2;
    }
    program = made;
    uint64_t expected = decode(), found[64];
    pthread_t threads[64];
    unsigned long number = strtoul(words[4], NULL, 10), started = 0;
    while (started < number && started < 64 && pthread_create(&threads[started], NULL, work, &found[started]) == 0) {
        started++;
    }
    int wrong = started != number || expected == 0;
    for (unsigned long thread = 0; thread < started; thread++) {
        wrong |= pthread_join(threads[thread], NULL) != 0 || found[thread] != expected;
    }
    tracewalk_program_free(made);
    printf("threads: %lu found %llu instructions each%s\n", started, (unsigned long long)expected, wrong ? ", not all" : "");
    return wrong;
}
