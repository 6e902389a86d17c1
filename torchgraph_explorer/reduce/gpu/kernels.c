/* What is read of tensors in the memory of an Nvidia GPU, each in one pass: the elements of a tensor, or the l2 norms of the
 * indices of its first dimension. `tensors.c` has the driver execute it. `rows.c` makes the rows of what it leaves behind, on
 * the host, and takes the same hashes.
 *
 * Clang compiles this to PTX, which the driver translates for the GPU that there is.
 */

#include "../hashes.h"

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
typedef u32 Vector __attribute__((ext_vector_type(4))); /* what a thread reads at once */

#define GLOBAL __attribute__((address_space(1)))
#define SHARED __attribute__((address_space(3)))
#define INLINE static inline __attribute__((always_inline))

/* As in `row_buffer.TYPES`. */
enum { FLOAT32, FLOAT64, FLOAT16, BFLOAT16, INT8, INT16, INT32, INT64, UINT8 };

/* What is counted: NaN, infinite, minus infinite; and the sum of the hashes. */
enum { NAN_, POSITIVE, NEGATIVE, HASHES, TOTALS };

enum { VECTORS = 4 }; /* that a thread asks for before it looks at the first */

static SHARED u64 of_block[TOTALS];

/* A type of floating-point numbers, by two words of 32 bits: their signs, and the lowest bits of their exponents, which added
 * to a number without its sign give a sign if, and only if, the exponent is full. Of a double, of its upper half. */
typedef struct {
    u32 bytes, signs, ones;
    u64 infinite, sign;
} Type;

INLINE u32 non_finite(u32 word, const Type *type) { return ((word & ~type->signs) + type->ones) & type->signs; }

/* Add up in shared memory, since there is hardly ever something to count. */
INLINE void count_one(u64 bits, const Type *type) {
    const u64 magnitude = bits & ~type->sign;
    if (magnitude < type->infinite) return;
    const int kind = magnitude > type->infinite ? NAN_ : bits & type->sign ? NEGATIVE : POSITIVE;
    __atomic_fetch_add(&of_block[kind], (u64)1, __ATOMIC_RELAXED);
}

static __attribute__((noinline)) void count_vector(u64 low, u64 high, u32 bytes, u64 infinite, u64 sign) {
    const Type type = {bytes, 0, 0, infinite, sign};
    const u64 mask = bytes == 8 ? ~(u64)0 : ((u64)1 << 8 * bytes) - 1;
    for (u32 at = 0; at < 8; at += bytes) {
        count_one(low >> 8 * at & mask, &type);
        count_one(high >> 8 * at & mask, &type);
    }
}

INLINE u64 hashes_of_word(u32 word, u32 bytes) {
    if (bytes == 4) return hash32(word);
    if (bytes == 2) return hash32(word & 0xffffu) + hash32(word >> 16);
    return hash32(word & 0xffu) + hash32(word >> 8 & 0xffu) + hash32(word >> 16 & 0xffu) + hash32(word >> 24);
}

INLINE u64 look_at_vector(Vector vector, const Type *type) {
    const u64 low = (u64)vector.y << 32 | vector.x, high = (u64)vector.w << 32 | vector.z;
    if (type->signs != 0) {
        u32 found = non_finite(vector.y, type) | non_finite(vector.w, type);
        if (type->bytes != 8) found |= non_finite(vector.x, type) | non_finite(vector.z, type);
        if (found != 0) count_vector(low, high, type->bytes, type->infinite, type->sign);
    }
    if (type->bytes == 8) return hash64(low) + hash64(high);
    u64 hashes = 0;
    for (int at = 0; at < 4; at++) hashes += hashes_of_word(vector[at], type->bytes);
    return hashes;
}

INLINE u64 bits_at(u64 data, u64 at, u32 bytes) {
    switch (bytes) {
    case 1: return ((const GLOBAL u8 *)data)[at];
    case 2: return ((const GLOBAL u16 *)data)[at];
    case 4: return ((const GLOBAL u32 *)data)[at];
    default: return ((const GLOBAL u64 *)data)[at];
    }
}

INLINE u64 look_at_one(u64 bits, const Type *type) {
    if (type->signs != 0) count_one(bits, type);
    return type->bytes == 8 ? hash64(bits) : hash32((u32)bits);
}

