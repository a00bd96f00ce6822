/*
 * Errors on purpose: VGPU_EMULATOR_FAIL=FUNCTION:CODE[@WHEN],… makes calls of a driver function fail as the real
 * driver may, so that what stands above it can be tested. FUNCTION is an entry point's name, with or without its
 * suffix of a version (cuMemAlloc is also cuMemAlloc_v2); CODE a number of cuda.h (2 is out of memory). WHEN counts
 * that function's calls in this process:
 *   5    the fifth (1 if there is no WHEN)
 *   5+   the fifth and all after it
 *   5/8  the fifth of every eight
 * The call has no effect then. What cannot be read is reported where the emulator logs to, and not used.
 */
#ifndef EMU_FAIL_H
#define EMU_FAIL_H

/* Reads the setting; true if there is anything in it. */
int emu_fail_open(void);

/* The code with which this call of an entry point shall end; 0: it shall go on. */
int emu_fail_now(const char *function);

#endif
