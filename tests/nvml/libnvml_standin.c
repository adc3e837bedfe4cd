/* A stand-in for NVIDIA's libnvidia-ml.so.1, so that code which reads GPUs can be tested without one.
 *
 * It exports the functions that the genuine nvidia-ml-py calls for what we read and set. Everything it answers comes
 * from a text file of `key=value` lines, read afresh in every call, so that a test, or another
 * process that sets a power limit, changes what a running reader sees, as with a real driver. The file is
 * $UNVEIL_NVML_STATE, else it lies beside the library: $UNVEIL_NVML_LIBRARY with ".state" at its end.
 *
 * Keys of the host
 *   gpus=2                          how many GPUs there are
 *   order=1,0                       which GPU stands at index 0, 1, ... (a driver promises no order)
 *   driver.loaded=0                 no driver: every call says DRIVER_NOT_LOADED
 *   driver.generation=2             the driver was reloaded: a process that initialised under another generation is
 *                                   told UNINITIALIZED for the rest of its life; only a fresh process recovers
 *   error.FUNCTION=9                that function (one that takes no GPU) answers this error code
 *   delay.FUNCTION=3                ... takes this many seconds
 *
 * Keys of a GPU, `gpuN.KEY`, or `gpu.KEY` for those that have none of their own (N is the GPU, not its index)
 *   uuid name pci                   identity
 *   util memory_util                per cent
 *   memory_total memory_used        bytes
 *   power_demand                    mW that the workload would draw without a limit
 *   persistence_mode 0 or 1 · applications_memory applications_sm MHz
 *   power_limit power_default power_min power_max      mW
 *   power_cap_firm                  mW that no limit we set goes beyond, whatever the driver answers to the setter
 *   sm_clock_max memory_clock       MHz
 *   bar1_total bar1_used            bytes
 *   compute_mode                    as in nvml.h · repair_pending repair_failed 0 or 1
 *   temperature reasons pcie_tx pcie_rx pcie_gen pcie_width ecc_corrected mig     as in nvml.h
 *   processes=4242:1073741824,...   PID and bytes of each compute process
 *   lost=1                          fell off the bus: every call says GPU_IS_LOST
 *   error.FUNCTION=3                that function answers this error code
 *   delay.FUNCTION=30               that call hangs in the driver: no signal ends it, only the time, or the key's removal
 *   energy energy_at                written here: mJ used until a moment (s), so that the counter never goes back
 * FUNCTION may be `*`.
 *
 * The law of power (ours, not a GPU's; good enough to tell capped from free): a GPU draws what its workload demands up
 * to the limit. Beyond it the software power cap is the reason, and the SM clock falls with the cube root of the power.
 *
 * Struct layouts follow nvml.h as nvidia-ml-py declares them.
 * Build: gcc -std=gnu11 -O1 -Wall -Wextra -Werror -shared -fPIC -Wl,-soname,libnvidia-ml.so.1 ... -lm
 */
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NO_PERMISSION = 4,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9,
    GPU_IS_LOST = 15,
    UNKNOWN_ERROR = 999,
};

enum { MOST_GPUS = 16, KEY = 128, VALUE = 1024, STATE = 1 << 16 };

typedef int Return;
typedef struct { int number; } Gpu; /* what a handle points at */

static Gpu gpus[MOST_GPUS];
static int initialised;          /* balance of init and shutdown */
static long first_generation = -1; /* of the driver under which this process first initialised */

#define EXPORT __attribute__((visibility("default")))

/* ---- the state file ------------------------------------------------------------------------------------------- */

/* One copy a thread: callers such as ctypes release their own lock during a call. A leading newline makes every key
 * findable as "\nkey=". */
static __thread char state[STATE];

static void take(int file)
{
    size_t length = 1;
    ssize_t got;
    state[0] = '\n';
    lseek(file, 0, SEEK_SET);
    while ((got = read(file, state + length, sizeof state - 1 - length)) > 0)
        length += (size_t)got;
    state[length] = '\0';
}

static const char *state_file(void)
{
    static char beside[4096];
    const char *path = getenv("UNVEIL_NVML_STATE"), *library = getenv("UNVEIL_NVML_LIBRARY");
    if (path || !library)
        return path;
    snprintf(beside, sizeof beside, "%s.state", library);
    return beside;
}

