/* Call forms that libraries use besides the common ones: legacy launches, clusters, machine-code modules. */
#include "check.h"
#include "cuda_api.h"

#include <elf.h>
#include <string.h>

CUresult cuFuncSetBlockShape(CUfunction function, int x, int y, int z);
CUresult cuFuncSetSharedSize(CUfunction function, unsigned int bytes);
CUresult cuParamSetSize(CUfunction function, unsigned int bytes);
CUresult cuParamSeti(CUfunction function, int offset, unsigned int value);
CUresult cuParamSetf(CUfunction function, int offset, float value);
CUresult cuParamSetv(CUfunction function, int offset, void *value, unsigned int bytes);
CUresult cuLaunch(CUfunction function);
CUresult cuLaunchGrid(CUfunction function, int width, int height);
CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream);

CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction function,
                                      const CUlaunchConfig *config);
CUresult cuOccupancyMaxPotentialClusterSize(int *size, CUfunction function,
                                            const CUlaunchConfig *config);
CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, CUfunction function, int blocks,
                                                 int threads);
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads,
                                                     size_t shared);
CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value);
CUresult cuFuncGetName(const char **name, CUfunction function);
CUresult cuModuleGetLoadingMode(int *mode);
CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image);
CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, CUlibrary library,
                            const char *name);
CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary library);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);

CUresult cuFuncGetParamCount(CUfunction function, size_t *count);
CUresult cuStreamGetAttribute(CUstream stream, int attribute, void *value);
CUresult cuStreamSetAttribute(CUstream stream, int attribute, const void *value);
CUresult cuStreamCopyAttributes(CUstream target, CUstream source);
CUresult cuStreamGetPriority(CUstream stream, int *priority);

static CUcontext context;
static CUmodule module;

static CUfunction function(const char *name) {
    CUfunction found = NULL;
    CHECK_OK(cuModuleGetFunction(&found, module, name));
    return found;
}

