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

static int card, late;
static uint32_t second;
static void tie_card(void) { CHECK(do_register(&one, card, late) == 0); }
static void between_tie_card(void) { keep_and(tie_card); }
static void use_card(void) {
  second = new_client(&one, card);
  CHECK(take(&one, late, second, 7, MIB) == RM_OK);
}
static void meanwhile_use_card(void) { keep_and(use_card); }
static void tie_and_use_card(void) {
  bed_meanwhile = meanwhile_use_card;
  tie_card();
}
static void between_tie_and_use_card(void) { keep_and(tie_and_use_card); }

/* Two calls tie the same file. The driver executes the second one first, and refuses the first one. */
static void tie_twice(void (*between)(void), int first) {
  begin(20 * MIB);
  card = bed_open(&one, 0);
  late = bed_open(&one, 1);
  bed_between = between;
  CHECK(do_register(&one, card, first == 0 ? late : fd) != 0);
  if (between == between_tie_card) use_card();
  CHECK(vgpu__file_owner(&book, one.files[card]->id) == one.files[late]->id && used(1) == MIB);
  bed_close(&one, card); /* the client belongs to the other file, which stays open */
  CHECK(rm.held[1] == MIB && used(1) == MIB);
  CHECK(do_free(&one, late, second, 7) == RM_OK && rm.held[1] == 0);
  /* Too high where the client was used before its file was known. */
  CHECK(used(1) == 0 || (between == between_tie_and_use_card && first == 1));
  end();
}

void test_overlapping_ties(void) {
  tie_twice(between_tie_card, 0);
  tie_twice(between_tie_card, 1);
  tie_twice(between_tie_and_use_card, 0);
  tie_twice(between_tie_and_use_card, 1);

  begin(20 * MIB);
  card = bed_open(&one, 0);
  late = bed_open(&one, 1);
  memcpy(arena + 64, &late, sizeof late); /* an answer that cannot be written, although it is done */
  CHECK(bed_ioctl(&one, card, vgpu__rm_word(RM_REGISTER_FD, 4), bed_at(64)) == VGPU_RM_FAULT);
  use_card();
  bed_close(&one, card);
  CHECK(rm.held[1] == MIB && used(1) == MIB);
  end();
}

/* ---- duplicates ---- */

static uint32_t source; /* its handle */

static void duplicate(void) { CHECK(do_dup(&one, fd, second, DEVICE, 9, client, source) == RM_OK); }
static void meanwhile_duplicate(void) { keep_and(duplicate); }
static void meanwhile_duplicate_what_was_made(void) {
  source = get32(CALL + 8);
  keep_and(duplicate);
}
static void duplicate_the_duplicate(void) { CHECK(do_dup(&one, fd, second, DEVICE, 10, second, 9) == RM_OK); }
static void meanwhile_duplicate_the_duplicate(void) { keep_and(duplicate_the_duplicate); }
static void replace_seven(void) {
  CHECK(do_free(&one, fd, client, 7) == RM_OK && take(&one, fd, client, 7, 8 * MIB) == RM_OK);
}
static void between_replace_seven(void) { keep_and(replace_seven); }
static void replace_seven_at_choice(void) {
  uint32_t made = 0;
  struct alloc what = {.client = client, .parent = DEVICE, .class_number = 0x40, .bytes = 8 * MIB};
  CHECK(do_free(&one, fd, client, source) == RM_OK);
  rm.next_handle = (source & 0xfffff) - 1;
  CHECK(do_alloc(&one, fd, what, &made) == RM_OK && made == source);
}
static void between_replace_seven_at_choice(void) { keep_and(replace_seven_at_choice); }
static void begin_duplicates(void) {
  begin(20 * MIB);
  second = new_client(&one, fd);
  source = 7;
}

/* Frees the source: the duplicate holds its memory. Only the tenant's end gives back what is not known to be held. */
static void end_duplicates(void) {
  CHECK(do_free(&one, fd, client, source) == RM_OK && rm.held[1] == 8 * MIB && used(1) >= rm.held[1]);
  CHECK(do_free(&one, fd, client, client) == RM_OK && rm.held[1] == 8 * MIB && used(1) >= rm.held[1]);
  CHECK(take(&one, fd, second, 11, 13 * MIB) == RM_NO_MEMORY);
  bed_exit(&one);
  CHECK(used(1) == 0 && tenants[1]->kept == NULL);
  end();
}

void test_duplicates_of_what_is_being_made(void) {
  begin_duplicates();
  nested(meanwhile_duplicate); /* an ALLOC is executed, and not settled */
  CHECK(take(&one, fd, client, 7, 8 * MIB) == RM_OK);
  end_duplicates();

  begin_duplicates();
  nested(meanwhile_duplicate_what_was_made); /* with a handle of the driver's choice */
  CHECK(take(&one, fd, client, 0, 8 * MIB) == RM_OK);
  end_duplicates();

  begin_duplicates(); /* the ALLOC comes in the DUP */
  CHECK(take(&one, fd, client, 7, MIB) == RM_OK);
  bed_between = between_replace_seven;
  duplicate();
  end_duplicates();

  begin_duplicates();
  CHECK(take(&one, fd, client, 0, MIB) == RM_OK);
  source = get32(CALL + 8);
  bed_between = between_replace_seven_at_choice;
  duplicate();
  end_duplicates();

  begin_duplicates(); /* a duplicate of a duplicate */
  CHECK(take(&one, fd, client, 7, 8 * MIB) == RM_OK);
  nested(meanwhile_duplicate_the_duplicate);
  duplicate();
  CHECK(do_free(&one, fd, second, 9) == RM_OK);
  end_duplicates();

  begin_duplicates(); /* beside another allocation, nothing stays */
  CHECK(take(&one, fd, client, 7, MIB) == RM_OK);
  nested(meanwhile_duplicate);
  CHECK(take(&one, fd, client, 0, 8 * MIB) == RM_OK && do_free(&one, fd, client, get32(CALL + 8)) == RM_OK);
  CHECK(used(1) == MIB && do_free(&one, fd, client, 7) == RM_OK && do_free(&one, fd, second, 9) == RM_OK);
  CHECK(used(1) == 0);
  end();
}

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
