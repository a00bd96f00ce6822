#ifndef VGPU_PAGES_H
#define VGPU_PAGES_H

/* Serves requests from the input until it ends; the exit code. */
int serve_pages(void);

#endif
