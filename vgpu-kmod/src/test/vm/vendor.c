/*
 * A tenant's program on the vendor's own module. Without a GPU, the module has memory only of class 0x90ce, which lies
 * below the client. The kernel module is told to charge it.
 *   vendor checks DIRECTORY   one process's calls, compared with the values in the tenant's directory
 *   vendor take UNITS         allocates so many units of 64 KiB, reports it, and waits for the end of its input
 *   vendor storm SECONDS      allocates and frees; prints its number of calls; fails if an answer is not as expected
 */
#include "tenant.h"

/* A piece of this class has at most 4 MiB. */
enum { DEVICELESS = 0x90ce, UNIT = 64 << 10 };

static uint32_t new_root(int fd) {
  uint32_t client = 0;
  CHECK(do_alloc(&plainly, fd, (struct alloc){.class_number = RM_CLASS_ROOT}, &client) == RM_OK && client != 0);
  return client;
}

static struct alloc some(uint32_t client, uint32_t handle, uint64_t bytes) {
  memset(arena + PARAMS, 0, 128);
  return (struct alloc){.client = client,
                        .parent = client,
                        .handle = handle,
                        .class_number = DEVICELESS,
                        .bytes = bytes,
                        .params_size = 128};
}

static uint32_t take_some(struct bed_process *process, int fd, uint32_t client, uint32_t handle, uint64_t bytes) {
  return do_alloc(process, fd, some(client, handle, bytes), NULL);
}

/* The tenant's limit is 64 units. */
static int checks(void) {
  static struct bed_process by_compat = {.compat = 1};
  int fd = open_device("/dev/nvidiactl"), second = open_device("/dev/nvidiactl");
  uint32_t client = new_root(fd), other = new_root(second), status;
  struct alloc what;

  status = take_some(&plainly, fd, client, 7, 40 * UNIT);
  if (status != RM_OK) printf("class 0x90ce: status 0x%x\n", status);
  CHECK(status == RM_OK && told("used", NULL) == 40 * UNIT);
  CHECK(take_some(&plainly, fd, client, 8, 40 * UNIT) == RM_NO_MEMORY && told("used", NULL) == 40 * UNIT);
  CHECK(take_some(&plainly, second, other, 7, 40 * UNIT) == RM_NO_MEMORY);
  CHECK(do_free(&plainly, fd, client, 7) == RM_OK && told("used", NULL) == 0);
  CHECK(do_free(&plainly, fd, client, 7) == RM_OK && told("used", NULL) == 0); /* unknown: the driver reports success */

  what = some(client, 7, 40 * UNIT);
  what.params_size = 0; /* the driver does not read it */
  CHECK(do_alloc(&plainly, fd, what, NULL) == RM_OK && told("used", NULL) == 40 * UNIT);
  CHECK(take_some(&by_compat, fd, client, 8, 40 * UNIT) == RM_NO_MEMORY);
  CHECK(take_some(&by_compat, fd, client, 8, 8 * UNIT) == RM_OK && told("used", NULL) == 48 * UNIT);
  what = some(client, 9, 8 * UNIT);
  what.direction = 'X' << 8;
  CHECK(do_alloc(&plainly, fd, what, NULL) == RM_OK && told("used", NULL) == 56 * UNIT);

  const uint32_t behind[8] = {client, client, 10, DEVICELESS, (uint32_t)spot(PARAMS)},
                 xfer[4] = {RM_ALLOC, 32, (uint32_t)spot(CALL)};
  some(client, 10, 0);
  memcpy(arena + CALL, behind, sizeof behind);
  memcpy(arena + OUTER, xfer, sizeof xfer);
  put64(PARAMS + 64, 16 * UNIT);
  CHECK(bed_ioctl(&plainly, fd, vgpu__rm_word(RM_XFER, 16), spot(OUTER)) == 0);
  CHECK(get32(CALL + 28) == RM_NO_MEMORY && told("used", NULL) == 56 * UNIT);
  put64(PARAMS + 64, 8 * UNIT);
  CHECK(bed_ioctl(&plainly, fd, vgpu__rm_word(RM_XFER, 16), spot(OUTER)) == 0);
  CHECK(get32(CALL + 28) == RM_OK && told("used", NULL) == 64 * UNIT);

  CHECK(do_free(&plainly, fd, client, 10) == RM_OK && told("used", NULL) == 56 * UNIT);
  CHECK(take_some(&plainly, second, client, 11, UNIT) == RM_INVALID_CLIENT); /* a client of another file */
  close(second);
  CHECK(told("used", NULL) == 56 * UNIT);
  CHECK(do_free(&plainly, fd, client, client) == RM_OK && told("used", NULL) == 0);
  client = new_root(fd);
  CHECK(take_some(&plainly, fd, client, 7, 64 * UNIT) == RM_OK && told("used", NULL) == 64 * UNIT);
  close(fd);
  CHECK(told("used", NULL) == 0);
  return failures != 0;
}

static int take_and_wait(uint64_t units) {
  char byte;
  int fd = open_device("/dev/nvidiactl");
  uint32_t status = take_some(&plainly, fd, new_root(fd), 7, units * UNIT);
  printf("%s\n", status == RM_OK ? "took" : status == RM_NO_MEMORY ? "refused" : "failed");
  fflush(stdout);
  while (status == RM_OK && read(0, &byte, 1) > 0) continue;
  return 0;
}

/* Each answer is the same whether the module is there or not. */
static int storm(int seconds) {
  time_t until = time(NULL) + seconds;
  unsigned long calls = 0;
  while (time(NULL) < until) {
    int fd = open_device("/dev/nvidiactl");
    uint32_t client = new_root(fd);
    for (uint32_t handle = 1; handle < 40 && failures == 0; handle++, calls += 3) {
      CHECK(take_some(&plainly, fd, client, handle, UNIT) == RM_OK);
      CHECK(take_some(&plainly, fd, client, handle, UNIT) == 0x19); /* the handle is taken */
      if (handle % 2 == 0) CHECK(do_free(&plainly, fd, client, handle) == RM_OK);
    }
    close(fd);
  }
  printf("calls %lu\n", calls);
  return failures != 0;
}

int main(int count, char **arguments) {
  begin_arena();
  if (count == 3 && strcmp(arguments[1], "checks") == 0) {
    directory = arguments[2];
    return checks();
  }
  if (count == 3 && strcmp(arguments[1], "take") == 0) return take_and_wait(strtoull(arguments[2], NULL, 10));
  if (count == 3 && strcmp(arguments[1], "storm") == 0) return storm(atoi(arguments[2]));
  return 2;
}
