/*
 * Events that several processes see. One is a row of counters in memory that its maker shares: how often it was
 * recorded, by whomever, and which of these records a GPU has come to. A record is a word that the stream writes, a
 * wait one that the stream waits for.
 */
#ifndef EMU_IPC_EVENT_H
#define EMU_IPC_EVENT_H

#include "operation.h"

typedef struct emu_ipc_event {
    uint64_t recorded;
    uint64_t done;
    uint64_t first; /* what recorded was when the event was made: it was not recorded since */
    uint64_t in_use;
} emu_ipc_event;

/* Makes one in this process; NULL: there are too many. */
emu_ipc_event *emu_ipc_event_make(void);

/* It is not used any more; of another process's: nothing happens to it. */
void emu_ipc_event_give(emu_ipc_event *event);

/* Whether all that was recorded of it is done. */
bool emu_ipc_event_is_done(const emu_ipc_event *event);

/* What is submitted to a stream to record it, and to wait for what was recorded last. */
emu_operation emu_ipc_event_record(emu_ipc_event *event);
emu_operation emu_ipc_event_wait(emu_ipc_event *event);

#endif
