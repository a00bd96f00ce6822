#include "settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_LIMIT = 64 * 1024, FIRST_LAZY_VERSION = 12020, UNSAID = 2, UNIT = 256 };

typedef struct {
    const char *suffix;
    uint64_t factor;
} unit;

static const unit byte_units[] = {{"KiB", UINT64_C(1) << 10},
                                  {"MiB", UINT64_C(1) << 20},
                                  {"GiB", UINT64_C(1) << 30},
                                  {"TiB", UINT64_C(1) << 40},
                                  {"", 1},
                                  {NULL, 0}};
static const unit time_units[] = {
    {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {NULL, 0}};
static const unit plain[] = {{"", 1}, {NULL, 0}};

static int fail(char *problem, size_t size, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(problem, size, format, arguments);
    va_end(arguments);
    return -1;
}

/* Parses a whole number with one of the units. low and high are in the smallest unit. */
static bool read_number(const char *value, const unit *units, uint64_t low, uint64_t high,
                        uint64_t *result) {
    char *end = NULL;
    if (value[0] < '0' || value[0] > '9') {
        return false;
    }
    errno = 0;
    unsigned long long number = strtoull(value, &end, 10);
    if (errno != 0) {
        return false;
    }
    for (; units->suffix != NULL; units++) {
        if (strcmp(end, units->suffix) == 0) {
            if (number > UINT64_MAX / units->factor) {
                return false;
            }
            *result = number * units->factor;
            return *result >= low && *result <= high;
        }
    }
    return false;
}

static bool read_version(const char *value, unsigned int *major, unsigned int *minor) {
    char rest = 0;
    return sscanf(value, "%u.%u%c", major, minor, &rest) == 2 && *major > 0 && *major < 100 &&
           *minor <= 9;
}

static bool read_cuda_version(const char *value, emu_kernel_times *times) {
    unsigned int major = 0;
    unsigned int minor = 0;
    if (!read_version(value, &major, &minor) || major < 11 || major > 13) {
        return false;
    }
    times->cuda_version = major * 1000 + minor * 10;
    return true;
}

static bool read_capability(const char *value, emu_settings *settings) {
    unsigned int major = 0;
    unsigned int minor = 0;
    if (!read_version(value, &major, &minor)) {
        return false;
    }
    settings->capability_major = major;
    settings->capability_minor = minor;
    return true;
}

static bool add_kernel(const char *name, const char *value, emu_kernel_times *times) {
    if (times->kernel_count == EMU_MAX_KERNEL_TIMES || strlen(name) >= EMU_KERNEL_NAME_SIZE ||
        name[0] == '\0') {
        return false;
    }
    emu_kernel_time *kernel = &times->kernels[times->kernel_count];
    if (!read_number(value, time_units, 0, UINT64_C(3600000000000), &kernel->duration_ns)) {
        return false;
    }
    memcpy(kernel->name, name, strlen(name) + 1);
    times->kernel_count++;
    return true;
}

static bool read_mig(const char *value, emu_settings *settings) {
    static const char *const words[] = {"none", "off", "on"};
    for (uint32_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(value, words[i]) == 0) {
            settings->mig = i;
            return true;
        }
    }
    return false;
}

static bool read_switch(const char *value, uint32_t *result) {
    *result = strcmp(value, "on") == 0 ? 1 : 0;
    return *result == 1 || strcmp(value, "off") == 0;
}

/* Whether modules are loaded lazily if no setting says so. */
static uint32_t lazy_by_default(uint32_t cuda_version) {
    const char *wanted = getenv("CUDA_MODULE_LOADING");
    bool is_eager = wanted != NULL && strcmp(wanted, "EAGER") == 0;
    bool is_lazy = wanted != NULL && strcmp(wanted, "LAZY") == 0;
    return is_lazy || (!is_eager && cuda_version >= FIRST_LAZY_VERSION) ? 1 : 0;
}

/* Applies a setting that makes the emulator behave more like the real driver in this process. False: unknown setting
 * or bad value. */
