"""What pynvml tells of the first GPU."""

import pynvml

pynvml.nvmlInit()
gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
print("name:", pynvml.nvmlDeviceGetName(gpu))
print("uuid:", pynvml.nvmlDeviceGetUUID(gpu))
print("GPUs:", pynvml.nvmlDeviceGetCount())
print("# memory_shown=%d" % pynvml.nvmlDeviceGetMemoryInfo(gpu).total)
print("GPU busy:", pynvml.nvmlDeviceGetUtilizationRates(gpu).gpu)
print("processes:", len(pynvml.nvmlDeviceGetComputeRunningProcesses(gpu)))
try:
    pynvml.nvmlDeviceSetPersistenceMode(gpu, 1)
    print("# settings=changed")
except pynvml.NVMLError as e:
    print("# settings=%s" % e)
pynvml.nvmlShutdown()
print("no more")
