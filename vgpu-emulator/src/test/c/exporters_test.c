/*
 * What nvitop and DCGM's exporter ask of NVML, in their order. Each answer is a sensible value, or the one with which a
 * data-centre GPU says that it does not have it. They use a function only if the library exports it.
 */
#include "check.h"
#include "base/nvml_abi.h"

#include <dlfcn.h>
#include <string.h>

#define TOLD(function, ...) nvmlReturn_t function(__VA_ARGS__);
TOLD(nvmlInit_v2, void)
TOLD(nvmlShutdown, void)
TOLD(nvmlSystemGetConfComputeState, nvmlConfComputeSystemState_t *)
TOLD(nvmlDeviceGetHandleByIndex_v2, unsigned int, nvmlDevice_t *)
TOLD(nvmlDeviceGetFieldValues, nvmlDevice_t, int, nvmlFieldValue_t *)
TOLD(nvmlDeviceGetTemperature, nvmlDevice_t, int, unsigned int *)
TOLD(nvmlDeviceGetTemperatureV, nvmlDevice_t, nvmlTemperature_t *)
TOLD(nvmlDeviceGetMarginTemperature, nvmlDevice_t, nvmlMarginTemperature_t *)
TOLD(nvmlDeviceGetDriverModel, nvmlDevice_t, unsigned int *, unsigned int *)
TOLD(nvmlDeviceGetDriverModel_v2, nvmlDevice_t, unsigned int *, unsigned int *)
TOLD(nvmlDeviceGetFanSpeed, nvmlDevice_t, unsigned int *)
TOLD(nvmlDeviceGetNumFans, nvmlDevice_t, unsigned int *)
TOLD(nvmlDeviceGetBridgeChipInfo, nvmlDevice_t, nvmlBridgeChipHierarchy_t *)
TOLD(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlDevice_t, unsigned int *, nvmlProcessInfo_t *)
TOLD(nvmlDeviceGetRunningProcessDetailList, nvmlDevice_t, nvmlProcessDetailList_t *)
TOLD(nvmlDeviceGetTotalEccErrors, nvmlDevice_t, int, int, unsigned long long *)
TOLD(nvmlDeviceGetMemoryErrorCounter, nvmlDevice_t, int, int, int, unsigned long long *)
TOLD(nvmlDeviceGetActiveVgpus, nvmlDevice_t, unsigned int *, unsigned int *)
TOLD(nvmlDeviceGetSupportedVgpus, nvmlDevice_t, unsigned int *, unsigned int *)
TOLD(nvmlDeviceGetCreatableVgpus, nvmlDevice_t, unsigned int *, unsigned int *)
TOLD(nvmlDeviceGetVgpuUtilization, nvmlDevice_t, unsigned long long, int *, unsigned int *,
     nvmlVgpuInstanceUtilizationSample_t *)
TOLD(nvmlDeviceGetVgpuProcessUtilization, nvmlDevice_t, unsigned long long, unsigned int *,
     nvmlVgpuProcessUtilizationSample_t *)
