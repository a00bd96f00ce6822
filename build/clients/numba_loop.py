"""The driver layer of Numba, with kernels in a loop. Usage: numba_loop.py FILE.ptx"""

import ctypes
import sys

import numpy as np
from numba.cuda.cudadrv import devices, driver
from numba.cuda.cudadrv.driver import CudaAPIError

import loop

OUT_OF_MEMORY = 2


class Gpu:
    def __init__(self, ptx):
        self.context = devices.get_context(0)
        with open(ptx, "rb") as text:
            self.module = self.context.create_module_ptx(text.read())
        self.spinning = self.module.get_function("vgpu_spin")
        self.adding = self.module.get_function("vgpu_saxpy")

    def total(self):
        return self.context.get_memory_info().total

    def take(self, size):
        try:
            return self.context.memalloc(size)
        except CudaAPIError as e:
            if e.code != OUT_OF_MEMORY:
                raise
            return None

    def give(self, block):
        block.free()

    def launch(self, function, blocks, threads, *arguments):
        driver.launch_kernel(function.handle, blocks, 1, 1, threads, 1, 1, 0, 0, arguments)

    def saxpy(self, a, x, y):
        x = np.array(x, np.float32)
        y = np.array(y, np.float32)
        on_gpu = [self.context.memalloc(x.nbytes), self.context.memalloc(y.nbytes)]
        driver.host_to_device(on_gpu[0], x, x.nbytes)
        driver.host_to_device(on_gpu[1], y, y.nbytes)
        pointers = [ctypes.c_void_p(block.device_ctypes_pointer.value) for block in on_gpu]
        self.launch(self.adding, (len(x) + 255) // 256, 256,
                    ctypes.c_float(a), pointers[0], pointers[1], ctypes.c_uint64(len(x)))
        driver.device_to_host(y, on_gpu[1], y.nbytes)
        return y.tolist()

    def spin(self, ns):
        self.launch(self.spinning, 132, 32, ctypes.c_uint64(ns))

    def wait(self):
        self.context.synchronize()


loop.run(Gpu(sys.argv[1]))
