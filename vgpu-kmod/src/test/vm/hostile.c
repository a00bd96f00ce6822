/*
 * A tenant's attacks, in the virtual machine. Usage: hostile. It runs as root, enters the cgroups `one` and `two`, and
 * prints `ok NAME` or FAIL for each attack. Tenant `one` has 64 MiB, and `two` 32 MiB.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "tenant.h"

#define TENANTS "/sys/kernel/config/vgpu/"
#define CGROUPS "/sys/fs/cgroup/"
#define TRUTH "/proc/nvidia_model"

static uint64_t used_by(const char *tenant) {
  char path[128];
  snprintf(path, sizeof path, TENANTS "%s/used", tenant);
  return number_in(path, NULL);
}
static uint64_t stat_of(const char *tenant, const char *line) {
  char path[128];
  snprintf(path, sizeof path, TENANTS "%s/stats", tenant);
  return number_in(path, line);
}
static uint64_t truth(const char *line) { return number_in(TRUTH, line); }

static uint64_t cgroup_number(const char *name) {
  char path[128];
  struct stat found;
  snprintf(path, sizeof path, CGROUPS "%s", name);
  if (stat(path, &found) != 0) bed_fail(path);
  return found.st_ino;
}

/* Writes a cgroup's number (0: none) into a tenant's directory: 0, or the error. */
static int give_cgroup(const char *tenant, uint64_t cgroup) {
  char path[128], text[32];
  snprintf(path, sizeof path, TENANTS "%s/cgroup", tenant);
  snprintf(text, sizeof text, "%llu", (unsigned long long)cgroup);
  return put_into(path, text, strlen(text));
}

static void go_to(const char *cgroup) {
  char path[128];
  snprintf(path, sizeof path, CGROUPS "%s/cgroup.procs", cgroup);
  if (put_into(path, "0", 1) != 0) bed_fail(path);
}

static int control, card;
static uint32_t client;

static void begin_as(const char *cgroup) {
  go_to(cgroup);
  control = open_device("/dev/nvidiactl");
  card = open_device("/dev/nvidia0");
  client = new_client(&plainly, control);
}

/* Everything has been given back, in the ledger and in the driver. */
static void end_empty(void) {
  close(control);
  close(card);
  CHECK(used_by("one") == 0 && used_by("two") == 0);
  CHECK(stat_of("one", "objects ") == 0 && stat_of("two", "objects ") == 0);
  CHECK(truth("objects ") == 0 && truth("taken ") == 0);
}

static uint32_t take_mib(uint32_t handle, uint64_t mib) {
  return memory(&plainly, control, client, handle, mib * MIB, 128, 0);
}

/* ---- fields ---- */

static const uint64_t POINTERS[] = {0, 1, 0x7ffffffff000, 0x800000000000, 0x8000000000000000, 0xffff888000000000,
                                    0xffffffff81000000, 0xffffffffff600000, UINT64_MAX - 63, UINT64_MAX};
static const struct { uint32_t number, size; } FORMS[] = {
    {RM_ALLOC, 32}, {RM_ALLOC, 48}, {RM_FREE, 16}, {RM_CONTROL, 32}, {RM_DUP, 28},
    {RM_HEAP, 184}, {RM_ALLOC_MEMORY, 56}, {RM_ALLOC_OBJECT, 20}, {RM_REGISTER_FD, 4}};
enum { POINTER_COUNT = sizeof POINTERS / sizeof *POINTERS, FORM_COUNT = sizeof FORMS / sizeof *FORMS };

