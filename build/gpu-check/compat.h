/*
 * Included before everything (cc -include) in the programs of the bundle: binds what moved in newer C libraries to its
 * oldest version, so that a program built here runs with glibc 2.17.
 */
#ifndef VGPU_BUNDLE_COMPAT_H
#define VGPU_BUNDLE_COMPAT_H

#ifndef __ASSEMBLER__
#ifdef __aarch64__ /* glibc begins with 2.17 there */
#define VGPU_OLD(name, version) __asm__(".symver " #name "," #name "@GLIBC_2.17")
#define VGPU_STAT_VERSION 0
#else
#define VGPU_OLD(name, version) __asm__(".symver " #name "," #name "@GLIBC_" version)
#define VGPU_STAT_VERSION 1
#endif
VGPU_OLD(dlopen, "2.2.5");
VGPU_OLD(dlsym, "2.2.5");
VGPU_OLD(dlerror, "2.2.5");
VGPU_OLD(dladdr, "2.2.5");
VGPU_OLD(dlinfo, "2.3.3");
VGPU_OLD(log, "2.2.5");
VGPU_OLD(pow, "2.2.5");
VGPU_OLD(exp, "2.2.5");
VGPU_OLD(pthread_create, "2.2.5");
VGPU_OLD(pthread_join, "2.2.5");
VGPU_OLD(pthread_detach, "2.2.5");
VGPU_OLD(pthread_once, "2.2.5");
VGPU_OLD(pthread_rwlock_rdlock, "2.2.5");
VGPU_OLD(pthread_rwlock_wrlock, "2.2.5");
VGPU_OLD(pthread_rwlock_unlock, "2.2.5");

/* Before 2.33 these were no functions of the library. */
#include <sys/stat.h>
int __fxstat(int version, int file, struct stat *into);
int __xstat(int version, const char *path, struct stat *into);
VGPU_OLD(__fxstat, "2.2.5");
VGPU_OLD(__xstat, "2.2.5");
#define fstat(file, into) __fxstat(VGPU_STAT_VERSION, file, into)
#define stat(path, into) __xstat(VGPU_STAT_VERSION, path, into)
#endif

#endif
