#include "hints.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Pieces in order of their addresses, which do not overlap. Memory outside all of them has no hints. */
typedef struct {
    uint64_t start;
    uint64_t end;
    emu_hints hints;
} piece;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static piece *pieces;
static size_t count;
static size_t room;

/* The number of pieces that end at or before an address. */
static size_t before(uint64_t address) {
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (pieces[middle].end <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool insert(size_t at, uint64_t start, uint64_t end, const emu_hints *hints) {
    if (count == room) {
        size_t more = room == 0 ? 16 : 2 * room;
        piece *grown = realloc(pieces, more * sizeof *grown);
        if (grown == NULL) {
            return false;
        }
        pieces = grown;
        room = more;
    }
    memmove(&pieces[at + 1], &pieces[at], (count - at) * sizeof *pieces);
    pieces[at] = (piece){start, end, *hints};
    count++;
    return true;
}

/* Makes an address a border between pieces. */
static bool split(uint64_t address) {
    size_t at = before(address);
    if (at == count || pieces[at].start >= address) {
        return true;
    }
    emu_hints hints = pieces[at].hints;
    if (!insert(at, pieces[at].start, address, &hints)) {
        return false;
    }
    pieces[at + 1].start = address;
    return true;
}

static bool change_all(uint64_t start, uint64_t end, void (*change)(emu_hints *, const void *),
                       const void *data) {
    static const emu_hints nothing;
    if (!split(start) || !split(end)) {
        return false;
    }
    for (size_t at = before(start); start < end; at++) {
        uint64_t next = at < count && pieces[at].start < end ? pieces[at].start : end;
        if (start < next && !insert(at, start, next, &nothing)) {
            return false;
        }
        change(&pieces[at].hints, data);
        start = pieces[at].end;
    }
    return true;
}

bool emu_hints_change(uint64_t start, uint64_t bytes, void (*change)(emu_hints *, const void *),
                      const void *data) {
    pthread_mutex_lock(&lock);
    bool done = change_all(start, start + bytes, change, data);
    pthread_mutex_unlock(&lock);
    return done;
}

void emu_hints_see(uint64_t start, uint64_t bytes, void (*see)(const emu_hints *, void *),
                   void *data) {
    static const emu_hints nothing;
    uint64_t end = start + bytes;
    pthread_mutex_lock(&lock);
    for (size_t at = before(start); start < end; at++) {
        bool is_piece = at < count && pieces[at].start < end;
        if (!is_piece || start < pieces[at].start) {
            see(&nothing, data);
        }
        if (is_piece) {
            see(&pieces[at].hints, data);
        }
        start = is_piece ? pieces[at].end : end;
    }
    pthread_mutex_unlock(&lock);
}

void emu_hints_forget(uint64_t start, uint64_t bytes) {
    uint64_t end = start + bytes;
    pthread_mutex_lock(&lock);
    size_t first = before(start);
    size_t last = first;
    while (last < count && pieces[last].start < end) {
        last++;
    }
    if (last > first) {
        memmove(&pieces[first], &pieces[last], (count - last) * sizeof *pieces);
        count -= last - first;
    }
    pthread_mutex_unlock(&lock);
}
