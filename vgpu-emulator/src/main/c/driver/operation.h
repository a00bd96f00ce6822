/* What can be submitted to a stream. */
#ifndef EMU_OPERATION_H
#define EMU_OPERATION_H

#include "kernels.h"
#include "objects.h"

typedef enum {
    EMU_KERNEL,
    EMU_COPY,
    EMU_FILL,
    EMU_RECORD,
    EMU_WAIT,
    EMU_HOST,
    EMU_FREE,
    EMU_ALLOC, /* of graphs only; address */
    EMU_EMPTY,
    EMU_WRITE_VALUE,
    EMU_WAIT_VALUE,
    EMU_CHILD /* a node of a graph that is a graph itself; never in a stream */
} emu_operation_kind;

/* A box of bytes from one place to another. */
typedef struct {
    uint64_t source;
    uint64_t target;
    uint64_t width;
    uint64_t height;
    uint64_t depth;
    uint64_t source_pitch;
    uint64_t source_slice;
    uint64_t target_pitch;
    uint64_t target_slice;
} emu_box;

typedef struct {
    uint64_t target;
    uint64_t pitch;
    uint64_t width; /* elements */
    uint64_t height;
    uint32_t value;
    uint32_t element_bytes;
} emu_fill;

typedef struct {
    CUhostFn function;
    CUstreamCallback callback; /* one of the two */
    void *data;
    CUstream handle; /* as the program named the stream */
} emu_host_call;

/* A record of an event that is kept back; shared by the operation, the event, and what waits for it. */
typedef struct {
    uint32_t users;
    uint32_t is_done;
} emu_kept_record;

typedef struct {
    CUevent event;
    uint32_t generation;
    emu_kept_record *record; /* kept back: the record that it is, or waits for; NULL: none */
} emu_event_use;

enum { EMU_WRITE_GREATER = 8 }; /* unless there is more already */

/* A word in memory that a stream writes, or waits for. */
typedef struct {
    uint64_t address;
    uint64_t value;
    uint32_t bytes; /* 4 or 8 */
    uint32_t test;  /* CU_STREAM_WAIT_VALUE_; EMU_WRITE_GREATER */
} emu_word;

struct emu_operation {
    emu_operation_kind kind;
    bool running; /* a host function that has been started */
    uint32_t engine; /* the copy engine that it takes, from 1 on; 0: none */
    uint64_t duration_ns;
    uint64_t sequence; /* in the order in which the context's operations were submitted */
    emu_operation *next;
    union {
        struct {
            const emu_kernel *known;
            CUfunction function;
            uint32_t grid[3];
            uint32_t block[3];
            uint32_t shared_bytes;
            _Alignas(16) uint8_t arguments[EMU_KERNEL_ARGUMENTS];
        } kernel;
        emu_box copy;
        emu_fill fill;
        emu_event_use event;
        emu_host_call host;
        emu_word word;
        CUgraph child; /* its own copy */
        uint64_t address;
    };
};

/*
 * Submits to a stream: captured, if the stream is being captured; put behind a host function, if
 * one is before it; else computed at once, and its time put on the stream.
 */
CUresult emu_enqueue(CUstream stream, const emu_operation *operation);

/* Does what an operation does to memory and to its stream. Without the context's lock. */
void emu_operation_run(CUstream stream, const emu_operation *operation);

/* Whether a word is what a stream waits for. */
bool emu_word_is_there(const emu_word *word);

/* Whether what is submitted to a stream becomes part of a graph. Needs no lock. */
static inline bool emu_stream_is_captured(CUstream stream) {
    return __atomic_load_n(&stream->capture, __ATOMIC_ACQUIRE) != NULL;
}

/* Whether nothing stands between a kernel without effect or duration and its being done. */
static inline bool emu_stream_is_plain(CUstream stream) {
    return __atomic_load_n(&stream->first_waiting, __ATOMIC_ACQUIRE) == NULL &&
           !emu_stream_is_captured(stream);
}

/* Whether what is submitted may have to wait for the host, or be refused because of a capture
 * elsewhere. */
bool emu_stream_must_queue(CUstream stream);

/* Waits until all that was submitted is done. */
CUresult emu_stream_drain(CUstream stream);
CUresult emu_context_drain(CUcontext context);

/* Waits for an event. With the context's lock, which it lets go of. */
void emu_event_drain(CUcontext context, CUevent event);

/* Whether all that was submitted is done. With the context's lock. */
bool emu_stream_is_idle(CUstream stream);

/* Drops what a stream still has waiting. With the context's lock. */
void emu_stream_drop_waiting(CUstream stream);

#endif
