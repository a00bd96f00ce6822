"""tinygrad, whose renderer for PTX needs no compiler: the driver gets text. The emulator does not compute it."""

import os
import time

os.environ["DEV"] = "CUDA:PTX"

from tinygrad import Device, Tensor, TinyJit  # noqa: E402  (it reads DEV)

BLOCK = 8 << 20
SECONDS = 3.0

values = list(range(1000))
print("copied there and back:", Tensor(values).realize().tolist() == values)

taken = []
try:
    while True:
        taken.append(Device["CUDA"].allocator.alloc(BLOCK))
except Exception as e:  # tinygrad's own kinds of error changed over time
    print("refused: %s" % e)
print("# memory_taken=%d" % (len(taken) * BLOCK))
while taken:
    Device["CUDA"].allocator.free(taken.pop(), BLOCK)
Device["CUDA"].allocator.free_cache()


@TinyJit
def step(a, b):
    return ((a @ b).relu() + a).sum(axis=0).realize()


a, b = Tensor.empty(512, 512).realize(), Tensor.empty(512, 512).realize()
for _ in range(3):
    print("shape:", step(a, b).shape)
Device["CUDA"].synchronize()
start = time.monotonic()
while time.monotonic() - start < SECONDS:
    for _ in range(20):
        step(a, b)
    Device["CUDA"].synchronize()
print("# busy_seconds=%.3f" % (time.monotonic() - start))
