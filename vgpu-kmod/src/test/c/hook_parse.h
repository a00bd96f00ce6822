/* The hook's parser of the same calls (vgpu-cuda), under other names. The two parsers must agree. */
#ifndef VGPU_HOOK_PARSE_H
#define VGPU_HOOK_PARSE_H

#include <stddef.h>
#include <stdint.h>

/* kind, at, client, parent, object, class, command, params_size, status, params, status_offset, version, 0 */
void hook_parse(unsigned long request, uint64_t argument, uint64_t fields[13]);
/* Reads memory of this process, as the hook does. */
int hook_read(void *self, void *into, uint64_t from, size_t size);

#endif