TOLD(nvmlDeviceGetGridLicensableFeatures_v4, nvmlDevice_t, nvmlGridLicensableFeatures_t *)
TOLD(nvmlDeviceGetAccountingBufferSize, nvmlDevice_t, unsigned int *)
TOLD(nvmlDeviceGetAccountingPids, nvmlDevice_t, unsigned int *, unsigned int *)
TOLD(nvmlDeviceGetAccountingStats, nvmlDevice_t, unsigned int, nvmlAccountingStats_t *)
TOLD(nvmlDeviceGetAutoBoostedClocksEnabled, nvmlDevice_t, unsigned int *, unsigned int *)
TOLD(nvmlDeviceGetInforomImageVersion, nvmlDevice_t, char *, unsigned int)
TOLD(nvmlDeviceGetInforomVersion, nvmlDevice_t, int, char *, unsigned int)
TOLD(nvmlDeviceGetInforomConfigurationChecksum, nvmlDevice_t, unsigned int *)
TOLD(nvmlDeviceGetRowRemapperHistogram, nvmlDevice_t, nvmlRowRemapperHistogramValues_t *)
TOLD(nvmlDeviceGetGpuFabricInfoV, nvmlDevice_t, nvmlGpuFabricInfoV_t *)
TOLD(nvmlDeviceSetMigMode, nvmlDevice_t, unsigned int, nvmlReturn_t *)
TOLD(nvmlDeviceCreateGpuInstance, nvmlDevice_t, unsigned int, nvmlGpuInstance_t *)
TOLD(nvmlGpuInstanceGetInfo, nvmlGpuInstance_t, nvmlGpuInstanceInfo_t *)
TOLD(nvmlGpuInstanceDestroy, nvmlGpuInstance_t)
TOLD(nvmlGpuInstanceCreateComputeInstance, nvmlGpuInstance_t, unsigned int, nvmlComputeInstance_t *)
TOLD(nvmlComputeInstanceDestroy, nvmlComputeInstance_t)
TOLD(nvmlGpmSampleAlloc, nvmlGpmSample_t *)
TOLD(nvmlGpmSampleFree, nvmlGpmSample_t)
TOLD(nvmlGpmMigSampleGet, nvmlDevice_t, unsigned int, nvmlGpmSample_t)
TOLD(nvmlGpmMetricsGet, nvmlGpmMetricsGet_t *)
int cuInit(unsigned int flags);
int cuCtxCreate_v2(void **context, unsigned int flags, int ordinal);
int cuCtxDestroy_v2(void *context);

#define VERSION(type, number) ((unsigned int)(sizeof(type) | (number) << 24))
enum { UNSIGNED = 1, UNSIGNED_LONG_LONG = 3, ALL_LINKS = -1 };

static const char *const of_nvitop[] = {"nvmlInit_v2",
                                        "nvmlShutdown",
                                        "nvmlSystemGetDriverVersion",
                                        "nvmlSystemGetCudaDriverVersion_v2",
                                        "nvmlDeviceGetCount_v2",
                                        "nvmlDeviceGetHandleByIndex_v2",
                                        "nvmlDeviceGetHandleByUUID",
                                        "nvmlDeviceGetHandleByPciBusId_v2",
                                        "nvmlDeviceGetIndex",
                                        "nvmlDeviceGetName",
                                        "nvmlDeviceGetUUID",
                                        "nvmlDeviceGetPciInfo_v3",
                                        "nvmlDeviceGetSerial",
                                        "nvmlDeviceGetMemoryInfo_v2",
                                        "nvmlDeviceGetBAR1MemoryInfo",
                                        "nvmlDeviceGetUtilizationRates",
                                        "nvmlDeviceGetEncoderUtilization",
                                        "nvmlDeviceGetDecoderUtilization",
                                        "nvmlDeviceGetClockInfo",
                                        "nvmlDeviceGetMaxClockInfo",
                                        "nvmlDeviceGetFanSpeed",
                                        "nvmlDeviceGetTemperature",
                                        "nvmlDeviceGetTemperatureV",
                                        "nvmlDeviceGetPowerUsage",
                                        "nvmlDeviceGetPowerManagementLimit",
                                        "nvmlDeviceGetPcieThroughput",
                                        "nvmlDeviceGetFieldValues",
                                        "nvmlDeviceGetDisplayActive",
                                        "nvmlDeviceGetDisplayMode",
                                        "nvmlDeviceGetDriverModel_v2",
                                        "nvmlDeviceGetPersistenceMode",
                                        "nvmlDeviceGetPerformanceState",
                                        "nvmlDeviceGetTotalEccErrors",
                                        "nvmlDeviceGetComputeMode",
                                        "nvmlDeviceGetCudaComputeCapability",
                                        "nvmlDeviceIsMigDeviceHandle",
                                        "nvmlDeviceGetMigMode",
                                        "nvmlDeviceGetComputeRunningProcesses_v3",
                                        "nvmlDeviceGetGraphicsRunningProcesses_v3",
                                        "nvmlDeviceGetMPSComputeRunningProcesses_v3",
                                        "nvmlDeviceGetProcessUtilization",
                                        "nvmlDeviceGetMaxMigDeviceCount",
                                        "nvmlDeviceGetMigDeviceHandleByIndex",
                                        "nvmlDeviceGetDeviceHandleFromMigDeviceHandle",
                                        "nvmlDeviceGetGpuInstanceId",
                                        "nvmlDeviceGetComputeInstanceId"};

