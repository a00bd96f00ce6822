/* A program under a seccomp filter, which denies it calls of the kernel. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cuda_calls.h"
#include "test.h"

static const struct {
  const char *name;
  long call;
} calls[] = {
    {"futex", SYS_futex},
    {"futex_waitv", 449},
    {"mmap", SYS_mmap},
    {"mremap", SYS_mremap},
    {"munmap", SYS_munmap},
    {"mprotect", SYS_mprotect},
    {"openat", SYS_openat},
    {"fstat", SYS_fstat},
    {"stat", SYS_newfstatat},
    {"read", SYS_read},
    {"pread64", SYS_pread64},
    {"close", SYS_close},
    {"fcntl", SYS_fcntl},
    {"socket", SYS_socket},
    {"connect", SYS_connect},
    {"sendto", SYS_sendto},
    {"recvfrom", SYS_recvfrom},
    {"nanosleep", SYS_nanosleep},
    {"gettime", SYS_clock_gettime},
    {"kill", SYS_kill},
    {"process_vm_readv", SYS_process_vm_readv},
    {"gettid", SYS_gettid},
    {"membarrier", SYS_membarrier},
    {"clone", SYS_clone},
};

const char *denied_call(size_t index) { return index < sizeof calls / sizeof *calls ? calls[index].name : NULL; }

/* For all threads of this process. */
static int deny(const char *name, unsigned with) {
  long call = -1;
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    if (strcmp(calls[i].name, name) == 0) call = calls[i].call;
  }
  /* Of futex, only what processes share: without the rest, the C library ends a program by itself. */
  unsigned greatest = call == SYS_futex ? FUTEX_WAKE : UINT32_MAX;
  struct sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
      BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, greatest, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | with),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

static void work(void) {
  CUcontext context = NULL;
  CUdeviceptr memory = 0;
  CUfunction function = NULL;
  CUstream stream = NULL;
  if (cuInit(0) != ABI_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != ABI_SUCCESS) return;
  (void)cuCtxSetCurrent(context);
  (void)cuStreamCreate(&stream, 0);
  if (cuMemAlloc_v2(&memory, 1 << 20) == ABI_SUCCESS) (void)cuMemFree_v2(memory);
  CHECK(cuMemAlloc_v2(&memory, 65u << 20) != ABI_SUCCESS, "more than its quota");
  if (cuModuleGetFunction(&function, NULL, "300000") != ABI_SUCCESS) return;
  for (int i = 0; i < 50; i++) (void)launch(function, stream);
  (void)cuStreamSynchronize(stream);
  (void)cuCtxSynchronize();
}

/* The argument: CALL:ERRNO:MOMENT, early (before cuInit) or late. */
void role_denied(const char *argument) {
  char name[64];
  unsigned with = 0;
  char moment[16] = "";
  if (sscanf(argument, "%63[^:]:%u:%15s", name, &with, moment) != 3) exit(2);
  alarm((unsigned)(PATIENCE_NS / 1000000000)); /* it hangs */
  if (strcmp(moment, "late") == 0) work();
  CHECK(deny(name, with), "the filter: %d", errno);
  work();
}
