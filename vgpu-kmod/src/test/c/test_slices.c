/*
 * The time slices that vgpu-turns gives programs' channel groups, and that they have afterwards. The driver is a table
 * in this file. Usage: test_slices DIRECTORY, which is empty
 */
#include <dirent.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static int driver_call(int fd, unsigned long word, void *call);
static int taken_file(void);
/* /dev/null is the control file. */
#undef makedev
#define makedev(major_number, minor_number) gnu_dev_makedev(1, 3)
#define ioctl(fd, word, call) driver_call(fd, word, call)
#define syscall(...) taken_file()
#define main turns_main
#include "../../main/c/user/turns.c"
#undef main
#undef syscall
#undef ioctl

#include "check.h"

enum { DEVICE = 0x101, COMPUTE = 0x200, COPY, CLIENTS = 0x1000 };
/* 75 and 25 percent. */
enum { WIDE_US = 6144, NARROW_US = 2048 };
enum { CHANNEL_CLASS = 0xc86f, PROGRAMS = 3, GET_SLICE = (int)0xa06c0104, WAIT_MS = 20000 };

struct slices {
  _Atomic uint64_t us[PROGRAMS][2];
  _Atomic int untold; /* GET_TIMESLICE fails */
  _Atomic int worker;
};

static int failures;
static struct slices *driver;

static int driver_call(int fd, unsigned long word, void *call) {
  struct {
    uint32_t client, object, command, flags;
    uint64_t params;
    uint32_t size, status;
  } *of = call;
  uint64_t *params = (uint64_t *)(uintptr_t)of->params;
  uint32_t program = of->client - CLIENTS, group = of->object - COMPUTE;
  (void)fd;
  (void)word;
  of->status = program < PROGRAMS ? RM_OK : RM_INVALID_CLIENT;
  if (program >= PROGRAMS || group > 1) return 0;
  atomic_store(&driver->worker, getpid());
  if (of->command == RM_GROUP_SET_TIMESLICE) atomic_store(&driver->us[program][group], *params);
  else if (of->command != (uint32_t)GET_SLICE) of->status = RM_NOT_SUPPORTED;
  else if (atomic_load(&driver->untold)) of->status = RM_NOT_SUPPORTED;
  else *params = atomic_load(&driver->us[program][group]);
  return 0;
}

static int taken_file(void) { return open("/dev/null", O_RDWR | O_CLOEXEC); }

/* ---- programs ---- */

static void record(int fd, uint32_t program, struct vgpu_rm_event event) {
  event.file = 1;
  event.client = CLIENTS + program;
  CHECK(write(fd, &event, sizeof event) == (ssize_t)sizeof event);
}

static void record_made(int fd, uint32_t program, uint32_t parent, uint32_t object, uint32_t class_number,
                        uint32_t engine) {
  record(fd, program,
         (struct vgpu_rm_event){
             .kind = RM_EVENT_MADE, .parent = parent, .object = object, .class_number = class_number, .value = engine});
}

static void record_group(int fd, uint32_t program, uint32_t group, uint32_t engine) {
  record_made(fd, program, DEVICE, group, RM_CLASS_GROUP, engine);
  record_made(fd, program, group, group + 0x100, CHANNEL_CLASS, 0);
  record(fd, program, (struct vgpu_rm_event){.kind = RM_EVENT_SCHEDULED, .object = group, .value = 1});
}

/* A program that has a group for kernels and one for copies, and waits until this process ends. */
static void begin_program(uint32_t program, const char *directory) {
  const struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  char path[5000], said = 0;
  int done[2];
  snprintf(path, sizeof path, "%s/" RM_EVENTS_NAME, directory);
  int fd = mkostemp(path, O_CLOEXEC | O_APPEND);
  if (fd < 0 || pipe(done) != 0) abort();
  if (fork() == 0) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || fcntl(fd, F_SETLK, &whole) != 0) _exit(1);
    if (write(done[1], "", 1) == 1) pause();
    _exit(1);
  }
  close(done[1]);
  CHECK(read(done[0], &said, 1) == 1); /* it has the lock */
  close(done[0]);
  atomic_store(&driver->us[program][0], 2048); /* as CUDA sets it */
  atomic_store(&driver->us[program][1], 1024);
  record_made(fd, program, 0, CLIENTS + program, RM_CLASS_ROOT, 0);
  record_made(fd, program, CLIENTS + program, DEVICE, RM_CLASS_DEVICE, 0);
  record_made(fd, program, DEVICE, DEVICE + 0x1000, RM_CLASS_SUBDEVICE, 0);
  record_group(fd, program, COMPUTE, 1);
  record_group(fd, program, COPY, 9);
  close(fd);
}

/* ---- vgpu-turns ---- */

static int input, output;
static pid_t guardian;

static int says(const char *what) {
  char line[256];
  size_t size = 0;
  while (size < sizeof line - 1 && read(output, line + size, 1) == 1 && line[size] != '\n') size++;
  line[size] = '\0';
  return strncmp(line, what, strlen(what)) == 0;
}

