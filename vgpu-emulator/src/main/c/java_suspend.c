/*
 * What the Java side calls: a library of its own, so that whoever suspends others needs no driver.
 * Plain numbers go in and out, so JNI's own types are not needed.
 */
#include "suspend.h"

#define EMU_JAVA __attribute__((visibility("default")))

typedef emu_suspend_result change(emu_state *state, uint64_t pid, uint64_t timeout_ns);

/* Joins the GPUs for as long as it takes: to change what others see needs a slot. */
static int32_t with_state(change *action, int64_t pid, int64_t timeout_ns) {
    emu_state state;
    char problem[700];
    if (pid <= 0 || timeout_ns < 0) {
        return EMU_SUSPEND_NO_PROCESS;
    }
    if (emu_state_open(&state, problem, sizeof problem) != 0) {
        return EMU_SUSPEND_NO_STATE;
    }
    emu_suspend_result result = EMU_SUSPEND_NO_STATE;
    if (emu_state_join(&state, problem, sizeof problem) == 0) {
        result = action(&state, (uint64_t)pid, (uint64_t)timeout_ns);
    }
    emu_state_close(&state);
    return (int32_t)result;
}

static emu_suspend_result look(emu_state *state, uint64_t pid, uint64_t timeout_ns) {
    (void)timeout_ns;
    return emu_is_suspended(state, pid) ? EMU_SUSPEND_DONE : EMU_SUSPEND_NO_PROCESS;
}

EMU_JAVA int32_t Java_dev_vgpu_emulator_NativeSuspension_suspend(void *jni, void *type, int64_t pid,
                                                                 int64_t timeout_ns);
EMU_JAVA int32_t Java_dev_vgpu_emulator_NativeSuspension_resume(void *jni, void *type, int64_t pid,
                                                                int64_t timeout_ns);
EMU_JAVA int32_t Java_dev_vgpu_emulator_NativeSuspension_look(void *jni, void *type, int64_t pid);

int32_t Java_dev_vgpu_emulator_NativeSuspension_suspend(void *jni, void *type, int64_t pid,
                                                        int64_t timeout_ns) {
    (void)jni;
    (void)type;
    return with_state(emu_suspend, pid, timeout_ns);
}

int32_t Java_dev_vgpu_emulator_NativeSuspension_resume(void *jni, void *type, int64_t pid,
                                                       int64_t timeout_ns) {
    (void)jni;
    (void)type;
    return with_state(emu_resume, pid, timeout_ns);
}

int32_t Java_dev_vgpu_emulator_NativeSuspension_look(void *jni, void *type, int64_t pid) {
    (void)jni;
    (void)type;
    return with_state(look, pid, 0);
}
