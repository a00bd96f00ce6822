/*
 * The time of one emulated GPU: which context has run, for how long, and which runs next. A pure model: it uses no
 * clock and no memory except its arguments, so that every process computes the same result from the same state.
 *
 * A context's *demand* is the cumulative service (ns on the GPU) at which it runs out of work. It is runnable while its
 * service is below its demand. One context runs at a time; runnable contexts take turns of one slice. Nothing runs while
 * the context is being changed. Between two clients of MPS there is no change.
 */
#ifndef EMU_GPU_SCHEDULE_H
#define EMU_GPU_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

enum { EMU_MAX_CONTEXTS = 256, EMU_HISTORY = 128, EMU_PROCESS_WORDS = 4 };

#define EMU_NEVER UINT64_MAX

/* A stretch of time during which one context ran. */
typedef struct {
    uint64_t start_ns;
    uint32_t length_ns;
    uint32_t context;
} emu_slice;

typedef struct {
    uint64_t served_ns;
    uint32_t owner;      /* process slot + 1; 0: not in use */
    uint32_t generation; /* distinguishes successive users of an entry */
    /* 1: its channels are disabled; its work waits, in the middle of a kernel if necessary */
    uint32_t is_stopped;
    uint32_t slice_us;  /* its own time slice; 0: the GPU's */
    uint32_t is_client; /* 1: of MPS, whose clients share the server's context */
    uint32_t unused;
} emu_gpu_context;

/* Only 64-bit fields and pairs of 32-bit fields, because it is copied as 64-bit words. The used part of `contexts`
 * comes last. */
typedef struct {
    uint64_t now_ns; /* everything before this instant is decided */
    uint64_t slice_start_ns;
    uint64_t switch_ns;     /* what a change to another context takes */
    uint64_t switch_end_ns; /* until then nothing runs: the context is being changed */
    uint64_t busy_ns;
    uint64_t reaped_ns; /* when a process last looked for dead processes */
    uint64_t history_count;
    uint32_t turn;    /* the context that runs or ran last */
    uint32_t running; /* 1: `turn` had work at now_ns */
    uint32_t context_count;
    uint32_t generations;                  /* the number of contexts ever created */
    uint64_t suspended[EMU_PROCESS_WORDS]; /* a bit for each process whose work is held */
    emu_slice history[EMU_HISTORY];
    emu_gpu_context contexts[EMU_MAX_CONTEXTS];
} emu_schedule;

static inline bool emu_bits_get(const uint64_t *words, int bit) {
    return (words[bit / 64] >> (bit % 64) & 1) != 0;
}

static inline void emu_bits_set(uint64_t *words, int bit, bool value) {
    uint64_t mask = UINT64_C(1) << (bit % 64);
    words[bit / 64] = value ? words[bit / 64] | mask : words[bit / 64] & ~mask;
}

/* What a change from one context to another takes. */
uint64_t emu_change_ns(const emu_schedule *s, uint32_t from, uint32_t to);

/* Preempts a context if it is running and another one has work. */
void emu_kick(emu_schedule *s, const uint64_t *demand, uint32_t context);

/* Advances *s to now_ns. demand has context_count entries. */
void emu_advance(emu_schedule *s, const uint64_t *demand, uint64_t slice_ns, uint64_t now_ns);

/* The number of contexts that have work. */
uint32_t emu_runnable_count(const emu_schedule *s, const uint64_t *demand);

/*
 * When a context's service reached `service_ns`, which must not exceed its current service. At known_ns the service was
 * known_service_ns: a point to interpolate from where the history has been overwritten.
 */
uint64_t emu_time_of_service(const emu_schedule *s, uint32_t context, uint64_t service_ns,
                             uint64_t known_ns, uint64_t known_service_ns);

/*
 * When a context's service will reach service_ns if no new work arrives; EMU_NEVER if not before horizon_ns. Uses *s as
 * scratch.
 */
uint64_t emu_predict(emu_schedule *s, const uint64_t *demand, uint64_t slice_ns, uint32_t context,
                     uint64_t service_ns, uint64_t horizon_ns);

/* Takes a free entry for a process; EMU_MAX_CONTEXTS if there is none. The caller must set its service to its
 * demand. */
uint32_t emu_context_add(emu_schedule *s, uint32_t owner);

void emu_context_remove(emu_schedule *s, uint32_t context);

#endif
