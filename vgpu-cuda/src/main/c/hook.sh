# Sourced by build.sh, and by build/mutate/c.sh: how the hook is compiled and linked. The caller sets hook, the directory
# of this file.
# shellcheck shell=sh disable=SC2034,SC2154

hook_warnings='-Wall -Wextra -Wpedantic -Wconversion -Werror'
hook_flags="-std=c11 -O2 -fvisibility=hidden -fPIC -pthread -fno-math-errno -fno-plt -ftls-model=initial-exec"
# <core/...> is the core of the kernel module, whose decoding of the driver's calls the hook shares.
hook_flags="$hook_flags -include $hook/system/compat.h -I$hook/../shm -I$hook/../../../../vgpu-kmod/src/main/c"
hook_link='-Wl,-soname,libcuda.so.1 -Wl,-z,defs,-z,relro,-z,now,-z,nodelete,-z,noexecstack -Wl,--build-id=none'

# Prints the names that the hook exports, as a version script of the linker.
hook_exports() {
  echo '{ global:'
  sed -n 's/^\(PASS\|HANDLED\|SYNC_WORK\|ASYNC_WORK\)(\([A-Za-z0-9_]*\).*/  \2;/p' "$hook/../shm/vgpu_hooks.def"
  echo '  dlopen; dlmopen; vgpu_attach; vgpu_hook_version; vgpu_tenant_add; vgpu_tenant_bind; vgpu_tenant_drop;'
  echo 'local: *; };'
}
