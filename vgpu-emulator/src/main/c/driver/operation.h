/* The operations that can be submitted to a stream. */
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
    EMU_ALLOC, /* in graphs only; uses `address` */
    EMU_EMPTY,
    EMU_WRITE_VALUE,
    EMU_WAIT_VALUE,
    EMU_CHILD, /* a child graph node; never in a stream */
    EMU_CONDITIONAL
} emu_operation_kind;

/* A copy of a box of bytes. */
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
    uint64_t width; /* in elements */
    uint64_t height;
    uint32_t value;
    uint32_t element_bytes;
} emu_fill;

typedef struct {
    CUhostFn function;
    CUstreamCallback callback; /* either `function` or `callback` is set */
    void *data;
    CUstream handle; /* the stream handle that the program passed */
} emu_host_call;

/* A record of an event that is kept back. The operation, the event and the waits for it share it. */
typedef struct {
    uint32_t users;
    uint32_t is_done;
} emu_kept_record;

typedef struct {
    CUevent event;
    uint32_t generation;
    /* a kept record: itself; a kept wait: the record that it waits for; NULL: none */
    emu_kept_record *record;
} emu_event_use;

enum { EMU_WRITE_GREATER = 8 }; /* writes only if the value is greater than the word's */

/* A word in memory that a stream writes or waits for. */
typedef struct {
    uint64_t address;
    uint64_t value;
    uint32_t bytes; /* 4 or 8 */
    uint32_t test;  /* CU_STREAM_WAIT_VALUE_…; or EMU_WRITE_GREATER */
} emu_word;

struct emu_operation {
    emu_operation_kind kind;
    bool running; /* a kept operation that has been started */
    /* a copy whose source is read before the call returns, even if the copy is kept back */
    bool reads_at_once;
    uint32_t engine; /* the copy engine that it uses, counted from 1; 0: none */
    uint64_t duration_ns;
    uint64_t sequence; /* the order of submission within the context */
    emu_operation *next;
    void *read; /* a kept copy that reads at once: what it read */
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
        CUgraph child; /* the operation's own copy */
        struct {
            struct emu_conditional *what; /* shared */
            bool resets;                  /* begins a launch: the values become the initial ones */
        } conditional;
        uint64_t address;
    };
};

/*
 * Submits an operation. If the stream is being captured, the operation becomes a node. If a host function precedes it,
 * it is kept back. Otherwise it is computed at once and its time is added to the stream.
 */
CUresult emu_enqueue(CUstream stream, const emu_operation *operation);

/* Performs an operation's effect on memory and on its stream. The caller must not hold the context's lock. */
void emu_operation_run(CUstream stream, const emu_operation *operation);

/* Moves the bytes of a copy. */
void emu_box_copy(const emu_box *box);

/* Whether a word has the value that a stream waits for. */
bool emu_word_is_there(const emu_word *word);

/* Whether work submitted to a stream becomes part of a graph. Needs no lock. */
static inline bool emu_stream_is_captured(CUstream stream) {
    return __atomic_load_n(&stream->capture, __ATOMIC_ACQUIRE) != NULL;
}

/* Whether a kernel without effect or duration is complete as soon as it is submitted. */
static inline bool emu_stream_is_plain(CUstream stream) {
    return __atomic_load_n(&stream->first_waiting, __ATOMIC_ACQUIRE) == NULL &&
           !emu_stream_is_captured(stream);
}

/* Whether submitted work may have to wait for the host, or be refused because of a capture elsewhere. */
bool emu_stream_must_queue(CUstream stream);

/* Waits until all submitted work is done. */
CUresult emu_stream_drain(CUstream stream);
CUresult emu_context_drain(CUcontext context);

/* Waits for an event. The caller holds the context's lock, which is released meanwhile. */
void emu_event_drain(CUcontext context, CUevent event);

/* Whether all submitted work is done. The caller holds the context's lock. */
bool emu_stream_is_idle(CUstream stream);

/* Drops the operations that a stream has kept back. The caller holds the context's lock. */
void emu_stream_drop_waiting(CUstream stream);

#endif
