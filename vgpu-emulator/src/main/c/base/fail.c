#include "fail.h"

#include "log.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RULES = 64, NAME_SIZE = 64 };

typedef struct {
    char function[NAME_SIZE];
    int code;
    uint64_t nth;   /* counted from 1 */
    uint64_t every; /* 0: once; 1: from then on; n > 1: once in every n calls */
    uint64_t calls;
} rule;

static rule rules[RULES];
static int rule_count;

static int read_rule(char *text, rule *result) {
    char *colon = strchr(text, ':');
    if (colon == NULL || colon == text || (size_t)(colon - text) >= NAME_SIZE) {
        return 0;
    }
    memset(result, 0, sizeof *result);
    memcpy(result->function, text, (size_t)(colon - text));
    char *end = NULL;
    result->code = (int)strtol(colon + 1, &end, 10);
    result->nth = 1;
    if (end == colon + 1 || result->code <= 0) {
        return 0;
    }
    if (*end == '@') {
        char *number = end + 1;
        result->nth = strtoull(number, &end, 10);
        if (end == number || result->nth == 0) {
            return 0;
        }
        if (*end == '+') {
            result->every = 1;
            end++;
        } else if (*end == '/') {
            number = end + 1;
            result->every = strtoull(number, &end, 10);
            if (end == number || result->every < 2 || result->nth > result->every) {
                return 0;
            }
        }
    }
    return *end == '\0';
}

int emu_fail_open(void) {
    const char *text = getenv("VGPU_EMULATOR_FAIL");
    rule_count = 0;
    if (text == NULL || text[0] == '\0') {
        return 0;
    }
    char *copy = strdup(text);
    char *position = NULL;
    for (char *item = copy == NULL ? NULL : strtok_r(copy, ",", &position); item != NULL;
         item = strtok_r(NULL, ",", &position)) {
        if (rule_count == RULES || !read_rule(item, &rules[rule_count])) {
            emu_log("VGPU_EMULATOR_FAIL: not FUNCTION:CODE[@N|@N+|@N/M], or too many: %s", item);
        } else {
            rule_count++;
        }
    }
    free(copy);
    return rule_count > 0;
}

/* Whether the function has that name, with or without a version suffix such as _v2. */
static int is_named(const char *function, const char *name) {
    size_t length = strlen(name);
    if (strncmp(function, name, length) != 0) {
        return 0;
    }
    const char *rest = function + length;
    return rest[0] == '\0' || (rest[0] == '_' && (rest[1] == 'v' || rest[1] == 'p'));
}

int emu_fail_now(const char *function) {
    int code = 0;
    for (int i = 0; i < rule_count; i++) {
        rule *r = &rules[i];
        if (!is_named(function, r->function)) {
            continue;
        }
        uint64_t call = __atomic_add_fetch(&r->calls, 1, __ATOMIC_RELAXED);
        int hit = r->every == 0   ? call == r->nth
                  : r->every == 1 ? call >= r->nth
                                  : (call - 1) % r->every + 1 == r->nth;
        if (hit && code == 0) {
            code = r->code;
        }
    }
    return code;
}