static void pointers_of_the_kernel(void) {
  begin_as("one");
  for (int i = 0; i < POINTER_COUNT; i++) {
    for (int j = 0; j < FORM_COUNT; j++) {
      long direct = ioctl(control, vgpu__rm_word(FORMS[j].number, FORMS[j].size), POINTERS[i]);
      CHECK(direct == -1 && (errno == EFAULT || errno == EINVAL));
      put32(OUTER, FORMS[j].number);
      put32(OUTER + 4, FORMS[j].size);
      put64(OUTER + 8, POINTERS[i]);
      long behind = ioctl(control, vgpu__rm_word(RM_XFER, 16), spot(OUTER));
      CHECK(behind == -1 && (errno == EFAULT || errno == EINVAL));
    }
    /* The last two may be answered without reading their parameters. */
    static const uint32_t COMMANDS[] = {RM_FB_GET_INFO, RM_FB_GET_INFO_V2, RM_DISABLE_CHANNELS, RM_GROUP_SET_TIMESLICE};
    for (int j = 0; j < 4; j++) {
      memset(arena + CALL, 0, RM_CONTROL_SIZE);
      put32(CALL, client);
      put32(CALL + 4, SUBDEVICE);
      put32(CALL + 8, COMMANDS[j]);
      put64(CALL + 16, POINTERS[i]);
      put32(CALL + 24, j == 2 ? 536 : j == 3 ? 8 : 436);
      CHECK(ioctl(control, vgpu__rm_word(RM_CONTROL, 32), spot(CALL)) == 0 && (j >= 2 || get32(CALL + 28) != RM_OK));
    }
    /* A list at an invalid address, in valid parameters. */
    put32(PARAMS, 64);
    put64(PARAMS + 8, POINTERS[i]);
    CHECK(do_control(&plainly, control, client, SUBDEVICE, RM_FB_GET_INFO, 16) != RM_OK);
    CHECK(used_by("one") == 0);
  }
  end_empty();
}

static void sizes_and_handles(void) {
  static const uint64_t SIZES[] = {(uint64_t)1 << 63, ((uint64_t)1 << 63) - 1, UINT64_MAX, UINT64_MAX - 1,
                                   (uint64_t)1 << 40, 64 * MIB + 1};
  static const uint32_t HANDLES[] = {0, 1, UINT32_MAX, 0x80000000, DEVICE, SUBDEVICE};
  begin_as("one");
  for (int i = 0; i < 6; i++) {
    CHECK(memory(&plainly, control, client, 7, SIZES[i], 128, 0) == RM_NO_MEMORY && used_by("one") == 0);
    CHECK(do_heap(&plainly, control, client, DEVICE, RM_HEAP_ALLOC_SIZE, 7, SIZES[i]) == RM_NO_MEMORY &&
          used_by("one") == 0);
    for (int j = 0; j < 6; j++) {
      memory(&plainly, control, HANDLES[i], HANDLES[j], MIB, 128, 0);
      do_dup(&plainly, control, client, HANDLES[i], HANDLES[j], HANDLES[i], HANDLES[j]);
      do_free(&plainly, control, HANDLES[i], HANDLES[j] == 0 ? 0 : HANDLES[j] + 100);
    }
    CHECK(do_register(&plainly, card, (int)HANDLES[i]) != 0);
  }
  CHECK(used_by("one") >= truth("taken "));
  end_empty();
}

/* Parameters that overlap the call are refused if addresses show it. If two mappings hide it, everything is given
 * back at the end. */
static void buffers_over_one_another(void) {
  begin_as("one");
  for (size_t params = CALL - 96; params <= CALL + 8; params += 4) {
    struct alloc what = {.client = client, .parent = DEVICE, .handle = 7, .class_number = 0x40, .bytes = 4096,
                         .params = params};
    int over = params + 64 < CALL + 32 && CALL < params + 72;
    CHECK(do_alloc(&plainly, control, what, NULL) == (over ? (uint32_t)RM_INSUFFICIENT_PERMISSIONS : (uint32_t)RM_OK));
    CHECK(used_by("one") >= truth("taken "));
    do_free(&plainly, control, client, 7);
  }
  for (size_t at = 0; at < 24; at += 4) { /* the outer call over the inner one */
    memset(arena + OUTER, 0, 64);
    put32(OUTER + at, RM_ALLOC);
    put32(OUTER, RM_ALLOC);
    put32(OUTER + 4, 32);
    put64(OUTER + 8, spot(OUTER + at));
    ioctl(control, vgpu__rm_word(RM_XFER, 16), spot(OUTER));
  }
  int fd = memfd_create("twice", MFD_CLOEXEC);
  CHECK(fd >= 0 && ftruncate(fd, 8192) == 0);
  unsigned char *twice = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  unsigned char *again = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(twice != MAP_FAILED && again != MAP_FAILED);
  for (size_t shift = 0; shift < 128; shift += 8) {
    const uint32_t fields[] = {client, DEVICE, 7, 0x40};
    uint64_t bytes = 4096, params = (uint64_t)(uintptr_t)again + 1024 + shift - 96;
    memset(twice, 0, 8192);
    memcpy(twice + 1024 + shift - 32, &bytes, sizeof bytes);
    memcpy(twice + 1024, fields, sizeof fields);
    memcpy(twice + 1024 + 16, &params, sizeof params);
    ioctl(control, vgpu__rm_word(RM_ALLOC, 32), twice + 1024);
    do_free(&plainly, control, client, 7);
  }
  munmap(twice, 8192);
  munmap(again, 8192);
  close(fd);
  end_empty();
}