/* Those of the default counters, and those that DCGM calls when it finds a GPU. */
static const char *const of_dcgm[] = {"nvmlSystemGetConfComputeState",
                                      "nvmlDeviceGetBrand",
                                      "nvmlDeviceGetCudaComputeCapability",
                                      "nvmlDeviceGetVirtualizationMode",
                                      "nvmlGpmQueryDeviceSupport",
                                      "nvmlGpmSampleGet",
                                      "nvmlGpmMigSampleGet",
                                      "nvmlGpmMetricsGet",
                                      "nvmlEventSetCreate",
                                      "nvmlDeviceRegisterEvents",
                                      "nvmlEventSetWait_v2",
                                      "nvmlDeviceGetMinorNumber",
                                      "nvmlDeviceGetNvLinkState",
                                      "nvmlDeviceGetNvLinkRemotePciInfo_v2",
                                      "nvmlDeviceGetNvLinkErrorCounter",
                                      "nvmlDeviceGetTopologyCommonAncestor",
                                      "nvmlDeviceGetP2PStatus",
                                      "nvmlDeviceGetCpuAffinity",
                                      "nvmlDeviceGetMemoryAffinity",
                                      "nvmlDeviceGetMemoryInfo_v2",
                                      "nvmlDeviceGetMemoryErrorCounter",
                                      "nvmlDeviceGetEccMode",
                                      "nvmlDeviceGetRetiredPages",
                                      "nvmlDeviceGetRowRemapperHistogram",
                                      "nvmlDeviceGetGridLicensableFeatures_v4",
                                      "nvmlDeviceGetGpuFabricInfoV",
                                      "nvmlDeviceGetActiveVgpus",
                                      "nvmlDeviceGetSupportedVgpus",
                                      "nvmlDeviceGetCreatableVgpus",
                                      "nvmlDeviceGetGpuInstances",
                                      "nvmlGpuInstanceGetInfo",
                                      "nvmlGpuInstanceGetComputeInstances",
                                      "nvmlComputeInstanceGetInfo_v2"};

static nvmlDevice_t device;

static void are_exported(const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (dlsym(RTLD_DEFAULT, names[i]) == NULL) {
            fprintf(stderr, "%s is missing\n", names[i]);
            CHECK(!"a function is missing");
        }
    }
}

static void write_settings(const char *text) {
    char path[300];
    char fresh[310];
    snprintf(path, sizeof path, "%s/nvml", getenv("VGPU_EMULATOR_DIR"));
    snprintf(fresh, sizeof fresh, "%s.new", path);
    FILE *file = fopen(fresh, "we");
    CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0 && rename(fresh, path) == 0);
}

static nvmlFieldValue_t field_of(unsigned int id, int scope) {
    nvmlFieldValue_t field = {.fieldId = id, .scopeId = (unsigned int)scope};
    CHECK_OK(nvmlDeviceGetFieldValues(device, 1, &field));
    return field;
}

/* The value of a field of a type; 0 if it has none. */
static unsigned long long value_of(unsigned int id, int scope, int type) {
    nvmlFieldValue_t field = field_of(id, scope);
    CHECK_OK(field.nvmlReturn);
    CHECK_EQUAL(field.valueType, type);
    return type == UNSIGNED ? field.value.uiVal : field.value.ullVal;
}

/* ---- nvitop */

