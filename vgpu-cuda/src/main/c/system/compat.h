/*
 * Included before everything else (gcc -include). Binds symbols that newer C libraries have moved to their oldest
 * version, so that the library loads with glibc 2.17. Disabled under a sanitizer, which must be able to interpose them.
 */
#ifndef VGPU_COMPAT_H
#define VGPU_COMPAT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#if !defined(VGPU_SANITIZED)
#define VGPU_OLD(name) __asm__(".symver " #name "," #name "@GLIBC_2.2.5")
VGPU_OLD(dlsym);
VGPU_OLD(dladdr);
VGPU_OLD(dlerror);
__asm__(".symver dlinfo,dlinfo@GLIBC_2.3.3");
__asm__(".symver dladdr1,dladdr1@GLIBC_2.3.3");
VGPU_OLD(dlclose);
VGPU_OLD(pthread_create);
VGPU_OLD(pthread_detach);
VGPU_OLD(pthread_attr_setstacksize);
VGPU_OLD(pthread_attr_setdetachstate);
#endif

#endif
