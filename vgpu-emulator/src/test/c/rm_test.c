/*
 * The emulated resource manager, called as a hook would: through the `ioctl` slot of the emulated driver's import
 * table. Kernels stop in the middle and resume.
 */
#include "check.h"
#include "cuda_api.h"
#include "base/rm_abi.h"
#include "gpu/state.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
enum { TRIES = 100 };

typedef int ioctl_function(int fd, unsigned long request, ...);

static ioctl_function *next;
static CUfunction spin;
static int ctl = -1;
static uint32_t client, subdevice, group, channels[2];

/* ---- the import ---- */

static void find_in(uintptr_t base, const ElfW(Dyn) * dynamic) {
    const ElfW(Rela) *relocations = NULL;
    const ElfW(Sym) *symbols = NULL;
    const char *names = NULL;
    size_t size = 0;
    for (const ElfW(Dyn) *entry = dynamic; entry->d_tag != DT_NULL; entry++) {
        const void *address = (const void *)(uintptr_t)entry->d_un.d_ptr;
        relocations = entry->d_tag == DT_JMPREL ? address : relocations;
        symbols = entry->d_tag == DT_SYMTAB ? address : symbols;
        names = entry->d_tag == DT_STRTAB ? address : names;
        size = entry->d_tag == DT_PLTRELSZ ? entry->d_un.d_val : size;
    }
    for (size_t i = 0; i < size / sizeof *relocations; i++) {
        const ElfW(Sym) *symbol = &symbols[ELF64_R_SYM(relocations[i].r_info)];
        if (strcmp(names + symbol->st_name, "ioctl") == 0) {
            memcpy(&next, (void *)(base + relocations[i].r_offset), sizeof next);
        }
    }
}

static int look_at(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    (void)data;
    if (strstr(info->dlpi_name, "libcuda.so.1") == NULL) {
        return 0;
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) {
            find_in(info->dlpi_addr, (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr));
        }
    }
    return 1;
}

/* ---- calls ---- */

static int call(int fd, unsigned int number, void *argument, size_t size) {
    return next(fd, _IOC(_IOC_READ | _IOC_WRITE, RM_IOC_MAGIC, number, size), argument);
}

static uint32_t control(int fd, uint32_t of, uint32_t object, uint32_t command, void *params,
                        uint32_t size) {
    rm_control request = {.client = of,
                          .object = object,
                          .command = command,
                          .params = (uint64_t)(uintptr_t)params,
                          .params_size = size,
                          .status = 999};
    CHECK_OK(call(fd, RM_ESC_CONTROL, &request, sizeof request));
    return request.status;
}

static uint32_t disable(uint32_t of, bool off) {
    rm_disable_channels params = {.disable = off, .count = 2};
    for (int i = 0; i < 2; i++) {
        params.clients[i] = of;
        params.channels[i] = channels[i];
    }
    return control(ctl, client, subdevice, RM_CTRL_DISABLE_CHANNELS, &params, sizeof params);
}

static uint32_t schedule(bool on) {
    uint8_t params[3] = {on, 0, 0};
    return control(ctl, client, group, RM_CTRL_GROUP_SCHEDULE, params, sizeof params);
}

/* Finds the driver's file and handles. The driver numbers its handles from the same start in every process. */
static void find_objects(void) {
    DIR *list = opendir("/proc/self/fd");
    const struct dirent *entry = NULL;
    while ((entry = readdir(list)) != NULL) {
        char path[300];
        char target[300] = "";
        snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        if (readlink(path, target, sizeof target - 1) > 0 && strstr(target, "nvidiactl") != NULL) {
            ctl = atoi(entry->d_name);
        }
    }
    closedir(list);
    CHECK(ctl >= 0);
    /* Two devices with one subdevice each come first, then the context's group and channels. */
    subdevice = 0x5c000002;
    group = 0x5c000005;
    channels[0] = group + 1;
    channels[1] = group + 2;
    for (uint32_t i = 0; i < 64 && client == 0; i++) {
        uint32_t guess = 0xc1d00000u | ((uint32_t)getpid() << 6 & 0xfffc0u) | i;
        uint64_t slice = 0;
        if (control(ctl, guess, group, RM_CTRL_GROUP_GET_TIMESLICE, &slice, 8) == RM_OK) {
            client = guess;
            CHECK_EQUAL(slice, 1024);
        }
    }
    CHECK(client != 0);
}

