/* Logs one line to stderr if VGPU_EMULATOR_LOG is set, or to the file that it names if its value is a path. */
#ifndef EMU_LOG_H
#define EMU_LOG_H

#ifdef __GNUC__
__attribute__((format(printf, 1, 2)))
#endif
void emu_log(const char *format, ...);

#endif
