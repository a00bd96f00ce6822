/* Redirecting one import of one library: redirect.c. */
#ifndef VGPU_REDIRECT_H
#define VGPU_REDIRECT_H

/*
 * Makes the library behind a handle of dlopen call `to` where it calls its import `name`. *next: what it called before. 0, or -1
 * if it has no such import, or that cannot be written. Nobody else's imports are touched.
 */
int vgpu__redirect(void *handle, const char *name, void *to, void **next);

#endif