static bool apply_fidelity(const char *name, const char *value, emu_kernel_times *times) {
    const uint64_t longest = UINT64_C(10000000000);
    const struct {
        const char *name;
        uint64_t *number;
        const unit *units;
        uint64_t low, high;
        uint32_t *is_on;
    } rows[] = {{"launch-cost", &times->launch_cost_ns, time_units, 0, longest, NULL},
                {"record-cost", &times->record_cost_ns, time_units, 0, longest, NULL},
                {"query-cost", &times->query_cost_ns, time_units, 0, longest, NULL},
                {"elapsed-cost", &times->elapsed_cost_ns, time_units, 0, longest, NULL},
                {"allocate-cost", &times->allocate_cost_ns, time_units, 0, longest, NULL},
                {"pin-cost", &times->pin_cost_ns, time_units, 0, longest, NULL},
                {"destroy-cost", &times->destroy_cost_ns, time_units, 0, longest, NULL},
                {"reap-delay", &times->reap_delay_ns, time_units, 0, longest, NULL},
                {"load", &times->load_ns, time_units, 0, longest, NULL},
                {"grain", &times->grain_bytes, byte_units, 0, 1 << 30, NULL},
                {"copy-engines", &times->copy_engines, plain, 1, 16, NULL},
                {"queue", &times->queue_entries, plain, 1, 65536, NULL},
                {"lazy", NULL, NULL, 0, 0, &times->is_lazy},
                {"growth", NULL, NULL, 0, 0, &times->is_growing},
                {"locks", NULL, NULL, 0, 0, &times->has_locks},
                {"legacy-events", NULL, NULL, 0, 0, &times->has_legacy_events},
                {"thread-pid", NULL, NULL, 0, 0, &times->has_thread_pid},
                {"single-green", NULL, NULL, 0, 0, &times->has_single_green},
                {"teardown", NULL, NULL, 0, 0, &times->has_teardown},
                {"integrated", NULL, NULL, 0, 0, &times->is_integrated}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(name, rows[i].name) == 0) {
            return rows[i].number != NULL ? read_number(value, rows[i].units, rows[i].low,
                                                        rows[i].high, rows[i].number)
                                          : read_switch(value, rows[i].is_on);
        }
    }
    return false;
}

static bool apply(const char *name, const char *value, emu_settings *settings,
                  emu_kernel_times *times) {
    uint64_t number = 0;
    if (strcmp(name, "devices") == 0 && read_number(value, plain, 0, EMU_MAX_DEVICES, &number)) {
        settings->devices = (uint32_t)number;
        return true;
    }
    if (strcmp(name, "sms") == 0 && read_number(value, plain, 1, 1024, &number)) {
        settings->sms = (uint32_t)number;
        return true;
    }
    if (strcmp(name, "memory") == 0) {
        return read_number(value, byte_units, 1 << 20, UINT64_C(1) << 42, &settings->memory_bytes);
    }
    if (strcmp(name, "context") == 0) {
        return read_number(value, byte_units, 0, UINT64_C(1) << 40, &settings->context_bytes);
    }
    if (strcmp(name, "module") == 0) {
        return read_number(value, byte_units, 0, UINT64_C(1) << 40, &times->module_bytes);
    }
    if (strcmp(name, "slice") == 0) {
        return read_number(value, time_units, 1000, UINT64_C(10000000000), &settings->slice_ns);
    }
    if (strcmp(name, "switch") == 0) {
        return read_number(value, time_units, 0, 10000000, &settings->switch_ns);
    }
    if (strcmp(name, "wave") == 0) {
        return read_number(value, time_units, 0, UINT64_C(10000000000), &times->wave_ns);
    }
    if (strcmp(name, "mig") == 0) {
        return read_mig(value, settings);
    }
    if (strcmp(name, "mig-slices") == 0 && read_number(value, plain, 4, 7, &number)) {
        settings->mig_slices = (uint32_t)number;
        return number == 4 || number == 7;
    }
    if (strcmp(name, "cuda") == 0) {
        return read_cuda_version(value, times);
    }
    if (strcmp(name, "capability") == 0) {
        return read_capability(value, settings);
    }
    if (strcmp(name, "model") == 0 && value[0] != '\0' && strlen(value) < EMU_MODEL_SIZE) {
        memset(settings->model, 0, EMU_MODEL_SIZE);
        memcpy(settings->model, value, strlen(value));
        return true;
    }
    return apply_fidelity(name, value, times) ||
           (strncmp(name, "kernel.", 7) == 0 && add_kernel(name + 7, value, times));
}

static char *trim(char *text) {
    while (*text == ' ' || *text == '\t') {
        text++;
    }
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t\r\n", text[length - 1]) != NULL) {
        text[--length] = '\0';
    }
    return text;
}

