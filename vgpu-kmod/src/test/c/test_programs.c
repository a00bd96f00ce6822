/*
 * What vgpu-turns reads of programs that record much, or nonsense: others do not wait for them. No driver is asked, so
 * whatever is given back is refused and counts as stuck. Usage: test_programs DIRECTORY, which is empty
 */
#define main turns_main
#include "../../main/c/user/turns.c"
#undef main

#include "check.h"

enum { CLIENT = 0x100, DEVICE, GROUP, CHANNEL, SECOND_GROUP = 0x200, SECOND_CHANNEL, NOBODY = 0x999 };
enum { CHANNEL_CLASS = 0xc86f }; /* of the H200 */

static int failures;

static void record(int fd, struct vgpu_rm_event event) {
  event.file = 1;
  event.fd = -1;
  event.client = CLIENT;
  CHECK(write(fd, &event, sizeof event) == (ssize_t)sizeof event);
}

static void record_made(int fd, uint32_t parent, uint32_t object, uint32_t class_number) {
  record(fd, (struct vgpu_rm_event){
                 .kind = RM_EVENT_MADE, .parent = parent, .object = object, .class_number = class_number});
}

static void record_group(int fd, uint32_t group, uint32_t channel) {
  record_made(fd, DEVICE, group, RM_CLASS_GROUP);
  record_made(fd, group, channel, CHANNEL_CLASS);
  record(fd, (struct vgpu_rm_event){.kind = RM_EVENT_SCHEDULED, .object = group, .value = 1});
}

static void record_plain(int fd) {
  record_made(fd, 0, CLIENT, RM_CLASS_ROOT);
  record_made(fd, CLIENT, DEVICE, RM_CLASS_DEVICE);
  record_made(fd, DEVICE, DEVICE + 0x1000, RM_CLASS_SUBDEVICE);
  record_group(fd, GROUP, CHANNEL);
}

/* And at last a second group. */
static void record_much(int fd) {
  record_plain(fd);
  for (int i = 0; i < 3 * EVENTS_OF_A_LOOK; i++)
    record(fd, (struct vgpu_rm_event){.kind = RM_EVENT_FREED, .object = NOBODY});
  record_group(fd, SECOND_GROUP, SECOND_CHANNEL);
}

static void record_too_much(int fd) {
  record_much(fd);
  CHECK(ftruncate(fd, (off_t)sizeof(struct vgpu_rm_event) * (MOST_UNREAD + 2 * EVENTS_OF_A_LOOK)) == 0);
}

static void record_a_hole(int fd) {
  record_plain(fd);
  CHECK(ftruncate(fd, 1 << 20) == 0);
}

/* A tenant with a program that records and then waits until this process ends. */
static struct directory *tenant(char *words, void (*records)(int fd)) {
  const struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  struct directory *made = &programs.directories[programs.tenants];
  int done[2];
  char said = 0, path[5000], *end = strchr(words, '=');
  *end = '\0';
  snprintf(path, sizeof path, "%s/" RM_EVENTS_NAME, words);
  if (mkdir(words, 0700) != 0 || pipe(done) != 0) abort();
  *end = '=';
  if (fork() == 0) {
    int fd = prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 ? mkostemp(path, O_CLOEXEC) : -1;
    CHECK(fd >= 0 && fcntl(fd, F_SETLK, &whole) == 0);
    records(fd);
    CHECK(write(done[1], "", 1) == 1);
    if (failures == 0) pause();
    _exit(1);
  }
  close(done[1]);
  CHECK(read(done[0], &said, 1) == 1);
  CHECK(add(words) == 0);
  return made;
}

static int has(const struct directory *of, uint32_t object) {
  for (const struct program *each = programs.first; each != NULL; each = each->next) {
    struct vgpu_rm_object *root = vgpu__client_find(&programs.book, each->number << 32 | 1, CLIENT);
    if (each->tenant == &of->tenant && root != NULL) return vgpu__object_find(&programs.book, root, object) != NULL;
  }
  return 0;
}

int main(int count, char **arguments) {
  static _Atomic uint64_t until;
  static char words[4][4096];
  static void (*const records[])(int) = {record_much, record_too_much, record_a_hole, record_plain};
  struct directory *of[4];
  held_until = &until;
  for (int i = 0; i < 4 && count == 2; i++) {
    snprintf(words[i], sizeof words[i], "%s/%d=offline", arguments[1], i);
    of[i] = tenant(words[i], records[i]);
  }
  if (count != 2) return 2;
  const struct directory *much = of[0], *too_much = of[1], *hole = of[2], *plain = of[3];

  begin();
  look();
  CHECK(unread); /* a part, and the others */
  for (int i = 0; i < 4; i++) CHECK(has(of[i], GROUP));
  CHECK(!has(much, SECOND_GROUP) && !has(too_much, SECOND_GROUP));
  for (int looks = 0; looks < 3; looks++) look();
  CHECK(!unread && has(much, SECOND_GROUP) && !has(too_much, SECOND_GROUP)); /* this one is lost */
  settle();
  CHECK(has(much, GROUP) && has(plain, GROUP) && !has(too_much, GROUP) && !has(hole, GROUP));

  /* Another process finds them: all but the lost ones are given back whole. */
  programs.first = NULL;
  begin();
  recover();
  CHECK(has(much, SECOND_GROUP) && much->tenant.stuck == 1 + 2);
  CHECK(plain->tenant.stuck >= 1);
  CHECK(too_much->tenant.stuck == 1 && !has(too_much, GROUP)); /* what was known of it */
  if (failures == 0) printf("ok   programs\n");
  return failures != 0;
}
