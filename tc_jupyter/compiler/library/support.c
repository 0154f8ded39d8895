/* Memory, threads, messages and integers, as every function below uses them. */

typedef void tc_kernel(const void *slots, int64_t task, int64_t thread, int64_t tasks);

static __thread struct {
    const char *of;
    int code;
    char text[512];
} tc_last;

static int tc_fail(const char *of, int code, const char *format, ...)
{
    va_list values;
    tc_last.of = of;
    tc_last.code = code;
    va_start(values, format);
    vsnprintf(tc_last.text, sizeof tc_last.text, format, values);
    va_end(values);
    return code;
}

static const char *tc_text(const char *of, int code, const char *const *conditions, int count)
{
    static const char *const plain[] = {
        "no error", "a pointer is NULL", "a size is negative, or sizes do not fit each other", "a result does not lie in row order",
        "elements are not aligned", "a result shares memory with another array", "there is no memory",
        "this processor lacks instructions", "numbers of the call leave their range", "there is no code for these sizes",
        "CUDA reports an error",
    };
    if (tc_last.of == of && tc_last.code == code && code != 0)
        return tc_last.text;
    if (code >= 0 && code < (int)(sizeof plain / sizeof *plain))
        return plain[code];
    return code >= 100 && code - 100 < count ? conditions[code - 100] : "unknown code";
}

/* integers: what leaves 64 bits is noted */

