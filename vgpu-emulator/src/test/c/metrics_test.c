/* NVML's metrics between two samples, recent samples, and links: they follow what the GPU did. */
#include "base/nvml_abi.h"
#include "check.h"
#include "cuda_api.h"

#include <string.h>

nvmlReturn_t nvmlInit_v2(void);
nvmlReturn_t nvmlShutdown(void);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device);
nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample);
nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample);
nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample);
nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *metrics);
nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *support);
nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, int type, unsigned long long since_us,
                                  int *value_type, unsigned int *count, nvmlSample_t *samples);
nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned int link, int capability,
                                           unsigned int *is);
nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t device, unsigned int link, int counter,
                                             unsigned long long *errors);
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values);

enum { GRAPHICS = 1, SM, DRAM = 10, TENSOR = 5, PCIE_SENT = 20, GPU_BUSY = 1, TRIES = 50 };
enum { SPIN_NS = 60000000, STRETCH_US = 20000, MOST = 100 };

static nvmlDevice_t device;
static CUfunction spin;

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void keepBusy(void) {
    uint64_t ns = SPIN_NS;
    void *arguments[] = {&ns};
    CHECK_OK(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
    CHECK_OK(cuCtxSynchronize());
}

static void metricsAreWhatRanBetweenTwoSamples(void) {
    static nvmlGpmMetricsGet_t metrics;
    nvmlGpmSample_t samples[3] = {NULL};
    for (int i = 0; i < 3; i++) {
        CHECK_OK(nvmlGpmSampleAlloc(&samples[i]));
    }
    metrics.version = 1;
    metrics.numMetrics = 5;
    metrics.sample1 = samples[0];
    metrics.sample2 = samples[1];
    unsigned int wanted[] = {GRAPHICS, SM, DRAM, TENSOR, PCIE_SENT};
    for (int i = 0; i < 5; i++) {
        metrics.metrics[i].metricId = wanted[i];
    }
    CHECK_EQUAL(nvmlGpmMetricsGet(&metrics),
                NVML_ERROR_INVALID_ARGUMENT); /* the samples are empty */
    uint64_t before = now_ns();
    CHECK_OK(nvmlGpmSampleGet(device, samples[0]));
    keepBusy();
    CHECK_OK(nvmlGpmSampleGet(device, samples[1]));
    double most_ns = (double)(now_ns() - before);
    CHECK_OK(nvmlGpmSampleGet(device, samples[2]));
    CHECK_OK(nvmlGpmMetricsGet(&metrics));
    CHECK_OK(metrics.metrics[0].nvmlReturn);
    double busy = metrics.metrics[0].value;
    CHECK(busy <= 100.0 && busy >= SPIN_NS * 100.0 / most_ns - 0.001);
    CHECK(metrics.metrics[1].value == busy);
    CHECK(metrics.metrics[2].value == busy / 2);
    CHECK_EQUAL(metrics.metrics[3].nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
    CHECK_OK(metrics.metrics[4].nvmlReturn);
    CHECK(strcmp(metrics.metrics[4].metricInfo.unit, "MiB/s") == 0);
    metrics.sample1 = samples[1]; /* idle between these */
    metrics.sample2 = samples[2];
    CHECK_OK(nvmlGpmMetricsGet(&metrics));
    CHECK(metrics.metrics[0].value == 0.0);
    metrics.sample1 = samples[2];
    metrics.sample2 = samples[1];
    CHECK_EQUAL(nvmlGpmMetricsGet(&metrics), NVML_ERROR_INVALID_ARGUMENT); /* the wrong way round */
    metrics.version = 2;
    CHECK_EQUAL(nvmlGpmMetricsGet(&metrics), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(nvmlGpmSampleFree(samples[i]));
    }
}

static void samplesOfTwoGpusGiveNoMetrics(void) {
    static nvmlGpmMetricsGet_t metrics;
    nvmlDevice_t other = NULL;
    nvmlGpmSupport_t support = {.version = 1};
    CHECK_OK(nvmlDeviceGetHandleByIndex_v2(1, &other));
    CHECK_OK(nvmlGpmQueryDeviceSupport(other, &support));
    CHECK_EQUAL(support.isSupportedDevice, 1);
    support.version = 0;
    CHECK_EQUAL(nvmlGpmQueryDeviceSupport(other, &support), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    metrics.version = 1;
    metrics.numMetrics = 1;
    metrics.metrics[0].metricId = SM;
    CHECK_OK(nvmlGpmSampleAlloc(&metrics.sample1));
    CHECK_OK(nvmlGpmSampleAlloc(&metrics.sample2));
    CHECK_OK(nvmlGpmSampleGet(device, metrics.sample1));
    CHECK_OK(nvmlGpmSampleGet(other, metrics.sample2));
    CHECK_EQUAL(nvmlGpmMetricsGet(&metrics), NVML_ERROR_INVALID_ARGUMENT);
    CHECK_OK(nvmlGpmSampleFree(metrics.sample1));
    CHECK_OK(nvmlGpmSampleFree(metrics.sample2));
    CHECK_EQUAL(nvmlGpmSampleAlloc(NULL), NVML_ERROR_INVALID_ARGUMENT);
    CHECK_EQUAL(nvmlGpmSampleFree(NULL), NVML_ERROR_INVALID_ARGUMENT);
}

static unsigned int recent(nvmlSample_t *samples, unsigned long long since_us) {
    int type = 0;
    unsigned int count = MOST;
    nvmlReturn_t result = nvmlDeviceGetSamples(device, GPU_BUSY, since_us, &type, &count, samples);
    CHECK(result == NVML_SUCCESS || result == NVML_ERROR_NOT_FOUND);
    CHECK(result != NVML_SUCCESS || type == 1);
    return result == NVML_SUCCESS ? count : 0;
}

/* On a slow machine, the kernel may be over for so long that no sample tells of it. Then it is run again. */
static void recentSamplesTellOfAKernel(void) {
    nvmlSample_t samples[MOST];
    unsigned int most = 0;
    unsigned int count = 0;
    for (int i = 0; i < TRIES && most < 100; i++) {
        keepBusy();
        count = recent(samples, 0);
        for (unsigned int j = 0; j < count; j++) {
            most = samples[j].sampleValue.uiVal > most ? samples[j].sampleValue.uiVal : most;
            CHECK(j == 0 || samples[j].timeStamp == samples[j - 1].timeStamp + STRETCH_US);
        }
    }
    CHECK_EQUAL(most, 100); /* a stretch that lies in the kernel as a whole */
    unsigned long long last = samples[count - 1].timeStamp;
    keepBusy();
    unsigned int later = recent(samples, last);
    CHECK(later > 0 && samples[0].timeStamp > last);
    CHECK_EQUAL(recent(samples, UINT64_MAX), 0);
}

static void samplesNeedAPlace(void) {
    nvmlSample_t sample;
    int type = 0;
    unsigned int count = 0;
    CHECK_OK(nvmlDeviceGetSamples(device, GPU_BUSY, 0, &type, &count, NULL));
    CHECK_EQUAL(count, MOST);
    count = 0;
    CHECK_EQUAL(nvmlDeviceGetSamples(device, GPU_BUSY, 0, &type, &count, &sample),
                NVML_ERROR_INVALID_ARGUMENT);
    count = 1;
    CHECK_EQUAL(nvmlDeviceGetSamples(device, 10, 0, &type, &count, &sample),
                NVML_ERROR_INVALID_ARGUMENT);
    CHECK_EQUAL(nvmlDeviceGetSamples(device, 8, 0, &type, &count, &sample),
                NVML_ERROR_NOT_SUPPORTED);
    CHECK_OK(nvmlDeviceGetSamples(device, 0, 0, &type, &count, &sample)); /* no more than one */
    CHECK(sample.sampleValue.uiVal >= 100000);
}

static void linksHaveCapabilitiesAndErrors(void) {
    unsigned int is = 0;
    unsigned long long errors = 1;
    CHECK_OK(nvmlDeviceGetNvLinkCapability(device, 0, 0, &is));
    CHECK_EQUAL(is, 1);
    CHECK_OK(nvmlDeviceGetNvLinkCapability(device, 0, 4, &is));
    CHECK_EQUAL(is, 0); /* no bridge */
    CHECK_EQUAL(nvmlDeviceGetNvLinkCapability(device, 12, 0, &is), NVML_ERROR_INVALID_ARGUMENT);
    CHECK_EQUAL(nvmlDeviceGetNvLinkCapability(device, 0, 6, &is), NVML_ERROR_INVALID_ARGUMENT);
    CHECK_OK(nvmlDeviceGetNvLinkErrorCounter(device, 3, 1, &errors));
    CHECK_EQUAL(errors, 2);
    CHECK_EQUAL(nvmlDeviceGetNvLinkErrorCounter(device, 3, 5, &errors),
                NVML_ERROR_INVALID_ARGUMENT);
    nvmlFieldValue_t fields[] = {
        {.fieldId = 91}, {.fieldId = 52}, {.fieldId = 144}, {.fieldId = 1}};
    CHECK_OK(nvmlDeviceGetFieldValues(device, 4, fields));
    CHECK(fields[0].nvmlReturn == NVML_SUCCESS && fields[0].value.uiVal == 12);
    CHECK(fields[1].nvmlReturn == NVML_SUCCESS && fields[1].value.ullVal == 24);
    CHECK(fields[2].nvmlReturn == NVML_SUCCESS && fields[2].value.uiVal == 5);
    CHECK_EQUAL(fields[3].nvmlReturn, NVML_ERROR_NOT_SUPPORTED); /* no ECC */
}

int main(void) {
    CUcontext context = NULL;
    CUmodule module = NULL;
    setenv("VGPU_EMULATOR_NVML", "nvlink_errors=2,rows_pending=5", 1);
    CHECK_OK(nvmlInit_v2());
    CHECK_OK(nvmlDeviceGetHandleByIndex_v2(0, &device));
    CHECK_OK(cuInit(0));
    CHECK_OK(cuCtxCreate_v2(&context, 0, 0));
    CHECK_OK(cuModuleLoadData(&module, test_ptx));
    CHECK_OK(cuModuleGetFunction(&spin, module, "vgpu_spin"));
    metricsAreWhatRanBetweenTwoSamples();
    samplesOfTwoGpusGiveNoMetrics();
    recentSamplesTellOfAKernel();
    samplesNeedAPlace();
    linksHaveCapabilitiesAndErrors();
    CHECK_OK(cuCtxDestroy_v2(context));
    CHECK_OK(nvmlShutdown());
    return check_failures == 0 ? 0 : 1;
}
