#!/usr/bin/env python3
"""A small PyTorch training and inference pair for gpu-check; it knows nothing of vgpu.

Modes: `costs` measures and ends. The others say "ready", then do what lines of standard input say, and answer each with
one JSON object: train: start, read, stop; serve: run SECONDS RATE; tenant: launch, compute, read, stop. They end with
their input.
"""

import json
import os
import sys
import threading
import time


def say(**figures):
    print(json.dumps(figures), flush=True)


def load_torch():
    begin = time.monotonic()
    import torch

    imported = time.monotonic()
    if not torch.cuda.is_available():
        say(error="torch.cuda.is_available() is false", torch=torch.__version__)
        sys.exit(3)
    torch.cuda.init()
    torch.zeros(1, device="cuda").item()
    return torch, {"torch": torch.__version__, "cuda": torch.version.cuda, "import_s": imported - begin,
                   "init_s": time.monotonic() - imported, "device": torch.cuda.get_device_name(0)}


def median(values):
    return sorted(values)[len(values) // 2]


def launch_cost(torch):
    """Seconds that a small operation takes the host, the GPU being free."""
    x = torch.zeros(16, device="cuda")
    took = []
    for _ in range(40):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(100):
            x.add_(1)
        took.append((time.perf_counter() - begin) / 100)
    torch.cuda.synchronize()
    return median(took) * 1e6


def graph_cost(torch):
    """Microseconds of a replay of a graph of 20 small operations; None where graphs do not work."""
    try:
        x = torch.zeros(16, device="cuda")
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            x.add_(1)
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(20):
                x.add_(1)
        took = []
        for _ in range(20):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(20):
                graph.replay()
            torch.cuda.synchronize()
            took.append((time.perf_counter() - begin) / 20)
        return median(took) * 1e6
    except Exception as e:  # Whatever it is, it is a finding.
        return "%s: %s" % (type(e).__name__, e)


def matmul_rate(torch, size=2048, count=30):
    """TFLOP/s of matrix products in half precision."""
    a = torch.randn(size, size, device="cuda", dtype=torch.float16)
    for _ in range(3):
        a @ a
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(count):
        a @ a
    torch.cuda.synchronize()
    return 2 * size ** 3 * count / (time.perf_counter() - begin) / 1e12


def fill(torch, limit):
    """What the caching allocator gets until it is refused, at most `limit` bytes, and whether it goes on afterwards."""
    found = {"mem_get_info_before": list(torch.cuda.mem_get_info())}
    held, chunk, refusal = [], 64 << 20, "none"
    base = torch.cuda.memory_reserved()
    try:
        while len(held) * chunk < limit:
            held.append(torch.empty(chunk, dtype=torch.uint8, device="cuda"))
    except torch.cuda.OutOfMemoryError as e:
        refusal = "OutOfMemoryError"
        found["message"] = str(e).split("\n")[0][:600]
    except RuntimeError as e:
        refusal = "%s: %s" % (type(e).__name__, str(e).split("\n")[0][:600])
    found.update(refusal=refusal, tensors_bytes=len(held) * chunk, reserved_bytes=torch.cuda.memory_reserved(),
                 reserved_before_bytes=base, mem_get_info_full=list(torch.cuda.mem_get_info()))
    del held
    torch.cuda.empty_cache()
    found["mem_get_info_after"] = list(torch.cuda.mem_get_info())
    try:
        found["works_afterwards"] = torch.ones(1 << 20, device="cuda").sum().item() == 1 << 20
    except RuntimeError as e:
        found["works_afterwards"] = str(e).split("\n")[0][:300]
    return found


def costs(limit):
    torch, found = load_torch()
    say(**found)
    say(launch_us=launch_cost(torch), graph_replay_20_us=graph_cost(torch), matmul_tflops=matmul_rate(torch))
    say(fill=fill(torch, limit))


def make_model(torch, width, depth):
    layers = []
    for _ in range(depth):
        layers += [torch.nn.Linear(width, width), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers).to("cuda")


def train():
    torch, found = load_torch()
    torch.manual_seed(1)
    model = make_model(torch, 1024, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x = torch.randn(512, 1024, device="cuda")
    running, state = threading.Event(), {"steps": 0, "error": None}

    def work():
        try:
            while True:
                running.wait()
                for _ in range(10):
                    optimizer.zero_grad(set_to_none=True)
                    loss = (model(x) - x).square().mean()
                    loss.backward()
                    optimizer.step()
                torch.cuda.synchronize()
                state["steps"] += 10
        except Exception as e:
            state["error"] = "%s: %s" % (type(e).__name__, str(e)[:500])

    threading.Thread(target=work, daemon=True).start()
    print("ready", flush=True)
    for line in sys.stdin:
        if line.strip() == "start":
            running.set()
        elif line.strip() == "stop":
            running.clear()
        say(now_s=time.monotonic(), steps=state["steps"], error=state["error"],
            reserved_bytes=torch.cuda.memory_reserved(), **found)
    os._exit(0)


def serve():
    torch, found = load_torch()
    torch.manual_seed(2)
    model = make_model(torch, 1024, 6).half().eval()
    x = torch.randn(8, 1024, device="cuda", dtype=torch.float16)
    with torch.no_grad():
        for _ in range(20):
            model(x)
        torch.cuda.synchronize()
        print("ready", flush=True)
        for line in sys.stdin:
            _, seconds, rate = line.split()
            took, due, end = [], time.monotonic(), time.monotonic() + float(seconds)
            while due < end:
                time.sleep(max(0.0, due - time.monotonic()))
                model(x).cpu()
                took.append((time.monotonic() - due) * 1e3)
                due += 1 / float(rate)
            took.sort()
            say(requests=len(took), p50_ms=took[len(took) // 2], p90_ms=took[len(took) * 9 // 10],
                p99_ms=took[len(took) * 99 // 100], worst_ms=took[-1], **found)


def tenant():
    """Work without an end, of one of two kinds: many small kernels, or few large ones; how much was done."""
    torch, found = load_torch()
    small = torch.zeros(1024, device="cuda")
    large = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
    state = {"kind": "stop", "done": 0, "error": None}
    wanted = threading.Event()

    def work():
        try:
            while True:
                wanted.wait()
                if state["kind"] == "launch":
                    for _ in range(200):
                        small.add_(1)
                else:
                    for _ in range(4):
                        large @ large
                torch.cuda.synchronize()
                state["done"] += 1
        except Exception as e:
            state["error"] = "%s: %s" % (type(e).__name__, str(e)[:500])

    large @ large
    torch.cuda.synchronize()
    threading.Thread(target=work, daemon=True).start()
    print("ready", flush=True)
    for line in sys.stdin:
        order = line.strip()
        if order in ("launch", "compute"):
            state["kind"] = order
            wanted.set()
        elif order == "stop":
            wanted.clear()
        say(now_s=time.monotonic(), done=state["done"], error=state["error"],
            reserved_bytes=torch.cuda.memory_reserved(), **found)
    os._exit(0)


def main():
    mode = sys.argv[1] if len(sys.argv) > 1 else ""
    if mode == "costs":
        costs(int(sys.argv[2]))
    elif mode == "train":
        train()
    elif mode == "serve":
        serve()
    elif mode == "tenant":
        tenant()
    else:
        print("usage: torch_pair.py costs LIMIT_BYTES | train | serve | tenant", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
