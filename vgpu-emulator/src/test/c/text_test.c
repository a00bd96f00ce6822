/* Settings, PTX parsing, and the address heap. */
#include "check.h"
#include "cuda_api.h"
#include "base/heap.h"
#include "base/ptx.h"
#include "base/settings.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void settingsAreRead(void) {
    emu_settings settings;
    emu_kernel_times times;
    char problem[200] = "";
    CHECK_OK(emu_settings_parse(NULL, &settings, &times, problem, sizeof problem));
    CHECK_EQUAL(settings.devices, 1);
    CHECK_EQUAL(settings.slice_ns, 2048000);
    CHECK_EQUAL(settings.switch_ns, 140000);
    CHECK_EQUAL(times.copy_engines, 3);
    CHECK_EQUAL(times.queue_entries, 1024);
    CHECK_EQUAL(times.grain_bytes, 0);
    CHECK_EQUAL(times.is_growing, 1);
    CHECK_EQUAL(times.has_legacy_events, 1);
    CHECK_EQUAL(times.has_teardown, 1);
    CHECK_EQUAL(times.is_integrated, 0);
    CHECK_EQUAL(settings.memory_bytes, INT64_C(16) << 30);
    CHECK_OK(emu_settings_parse(
        "devices=3, memory=2GiB,context=0,slice=2ms,switch=140us,model=My GPU,sms=4,wave=7us,"
        "capability=8.6,kernel.foo=12us",
        &settings, &times, problem, sizeof problem));
    CHECK_EQUAL(settings.devices, 3);
    CHECK_EQUAL(settings.memory_bytes, INT64_C(2) << 30);
    CHECK_EQUAL(settings.context_bytes, 0);
    CHECK_EQUAL(settings.slice_ns, 2000000);
    CHECK_EQUAL(settings.switch_ns, 140000);
    CHECK(strcmp(settings.model, "My GPU") == 0);
    CHECK_EQUAL(settings.capability_minor, 6);
    CHECK_EQUAL(times.wave_ns, 7000);
    CHECK_EQUAL(times.kernels[0].duration_ns, 12000);
}

static void anIntegratedGpuHasTheHostsMemory(void) {
    emu_settings settings;
    emu_kernel_times times;
    char problem[200] = "";
    CHECK_OK(emu_settings_parse("integrated=on", &settings, &times, problem, sizeof problem));
    CHECK_EQUAL(times.is_integrated, 1);
    CHECK_EQUAL(settings.memory_bytes,
                (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE));
    CHECK_OK(emu_settings_parse("integrated=on,memory=1GiB", &settings, &times, problem,
                                sizeof problem));
    CHECK_EQUAL(settings.memory_bytes, INT64_C(1) << 30);
}

static uint32_t lazy_with(const char *text, const char *variable) {
    emu_settings settings;
    emu_kernel_times times;
    char problem[200] = "";
    if (variable == NULL) {
        unsetenv("CUDA_MODULE_LOADING");
    } else {
        setenv("CUDA_MODULE_LOADING", variable, 1);
    }
    CHECK_OK(emu_settings_parse(text, &settings, &times, problem, sizeof problem));
    unsetenv("CUDA_MODULE_LOADING");
    return times.is_lazy;
}

static void loadingIsLazyUnlessToldOtherwise(void) {
    CHECK_EQUAL(lazy_with(NULL, NULL), 1);
    CHECK_EQUAL(lazy_with(NULL, "EAGER"), 0);
    CHECK_EQUAL(lazy_with("cuda=12.1", NULL), 0); /* the default since 12.2 */
    CHECK_EQUAL(lazy_with("cuda=12.2", NULL), 1);
    CHECK_EQUAL(lazy_with("cuda=11.8", "LAZY"), 1);
    CHECK_EQUAL(lazy_with("lazy=on", "EAGER"), 1);
    CHECK_EQUAL(lazy_with("lazy=off", NULL), 0);
}

static void badSettingsAreRefused(void) {
    static const char *bad[] = {"devices=17",
                                "devices=-1",
                                "memory=1XB",
                                "nonsense=1",
                                "slice=0",
                                "devices",
                                "memory=99999999999999999999",
                                "model=",
                                "capability=9",
                                "@/no/such/file",
                                "kernel.=1us",
                                "queue=0",
                                "copy-engines=17",
                                "grain=2GiB",
                                "growth=2"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        emu_settings settings;
        emu_kernel_times times;
        char problem[200] = "";
        CHECK_EQUAL(emu_settings_parse(bad[i], &settings, &times, problem, sizeof problem), -1);
        CHECK(problem[0] != '\0');
    }
}

static const char ptx[] =
    "// a comment with .entry wrong(\n"
    "/* and .visible .entry wrong2() */ .version 7.0 .target sm_52, debug\n.address_size 64\n"
    ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
    ".global .align 4 .b8 table[40] = {1, 2, 3};\n.const .f32 factor = 0f3F800000;\n"
    ".visible .entry first(.param .u64 p, .param .u32 q, .param .align 8 .b8 s[24])\n"
    ".maxntid 128, 2, 1\n{ .reg .b64 %rd<4>; { mov.v2.u32 {%r1, %r2}, 1; } ret; }\n"
    ".func helper() { .entry_like; ret; }\n"
    ".entry second\n()\n{ bra L; L: ret; }\n.file 1 \"a } .entry b\"\n";

static int seen;

static bool is_named(const emu_ptx_item *item, const char *name) {
    return strlen(name) == item->name_length && memcmp(name, item->name, item->name_length) == 0;
}

