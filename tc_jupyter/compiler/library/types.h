/* What all exported libraries have in common. Arrays and numbers are those of the caller, who keeps them. */
#ifndef TC_EXPORT_TYPES
#define TC_EXPORT_TYPES 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#include <complex>
typedef std::complex<float> tc_complex64;
typedef std::complex<double> tc_complex128;
extern "C" {
#else
typedef float _Complex tc_complex64;
typedef double _Complex tc_complex128;
#endif
typedef uint16_t tc_float16;   /* the bits of an IEEE half */
typedef uint16_t tc_bfloat16;  /* the upper half of a float */

/* What a function returns. Codes from TC_CONDITION on are conditions of that function, which its comment lists. */
enum {
    TC_OK = 0,
    TC_NULL = 1,         /* a pointer is NULL */
    TC_SIZE = 2,         /* a size is negative, or sizes do not fit each other */
    TC_STRIDES = 3,      /* a result does not lie in row order */
    TC_ALIGNMENT = 4,    /* elements are not aligned */
    TC_OVERLAP = 5,      /* a result shares memory with another array */
    TC_MEMORY = 6,       /* the allocator gave no memory */
    TC_PROCESSOR = 7,    /* the library has no code for this processor */
    TC_TOO_LARGE = 8,    /* numbers of the call leave their range */
    TC_UNSUPPORTED = 9,  /* the library has no code for these sizes */
    TC_DEVICE = 10,      /* CUDA reports an error */
    TC_CONDITION = 100
};

/* How a call gets memory and threads; NULL in place of it, or of a function: the library's own. */
typedef struct tc_options {
    void *user;                                                            /* is passed to the functions */
    void *(*allocate)(void *user, size_t bytes, size_t alignment);         /* NULL where there is no memory */
    void (*release)(void *user, void *memory);
    /* calls task(data, k, thread) for all k in 0 .. tasks - 1 and returns when all are done; threads that work at the same time
       have different numbers from 0 to threads - 1 */
    void (*parallel_for)(void *user, int64_t tasks, void (*task)(void *data, int64_t k, int64_t thread), void *data);
    int64_t threads;                                                       /* 0: with the library's own threads, all processors */
} tc_options;

#ifdef __cplusplus
}
#endif
#endif
