/* Programs of compat.c: each name by which a program may open the driver or NVML. run_compat.sh lays out the files. */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compat.h"

static void *find(void *library, const char *name, void *into) {
  void *found = library == NULL ? NULL : dlsym(library, name);
  CHECK(found != NULL, "%s: %s", name, dlerror());
  memcpy(into, &found, sizeof found);
  return found;
}

static void is_held(void *library, const char *name) {
  CHECK(library != NULL, "%s: %s", name, dlerror());
  is_held_in(library);
}

static void is_stand_in(void *library, const char *name) {
  CHECK(library != NULL && dlsym(library, "vgpu_nvml_version") != NULL, "NVML as %s", name);
}

/* Changes to the directory of the real driver or NVML, so that a relative path leads to it. */
static void go_to(const char *variable) {
  char directory[4096];
  snprintf(directory, sizeof directory, "%s", getenv(variable));
  *strrchr(directory, '/') = '\0';
  CHECK(chdir(directory) == 0, "chdir %s", directory);
}

void role_dlopen_names(void) {
  static const char *const names[] = {"libcuda.so", "./libcuda.so.1", "../nowhere/libcuda.so", "libcuda.so.580.95.05"};
  go_to("VGPU_CUDA_DRIVER");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) is_held(dlopen(names[i], RTLD_NOW), names[i]);
  is_held(dlopen("libcuda.so.1", RTLD_NOW | RTLD_DEEPBIND), "deep");
  CHECK(dlopen("libcuda.sock", RTLD_NOW) == NULL && strstr(dlerror(), "libcuda.sock") != NULL, "another name");
  is_stand_in(dlopen("libnvidia-ml.so", RTLD_NOW), "libnvidia-ml.so");
  go_to("VGPU_NVML");
  is_stand_in(dlopen("./libnvidia-ml.so.1", RTLD_NOW), "a relative path");
}

/* Links of other names: by an absolute path, a relative one, and found in LD_LIBRARY_PATH. */
void role_dlopen_links(void) {
  char path[4096];
  snprintf(path, sizeof path, "%s/links/any_driver.so", getenv("COMPAT_WORK"));
  is_held(dlopen(path, RTLD_NOW), path);
  CHECK(chdir(getenv("COMPAT_WORK")) == 0, "chdir");
  is_held(dlopen("links/any_driver.so", RTLD_NOW), "a relative link");
  is_held(dlopen("any_driver.so", RTLD_LAZY | RTLD_GLOBAL), "a link in LD_LIBRARY_PATH");
  is_stand_in(dlopen("./links/any_nvml.so", RTLD_NOW), "a relative link");
  is_stand_in(dlopen("any_nvml.so", RTLD_NOW), "a link in LD_LIBRARY_PATH");
  CHECK(dlopen("no_driver.so", RTLD_NOW) == NULL && strstr(dlerror(), "no_driver.so") != NULL, "a name that is none");
}

/* The calling library's search path: its RPATH or RUNPATH contains links that no other search finds. */
void role_dlopen_search(void) {
  static const char *const libraries[] = {"libopens_rpath.so", "libopens_runpath.so"};
  CHECK(dlopen("its_driver.so", RTLD_NOW) == NULL, "found without the search path");
  for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
    void *(*opens)(const char *, int) = NULL;
    if (find(dlopen(libraries[i], RTLD_NOW), "opens", &opens) == NULL) continue;
    is_held(opens("its_driver.so", RTLD_NOW), libraries[i]);
    is_held(opens("libcuda.so", RTLD_NOW), libraries[i]);
    is_stand_in(opens("its_nvml.so", RTLD_NOW), libraries[i]);
    CHECK(opens("libm.so.6", RTLD_NOW) != NULL, "another library: %s", dlerror());
  }
}

