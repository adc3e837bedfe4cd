/* More of the stand-in, included by libnvml_standin.c: activity (GPM), events, NVLink, the fabric, lost time, margins.
 *
 * Keys of a GPU, beside those that libnvml_standin.c lists
 *   gpm=0                           an older GPU, which does not measure its activity
 *   sm_active sm_occupancy tensor_active dram_active    per cent between two samples; `nan` is what drivers answer, too
 *   xids=79,31                      events so far; each event set is told each of them once
 *   violation_power violation_thermal                   ns
 *   margin memory_temperature       C
 *   nvlinks=18 nvlinks_down=1       links there are, and how many of them are not active
 *   nvlink_tx nvlink_rx             KiB of all links; nvlink_crc nvlink_replays nvlink_recoveries
 *   fabric_state=3 fabric_status=0  as in nvml.h; state 0 is a GPU on no fabric
 *   remapped_corrected remapped_uncorrected pcie_replays performance_state
 */

GETTER(nvmlDeviceGetPcieReplayCounter, unsigned, gpu_number(gpu, "pcie_replays", 0))
GETTER(nvmlDeviceGetPerformanceState, int, gpu_number(gpu, "performance_state", 0))

typedef struct { unsigned long long reference, violation; } Violation;

EXPORT Return nvmlDeviceGetViolationStatus(Gpu *gpu, int policy, Violation *time)
{
    ENTER(gpu);
    if (policy != 0 && policy != 1)
        return NOT_SUPPORTED;
    time->reference = (unsigned long long)(seconds() * 1e6);
    time->violation = (unsigned long long)gpu_number(gpu, policy == 0 ? "violation_power" : "violation_thermal", 0);
    return SUCCESS;
}

typedef struct { unsigned version; int margin; } Margin;

EXPORT Return nvmlDeviceGetMarginTemperature(Gpu *gpu, Margin *margin)
{
    ENTER(gpu);
    if (margin->version != (sizeof *margin | 1u << 24))
        return 25; /* ARGUMENT_VERSION_MISMATCH */
    margin->margin = (int)gpu_number(gpu, "margin", 45);
    return SUCCESS;
}

/* ---- NVLink and the fabric ------------------------------------------------------------------------------------- */

EXPORT Return nvmlDeviceGetNvLinkState(Gpu *gpu, unsigned link, unsigned *active)
{
    ENTER(gpu);
    unsigned links = (unsigned)gpu_number(gpu, "nvlinks", 18);
    if (link >= links)
        return links ? INVALID_ARGUMENT : NOT_SUPPORTED;
    *active = link >= (unsigned)gpu_number(gpu, "nvlinks_down", 0);
    return SUCCESS;
}

EXPORT Return nvmlDeviceGetNvLinkRemotePciInfo_v2(Gpu *gpu, unsigned link, PciInfo *info)
{
    ENTER(gpu);
    memset(info, 0, sizeof *info); /* two switches, the links spread over them */
    info->bus = 0x8 + link % 2;
    snprintf(info->bus_id, sizeof info->bus_id, "00000000:%02X:00.0", info->bus);
    return SUCCESS;
}

typedef struct { unsigned version; unsigned char cluster[16]; int status; unsigned clique, state, health; } Fabric;

EXPORT Return nvmlDeviceGetGpuFabricInfoV(Gpu *gpu, Fabric *fabric)
{
    ENTER(gpu);
    if (fabric->version != (sizeof *fabric | 2u << 24))
        return 25;
    fabric->state = (unsigned)gpu_number(gpu, "fabric_state", 3);
    fabric->status = (int)gpu_number(gpu, "fabric_status", 0);
    return SUCCESS;
}

typedef union { double number; unsigned whole; unsigned long long wide; } FieldAnswer;
typedef struct {
    unsigned field, scope;
    long long at, latency;
    int type, result;
    FieldAnswer value;
} FieldValue;

EXPORT Return nvmlDeviceGetFieldValues(Gpu *gpu, int count, FieldValue *values)
{
    ENTER(gpu);
    static const struct { unsigned field; const char *key; bool wide, link; } known[] = {
        {38, "nvlink_crc", true, true}, {52, "nvlink_replays", true, true}, {59, "nvlink_recoveries", true, true},
        {82, "memory_temperature", false, false}, {138, "nvlink_tx", true, true}, {139, "nvlink_rx", true, true},
    };
    for (int place = 0; place < count; place++) {
        FieldValue *value = values + place;
        value->result = NOT_SUPPORTED;
        for (size_t row = 0; row < sizeof known / sizeof *known; row++) {
            if (known[row].field != value->field || (known[row].link && gpu_number(gpu, "nvlinks", 18) == 0))
                continue;
            double found = gpu_number(gpu, known[row].key, 0);
            value->result = SUCCESS;
            value->type = known[row].wide ? 3 : 1;
            if (known[row].wide)
                value->value.wide = (unsigned long long)found;
            else
                value->value.whole = (unsigned)found;
        }
    }
    return SUCCESS;
}

