/* Declarations shared by the parts of the stub driver. */
#ifndef VGPU_STUB_PARTS_H
#define VGPU_STUB_PARTS_H

#include <pthread.h>

#include "../../main/c/region/cuda_abi.h"

#define API __attribute__((visibility("default"))) abi_result

extern pthread_mutex_t stub_lock; /* guards all state shared by threads */

/* stub_work.c; stub_driver.c looks these up by name. */
abi_result cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                          unsigned bz, unsigned shared_bytes, CUstream stream, void **params, void **extra);
abi_result cuLaunchKernel_ptsz(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                               unsigned bz, unsigned shared_bytes, CUstream stream, void **params, void **extra);
abi_result cuStreamSynchronize(CUstream stream);
abi_result cuStreamSynchronize_ptsz(CUstream stream);

/* The calling thread's context, or NULL. */
CUcontext stub_current(void);

/* Aborts if the driver has ended, as a real driver may. */
void stub_must_live(void);

#endif
