/*
 * A program of test_memory.c that calls every function in vgpu_hooks.def that allocates, frees, starts work or waits,
 * with one wrong argument at a time: each pointer NULL; each size 0, 2^63 and the greatest; each handle a foreign one.
 * Its output is compared with that of the driver alone. Under the hook the ledger is compared with the driver's account
 * after each call.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory_test.h"

enum { MOST = 16, SCRATCH = 8192 };
enum kind {
  KIND_INT,
  KIND_SIZE,
  KIND_ADDRESS,
  KIND_PLACE,
  KIND_CALLED,
  KIND_STREAMS,
  KIND_OTHER,
  KIND_COUNT,
  KIND_FIXED
};

static const struct {
  const char *name, *class, *params;
} rows[] = {
#define PASS(name, class, since)
#define HANDLED(name, class, symbol, since, thread, params) {#name, #class, #params},
#define SYNC_WORK(name, symbol, since, thread, params, args) {#name, "WORK", #params},
#define ASYNC_WORK(name, symbol, since, thread, params, args) {#name, "WORK", #params},
#include "vgpu_hooks.def"
#undef HANDLED
#undef SYNC_WORK
#undef ASYNC_WORK
#undef PASS
};

static _Alignas(64) char scratch[SCRATCH];
static int hooked, calls;

static abi_result called(void) { return ABI_SUCCESS; }

static enum kind kind_of(const char *text) {
  if (strstr(text, "(*") != NULL) return KIND_CALLED;
  if (strstr(text, "count") != NULL) return KIND_COUNT;
  if (strchr(text, '*') != NULL) return KIND_PLACE;
  if (strstr(text, "CUstream ") != NULL) return KIND_STREAMS;
  if (strstr(text, "CUdeviceptr ") != NULL || strstr(text, "uint64_t ") != NULL) return KIND_ADDRESS;
  if (strstr(text, "size_t ") != NULL) return KIND_SIZE;
  if (strstr(text, "CUarray ") != NULL || strstr(text, "CUmipmappedArray ") != NULL ||
      strstr(text, "CUcontext ") != NULL || strstr(text, "CUmemoryPool ") != NULL ||
      strstr(text, "CUgraphExec ") != NULL || strstr(text, "CUfunction ") != NULL || strstr(text, "CUevent ") != NULL) {
    return KIND_OTHER;
  }
  return KIND_INT;
}

/* Parses "(type name, ...)"; function types contain commas of their own. */
static int parse(const char *params, enum kind *kinds) {
  char one[256];
  int depth = 0, count = 0;
  size_t used = 0;
  if (strcmp(params, "(void)") == 0) return 0;
  for (const char *at = params + 1; *at != '\0'; at++) {
    int ends = depth == 0 && (*at == ',' || *at == ')');
    if (ends) {
      one[used] = '\0';
      kinds[count++] = kind_of(one);
      used = 0;
    } else {
      depth += (*at == '(') - (*at == ')');
      one[used++] = *at;
    }
  }
  return count;
}

/* The hook refuses an impossible size first, where the driver may report another wrong argument. */
static const char *code(abi_result result, int is_huge) {
  static char text[16];
  if (is_huge && (result == ABI_INVALID_VALUE || result == ABI_OUT_OF_MEMORY)) return "refused";
  snprintf(text, sizeof text, "%d", result);
  return text;
}

static void call(const char *name, const char *what, int which, void *found, const uint64_t *a) {
  abi_result (*function)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                         uint64_t, uint64_t, uint64_t);
  memcpy(&function, &found, sizeof function);
  if (getenv("TEST_LOUD") != NULL) fprintf(stderr, "inputs %s %d %s\n", name, which, what);
  memset(scratch, 0, sizeof scratch);
  abi_result result = function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11]);
  if (getenv("TEST_SELF") == NULL) printf("%s %d %s: %s\n", name, which, what, code(result, a[which] > UINT64_MAX / 4));
  calls++;
  CU(cuCtxSetCurrent, context);
  if (hooked)
    CHECK(ledger_bytes() == real_bytes(), "%s %d %s: charged %lld, given %lld", name, which, what,
          (long long)ledger_bytes(), (long long)real_bytes());
}

static const struct wrong {
  const char *name;
  uint64_t value;
  unsigned kinds;
} wrongs[] = {
#define ONE(kind) (1u << (kind))
    {"NULL", 0, ONE(KIND_PLACE) | ONE(KIND_ADDRESS) | ONE(KIND_OTHER) | ONE(KIND_CALLED)},
    {"zero", 0, ONE(KIND_SIZE)},
    {"2^63", 1ull << 63, ONE(KIND_SIZE) | ONE(KIND_ADDRESS)},
    {"greatest", UINT64_MAX, ONE(KIND_SIZE) | ONE(KIND_ADDRESS)},
    {"unit above", UINT64_MAX - 255, ONE(KIND_SIZE)},
    {"foreign", 0x1230, ONE(KIND_ADDRESS) | ONE(KIND_OTHER) | ONE(KIND_STREAMS)},
};

