/*
 * Decodes a capture held in memory with OpenCSD and an empty callback, so that its speed can be compared.
 *
 *   harness MODE PROTOCOL SOURCE ETMCR ETMIDR ETMCCER ADDRESS IMAGE CAPTURE REPEATS ID...
 *
 * MODE      flow (full decode) or packets (packet processor with an empty sink)
 * PROTOCOL  etmv3 or pft
 * SOURCE    raw (one source's bytes) or frames (CoreSight frames, memory aligned)
 * REPEATS   how often the capture is put behind itself before decoding
 *
 * Prints one line of JSON: bytes, seconds (of decoding alone), ranges, instructions.
 */
#define _POSIX_C_SOURCE 199309L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <opencsd/c_api/opencsd_c_api.h>

static uint64_t ranges, instructions, packets;

static ocsd_datapath_resp_t on_element(const void *context, const ocsd_trc_index_t index, const uint8_t id,
                                       const ocsd_generic_trace_elem *element) {
    (void)context, (void)index, (void)id;
    if (element->elem_type == OCSD_GEN_TRC_ELEM_INSTR_RANGE) {
        ranges++;
        instructions += element->num_instr_range;
    }
    return OCSD_RESP_CONT;
}

static ocsd_datapath_resp_t on_packet(const void *context, const ocsd_datapath_op_t operation,
                                      const ocsd_trc_index_t index, const void *packet) {
    (void)context, (void)operation, (void)index, (void)packet;
    packets++;
    return OCSD_RESP_CONT;
}

static void check(int error, const char *what) {
    if (error) {
        fprintf(stderr, "%s: OpenCSD error %d\n", what, error);
        exit(2);
    }
}

static uint8_t *read_file(const char *name, size_t *size) {
    FILE *file = fopen(name, "rb");
    if (!file || fseek(file, 0, SEEK_END)) {
        perror(name);
        exit(2);
    }
    *size = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(*size + 1);
    if (!bytes || fread(bytes, 1, *size, file) != *size) {
        perror(name);
        exit(2);
    }
    fclose(file);
    return bytes;
}

static uint32_t number(const char *text) { return (uint32_t)strtoul(text, NULL, 0); }

int main(int argc, char **argv) {
    if (argc < 12) {
        fprintf(stderr, "usage: harness MODE PROTOCOL SOURCE ETMCR ETMIDR ETMCCER ADDRESS IMAGE CAPTURE REPEATS ID...\n");
        return 2;
    }
    int flow = !strcmp(argv[1], "flow"), pft = !strcmp(argv[2], "pft"), frames = !strcmp(argv[3], "frames");
    dcd_tree_handle_t tree = ocsd_create_dcd_tree(frames ? OCSD_TRC_SRC_FRAME_FORMATTED : OCSD_TRC_SRC_SINGLE,
                                                  frames ? OCSD_DFRMTR_FRAME_MEM_ALIGN : 0);
    size_t image_size, size;
    uint8_t *image = read_file(argv[8], &image_size), *once = read_file(argv[9], &size);
    size_t repeats = number(argv[10]);
    uint8_t *bytes = malloc(size * repeats + 1);
    for (size_t index = 0; index < repeats; index++) memcpy(bytes + index * size, once, size);
    size *= repeats;

    for (int argument = 11; argument < argc; argument++) {
        int flags = flow ? OCSD_CREATE_FLG_FULL_DECODER : OCSD_CREATE_FLG_PACKET_PROC;
        uint8_t id = (uint8_t)number(argv[argument]);
        if (pft) {
            ocsd_ptm_cfg config = {number(argv[5]), number(argv[4]), number(argv[6]), id, ARCH_V7, profile_CortexA};
            check(ocsd_dt_create_decoder(tree, OCSD_BUILTIN_DCD_PTM, flags, &config, &id), "PTM decoder");
        } else {
            int m_profile = (number(argv[5]) >> 16 & 0x1f) == 0x14;
            ocsd_etmv3_cfg config = {number(argv[5]), number(argv[4]), number(argv[6]), id, ARCH_V7,
                                     m_profile ? profile_CortexM : profile_CortexA};
            check(ocsd_dt_create_decoder(tree, OCSD_BUILTIN_DCD_ETMV3, flags, &config, &id), "ETMv3 decoder");
        }
        if (!flow) check(ocsd_dt_attach_packet_callback(tree, id, OCSD_C_API_CB_PKT_SINK, on_packet, NULL), "sink");
    }
    if (flow) {
        check(ocsd_dt_set_gen_elem_outfn(tree, on_element, NULL), "callback");
        check(ocsd_dt_add_buffer_mem_acc(tree, number(argv[7]), OCSD_MEM_SPACE_ANY, image, (uint32_t)image_size),
              "image");
    }

    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    size_t done = 0;
    ocsd_datapath_resp_t response = OCSD_RESP_CONT;
    while (done < size) {
        uint32_t used = 0;
        uint32_t block = size - done > 1 << 20 ? 1 << 20 : (uint32_t)(size - done);
        ocsd_datapath_op_t operation = OCSD_RESP_CONT == response ? OCSD_OP_DATA : OCSD_OP_FLUSH;
        response = ocsd_dt_process_data(tree, operation, done, operation == OCSD_OP_DATA ? block : 0,
                                        operation == OCSD_OP_DATA ? bytes + done : NULL, &used);
        if (OCSD_DATA_RESP_IS_FATAL(response)) {
            fprintf(stderr, "decoding stopped at byte %zu of %zu: response %d\n", done + used, size, response);
            return 2;
        }
        done += used;
    }
    ocsd_dt_process_data(tree, OCSD_OP_EOT, 0, 0, NULL, NULL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    double seconds = (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9;
    printf("{\"bytes\":%zu,\"packets\":%llu,\"ranges\":%llu,\"instructions\":%llu,\"seconds\":%.6f}\n", size,
           (unsigned long long)packets, (unsigned long long)ranges, (unsigned long long)instructions, seconds);
    return 0;
}
