/* Checks for the C tests: a failed check prints the difference, lets the test continue, and makes the program fail. */
#ifndef EMU_CHECK_H
#define EMU_CHECK_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int check_failures;

static inline void check_true(int holds, const char *text, const char *file, int line) {
    if (!holds) {
        fprintf(stderr, "%s:%d: not so: %s\n", file, line, text);
        check_failures++;
    }
}

static inline void check_equal(int64_t found, int64_t expected, const char *text, const char *file,
                               int line) {
    if (found != expected) {
        fprintf(stderr, "%s:%d: %s is %" PRId64 ", expected %" PRId64 "\n", file, line, text, found,
                expected);
        check_failures++;
    }
}

#define CHECK(condition) check_true((condition) ? 1 : 0, #condition, __FILE__, __LINE__)
#define CHECK_EQUAL(found, expected) \
    check_equal((int64_t)(found), (int64_t)(expected), #found, __FILE__, __LINE__)
#define CHECK_OK(call) check_equal((call), 0, #call, __FILE__, __LINE__)

/* The seed of random tests: VGPU_TEST_SEED, or a new number, which is printed. */
static inline unsigned test_seed(void) {
    char text[16];
    if (getenv("VGPU_TEST_SEED") == NULL) {
        snprintf(text, sizeof text, "%u", ((unsigned)time(NULL) ^ (unsigned)getpid() << 12) >> 1);
        setenv("VGPU_TEST_SEED", text, 1);
        fprintf(stderr, "VGPU_TEST_SEED=%s repeats what this test draws\n", text);
    }
    return (unsigned)strtoul(getenv("VGPU_TEST_SEED"), NULL, 10);
}

#endif