/* Splits the text into settings and applies them. Modifies the text. */
static int apply_all(char *text, const char *separators, emu_settings *settings,
                     emu_kernel_times *times, char *problem, size_t size) {
    char *position = NULL;
    for (char *item = strtok_r(text, separators, &position); item != NULL;
         item = strtok_r(NULL, separators, &position)) {
        item = trim(item);
        if (item[0] == '\0' || item[0] == '#') {
            continue;
        }
        char *equals = strchr(item, '=');
        if (equals == NULL) {
            return fail(problem, size, "no value for setting: name=%s", item);
        }
        *equals = '\0';
        char *name = trim(item);
        char *value = trim(equals + 1);
        if (!apply(name, value, settings, times)) {
            return fail(problem, size, "unknown setting or value out of range: name=%s value=%s",
                        name, value);
        }
    }
    return 0;
}

static int read_file(const char *path, char *text, char *problem, size_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return fail(problem, size, "cannot read settings: file=%s error=%s", path, strerror(errno));
    }
    size_t used = 0;
    ssize_t count = 0;
    while (used < FILE_LIMIT - 1 && (count = read(fd, text + used, FILE_LIMIT - 1 - used)) > 0) {
        used += (size_t)count;
    }
    close(fd);
    if (count < 0 || used == FILE_LIMIT - 1) {
        return fail(problem, size, "settings cannot be read or are too long: file=%s limit=%d",
                    path, FILE_LIMIT);
    }
    text[used] = '\0';
    return 0;
}

static void set_defaults(emu_settings *settings, emu_kernel_times *times) {
    *settings = (emu_settings){.devices = 1,
                               .sms = 132,
                               .context_bytes = UINT64_C(64) << 20,
                               .slice_ns = 2048000,
                               .switch_ns = 140000,
                               .capability_major = 9,
                               .capability_minor = 0,
                               .mig = EMU_MIG_OFF,
                               .mig_slices = 7,
                               .model = "Emulated GPU"};
    memset(times, 0, sizeof *times);
    times->wave_ns = 10000;
    times->cuda_version = 13000;
    times->copy_engines = 3;
    times->queue_entries = 1024;
    times->is_lazy = UNSAID;
    times->is_growing = 1;
    times->has_legacy_events = 1;
    times->has_teardown = 1;
}

/* Applies the settings in a text, or in the file that it names. */
static int apply_text(const char *text, emu_settings *settings, emu_kernel_times *times,
                      char *problem, size_t size) {
    char *copy = malloc(FILE_LIMIT);
    if (copy == NULL) {
        return fail(problem, size, "out of memory");
    }
    int result = 0;
    if (text[0] == '@') {
        result = read_file(text + 1, copy, problem, size);
    } else if (strlen(text) >= FILE_LIMIT) {
        result = fail(problem, size, "settings are too long: limit=%d", FILE_LIMIT);
    } else {
        memcpy(copy, text, strlen(text) + 1);
    }
    if (result == 0) {
        result = apply_all(copy, text[0] == '@' ? "\n" : ",", settings, times, problem, size);
    }
    free(copy);
    return result;
}

static uint64_t host_bytes(void) {
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

int emu_settings_parse(const char *text, emu_settings *settings, emu_kernel_times *times,
                       char *problem, size_t size) {
    set_defaults(settings, times);
    int result =
        text == NULL || text[0] == '\0' ? 0 : apply_text(text, settings, times, problem, size);
    if (settings->memory_bytes == 0) { /* not said */
        settings->memory_bytes = times->is_integrated ? host_bytes() : UINT64_C(16) << 30;
    }
    times->grain_bytes = (times->grain_bytes + UNIT - 1) / UNIT * UNIT;
    if (times->is_lazy == UNSAID) {
        times->is_lazy = lazy_by_default(times->cuda_version);
    }
    return result;
}

int emu_settings_cuda_version(void) {
    static int known; /* 0: not read yet */
    int version = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (version == 0) {
        emu_settings settings;
        emu_kernel_times times;
        char problem[200];
        emu_settings_parse(getenv("VGPU_EMULATOR"), &settings, &times, problem, sizeof problem);
        version = (int)times.cuda_version;
        __atomic_store_n(&known, version, __ATOMIC_RELAXED);
    }
    return version;
}