static atomic_int stop;

/* Changes sizes, classes, handles and pointers of another thread's call. */
static void *change(void *unused) {
  uint64_t drawn = 88172645463325252u;
  (void)unused;
  while (!stop) {
    drawn ^= drawn << 13;
    drawn ^= drawn >> 7;
    drawn ^= drawn << 17;
    switch (drawn >> 60) {
      case 0: put32(CALL + 12, drawn & 1 ? 0x3e : 0x40); break;
      case 1: put32(CALL + 8, (uint32_t)(drawn & 15)); break;
      case 2: put64(CALL + 16, drawn & 1 ? spot(PARAMS) : spot(CALL)); break;
      case 3: put32(CALL + 28, (uint32_t)(drawn & 0xff)); break;
      case 4: put32(CALL, drawn & 1 ? client : 0); break;
      default: put64(PARAMS + 64, (1 + (drawn & 63)) * MIB); break;
    }
  }
  return NULL;
}

static void arguments_that_change(void) {
  pthread_t thread;
  begin_as("one");
  stop = 0;
  CHECK(pthread_create(&thread, NULL, change, NULL) == 0);
  for (int i = 0; i < 3000; i++) {
    memory(&plainly, control, client, (uint32_t)(i & 15), MIB, 128, 0);
    do_free(&plainly, control, client, (uint32_t)(i & 15));
  }
  stop = 1;
  pthread_join(thread, NULL);
  end_empty();
}

static void random_requests(void) {
  static const uint32_t CLASSES[] = {0x40, 0x3e, 0x3f, 0xa06c, 0xc86f, 0x80, 0x2080, 0x41, 0, 0x82, 0x50a0};
  unsigned seed = (unsigned)time(NULL);
  printf("random requests from %u\n", seed);
  begin_as("one");
  for (int i = 0; i < 20000; i++) {
    int form = rand_r(&seed) % FORM_COUNT;
    for (size_t at = 0; at < 184; at += 4) put32(CALL + at, (uint32_t)rand_r(&seed) << (rand_r(&seed) % 3 * 8));
    put32(CALL, rand_r(&seed) % 16 == 0 ? (uint32_t)rand_r(&seed) : client);
    put32(CALL + 4, DEVICE);
    put32(CALL + 8, (uint32_t)rand_r(&seed) % 32);
    if (FORMS[form].number == RM_ALLOC) {
      put32(CALL + 12, CLASSES[rand_r(&seed) % 11]);
      put64(CALL + 16, rand_r(&seed) % 16 == 0 ? POINTERS[rand_r(&seed) % POINTER_COUNT] : spot(PARAMS));
      put64(PARAMS + 64, (uint64_t)rand_r(&seed) >> (rand_r(&seed) % 31));
    }
    uint32_t word = rand_r(&seed) % 16 == 0 ? (uint32_t)rand_r(&seed) * 2
                                            : vgpu__rm_word(FORMS[form].number, FORMS[form].size);
    ioctl(control, word, spot(CALL));
    if (rand_r(&seed) % 4000 == 0) {
      close(control);
      control = open_device("/dev/nvidiactl");
      client = new_client(&plainly, control);
    }
  }
  CHECK(used_by("one") >= truth("taken "));
  end_empty();
}

/* ---- processes ---- */

static void on_alarm(int signal) { (void)signal; }

