/* The attributes of streams. Only the priority is the stream's own; the emulator remembers the others. */
#include "driver/driver.h"

#include <stdlib.h>
#include <string.h>

enum { ACCESS_POLICY = 1, SYNC_POLICY = 3, PRIORITY = 8, DOMAIN_MAP = 9, DOMAIN = 10 };
enum {
    ATTRIBUTES = 11,
    VALUE_BYTES = sizeof((CUlaunchAttribute *)NULL)->value,
    LEAST_PRIORITY = -5
};

struct emu_stream_attributes {
    uint8_t values[ATTRIBUTES][VALUE_BYTES];
};

static bool is_attribute(int attribute) {
    return attribute == ACCESS_POLICY || attribute == SYNC_POLICY || attribute == PRIORITY ||
           attribute == DOMAIN_MAP || attribute == DOMAIN;
}

/* The stream's attributes, made if there are none yet. The caller holds the context's lock. NULL: no memory. */
static struct emu_stream_attributes *attributes_of(CUstream stream) {
    if (stream->attributes == NULL) {
        stream->attributes = calloc(1, sizeof *stream->attributes);
        if (stream->attributes != NULL) {
            stream->attributes->values[SYNC_POLICY][0] = 1; /* automatic */
            stream->attributes->values[DOMAIN_MAP][1] = 1;  /* the remote domain */
        }
    }
    return stream->attributes;
}

static CUresult access_attribute(CUstream handle, int attribute, void *read, const void *written,
                                 bool per_thread) {
    EMU_CONTEXT(context);
    CUstream stream = NULL;
    CUresult result = emu_stream_of(context, handle, per_thread, &stream);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    EMU_REQUIRE(is_attribute(attribute) && (read != NULL || written != NULL));
    pthread_mutex_lock(&stream->context->lock);
    struct emu_stream_attributes *all = attributes_of(stream);
    if (all == NULL) {
        result = CUDA_ERROR_OUT_OF_MEMORY;
    } else if (written != NULL && attribute == PRIORITY) {
        int priority = 0;
        memcpy(&priority, written, sizeof priority);
        stream->priority = priority > 0 ? 0 : priority < LEAST_PRIORITY ? LEAST_PRIORITY : priority;
    } else if (written != NULL) {
        memcpy(all->values[attribute], written, VALUE_BYTES);
    } else {
        memcpy(read, all->values[attribute], VALUE_BYTES);
        if (attribute == PRIORITY) {
            memcpy(read, &stream->priority, sizeof stream->priority);
        }
    }
    pthread_mutex_unlock(&stream->context->lock);
    return result;
}

static CUresult copy_attributes(CUstream target, CUstream source, bool per_thread) {
    EMU_CONTEXT(context);
    CUstream to = NULL;
    CUstream from = NULL;
    CUresult result = emu_stream_of(context, target, per_thread, &to);
    if (result == CUDA_SUCCESS) {
        result = emu_stream_of(context, source, per_thread, &from);
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    EMU_REQUIRE(to->context == from->context);
    pthread_mutex_lock(&from->context->lock);
    struct emu_stream_attributes *read = attributes_of(from);
    struct emu_stream_attributes *written = attributes_of(to);
    if (read == NULL || written == NULL) {
        result = CUDA_ERROR_OUT_OF_MEMORY;
    } else if (read != written) {
        *written = *read;
        to->priority = from->priority;
    }
    pthread_mutex_unlock(&from->context->lock);
    return result;
}

#define FORMS(suffix, per_thread) \
    EMU_API CUresult cuStreamSetAttribute##suffix(CUstream stream, int attribute, \
                                                  const void *value) { \
        return access_attribute(stream, attribute, NULL, value, per_thread); \
    } \
    EMU_API CUresult cuStreamGetAttribute##suffix(CUstream stream, int attribute, void *value) { \
        return access_attribute(stream, attribute, value, NULL, per_thread); \
    } \
    EMU_API CUresult cuStreamCopyAttributes##suffix(CUstream target, CUstream source) { \
        return copy_attributes(target, source, per_thread); \
    }

FORMS(, false)
FORMS(_ptsz, true)
