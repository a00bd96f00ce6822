/*
 * Runs a command under the fake seat's lease. Usage: bench_seat HOOK DRIVER free|limited|turns COMMAND... (turns: the
 * gate opens and shuts every 3 ms)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_seat.h"

int main(int count, char **arguments) {
  struct fake_seat seat;
  int status = 0;
  if (count < 5) return 2;
  seat_open(&seat, 60ull << 30, 1 << 20);
  if (strcmp(arguments[3], "free") != 0) seat.grant->turn_flags = (uint32_t)(SHM_TURN_LIMITED | SHM_TURN_CONTENDED);
  seat_start(&seat);
  pid_t pid = fork();
  if (pid == 0) {
    setenv("VGPU_RUN_DIR", seat.dir, 1);
    setenv("VGPU_LEASE", "test", 1);
    setenv("VGPU_CUDA_DRIVER", arguments[2], 1);
    setenv("LD_PRELOAD", arguments[1], 1);
    execvp(arguments[4], arguments + 4);
    _exit(127);
  }
  for (uint32_t open = 0; strcmp(arguments[3], "turns") == 0 && waitpid(pid, &status, WNOHANG) == 0; open ^= 1) {
    seat_gate(&seat, open ? (uint32_t)SHM_GRANT_OPEN : 0);
    usleep(3000);
  }
  waitpid(pid, &status, 0);
  if (getenv("BENCH_VERBOSE") != NULL) {
    fprintf(stderr, "gpu_ns %llu wants %u idles %u launches %llu\n", (unsigned long long)seat_gpu_ns(&seat), seat.wants,
            seat.idles, (unsigned long long)seat.slots[1].launches);
  }
  seat_close(&seat);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