/* ---- activity -------------------------------------------------------------------------------------------------- */

typedef struct { bool taken; Gpu *gpu; } Sample;
typedef struct { unsigned version, supported; } GpmSupport;
typedef struct { char *short_name, *long_name, *unit; } MetricInfo;
typedef struct { unsigned id; int result; double value; MetricInfo info; } GpmMetric;
typedef struct { unsigned version, count; Sample *before, *now; GpmMetric metrics[]; } GpmQuestion;

EXPORT Return nvmlGpmQueryDeviceSupport(Gpu *gpu, GpmSupport *support)
{
    ENTER(gpu);
    support->supported = gpu_number(gpu, "gpm", 1) != 0;
    return SUCCESS;
}

EXPORT Return nvmlGpmSampleAlloc(Sample **sample)
{
    *sample = calloc(1, sizeof **sample);
    return *sample ? SUCCESS : UNKNOWN_ERROR;
}

EXPORT Return nvmlGpmSampleFree(Sample *sample)
{
    free(sample);
    return SUCCESS;
}

EXPORT Return nvmlGpmSampleGet(Gpu *gpu, Sample *sample)
{
    ENTER(gpu);
    sample->taken = true;
    sample->gpu = gpu;
    return SUCCESS;
}

EXPORT Return nvmlGpmMetricsGet(GpmQuestion *question)
{
    if (question->version != 1 || !question->before->taken || !question->now->taken || question->before == question->now)
        return INVALID_ARGUMENT;
    Gpu *gpu = question->now->gpu;
    ENTER(gpu);
    for (unsigned place = 0; place < question->count; place++) {
        GpmMetric *metric = question->metrics + place;
        const char *key = metric->id == 2    ? "sm_active"
                          : metric->id == 3  ? "sm_occupancy"
                          : metric->id == 5  ? "tensor_active"
                          : metric->id == 10 ? "dram_active"
                                             : NULL;
        metric->result = key ? SUCCESS : NOT_SUPPORTED;
        if (key)
            metric->value = gpu_number(gpu, key, 0);
    }
    return SUCCESS;
}

/* ---- events ---------------------------------------------------------------------------------------------------- */

enum { TIMEOUT = 10, XID_EVENT = 8 };

typedef struct { Gpu *gpu; unsigned told; } EventSet;
typedef struct { Gpu *gpu; unsigned long long type, data; unsigned gpu_instance, compute_instance; } Event;

static unsigned xid_at(const Gpu *gpu, unsigned place)
{
    char text[VALUE] = "";
    gpu_text(gpu, "xids", text, sizeof text);
    char *next = text;
    for (unsigned skipped = 0; skipped < place && *next; skipped++)
        next += strcspn(next, ",") + (next[strcspn(next, ",")] == ',');
    return (unsigned)strtoul(next, NULL, 10);
}

EXPORT Return nvmlEventSetCreate(EventSet **set)
{
    *set = calloc(1, sizeof **set);
    return *set ? SUCCESS : UNKNOWN_ERROR;
}

EXPORT Return nvmlEventSetFree(EventSet *set)
{
    free(set);
    return SUCCESS;
}

EXPORT Return nvmlDeviceRegisterEvents(Gpu *gpu, unsigned long long types, EventSet *set)
{
    ENTER(gpu);
    if (types != XID_EVENT)
        return NOT_SUPPORTED;
    set->gpu = gpu;
    while (xid_at(gpu, set->told)) /* what was before is not told */
        set->told++;
    return SUCCESS;
}

EXPORT Return nvmlEventSetWait_v2(EventSet *set, Event *event, unsigned milliseconds)
{
    Gpu *gpu = set->gpu;
    ENTER(gpu);
    unsigned xid = xid_at(gpu, set->told);
    if (!xid) {
        usleep(1000 * milliseconds);
        return TIMEOUT;
    }
    set->told++;
    *event = (Event){.gpu = gpu, .type = XID_EVENT, .data = xid, .gpu_instance = ~0u, .compute_instance = ~0u};
    return SUCCESS;
}
