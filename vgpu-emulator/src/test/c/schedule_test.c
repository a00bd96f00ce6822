/* The model of a GPU's time, checked with exact numbers. */
#include "check.h"
#include "gpu/schedule.h"

#include <stdlib.h>
#include <string.h>

#define SLICE UINT64_C(1000)

static emu_schedule s;
static uint64_t demand[EMU_MAX_CONTEXTS];

static void start(int contexts) {
    memset(&s, 0, sizeof s);
    memset(demand, 0, sizeof demand);
    for (int i = 0; i < contexts; i++) {
        CHECK_EQUAL(emu_context_add(&s, (uint32_t)i + 1), i);
    }
}

static void oneContextRunsUntilItIsDry(void) {
    start(1);
    s.now_ns = 100;
    demand[0] = 5500;
    emu_advance(&s, demand, SLICE, 3100);
    CHECK_EQUAL(s.contexts[0].served_ns, 3000);
    CHECK_EQUAL(s.running, 1);
    emu_advance(&s, demand, SLICE, 10000);
    CHECK_EQUAL(s.contexts[0].served_ns, 5500);
    CHECK_EQUAL(s.busy_ns, 5500);
    CHECK_EQUAL(s.running, 0);
    CHECK_EQUAL(s.now_ns, 10000);
    CHECK_EQUAL(s.history_count, 1);
    CHECK_EQUAL(emu_time_of_service(&s, 0, 5500, 0, 0), 5600);
    CHECK_EQUAL(emu_time_of_service(&s, 0, 1, 0, 0), 101);
}

static void twoContextsTakeTurnsOfASlice(void) {
    start(2);
    demand[0] = 10000;
    demand[1] = 10000;
    emu_advance(&s, demand, SLICE, 4500);
    CHECK_EQUAL(s.contexts[0].served_ns + s.contexts[1].served_ns, 4500);
    CHECK_EQUAL(s.contexts[1].served_ns,
                2500); /* the search starts after the context that ran last, context 0 */
    CHECK_EQUAL(s.history_count, 5);
    /* Context 1 runs in [0,1000), [2000,3000), [4000,…: its service is 2000 at 3000, and 2001 at 4001. */
    CHECK_EQUAL(emu_time_of_service(&s, 1, 2000, 0, 0), 3000);
    CHECK_EQUAL(emu_time_of_service(&s, 1, 2001, 0, 0), 4001);
    CHECK_EQUAL(emu_time_of_service(&s, 0, 1000, 0, 0), 2000);
    emu_advance(&s, demand, SLICE, 30000);
    CHECK_EQUAL(s.contexts[0].served_ns, 10000);
    CHECK_EQUAL(s.contexts[1].served_ns, 10000);
    CHECK_EQUAL(s.busy_ns, 20000);
    CHECK_EQUAL(emu_time_of_service(&s, 1, 10000, 0, 0), 19000);
    CHECK_EQUAL(emu_time_of_service(&s, 0, 10000, 0, 0), 20000);
}

static void aContextThatRunsDryHandsOverAtOnce(void) {
    start(2);
    demand[0] = 300;
    demand[1] = 2500;
    emu_advance(&s, demand, SLICE, 1300);
    CHECK_EQUAL(s.contexts[1].served_ns, 1000); /* 1 first, a full slice */
    CHECK_EQUAL(s.contexts[0].served_ns, 300);  /* then 0, for 300 of its slice */
    emu_advance(&s, demand, SLICE, 5000);
    CHECK_EQUAL(emu_time_of_service(&s, 1, 2500, 0, 0), 2800);
}

static void aNewcomerWaitsForTheEndOfTheRunningSlice(void) {
    start(2);
    demand[0] = 100000;
    emu_advance(&s, demand, SLICE, 2300);
    demand[1] = 500;
    emu_advance(&s, demand, SLICE, 3000);
    CHECK_EQUAL(s.contexts[1].served_ns, 0);
    emu_advance(&s, demand, SLICE, 3500);
    CHECK_EQUAL(s.contexts[1].served_ns, 500);
    CHECK_EQUAL(s.contexts[0].served_ns, 3000);
}

static void predictionIsWhatHappens(void) {
    start(3);
    demand[0] = 3000;
    demand[1] = 1500;
    demand[2] = 700;
    emu_schedule scratch = s;
    uint64_t at = emu_predict(&scratch, demand, SLICE, 0, 2500, 100000);
    emu_advance(&s, demand, SLICE, at - 1);
    CHECK_EQUAL(s.contexts[0].served_ns, 2499);
    emu_advance(&s, demand, SLICE, at);
    CHECK_EQUAL(s.contexts[0].served_ns, 2500);
    scratch = s;
    CHECK(emu_predict(&scratch, demand, SLICE, 0, 3001, 100000) == EMU_NEVER);
}

static void removingAContextFreesTheGpu(void) {
    start(2);
    demand[0] = 10000;
    demand[1] = 10000;
    emu_advance(&s, demand, SLICE, 500);
    emu_context_remove(&s, 1);
    CHECK_EQUAL(s.context_count, 1);
    emu_advance(&s, demand, SLICE, 1500);
    CHECK_EQUAL(s.contexts[0].served_ns, 1000);
    uint32_t again = emu_context_add(&s, 7);
    CHECK_EQUAL(again, 1);
    CHECK_EQUAL(s.contexts[1].served_ns, 0);
    CHECK_EQUAL(s.contexts[1].generation, 3);
}

