#!/usr/bin/env python3
"""Keeps the GPU busy with kernels that take a given time, and says what it got. Needs Python 3 and a CUDA driver only."""

import argparse
import ctypes
import json
import signal
import sys
import time

PTX = b"""
.version 6.0
.target sm_52
.address_size 64
.visible .entry vgpu_spin(.param .u64 vgpu_spin_ns)
{
    .reg .pred %p<3>;
    .reg .b32 %r<2>;
    .reg .b64 %rd<5>;
    mov.u32 %r1, %ctaid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra $end;
    ld.param.u64 %rd1, [vgpu_spin_ns];
    mov.u64 %rd2, %globaltimer;
$again:
    mov.u64 %rd3, %globaltimer;
    sub.u64 %rd4, %rd3, %rd2;
    setp.lt.u64 %p2, %rd4, %rd1;
    @%p2 bra $again;
$end:
    ret;
}
"""


class CudaError(Exception):
    """A call of the driver failed."""


class Driver:
    """The driver API through ctypes; a call that fails raises CudaError with the error's name."""

    def __init__(self):
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as e:
            raise CudaError("no CUDA driver: %s" % e) from e

    def call(self, name, *arguments):
        error = getattr(self._library, name)(*arguments)
        if error != 0:
            text = ctypes.c_char_p()
            self._library.cuGetErrorName(error, ctypes.byref(text))
            known = text.value.decode() if text.value else "unknown error"
            raise CudaError("%s: %s (%d)" % (name, known, error))


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("not above 0: %s" % text)
    return value


def whole(text):
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError("below 0: %s" % text)
    return value


def not_negative(text):
    value = float(text)
    if not 0 <= value < 1e9:
        raise argparse.ArgumentTypeError("not within 0 to 1e9: %s" % text)
    return value


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, epilog="Exit codes: 0 done, 1 failed, 2 wrong usage.")
    parser.add_argument("--us", type=not_negative, default=1000, help="what a kernel takes (default 1000)")
    parser.add_argument("--grid", type=positive, default=1, help="blocks of a kernel (default 1)")
    parser.add_argument("--sync", type=whole, default=1, help="wait for the GPU after that many; 0: at the end (default 1)")
    parser.add_argument("--seconds", type=not_negative, default=10, help="how long to go on (default 10)")
    parser.add_argument("--count", type=positive, help="stop after that many kernels instead")
    parser.add_argument("--hold", type=positive, metavar="MIB", help="hold that much memory meanwhile")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser.parse_args()


def prepare(driver, hold_mib):
    device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    kernel, memory = ctypes.c_void_p(), ctypes.c_uint64()
    driver.call("cuInit", 0)
    driver.call("cuDeviceGet", ctypes.byref(device), 0)
    driver.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    driver.call("cuCtxSetCurrent", context)
    driver.call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(PTX))
    driver.call("cuModuleGetFunction", ctypes.byref(kernel), module, b"vgpu_spin")
    if hold_mib:
        driver.call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(hold_mib << 20))
    return kernel


def spin(driver, kernel, options, is_stopped):
    kernel_ns = ctypes.c_uint64(int(options.us * 1000))
    parameters = (ctypes.c_void_p * 1)(ctypes.addressof(kernel_ns))
    start, done, worst = time.monotonic(), 0, 0.0
    while not is_stopped() and (done < options.count if options.count else time.monotonic() - start < options.seconds):
        before = time.monotonic()
        driver.call("cuLaunchKernel", kernel, options.grid, 1, 1, 32, 1, 1, 0, None, parameters, None)
        worst = max(worst, time.monotonic() - before)
        done += 1
        if options.sync and done % options.sync == 0:
            driver.call("cuCtxSynchronize")
    driver.call("cuCtxSynchronize")
    return done, time.monotonic() - start, worst


def main():
    options = arguments()
    stopped = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.append(1))
    try:
        driver = Driver()
        done, wall, worst = spin(driver, prepare(driver, options.hold), options, lambda: bool(stopped))
    except CudaError as e:
        print("spin.py: %s" % e, file=sys.stderr)
        return 1
    share = done * options.us / (wall * 1e6) * 100 if wall else 0
    if options.json:
        figures = {"program": "spin.py", "kernel_us": options.us, "kernels": done, "seconds": wall}
        figures.update({"share_percent": share, "launch_us": {"max": worst * 1e6}})
        print(json.dumps(figures))
    else:
        print("%d kernels of %g us in %.3f s: %.2f %% of the time" % (done, options.us, wall, share))
        print("worst launch: %.2f us" % (worst * 1e6))
    return 0


if __name__ == "__main__":
    sys.exit(main())
