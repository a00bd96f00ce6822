"""PyCUDA's driver interface, with kernels in a loop. Usage: pycuda_loop.py FILE.ptx"""

import sys

import numpy as np
import pycuda.driver as cuda

import loop


class Gpu:
    def __init__(self, ptx):
        cuda.init()
        self.context = cuda.Device(0).make_context()
        self.module = cuda.module_from_file(ptx)
        self.spinning = self.module.get_function("vgpu_spin")
        self.adding = self.module.get_function("vgpu_saxpy")

    def total(self):
        return cuda.mem_get_info()[1]

    def take(self, size):
        try:
            return cuda.mem_alloc(size)
        except cuda.MemoryError:
            return None

    def give(self, block):
        block.free()

    def saxpy(self, a, x, y):
        x = np.array(x, np.float32)
        y = np.array(y, np.float32)
        self.adding(np.float32(a), cuda.In(x), cuda.InOut(y), np.uint64(len(x)),
                    block=(256, 1, 1), grid=((len(x) + 255) // 256, 1))
        return y.tolist()

    def spin(self, ns):
        self.spinning(np.uint64(ns), block=(32, 1, 1), grid=(132, 1))

    def wait(self):
        self.context.synchronize()


gpu = Gpu(sys.argv[1])
try:
    loop.run(gpu)
finally:
    gpu.context.pop()