static bool load(void)
{
    const char *path = state_file();
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) {
        state[0] = '\0';
        return false;
    }
    flock(file, LOCK_SH); /* writers rewrite in place, under LOCK_EX */
    take(file);
    close(file);
    return true;
}

static bool find(const char *key, char *value, size_t size)
{
    char wanted[KEY + 2];
    snprintf(wanted, sizeof wanted, "\n%s=", key);
    const char *start = strstr(state, wanted);
    if (!start)
        return false;
    start += strlen(wanted);
    snprintf(value, size, "%.*s", (int)strcspn(start, "\n"), start);
    return true;
}

static double host_number(const char *key, double otherwise)
{
    char value[VALUE];
    return find(key, value, sizeof value) ? strtod(value, NULL) : otherwise;
}

static bool gpu_text(const Gpu *gpu, const char *name, char *value, size_t size)
{
    char key[KEY];
    snprintf(key, sizeof key, "gpu%d.%s", gpu->number, name);
    if (find(key, value, size))
        return true;
    snprintf(key, sizeof key, "gpu.%s", name);
    return find(key, value, size);
}

static double gpu_number(const Gpu *gpu, const char *name, double otherwise)
{
    char value[VALUE];
    return gpu_text(gpu, name, value, sizeof value) ? strtod(value, NULL) : otherwise;
}

static void drop_line(const char *key)
{
    char wanted[KEY + 2];
    snprintf(wanted, sizeof wanted, "\n%s=", key);
    char *start = strstr(state, wanted);
    if (start) {
        char *end = start + 1 + strcspn(start + 1, "\n");
        memmove(start, end, strlen(end) + 1);
    }
}

/* Replace one value, in place and under the lock that every reader and writer takes. */
static Return store(const Gpu *gpu, const char *name, double value)
{
    const char *path = state_file();
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0)
        return NO_PERMISSION;
    flock(file, LOCK_EX);
    take(file);
    char key[KEY], line[KEY + 40];
    snprintf(key, sizeof key, "gpu%d.%s", gpu->number, name);
    drop_line(key);
    size_t length = strlen(state);
    int added = snprintf(line, sizeof line, "%s%s=%.17g\n", state[length - 1] == '\n' ? "" : "\n", key, value);
    Return result = UNKNOWN_ERROR;
    if (length + (size_t)added < sizeof state) {
        memcpy(state + length, line, (size_t)added + 1);
        size_t whole = length + (size_t)added - 1; /* without the leading newline */
        if (pwrite(file, state + 1, whole, 0) == (ssize_t)whole && ftruncate(file, (off_t)whole) == 0)
            result = SUCCESS;
    }
    close(file);
    return result;
}

/* ---- what every call goes through ------------------------------------------------------------------------------ */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The value of KIND.FUNCTION, else of KIND.*; of a GPU, or of the host when gpu is NULL. */
static double injected(const Gpu *gpu, const char *kind, const char *function)
{
    char named[KEY], any[KEY];
    snprintf(named, sizeof named, "%s.%s", kind, function);
    snprintf(any, sizeof any, "%s.*", kind);
    if (gpu)
        return gpu_number(gpu, named, gpu_number(gpu, any, 0));
    return host_number(named, host_number(any, 0));
}

/* Hang as a driver does: nanosleep restarts after every signal, so a signal is only seen once the call is over. */
static void hang(const Gpu *gpu, const char *function)
{
    double begun = seconds(), delay;
    while (load() && (delay = injected(gpu, "delay", function)) > 0 && seconds() - begun < delay) {
        struct timespec slice = {0, 10 * 1000 * 1000};
        while (nanosleep(&slice, &slice) != 0)
            ;
    }
}

static Return enter_driver(const Gpu *gpu, const char *function)
{
    if (!load() || host_number("driver.loaded", 1) == 0)
        return DRIVER_NOT_LOADED;
    hang(gpu, function);
    if (first_generation >= 0 && (long)host_number("driver.generation", 0) != first_generation)
        return UNINITIALIZED;
    return (Return)injected(NULL, "error", function);
}

static int gpu_count(void)
{
    int count = (int)host_number("gpus", 0);
    return count < MOST_GPUS ? count : MOST_GPUS;
}

