#include "program.h"

#include <stdio.h>
#include <string.h>

static const struct {
  const char *name;
  int (*run)(int count, char **arguments);
} MODES[] = {
    {"init", mode_init},         {"launch", mode_launch},
    {"alloc", mode_alloc},       {"load", mode_load},
    {"churn", mode_churn},       {"observe", mode_observe},
    {"noise", mode_noise},       {"lateness", mode_lateness},
    {"hostile", mode_hostile},   {"truncate", mode_truncate},
    {"fork", mode_fork},         {"serve", mode_serve},
    {"train", mode_train},       {"hold", mode_hold},
    {"measure", mode_measure},   {"flood", mode_flood},
    {"arrive", mode_arrive},     {"session", mode_session},
    {"where", mode_where},       {"about", mode_about},
    {"probe", mode_probe},       {"checkpoint", mode_checkpoint},
    {"yield", mode_yield},       {"chaos", mode_chaos},
    {"audit", mode_audit},       {"signals", mode_signals},
    {"stalls", mode_stalls},     {"calls", mode_calls},
    {"waits", mode_waits},       {"streams", mode_streams},
    {"paced", mode_paced},       {"leave", mode_leave},
    {"memory", mode_memory},     {"aside", mode_aside},
    {"allocs", mode_allocs},     {"names", mode_names},
    {"cudart", mode_cudart},     {"xids", mode_xids},
    {"channels", mode_channels}, {"stop", mode_stop},
    {"pace", mode_pace},         {"contend", mode_contend},
};

static const char USAGE[] =
    "usage: gpu_program MODE ...\n"
    "  init [wait]                  time of cuInit and of a context\n"
    "  launch CPU [graph | work NS never|each]  empty kernels, graphs, or kernels to their end: 'run BLOCKS LAUNCHES'\n"
    "  measure NS STREAMS [KERNELS]  kernels of NS, or graphs of so many: 'run EACH LAUNCHES', 'item LAUNCHES', 'eager PERIOD_NS MS'\n"
    "  alloc CPU                    pairs of alloc and free: 'live N', 'run BLOCKS PAIRS'\n"
    "  load NS GRID SYNC [start] [graph=N] [trace] [work=N]  kernels of NS: 'start', 'pause', 'read', 'stalls', 'stamps FILE'; SYNC 0: never\n"
    "  churn BYTES THREADS FILE SEED   'churn', 'fill', 'stop'\n"
    "  observe LIMIT                watches the device's memory: 'read'\n"
    "  noise                        watches the machine's own lateness: 'read'\n"
    "  lateness                     the same on each processor, in all: 'read'\n"
    "  hostile SECONDS              writes random bytes over its own report page\n"
    "  truncate                     cuts its own report page off\n"
    "  fork                         forks without exec\n"
    "  serve IN OUT                 requests as they are due: 'go T0 LIMIT'\n"
    "  train LEAST MOST SEED OUT    kernels of LEAST to MOST ns: 'start', 'finish'\n"
    "  hold MIB                     memory with something in it: 'check'\n"
    "  flood NS FILE                kernels of NS without an end; says in FILE when it was let in\n"
    "  arrive NS FILE GRANT EXPRESS  how soon the gate of another closes: 'run ARRIVALS'\n"
    "  yield NS REPORT               how soon another stops running: 'run ARRIVALS'\n"
    "  chaos SEED THREADS QUOTA fork|stay  anything, at random: 'rest', 'go', 'read'\n"
    "  audit                        compares the GPU's accounts with the ledgers: 'read'\n"
    "  signals                      sends them: 'STOP PID', 'CONT PID', 'KILL PID'\n"
    "  stalls LEASE...              notes what changes in leases' pages: 'tell FROM TO'\n"
    "  session SECONDS COMMAND...   runs it in a session of its own, and ends all of it\n"
    "  where NAME...                where the loader finds libraries\n"
    "  about                        the GPU and the driver, as JSON\n"
    "  probe                        how the driver behaves, as JSON\n"
    "  checkpoint PID               the driver's checkpoint of another process: 'suspend', 'resume'\n"
    "  calls                        what calls of the driver take the host, as JSON\n"
    "  waits MIB                    for how long others' calls hold an event's query up, as JSON\n"
    "  streams [quick]              whose work waits behind whose, as JSON\n"
    "  paced                        kernels at a pace: 'cold', 'paced US GAP_US COUNT'\n"
    "  leave exit|thread|handler    exits with work in flight\n"
    "  memory plain|thread|modules|export FILE|import FILE  holds memory in its way until its input ends\n"
    "  aside MODE ...               runs the mode in a pid namespace of its own\n"
    "  allocs                       allocates and frees all the time: 'read'\n"
    "  names DRIVER                 which cuInit each name of the driver gives, as JSON\n"
    "  cudart LIBRARY               a program on the CUDA runtime\n"
    "  xids FILE                    writes down each Xid that NVML tells\n"
    "  pace                         the rounds of work that a kernel of 1 ms does\n"
    "  channels FILE                stops its own channels: 'read', 'off METHOD', 'on METHOD', 'slice US', 'preempt N'\n"
    "  stop FILE PID                the same to another process, through its open file, and 'slices'\n"
    "  contend                      competes for the GPU's time: 'length US', 'start', 'read', 'arrive TIMES REST_US LIMIT_MS'\n";

int main(int count, char **arguments) {
  for (size_t i = 0; count > 1 && i < sizeof MODES / sizeof *MODES; i++) {
    if (strcmp(arguments[1], MODES[i].name) == 0) {
      return MODES[i].run(count - 2, arguments + 2);
    }
  }
  fputs(USAGE, stderr);
  return 2;
}
