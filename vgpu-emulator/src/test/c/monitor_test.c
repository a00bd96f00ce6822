/* The NVML functions that monitors call, and the versions that they see. */
#include "check.h"
#include "base/nvml_abi.h"

#include <dlfcn.h>
#include <string.h>

int cuDriverGetVersion(int *version);
int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
                        int *status);
nvmlReturn_t nvmlInit_v2(void);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device);
nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version);
nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int size);
nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int size);
nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *info);
nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *info);
nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device, unsigned int *width);
nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, int counter, unsigned int *value);
nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, int kind,
                                               unsigned int *celsius);
nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *energy);
nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned int *count,
                                                unsigned int *clocks);
nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *info);
nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char *version, unsigned int size);
nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int size, unsigned long *set);
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values);
nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device, nvmlDevice_t other, int what, int *status);
nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t *info);
nvmlReturn_t nvmlDeviceGetSupportedClocksEventReasons(nvmlDevice_t device,
                                                      unsigned long long *reasons);
nvmlReturn_t nvmlDeviceGetSupportedClocksThrottleReasons(nvmlDevice_t device,
                                                         unsigned long long *reasons);
nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device,
                                                    unsigned long long *reasons);

/* nvtop 3 shows no GPU if one of these is missing, whatever they return. */
static const char *const needed[] = {"nvmlInit_v2",
                                     "nvmlShutdown",
                                     "nvmlDeviceGetCount_v2",
                                     "nvmlDeviceGetHandleByIndex_v2",
                                     "nvmlErrorString",
                                     "nvmlDeviceGetName",
                                     "nvmlDeviceGetPciInfo",
                                     "nvmlDeviceGetMaxPcieLinkGeneration",
                                     "nvmlDeviceGetMaxPcieLinkWidth",
                                     "nvmlDeviceGetTemperatureThreshold",
                                     "nvmlDeviceGetClockInfo",
                                     "nvmlDeviceGetMaxClockInfo",
                                     "nvmlDeviceGetUtilizationRates",
                                     "nvmlDeviceGetMemoryInfo",
                                     "nvmlDeviceGetCurrPcieLinkGeneration",
                                     "nvmlDeviceGetCurrPcieLinkWidth",
                                     "nvmlDeviceGetPcieThroughput",
                                     "nvmlDeviceGetFanSpeed",
                                     "nvmlDeviceGetTemperature",
                                     "nvmlDeviceGetPowerUsage",
                                     "nvmlDeviceGetEnforcedPowerLimit",
                                     "nvmlDeviceGetEncoderUtilization",
                                     "nvmlDeviceGetDecoderUtilization",
                                     "nvmlDeviceGetGraphicsRunningProcesses",
                                     "nvmlDeviceGetComputeRunningProcesses"};

static nvmlDevice_t device;

static void monitorsFindTheirFunctions(void) {
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        if (dlsym(RTLD_DEFAULT, needed[i]) == NULL) {
            fprintf(stderr, "%s is missing\n", needed[i]);
            CHECK(!"a function is missing");
        }
    }
}

static void readingsAreGiven(void) {
    unsigned int number = 0;
    unsigned int clocks[4];
    unsigned int count = 4;
    unsigned long long energy = 0;
    unsigned long long later = 0;
    char text[32] = "";
    nvmlBAR1Memory_t bar = {0};
    unsigned long processors[16];
    CHECK_OK(nvmlDeviceGetMaxPcieLinkWidth(device, &number));
    CHECK_EQUAL(number, 16);
    CHECK_OK(nvmlDeviceGetPcieThroughput(device, 1, &number));
    CHECK_EQUAL(nvmlDeviceGetPcieThroughput(device, 2, &number), NVML_ERROR_INVALID_ARGUMENT);
    CHECK_OK(nvmlDeviceGetTemperatureThreshold(device, 1, &number));
    CHECK(number > 80);
    CHECK_EQUAL(nvmlDeviceGetTemperatureThreshold(device, 5, &number), NVML_ERROR_NOT_SUPPORTED);
    CHECK_OK(nvmlDeviceGetTotalEnergyConsumption(device, &energy));
    CHECK_OK(nvmlDeviceGetTotalEnergyConsumption(device, &later));
    CHECK(later >= energy);
    CHECK_OK(nvmlDeviceGetSupportedMemoryClocks(device, &count, clocks));
    CHECK_EQUAL(count, 1);
    count = 0;
    CHECK_EQUAL(nvmlDeviceGetSupportedMemoryClocks(device, &count, NULL),
                NVML_ERROR_INSUFFICIENT_SIZE);
    CHECK_OK(nvmlDeviceGetBAR1MemoryInfo(device, &bar));
    CHECK(bar.bar1Total == bar.bar1Free + bar.bar1Used);
    CHECK_OK(nvmlDeviceGetVbiosVersion(device, text, sizeof text));
    CHECK(text[0] != '\0');
    CHECK_OK(nvmlDeviceGetCpuAffinity(device, 16, processors));
    CHECK((processors[0] & 1) != 0);
}

static void write_settings(const char *text) {
    char path[300];
    char fresh[310];
    snprintf(path, sizeof path, "%s/nvml", getenv("VGPU_EMULATOR_DIR"));
    snprintf(fresh, sizeof fresh, "%s.new", path);
    FILE *file = fopen(fresh, "we");
    CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0 && rename(fresh, path) == 0);
}