static void open_gpu(void) {
    CUcontext context = NULL;
    CUmodule module = NULL;
    CHECK_OK(cuInit(0));
    CHECK_OK(cuCtxCreate_v2(&context, 0, 0));
    CHECK_OK(cuModuleLoadData(&module, test_ptx));
    CHECK_OK(cuModuleGetFunction(&spin, module, "vgpu_spin"));
}

static void launch(uint64_t ns) {
    CHECK_OK(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&ns}, NULL));
}

static void sleep_ms(uint64_t ms) {
    emu_sleep_until(emu_now_ns() + ms * MS);
}

/* ---- tests ---- */

static void files_and_handles_are_checked(void) {
    uint64_t slice = 0;
    int other = open("/dev/null", O_RDWR | O_CLOEXEC);
    int duplicate = dup(ctl);
    rm_control request = {.client = client};
    CHECK_EQUAL(call(other, RM_ESC_CONTROL, &request, sizeof request), -1);
    CHECK_EQUAL(errno, ENOTTY);
    CHECK_EQUAL(control(ctl, client + 1, group, RM_CTRL_GROUP_GET_TIMESLICE, &slice, 8),
                RM_ERR_INVALID_CLIENT);
    CHECK_EQUAL(control(ctl, client, 77, RM_CTRL_GROUP_GET_TIMESLICE, &slice, 8),
                RM_ERR_OBJECT_NOT_FOUND);
    CHECK_EQUAL(control(duplicate, client, group, RM_CTRL_GROUP_GET_TIMESLICE, &slice, 8), RM_OK);
    CHECK_EQUAL(disable(client + 1, true), RM_ERR_INVALID_CLIENT);
    CHECK_EQUAL(control(ctl, client, group, RM_CTRL_GROUP_GET_TIMESLICE, (void *)8, 8),
                RM_ERR_INVALID_PARAM_STRUCT);
    CHECK_EQUAL(call(ctl, RM_ESC_CONTROL, (void *)8, sizeof request), -1);
    CHECK_EQUAL(errno, EFAULT);
    CHECK_EQUAL(call(ctl, RM_ESC_CONTROL, &request, sizeof request - 1), -1);
    CHECK_EQUAL(errno, EINVAL);
    close(other);
    close(duplicate);
}

static void a_kernel_stops_in_the_middle(uint32_t (*stop)(void), uint32_t (*resume)(void)) {
    CUevent start = NULL;
    CUevent end = NULL;
    bool is_late = true; /* on a busy machine the kernel may end before it is stopped */
    CHECK_OK(cuEventCreate(&start, 0));
    CHECK_OK(cuEventCreate(&end, 0));
    for (int i = 0; i < TRIES && is_late; i++) {
        uint64_t began = emu_now_ns();
        CHECK_OK(cuEventRecord(start, NULL));
        launch(10 * MS);
        CHECK_OK(cuEventRecord(end, NULL));
        CHECK_EQUAL(stop(), RM_OK);
        is_late = emu_now_ns() - began >= 10 * MS;
        sleep_ms(30);
        CHECK(is_late || cuEventQuery(end) == CUDA_ERROR_NOT_READY);
        CHECK_EQUAL(resume(), RM_OK);
        CHECK_OK(cuCtxSynchronize());
    }
    CHECK(!is_late);
    float ms = 0;
    CHECK_OK(cuEventElapsedTime(&ms, start, end));
    CHECK(ms >= 40 - 1);
    CHECK_OK(cuEventDestroy_v2(start));
    CHECK_OK(cuEventDestroy_v2(end));
}

static uint32_t stop_channels(void) {
    return disable(client, true);
}

static uint32_t resume_channels(void) {
    return disable(client, false);
}

static uint32_t stop_group(void) {
    return schedule(false);
}

static uint32_t resume_group(void) {
    return schedule(true);
}