static bool visit(const emu_ptx_item *item, void *data) {
    (void)data;
    if (is_named(item, "first")) {
        CHECK_EQUAL(item->param_count, 3);
        CHECK_EQUAL(item->param_offset[1], 8);
        CHECK_EQUAL(item->param_size[1], 4);
        CHECK_EQUAL(item->param_offset[2], 16);
        CHECK_EQUAL(item->param_size[2], 24);
        CHECK_EQUAL(item->max_threads, 256);
        seen |= 1;
    } else if (is_named(item, "second")) {
        CHECK_EQUAL(item->param_count, 0);
        seen |= 2;
    } else if (is_named(item, "table")) {
        CHECK_EQUAL(item->kind, EMU_PTX_VARIABLE);
        CHECK_EQUAL(item->bytes, 40);
        seen |= 4;
    } else if (is_named(item, "factor")) {
        CHECK_EQUAL(item->bytes, 4);
        seen |= 8;
    } else {
        CHECK(!"an item that is none");
    }
    return true;
}

static void ptxIsRead(void) {
    CHECK(emu_ptx_read(ptx, visit, NULL));
    CHECK_EQUAL(seen, 15);
    CHECK(!emu_ptx_is_text("\x7f"
                           "ELF"));
    CHECK(!emu_ptx_read("", visit, NULL));
}

static bool ignore(const emu_ptx_item *item, void *data) {
    (void)item;
    (void)data;
    return true;
}

/* PTX that is cut off anywhere or has changed bytes: the reader must not read past its end (checked by the
 * sanitizers). */
static void brokenPtxDoesNoHarm(void) {
    char *copy = malloc(sizeof ptx);
    srand(test_seed());
    for (size_t length = 0; length < sizeof ptx; length++) {
        char *cut = malloc(length + 1);
        memcpy(cut, ptx, length);
        cut[length] = '\0';
        emu_ptx_read(cut, ignore, NULL);
        free(cut);
        memcpy(copy, ptx, sizeof ptx);
        copy[rand() % (int)(sizeof ptx - 1)] = (char)(1 + rand() % 255);
        emu_ptx_read(copy, ignore, NULL);
    }
    free(copy);
}

enum { LIVE = 400 };

static void heapNeverHandsOutTheSameTwice(void) {
    static struct {
        uint64_t start;
        uint64_t bytes;
    } live[LIVE];
    emu_heap heap;
    CHECK(emu_heap_open(&heap, UINT64_C(1) << 30));
    srand(test_seed());
    for (int round = 0; round < 40000; round++) {
        int i = rand() % LIVE;
        uint64_t start = 0;
        if (live[i].bytes != 0) {
            emu_block *block =
                emu_heap_find(&heap, live[i].start + (uint64_t)rand() % live[i].bytes, &start);
            CHECK(block != NULL && start == live[i].start && block->bytes == live[i].bytes);
            emu_heap_free(&heap, live[i].start);
            CHECK(emu_heap_find(&heap, live[i].start, &start) == NULL);
            live[i].bytes = 0;
            continue;
        }
        uint64_t bytes = 1 + (uint64_t)(rand() % (rand() % 10 == 0 ? 4000000 : 5000));
        uint64_t align = rand() % 3 == 0 ? UINT64_C(2) << 20 : 0;
        uint64_t at = emu_heap_allocate(&heap, bytes, align);
        CHECK(at != 0 && at % EMU_GRANULE == 0 && (align == 0 || (at - heap.base) % align == 0));
        for (int j = 0; j < LIVE; j++) {
            CHECK(live[j].bytes == 0 || at + bytes <= live[j].start ||
                  live[j].start + live[j].bytes <= at);
        }
        live[i].start = at;
        live[i].bytes = bytes;
    }
    for (int i = 0; i < LIVE; i++) {
        if (live[i].bytes != 0) {
            emu_heap_free(&heap, live[i].start);
        }
    }
    uint64_t start = 0;
    CHECK(emu_heap_next(&heap, 0, &start) == NULL);
    CHECK(emu_heap_allocate(&heap, UINT64_C(1) << 30, 0) != 0); /* in one piece again */
    emu_heap_close(&heap);
}

/* A program that only sees CUDA_ERROR_UNKNOWN would not know what to correct. */
static void aWrongSettingIsToldOnce(void) {
    static const char expected[] =
        "vgpu emulator: unknown setting or value out of range: name=gpus value=1\n";
    char told[400] = "";
    int to[2];
    CHECK_EQUAL(pipe(to), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(to[1], 2);
        setenv("VGPU_EMULATOR", "gpus=1", 1);
        unsetenv("VGPU_EMULATOR_LOG");
        _exit(cuInit(0) != 0 && cuInit(0) != 0 ? 0 : 1);
    }
    close(to[1]);
    size_t size = 0;
    ssize_t more = 0;
    while ((more = read(to[0], told + size, sizeof told - 1 - size)) > 0) {
        size += (size_t)more;
    }
    close(to[0]);
    int status = 0;
    CHECK_EQUAL(waitpid(pid, &status, 0), pid);
    CHECK_EQUAL(status, 0);
    CHECK_EQUAL(strcmp(told, expected), 0);
}

int main(void) {
    settingsAreRead();
    aWrongSettingIsToldOnce();
    anIntegratedGpuHasTheHostsMemory();
    loadingIsLazyUnlessToldOtherwise();
    badSettingsAreRefused();
    ptxIsRead();
    brokenPtxDoesNoHarm();
    heapNeverHandsOutTheSameTwice();
    return check_failures == 0 ? 0 : 1;
}