static void try_all(const char *name, void *found, const enum kind *kinds, int count, uint64_t small) {
  CUdeviceptr memory = 0;
  char label[64];
  uint64_t fine[MOST] = {0}, with[MOST];
  CU(cuCtxSetCurrent, context);
  CHECK(CU(cuMemAlloc_v2, &memory, (size_t)65536) == ABI_SUCCESS, "%s: memory to work with", name);
  for (int i = 0; i < count; i++) {
    static const uint64_t values[] = {[KIND_SIZE] = 64, [KIND_OTHER] = 0, [KIND_STREAMS] = 0};
    fine[i] = kinds[i] == KIND_ADDRESS || kinds[i] == KIND_FIXED ? memory
              : kinds[i] == KIND_PLACE                           ? (uint64_t)(uintptr_t)scratch + 512u * (unsigned)i
              : kinds[i] == KIND_CALLED                          ? (uint64_t)(uintptr_t)&called
              : kinds[i] == KIND_INT                             ? small
              : kinds[i] == KIND_OTHER                           ? (uint64_t)(uintptr_t)scratch
              : kinds[i] == KIND_COUNT                           ? 0
                                                                 : values[kinds[i]];
  }
  for (int i = 0; i < count; i++) {
    for (size_t j = 0; j < sizeof wrongs / sizeof *wrongs; j++) {
      if ((wrongs[j].kinds >> kinds[i] & 1) == 0) continue;
      memcpy(with, fine, sizeof with);
      with[i] = wrongs[j].value;
      snprintf(label, sizeof label, "%s (%d)", wrongs[j].name, (int)small);
      call(name, label, i, found, with);
    }
  }
  CU(cuMemFree_v2, memory);
}

void role_inputs(void) {
  begin_inexact();
  hooked = dlsym(library, "vgpu_hook_version") != NULL;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const char *name = rows[i].name, *class = rows[i].class;
    void *found = dlsym(library, name);
    enum kind kinds[MOST];
    if (found == NULL || strcmp(class, "QUERY") == 0 || strcmp(class, "PASS") == 0) continue;
    if (strstr(name, "PrimaryCtx") != NULL) continue; /* their only integer is a device */
    int count = parse(rows[i].params, kinds);
    /*
     * In these functions an address may be a host address, and an invalid one faults, with the driver alone too. Of a
     * list, the driver reads as many items as it is told.
     */
    int unified = strcmp(name, "cuMemcpy") == 0 || strcmp(name, "cuMemcpy_ptds") == 0 ||
                  strncmp(name, "cuMemcpyAsync", 13) == 0 || strncmp(name, "cuStreamW", 9) == 0;
    for (int j = 0; j < count && unified; j++) kinds[j] = kinds[j] == KIND_ADDRESS ? KIND_FIXED : kinds[j];
    for (int j = 0; j < count && strstr(name, "Batch") != NULL; j++)
      kinds[j] = kinds[j] == KIND_SIZE ? KIND_COUNT : kinds[j];
    try_all(name, found, kinds, count, 0);
    try_all(name, found, kinds, count, 1);
  }
  fprintf(stderr, "%d calls\n", calls);
  CHECK(calls > 1000, "only %d calls", calls);
}

/* Calls every function of the table with all arguments zero. The codes are compared with those of the driver alone. */
void role_zeros(void) {
  static const char *const names[] = {
#define PASS(name, class, since)
#define HANDLED(name, class, symbol, since, thread, params) #name,
#define SYNC_WORK(name, symbol, since, thread, params, args) #name,
#define ASYNC_WORK(name, symbol, since, thread, params, args) #name,
#include "vgpu_hooks.def"
#undef HANDLED
#undef SYNC_WORK
#undef ASYNC_WORK
#undef PASS
  };
  open_library();
  CHECK(CU(cuInit, 0) == ABI_SUCCESS && CU(cuDevicePrimaryCtxRetain, &context, 0) == ABI_SUCCESS, "begin");
  CU(cuCtxSetCurrent, context);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    void *found = dlsym(library, names[i]);
    if (found == NULL) continue;
    CU(cuCtxSetCurrent, context);
    /* zero is a valid device or context here */
    if (strstr(names[i], "PrimaryCtx") != NULL || strstr(names[i], "CtxSetCurrent") != NULL) continue;
    abi_result (*call)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                       uint64_t, uint64_t, uint64_t);
    memcpy(&call, &found, sizeof call);
    fprintf(stderr, "zeros %s\n", names[i]);
    printf("%s %d\n", names[i], call(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
  }
}
