/* flow IMAGE CAPTURE SOURCE: prints the addresses of all executed instructions in a capture of frames that is in
 * memory.
 *
 *     flow testdata/examples/m3-etmv3/m3.elf testdata/examples/m3-etmv3/trace.bin 0x10=etmv3,cpu=cortex-m3
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* docs/c.md shows this: from here */
#include <tracewalk.h>

static tracewalk_error *error;

static tracewalk_status must(tracewalk_status status) {
    if (status < 0) {
        fprintf(stderr, "%s\n", tracewalk_error_message(error));
        exit(2);
    }
    return status;
}

static void print_instructions(const char *image, const char *source, const uint8_t *capture, size_t size) {
    tracewalk_decoder *decoder = NULL;
    tracewalk_element element;
    tracewalk_instruction instruction;
    tracewalk_program *program = tracewalk_program_new();
    const tracewalk_program *programs[] = {program};
    must(tracewalk_program_add_file(program, image, &error));
    must(tracewalk_decoder_new_formatted(&source, programs, 1, 0, &decoder, &error));
    must(tracewalk_decoder_push(decoder, capture, size, &error));
    must(tracewalk_decoder_finish(decoder, &error));
    while (must(tracewalk_decoder_next(decoder, &element, sizeof element, &error)) == TRACEWALK_STATUS_OK) {
        if (element.kind == TRACEWALK_KIND_GAP) {
            puts("?");
        }
        for (uint64_t address = element.start; element.kind == TRACEWALK_KIND_BLOCK && address < element.end;
             address += instruction.bytes) {
            must(tracewalk_program_instruction(program, NULL, address, element.isa, &instruction, sizeof instruction, &error));
            printf("%08" PRIx64 "\n", address);
        }
    }
    tracewalk_decoder_free(decoder);
    tracewalk_program_free(program);
}
/* to here */

int main(int count, char **words) {
    if (count != 4) {
        fprintf(stderr, "usage: flow IMAGE CAPTURE SOURCE\n");
        return 2;
    }
    FILE *file = fopen(words[2], "rb");
    uint8_t *capture = NULL;
    size_t size = 0, got = 0;
    do {
        size += got;
        capture = realloc(capture, size + 65536);
    } while (file != NULL && capture != NULL && (got = fread(capture + size, 1, 65536, file)) > 0);
    if (file == NULL || capture == NULL) {
        perror(words[2]);
        return 2;
    }
    fclose(file);
    print_instructions(words[1], words[3], capture, size);
    free(capture);
    return 0;
}