/* Programs that choose how to share work between GPUs ask whether NVLink connects each pair. */
static void pairsTellWhatConnectsThem(void) {
    nvmlDevice_t second = NULL;
    int status = -1;
    CHECK_OK(nvmlDeviceGetHandleByIndex_v2(1, &second));
    for (int what = 0; what < 5; what++) {
        CHECK_OK(nvmlDeviceGetP2PStatus(device, second, what, &status));
        CHECK_EQUAL(status, 0);
    }
    write_settings("nvlinks.1=0\n");
    CHECK_OK(nvmlDeviceGetP2PStatus(device, second, 0, &status));
    CHECK_EQUAL(status, 0);
    CHECK_OK(nvmlDeviceGetP2PStatus(device, second, 2, &status));
    CHECK_EQUAL(status, 5);
    CHECK_EQUAL(nvmlDeviceGetP2PStatus(device, second, 5, &status), NVML_ERROR_INVALID_ARGUMENT);
    CHECK_EQUAL(nvmlDeviceGetP2PStatus(device, device, 0, &status), NVML_ERROR_INVALID_ARGUMENT);
    CHECK_EQUAL(nvmlDeviceGetP2PStatus(device, NULL, 0, &status), NVML_ERROR_INVALID_ARGUMENT);
}

static void aGpuIsInAFabricIfASettingSaysSo(void) {
    nvmlGpuFabricInfo_t info;
    CHECK_EQUAL(nvmlDeviceGetGpuFabricInfo(device, &info), NVML_ERROR_NOT_SUPPORTED);
    CHECK_EQUAL(nvmlDeviceGetGpuFabricInfo(device, NULL), NVML_ERROR_INVALID_ARGUMENT);
    write_settings("clique.0=7\n");
    CHECK_OK(nvmlDeviceGetGpuFabricInfo(device, &info));
    CHECK(info.cliqueId == 7 && info.state == NVML_GPU_FABRIC_STATE_COMPLETED && info.status == 0);
    CHECK(info.clusterUuid[0] != 0);
}

static void reasonsAreAmongTheSupportedOnes(void) {
    unsigned long long now = 0;
    unsigned long long supported = 0;
    unsigned long long older = 0;
    CHECK_OK(nvmlDeviceGetCurrentClocksEventReasons(device, &now));
    CHECK_OK(nvmlDeviceGetSupportedClocksEventReasons(device, &supported));
    CHECK_OK(nvmlDeviceGetSupportedClocksThrottleReasons(device, &older));
    CHECK(supported == older && supported != 0 && (now & ~supported) == 0);
}

static void fieldsAnswerOneByOne(void) {
    nvmlFieldValue_t fields[2] = {{.fieldId = 83}, {.fieldId = 9999}};
    CHECK_OK(nvmlDeviceGetFieldValues(device, 2, fields));
    CHECK_EQUAL(fields[0].nvmlReturn, NVML_SUCCESS);
    CHECK(fields[0].value.ullVal > 0 && fields[0].valueType == 3);
    CHECK_EQUAL(fields[1].nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
}

static void oldPlacesOnTheBusAreShorter(void) {
    union {
        nvmlPciInfo_t info;
        unsigned char bytes[sizeof(nvmlPciInfo_t)];
    } place;
    memset(&place, 0xee, sizeof place);
    CHECK_OK(nvmlDeviceGetPciInfo(device, &place.info));
    CHECK(strcmp(place.info.busIdLegacy, "0000:01:00.0") == 0);
    CHECK_EQUAL(place.bytes[51], 0);
    CHECK_EQUAL(place.bytes[52], 0xee);
    CHECK_OK(nvmlDeviceGetPciInfo_v2(device, &place.info));
    CHECK_EQUAL(place.bytes[52], 0xee);
}

static void versionsAreThoseOfTheSettings(void) {
    int version = 0;
    void *found = NULL;
    char text[80];
    CHECK_OK(cuDriverGetVersion(&version));
    CHECK_EQUAL(version, 12040);
    CHECK_OK(cuGetProcAddress_v2("cuGreenCtxCreate", &found, 12040, 0, NULL));
    CHECK_EQUAL(cuGetProcAddress_v2("cuGreenCtxCreate", &found, 12050, 0, NULL), 1);
    CHECK_OK(nvmlSystemGetCudaDriverVersion(&version));
    CHECK_EQUAL(version, 12040);
    CHECK_OK(nvmlSystemGetDriverVersion(text, sizeof text));
    CHECK(strcmp(text, "550.54.14") == 0);
    CHECK_OK(nvmlSystemGetNVMLVersion(text, sizeof text));
    CHECK(strcmp(text, "12.550.54.14") == 0);
}

int main(void) {
    char settings[300];
    const char *given = getenv("VGPU_EMULATOR");
    snprintf(settings, sizeof settings, "%s,cuda=12.4", given == NULL ? "devices=1" : given);
    setenv("VGPU_EMULATOR", settings, 1);
    setenv("VGPU_EMULATOR_NVML", "driver_version=550.54.14,nvml_version=12.550.54.14", 1);
    CHECK_OK(nvmlInit_v2());
    CHECK_OK(nvmlDeviceGetHandleByIndex_v2(0, &device));
    monitorsFindTheirFunctions();
    readingsAreGiven();
    reasonsAreAmongTheSupportedOnes();
    fieldsAnswerOneByOne();
    oldPlacesOnTheBusAreShorter();
    versionsAreThoseOfTheSettings();
    pairsTellWhatConnectsThem();
    aGpuIsInAFabricIfASettingSaysSo();
    return check_failures != 0;
}