static void begin_turns(char words[][4096], int count) {
  int in[2], out[2];
  if (pipe(in) != 0 || pipe(out) != 0 || (guardian = fork()) < 0) abort();
  if (guardian == 0) {
    dup2(in[0], 0);
    dup2(out[1], 1);
    close(in[1]);
    close(out[0]);
    for (int i = 0; i < count; i++) {
      if (add(words[i]) != 0) _exit(2);
    }
    held_until = mmap(NULL, sizeof *held_until, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    _exit(start());
  }
  close(in[0]);
  close(out[1]);
  input = in[1];
  output = out[0];
  CHECK(says("ready"));
}

static void end_turns(const char *by) {
  CHECK(says(by));
  CHECK(waitpid(guardian, NULL, 0) == guardian);
  close(input);
  close(output);
}

static void stop_turns(void) {
  kill(guardian, SIGTERM);
  end_turns("given back");
}

static int has(uint32_t program, uint64_t compute, uint64_t copy) {
  return atomic_load(&driver->us[program][0]) == compute && atomic_load(&driver->us[program][1]) == copy;
}

static int gets(uint32_t program, uint64_t compute, uint64_t copy) {
  const struct timespec step = {.tv_nsec = 5000000};
  uint64_t most = now_ms() + WAIT_MS;
  while (!has(program, compute, copy) && now_ms() < most) nanosleep(&step, NULL);
  return has(program, compute, copy);
}

static int files_in(const char *directory) {
  int files = 0;
  DIR *listed = opendir(directory);
  while (listed != NULL && readdir(listed) != NULL) files++;
  if (listed != NULL) closedir(listed);
  return files - 2;
}

int main(int count, char **arguments) {
  static char directories[PROGRAMS][4000], words[PROGRAMS][4096];
  static const char *const classes[] = {"offline,75", "offline,25", "offline"};
  if (count != 2) return 2;
  driver = mmap(NULL, sizeof *driver, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  for (int i = 0; i < PROGRAMS; i++) {
    snprintf(directories[i], sizeof directories[i], "%s/%d", arguments[1], i);
    snprintf(words[i], sizeof words[i], "%s/%d=%s", arguments[1], i, classes[i]);
    if (mkdir(directories[i], 0700) != 0) abort();
  }
  begin_program(0, directories[0]);
  begin_program(2, directories[2]);

  /* At the end each group has what it had. */
  begin_turns(words, PROGRAMS);
  CHECK(has(2, 2048, 1024)); /* without a weight */
  CHECK(has(0, WIDE_US, WIDE_US));
  begin_program(1, directories[1]);
  CHECK(gets(0, WIDE_US, WIDE_US) && gets(1, NARROW_US, NARROW_US));
  stop_turns();
  CHECK(has(0, 2048, 1024) && has(1, 2048, 1024) && has(2, 2048, 1024));
  for (int i = 0; i < PROGRAMS; i++) CHECK(files_in(directories[i]) == 1);

  /* Also if the worker was killed. */
  begin_turns(words, PROGRAMS);
  CHECK(has(0, WIDE_US, WIDE_US) && has(1, NARROW_US, NARROW_US) && has(2, 2048, 1024));
  kill(atomic_load(&driver->worker), SIGKILL);
  end_turns("the worker was killed");
  CHECK(has(0, 2048, 1024) && has(1, 2048, 1024) && has(2, 2048, 1024));

  /* And if both were: the next one gives it back. */
  begin_turns(words, PROGRAMS);
  kill(guardian, SIGSTOP);
  kill(atomic_load(&driver->worker), SIGKILL);
  kill(guardian, SIGKILL);
  end_turns("");
  CHECK(has(0, WIDE_US, WIDE_US) && has(1, NARROW_US, NARROW_US));
  atomic_store(&driver->us[1][0], 3000); /* the program's own, and meanwhile */
  begin_turns(words, PROGRAMS);
  CHECK(has(0, WIDE_US, WIDE_US) && has(1, NARROW_US, NARROW_US));
  stop_turns();
  CHECK(has(0, 2048, 1024) && has(1, 3000, 1024));

  /* A program's own slice that comes later does not undo the weight, and is given back. */
  begin_turns(words, PROGRAMS);
  atomic_store(&driver->us[1][0], 4000);
  CHECK(gets(1, NARROW_US, NARROW_US));
  atomic_store(&driver->us[2][0], 5000);
  stop_turns();
  CHECK(has(0, 2048, 1024) && has(1, 4000, 1024) && has(2, 5000, 1024));

  /* What the driver does not tell counts as what it gives new groups. */
  atomic_store(&driver->untold, 1);
  begin_turns(words, PROGRAMS);
  CHECK(has(0, WIDE_US, WIDE_US) && has(1, NARROW_US, NARROW_US));
  stop_turns();
  CHECK(has(0, 1024, 1024) && has(1, 1024, 1024) && has(2, 5000, 1024));
  if (failures == 0) printf("ok   slices\n");
  return failures != 0;
}
