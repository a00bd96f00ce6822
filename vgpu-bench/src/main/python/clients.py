#!/usr/bin/env python3
"""A client of CUDA for gpu-check that nobody of vgpu wrote: numba, cupy or jax. It knows nothing of vgpu.

Prints one JSON object: what memory it is shown, what it did, and which libcuda its process has; then waits for the end
of its input. Exit code 3: it is not installed, or finds no GPU.
"""

import json
import sys


def drivers():
    """The files of this process that call themselves a CUDA driver."""
    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps if "/" in line}
    return sorted(path for path in paths if "libcuda" in path.rsplit("/", 1)[-1] or "vgpu_cuda" in path)


def absent(why):
    print(json.dumps({"absent": why}), flush=True)
    sys.exit(3)


def numba():
    try:
        from numba import cuda
        import numpy
        import numba as module
    except Exception as e:  # Some installations of it fail in other ways, for example for a newer numpy.
        absent("%s: %s" % (type(e).__name__, e))
    if not cuda.is_available():
        absent("numba.cuda.is_available() is false")

    @cuda.jit
    def twice(values):
        i = cuda.grid(1)
        if i < values.size:
            values[i] *= 2

    free, total = cuda.current_context().get_memory_info()
    device = cuda.to_device(numpy.ones(1 << 20, dtype=numpy.float32))
    for _ in range(20):
        twice[4096, 256](device)
    cuda.synchronize()
    return module.__version__, free, total, float(device.copy_to_host()[0]) == 2.0 ** 20


def cupy():
    try:
        import cupy as module
    except ImportError as e:
        absent(str(e))
    try:
        if module.cuda.runtime.getDeviceCount() == 0:
            absent("no device")
    except module.cuda.runtime.CUDARuntimeError as e:
        absent(str(e))
    free, total = module.cuda.runtime.memGetInfo()
    values = module.ones(1 << 20, dtype=module.float32)
    for _ in range(20):
        values *= 2
    return module.__version__, free, total, float(values[0]) == 2.0 ** 20


def jax():
    try:
        import jax as module
    except ImportError as e:
        absent(str(e))
    try:
        device = module.devices("gpu")[0]
    except RuntimeError as e:
        absent(str(e).split("\n")[0])
    values = module.device_put(module.numpy.ones(1 << 20), device)
    for _ in range(20):
        values = values * 2
    works = float(values[0]) == 2.0 ** 20
    # By default three quarters of the memory that is free at the start.
    limit = (device.memory_stats() or {}).get("bytes_limit", 0)
    return module.__version__, 0, limit, works


def main():
    clients = {"numba": numba, "cupy": cupy, "jax": jax}
    if len(sys.argv) != 2 or sys.argv[1] not in clients:
        print("usage: clients.py numba|cupy|jax", file=sys.stderr)
        return 2
    version, free, total, works = clients[sys.argv[1]]()
    print(json.dumps({"version": version, "free": free, "total": total, "works": works, "drivers": drivers()}),
          flush=True)
    sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
