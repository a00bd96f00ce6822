/* Wrappers for the C library and the kernel that need nothing newer than glibc 2.17. */
#ifndef VGPU_NVML_SYS_H
#define VGPU_NVML_SYS_H

#include <stdint.h>

struct stat;

uint64_t vgpu__now_ns(void); /* CLOCK_MONOTONIC */
uint64_t vgpu__epoch_us(void);
void vgpu__sleep_ns(uint64_t ns);
int vgpu__stat(const char *path, struct stat *into);
int vgpu__fstat(int fd, struct stat *into);
uint64_t vgpu__pid_namespace(void);
/* Whether the process with this start time (field 22 of /proc/PID/stat) still runs. */
int vgpu__process_exists(uint32_t pid, uint64_t start_time);
/* Writes one line to stderr; the only output of this library. */
void vgpu__say(const char *what, const char *why);

#endif
