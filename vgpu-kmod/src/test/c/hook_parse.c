#define vgpu__rm_abi hook__rm_abi
#define vgpu__rm_version hook__rm_version
#include "../../../../vgpu-cuda/src/main/c/region/rm_parse.c"

#include "hook_parse.h"

void hook_parse(unsigned long request, uint64_t argument, uint64_t fields[13]) {
  struct vgpu_rm_call call;
  vgpu__rm_parse(request, argument, &call);
  const uint64_t all[13] = {(uint64_t)call.kind, call.at, call.client, call.parent, call.object, call.class_number,
                            call.command, call.params_size, call.status, call.params, call.status_offset,
                            call.version, 0};
  memcpy(fields, all, sizeof all);
}

int hook_read(void *self, void *into, uint64_t from, size_t size) {
  (void)self;
  return vgpu__peek(into, from, size);
}
