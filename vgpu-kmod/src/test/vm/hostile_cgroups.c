/* Cgroups that move, vanish or have a tenant already, and the files of the tenants' directories. */
#include <sys/stat.h>

#include "hostile.h"

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

void cgroup_moved_and_removed(void) {
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
  /* The other one may be held up while it has the cgroup: then this waits for three minutes at most. */
  for (int i = 0; i < 1000 || (won == 0 && i < 180000); i++) {
    if (i >= 1000) usleep(1000);
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
void cgroup_of_another(void) {
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

void rubbish_in_directories(void) {
  static const char *const FILES[] = {"limit", "cgroup", "weight", "class", "peak", "used", "stats"};
  static char text[8192];
  unsigned seed = test_seed();
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
