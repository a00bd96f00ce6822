/* The NVML of a machine whose kernel driver is not loaded: it has the library only. */
#define EXPORTED __attribute__((visibility("default")))

EXPORTED int nvmlInit_v2(void);
EXPORTED int nvmlShutdown(void);
EXPORTED const char *nvmlErrorString(int result);

int nvmlInit_v2(void) { return 9; }
int nvmlShutdown(void) { return 1; }
const char *nvmlErrorString(int result) { return result == 9 ? "Driver Not Loaded" : "Uninitialized"; }
