/* Processes: signals, forks, open files that another tenant receives or takes, and handles of others. */
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "hostile.h"

static void on_alarm(int signal) { (void)signal; }

void signals_all_the_time(void) {
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
  CHECK(used_by("one") == 40 * MIB);                             /* the file is open in this process */
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

void files_passed_on(void) {
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

void files_taken(void) {
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

void forked_into_another_cgroup(void) {
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

static void other_tenant(int to) {
  char byte;
  begin_as("two");
  CHECK(take_mib(7, 20) == RM_OK && new_group(&plainly, control, client, 50) == RM_OK);
  CHECK(write(to, &client, sizeof client) == sizeof client && read(to, &byte, 1) == 0);
  CHECK(used_by("two") == 20 * MIB && take_mib(8, 12) == RM_OK); /* unchanged */
}

void handles_of_others(void) {
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
  CHECK(new_group(&plainly, control, client, 50) == RM_OK);
  CHECK(disable_channels(&plainly, control, client, CHANNEL_OF + 50, 1, 1) == RM_OK);
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