static void legacyLaunchesTakeWhatTheFunctionHas(void) {
    enum { N = 100 };
    CUfunction fill = function("vgpu_fill");
    CUfunction saxpy = function("vgpu_saxpy");
    CUdeviceptr p = 0;
    uint64_t n = N;
    float value = 0;
    CHECK_OK(cuMemAlloc_v2(&p, N * sizeof value));
    CHECK_EQUAL(cuLaunch(fill), CUDA_ERROR_INVALID_VALUE); /* no block shape set yet */
    CHECK_OK(cuFuncSetBlockShape(fill, 64, 1, 1));
    CHECK_EQUAL(cuLaunch(fill), CUDA_ERROR_INVALID_VALUE); /* no parameters set yet */
    CHECK_OK(cuFuncSetSharedSize(fill, 1024));
    CHECK_OK(cuParamSetv(fill, 0, &p, sizeof p));
    CHECK_OK(cuParamSeti(fill, 8, 0x40000000)); /* 2.0f */
    CHECK_OK(cuParamSetv(fill, 16, &n, sizeof n));
    CHECK_OK(cuParamSetSize(fill, 24));
    CHECK_OK(cuLaunch(fill));
    CHECK_OK(cuMemcpyDtoH_v2(&value, p + 4 * (N - 1), sizeof value));
    CHECK(value == 2.0f);
    CHECK_OK(cuFuncSetBlockShape(saxpy, 64, 1, 1));
    CHECK_OK(cuParamSetf(saxpy, 0, 3.0f));
    CHECK_OK(cuParamSetv(saxpy, 8, &p, sizeof p));
    CHECK_OK(cuParamSetv(saxpy, 16, &p, sizeof p));
    CHECK_OK(cuParamSetv(saxpy, 24, &n, sizeof n));
    CHECK_OK(cuParamSetSize(saxpy, 32));
    CHECK_OK(cuLaunchGrid(saxpy, 2, 1));
    CUstream stream = NULL;
    CHECK_OK(cuStreamCreate(&stream, 0));
    CHECK_OK(cuLaunchGridAsync(saxpy, 2, 1, stream));
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK_OK(cuMemcpyDtoH_v2(&value, p, sizeof value));
    CHECK(value == 32.0f); /* 2 -> 3 * 2 + 2 -> 3 * 8 + 8 */
    CHECK_EQUAL(cuLaunchGrid(saxpy, 0, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuParamSetv(saxpy, 4090, &n, sizeof n), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuParamSetv(saxpy, -1, &n, sizeof n), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuParamSetSize(saxpy, 4097), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuFuncSetBlockShape(NULL, 1, 1, 1), CUDA_ERROR_INVALID_HANDLE);
    CHECK_OK(cuStreamDestroy_v2(stream));
    CHECK_OK(cuMemFree_v2(p));
}

static void sharedMemoryHasTheLimitsOfTheDevice(void) {
    CUfunction null = function("vgpu_null");
    size_t bytes = 0;
    int opt_in = 0;
    int blocks = 0;
    CHECK_OK(cuDeviceGetAttribute(&opt_in, 97, 0));
    CHECK_EQUAL(opt_in, 232448);
    CHECK_OK(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, null, 1, 64));
    CHECK_EQUAL(bytes, opt_in);
    CHECK_OK(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, null, 2, 64));
    CHECK_EQUAL(bytes, 233472 / 2 - 1024);
    CHECK_OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, null, 64, bytes));
    CHECK_EQUAL(blocks, 2);
    CHECK_EQUAL(cuFuncSetAttribute(null, 8, opt_in + 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQUAL(cuLaunchKernel(null, 1, 1, 1, 1, 1, 1, 49153, NULL, NULL, NULL),
                CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuFuncSetAttribute(null, 8, opt_in));
    CHECK_OK(cuLaunchKernel(null, 1, 1, 1, 1, 1, 1, (unsigned)opt_in, NULL, NULL, NULL));
}

static void clustersFitAsManyAsTheirBlocksDo(void) {
    CUfunction null = function("vgpu_null");
    CUlaunchAttribute shape = {.id = 4};
    CUlaunchConfig config = {.grid_x = 16,
                             .grid_y = 1,
                             .grid_z = 1,
                             .block_x = 1024,
                             .block_y = 1,
                             .block_z = 1,
                             .attributes = &shape,
                             .attribute_count = 1};
    unsigned int four[3] = {2, 2, 1};
    unsigned int sixteen[3] = {16, 1, 1};
    int number = 0;
    memcpy(shape.value, four, sizeof four);
    CHECK_OK(cuOccupancyMaxActiveClusters(&number, null, &config));
    CHECK_EQUAL(number, 132 * 2 / 4);
    CHECK_OK(cuOccupancyMaxPotentialClusterSize(&number, null, &config));
    CHECK_EQUAL(number, 8);
    memcpy(shape.value, sixteen, sizeof sixteen);
    CHECK_EQUAL(cuOccupancyMaxActiveClusters(&number, null, &config),
                CUDA_ERROR_INVALID_CLUSTER_SIZE);
    CHECK_OK(cuFuncSetAttribute(null, 14, 1));
    CHECK_OK(cuOccupancyMaxPotentialClusterSize(&number, null, &config));
    CHECK_EQUAL(number, 16);
    CHECK_OK(cuOccupancyMaxActiveClusters(&number, null, &config));
    CHECK_EQUAL(number, 132 * 2 / 16);
    CHECK_EQUAL(cuOccupancyMaxActiveClusters(NULL, null, &config), CUDA_ERROR_INVALID_VALUE);
}

/* Machine code in the layout of the toolkit's assembler: a kernel, a device function, variables. */
typedef struct {
    Elf64_Ehdr header;
    Elf64_Sym symbols[6];
    char names[64];
    Elf64_Shdr sections[5];
} machine_code;

static const char symbol_names[] = "\0scale\0helper\0table\0factors\0elsewhere";

static machine_code make_machine_code(void) {
    machine_code code = {
        .header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1},
                   .e_type = ET_EXEC,
                   .e_machine = 190,
                   .e_shoff = offsetof(machine_code, sections),
                   .e_shentsize = sizeof(Elf64_Shdr),
                   .e_shnum = 5},
        .symbols =
            {{0},
             {.st_name = 1, .st_info = STT_FUNC | STB_GLOBAL << 4, .st_other = 0x10, .st_shndx = 3},
             {.st_name = 7, .st_info = STT_FUNC | STB_GLOBAL << 4, .st_shndx = 3},
             {.st_name = 14, .st_info = STT_OBJECT, .st_shndx = 4, .st_size = 40},
             {.st_name = 20, .st_info = STT_OBJECT, .st_shndx = 4, .st_size = 24},
             {.st_name = 28, .st_info = STT_OBJECT, .st_shndx = SHN_UNDEF, .st_size = 4}},
        .sections = {[1] = {.sh_type = SHT_STRTAB, .sh_offset = offsetof(machine_code, names)},
                     [2] = {.sh_type = SHT_SYMTAB,
                            .sh_offset = offsetof(machine_code, symbols),
                            .sh_size = sizeof code.symbols,
                            .sh_link = 1}}};
    memcpy(code.names, symbol_names, sizeof symbol_names);
    return code;
}