static inline int64_t tc_add(int *over, int64_t a, int64_t b) { int64_t c; *over |= __builtin_add_overflow(a, b, &c); return c; }
static inline int64_t tc_sub(int *over, int64_t a, int64_t b) { int64_t c; *over |= __builtin_sub_overflow(a, b, &c); return c; }
static inline int64_t tc_mul(int *over, int64_t a, int64_t b) { int64_t c; *over |= __builtin_mul_overflow(a, b, &c); return c; }
static inline int64_t tc_min(int64_t a, int64_t b) { return b < a ? b : a; }
static inline int64_t tc_max(int64_t a, int64_t b) { return b > a ? b : a; }
static inline int64_t tc_floor(int64_t a, int64_t b)
{
    if (b == 0 || b == -1) return b == 0 ? 0 : (int64_t)-(uint64_t)a;
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
static inline int64_t tc_mod(int64_t a, int64_t b)
{
    if (b == 0 || b == -1) return 0;
    int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
static inline int64_t tc_whole(double x) { return x >= 9223372036854775807.0 ? INT64_MAX : x <= -9223372036854775808.0 ? INT64_MIN : (int64_t)x; }
static inline int64_t tc_widened(uint64_t x) { return x > INT64_MAX ? INT64_MAX : (int64_t)x; }

/* between which numbers arithmetic is; the ends have more than 64 bits */

typedef struct { long double low, high; } tc_interval;

static inline tc_interval tc_between(long double low, long double high) { tc_interval x = {low, high}; return x; }
static inline tc_interval tc_between_add(tc_interval a, tc_interval b) { return tc_between(a.low + b.low, a.high + b.high); }
static inline tc_interval tc_between_sub(tc_interval a, tc_interval b) { return tc_between(a.low - b.high, a.high - b.low); }
static inline tc_interval tc_between_min(tc_interval a, tc_interval b) { return tc_between(fminl(a.low, b.low), fminl(a.high, b.high)); }
static inline tc_interval tc_between_max(tc_interval a, tc_interval b) { return tc_between(fmaxl(a.low, b.low), fmaxl(a.high, b.high)); }
static inline tc_interval tc_between_mul(tc_interval a, tc_interval b)
{
    long double p = a.low * b.low, q = a.low * b.high, r = a.high * b.low, s = a.high * b.high;
    return tc_between(fminl(fminl(p, q), fminl(r, s)), fmaxl(fmaxl(p, q), fmaxl(r, s)));
}

/* arrays */

typedef struct { uintptr_t low, high; } tc_range;

/* What of an array is looked at: *packed is whether it lies in row order without gaps. */
static int tc_array(const char *of, const char *name, const void *data, const int64_t *sizes, const int64_t *strides, int rank,
                    int64_t bytes, size_t align, tc_range *range, int *packed)
{
    int64_t row = bytes, low = 0, high = bytes, most = bytes;
    int over = 0, some = 1;
    *packed = 1;
    for (int k = rank - 1; k >= 0; k--) {
        most = tc_mul(&over, most, tc_max(sizes[k], 1));
        some = some && sizes[k] > 0;
        if (strides && sizes[k] > 1) {
            int64_t stride = tc_mul(&over, strides[k], bytes), far = tc_mul(&over, stride, sizes[k] - 1);
            *packed = *packed && stride == row;
            if (far < 0) low = tc_add(&over, low, far); else high = tc_add(&over, high, far);
        }
        row = tc_mul(&over, row, tc_max(sizes[k], 1));
    }
    if (over)
        return tc_fail(of, TC_TOO_LARGE, "`%s` has more than 2^63 - 1 bytes", name);
    *packed = *packed || !some;
    if (some && !data)
        return tc_fail(of, TC_NULL, "the elements of `%s` are NULL", name);
    if (some && (uintptr_t)data % align)
        return tc_fail(of, TC_ALIGNMENT, "the elements of `%s` are not aligned to %d bytes", name, (int)align);
    range->low = (uintptr_t)data + (uintptr_t)low;
    range->high = some ? (uintptr_t)data + (uintptr_t)(strides ? high : most) : range->low;
    return 0;
}

static int tc_meet(const char *of, const char *name, const tc_range *one, const char *other, const tc_range *two)
{
    if (one->low < two->high && two->low < one->high)
        return tc_fail(of, TC_OVERLAP, "`%s` shares memory with `%s`", name, other);
    return 0;
}

/* memory */

static void *tc_allocate(const tc_options *o, size_t bytes, size_t alignment)
{
    void *memory = NULL;
    if (o && o->allocate)
        return o->allocate(o->user, bytes, alignment);
    return posix_memalign(&memory, alignment, bytes) ? NULL : memory;
}

static void tc_release(const tc_options *o, void *memory)
{
    if (!memory) return;
    if (!(o && o->allocate)) free(memory);
    else if (o->release) o->release(o->user, memory);
}

/* Reserves a place of so many elements; returns where it begins. */
static inline int64_t tc_place(int *over, int64_t *total, int64_t bytes, int64_t align)
{
    int64_t at = tc_mul(over, tc_add(over, *total, align - 1) / align, align);
    *total = tc_add(over, at, bytes);
    return at;
}

__attribute__((unused)) static void tc_gather(char *to, const char *from, const int64_t *sizes, const int64_t *strides, int rank, int64_t bytes)
{
    int64_t inner = bytes;
    for (int k = 1; k < rank; k++) inner *= sizes[k];
    for (int64_t i = 0; i < sizes[0]; i++, to += inner) {
        const char *row = from + i * strides[0] * bytes;
        if (rank == 1) memcpy(to, row, (size_t)bytes);
        else tc_gather(to, row, sizes + 1, strides + 1, rank - 1, bytes);
    }
}

/* A copy in row order, with alignment for any element. */
__attribute__((unused)) static void *tc_copy(const tc_options *o, const void *data, const int64_t *sizes, const int64_t *strides, int rank, int64_t bytes)
{
    int64_t total = bytes;
    for (int k = 0; k < rank; k++) total *= sizes[k];
    char *memory = tc_allocate(o, (size_t)total, 64);
    if (memory) tc_gather(memory, data, sizes, strides, rank, bytes);
    return memory;
}

/* threads: workers look for a job for a while, then they sleep. A job belongs to one caller; others compute alone meanwhile. */

enum { TC_MOST_THREADS = 256, TC_SPINS = 20000 };
static const int64_t TC_CLOSED = (INT64_C(1) << 40) - 1;
static const int64_t TC_IN_ORDER = INT64_C(1) << 40;

static struct {
    pthread_mutex_t busy, lock;
    pthread_cond_t wake;
    int64_t threads, started;     /* of all, with the caller; workers that were started */
    int64_t job, sleepers;        /* the number of the last job; workers that sleep */
    int64_t next, done;           /* high bits: the job, low ones: the first task that nobody has; tasks that are done */
    int64_t tasks, limit;         /* of the job: tasks, and thread numbers that take part */
    void (*task)(void *, int64_t, int64_t);
    void *data;
} tc_pool = {.busy = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static inline void tc_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int64_t tc_processors(void)
{
    int64_t known = __atomic_load_n(&tc_pool.threads, __ATOMIC_RELAXED);
    if (known == 0) {
        cpu_set_t allowed;
        known = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
        known = tc_max(1, tc_min(known, TC_MOST_THREADS));
        __atomic_store_n(&tc_pool.threads, known, __ATOMIC_RELAXED);
    }
    return known;
}

static void tc_work(int64_t thread)
{
    for (;;) {
        int64_t word = __atomic_load_n(&tc_pool.next, __ATOMIC_ACQUIRE), first = word & TC_CLOSED;
        int64_t tasks = __atomic_load_n(&tc_pool.tasks, __ATOMIC_ACQUIRE), limit = __atomic_load_n(&tc_pool.limit, __ATOMIC_ACQUIRE);
        if (first >= tasks || thread >= limit) return;
        int64_t some = tc_max(1, tc_min(16, (tasks - first) / (4 * limit)));
        /* a job cannot end before the tasks that were taken are done: what it says is fixed from here on */
        if (!__atomic_compare_exchange_n(&tc_pool.next, &word, word + some, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) continue;
        for (int64_t k = first; k < first + some; k++) tc_pool.task(tc_pool.data, k, thread);
        __atomic_fetch_add(&tc_pool.done, some, __ATOMIC_ACQ_REL);
    }
}

static void *tc_worker(void *number)
{
    int64_t thread = (int64_t)(intptr_t)number, seen = 0;
    for (int64_t spin = 0;;) {
        int64_t job = __atomic_load_n(&tc_pool.job, __ATOMIC_SEQ_CST);
        if (job != seen) {
            seen = job;
            tc_work(thread);
            spin = 0;
        } else if (spin++ < TC_SPINS) {
            tc_pause();
        } else {
            pthread_mutex_lock(&tc_pool.lock);
            __atomic_fetch_add(&tc_pool.sleepers, 1, __ATOMIC_SEQ_CST);
            while (__atomic_load_n(&tc_pool.job, __ATOMIC_SEQ_CST) == seen) pthread_cond_wait(&tc_pool.wake, &tc_pool.lock);
            __atomic_fetch_sub(&tc_pool.sleepers, 1, __ATOMIC_SEQ_CST);
            pthread_mutex_unlock(&tc_pool.lock);
            spin = 0;
        }
    }
    return NULL;
}

/* A child of fork has no workers. */
static void tc_forked(void)
{
    pthread_mutex_init(&tc_pool.busy, NULL);
    pthread_mutex_init(&tc_pool.lock, NULL);
    pthread_cond_init(&tc_pool.wake, NULL);
    tc_pool.started = tc_pool.sleepers = 0;
}

static void tc_start(int64_t threads)
{
    static int told;
    pthread_attr_t how;
    if (tc_pool.started >= threads - 1) return;
    if (!told) told = pthread_atfork(NULL, NULL, tc_forked) == 0;
    pthread_attr_init(&how);
    pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
    while (tc_pool.started < threads - 1) {
        pthread_t thread;
        if (pthread_create(&thread, &how, tc_worker, (void *)(intptr_t)(tc_pool.started + 1))) break;
        tc_pool.started++;
    }
    pthread_attr_destroy(&how);
}

/* Whether a job was done by the pool: it may be that of another caller. */
static int tc_together(int64_t tasks, int64_t threads, void (*task)(void *, int64_t, int64_t), void *data)
{
    if (pthread_mutex_trylock(&tc_pool.busy)) return 0;
    tc_start(threads);
    int64_t job = tc_pool.job + 1, high = (int64_t)((uint64_t)job << 40);
    __atomic_store_n(&tc_pool.next, high | TC_CLOSED, __ATOMIC_SEQ_CST);
    tc_pool.task = task;
    tc_pool.data = data;
    tc_pool.done = 0;
    __atomic_store_n(&tc_pool.limit, threads, __ATOMIC_RELEASE);
    __atomic_store_n(&tc_pool.tasks, tasks, __ATOMIC_RELEASE);
    __atomic_store_n(&tc_pool.next, high, __ATOMIC_SEQ_CST);
    __atomic_store_n(&tc_pool.job, job, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&tc_pool.sleepers, __ATOMIC_SEQ_CST) > 0) {
        pthread_mutex_lock(&tc_pool.lock);
        pthread_cond_broadcast(&tc_pool.wake);
        pthread_mutex_unlock(&tc_pool.lock);
    }
    tc_work(0);
    for (int64_t spin = 0; __atomic_load_n(&tc_pool.done, __ATOMIC_ACQUIRE) < tasks; spin++)
        if (spin < 2000) tc_pause(); else sched_yield();
    pthread_mutex_unlock(&tc_pool.busy);
    return 1;
}

typedef struct { tc_kernel *kernel; const int64_t *slots; int64_t tasks; } tc_launch;

static void tc_task(void *data, int64_t k, int64_t thread)
{
    const tc_launch *launch = data;
    launch->kernel(launch->slots, k, thread, launch->tasks);
}

static int64_t tc_threads(const tc_options *o)
{
    if (o && o->parallel_for) return tc_max(1, o->threads);
    return o && o->threads > 0 ? tc_min(o->threads, TC_MOST_THREADS) : tc_processors();
}

/* Runs a kernel. count: its tasks, negative where no thread is worth waking, larger by a multiple of TC_IN_ORDER where they have an order. */
static void tc_run(const tc_options *o, int64_t threads, tc_kernel *kernel, const int64_t *slots, int64_t count)
{
    int64_t tasks = (count < 0 ? -count : count) % TC_IN_ORDER;
    tc_launch launch = {kernel, slots, tasks};
    if (tasks > 1 && threads > 1 && count > 0 && count < TC_IN_ORDER) {
        if (o && o->parallel_for) {
            o->parallel_for(o->user, tasks, tc_task, &launch);
            return;
        }
        if (tc_together(tasks, threads, tc_task, &launch)) return;
    }
    for (int64_t k = 0; k < tasks; k++) kernel(slots, k, 0, tasks);
}