static void what_is_stopped_can_be_destroyed(void) {
    CUcontext context = NULL;
    CHECK_OK(cuCtxCreate_v2(&context, 0, 0));
    group += 3; /* the new context's group */
    CHECK_EQUAL(schedule(false), RM_OK);
    CHECK_OK(cuCtxDestroy_v2(context));
    CHECK_EQUAL(schedule(true), RM_ERR_OBJECT_NOT_FOUND);
    group -= 3;
    CHECK_OK(cuCtxCreate_v2(&context, 0, 0)); /* it runs, even if it reuses the entry */
    CUmodule module = NULL;
    CUfunction outer = spin;
    CHECK_OK(cuModuleLoadData(&module, test_ptx));
    CHECK_OK(cuModuleGetFunction(&spin, module, "vgpu_spin"));
    launch(MS);
    CHECK_OK(cuCtxSynchronize());
    CHECK_OK(cuCtxDestroy_v2(context));
    spin = outer;
}

static void time_slices_are_the_groups_own(void) {
    uint64_t slice = 200;
    uint64_t seen = 0;
    uint64_t none = 0;
    CHECK_EQUAL(control(ctl, client, group, RM_CTRL_GROUP_SET_TIMESLICE, &slice, 8), RM_OK);
    CHECK_EQUAL(control(ctl, client, group, RM_CTRL_GROUP_GET_TIMESLICE, &seen, 8), RM_OK);
    CHECK_EQUAL(seen, 200);
    CHECK_EQUAL(control(ctl, client, group, RM_CTRL_GROUP_SET_TIMESLICE, &none, 8),
                RM_ERR_NOT_SUPPORTED);
    CHECK_EQUAL(control(ctl, client, group, RM_CTRL_GROUP_INTERLEAVE, &seen, 4),
                RM_ERR_INSUFFICIENT_PERMISSIONS);
    slice = 1024;
    CHECK_EQUAL(control(ctl, client, group, RM_CTRL_GROUP_SET_TIMESLICE, &slice, 8), RM_OK);
}

/* The child's copy of the file gives no access to the parent's objects. */
static void a_fork_has_nothing(void) {
    pid_t child = fork();
    if (child == 0) {
        uint64_t slice = 0;
        rm_control request = {.client = client,
                              .object = group,
                              .command = RM_CTRL_GROUP_GET_TIMESLICE,
                              .params = (uint64_t)(uintptr_t)&slice,
                              .params_size = 8,
                              .status = 999};
        _exit(call(ctl, RM_ESC_CONTROL, &request, sizeof request) == -1 ? 0 : 1);
    }
    int status = 1;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
}

/* A process that is killed while its work is stopped leaves nothing behind. Returns how long others then wait. */
static uint64_t kill_the_stopped(const char *self) {
    pid_t child = fork();
    if (child == 0) {
        execl(self, self, "stopped", (char *)NULL);
        _exit(9);
    }
    int status = 0;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    uint64_t before = emu_now_ns();
    launch(MS);
    CHECK_OK(cuCtxSynchronize());
    return emu_now_ns() - before;
}

static void the_stopped_can_be_killed(const char *self) {
    uint64_t waited = UINT64_MAX;
    for (int i = 0; i < 5 && waited >= 1000 * MS;
         i++) { /* a busy machine may delay this process itself */
        waited = kill_the_stopped(self);
    }
    CHECK(waited < 1000 * MS);
}

int main(int count, char **arguments) {
    open_gpu();
    dl_iterate_phdr(look_at, NULL);
    CHECK(next != NULL);
    find_objects();
    if (check_failures > 0) {
        return 1;
    }
    if (count > 1) {
        launch(500 * MS);
        CHECK_EQUAL(stop_group(), RM_OK);
        raise(SIGKILL);
    }
    files_and_handles_are_checked();
    a_kernel_stops_in_the_middle(stop_channels, resume_channels);
    a_kernel_stops_in_the_middle(stop_group, resume_group);
    what_is_stopped_can_be_destroyed();
    time_slices_are_the_groups_own();
    a_fork_has_nothing();
    the_stopped_can_be_killed(arguments[0]);
    return check_failures == 0 ? 0 : 1;
}
