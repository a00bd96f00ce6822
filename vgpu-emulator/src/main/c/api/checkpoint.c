/*
 * Suspending other processes. These functions need no cuInit: a process that did not call it joins the GPUs for the
 * duration of the call.
 *
 * For tests, VGPU_EMULATOR_CHECKPOINT=STEP:WHAT,… (or @FILE with the same content) injects faults. STEP is lock,
 * checkpoint, restore, unlock or state. WHAT is one of:
 *   a number  the error to return; the process stays as it was before the step
 *   hang      the step never returns
 *   lost      the process has failed for good
 */
#include "driver/driver.h"
#include "gpu/suspend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_TEXT = 256 };

typedef struct {
    emu_state own;
    emu_state *state;
    int slot;
} target;

/* Reads the faults to inject, as text. */
static void faults(char text[MOST_TEXT]) {
    const char *value = getenv("VGPU_EMULATOR_CHECKPOINT");
    text[0] = '\0';
    if (value == NULL) {
        return;
    }
    if (value[0] != '@') {
        snprintf(text, MOST_TEXT, "%s", value);
        return;
    }
    FILE *file = fopen(value + 1, "re");
    if (file != NULL) {
        size_t length = fread(text, 1, MOST_TEXT - 1, file);
        text[length] = '\0';
        fclose(file);
    }
}

/* Injects the fault that is configured for a step; CUDA_SUCCESS: none is. */
static CUresult fault(const target *to, const char *step) {
    char text[MOST_TEXT];
    char *position = NULL;
    size_t length = strlen(step);
    faults(text);
    for (char *item = strtok_r(text, ",\n", &position); item != NULL;
         item = strtok_r(NULL, ",\n", &position)) {
        if (strncmp(item, step, length) != 0 || item[length] != ':') {
            continue;
        }
        const char *what = item + length + 1;
        while (strcmp(what, "hang") == 0) {
            pause();
        }
        if (strcmp(what, "lost") == 0) {
            emu_checkpoint_fail(to->state, to->slot);
            return CUDA_ERROR_UNKNOWN;
        }
        return atoi(what);
    }
    return CUDA_SUCCESS;
}

static CUresult open_target(target *to, int pid) {
    char problem[700];
    EMU_REQUIRE(pid > 0);
    to->state = &emu_driver.state;
    if (__atomic_load_n(&emu_driver.ready, __ATOMIC_ACQUIRE) != 1) {
        if (emu_state_open(&to->own, problem, sizeof problem) != 0) {
            return CUDA_ERROR_NOT_INITIALIZED;
        }
        to->state = &to->own;
        /* Changing state that other processes see needs a slot. */
        if (emu_state_join(&to->own, problem, sizeof problem) != 0) {
            emu_state_close(&to->own);
            return CUDA_ERROR_NOT_INITIALIZED;
        }
    }
    to->slot = emu_slot_of(to->state, (uint64_t)pid);
    return CUDA_SUCCESS;
}

static CUresult close_target(target *to, CUresult result) {
    if (to->state == &to->own) {
        emu_state_close(&to->own);
    }
    return result;
}

/* Opens the target and injects a fault if one is configured. */
static CUresult begin(target *to, int pid, const char *step) {
    CUresult result = open_target(to, pid);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    if (to->slot == EMU_NO_PROCESS) {
        return close_target(to, CUDA_ERROR_INVALID_VALUE);
    }
    result = fault(to, step);
    return result == CUDA_SUCCESS ? result : close_target(to, result);
}

/* Like the driver, rejects reserved bytes that are not zero. */
static bool is_zero(const void *bytes, size_t size) {
    const char *each = bytes;
    for (size_t i = 0; i < size; i++) {
        if (each[i] != 0) {
            return false;
        }
    }
    return true;
}

EMU_API CUresult cuCheckpointProcessGetState(int pid, int *state) {
    target to;
    EMU_REQUIRE(state != NULL);
    CUresult result = begin(&to, pid, "state");
    if (result != CUDA_SUCCESS) {
        return result;
    }
    *state = (int)emu_checkpoint_of(to.state, to.slot);
    return close_target(&to, CUDA_SUCCESS);
}

/* In the emulator a process's threads restore themselves; the first thread stands for the driver's restore thread. */
EMU_API CUresult cuCheckpointProcessGetRestoreThreadId(int pid, int *tid) {
    target to;
    EMU_REQUIRE(tid != NULL);
    CUresult result = begin(&to, pid, "state");
    if (result != CUDA_SUCCESS) {
        return result;
    }
    *tid = pid;
    return close_target(&to, CUDA_SUCCESS);
}

EMU_API CUresult cuCheckpointProcessLock(int pid, CUcheckpointLockArgs *arguments) {
    target to;
    uint64_t timeout_ns = 0;
    if (arguments != NULL) {
        EMU_REQUIRE(arguments->reserved0 == 0 &&
                    is_zero(arguments->reserved1, sizeof arguments->reserved1));
        timeout_ns = (uint64_t)arguments->timeout_ms * 1000000;
    }
    CUresult result = begin(&to, pid, "lock");
    return result != CUDA_SUCCESS
               ? result
               : close_target(&to, emu_checkpoint_lock(to.state, to.slot, timeout_ns));
}

EMU_API CUresult cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs *arguments) {
    target to;
    EMU_REQUIRE(arguments == NULL || is_zero(arguments, sizeof *arguments));
    CUresult result = begin(&to, pid, "checkpoint");
    return result != CUDA_SUCCESS ? result
                                  : close_target(&to, emu_checkpoint_take(to.state, to.slot));
}

/* Restoring on other GPUs needs driver 580 or later; the emulator does not support it. */
EMU_API CUresult cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs *arguments) {
    target to;
    if (arguments != NULL && arguments->gpu_pairs_count != 0) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    EMU_REQUIRE(arguments == NULL || is_zero(arguments, sizeof *arguments));
    CUresult result = begin(&to, pid, "restore");
    return result != CUDA_SUCCESS ? result
                                  : close_target(&to, emu_checkpoint_restore(to.state, to.slot));
}

EMU_API CUresult cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs *arguments) {
    target to;
    EMU_REQUIRE(arguments == NULL || is_zero(arguments, sizeof *arguments));
    CUresult result = begin(&to, pid, "unlock");
    return result != CUDA_SUCCESS ? result
                                  : close_target(&to, emu_checkpoint_unlock(to.state, to.slot));
}
