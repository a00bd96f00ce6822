/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The module's tracepoints: events/vgpu_kmod of tracefs. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM vgpu_kmod

#if !defined(VGPU_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define VGPU_TRACE_H

#include <linux/tracepoint.h>

#include "vgpu_kmod.h"

/* Laid out as the kernel does it. */
/* clang-format off */

/* A tenant's call that allocated memory, or that the module answered itself. */
TRACE_EVENT(vgpu_call,
	TP_PROTO(const struct vgpu_rm_tenant *tenant, const struct vgpu_rm_call *call, u32 status, u64 bytes),
	TP_ARGS(tenant, call, status, bytes),
	TP_STRUCT__entry(
		__field(u64, cgroup)
		__field(u64, bytes)
		__field(u64, used)
		__field(u64, limit)
		__field(u32, number)
		__field(u32, what)
		__field(u32, status)
	),
	TP_fast_assign(
		__entry->cgroup = tenant->key;
		__entry->bytes = bytes;
		__entry->used = tenant->used;
		__entry->limit = tenant->limit;
		__entry->number = call->number;
		__entry->what = call->kind == RM_KIND_CONTROL ? call->command : call->class_number;
		__entry->status = status;
	),
	TP_printk("cgroup=%llu ioctl=0x%x what=0x%x status=0x%x bytes=%llu used=%llu limit=%llu",
		  (unsigned long long)__entry->cgroup, __entry->number, __entry->what, __entry->status,
		  (unsigned long long)__entry->bytes, (unsigned long long)__entry->used,
		  (unsigned long long)__entry->limit)
);

/* Calls that the module made for a channel group. `refused`: a bit for each of the channels. */
TRACE_EVENT(vgpu_turn,
	TP_PROTO(const struct vgpu_rm_turn *turn),
	TP_ARGS(turn),
	TP_STRUCT__entry(
		__field(u64, refused)
		__field(u32, client)
		__field(u32, group)
		__field(u32, slice_us)
		__field(s32, level)
		__field(u32, channels)
		__field(bool, stops)
		__field(bool, disable)
		__field(bool, schedules)
		__field(bool, enable)
		__field(bool, failed)
	),
	TP_fast_assign(
		__entry->client = turn->client;
		__entry->group = turn->group;
		__entry->slice_us = turn->slice_us;
		__entry->level = turn->levels ? (s32)turn->level : -1;
		__entry->channels = turn->count;
		__entry->stops = turn->stops;
		__entry->disable = turn->disable;
		__entry->schedules = turn->schedules;
		__entry->enable = turn->enable;
		__entry->refused = turn->count ? turn->refused & (~0ULL >> (64 - turn->count)) : 0;
		__entry->failed = turn->failed || (turn->levels && turn->unlevelled) || __entry->refused;
	),
	TP_printk("client=0x%x group=0x%x %s slice_us=%u level=%d channels=%u disable=%d refused=0x%llx schedule=%s failed=%d",
		  __entry->client, __entry->group,
		  __entry->slice_us || __entry->level >= 0 ? "weighs" : __entry->stops ? "stops" : "gives-back",
		  __entry->slice_us, __entry->level, __entry->channels, __entry->disable, (unsigned long long)__entry->refused,
		  !__entry->schedules ? "none" : __entry->enable ? "on" : "off", __entry->failed)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