static Return enter(const Gpu *gpu, const char *function)
{
    if (!initialised)
        return UNINITIALIZED;
    if (gpu < gpus || gpu >= gpus + MOST_GPUS)
        return INVALID_ARGUMENT;
    Return failed = enter_driver(gpu, function);
    if (failed)
        return failed;
    if (gpu->number >= gpu_count())
        return INVALID_ARGUMENT;
    if (gpu_number(gpu, "lost", 0) != 0)
        return GPU_IS_LOST;
    return (Return)injected(gpu, "error", function);
}

#define ENTER(gpu)                                                                                                    \
    do {                                                                                                              \
        Return failed_ = enter(gpu, __func__);                                                                        \
        if (failed_)                                                                                                  \
            return failed_;                                                                                           \
    } while (0)

/* A getter of one number that the state holds, or that an expression makes of it. */
#define GETTER(function, type, expression)                                                                            \
    EXPORT Return function(Gpu *gpu, type *value)                                                                     \
    {                                                                                                                 \
        ENTER(gpu);                                                                                                   \
        *value = (type)(expression);                                                                                  \
        return SUCCESS;                                                                                               \
    }

static Return copy(const char *text, char *target, unsigned size)
{
    if (strlen(text) >= size)
        return INSUFFICIENT_SIZE;
    strcpy(target, text);
    return SUCCESS;
}

/* ---- the law of power ------------------------------------------------------------------------------------------ */

static double demand(const Gpu *gpu) { return gpu_number(gpu, "power_demand", 90000); }
static double default_limit(const Gpu *gpu) { return gpu_number(gpu, "power_default", 700000); }
static double limit(const Gpu *gpu)
{
    return fmin(gpu_number(gpu, "power_limit", default_limit(gpu)), gpu_number(gpu, "power_cap_firm", INFINITY));
}
static double power(const Gpu *gpu) { return fmin(demand(gpu), limit(gpu)); }

static double sm_clock(const Gpu *gpu)
{
    double most = gpu_number(gpu, "sm_clock_max", 1980);
    return demand(gpu) > limit(gpu) ? most * cbrt(limit(gpu) / demand(gpu)) : most;
}

static uint64_t reasons(const Gpu *gpu)
{
    const uint64_t idle = 0x1, software_power_cap = 0x4;
    uint64_t found = (uint64_t)gpu_number(gpu, "reasons", 0);
    if (demand(gpu) > limit(gpu))
        found |= software_power_cap;
    return found ? found : gpu_number(gpu, "util", 0) == 0 ? idle : 0;
}

/* mJ so far: what was there, and the present power since then. Kept in the file, so it is one counter for all. */
static double energy(const Gpu *gpu)
{
    double now = seconds();
    double used = gpu_number(gpu, "energy", 0) + power(gpu) * (now - gpu_number(gpu, "energy_at", now));
    store(gpu, "energy", used);
    store(gpu, "energy_at", now);
    return used;
}

/* ---- the library ----------------------------------------------------------------------------------------------- */

EXPORT Return nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    Return failed = enter_driver(NULL, __func__);
    if (failed)
        return failed;
    for (int number = 0; number < MOST_GPUS; number++)
        gpus[number].number = number;
    if (first_generation < 0)
        first_generation = (long)host_number("driver.generation", 0);
    initialised++;
    return SUCCESS;
}

EXPORT Return nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

EXPORT Return nvmlShutdown(void)
{
    if (!initialised)
        return UNINITIALIZED;
    initialised--;
    return SUCCESS;
}

EXPORT const char *nvmlErrorString(Return code)
{
    switch (code) {
    case SUCCESS: return "Success";
    case UNINITIALIZED: return "Uninitialized";
    case INVALID_ARGUMENT: return "Invalid Argument";
    case NOT_SUPPORTED: return "Not Supported";
    case NO_PERMISSION: return "Insufficient Permissions";
    case NOT_FOUND: return "Not Found";
    case INSUFFICIENT_SIZE: return "Insufficient Size";
    case DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case GPU_IS_LOST: return "GPU is lost";
    default: return "Unknown Error";
    }
}

EXPORT Return nvmlSystemGetDriverVersion(char *text, unsigned size)
{
    return initialised ? copy("580.00.00", text, size) : UNINITIALIZED;
}

/* ---- which GPUs there are -------------------------------------------------------------------------------------- */