/* A library whose dlopen would resolve to the C library's. */
void role_dlopen_deep(void) {
  static const char *const libraries[] = {"libopens_lazy.so", "libopens_now.so", "libopens_needed.so"};
  for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
    void *(*opens)(const char *, int) = NULL, *(*opens_apart)(Lmid_t, const char *, int) = NULL;
    void *library = dlopen(libraries[i], RTLD_NOW | RTLD_DEEPBIND);
    if (find(library, "opens", &opens) == NULL || find(library, "opens_apart", &opens_apart) == NULL) continue;
    is_held(opens(getenv("VGPU_CUDA_DRIVER"), RTLD_NOW), libraries[i]);
    is_held(opens("libcuda.so", RTLD_NOW), libraries[i]);
    is_held(opens("any_driver.so", RTLD_NOW), libraries[i]);
    is_held(opens_apart(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW), libraries[i]);
    is_stand_in(opens(getenv("VGPU_NVML"), RTLD_NOW), libraries[i]);
    CHECK(opens("libm.so.6", RTLD_NOW | RTLD_DEEPBIND) != NULL, "another library: %s", dlerror());
    CHECK(dlopen(libraries[i], RTLD_NOW | RTLD_DEEPBIND) == library, "opened again");
  }
  CHECK(dlopen("libno.so", RTLD_NOW | RTLD_DEEPBIND) == NULL && strstr(dlerror(), "libno.so") != NULL,
        "a name that is none");
}

/* Linked with the driver by a name that is not its SONAME: the driver is loaded beside the hook, and never called. */
void role_linked_names(void) {
  void *(*its)(void) = NULL;
  Dl_info from = {.dli_fname = "nowhere"};
  if (find(dlopen("libneeds_name.so", RTLD_NOW), "its", &its) == NULL) return;
  CHECK(dladdr(its(), &from) != 0 && its() == dlsym(RTLD_DEFAULT, "cuInit"), "its cuInit is that of %s",
        from.dli_fname);
  is_held(dlopen("libcuda.so.1", RTLD_NOW), "beside it");
}

void role_dlmopen(void) {
  is_held(dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW | RTLD_LOCAL), "dlmopen");
  is_held(dlmopen(LM_ID_NEWLM, "any_driver.so", RTLD_NOW | RTLD_DEEPBIND), "a link");
  is_stand_in(dlmopen(LM_ID_NEWLM, "libnvidia-ml.so.1", RTLD_NOW), "dlmopen");
  CHECK(dlmopen(LM_ID_NEWLM, "libneeds.so", RTLD_NOW) == NULL, "a library that is linked with the driver");
  const char *why = dlerror();
  CHECK(why != NULL && strstr(why, "vgpu: not opened") != NULL, "refused with: %s", why);
  CHECK(dlmopen(LM_ID_NEWLM, "libm.so.6", RTLD_NOW) != NULL, "another library: %s", dlerror());
  CHECK(dlmopen(LM_ID_BASE, "libneeds.so", RTLD_NOW) != NULL, "beside the hook: %s", dlerror());
}

/* Whether a file with this path is mapped. */
static int is_loaded(const char *part) {
  char line[4096];
  int found = 0;
  FILE *maps = fopen("/proc/self/maps", "re");
  while (maps != NULL && !found && fgets(line, sizeof line, maps) != NULL) found = strstr(line, part) != NULL;
  if (maps != NULL) fclose(maps);
  return found;
}

/* With COMPAT_CHOSEN, the driver behind the hook must be the image's. */
void role_forward_chosen(void) {
  is_held(dlopen("libcuda.so.1", RTLD_NOW), "libcuda.so.1");
  CHECK(is_loaded("/image/compat/libcuda.so.1") == (getenv("COMPAT_CHOSEN") != NULL),
        "the image's driver with LD_LIBRARY_PATH=%s", getenv("LD_LIBRARY_PATH"));
}

/* An image's newer driver is used if the dynamic linker finds it first, and not otherwise. */
void role_forward(void) {
  static const char *const kinds[] = {"first", "of another name", "second"};
  const char *work = getenv("COMPAT_WORK");
  char path[12288], machine[4096];
  snprintf(machine, sizeof machine, "%s", getenv("VGPU_CUDA_DRIVER"));
  *strrchr(machine, '/') = '\0';
  for (int i = 0; i < 3; i++) {
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
      if (i == 2) snprintf(path, sizeof path, "%s:%s/image/compat", machine, work);
      else snprintf(path, sizeof path, "%s/image/%s:%s", work, i == 0 ? "compat" : "other", machine);
      setenv("LD_LIBRARY_PATH", path, 1);
      if (i == 0) setenv("COMPAT_CHOSEN", "1", 1);
      execl("/proc/self/exe", "compat_program", "forward_chosen", (char *)NULL);
      _exit(127);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0, "%s: %d", kinds[i], status);
  }
}