static void heat_is_read_in_the_newer_form(void) {
    unsigned int older = 0;
    nvmlTemperature_t reading = {.version = VERSION(nvmlTemperature_t, 1)};
    write_settings("temperature=61\n");
    CHECK_OK(nvmlDeviceGetTemperature(device, 0, &older));
    CHECK_OK(nvmlDeviceGetTemperatureV(device, &reading));
    CHECK(older == 61 && reading.temperature == 61);
    nvmlMarginTemperature_t margin = {.version = VERSION(nvmlMarginTemperature_t, 1)};
    CHECK_OK(nvmlDeviceGetMarginTemperature(device, &margin));
    CHECK_EQUAL(margin.marginTemperature, 89 - 61);
    reading.version = 0;
    margin.version = 0;
    CHECK_EQUAL(nvmlDeviceGetTemperatureV(device, &reading), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    CHECK_EQUAL(nvmlDeviceGetMarginTemperature(device, &margin),
                NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
}

static void fans_and_driver_models_are_not_there(void) {
    unsigned int number = 7;
    unsigned int pending = 0;
    CHECK_EQUAL(nvmlDeviceGetFanSpeed(device, &number), NVML_ERROR_NOT_SUPPORTED);
    CHECK_OK(nvmlDeviceGetNumFans(device, &number));
    CHECK_EQUAL(number, 0);
    CHECK_EQUAL(nvmlDeviceGetDriverModel(device, &number, &pending), NVML_ERROR_NOT_SUPPORTED);
    CHECK_EQUAL(nvmlDeviceGetDriverModel_v2(device, &number, &pending), NVML_ERROR_NOT_SUPPORTED);
    CHECK_EQUAL(nvmlDeviceGetBridgeChipInfo(device, NULL), NVML_ERROR_NOT_SUPPORTED);
    CHECK_EQUAL(nvmlDeviceGetDriverModel(NULL, &number, &pending), NVML_ERROR_INVALID_ARGUMENT);
}

/* nvitop asks for the number of links, and then for the traffic of each. */
static void links_tell_their_traffic(void) {
    nvmlFieldValue_t fields[8] = {{0}};
    write_settings("nvlinks.0=4\n");
    CHECK_EQUAL(value_of(91, 0, UNSIGNED), 4);
    for (unsigned int i = 0; i < 8; i++) {
        fields[i] = (nvmlFieldValue_t){.fieldId = 138 + i % 2, .scopeId = i / 2};
    }
    CHECK_OK(nvmlDeviceGetFieldValues(device, 8, fields));
    for (int i = 0; i < 8; i++) {
        CHECK_OK(fields[i].nvmlReturn);
        CHECK(fields[i].valueType == UNSIGNED_LONG_LONG && fields[i].value.ullVal == 0);
    }
    CHECK_EQUAL(field_of(138, 4).nvmlReturn, NVML_ERROR_INVALID_ARGUMENT);
    write_settings("nvlinks.0=0\n");
    CHECK_EQUAL(value_of(91, 0, UNSIGNED), 0);
    CHECK_EQUAL(field_of(138, 0).nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
}

static void the_list_of_processes_has_every_form(void) {
    void *context = NULL;
    nvmlProcessDetail_v1_t details[2];
    nvmlProcessDetailList_t list = {.version = VERSION(nvmlProcessDetailList_t, 1)};
    unsigned int count = 5;
    nvmlProcessInfo_t infos[5];
    CHECK_OK(nvmlDeviceGetMPSComputeRunningProcesses_v3(device, &count, infos));
    CHECK_EQUAL(count, 0);
    CHECK_OK(nvmlDeviceGetRunningProcessDetailList(device, &list));
    CHECK_EQUAL(list.numProcArrayEntries, 0);
    CHECK_OK(cuInit(0));
    CHECK_OK(cuCtxCreate_v2(&context, 0, 0));
    CHECK_EQUAL(nvmlDeviceGetRunningProcessDetailList(device, &list), NVML_ERROR_INSUFFICIENT_SIZE);
    CHECK_EQUAL(list.numProcArrayEntries, 1);
    list.procArray = details;
    list.numProcArrayEntries = 2;
    CHECK_OK(nvmlDeviceGetRunningProcessDetailList(device, &list));
    CHECK_EQUAL(list.numProcArrayEntries, 1);
    CHECK(details[0].pid == (unsigned int)getpid() && details[0].usedGpuMemory > 0);
    CHECK(details[0].gpuInstanceId == UINT32_MAX && details[0].usedGpuCcProtectedMemory == 0);
    for (list.mode = 1; list.mode <= 2; list.mode++) {
        CHECK_OK(nvmlDeviceGetRunningProcessDetailList(device, &list));
        CHECK_EQUAL(list.numProcArrayEntries, 0);
    }
    CHECK_EQUAL(nvmlDeviceGetRunningProcessDetailList(device, &list), NVML_ERROR_INVALID_ARGUMENT);
    list.version = 0;
    CHECK_EQUAL(nvmlDeviceGetRunningProcessDetailList(device, &list),
                NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    CHECK_OK(cuCtxDestroy_v2(context));
}

/* ---- DCGM */

static void what_dcgm_reads_once(void) {
    nvmlConfComputeSystemState_t confidential = {1, 1, 1};
    char text[32] = "";
    unsigned int number = 0;
    CHECK_OK(nvmlSystemGetConfComputeState(&confidential));
    CHECK_EQUAL(confidential.ccFeature, 0);
    CHECK_OK(nvmlDeviceGetInforomImageVersion(device, text, sizeof text));
    CHECK(text[0] != '\0');
    CHECK_OK(nvmlDeviceGetInforomVersion(device, 1, text, sizeof text));
    CHECK(text[0] != '\0');
    CHECK_EQUAL(nvmlDeviceGetInforomVersion(device, 2, text, sizeof text),
                NVML_ERROR_NOT_SUPPORTED);
    CHECK_OK(nvmlDeviceGetInforomConfigurationChecksum(device, &number));
    CHECK(number != 0);
    CHECK_EQUAL(nvmlDeviceGetAutoBoostedClocksEnabled(device, &number, &number),
                NVML_ERROR_NOT_SUPPORTED);
}

/* DCGM takes a field's number without looking at its result. */
static void default_counters_have_fields(void) {
    write_settings(
        "power=321000\npcie_replays=3\nrows_corrected=4\nrows_uncorrected=5\nrows_failed=1\n");
    unsigned long long heat = value_of(82, 0, UNSIGNED); /* of the memory */
    CHECK(heat > 20 && heat < 100);
    CHECK(value_of(83, 0, UNSIGNED_LONG_LONG) > 0); /* energy */
    CHECK_EQUAL(value_of(185, 0, UNSIGNED), 321000);
    CHECK_EQUAL(value_of(186, 0, UNSIGNED), 321000);
    CHECK_EQUAL(value_of(94, 0, UNSIGNED), 3);
    CHECK_EQUAL(value_of(142, 0, UNSIGNED), 4);
    CHECK_EQUAL(value_of(143, 0, UNSIGNED), 5);
    CHECK_EQUAL(value_of(145, 0, UNSIGNED), 1);
    CHECK(value_of(187, 0, UNSIGNED) < value_of(188, 0, UNSIGNED));
    CHECK_EQUAL(value_of(189, 0, UNSIGNED), value_of(190, 0, UNSIGNED));
    CHECK_EQUAL(value_of(192, 0, UNSIGNED), value_of(190, 0, UNSIGNED));
    for (unsigned int policy = 74; policy <= 81; policy++) {
        CHECK_EQUAL(value_of(policy, 0, UNSIGNED_LONG_LONG), 0);
    }
    for (unsigned int retired = 29; retired <= 31; retired++) {
        CHECK_EQUAL(value_of(retired, 0, UNSIGNED), 0);
    }
    nvmlRowRemapperHistogramValues_t banks;
    CHECK_OK(nvmlDeviceGetRowRemapperHistogram(device, &banks));
    CHECK(banks.max > 0 && banks.high == 9 && banks.partial + banks.low + banks.none == 0);
}

static void links_of_dcgm(void) {
    write_settings("nvlinks.0=4\nnvlink_down.0=2\n");
    CHECK_EQUAL(value_of(139, ALL_LINKS, UNSIGNED_LONG_LONG), 0);
    CHECK_EQUAL(value_of(165, 1, UNSIGNED), 1);
    CHECK_EQUAL(value_of(165, 2, UNSIGNED), 0);
    CHECK_EQUAL(field_of(165, 4).nvmlReturn, NVML_ERROR_INVALID_ARGUMENT);
}

static void errors_are_those_of_the_memory(void) {
    enum { CORRECTED, UNCORRECTED, L1 = 0, DRAM = 2, SRAM = 7 };
    unsigned long long count = 0;
    write_settings("ecc=0\n");
    CHECK_EQUAL(nvmlDeviceGetMemoryErrorCounter(device, CORRECTED, 0, DRAM, &count),
                NVML_ERROR_NOT_SUPPORTED);
    CHECK_EQUAL(field_of(3, 0).nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
    write_settings("ecc=1\necc_corrected=6\necc_uncorrected=2\n");
    CHECK_OK(nvmlDeviceGetTotalEccErrors(device, UNCORRECTED, 0, &count));
    CHECK_EQUAL(count, 2);
    CHECK_OK(nvmlDeviceGetMemoryErrorCounter(device, CORRECTED, 0, DRAM, &count));
    CHECK_EQUAL(count, 6);
    CHECK_OK(nvmlDeviceGetMemoryErrorCounter(device, UNCORRECTED, 1, DRAM, &count));
    CHECK_EQUAL(count, 2);
    CHECK_OK(nvmlDeviceGetMemoryErrorCounter(device, UNCORRECTED, 1, SRAM, &count));
    CHECK_EQUAL(count, 0);
    CHECK_EQUAL(nvmlDeviceGetMemoryErrorCounter(device, CORRECTED, 0, L1, &count),
                NVML_ERROR_NOT_SUPPORTED);
    CHECK_EQUAL(nvmlDeviceGetMemoryErrorCounter(device, CORRECTED, 0, 8, &count),
                NVML_ERROR_INVALID_ARGUMENT);
    CHECK_EQUAL(value_of(3, 0, UNSIGNED_LONG_LONG), 6);
    CHECK_EQUAL(value_of(4, 0, UNSIGNED_LONG_LONG), 2);
    CHECK_EQUAL(value_of(5, 0, UNSIGNED_LONG_LONG), 6);
    CHECK_EQUAL(value_of(6, 0, UNSIGNED_LONG_LONG), 2);
}

static void there_are_no_virtual_machines(void) {
    unsigned int count = 0;
    unsigned int ids[4];
    int type = 0;
    nvmlGridLicensableFeatures_t features = {1, 3};
    CHECK_EQUAL(nvmlDeviceGetActiveVgpus(device, &count, ids), NVML_ERROR_NOT_SUPPORTED);
    CHECK_EQUAL(nvmlDeviceGetSupportedVgpus(device, &count, ids), NVML_ERROR_NOT_SUPPORTED);
    CHECK_EQUAL(nvmlDeviceGetCreatableVgpus(device, &count, ids), NVML_ERROR_NOT_SUPPORTED);
    CHECK_EQUAL(nvmlDeviceGetVgpuUtilization(device, 0, &type, &count, NULL),
                NVML_ERROR_NOT_SUPPORTED);
    CHECK_EQUAL(nvmlDeviceGetVgpuProcessUtilization(device, 0, &count, NULL),
                NVML_ERROR_NOT_SUPPORTED);
    CHECK_OK(nvmlDeviceGetGridLicensableFeatures_v4(device, &features));
    CHECK(features.isGridLicenseSupported == 0 && features.licensableFeaturesCount == 0);
}

static void accounting_is_off(void) {
    unsigned int count = 0;
    nvmlAccountingStats_t stats;
    CHECK_OK(nvmlDeviceGetAccountingBufferSize(device, &count));
    CHECK(count > 0);
    CHECK_EQUAL(nvmlDeviceGetAccountingPids(device, &count, NULL), NVML_ERROR_NOT_SUPPORTED);
    CHECK_EQUAL(nvmlDeviceGetAccountingStats(device, 1, &stats), NVML_ERROR_NOT_SUPPORTED);
    write_settings("accounting=1\n");
    CHECK_OK(nvmlDeviceGetAccountingPids(device, &count, NULL));
    CHECK_EQUAL(count, 0);
    CHECK_EQUAL(nvmlDeviceGetAccountingStats(device, 1, &stats), NVML_ERROR_NOT_FOUND);
}

static void the_fabric_has_a_newer_form(void) {
    enum { OLDER = 36, MARK = 0xee };
    union {
        nvmlGpuFabricInfoV_t info;
        unsigned char bytes[sizeof(nvmlGpuFabricInfoV_t)];
    } told;
    memset(&told, MARK, sizeof told);
    told.info.version = VERSION(nvmlGpuFabricInfoV_t, 3);
    CHECK_EQUAL(nvmlDeviceGetGpuFabricInfoV(device, &told.info), NVML_ERROR_NOT_SUPPORTED);
    write_settings("clique.0=7\n");
    CHECK_OK(nvmlDeviceGetGpuFabricInfoV(device, &told.info));
    CHECK(told.info.cliqueId == 7 && told.info.state == NVML_GPU_FABRIC_STATE_COMPLETED);
    CHECK(told.info.status == NVML_SUCCESS && told.info.healthSummary == 1);
    memset(&told, MARK, sizeof told);
    told.info.version = OLDER | 2u << 24;
    CHECK_OK(nvmlDeviceGetGpuFabricInfoV(device, &told.info));
    CHECK_EQUAL(told.info.cliqueId, 7);
    CHECK_EQUAL(told.bytes[OLDER], MARK);
    told.info.version = 0;
    CHECK_EQUAL(nvmlDeviceGetGpuFabricInfoV(device, &told.info),
                NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
}

/* DCGM watches each GPU instance of a GPU in MIG mode by its number. */
static void instances_are_watched(void) {
    enum { ONE_SLICE = 19, WHOLE = 0, SM = 2 };
    static nvmlGpmMetricsGet_t metrics = {.version = 1, .numMetrics = 1};
    nvmlReturn_t active = NVML_SUCCESS;
    nvmlGpuInstance_t instance = NULL;
    nvmlComputeInstance_t part = NULL;
    nvmlGpuInstanceInfo_t info;
    metrics.metrics[0].metricId = SM;
    CHECK_OK(nvmlGpmSampleAlloc(&metrics.sample1));
    CHECK_OK(nvmlGpmSampleAlloc(&metrics.sample2));
    CHECK_EQUAL(nvmlGpmMigSampleGet(device, 1, metrics.sample1), NVML_ERROR_NOT_SUPPORTED);
    CHECK_OK(nvmlDeviceSetMigMode(device, 1, &active));
    CHECK_OK(nvmlDeviceCreateGpuInstance(device, ONE_SLICE, &instance));
    CHECK_OK(nvmlGpuInstanceGetInfo(instance, &info));
    CHECK_EQUAL(nvmlGpmMigSampleGet(device, info.id, metrics.sample1), NVML_ERROR_NOT_FOUND);
    CHECK_OK(nvmlGpuInstanceCreateComputeInstance(instance, WHOLE, &part));
    CHECK_EQUAL(nvmlGpmMigSampleGet(device, info.id + 1, metrics.sample1), NVML_ERROR_NOT_FOUND);
    CHECK_EQUAL(nvmlGpmMigSampleGet(device, 1000, metrics.sample1), NVML_ERROR_NOT_FOUND);
    CHECK_EQUAL(nvmlGpmMigSampleGet(device, info.id, NULL), NVML_ERROR_INVALID_ARGUMENT);
    CHECK_OK(nvmlGpmMigSampleGet(device, info.id, metrics.sample1));
    CHECK_OK(nvmlGpmMigSampleGet(device, info.id, metrics.sample2));
    CHECK_OK(nvmlGpmMetricsGet(&metrics));
    CHECK_OK(metrics.metrics[0].nvmlReturn);
    CHECK(metrics.metrics[0].value == 0.0);
    CHECK_OK(nvmlGpmSampleFree(metrics.sample1));
    CHECK_OK(nvmlGpmSampleFree(metrics.sample2));
    CHECK_OK(nvmlComputeInstanceDestroy(part));
    CHECK_OK(nvmlGpuInstanceDestroy(instance));
    CHECK_OK(nvmlDeviceSetMigMode(device, 0, &active));
}

int main(void) {
    CHECK_OK(nvmlInit_v2());
    CHECK_OK(nvmlDeviceGetHandleByIndex_v2(0, &device));
    are_exported(of_nvitop, sizeof of_nvitop / sizeof of_nvitop[0]);
    heat_is_read_in_the_newer_form();
    fans_and_driver_models_are_not_there();
    links_tell_their_traffic();
    the_list_of_processes_has_every_form();
    are_exported(of_dcgm, sizeof of_dcgm / sizeof of_dcgm[0]);
    what_dcgm_reads_once();
    default_counters_have_fields();
    links_of_dcgm();
    errors_are_those_of_the_memory();
    there_are_no_virtual_machines();
    accounting_is_off();
    the_fabric_has_a_newer_form();
    instances_are_watched();
    CHECK_OK(nvmlShutdown());
    return check_failures != 0;
}
