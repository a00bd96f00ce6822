#include "schedule.h"

static bool has_work(const emu_schedule *s, const uint64_t *demand, uint32_t i) {
    return s->contexts[i].owner != 0 && s->contexts[i].served_ns < demand[i];
}

/* The first context with work after `after`, wrapping around to `after` itself; EMU_MAX_CONTEXTS if there is none. */
static uint32_t next_with_work(const emu_schedule *s, const uint64_t *demand, uint32_t after) {
    for (uint32_t i = after + 1; i < s->context_count; i++) {
        if (has_work(s, demand, i)) {
            return i;
        }
    }
    for (uint32_t i = 0; i <= after && i < s->context_count; i++) {
        if (has_work(s, demand, i)) {
            return i;
        }
    }
    return EMU_MAX_CONTEXTS;
}

static void remember(emu_schedule *s, uint64_t length_ns) {
    if (s->history_count > 0) {
        emu_slice *last = &s->history[(s->history_count - 1) % EMU_HISTORY];
        if (last->context == s->turn && last->start_ns + last->length_ns == s->now_ns &&
            last->length_ns + length_ns <= UINT32_MAX) {
            last->length_ns += (uint32_t)length_ns;
            return;
        }
    }
    emu_slice *slot = &s->history[s->history_count % EMU_HISTORY];
    slot->start_ns = s->now_ns;
    slot->length_ns = (uint32_t)length_ns;
    slot->context = s->turn;
    s->history_count++;
}

static void run_turn(emu_schedule *s, uint64_t until_ns) {
    while (s->now_ns < until_ns) {
        uint64_t length = until_ns - s->now_ns;
        if (length > UINT32_MAX) {
            length = UINT32_MAX;
        }
        remember(s, length);
        s->contexts[s->turn].served_ns += length;
        s->busy_ns += length;
        s->now_ns += length;
    }
}

uint32_t emu_runnable_count(const emu_schedule *s, const uint64_t *demand) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->context_count; i++) {
        count += has_work(s, demand, i) ? 1 : 0;
    }
    return count;
}

static uint64_t slice_of(const emu_schedule *s, uint32_t context, uint64_t slice_ns) {
    uint64_t own_ns = (uint64_t)s->contexts[context].slice_us * 1000;
    return own_ns == 0 ? slice_ns : own_ns;
}

uint64_t emu_change_ns(const emu_schedule *s, uint32_t from, uint32_t to) {
    bool is_shared = s->contexts[from].is_client != 0 && s->contexts[to].is_client != 0;
    return from == to || is_shared ? 0 : s->switch_ns;
}

/*
 * After a long time without a look, skips whole rounds in which every runnable context uses its full slice. Leaves
 * enough rounds for step-by-step simulation to fill the history.
 */
static void skip_rounds(emu_schedule *s, const uint64_t *demand, uint64_t slice_ns,
                        uint64_t now_ns) {
    if (now_ns - s->now_ns < 4 * EMU_HISTORY * slice_ns) {
        return;
    }
    uint64_t count = 0;
    uint64_t round_ns = 0;
    uint64_t rounds = EMU_NEVER;
    uint64_t changes_ns = 0;
    for (uint32_t i = 0; i < s->context_count; i++) {
        if (has_work(s, demand, i)) {
            changes_ns += emu_change_ns(s, i, next_with_work(s, demand, i));
            uint64_t own_ns = slice_of(s, i, slice_ns);
            uint64_t own = (demand[i] - s->contexts[i].served_ns) / own_ns;
            rounds = own < rounds ? own : rounds;
            round_ns += own_ns;
            count++;
        }
    }
    if (count < 2) {
        return;
    }
    uint64_t busy_ns = round_ns;
    round_ns += changes_ns;
    uint64_t fitting = (now_ns - s->now_ns) / round_ns;
    rounds = fitting < rounds ? fitting : rounds;
    uint64_t kept = EMU_HISTORY / count + 2;
    if (rounds <= kept) {
        return;
    }
    rounds -= kept;
    for (uint32_t i = 0; i < s->context_count; i++) {
        if (has_work(s, demand, i)) {
            s->contexts[i].served_ns += rounds * slice_of(s, i, slice_ns);
        }
    }
    s->busy_ns += rounds * busy_ns;
    s->now_ns += rounds * round_ns;
    s->slice_start_ns = s->now_ns;
}

static void start_turn(emu_schedule *s, uint32_t context) {
    if (s->turn != context) {
        s->switch_end_ns = s->now_ns + emu_change_ns(s, s->turn, context);
    }
    s->turn = context;
    s->running = 1;
    s->slice_start_ns = s->now_ns;
}

void emu_kick(emu_schedule *s, const uint64_t *demand, uint32_t context) {
    if (s->running && s->turn == context) {
        uint32_t next = next_with_work(s, demand, context);
        if (next != EMU_MAX_CONTEXTS && next != context) {
            start_turn(s, next);
        }
    }
}

