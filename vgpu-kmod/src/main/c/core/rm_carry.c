// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* The driver's calls of a turn. */
#include "rm_turn.h"

/* NV2080_CTRL_FIFO_DISABLE_CHANNELS_PARAMS. */
enum { DISABLE_COUNT_AT = 4, DISABLE_CLIENTS_AT = 24, DISABLE_CHANNELS_AT = 280 };

static int vgpu__set_channels(const struct vgpu_rm_turn *turn, uint32_t from, uint32_t count, vgpu_rm_control *control,
                              void *self) {
  unsigned char params[RM_DISABLE_SIZE] = {turn->disable != 0};
  __builtin_memcpy(params + DISABLE_COUNT_AT, &count, sizeof count);
  for (uint32_t i = 0; i < count; i++) {
    __builtin_memcpy(params + DISABLE_CLIENTS_AT + 4 * i, &turn->client, sizeof turn->client);
    __builtin_memcpy(params + DISABLE_CHANNELS_AT + 4 * i, &turn->channels[from + i], sizeof *turn->channels);
  }
  return control(self, turn->client, turn->subdevice, RM_DISABLE_CHANNELS, params, sizeof params) == RM_OK;
}

void vgpu__turn_carry_out(struct vgpu_rm_turn *turn, vgpu_rm_control *control, void *self, uint32_t schedule_size) {
  const unsigned char schedule[4] = {turn->enable != 0};
  const uint64_t slice = turn->slice_us;
  turn->failed = turn->unlevelled = control == NULL;
  turn->refused = ~(uint64_t)0;
  if (control == NULL) return;
  if (slice != 0) {
    turn->failed = control(self, turn->client, turn->group, RM_GROUP_SET_TIMESLICE, &slice, sizeof slice) != RM_OK;
  }
  if (turn->levels) {
    turn->unlevelled = control(self, turn->client, turn->group, RM_GROUP_SET_INTERLEAVE, &turn->level,
                               sizeof turn->level) != RM_OK;
  }
  if (slice != 0 || turn->levels) return;
  /* First, because it may enable channels that the tenant has disabled. */
  if (turn->schedules) {
    turn->failed = control(self, turn->client, turn->group, RM_GROUP_SCHEDULE, schedule, schedule_size) != RM_OK;
  }
  if (turn->count == 0 || turn->subdevice == 0) return;
  if (vgpu__set_channels(turn, 0, turn->count, control, self)) {
    turn->refused = 0;
    return;
  }
  for (uint32_t i = 0; i < turn->count && turn->count > 1; i++) {
    if (vgpu__set_channels(turn, i, 1, control, self)) turn->refused &= ~((uint64_t)1 << i);
  }
}
