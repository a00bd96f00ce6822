/*
 * Events that several processes share. An event is a row of counters in memory that its creator shares: how often any
 * process recorded it, and which of these records a GPU has reached. A record is a word that the stream writes; a wait
 * is a word that the stream waits for.
 */
#ifndef EMU_IPC_EVENT_H
#define EMU_IPC_EVENT_H

#include "operation.h"

typedef struct emu_ipc_event {
    uint64_t recorded;
    uint64_t done;
    /* `recorded` when the event was created; equal to it while the event has not been recorded */
    uint64_t first;
    uint64_t in_use;
} emu_ipc_event;

/* Creates an event in this process; NULL: there are too many. */
emu_ipc_event *emu_ipc_event_make(void);

/* Releases an event. Does nothing for an event of another process. */
void emu_ipc_event_give(emu_ipc_event *event);

/* Whether all records of the event have completed. */
bool emu_ipc_event_is_done(const emu_ipc_event *event);

/* The operations that record the event, and that wait for its last record. */
emu_operation emu_ipc_event_record(emu_ipc_event *event);
emu_operation emu_ipc_event_wait(emu_ipc_event *event);

#endif
