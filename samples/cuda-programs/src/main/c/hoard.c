/*
 * Allocates GPU memory until the driver refuses, in one of four ways, and says how much it got. Linked with the driver.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "program.h"

enum mode { MODE_MALLOC, MODE_ASYNC, MODE_VMM, MODE_MANAGED };

#define MOST_PIECES (1u << 20)

static int binding;
static int mode = MODE_MALLOC;
static uint64_t chunk = 64ull << 20;
static uint64_t least;
static uint64_t limit = 1ull << 50;
static uint64_t ordinal;
static double hold_seconds;
static bool keep;
static bool check;
static bool as_json;

static const struct option_row options[] = {
    {"mode", OPTION_CHOICE, &mode, "malloc,async,vmm,managed", 0, 0, "how memory is allocated"},
    {"chunk", OPTION_SIZE, &chunk, NULL, 1, 1e15, "what is asked for at a time"},
    {"least", OPTION_SIZE, &least, NULL, 0, 1e15, "when refused, ask for half, down to this; 0: stop at once"},
    {"limit", OPTION_SIZE, &limit, NULL, 1, 2e15, "stop after that much, though not refused"},
    {"hold", OPTION_DECIMAL, &hold_seconds, NULL, 0, 1e9, "then hold it for so many seconds"},
    {"check", OPTION_FLAG, &check, NULL, 0, 0, "write all of it first, and see after holding whether it is the same"},
    {"keep", OPTION_FLAG, &keep, NULL, 0, 0, "end without freeing"},
    {"bind", OPTION_CHOICE, &binding, "link," BINDING_CHOICES, 0, 0, "how the driver is reached"},
    {"device", OPTION_COUNT, &ordinal, NULL, 0, 1023, "which GPU"},
    {"json", OPTION_FLAG, &as_json, NULL, 0, 0, "print one JSON object"},
};

struct piece {
  CUdeviceptr pointer;
  size_t bytes;
  CUmemGenericAllocationHandle handle;
};

static struct device device;
static struct piece *pieces;
static size_t piece_count;
static uint64_t held;

static const CUmemAllocationProp *properties(void) {
  static CUmemAllocationProp value;
  value.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  value.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  value.location.id = (int)ordinal;
  return &value;
}

/* Physical memory, mapped into an address range of its own. The size is a multiple of the granularity. */
static CUresult allocate_vmm(struct piece *piece) {
  struct driver *driver = &device.driver;
  CUmemAccessDesc access = {properties()->location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUresult error = driver->cuMemCreate(&piece->handle, piece->bytes, properties(), 0);
  if (error != CUDA_SUCCESS) {
    return error;
  }
  error = driver->cuMemAddressReserve(&piece->pointer, piece->bytes, 0, 0, 0);
  if (error == CUDA_SUCCESS) {
    error = driver->cuMemMap(piece->pointer, piece->bytes, 0, piece->handle, 0);
    if (error == CUDA_SUCCESS) {
      error = driver->cuMemSetAccess(piece->pointer, piece->bytes, &access, 1);
      if (error == CUDA_SUCCESS) {
        return CUDA_SUCCESS;
      }
      driver->cuMemUnmap(piece->pointer, piece->bytes);
    }
    driver->cuMemAddressFree(piece->pointer, piece->bytes);
  }
  driver->cuMemRelease(piece->handle);
  return error;
}

static CUresult allocate(struct piece *piece) {
  struct driver *driver = &device.driver;
  CUresult error;
  switch (mode) {
    case MODE_ASYNC:
      error = driver->cuMemAllocAsync(&piece->pointer, piece->bytes, NULL);
      return error == CUDA_SUCCESS ? driver->cuStreamSynchronize(NULL) : error;
    case MODE_VMM: return allocate_vmm(piece);
    case MODE_MANAGED: return driver->cuMemAllocManaged(&piece->pointer, piece->bytes, CU_MEM_ATTACH_GLOBAL);
    default: return driver->cuMemAlloc(&piece->pointer, piece->bytes);
  }
}

static int release(const struct piece *piece) {
  switch (mode) {
    case MODE_ASYNC: return CALL(&device, cuMemFreeAsync, piece->pointer, NULL);
    case MODE_VMM:
      return CALL(&device, cuMemUnmap, piece->pointer, piece->bytes) +
             CALL(&device, cuMemAddressFree, piece->pointer, piece->bytes) + CALL(&device, cuMemRelease, piece->handle);
    default: return CALL(&device, cuMemFree, piece->pointer);
  }
}

static int check_driver(void) {
  struct driver *driver = &device.driver;
  size_t granularity;
  if ((mode == MODE_ASYNC && (driver->cuMemAllocAsync == NULL || driver->cuStreamSynchronize == NULL)) ||
      (mode == MODE_MANAGED && driver->cuMemAllocManaged == NULL) || driver->cuMemAlloc == NULL) {
    program_error("the driver cannot allocate in this way");
    return 1;
  }
  if (mode != MODE_VMM) {
    return 0;
  }
  if (driver->cuMemCreate == NULL || driver->cuMemRelease == NULL || driver->cuMemAddressReserve == NULL ||
      driver->cuMemAddressFree == NULL || driver->cuMemMap == NULL || driver->cuMemUnmap == NULL ||
      driver->cuMemSetAccess == NULL) {
    program_error("the driver cannot allocate in this way");
    return 1;
  }
  if (CALL(&device, cuMemGetAllocationGranularity, &granularity, properties(), 0) != 0) {
    return 1;
  }
  if (chunk % granularity != 0 || least % granularity != 0) {
    program_error("with vmm, sizes are multiples of %zu bytes", granularity);
    return 2;
  }
  return 0;
}

/* Allocates until refused; returns the refusal, or success at the limit. */
static CUresult fill(void) {
  uint64_t size = chunk;
  CUresult refusal = CUDA_SUCCESS;
  while (!program_stopped() && held < limit && piece_count < MOST_PIECES) {
    struct piece *piece = &pieces[piece_count];
    piece->bytes = (size_t)(limit - held < size ? limit - held : size);
    refusal = allocate(piece);
    if (refusal == CUDA_SUCCESS) {
      held += piece->bytes;
      piece_count++;
    } else if (refusal != CUDA_ERROR_OUT_OF_MEMORY || least == 0 || size / 2 < least) {
      break;
    } else {
      size /= 2;
    }
  }
  return refusal;
}

/* Words that differ from place to place and from piece to piece. */
#define CHECKED_WORDS (1u << 18)
static uint32_t pattern[CHECKED_WORDS];
static uint32_t seen[CHECKED_WORDS];

static void make_pattern(size_t piece) {
  for (uint32_t i = 0; i < CHECKED_WORDS; i++) {
    pattern[i] = (uint32_t)(piece + 1) * 2654435761u + i;
  }
}

/* Writes all memory, or compares all of it with what was written. */
static int each_byte(bool compare) {
  for (size_t p = 0; p < piece_count; p++) {
    make_pattern(p);
    for (size_t at = 0; at < pieces[p].bytes; at += sizeof(pattern)) {
      size_t bytes = pieces[p].bytes - at < sizeof(pattern) ? pieces[p].bytes - at : sizeof(pattern);
      if (!compare) {
        if (CALL(&device, cuMemcpyHtoD, pieces[p].pointer + at, pattern, bytes) != 0) {
          return 1;
        }
      } else if (CALL(&device, cuMemcpyDtoH, seen, pieces[p].pointer + at, bytes) != 0) {
        return 1;
      } else if (memcmp(seen, pattern, bytes) != 0) {
        program_error("memory is not what was written: piece=%zu offset=%zu", p, at);
        return 1;
      }
    }
  }
  return 0;
}

static void print(CUresult refusal, const size_t before[2], const size_t after[2]) {
  const char *reason = refusal == CUDA_SUCCESS ? "none" : driver_error_name(&device.driver, refusal);
  static const char *const modes[] = {"malloc", "async", "vmm", "managed"};
  if (as_json) {
    printf("{\"program\":\"hoard\",\"device\":\"%s\",\"mode\":\"%s\",\"bytes\":%llu,\"allocations\":%zu,", device.name,
           modes[mode], (unsigned long long)held, piece_count);
    printf("\"refusal\":\"%s\",\"refusal_code\":%d,\"free_before\":%zu,\"total_before\":%zu,\"free_after\":%zu,"
           "\"total_after\":%zu}\n",
           reason, refusal, before[0], before[1], after[0], after[1]);
  } else {
    printf("%s: %llu bytes (%.1f MiB) in %zu allocations by %s, then %s\n", device.name, (unsigned long long)held,
           (double)held / (1 << 20), piece_count, modes[mode], refusal == CUDA_SUCCESS ? "stopped unrefused" : reason);
    printf("cuMemGetInfo: %zu of %zu bytes free before, %zu of %zu after\n", before[0], before[1], after[0], after[1]);
  }
  /* Whoever waits for it is told before it holds. */
  fflush(stdout);
}

static int hoard(void) {
  size_t before[2];
  size_t after[2];
  int rc = check_driver();
  if (rc != 0 || CALL(&device, cuMemGetInfo, &before[0], &before[1]) != 0) {
    return rc == 0 ? 1 : rc;
  }
  CUresult refusal = fill();
  if (refusal != CUDA_SUCCESS && refusal != CUDA_ERROR_OUT_OF_MEMORY) {
    rc = device_failed(&device, "allocating", refusal);
  }
  if (CALL(&device, cuMemGetInfo, &after[0], &after[1]) != 0) {
    return 1;
  }
  if (check && rc == 0) {
    rc = each_byte(false);
  }
  print(refusal, before, after);
  sleep_until(now_ns() + (uint64_t)(hold_seconds * 1e9));
  if (check && rc == 0) {
    rc = each_byte(true);
    printf("%s\n", rc == 0 ? "all memory is as it was written" : "memory has changed");
    fflush(stdout);
  }
  while (!keep && piece_count > 0) {
    rc |= release(&pieces[--piece_count]) != 0;
  }
  return rc;
}

int main(int argc, char **argv) {
  program_begin(argc, argv, "Allocates GPU memory until the driver refuses, and says how much it got.", options,
                sizeof(options) / sizeof(options[0]));
  pieces = calloc(MOST_PIECES, sizeof(*pieces));
  if (pieces == NULL) {
    program_error("no memory");
    return 1;
  }
  /* The choice "link" stands first. */
  if (device_open(&device, binding == 0 ? BIND_LINK : (enum binding)(binding - 1), (int)ordinal) != 0) {
    return 1;
  }
  int rc = hoard();
  if (!keep) {
    device_close(&device);
  }
  free(pieces);
  return rc;
}
