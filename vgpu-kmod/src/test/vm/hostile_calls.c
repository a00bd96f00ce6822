/* The fields of a call: pointers, sizes, handles, buffers over one another, and changes meanwhile. */
#include <pthread.h>
#include <stdatomic.h>

#include "hostile.h"

static const uint64_t POINTERS[] = {0,
                                    1,
                                    0x7ffffffff000,
                                    0x800000000000,
                                    0x8000000000000000,
                                    0xffff888000000000,
                                    0xffffffff81000000,
                                    0xffffffffff600000,
                                    UINT64_MAX - 63,
                                    UINT64_MAX};
static const struct {
  uint32_t number, size;
} FORMS[] = {{RM_ALLOC, 32}, {RM_ALLOC, 48},        {RM_FREE, 16},         {RM_CONTROL, 32},   {RM_DUP, 28},
             {RM_HEAP, 184}, {RM_ALLOC_MEMORY, 56}, {RM_ALLOC_OBJECT, 20}, {RM_REGISTER_FD, 4}};
enum { POINTER_COUNT = sizeof POINTERS / sizeof *POINTERS, FORM_COUNT = sizeof FORMS / sizeof *FORMS };

void pointers_of_the_kernel(void) {
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

void sizes_and_handles(void) {
  static const uint64_t SIZES[] = {(uint64_t)1 << 63, ((uint64_t)1 << 63) - 1, UINT64_MAX,
                                   UINT64_MAX - 1,    (uint64_t)1 << 40,       64 * MIB + 1};
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
void buffers_over_one_another(void) {
  begin_as("one");
  for (size_t params = CALL - 96; params <= CALL + 8; params += 4) {
    struct alloc what = {
        .client = client, .parent = DEVICE, .handle = 7, .class_number = 0x40, .bytes = 4096, .params = params};
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

static void take_and_free(int i) {
  memory(&plainly, control, client, (uint32_t)(i & 15), MIB, 128, 0);
  do_free(&plainly, control, client, (uint32_t)(i & 15));
}

static void take_until_killed(int unused) {
  pthread_t thread;
  (void)unused;
  begin_as("one");
  CHECK(pthread_create(&thread, NULL, change, NULL) == 0);
  for (int i = 0; failures == 0; i++) take_and_free(i);
}

/* What a process got past the limit is held no longer than its files: by the driver, and in the ledger. */
void arguments_that_change(void) {
  pthread_t thread;
  begin_as("one");
  stop = 0;
  CHECK(pthread_create(&thread, NULL, change, NULL) == 0);
  for (int i = 0; i < 3000; i++) take_and_free(i);
  stop = 1;
  pthread_join(thread, NULL);
  end_empty();
  stop = 0;
  uint64_t calls = truth("calls ");
  pid_t killed = in_child(take_until_killed, 0);
  for (int tries = 0; tries < 180000 && truth("calls ") < calls + 3000; tries++) usleep(1000);
  CHECK(truth("calls ") >= calls + 3000);
  CHECK(killed > 0 && kill(killed, SIGKILL) == 0 && waitpid(killed, NULL, 0) == killed);
  begin_as("one");
  CHECK(used_by("one") == 0 && truth("taken ") == 0);
  CHECK(take_mib(7, 64) == RM_OK && used_by("one") == truth("taken "));
  end_empty();
}

void random_requests(void) {
  static const uint32_t CLASSES[] = {0x40, 0x3e, 0x3f, 0xa06c, 0xc86f, 0x80, 0x2080, 0x41, 0, 0x82, 0x50a0};
  unsigned seed = test_seed();
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