static int at_index(unsigned index)
{
    char order[VALUE];
    if (!find("order", order, sizeof order))
        return (int)index;
    char *next = order;
    for (unsigned skipped = 0; skipped < index && next; skipped++)
        next = strchr(next, ',') ? strchr(next, ',') + 1 : NULL;
    return next ? atoi(next) : -1;
}

static void identity(const Gpu *gpu, const char *name, char *text, size_t size)
{
    if (gpu_text(gpu, name, text, size))
        return;
    if (strcmp(name, "uuid") == 0)
        snprintf(text, size, "GPU-5eed0000-0000-4000-8000-%012d", gpu->number);
    else if (strcmp(name, "pci") == 0)
        snprintf(text, size, "00000000:%02X:00.0", 0x19 + 0x10 * gpu->number);
    else
        snprintf(text, size, "NVIDIA H100 80GB HBM3");
}

EXPORT Return nvmlDeviceGetCount_v2(unsigned *count)
{
    if (!initialised)
        return UNINITIALIZED;
    Return failed = enter_driver(NULL, __func__);
    *count = (unsigned)gpu_count();
    return failed;
}

EXPORT Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Gpu **gpu)
{
    if (!initialised)
        return UNINITIALIZED;
    if (!load() || index >= (unsigned)gpu_count())
        return INVALID_ARGUMENT;
    int number = at_index(index);
    if (number < 0 || number >= MOST_GPUS)
        return INVALID_ARGUMENT;
    *gpu = &gpus[number];
    ENTER(*gpu);
    return SUCCESS;
}

static Return by_identity(const char *function, const char *name, const char *wanted, Gpu **gpu)
{
    if (!initialised)
        return UNINITIALIZED;
    Return failed = enter_driver(NULL, function);
    if (failed)
        return failed;
    for (int number = 0; number < gpu_count(); number++) {
        char text[VALUE];
        identity(&gpus[number], name, text, sizeof text);
        if (strcasecmp(text, wanted) == 0) {
            *gpu = &gpus[number];
            return enter(*gpu, function);
        }
    }
    return NOT_FOUND;
}

EXPORT Return nvmlDeviceGetHandleByUUID(const char *uuid, Gpu **gpu) { return by_identity(__func__, "uuid", uuid, gpu); }
EXPORT Return nvmlDeviceGetHandleByPciBusId_v2(const char *bus, Gpu **gpu) { return by_identity(__func__, "pci", bus, gpu); }

EXPORT Return nvmlDeviceGetIndex(Gpu *gpu, unsigned *index)
{
    ENTER(gpu);
    for (*index = 0; *index < (unsigned)gpu_count(); ++*index)
        if (at_index(*index) == gpu->number)
            return SUCCESS;
    return NOT_FOUND;
}

static Return identity_of(const char *name, const Gpu *gpu, char *text, unsigned size)
{
    char found[VALUE];
    identity(gpu, name, found, sizeof found);
    return copy(found, text, size);
}

EXPORT Return nvmlDeviceGetName(Gpu *gpu, char *text, unsigned size)
{
    ENTER(gpu);
    return identity_of("name", gpu, text, size);
}

EXPORT Return nvmlDeviceGetUUID(Gpu *gpu, char *text, unsigned size)
{
    ENTER(gpu);
    return identity_of("uuid", gpu, text, size);
}

typedef struct {
    char legacy_bus_id[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
} PciInfo;

EXPORT Return nvmlDeviceGetPciInfo_v3(Gpu *gpu, PciInfo *info)
{
    ENTER(gpu);
    char bus_id[VALUE];
    identity(gpu, "pci", bus_id, sizeof bus_id);
    memset(info, 0, sizeof *info);
    snprintf(info->bus_id, sizeof info->bus_id, "%.31s", bus_id);
    sscanf(bus_id, "%x:%x:%x", &info->domain, &info->bus, &info->device);
    snprintf(info->legacy_bus_id, sizeof info->legacy_bus_id, "%04X:%02X:%02X.0", info->domain & 0xffff,
             info->bus & 0xff, info->device & 0xff);
    info->device_id = 0x233010de;
    return SUCCESS;
}

/* ---- what is read ---------------------------------------------------------------------------------------------- */

typedef struct { unsigned gpu, memory; } Utilization;

EXPORT Return nvmlDeviceGetUtilizationRates(Gpu *gpu, Utilization *rates)
{
    ENTER(gpu);
    rates->gpu = (unsigned)gpu_number(gpu, "util", 0);
    rates->memory = (unsigned)gpu_number(gpu, "memory_util", 0);
    return SUCCESS;
}

enum { RESERVED = 308 * 1024 * 1024 }; /* what version 1 of the memory record counts as used, and version 2 does not */

typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } Memory2;