static void check_machine_code(CUmodule loaded) {
    CUdeviceptr address = 0;
    size_t bytes = 0;
    unsigned int count = 0;
    CUfunction found = NULL;
    CHECK_OK(cuModuleGetFunction(&found, loaded, "scale"));
    CHECK_EQUAL(cuModuleGetFunction(&found, loaded, "helper"), CUDA_ERROR_NOT_FOUND);
    CHECK_OK(cuLibraryGetKernelCount(&count, loaded));
    CHECK_EQUAL(count, 1);
    CHECK_OK(cuModuleGetGlobal_v2(&address, &bytes, loaded, "table"));
    CHECK_EQUAL(bytes, 40);
    CHECK_OK(cuMemsetD8_v2(address, 1, 40));
    CHECK_OK(cuLibraryGetGlobal(NULL, &bytes, loaded, "factors"));
    CHECK_EQUAL(bytes, 24);
    CHECK_EQUAL(cuModuleGetGlobal_v2(&address, &bytes, loaded, "elsewhere"), CUDA_ERROR_NOT_FOUND);
}

static void machineCodeHasWhatItsSymbolsSay(void) {
    CUmodule loaded = NULL;
    machine_code code = make_machine_code();
    CHECK_OK(cuModuleLoadData(&loaded, &code));
    check_machine_code(loaded);
    CHECK_OK(cuModuleUnload(loaded));
    struct {
        uint32_t magic;
        uint16_t version;
        uint16_t header_bytes;
        uint64_t bytes;
        uint16_t kind;
        uint16_t entry_version;
        uint32_t entry_header_bytes;
        uint64_t entry_bytes;
        machine_code code;
    } fat = {0xba55ed50, 1, 16, 16 + sizeof code, 2, 0x101, 16, sizeof code, code};
    struct {
        uint32_t magic;
        uint32_t version;
        void *fat;
        void *unused;
    } wrapper = {0x466243b1, 1, &fat, NULL};
    CHECK_OK(cuModuleLoadFatBinary(&loaded, &wrapper));
    check_machine_code(loaded);
    CHECK_OK(cuModuleUnload(loaded));
    code.sections[2].sh_type = SHT_NULL; /* stripped: it may contain any kernel */
    CUfunction found = NULL;
    CHECK_OK(cuModuleLoadData(&loaded, &code));
    CHECK_OK(cuModuleGetFunction(&found, loaded, "anything"));
    CHECK_OK(cuModuleUnload(loaded));
}

static void namesMayBeOfAnyLength(void) {
    char name[2][700];
    char ptx[2000];
    for (int i = 0; i < 2; i++) { /* identical except for the last character */
        memset(name[i], 'k', sizeof name[i] - 1);
        name[i][sizeof name[i] - 2] = (char)('a' + i);
        name[i][sizeof name[i] - 1] = '\0';
    }
    snprintf(ptx, sizeof ptx, ".version 6.0\n.entry %s() { ret; }\n.entry %s() { ret; }\n", name[0],
             name[1]);
    CUmodule loaded = NULL;
    CUfunction found[2] = {NULL};
    CHECK_OK(cuModuleLoadData(&loaded, ptx));
    for (int i = 0; i < 2; i++) {
        const char *told = NULL;
        CHECK_OK(cuModuleGetFunction(&found[i], loaded, name[i]));
        CHECK_OK(cuFuncGetName(&told, found[i]));
        CHECK(told != NULL && strcmp(told, name[i]) == 0);
    }
    CHECK(found[0] != found[1]);
    CHECK_OK(cuModuleUnload(loaded));
}

static void librariesLoadWithOptionsThatHaveNoValue(void) {
    CUlibrary library = NULL;
    int option = 0;
    CHECK_OK(cuLibraryLoadData(&library, test_ptx, &option, NULL, 1, &option, NULL, 1));
    CHECK_OK(cuLibraryUnload(library));
    CHECK_EQUAL(cuLibraryLoadData(&library, test_ptx, NULL, NULL, 1, NULL, NULL, 0),
                CUDA_ERROR_INVALID_VALUE);
}