static void signals_all_the_time(void) {
  struct sigaction action = {.sa_handler = on_alarm};
  struct itimerval often = {.it_interval = {.tv_usec = 300}, .it_value = {.tv_usec = 300}}, never = {0};
  begin_as("one");
  sigaction(SIGALRM, &action, NULL);
  setitimer(ITIMER_REAL, &often, NULL);
  int wrong = 0;
  for (int i = 0; i < 2000; i++) {
    wrong += take_mib(7, 40) != RM_OK;
    wrong += take_mib(8, 40) != RM_NO_MEMORY;
    wrong += do_free(&plainly, control, client, 7) != RM_OK;
  }
  setitimer(ITIMER_REAL, &never, NULL);
  CHECK(wrong == 0);
  end_empty();
}

static void send_files(int to, const int *files) {
  char space[CMSG_SPACE(2 * sizeof(int))] = {0}, byte = 0;
  struct iovec part = {&byte, 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(2 * sizeof(int));
  memcpy(CMSG_DATA(header), files, 2 * sizeof(int));
  if (sendmsg(to, &message, 0) != 1) bed_fail("sendmsg");
}

static void receive_files(int from, int *files) {
  char space[CMSG_SPACE(2 * sizeof(int))] = {0}, byte;
  struct iovec part = {&byte, 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
  if (recvmsg(from, &message, 0) != 1 || CMSG_FIRSTHDR(&message) == NULL) bed_fail("recvmsg");
  memcpy(files, CMSG_DATA(CMSG_FIRSTHDR(&message)), 2 * sizeof(int));
}

/* Runs `body` in a child process; returns whether it succeeded. */
static int in_child(void (*body)(int), int socket) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    failures = 0;
    body(socket);
    fflush(stdout);
    _exit(failures != 0);
  }
  return child;
}