EXPORT Return nvmlDeviceGetMemoryInfo_v2(Gpu *gpu, Memory2 *memory)
{
    ENTER(gpu);
    memory->total = (unsigned long long)gpu_number(gpu, "memory_total", 85520809984.);
    memory->used = (unsigned long long)gpu_number(gpu, "memory_used", 0);
    memory->reserved = RESERVED;
    memory->free = memory->total - memory->used - memory->reserved;
    return SUCCESS;
}

EXPORT Return nvmlDeviceGetMemoryInfo(Gpu *gpu, Memory *memory)
{
    ENTER(gpu);
    memory->total = (unsigned long long)gpu_number(gpu, "memory_total", 85520809984.);
    memory->used = (unsigned long long)gpu_number(gpu, "memory_used", 0) + RESERVED;
    memory->free = memory->total - memory->used;
    return SUCCESS;
}

GETTER(nvmlDeviceGetPowerUsage, unsigned, power(gpu))
GETTER(nvmlDeviceGetPowerManagementLimit, unsigned, limit(gpu))
GETTER(nvmlDeviceGetEnforcedPowerLimit, unsigned, limit(gpu))
GETTER(nvmlDeviceGetPowerManagementDefaultLimit, unsigned, default_limit(gpu))
GETTER(nvmlDeviceGetTotalEnergyConsumption, unsigned long long, energy(gpu))
GETTER(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, reasons(gpu))
GETTER(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, reasons(gpu))
GETTER(nvmlDeviceGetComputeMode, int, gpu_number(gpu, "compute_mode", 0))
GETTER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, gpu_number(gpu, "pcie_gen", 5))
GETTER(nvmlDeviceGetCurrPcieLinkWidth, unsigned, gpu_number(gpu, "pcie_width", 16))

static double least_limit(const Gpu *gpu) { return gpu_number(gpu, "power_min", 200000); }
static double most_limit(const Gpu *gpu) { return gpu_number(gpu, "power_max", 700000); }

EXPORT Return nvmlDeviceGetPowerManagementLimitConstraints(Gpu *gpu, unsigned *least, unsigned *most)
{
    ENTER(gpu);
    *least = (unsigned)least_limit(gpu);
    *most = (unsigned)most_limit(gpu);
    return SUCCESS;
}

EXPORT Return nvmlDeviceSetPowerManagementLimit(Gpu *gpu, unsigned milliwatts)
{
    ENTER(gpu);
    if (milliwatts < least_limit(gpu) || milliwatts > most_limit(gpu))
        return INVALID_ARGUMENT;
    energy(gpu); /* what was used so far was used under the old limit */
    return store(gpu, "power_limit", milliwatts);
}

GETTER(nvmlDeviceGetPersistenceMode, unsigned, gpu_number(gpu, "persistence_mode", 1))

EXPORT Return nvmlDeviceSetPersistenceMode(Gpu *gpu, unsigned mode)
{
    ENTER(gpu);
    return mode > 1 ? INVALID_ARGUMENT : store(gpu, "persistence_mode", mode);
}

EXPORT Return nvmlDeviceGetApplicationsClock(Gpu *gpu, int domain, unsigned *megahertz)
{
    ENTER(gpu);
    enum { GRAPHICS, SM, MEMORY };
    if (domain != GRAPHICS && domain != SM && domain != MEMORY)
        return INVALID_ARGUMENT;
    *megahertz = (unsigned)(domain == MEMORY ? gpu_number(gpu, "applications_memory", 2619)
                                             : gpu_number(gpu, "applications_sm", 1980));
    return SUCCESS;
}

EXPORT Return nvmlDeviceGetDefaultApplicationsClock(Gpu *gpu, int domain, unsigned *megahertz)
{
    ENTER(gpu);
    *megahertz = domain == 2 ? 2619 : 1980;
    return SUCCESS;
}

