#ifndef VGPU_PAGES_H
#define VGPU_PAGES_H

/* Serves requests from standard input until it ends. Returns the exit code. */
int serve_pages(void);

#endif
