/* Sends signals directly: a shell for each signal would take milliseconds of processor time. */
#define _GNU_SOURCE
#include "program.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

int mode_signals(int count, char **arguments) {
  char line[128], name[16];
  int pid;
  (void)count;
  (void)arguments;
  say("ready");
  while (next_line(line, sizeof line)) {
    if (sscanf(line, "%15s %d", name, &pid) != 2 || pid <= 1) {
      return 2;
    }
    int number = strcmp(name, "STOP") == 0 ? SIGSTOP : strcmp(name, "CONT") == 0 ? SIGCONT : SIGKILL;
    say("sent %d", kill(pid, number));
  }
  return 0;
}