EXPORT Return nvmlDeviceSetApplicationsClocks(Gpu *gpu, unsigned memory, unsigned sm)
{
    ENTER(gpu);
    if (memory < 100 || memory > 4000 || sm < 100 || sm > 4000)
        return INVALID_ARGUMENT;
    Return failed = store(gpu, "applications_memory", memory);
    return failed ? failed : store(gpu, "applications_sm", sm);
}

EXPORT Return nvmlDeviceGetClockInfo(Gpu *gpu, int domain, unsigned *megahertz)
{
    ENTER(gpu);
    enum { GRAPHICS, SM, MEMORY };
    if (domain == GRAPHICS || domain == SM)
        *megahertz = (unsigned)sm_clock(gpu);
    else if (domain == MEMORY)
        *megahertz = (unsigned)gpu_number(gpu, "memory_clock", 2619);
    else
        return NOT_SUPPORTED;
    return SUCCESS;
}

EXPORT Return nvmlDeviceGetMaxClockInfo(Gpu *gpu, int domain, unsigned *megahertz)
{
    ENTER(gpu);
    *megahertz = (unsigned)(domain == 2 ? gpu_number(gpu, "memory_clock", 2619) : gpu_number(gpu, "sm_clock_max", 1980));
    return SUCCESS;
}

EXPORT Return nvmlDeviceGetRemappedRows(
    Gpu *gpu, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failed)
{
    ENTER(gpu);
    *corrected = (unsigned)gpu_number(gpu, "remapped_corrected", 0);
    *uncorrected = (unsigned)gpu_number(gpu, "remapped_uncorrected", 0);
    *pending = (unsigned)gpu_number(gpu, "repair_pending", 0);
    *failed = (unsigned)gpu_number(gpu, "repair_failed", 0);
    return SUCCESS;
}

EXPORT Return nvmlDeviceGetTemperature(Gpu *gpu, int sensor, unsigned *celsius)
{
    ENTER(gpu);
    if (sensor != 0)
        return INVALID_ARGUMENT;
    *celsius = (unsigned)gpu_number(gpu, "temperature", 40);
    return SUCCESS;
}

EXPORT Return nvmlDeviceGetPcieThroughput(Gpu *gpu, int direction, unsigned *kilobytes)
{
    ENTER(gpu);
    *kilobytes = (unsigned)gpu_number(gpu, direction == 0 ? "pcie_tx" : "pcie_rx", 0);
    return SUCCESS;
}

EXPORT Return nvmlDeviceGetTotalEccErrors(Gpu *gpu, int type, int counter, unsigned long long *errors)
{
    (void)counter;
    ENTER(gpu);
    *errors = (unsigned long long)gpu_number(gpu, type == 0 ? "ecc_corrected" : "ecc_uncorrected", 0);
    return SUCCESS;
}

typedef struct { unsigned long long total, free, used; } Bar1;

EXPORT Return nvmlDeviceGetBAR1MemoryInfo(Gpu *gpu, Bar1 *bar1)
{
    ENTER(gpu);
    bar1->total = (unsigned long long)gpu_number(gpu, "bar1_total", 137438953472.);
    bar1->used = (unsigned long long)gpu_number(gpu, "bar1_used", 1048576);
    bar1->free = bar1->total - bar1->used;
    return SUCCESS;
}

EXPORT Return nvmlDeviceGetMigMode(Gpu *gpu, unsigned *current, unsigned *pending)
{
    ENTER(gpu);
    *current = *pending = (unsigned)gpu_number(gpu, "mig", 0);
    return SUCCESS;
}

typedef struct { unsigned pid; unsigned long long used; unsigned gpu_instance, compute_instance; } Process;

EXPORT Return nvmlDeviceGetComputeRunningProcesses_v3(Gpu *gpu, unsigned *count, Process *processes)
{
    ENTER(gpu);
    char text[VALUE] = "";
    gpu_text(gpu, "processes", text, sizeof text);
    unsigned found = 0;
    for (char *next = text; *next; found++) {
        Process process = {.gpu_instance = ~0u, .compute_instance = ~0u};
        process.pid = (unsigned)strtoul(next, &next, 10);
        if (*next == ':')
            process.used = strtoull(next + 1, &next, 10);
        next += strcspn(next, ",");
        next += *next == ',';
        if (processes && found < *count)
            processes[found] = process;
    }
    Return result = found > *count ? INSUFFICIENT_SIZE : SUCCESS;
    *count = found;
    return result;
}

#include "libnvml_standin_activity.c"
