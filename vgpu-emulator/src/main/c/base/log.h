#ifndef EMU_LOG_H
#define EMU_LOG_H

/* Logs one line to stderr if VGPU_EMULATOR_LOG is set, or to the file that it names if its value is a path. */
#ifdef __GNUC__
__attribute__((format(printf, 1, 2)))
#endif
void emu_log(const char *format, ...);

/* The same also if VGPU_EMULATOR_LOG is not set, but once in a process: why the emulator cannot be used. */
#ifdef __GNUC__
__attribute__((format(printf, 1, 2)))
#endif
void emu_complain(const char *format, ...);

#endif