void emu_advance(emu_schedule *s, const uint64_t *demand, uint64_t slice_ns, uint64_t now_ns) {
    while (s->now_ns < now_ns) {
        if (!s->running || !has_work(s, demand, s->turn)) {
            uint32_t next = next_with_work(s, demand, s->turn);
            if (next == EMU_MAX_CONTEXTS) {
                s->running = 0;
                s->now_ns = now_ns;
                return;
            }
            start_turn(s, next);
        }
        if (s->now_ns < s->switch_end_ns) {
            s->now_ns = s->switch_end_ns < now_ns ? s->switch_end_ns : now_ns;
            s->slice_start_ns = s->now_ns;
            continue;
        }
        uint64_t dry_ns = s->now_ns + (demand[s->turn] - s->contexts[s->turn].served_ns);
        uint64_t until = dry_ns < now_ns ? dry_ns : now_ns;
        uint32_t other = next_with_work(s, demand, s->turn);
        if (other == s->turn) { /* the only one with work: continues past its slice */
            run_turn(s, until);
            continue;
        }
        if (s->slice_start_ns == s->now_ns) {
            skip_rounds(s, demand, slice_ns, now_ns);
            dry_ns = s->now_ns + (demand[s->turn] - s->contexts[s->turn].served_ns);
            until = dry_ns < now_ns ? dry_ns : now_ns;
        }
        uint64_t own_ns = slice_of(s, s->turn, slice_ns);
        uint64_t slice_end =
            s->slice_start_ns + ((s->now_ns - s->slice_start_ns) / own_ns + 1) * own_ns;
        run_turn(s, until < slice_end ? until : slice_end);
        if (s->now_ns == slice_end) {
            start_turn(s, other);
        }
    }
}

/* Interpolates between (t0, s0) and (t1, s1). Doubles have 53 bits: exact to a nanosecond for 100 days. */
static uint64_t interpolate(uint64_t t0, uint64_t s0, uint64_t t1, uint64_t s1,
                            uint64_t service_ns) {
    if (service_ns >= s1 || t1 <= t0) {
        return t1;
    }
    if (service_ns <= s0) {
        return t0;
    }
    double part = (double)(service_ns - s0) / (double)(s1 - s0);
    return t0 + (uint64_t)(part * (double)(t1 - t0));
}

uint64_t emu_time_of_service(const emu_schedule *s, uint32_t context, uint64_t service_ns,
                             uint64_t known_ns, uint64_t known_service_ns) {
    uint64_t end_service = s->contexts[context].served_ns;
    uint64_t known = s->history_count < EMU_HISTORY ? s->history_count : EMU_HISTORY;
    uint64_t oldest_ns = s->now_ns;
    for (uint64_t i = 0; i < known; i++) {
        const emu_slice *slice = &s->history[(s->history_count - 1 - i) % EMU_HISTORY];
        oldest_ns = slice->start_ns;
        if (slice->context != context || slice->length_ns > end_service) {
            continue;
        }
        uint64_t start_service = end_service - slice->length_ns;
        if (service_ns > start_service) {
            uint64_t at = slice->start_ns + (service_ns - start_service);
            uint64_t end = slice->start_ns + slice->length_ns;
            return at < end ? at : end;
        }
        end_service = start_service;
    }
    return interpolate(known_ns, known_service_ns, oldest_ns, end_service, service_ns);
}

uint64_t emu_predict(emu_schedule *s, const uint64_t *demand, uint64_t slice_ns, uint32_t context,
                     uint64_t service_ns, uint64_t horizon_ns) {
    uint64_t now = s->now_ns;
    uint64_t served = s->contexts[context].served_ns;
    if (served >= service_ns) {
        return now;
    }
    emu_advance(s, demand, slice_ns, horizon_ns);
    if (s->contexts[context].served_ns < service_ns) {
        return EMU_NEVER;
    }
    return emu_time_of_service(s, context, service_ns, now, served);
}

uint32_t emu_context_add(emu_schedule *s, uint32_t owner) {
    uint32_t i = 0;
    while (i < s->context_count && s->contexts[i].owner != 0) {
        i++;
    }
    if (i == EMU_MAX_CONTEXTS) {
        return EMU_MAX_CONTEXTS;
    }
    if (i == s->context_count) {
        s->context_count++;
    }
    s->contexts[i] = (emu_gpu_context){.owner = owner, .generation = ++s->generations};
    return i;
}

void emu_context_remove(emu_schedule *s, uint32_t context) {
    s->contexts[context].owner = 0;
    if (s->turn == context) {
        s->running = 0;
    }
    while (s->context_count > 0 && s->contexts[s->context_count - 1].owner == 0) {
        s->context_count--;
    }
}