static int went_well(pid_t child) {
  int status = -1;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/* In a process of `two`: `client` is one of `one`, which has 40 MiB. */
static void nothing_in_the_client_of_one(void) {
  uint64_t filtered = stat_of("two", "filtered ");
  CHECK(take_mib(8, 1) == RM_INVALID_CLIENT && do_dup(&plainly, control, client, DEVICE, 8, client, 7) != RM_OK);
  CHECK(used_by("one") == 40 * MIB && used_by("two") == 0 && stat_of("two", "filtered ") == filtered + 2);
}

/* A process of `two` that has the open file and the handle of a client of `one`. */
static void receiver(int from) {
  int files[2], mine;
  uint32_t theirs, own;
  go_to("two");
  receive_files(from, files);
  control = files[0];
  card = files[1];
  if (read(from, &theirs, sizeof theirs) != sizeof theirs) bed_fail("read");
  client = theirs;
  nothing_in_the_client_of_one();
  client = own = new_client(&plainly, control);
  CHECK(take_mib(7, 33) == RM_NO_MEMORY && take_mib(7, 30) == RM_OK && used_by("two") == 30 * MIB &&
        used_by("one") == 40 * MIB);
  CHECK(write(from, "", 1) == 1 && read(from, &theirs, 1) == 0); /* the sender has ended */
  CHECK(used_by("one") == 40 * MIB); /* the file is open in this process */
  mine = open_device("/dev/nvidiactl");
  CHECK(memory(&plainly, mine, client, 9, MIB, 128, 0) == RM_INVALID_CLIENT);
  close(mine);
  CHECK(do_free(&plainly, control, own, own) == RM_OK && used_by("two") == 0);
}

static void sender(int to) {
  char byte;
  begin_as("one");
  CHECK(take_mib(7, 40) == RM_OK && used_by("one") == 40 * MIB);
  const int files[2] = {control, card};
  send_files(to, files);
  CHECK(write(to, &client, sizeof client) == sizeof client && read(to, &byte, 1) == 1);
}

static void files_passed_on(void) {
  int pair[2];
  CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
  fflush(stdout);
  pid_t first = fork();
  if (first == 0) {
    close(pair[1]);
    sender(pair[0]);
    fflush(stdout);
    _exit(failures != 0);
  }
  close(pair[0]);
  pid_t second = in_child(receiver, pair[1]);
  close(pair[1]);
  CHECK(went_well(first));
  CHECK(went_well(second));
  control = card = -1;
  end_empty();
}

/* A forked child has the files, in another cgroup, and outlives its killed parent. */
static void heir(int from) {
  char byte;
  go_to("two");
  nothing_in_the_client_of_one();
  CHECK(write(from, "", 1) == 1 && read(from, &byte, 1) == 0);
  CHECK(used_by("one") == 40 * MIB);
  CHECK(do_free(&plainly, control, client, 7) == RM_OK && used_by("one") == 0);
}

/* A process of `two` takes the descriptors of one of `one`, and creates what it can. */
static void taker(int from) {
  int files[2];
  pid_t victim;
  uint32_t theirs;
  go_to("two");
  if (read(from, &victim, sizeof victim) != sizeof victim || read(from, files, sizeof files) != sizeof files ||
      read(from, &theirs, sizeof theirs) != sizeof theirs)
    bed_fail("read");
  int pidfd = (int)syscall(SYS_pidfd_open, victim, 0);
  control = (int)syscall(SYS_pidfd_getfd, pidfd, files[0], 0);
  card = (int)syscall(SYS_pidfd_getfd, pidfd, files[1], 0);
  CHECK(pidfd >= 0 && control >= 0 && card >= 0);
  client = theirs;
  nothing_in_the_client_of_one();
  client = new_client(&plainly, control);
  CHECK(take_mib(7, 33) == RM_NO_MEMORY && take_mib(7, 30) == RM_OK);
  CHECK(used_by("two") == 30 * MIB && used_by("one") == 40 * MIB);
}

static void files_taken(void) {
  int pair[2];
  char byte;
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  fflush(stdout);
  pid_t victim = fork();
  if (victim == 0) {
    pid_t self = getpid();
    close(pair[1]);
    failures = 0;
    begin_as("one");
    CHECK(take_mib(7, 40) == RM_OK);
    const int files[2] = {control, card};
    CHECK(write(pair[0], &self, sizeof self) == sizeof self && write(pair[0], files, sizeof files) == sizeof files &&
          write(pair[0], &client, sizeof client) == sizeof client);
    CHECK(read(pair[0], &byte, 1) == 0 && take_mib(8, 24) == RM_OK); /* its quota is untouched */
    fflush(stdout);
    _exit(failures != 0);
  }
  close(pair[0]);
  CHECK(went_well(in_child(taker, pair[1])));
  close(pair[1]);
  CHECK(went_well(victim));
  control = card = -1;
  end_empty();
}

static void forked_into_another_cgroup(void) {
  int pair[2];
  char byte;
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0); /* so that this process reaps the heir */
  fflush(stdout);
  pid_t parent = fork();
  if (parent == 0) {
    begin_as("one");
    CHECK(take_mib(7, 40) == RM_OK);
    pid_t child = fork();
    if (child == 0) {
      close(pair[0]);
      failures = 0;
      heir(pair[1]);
      fflush(stdout);
      _exit(failures != 0);
    }
    close(pair[1]);
    if (read(pair[0], &byte, 1) == 1) raise(SIGKILL);
    _exit(1);
  }
  close(pair[0]);
  close(pair[1]);
  int status = 0;
  CHECK(waitpid(parent, &status, 0) == parent && WIFSIGNALED(status));
  CHECK(waitpid(-1, &status, 0) > 0 && status == 0); /* the heir */
  control = card = -1;
  end_empty();
}

/* ---- cgroups and directories ---- */