INLINE float float_of(u32 bits) {
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

INLINE double double_of(u64 bits) {
    double value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

/* Half precision has 5 bits of exponent and 10 of mantissa. */
INLINE float from_half(u32 bits) {
    const u32 sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 0x1fu, mantissa = bits & 0x3ffu;
    if (exponent == 0) {
        const float small = (float)mantissa * 0x1p-24f;
        return sign ? -small : small;
    }
    return float_of(sign | (exponent == 0x1f ? 0xffu : exponent + 112) << 23 | mantissa << 13);
}

/* A finite double that is too large becomes the largest float, as in `rows.c`. */
INLINE float from_double(double value) {
    const double largest = 0x1.fffffep127;
    if (value - value != 0) return (float)value;
    return (float)(value > largest ? largest : value < -largest ? -largest : value);
}

/* Of one of the four types of floats. */
INLINE double as_double(u64 bits, u32 type) {
    switch (type) {
    case FLOAT64: return double_of(bits);
    case FLOAT16: return from_half((u32)bits);
    case BFLOAT16: return float_of((u32)bits << 16);
    default: return float_of((u32)bits);
    }
}

INLINE float as_float(u64 bits, u32 type) {
    switch (type) {
    case FLOAT32: return float_of((u32)bits);
    case FLOAT64: return from_double(double_of(bits));
    case FLOAT16: return from_half((u32)bits);
    case BFLOAT16: return float_of((u32)bits << 16);
    case INT8: return (signed char)bits;
    case INT16: return (short)bits;
    case INT32: return (float)(int)bits;
    case INT64: return (float)(i64)bits;
    default: return (u8)bits;
    }
}

/* The sum of the hashes of what one of the threads looks at. Vectors begin at a multiple of their size in memory. */
INLINE u64 look_at_all(u64 data, u64 elements, Type type, u64 thread, u64 threads) {
    const u64 before = (sizeof(Vector) - data % sizeof(Vector)) % sizeof(Vector) / type.bytes;
    const u64 begin = before < elements ? before : elements;
    const u64 vectors = (elements - begin) * type.bytes / sizeof(Vector);
    const u64 end = begin + vectors * (sizeof(Vector) / type.bytes);
    const GLOBAL Vector *from = (const GLOBAL Vector *)(data + begin * type.bytes);
    u64 at = thread, hashes = 0;
    for (; at + (VECTORS - 1) * threads < vectors; at += VECTORS * threads) {
        Vector read[VECTORS];
#pragma unroll
        for (int i = 0; i < VECTORS; i++) read[i] = from[at + i * threads];
#pragma unroll
        for (int i = 0; i < VECTORS; i++) hashes += look_at_vector(read[i], &type);
    }
    for (; at < vectors; at += threads) hashes += look_at_vector(from[at], &type);
    if (thread < begin) hashes += look_at_one(bits_at(data, thread, type.bytes), &type);
    if (end + thread < elements) hashes += look_at_one(bits_at(data, end + thread, type.bytes), &type);
    return hashes;
}

/* The sum of 32 threads' numbers, in the first of them. */
INLINE u64 sum_of_warp(u64 number) {
    for (int distance = 16; distance > 0; distance /= 2) {
        const u32 low = (u32)__nvvm_shfl_sync_down_i32(-1, (int)(u32)number, distance, 31);
        const u32 high = (u32)__nvvm_shfl_sync_down_i32(-1, (int)(u32)(number >> 32), distance, 31);
        number += (u64)high << 32 | low;
    }
    return number;
}

/* Counts the elements that are NaN and infinite, and adds up the hashes of all, in `totals`, which are zero before. Behind them,
 * `length` floats are written: the elements from number `first`, `stride` apart. */
__attribute__((nvptx_kernel)) void torchgraph_values(u64 data, u64 elements, u64 first, u64 stride, u64 length, u64 totals, u32 type) {
    const u32 number = __nvvm_read_ptx_sreg_tid_x(), size = __nvvm_read_ptx_sreg_ntid_x();
    const u64 thread = (u64)__nvvm_read_ptx_sreg_ctaid_x() * size + number;
    const u64 threads = (u64)__nvvm_read_ptx_sreg_nctaid_x() * size;
    u32 bytes;
    u64 hashes;
    if (number < TOTALS) of_block[number] = 0;
    __nvvm_bar_sync(0);
#define LOOK(BYTES, ...) hashes = look_at_all(data, elements, (Type){bytes = (BYTES), __VA_ARGS__}, thread, threads)
    switch (type) {
    case FLOAT32: LOOK(4, 0x80000000u, 0x00800000u, 0x7f800000u, 0x80000000u); break;
    case FLOAT64: LOOK(8, 0x80000000u, 0x00100000u, 0x7ff0000000000000u, 0x8000000000000000u); break;
    case FLOAT16: LOOK(2, 0x80008000u, 0x04000400u, 0x7c00u, 0x8000u); break;
    case BFLOAT16: LOOK(2, 0x80008000u, 0x00800080u, 0x7f80u, 0x8000u); break;
    case INT64: LOOK(8, 0, 0, 0, 0); break;
    case INT32: LOOK(4, 0, 0, 0, 0); break;
    case INT16: LOOK(2, 0, 0, 0, 0); break;
    default: LOOK(1, 0, 0, 0, 0); break;
    }
    GLOBAL float *sample = (GLOBAL float *)(totals + TOTALS * sizeof(u64));
    for (u64 at = thread; at < length; at += threads) sample[at] = as_float(bits_at(data, first + at * stride, bytes), type);
    hashes = sum_of_warp(hashes);
    if (number % 32 == 0) __atomic_fetch_add(&of_block[HASHES], hashes, __ATOMIC_RELAXED);
    __nvvm_bar_sync(0);
    if (number < TOTALS && of_block[number] != 0) {
        __atomic_fetch_add((GLOBAL u64 *)totals + number, of_block[number], __ATOMIC_RELAXED);
    }
}

/* The sum of the squares of the elements of `data` that one of several threads takes. */
INLINE double squares(u64 data, u64 elements, u32 type, u32 bytes, u32 thread, u32 threads) {
    const u64 before = (sizeof(Vector) - data % sizeof(Vector)) % sizeof(Vector) / bytes;
    const u64 begin = before < elements ? before : elements;
    const u64 vectors = (elements - begin) * bytes / sizeof(Vector);
    const GLOBAL Vector *from = (const GLOBAL Vector *)(data + begin * bytes);
    double sum = 0;
    u64 at = thread;
#define ADD(BITS)                                        \
    do {                                                 \
        const double value = as_double((BITS), type);    \
        sum += value * value;                            \
    } while (0)
#define ADD_VECTOR(VECTOR)                                                          \
    do {                                                                            \
        const Vector words = (VECTOR);                                              \
        if (bytes == 8) {                                                           \
            ADD((u64)words.y << 32 | words.x);                                      \
            ADD((u64)words.w << 32 | words.z);                                      \
        } else {                                                                    \
            for (int word = 0; word < 4; word++) {                                  \
                if (bytes == 2) ADD(words[word] >> 16);                             \
                ADD(bytes == 2 ? words[word] & 0xffffu : words[word]);              \
            }                                                                       \
        }                                                                           \
    } while (0)
    for (; at + (VECTORS - 1) * (u64)threads < vectors; at += VECTORS * (u64)threads) {
        Vector read[VECTORS];
#pragma unroll
        for (int i = 0; i < VECTORS; i++) read[i] = from[at + (u64)i * threads];
#pragma unroll
        for (int i = 0; i < VECTORS; i++) ADD_VECTOR(read[i]);
    }
    for (; at < vectors; at += threads) ADD_VECTOR(from[at]);
    const u64 end = begin + vectors * (sizeof(Vector) / bytes);
    for (u64 one = thread; one < begin; one += threads) ADD(bits_at(data, one, bytes));
    for (u64 one = end + thread; one < elements; one += threads) ADD(bits_at(data, one, bytes));
    return sum;
}

INLINE double double_of_halves(u32 low, u32 high) { return double_of((u64)high << 32 | low); }

INLINE double doubles_of_warp(double sum) {
    for (int distance = 16; distance > 0; distance /= 2) {
        u64 bits;
        __builtin_memcpy(&bits, &sum, sizeof bits);
        sum += double_of_halves((u32)__nvvm_shfl_sync_down_i32(-1, (int)(u32)bits, distance, 31),
                                (u32)__nvvm_shfl_sync_down_i32(-1, (int)(u32)(bits >> 32), distance, 31));
    }
    return sum;
}

static SHARED double of_warps[32];

/* Sums of squares, in `sums`, `[samples, parts]`: each of the `samples` of `size` elements is read in as many parts. A part is
 * read by `together` threads: those of a block, or of one of its warps. */
__attribute__((nvptx_kernel)) void torchgraph_squares(u64 data, u64 samples, u64 size, u64 parts, u64 sums, u32 type, u32 together) {
    const u32 number = __nvvm_read_ptx_sreg_tid_x(), block = __nvvm_read_ptx_sreg_ntid_x();
    const u64 piece = (u64)__nvvm_read_ptx_sreg_ctaid_x() * (block / together) + number / together;
    const u64 part = piece % parts, first = piece / parts * size;
    const u64 begin = size * part / parts, end = size * (part + 1) / parts;
    double sum = 0;
    if (piece < samples * parts) {
        const u32 thread = number % together;
        switch (type) {
        case FLOAT64: sum = squares(data + (first + begin) * 8, end - begin, FLOAT64, 8, thread, together); break;
        case FLOAT16: sum = squares(data + (first + begin) * 2, end - begin, FLOAT16, 2, thread, together); break;
        case BFLOAT16: sum = squares(data + (first + begin) * 2, end - begin, BFLOAT16, 2, thread, together); break;
        default: sum = squares(data + (first + begin) * 4, end - begin, FLOAT32, 4, thread, together); break;
        }
    }
    sum = doubles_of_warp(sum);
    if (together > 32) {
        if (number % 32 == 0) of_warps[number / 32] = sum;
        __nvvm_bar_sync(0);
        if (number < 32) sum = doubles_of_warp(number < block / 32 ? of_warps[number] : 0.0);
    }
    if (piece < samples * parts && number % together == 0) ((GLOBAL double *)sums)[piece] = sum;
}
