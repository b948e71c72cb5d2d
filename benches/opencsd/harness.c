/*
 * Decodes a capture in memory with OpenCSD and an empty callback, to compare OpenCSD's speed.
 *
 *   harness MODE CONTAINER ADDRESS IMAGE CAPTURE REPEATS PROTOCOL,ID,ETMCR,ETMIDR,ETMCCER...
 *
 * MODE       flow (full decode) or packets (packet processor with an empty sink)
 * CONTAINER  raw (one source's bytes) or frames (CoreSight frames, memory aligned)
 * REPEATS    how many copies of the capture are decoded in a row
 * PROTOCOL   etmv3, etmv4 or pft
 *
 * Prints one line of JSON: bytes, packets, ranges, instructions, seconds (processor time of decoding alone).
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

static double processor_time(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Adds the decoder that PROTOCOL,ID,ETMCR,ETMIDR,ETMCCER describes, or etmv4,ID,TRCCONFIGR,TRCIDR0,TRCIDR1,TRCIDR2. */
static void add_source(dcd_tree_handle_t tree, const char *source, int flow) {
    char protocol[8];
    unsigned id_number, etmcr, etmidr, etmccer, idr2 = 0;
    int found = sscanf(source, "%7[a-z0-9],%i,%i,%i,%i,%i", protocol, (int *)&id_number, (int *)&etmcr, (int *)&etmidr,
                       (int *)&etmccer, (int *)&idr2);
    if (found != (strcmp(protocol, "etmv4") ? 5 : 6)) {
        fprintf(stderr, "found %s, expected PROTOCOL,ID,ETMCR,ETMIDR,ETMCCER\n", source);
        exit(2);
    }
    int flags = flow ? OCSD_CREATE_FLG_FULL_DECODER : OCSD_CREATE_FLG_PACKET_PROC;
    uint8_t id = (uint8_t)id_number;
    if (!strcmp(protocol, "pft")) {
        ocsd_ptm_cfg config = {etmidr, etmcr, etmccer, id, ARCH_V7, profile_CortexA};
        check(ocsd_dt_create_decoder(tree, OCSD_BUILTIN_DCD_PTM, flags, &config, &id), "PTM decoder");
    } else if (!strcmp(protocol, "etmv4")) {
        ocsd_etmv4_cfg config = {.reg_idr0 = etmidr, .reg_idr1 = etmccer, .reg_idr2 = idr2, .reg_configr = etmcr,
                                 .reg_traceidr = id, .arch_ver = ARCH_V8, .core_prof = profile_CortexM};
        check(ocsd_dt_create_decoder(tree, OCSD_BUILTIN_DCD_ETMV4I, flags, &config, &id), "ETMv4 decoder");
    } else {
        int m_profile = (etmccer >> 16 & 0x1f) == 0x14;
        ocsd_etmv3_cfg config = {etmidr, etmcr, etmccer, id, ARCH_V7, m_profile ? profile_CortexM : profile_CortexA};
        check(ocsd_dt_create_decoder(tree, OCSD_BUILTIN_DCD_ETMV3, flags, &config, &id), "ETMv3 decoder");
    }
    if (!flow) check(ocsd_dt_attach_packet_callback(tree, id, OCSD_C_API_CB_PKT_SINK, on_packet, NULL), "sink");
}

int main(int argc, char **argv) {
    if (argc < 8) {
        fprintf(stderr, "usage: harness MODE CONTAINER ADDRESS IMAGE CAPTURE REPEATS PROTOCOL,ID,ETMCR,ETMIDR,ETMCCER...\n");
        return 2;
    }
    int flow = !strcmp(argv[1], "flow"), frames = !strcmp(argv[2], "frames");
    dcd_tree_handle_t tree = ocsd_create_dcd_tree(frames ? OCSD_TRC_SRC_FRAME_FORMATTED : OCSD_TRC_SRC_SINGLE,
                                                  frames ? OCSD_DFRMTR_FRAME_MEM_ALIGN : 0);
    size_t image_size, size;
    uint8_t *image = read_file(argv[4], &image_size), *once = read_file(argv[5], &size);
    size_t repeats = number(argv[6]);
    uint8_t *bytes = malloc(size * repeats + 1);
    for (size_t index = 0; index < repeats; index++) memcpy(bytes + index * size, once, size);
    size *= repeats;
    for (int argument = 7; argument < argc; argument++) add_source(tree, argv[argument], flow);
    if (flow) {
        check(ocsd_dt_set_gen_elem_outfn(tree, on_element, NULL), "callback");
        check(ocsd_dt_add_buffer_mem_acc(tree, number(argv[3]), OCSD_MEM_SPACE_ANY, image, (uint32_t)image_size),
              "image");
    }

    double start = processor_time();
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
    double seconds = processor_time() - start;
    printf("{\"bytes\":%zu,\"packets\":%llu,\"ranges\":%llu,\"instructions\":%llu,\"seconds\":%.6f}\n", size,
           (unsigned long long)packets, (unsigned long long)ranges, (unsigned long long)instructions, seconds);
    return 0;
}