static void streamsKeepTheirAttributes(void) {
    enum { ACCESS_POLICY = 1, COOPERATIVE = 2, SYNC_POLICY = 3, PRIORITY = 8 };
    CUlaunchAttribute set = {.value = "a window"};
    CUlaunchAttribute seen = {.value = ""};
    CUstream one = NULL;
    CUstream other = NULL;
    int priority = -3;
    CUlaunchAttribute urgent = {.value = ""};
    memcpy(urgent.value, &priority, sizeof priority);
    CHECK_OK(cuStreamCreate(&one, 0));
    CHECK_OK(cuStreamCreate(&other, 0));
    CHECK_OK(cuStreamGetAttribute(one, SYNC_POLICY, seen.value));
    CHECK_EQUAL(seen.value[0], 1);
    CHECK_OK(cuStreamSetAttribute(one, ACCESS_POLICY, set.value));
    CHECK_OK(cuStreamSetAttribute(one, PRIORITY, urgent.value));
    CHECK_OK(cuStreamGetAttribute(other, ACCESS_POLICY, seen.value));
    CHECK_EQUAL(seen.value[0], 0); /* each has its own */
    CHECK_OK(cuStreamCopyAttributes(other, one));
    CHECK_OK(cuStreamGetAttribute(other, ACCESS_POLICY, seen.value));
    CHECK(memcmp(seen.value, set.value, sizeof set.value) == 0);
    CHECK_OK(cuStreamGetAttribute(other, PRIORITY, seen.value));
    CHECK(memcmp(seen.value, &priority, sizeof priority) == 0);
    CHECK_OK(cuStreamGetPriority(other, &priority));
    CHECK_EQUAL(priority, -3);
    CHECK_EQUAL(cuStreamGetAttribute(one, COOPERATIVE, seen.value),
                CUDA_ERROR_INVALID_VALUE); /* a launch's */
    CHECK_EQUAL(cuStreamSetAttribute(one, ACCESS_POLICY, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuStreamDestroy_v2(one));
    CHECK_OK(cuStreamDestroy_v2(other));
}

static void functionsTellTheNumberOfTheirParameters(void) {
    size_t count = 0;
    CHECK_OK(cuFuncGetParamCount(function("vgpu_saxpy"), &count));
    CHECK_EQUAL(count, 4);
    CHECK_OK(cuFuncGetParamCount(function("vgpu_null"), &count));
    CHECK_EQUAL(count, 0);
    CHECK_EQUAL(cuFuncGetParamCount(function("vgpu_null"), NULL), CUDA_ERROR_INVALID_VALUE);
}

static void loadingIsLazy(void) {
    int mode = 0;
    CHECK_OK(cuModuleGetLoadingMode(&mode));
    CHECK_EQUAL(mode, 2);
}

static void primaryContextKeepsItsHandle(void) {
    CUcontext other = NULL;
    CUcontext again = NULL;
    CUdeviceptr p = 0;
    CHECK_OK(cuDevicePrimaryCtxReset_v2(0));
    CHECK_EQUAL(cuMemAlloc_v2(&p, 1), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK_OK(cuCtxCreate_v2(&other, 0, 0)); /* does not reuse the handle */
    CHECK_OK(cuCtxPopCurrent_v2(NULL));
    CHECK(other != context);
    CHECK_OK(cuDevicePrimaryCtxRetain(&again, 0));
    CHECK(again == context);
    CHECK_OK(cuMemAlloc_v2(&p, 1)); /* still current to this thread */
    CHECK_OK(cuMemFree_v2(p));
    CHECK_OK(cuCtxDestroy_v2(other));
}

/* The context is retained before and after the reset. */
static void aResetReleasesNothing(void) {
    unsigned int flags = 0;
    int active = 0;
    CHECK_OK(cuDevicePrimaryCtxRelease_v2(0));
    CHECK_OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    CHECK_EQUAL(active, 1);
    CHECK_OK(cuDevicePrimaryCtxReset_v2(0));
    CHECK_OK(cuDevicePrimaryCtxRelease_v2(0));
    CHECK_EQUAL(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
}

int main(void) {
    CHECK_OK(cuInit(0));
    CHECK_OK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK_OK(cuCtxSetCurrent(context));
    CHECK_OK(cuModuleLoadData(&module, test_ptx));
    legacyLaunchesTakeWhatTheFunctionHas();
    sharedMemoryHasTheLimitsOfTheDevice();
    clustersFitAsManyAsTheirBlocksDo();
    machineCodeHasWhatItsSymbolsSay();
    namesMayBeOfAnyLength();
    librariesLoadWithOptionsThatHaveNoValue();
    functionsTellTheNumberOfTheirParameters();
    streamsKeepTheirAttributes();
    loadingIsLazy();
    primaryContextKeepsItsHandle();
    aResetReleasesNothing();
    return check_failures != 0;
}