static void cgroup_moved_and_removed(void) {
  CHECK(mkdir(CGROUPS "gone", 0755) == 0 && give_cgroup("two", cgroup_number("gone")) == 0);
  begin_as("gone");
  CHECK(take_mib(7, 20) == RM_OK && used_by("two") == 20 * MIB);
  go_to("");
  CHECK(take_mib(8, 20) == RM_NO_MEMORY); /* a client stays with its tenant */
  CHECK(rmdir(CGROUPS "gone") == 0);
  CHECK(used_by("two") == 20 * MIB && take_mib(8, 10) == RM_OK && used_by("two") == 30 * MIB);
  uint32_t first = client;
  client = new_client(&plainly, control);
  CHECK(take_mib(7, 100) == RM_OK && used_by("two") == 30 * MIB); /* without a tenant */
  CHECK(mkdir(CGROUPS "gone", 0755) == 0);
  go_to("gone"); /* another cgroup with the same name */
  uint32_t third = new_client(&plainly, control);
  CHECK(memory(&plainly, control, third, 7, 100 * MIB, 128, 0) == RM_OK && used_by("two") == 30 * MIB);
  go_to("");
  CHECK(rmdir(CGROUPS "gone") == 0);
  CHECK(do_free(&plainly, control, first, 7) == RM_OK && used_by("two") == 10 * MIB);
  CHECK(give_cgroup("two", cgroup_number("two")) == 0);
  end_empty();
}

static void racer(const char *tenant, const char *other, uint64_t cgroup) {
  char path[128];
  snprintf(path, sizeof path, TENANTS "%s/cgroup", other);
  int won = 0, both = 0;
  for (int i = 0; i < 1000; i++) {
    int error = give_cgroup(tenant, cgroup);
    if (error != 0 && error != EEXIST) both++;
    if (error != 0) continue;
    won++;
    both += number_in(path, NULL) == cgroup;
    both += give_cgroup(tenant, 0) != 0;
  }
  CHECK(both == 0 && won != 0);
}
static void first_racer(int unused) {
  (void)unused;
  racer("one", "two", cgroup_number("one/below"));
}
static void second_racer(int unused) {
  (void)unused;
  racer("two", "one", cgroup_number("one/below"));
}

/* A cgroup has at most one tenant. Several tenants may have no cgroup. */
static void cgroup_of_another(void) {
  uint64_t one = cgroup_number("one"), two = cgroup_number("two");
  CHECK(give_cgroup("two", one) == EEXIST);
  CHECK(number_in(TENANTS "two/cgroup", NULL) == two && number_in(TENANTS "one/cgroup", NULL) == one);
  CHECK(give_cgroup("one", one) == 0);
  CHECK(give_cgroup("one", 0) == 0 && give_cgroup("two", 0) == 0);
  CHECK(went_well(in_child(first_racer, 0)));
  pid_t first = in_child(first_racer, 0), second = in_child(second_racer, 0);
  CHECK(went_well(first));
  CHECK(went_well(second));
  CHECK(give_cgroup("two", one) == 0 && give_cgroup("one", one) == EEXIST);
  CHECK(give_cgroup("two", two) == 0 && give_cgroup("one", one) == 0);
  control = card = -1;
  end_empty();
}

static void rubbish_in_directories(void) {
  static const char *const FILES[] = {"limit", "cgroup", "weight", "class", "peak", "used", "stats"};
  static char text[8192];
  unsigned seed = (unsigned)time(NULL);
  char path[300], name[260];
  for (int i = 0; i < 7; i++) {
    snprintf(path, sizeof path, TENANTS "one/%s", FILES[i]);
    for (int j = 0; j < 4; j++) {
      for (size_t k = 0; k < sizeof text; k++) text[k] = j == 0 ? '9' : j == 1 ? 0 : j == 2 ? 'm' : (char)rand_r(&seed);
      if (i == 4) continue; /* writing anything to `peak` resets it */
      int fd = open(path, O_WRONLY);
      if (fd < 0) continue;
      CHECK(write(fd, text, sizeof text) < 0);
      close(fd);
    }
  }
  memset(name, 'n', sizeof name);
  for (size_t length = 1; length < 258; length += 64) {
    snprintf(path, sizeof path, TENANTS "%.*s", (int)length, name);
    if (mkdir(path, 0755) == 0) CHECK(rmdir(path) == 0);
  }
  CHECK(mkdir(TENANTS "one", 0755) < 0 && errno == EEXIST);
  CHECK(mkdir(TENANTS "one/below", 0755) < 0);
  CHECK(number_in(TENANTS "one/limit", NULL) == 64 * MIB &&
        number_in(TENANTS "one/cgroup", NULL) == cgroup_number("one"));
  CHECK(mkdir(TENANTS "three", 0755) == 0);
  int limit = open(TENANTS "three/limit", O_RDWR), stats = open(TENANTS "three/stats", O_RDONLY);
  CHECK(limit >= 0 && stats >= 0 && rmdir(TENANTS "three") == 0);
  CHECK(write(limit, "1", 1) < 0 && read(stats, text, sizeof text) < 0);
  close(limit);
  close(stats);
  for (int i = 0; i < 200; i++) {
    snprintf(path, sizeof path, TENANTS "many%d", i);
    CHECK(mkdir(path, 0755) == 0);
  }
  for (int i = 0; i < 200; i++) {
    snprintf(path, sizeof path, TENANTS "many%d", i);
    CHECK(rmdir(path) == 0);
  }
}

