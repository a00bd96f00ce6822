/* The core on the model of the resource manager. Usage: test_core [TEST...] */
#include "test_core.h"

struct bed_process one, other, nobody;
int fd, failures;
uint32_t client;

uint64_t used(int tenant) { return tenants[tenant]->used; }

void begin(uint64_t limit) {
  bed_begin(limit);
  one = (struct bed_process){.key = 1, .tag = 1, .number = 101};
  other = (struct bed_process){.key = 2, .tag = 2, .number = 102};
  nobody = (struct bed_process){.number = 103};
  fd = bed_open(&one, 1);
  client = new_client(&one, fd);
}

void end(void) {
  bed_exit(&one);
  bed_exit(&other);
  bed_exit(&nobody);
  bed_end();
}

struct alloc a_group(uint32_t root, uint32_t handle) {
  return (
      struct alloc){.client = root, .parent = DEVICE, .handle = handle, .class_number = RM_CLASS_GROUP, .rights = 1};
}

static const struct {
  const char *name;
  void (*run)(void);
} TESTS[] = {
    {"charged", test_charged},
    {"both-forms", test_both_forms},
    {"rounding-undone", test_rounding_undone},
    {"limits", test_limits},
    {"trees", test_trees},
    {"duplicates", test_duplicates},
    {"tied-files", test_tied_files},
    {"tenant-removed", test_tenant_removed},
    {"params-size-is-not-believed", test_params_size_is_not_believed},
    {"freeing-what-is-not-there", test_freeing_what_is_not_there},
    {"other-bits-of-the-word", test_other_bits_of_the_word},
    {"behind-another-call", test_behind_another_call},
    {"files-never-seen", test_files_never_seen},
    {"answer-cannot-be-written", test_answer_cannot_be_written},
    {"size-of-a-lost-answer", test_size_of_a_lost_answer},
    {"number-taken-over-unseen", test_number_taken_over_unseen},
    {"number-claimed-unseen", test_number_claimed_unseen},
    {"arguments-over-one-another", test_arguments_over_one_another},
    {"arguments-that-change", test_arguments_that_change},
    {"names-that-change", test_names_that_change},
    {"many-clients", test_many_clients},
    {"over-the-limit", test_over_the_limit},
    {"old-forms-of-memory", test_old_forms_of_memory},
    {"handles-of-others", test_handles_of_others},
    {"passed-file", test_passed_file},
    {"tenant-replaced", test_tenant_replaced},
    {"tie-to-a-closed-file", test_tie_to_a_closed_file},
    {"overlapping-calls", test_overlapping_calls},
    {"overlapping-ties", test_overlapping_ties},
    {"duplicates-of-what-is-being-made", test_duplicates_of_what_is_being_made},
    {"filters", test_filters},
    {"weights", test_weights},
    {"reports", test_reports},
    {"turns", test_turns},
    {"refused-stops", test_refused_stops},
    {"channels-of-a-group", test_channels_of_a_group},
    {"new-channels", test_new_channels},
    {"own-requests", test_own_requests},
    {"calls-on-their-way", test_calls_on_their_way},
    {"channels-that-go", test_channels_that_go},
    {"unknown-channel", test_unknown_channel},
    {"unknown-subdevice", test_unknown_subdevice},
    {"random-turns", test_random_turns},
    {"engine", test_engine},
    {"weights-of-tenants", test_weights_of_tenants},
    {"own-slices", test_own_slices},
    {"weights-later", test_weights_later},
    {"weights-refused", test_weights_refused},
    {"weights-of-a-lost-answer", test_weights_of_a_lost_answer},
    {"weights-of-the-last-engine", test_weights_of_the_last_engine},
    {"levels", test_levels},
    {"levels-refused", test_levels_refused},
    {"managed-memory", test_managed_memory},
    {"sizes-shown", test_sizes_shown},
    {"versions", test_versions},
};

int main(int count, char **names) {
  for (size_t i = 0; i < sizeof TESTS / sizeof *TESTS; i++) {
    int wanted = count == 1, before = failures;
    for (int j = 1; j < count; j++) wanted |= strcmp(names[j], TESTS[i].name) == 0;
    if (!wanted) continue;
    TESTS[i].run();
    if (failures == before) printf("ok   %s\n", TESTS[i].name);
    fflush(stdout);
  }
  return failures != 0;
}