static void allEntriesCanBeUsed(void) {
    start(EMU_MAX_CONTEXTS);
    CHECK_EQUAL(emu_context_add(&s, 1), EMU_MAX_CONTEXTS);
    for (uint32_t i = 0; i < EMU_MAX_CONTEXTS; i++) {
        demand[i] = 10;
    }
    emu_advance(&s, demand, SLICE, 1000000);
    CHECK_EQUAL(s.busy_ns, 10 * EMU_MAX_CONTEXTS);
}

/* Advancing in one step, in many steps, or over skipped rounds gives the same result. */
static void stepsDoNotMatter(void) {
    srand(test_seed());
    for (int round = 0; round < 300; round++) {
        start(1 + rand() % 6);
        s.switch_ns = (uint64_t)(rand() % 2 * (rand() % 400));
        for (uint32_t i = 0; i < s.context_count; i++) {
            s.contexts[i].is_client = rand() % 2 == 0 ? 1 : 0;
            demand[i] = (uint64_t)(rand() % 3 == 0 ? rand() % 500 : rand() % 2000000);
        }
        emu_schedule once = s;
        uint64_t end = 1 + (uint64_t)(rand() % 6000000);
        emu_advance(&once, demand, SLICE, end);
        while (s.now_ns < end) {
            uint64_t step = s.now_ns + 1 + (uint64_t)(rand() % 200000);
            emu_advance(&s, demand, SLICE, step < end ? step : end);
        }
        CHECK_EQUAL(once.busy_ns, s.busy_ns);
        for (uint32_t i = 0; i < s.context_count; i++) {
            CHECK_EQUAL(once.contexts[i].served_ns, s.contexts[i].served_ns);
            uint64_t served = s.contexts[i].served_ns;
            if (served > 0) {
                CHECK_EQUAL(emu_time_of_service(&once, i, served, 0, 0),
                            emu_time_of_service(&s, i, served, 0, 0));
            }
        }
    }
}

static void changesOfTheContextTakeTheirTime(void) {
    start(2);
    s.switch_ns = 100;
    demand[0] = 2 * SLICE;
    emu_advance(&s, demand, SLICE, 10);
    CHECK_EQUAL(s.contexts[0].served_ns, 10); /* it had the GPU last */
    demand[1] = SLICE + 500;
    emu_advance(&s, demand, SLICE, SLICE + 50);
    CHECK_EQUAL(s.contexts[0].served_ns, SLICE);
    CHECK_EQUAL(s.contexts[1].served_ns, 0);
    emu_advance(&s, demand, SLICE, 2 * SLICE + 100);
    CHECK_EQUAL(s.contexts[1].served_ns, SLICE);
    emu_advance(&s, demand, SLICE, 3 * SLICE + 200);
    CHECK_EQUAL(s.contexts[0].served_ns, 2 * SLICE);
    emu_advance(&s, demand, SLICE, 10 * SLICE);
    CHECK_EQUAL(s.contexts[1].served_ns, SLICE + 500);
    CHECK_EQUAL(s.busy_ns, 3 * SLICE + 500);
    uint64_t alone = s.now_ns;
    demand[1] += 500;
    emu_advance(&s, demand, SLICE, alone + 500);
    CHECK_EQUAL(s.contexts[1].served_ns, SLICE + 1000); /* the same context again: no change */
}

static void clientsOfMpsShareAContext(void) {
    start(3);
    s.switch_ns = 100;
    s.contexts[0].is_client = 1;
    s.contexts[1].is_client = 1;
    demand[0] = 2 * SLICE;
    demand[1] = SLICE;
    emu_advance(&s, demand, SLICE, 2 * SLICE);
    CHECK_EQUAL(s.contexts[1].served_ns, SLICE);
    demand[2] = 10;
    emu_advance(&s, demand, SLICE, 10 * SLICE);
    CHECK_EQUAL(s.busy_ns, 3 * SLICE + 10);
    CHECK_EQUAL(s.history[2].start_ns, 3 * SLICE + 100); /* a program beside MPS */
}

static void forgottenHistoryIsInterpolated(void) {
    start(2);
    demand[0] = 1000 * SLICE;
    demand[1] = 1000 * SLICE;
    emu_advance(&s, demand, SLICE, 1000 * SLICE);
    uint64_t at = emu_time_of_service(&s, 0, 100 * SLICE, 0, 0);
    CHECK(at >= 197 * SLICE &&
          at <= 203 * SLICE); /* half the GPU: twice as long, within one round */
    CHECK_EQUAL(emu_time_of_service(&s, 0, 500 * SLICE, 0, 0), 1000 * SLICE);
}

static void longRunsAreRemembered(void) {
    start(1);
    demand[0] = UINT64_C(20000000000); /* does not fit into one slice's length field */
    emu_advance(&s, demand, SLICE, UINT64_C(15000000000));
    CHECK_EQUAL(s.contexts[0].served_ns, INT64_C(15000000000));
    CHECK_EQUAL(emu_time_of_service(&s, 0, UINT64_C(1000000000), 0, 0), 1000000000);
}

int main(void) {
    oneContextRunsUntilItIsDry();
    twoContextsTakeTurnsOfASlice();
    aContextThatRunsDryHandsOverAtOnce();
    aNewcomerWaitsForTheEndOfTheRunningSlice();
    predictionIsWhatHappens();
    removingAContextFreesTheGpu();
    allEntriesCanBeUsed();
    stepsDoNotMatter();
    changesOfTheContextTakeTheirTime();
    clientsOfMpsShareAContext();
    forgottenHistoryIsInterpolated();
    longRunsAreRemembered();
    return check_failures == 0 ? 0 : 1;
}
