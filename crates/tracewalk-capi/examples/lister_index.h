/* OpenCSD's numbers of bytes: where a packet begins in a capture.
 *
 * OpenCSD counts the data of a frame from the start of the frame, or of a source's part in it, as if the bytes with
 * source IDs did not exist. tracewalk's offsets are offsets in the file.
 */
#ifndef LISTER_INDEX_H
#define LISTER_INDEX_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAME_BYTES 16

/* The capture, if it consists of frames. */
struct frames {
    uint8_t *bytes;
    uint64_t size;
};

/* The frames of a snapshot's first buffer; none if it holds one source's bytes. */
static struct frames frames_of(const char *folder) {
    struct frames frames = {NULL, 0};
    char path[4096], line[1024], file[1024] = "";
    int framed = 0;
    snprintf(path, sizeof path, "%s/trace.ini", folder);
    FILE *description = fopen(path, "r");
    while (description != NULL && fgets(line, sizeof line, description) != NULL) {
        line[strcspn(line, "\r\n")] = '\0';
        if (strncmp(line, "file=", 5) == 0 && file[0] == '\0') {
            strcpy(file, line + 5);
        } else if (strncmp(line, "format=", 7) == 0 && !framed) {
            framed = strcmp(line + 7, "coresight") == 0;
        }
    }
    if (description != NULL) {
        fclose(description);
    }
    snprintf(path, sizeof path, "%s/%.1000s", folder, file);
    FILE *capture = framed ? fopen(path, "rb") : NULL;
    if (capture != NULL) {
        fseek(capture, 0, SEEK_END);
        long size = ftell(capture);
        rewind(capture);
        frames.bytes = size > 0 ? malloc((size_t)size) : NULL;
        frames.size = frames.bytes != NULL ? fread(frames.bytes, 1, (size_t)size, capture) : 0;
        fclose(capture);
    }
    return frames;
}

/* OpenCSD's number of a byte of data. */
static uint64_t frames_index(const struct frames *frames, uint64_t offset) {
    uint64_t start = offset - offset % FRAME_BYTES, index = start;
    if (offset >= frames->size || start + FRAME_BYTES > frames->size) {
        return offset;
    }
    const uint8_t *frame = frames->bytes + start;
    unsigned part = 0, valid = 0;
    for (unsigned at = 0; at < FRAME_BYTES - 1; at += 2) {
        int delayed = 0;
        if (frame[at] & 1) {
            /* A source's ID: the next byte may belong to the source before. */
            delayed = at < 14 && (frame[15] >> (at / 2) & 1) != 0;
            if (delayed) {
                if (start + at + 1 == offset) {
                    return index + part + valid;
                }
                valid++;
            }
            if (valid > 0) {
                part = at;
                valid = 0;
            }
        } else {
            if (start + at == offset) {
                return index + part + valid;
            }
            valid++;
        }
        if (!delayed && at < 14) {
            if (start + at + 1 == offset) {
                return index + part + valid;
            }
            valid++;
        }
    }
    return offset;
}

#endif
