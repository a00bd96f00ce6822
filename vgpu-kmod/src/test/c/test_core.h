/* What the tests of the core share: test_core.c. */
#ifndef VGPU_TEST_CORE_H
#define VGPU_TEST_CORE_H

#include "bed.h"

#include "calls.h"
#include "check.h"

#include "../../main/c/core/rm_turn.h"

extern struct bed_process one, other, nobody;
extern int fd; /* of `one` */
extern uint32_t client;
extern int failures;

uint64_t used(int tenant);
void begin(uint64_t limit);
void end(void);
struct alloc a_group(uint32_t root, uint32_t handle); /* a channel group */
void keep_and(void (*then)(void));                    /* a call within a call, whose arguments it keeps */

/* test_turns.c */
uint32_t schedule(struct bed_process *process, int file, uint32_t root, uint32_t group, unsigned char on);
/* Does what the kernel's worker does, until there is nothing more to do. */
int carry_turns_out(void);
/* Runs once, before the driver executes a call of the worker. */
extern void (*before_driver)(void);
void test_turns(void);
void test_refused_stops(void);
void test_channels_of_a_group(void);
void test_new_channels(void);
void test_own_requests(void);
void test_calls_on_their_way(void);
void test_channels_that_go(void);
void test_unknown_channel(void);
void test_unknown_subdevice(void);

/* test_turns_random.c */
void test_random_turns(void);

/* test_charge.c */
void test_charged(void);
void test_both_forms(void);
void test_rounding_undone(void);
void test_limits(void);
void test_trees(void);
void test_duplicates(void);
void test_tied_files(void);
void test_tenant_removed(void);
void test_params_size_is_not_believed(void);
void test_freeing_what_is_not_there(void);
void test_other_bits_of_the_word(void);
void test_behind_another_call(void);
void test_files_never_seen(void);
void test_managed_memory(void);

/* test_hostile.c */
void test_answer_cannot_be_written(void);
void test_size_of_a_lost_answer(void);
void test_number_taken_over_unseen(void);
void test_number_claimed_unseen(void);
void test_arguments_over_one_another(void);
void test_arguments_that_change(void);
void test_names_that_change(void);
void test_over_the_limit(void);
void test_many_clients(void);
void test_old_forms_of_memory(void);
void test_handles_of_others(void);
void test_passed_file(void);
void test_tenant_replaced(void);
void test_tie_to_a_closed_file(void);

/* test_overlap.c */
void test_overlapping_calls(void);
void test_overlapping_ties(void);
void test_duplicates_of_what_is_being_made(void);

/* test_shares.c */
void test_filters(void);
void test_weights(void);
void test_reports(void);
void test_engine(void);
void test_weights_of_tenants(void);
void test_own_slices(void);
void test_weights_later(void);
void test_weights_refused(void);
void test_weights_of_a_lost_answer(void);
void test_weights_of_the_last_engine(void);
void test_levels(void);
void test_levels_refused(void);
void test_sizes_shown(void);
void test_versions(void);

#endif
