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
/* The first glibc for aarch64 is 2.17: there all of these have this version. */
#if defined(__aarch64__)
#define VGPU_OLD(name) __asm__(".symver " #name "," #name "@GLIBC_2.17")
#define VGPU_NOT_AS_OLD(name) VGPU_OLD(name)
#else
#define VGPU_OLD(name) __asm__(".symver " #name "," #name "@GLIBC_2.2.5")
#define VGPU_NOT_AS_OLD(name) __asm__(".symver " #name "," #name "@GLIBC_2.3.3")
#endif
VGPU_OLD(dlsym);
VGPU_OLD(dladdr);
VGPU_OLD(dlerror);
VGPU_NOT_AS_OLD(dlinfo);
VGPU_NOT_AS_OLD(dladdr1);
VGPU_OLD(dlclose);
VGPU_OLD(pthread_create);
VGPU_OLD(pthread_detach);
VGPU_OLD(pthread_attr_setstacksize);
VGPU_OLD(pthread_attr_setdetachstate);
#endif

#endif
