/*
 * Error injection: VGPU_EMULATOR_FAIL=FUNCTION:CODE[@WHEN],… makes calls of a driver function fail as the real driver
 * may, so that the software above the driver can be tested. FUNCTION is an entry point's name, with or without its
 * version suffix (cuMemAlloc also matches cuMemAlloc_v2). CODE is an error number of cuda.h (2 is out of memory). WHEN
 * counts that function's calls in this process:
 *   5    the fifth call (WHEN is 1 if omitted)
 *   5+   the fifth call and every later one
 *   5/8  the fifth of every eight calls
 * A failing call has no other effect. An entry that cannot be parsed is logged and ignored.
 */
#ifndef EMU_FAIL_H
#define EMU_FAIL_H

/* Reads the setting; true if it contains at least one entry. */
int emu_fail_open(void);

/* The error code to inject into this call of an entry point; 0: none. */
int emu_fail_now(const char *function);

#endif