/* ---- handles of other tenants ---- */

static void other_tenant(int to) {
  char byte;
  begin_as("two");
  CHECK(take_mib(7, 20) == RM_OK);
  CHECK(write(to, &client, sizeof client) == sizeof client && read(to, &byte, 1) == 0);
  CHECK(used_by("two") == 20 * MIB && take_mib(8, 12) == RM_OK); /* unchanged */
}

static void handles_of_others(void) {
  int pair[2];
  uint32_t theirs;
  CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    close(pair[0]);
    failures = 0;
    other_tenant(pair[1]);
    fflush(stdout);
    _exit(failures != 0);
  }
  close(pair[1]);
  begin_as("one");
  CHECK(read(pair[0], &theirs, sizeof theirs) == sizeof theirs);
  CHECK(memory(&plainly, control, theirs, 9, MIB, 128, 0) == RM_INVALID_CLIENT);
  CHECK(do_free(&plainly, control, theirs, 7) == RM_INVALID_CLIENT &&
        do_free(&plainly, control, theirs, theirs) == RM_INVALID_CLIENT);
  CHECK(do_dup(&plainly, control, client, DEVICE, 9, theirs, 7) == RM_INVALID_CLIENT);
  memset(arena + PARAMS, 0, RM_DISABLE_SIZE);
  put32(PARAMS + 4, 1);
  put32(PARAMS + 24, theirs);
  uint64_t filtered = stat_of("one", "filtered ");
  CHECK(do_control(&plainly, control, client, SUBDEVICE, RM_DISABLE_CHANNELS, RM_DISABLE_SIZE) == RM_INVALID_CLIENT);
  CHECK(stat_of("one", "filtered ") == filtered + 1);
  put32(PARAMS + 24, client);
  CHECK(do_control(&plainly, control, client, SUBDEVICE, RM_DISABLE_CHANNELS, RM_DISABLE_SIZE) == RM_OK);
  uint32_t again = 0;
  /* The handle is in use. */
  CHECK(do_alloc(&plainly, control, (struct alloc){.handle = theirs, .class_number = 0x41}, &again) != RM_OK);
  CHECK(used_by("one") == 0 && used_by("two") == 20 * MIB);
  close(pair[0]);
  CHECK(went_well(child));
  end_empty();
}

int main(void) {
  static const struct {
    const char *name;
    void (*run)(void);
  } ATTEMPTS[] = {
      {"pointers-of-the-kernel", pointers_of_the_kernel},
      {"sizes-and-handles", sizes_and_handles},
      {"buffers-over-one-another", buffers_over_one_another},
      {"arguments-that-change", arguments_that_change},
      {"random-requests", random_requests},
      {"signals-all-the-time", signals_all_the_time},
      {"files-passed-on", files_passed_on},
      {"files-taken", files_taken},
      {"forked-into-another-cgroup", forked_into_another_cgroup},
      {"cgroup-moved-and-removed", cgroup_moved_and_removed},
      {"cgroup-of-another", cgroup_of_another},
      {"rubbish-in-directories", rubbish_in_directories},
      {"handles-of-others", handles_of_others},
  };
  begin_arena();
  int sum = 0;
  for (size_t i = 0; i < sizeof ATTEMPTS / sizeof *ATTEMPTS; i++) {
    failures = 0;
    ATTEMPTS[i].run();
    printf("%s %s\n", failures == 0 ? "ok  " : "FAIL", ATTEMPTS[i].name);
    fflush(stdout);
    sum += failures;
  }
  return sum != 0;
}
