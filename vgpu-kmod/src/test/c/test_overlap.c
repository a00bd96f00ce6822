/* The core on the model of the resource manager: calls that overlap. The driver holds no more than the ledger says. */
#include "test_core.h"

static void nested(void (*meanwhile)(void)) { bed_meanwhile = meanwhile; }
void keep_and(void (*then)(void)) {
  unsigned char kept[4096];
  memcpy(kept, arena + CALL, sizeof kept); /* the outer call's arguments belong to its own thread */
  then();
  memcpy(arena + CALL, kept, sizeof kept);
}

static void free_client(void) { CHECK(do_free(&one, fd, client, client) == RM_OK); }
static void meanwhile_free_client(void) { keep_and(free_client); }
static void free_and_take_seven(void) {
  CHECK(do_free(&one, fd, client, 7) == RM_OK);
  put64(PARAMS + 64, 0);
  CHECK(take(&one, fd, client, 7, 8 * MIB) == RM_OK);
}
static void meanwhile_free_and_take(void) { keep_and(free_and_take_seven); }
static void new_device_and_take(void) {
  CHECK(do_alloc(&one, fd, (struct alloc){.client = client, .parent = client, .handle = DEVICE, .class_number = 0x80},
                 NULL) == RM_OK);
  CHECK(take(&one, fd, client, 7, 8 * MIB) == RM_OK);
}
static void meanwhile_new_device(void) { keep_and(new_device_and_take); }
static void take_seven(void) { CHECK(take(&one, fd, client, 7, 8 * MIB) == RM_OK); }
static void meanwhile_take_seven(void) { keep_and(take_seven); }

static void lower_the_limit(void) { tenants[1]->limit = MIB; }

void test_overlapping_calls(void) {
  begin(20 * MIB);
  nested(lower_the_limit);
  CHECK(take(&one, fd, client, 7, 4 * MIB) == RM_OK && used(1) == 4 * MIB); /* what was admitted stays */
  CHECK(take(&one, fd, client, 8, 1) == RM_NO_MEMORY);
  end();

  begin(20 * MIB);
  nested(meanwhile_free_client);
  CHECK(take(&one, fd, client, 7, 4 * MIB) == RM_OK);
  CHECK(rm.held[1] == 0 && used(1) <= 4 * MIB); /* may be too high until the file is closed */
  end();

  begin(20 * MIB);
  nested(meanwhile_free_and_take);
  CHECK(take(&one, fd, client, 7, 4096) == RM_OK);
  CHECK(rm.held[1] == 8 * MIB && used(1) >= 8 * MIB);
  end();

  begin(20 * MIB);
  nested(meanwhile_new_device);
  CHECK(do_free(&one, fd, client, DEVICE) == RM_OK);
  CHECK(rm.held[1] == 8 * MIB && used(1) >= 8 * MIB);
  end();

  begin(20 * MIB);
  CHECK(take(&one, fd, client, 7, 4096) == RM_OK);
  nested(meanwhile_take_seven);
  CHECK(do_free(&one, fd, client, 7) == RM_OK);
  CHECK(rm.held[1] == 8 * MIB && used(1) >= 8 * MIB);
  CHECK(do_free(&one, fd, client, 7) == RM_OK && used(1) == 0);
  end();
}
