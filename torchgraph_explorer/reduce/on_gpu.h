/* Has an Nvidia GPU read a tensor in its memory by the kernels of `gpu/kernels.c`, in the stream in which the training works.
 * What they leave behind is read by `gpu_rows.py`, which gives the memory for it, too. */

#ifndef TORCHGRAPH_ON_GPU
#define TORCHGRAPH_ON_GPU

#include "described_tensor.h"

/* `cuLaunchKernel` of the driver. */
typedef int (*Launch)(void *kernel, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned, unsigned shared,
                      void *stream, void **arguments, void **more);

/* What a kernel leaves behind, from byte `at` of a piece of memory: `gpu_rows.LEFT`. */
typedef struct {
    int64_t kind, memory, at, count, length, parts;
    double divisor;
} Left;

enum { VALUES, SQUARES };

/* `_Gpu` in `gpu_rows.py`. `number` is that of the GPU, -1 without one. Where there is no room, or none yet, `wanted` are the bytes
 * for which some is to be made. */
typedef struct {
    Launch launch;
    void *values, *squares;
    int64_t number;
    void *stream;
    char *next, *end;
    int64_t memory, begin;
    Left *left;
    int64_t filled, most;
    int64_t wanted, wanted_number;
} Gpu;

enum {
    THREADS = 256,
    MOST_BLOCKS = 1056, /* eight for each multiprocessor of a large GPU */
    BYTES_OF_A_BLOCK = 1 << 14,
    TOTALS = 32, /* bytes before the sampled elements */
    WARP = 32
};

static inline int64_t at_most(int64_t number, int64_t most) { return number < most ? number : most; }

static inline int64_t at_least(int64_t number, int64_t least) { return number > least ? number : least; }

/* Memory for so many bytes; NULL where some has to be made first, or cannot be had. */
static inline char *room_on_gpu(Gpu *gpu, const Exchange *exchange, int32_t number, int64_t bytes) {
    void *stream = NULL;
    if (exchange->stream(ON_GPU, number, &stream) != 0) {
        PyErr_Clear();
        return NULL;
    }
    if (gpu->number != number || gpu->stream != stream || gpu->end - gpu->next < bytes || gpu->filled >= gpu->most) {
        gpu->wanted = bytes, gpu->wanted_number = number;
        return NULL;
    }
    return gpu->next;
}

/* Begin to look at a tensor's elements, of which those of `sample` are copied. Returns how many rows there are then; 0 where that is
 * not done. */
static inline int64_t values_on_gpu(Gpu *gpu, const Exchange *exchange, int32_t number, const char *data, int64_t type, int64_t size,
                                    int64_t count, const int64_t sample[3], double divisor) {
    const int64_t bytes = (TOTALS + sample[2] * (int64_t)sizeof(float) + 15) / 16 * 16;
    char *into = room_on_gpu(gpu, exchange, number, bytes);
    if (into == NULL) return 0;
    const unsigned blocks = (unsigned)at_least(1, at_most(count * size / BYTES_OF_A_BLOCK, MOST_BLOCKS));
    uint64_t numbers[6] = {(uintptr_t)data, (uint64_t)count, (uint64_t)sample[0], (uint64_t)sample[1], (uint64_t)sample[2], (uintptr_t)into};
    uint32_t kind = (uint32_t)type;
    void *arguments[7] = {&numbers[0], &numbers[1], &numbers[2], &numbers[3], &numbers[4], &numbers[5], &kind};
    if (gpu->launch(gpu->values, blocks, 1, 1, THREADS, 1, 1, 0, gpu->stream, arguments, NULL) != 0) return 0;
    gpu->left[gpu->filled] = (Left){VALUES, gpu->memory, into - (char *)gpu->begin, count, sample[2], 0, divisor};
    gpu->next += bytes;
    return ++gpu->filled;
}

/* The same, of the l2 norms of `samples` pieces that lie one after the other. */
static inline int64_t norms_on_gpu(Gpu *gpu, const Exchange *exchange, int32_t number, const char *data, int64_t type, int64_t size,
                                   int64_t count, int64_t samples, double divisor) {
    const int64_t of_sample = count / samples;
    const int64_t parts = at_least(1, at_most(MOST_BLOCKS / samples, of_sample * size / BYTES_OF_A_BLOCK));
    const int64_t pieces = samples * parts, bytes = (pieces * (int64_t)sizeof(double) + 15) / 16 * 16;
    char *into = room_on_gpu(gpu, exchange, number, bytes);
    if (into == NULL) return 0;
    uint32_t kind = (uint32_t)type, together = of_sample / parts * size <= BYTES_OF_A_BLOCK / 4 ? WARP : THREADS;
    const int64_t blocks = (pieces + THREADS / together - 1) / (THREADS / together);
    if (blocks > INT32_MAX) return 0;
    uint64_t numbers[5] = {(uintptr_t)data, (uint64_t)samples, (uint64_t)of_sample, (uint64_t)parts, (uintptr_t)into};
    void *arguments[7] = {&numbers[0], &numbers[1], &numbers[2], &numbers[3], &numbers[4], &kind, &together};
    if (gpu->launch(gpu->squares, (unsigned)blocks, 1, 1, THREADS, 1, 1, 0, gpu->stream, arguments, NULL) != 0) return 0;
    gpu->left[gpu->filled] = (Left){SQUARES, gpu->memory, into - (char *)gpu->begin, samples, samples, parts, divisor};
    gpu->next += bytes;
    return ++gpu->filled;
}

#endif
