/* The program of compat.c that gets the hook by /etc/ld.so.preload, in a mount namespace of its own. */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compat.h"

static void write_text(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), "%s", path);
  close(fd);
}

/* Makes a copy of a chroot's "/", which is no mount point, under /proc, which is one, and enters it. */
static int own_root(void) {
  return mount(NULL, "/proc", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
         mount("none", "/proc", "tmpfs", 0, "size=64k") == 0 && mkdir("/proc/root", 0755) == 0 &&
         mount("/", "/proc/root", NULL, MS_BIND | MS_REC, NULL) == 0 &&
         mount(NULL, "/proc/root", NULL, MS_REC | MS_PRIVATE, NULL) == 0 && chroot("/proc/root") == 0 &&
         chdir("/") == 0 && umount2("/proc", MNT_DETACH) == 0;
}

/* Argument: the content for ld.so.preload. LD_PRELOAD is not set here. */
void role_ld_so_preload(void) {
  char map[64], line[600];
  unsigned uid = getuid(), gid = getgid();
  int own = geteuid() == 0 ? 0 : CLONE_NEWUSER;
  CHECK(unshare(CLONE_NEWNS | own) == 0, "unshare: %m");
  if (own != 0) {
    write_text("/proc/self/setgroups", "deny");
    snprintf(map, sizeof map, "0 %u 1", uid);
    write_text("/proc/self/uid_map", map);
    snprintf(map, sizeof map, "0 %u 1", gid);
    write_text("/proc/self/gid_map", map);
  }
  CHECK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 || own_root(), "private mounts: %m");
  if (failures != 0) return; /* never cover the machine's own files, or write to them */
  CHECK(mount("none", "/etc", "tmpfs", 0, "size=64k") == 0, "tmpfs over /etc: %m");
  if (failures != 0) return;
  snprintf(line, sizeof line, "%s\n", getenv("COMPAT_PRELOAD"));
  write_text("/etc/ld.so.preload", line);
  pid_t pid = fork();
  if (pid == 0) {
    execl("/proc/self/exe", "compat_program", "dlopen", (char *)NULL);
    _exit(127);
  }
  CHECK(status_of(pid) == 0, "the program under ld.so.preload");
}
