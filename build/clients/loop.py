"""What the clients in Python do alike, each by its own package: see all memory, take all of it, compute, work.

It prints what has to be the same bare and under vgpu; a line that begins with "#" is a measurement.
"""

import time

BLOCK = 8 << 20
SPIN_NS = 1_000_000
SECONDS = 3.0
VALUES = 1 << 16


def run(gpu):
    """gpu: total() -> bytes; take(bytes) -> anything, or None where it is refused; give(what); saxpy(a, x, y) -> y;
    spin(ns); wait()."""
    print("# memory_shown=%d" % gpu.total())
    taken = []
    while True:
        block = gpu.take(BLOCK)
        if block is None:
            break
        taken.append(block)
    print("# memory_taken=%d" % (len(taken) * BLOCK))
    print("more memory is refused:", len(taken) > 0)
    while taken:
        gpu.give(taken.pop())
    print("given back, taken again:", take_again(gpu))

    result = gpu.saxpy(2.0, [float(i % 100) for i in range(VALUES)], [1.0] * VALUES)
    print("computed right:", all(result[i] == 2.0 * (i % 100) + 1.0 for i in range(VALUES)))

    gpu.spin(SPIN_NS)
    gpu.wait()
    launches = 0
    start = time.monotonic()
    while time.monotonic() - start < SECONDS:
        for _ in range(20):
            gpu.spin(SPIN_NS)
        launches += 20
        gpu.wait()
    seconds = time.monotonic() - start
    print("# busy_percent=%.2f" % (launches * SPIN_NS / 1e7 / seconds))


def take_again(gpu):
    block = gpu.take(BLOCK)
    if block is not None:
        gpu.give(block)
    return block is not None
