/* Turns tensors into rows: statistics and a histogram each, in one pass over a sample of the elements.
 *
 * `row_buffer.py` calls it and says what the arguments mean; `schema.STATISTICS` and `histogram/` say what a row holds.
 * Sums are taken in LANES independent parts, so that a compiler may use vector instructions without changing a result:
 * every build of this file gives the same bits.
 */

#include "hashes.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#ifdef __x86_64__
#include <xmmintrin.h>
#else
#include <fenv.h>
#endif

enum { SHIFT = 21, LAST_BUCKET = 1019, SIGN = 1 << (31 - SHIFT), CODES = 2 * SIGN };

/* Tables lie further apart than they are long: at a distance of a memory page, writing to one would delay the others. */
enum { SPAN = CODES + 272 };
enum { TABLES = 4, LANES = 8, BLOCK = 2048, FEW = 512 };

/* As in schema.STATISTICS. */
enum { COUNT, SAMPLED, NANS, POSITIVE_INFINITIES, NEGATIVE_INFINITIES, ZEROS };
enum { MIN = 6, MAX, MEAN, ABSOLUTE_MEAN, STD, L2_NORM, STATISTICS };

/* As in `schema`. */
enum { OF_NONE, OF_ALL, OF_SAMPLE };

/* As in row_buffer.TYPES. */
enum { FLOAT32, FLOAT64, FLOAT16, BFLOAT16, INT8, INT16, INT32, INT64, UINT8 };

#define LARGEST 3.4028234663852886e38
#define LARGEST_DOUBLE 0x1.fffffffffffffp1023
#define INFINITE 0x7f800000u

/* Where rows are put. Python fills it in as `row_buffer._Buffers`. */
typedef struct {
    float *statistics; /* [most_rows, STATISTICS] */
    uint32_t *ends;    /* [most_rows]: where the entries of each row end */
    int16_t *buckets;  /* [most_entries] */
    uint32_t *counts;  /* [most_entries] */
    uint32_t *tables;  /* [threads, TABLES, SPAN], all zero between calls */
    uint64_t *fingerprints; /* [most_rows]: four times the sum of hashes, plus which elements it is of */
    int64_t most_rows, most_entries, rows, entries;
    int64_t without_histograms; /* 1: rows have statistics alone */
    int64_t threads;            /* so many may look at the elements of a large tensor */
    int64_t alone;              /* of so many large tensors, the caller's thread looks at all elements itself */
    int64_t more_alone;         /* so many more than `LEAST_ALONE` they are when a thread is late the next time */
} Rows;

/* The elements of a tensor that are looked at: `length` of `count`, from number `first`, `stride` apart. */
typedef struct {
    const char *data;
    int64_t type, count, first, stride, length;
} Elements;

/* Sums over the finite elements so far: of their distances to `shift`, the first of them, and of the squares of those.
 * Since it is one of the elements, their spread is at least its own distance to the mean over their number, and the
 * difference of sums that gives the variance loses no more than that factor of a double's 16 digits. The same holds
 * for the sum of their own squares, of which its own is one. */
typedef struct {
    int64_t sampled, zeros;
    double shift, sum, absolute, squares;
    float least, most;
} Moments;

typedef struct {
    int64_t nan, positive, negative;
} NonFinite;

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static int is_finite(float value) { return (bits_of(value) & INFINITE) != INFINITE; }

static float from_float(float value) { return value; }

static float from_bfloat16(uint16_t bits) { return float_of((uint32_t)bits << 16); }

/* Shifted into a float's place, a half's exponent is 112 too small; the product mends that, for subnormals too. */
static float from_half(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x8000u) << 16, rest = (uint32_t)(bits & 0x7fffu) << 13;
    if (rest >= 0x7c00u << 13) return float_of(sign | INFINITE | (rest & 0x007fffffu));
    return float_of(sign | bits_of(float_of(rest) * 0x1p112f));
}

/* Finite ones too large for a float become its largest. */
static float from_double(double value) {
    if (value > LARGEST && value <= LARGEST_DOUBLE) return (float)LARGEST;
    if (value < -LARGEST && value >= -LARGEST_DOUBLE) return -(float)LARGEST;
    return (float)value;
}

#define GATHER(TYPE, CONVERT)                                                            \
    do {                                                                                 \
        const TYPE *from = (const TYPE *)elements->data + start;                         \
        for (int64_t i = 0; i < length; i++) block[i] = CONVERT(from[i * stride]);       \
    } while (0)

/* The sampled elements from number `at` on, `length` of them, as floats. */
static void gather(const Elements *elements, int64_t at, int64_t length, float *block) {
    const int64_t stride = elements->stride, start = elements->first + at * stride;
    switch (elements->type) {
    case FLOAT32: GATHER(float, from_float); break;
    case FLOAT64: GATHER(double, from_double); break;
    case FLOAT16: GATHER(uint16_t, from_half); break;
    case BFLOAT16: GATHER(uint16_t, from_bfloat16); break;
    case INT8: GATHER(int8_t, (float)); break;
    case INT16: GATHER(int16_t, (float)); break;
    case INT32: GATHER(int32_t, (float)); break;
    case INT64: GATHER(int64_t, (float)); break;
    default: GATHER(uint8_t, (float)); break;
    }
}

/* One more in the exponent of an infinity or NaN, and of nothing else, carries into the sign. */
#define ANY_NON_FINITE(TYPE, REST, ONE)                                                  \
    do {                                                                                 \
        const TYPE *from = (const TYPE *)elements->data + start;                         \
        TYPE carried = 0;                                                                \
        for (int64_t i = 0; i < length; i++) carried |= (TYPE)((from[i] & (REST)) + (ONE)); \
        return (carried & (TYPE) ~(REST)) != 0;                                          \
    } while (0)

/* Whether one of the `length` elements from number `start` on, sampled or not, is NaN or infinite. */
static int any_non_finite(const Elements *elements, int64_t start, int64_t length) {
    switch (elements->type) {
    case FLOAT32: ANY_NON_FINITE(uint32_t, 0x7fffffffu, 0x00800000u);
    case FLOAT64: ANY_NON_FINITE(uint64_t, 0x7fffffffffffffffu, 0x0010000000000000u);
    case FLOAT16: ANY_NON_FINITE(uint16_t, 0x7fffu, 0x0400u);
    case BFLOAT16: ANY_NON_FINITE(uint16_t, 0x7fffu, 0x0080u);
    default: return 0;
    }
}

/* Count what is not finite in `block`, and close the gaps; returns how many are left. */
static int64_t take_out_non_finite(float *block, int64_t length, NonFinite *found) {
    int64_t kept = 0;
    for (int64_t i = 0; i < length; i++) {
        float value = block[i];
        if (is_finite(value)) block[kept++] = value;
        else if (value != value) found->nan++;
        else if (value > 0) found->positive++;
        else found->negative++;
    }
    return kept;
}

/* The fingerprint of a tensor is the sum of a hash of the bits of each element, so it depends neither on the order of the
 * elements nor on how the sum is divided. */

/* Vectors as long as the longest ones of any processor: where they are shorter, the compiler takes several. */
typedef uint64_t Words __attribute__((vector_size(64)));
typedef uint32_t BitsOfFloats __attribute__((vector_size(64)));

/* Of elements of 32 bits: the sum of their hashes and, as `any_non_finite`, whether one of them is NaN or infinite, if they are
 * floats. A vector has room for products of 64 bits of every second element. */
static uint64_t look_at_words(const char *data, int64_t count, int *is_any_non_finite) {
    const Words offset = (Words){0} + ((uint64_t)HASH_OFFSET << 32 | HASH_OFFSET);
    Words totals = {0};
    BitsOfFloats carried = {0};
    uint64_t total = 0;
    uint32_t any = 0;
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) {
        Words words;
        memcpy(&words, data + 4 * i, sizeof words);
        carried |= ((BitsOfFloats)words & 0x7fffffffu) + 0x00800000u;
        words ^= offset;
        /* As `hash_shifted`, of eight at once. */
        const Words low = (words & LOW_HALF) * HASH_FACTOR, high = (words >> 32) * HASH_FACTOR;
        totals += (((low & LOW_HALF) * (low >> 32)) ^ low) + (((high & LOW_HALF) * (high >> 32)) ^ high);
    }
    for (int lane = 0; lane < 8; lane++) total += totals[lane];
    for (int lane = 0; lane < 16; lane++) any |= carried[lane];
    for (; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, data + 4 * i, sizeof bits);
        any |= (bits & 0x7fffffffu) + 0x00800000u;
        total += hash32(bits);
    }
    *is_any_non_finite = any >> 31;
    return total;
}

#define ADD_HASHES(TYPE, HASH)                                                           \
    do {                                                                                 \
        const TYPE *from = (const TYPE *)data;                                           \
        for (int64_t i = 0; i < count; i++) total += HASH(from[i]);                      \
    } while (0)

/* Of `count` elements of `size` bytes: 1, 2, 4, 8 or 16. */
static uint64_t sum_of_hashes(const char *data, int64_t size, int64_t count) {
    uint64_t total = 0;
    int unused;
    switch (size) {
    case 1: ADD_HASHES(uint8_t, hash32); break;
    case 2: ADD_HASHES(uint16_t, hash32); break;
    case 4: return look_at_words(data, count, &unused);
    case 8: ADD_HASHES(uint64_t, hash64); break;
    default:
        for (int64_t i = 0; i < count; i++) {
            uint64_t halves[2];
            memcpy(halves, data + 16 * i, sizeof halves);
            total += hash64(hash64(halves[0]) + halves[1]);
        }
    }
    return total;
}

static int64_t size_of(int64_t type) {
    switch (type) {
    case FLOAT64: case INT64: return 8;
    case FLOAT32: case INT32: return 4;
    case FLOAT16: case BFLOAT16: case INT16: return 2;
    default: return 1;
    }
}

/* Look at every element from number `start` up to `end`, sampled or not: returns the sum of their hashes and, if `found`
 * is given, counts exactly what is not finite. */
static uint64_t look_through(const Elements *elements, int64_t start, int64_t end, NonFinite *found) {
    const int64_t size = size_of(elements->type);
    Elements all = *elements;
    float block[BLOCK];
    uint64_t hashes = 0;
    all.first = 0;
    all.stride = 1;
    for (int64_t at = start; at < end; at += BLOCK) {
        const int64_t length = end - at < BLOCK ? end - at : BLOCK;
        const char *data = elements->data + at * size;
        int is_any = 0;
        if (elements->type == FLOAT32) {
            hashes += look_at_words(data, length, &is_any);
        } else {
            hashes += sum_of_hashes(data, size, length);
            is_any = found != NULL && any_non_finite(&all, at, length);
        }
        if (found == NULL || !is_any) continue;
        gather(&all, at, length, block);
        take_out_non_finite(block, length, found);
    }
    return hashes;
}

/* The parts of the sums of one block. */
typedef struct {
    double sum[LANES], absolute[LANES], squares[LANES];
    float least[LANES], most[LANES];
    int32_t zeros[LANES];
} Parts;

/* A number for each of the LANES. */
typedef double Doubles __attribute__((vector_size(8 * LANES)));
typedef float Floats __attribute__((vector_size(4 * LANES)));
typedef int32_t Ints __attribute__((vector_size(4 * LANES)));

static inline Floats choose(Ints is_first, Floats first, Floats second) {
    return (Floats)(((Ints)first & is_first) | ((Ints)second & ~is_first));
}

static inline void add_value(Parts *parts, float value, double shift) {
    const double wide = value, distance = wide - shift;
    parts->sum[0] += distance;
    parts->squares[0] += distance * distance;
    parts->absolute[0] += fabs(wide);
    parts->least[0] = value < parts->least[0] ? value : parts->least[0];
    parts->most[0] = value > parts->most[0] ? value : parts->most[0];
    parts->zeros[0] += value == 0;
}

/* The sums of a block that is not empty. Those that are left over go into the first lane. */
static Parts sum_up(const float *block, int64_t length, double shift) {
    Doubles sum = {0}, absolute = {0}, squares = {0};
    Floats least, most;
    Ints zeros = {0};
    Parts parts;
    int64_t i = 0;
    for (int lane = 0; lane < LANES; lane++) least[lane] = most[lane] = block[0];
    for (; i + LANES <= length; i += LANES) {
        Floats values;
        memcpy(&values, block + i, sizeof values);
        const Doubles wide = __builtin_convertvector(values, Doubles), distance = wide - shift;
        sum += distance;
        squares += distance * distance;
        absolute += (Doubles)((Words)wide & INT64_MAX);
        least = choose(values < least, values, least);
        most = choose(values > most, values, most);
        zeros -= values == 0;
    }
    memcpy(parts.sum, &sum, sizeof sum);
    memcpy(parts.absolute, &absolute, sizeof absolute);
    memcpy(parts.squares, &squares, sizeof squares);
    memcpy(parts.least, &least, sizeof least);
    memcpy(parts.most, &most, sizeof most);
    memcpy(parts.zeros, &zeros, sizeof zeros);
    for (; i < length; i++) add_value(&parts, block[i], shift);
    return parts;
}

/* Add the sums of a block of `length` elements to those of the blocks before it. */
static void add_parts(Moments *moments, const Parts *parts, int64_t length) {
    if (moments->sampled == 0) {
        moments->least = parts->least[0];
        moments->most = parts->most[0];
    }
    for (int lane = 0; lane < LANES; lane++) {
        moments->sum += parts->sum[lane];
        moments->absolute += parts->absolute[lane];
        moments->squares += parts->squares[lane];
        moments->zeros += parts->zeros[lane];
        if (parts->least[lane] < moments->least) moments->least = parts->least[lane];
        if (parts->most[lane] > moments->most) moments->most = parts->most[lane];
    }
    moments->sampled += length;
}

/* Neighbours often fall into one bucket; several tables spare each the wait for the one before. */
static void add_to_tables(const float *block, int64_t length, uint32_t *tables) {
    int64_t i = 0;
    if (length >= FEW)
        for (; i + TABLES <= length; i += TABLES)
            for (int table = 0; table < TABLES; table++) tables[table * SPAN + (bits_of(block[i + table]) >> SHIFT)]++;
    for (; i < length; i++) tables[bits_of(block[i]) >> SHIFT]++;
}

/* Which codes a table of few elements counts, a bit each: to go through these takes less time than through the table. */
typedef struct {
    uint64_t words[CODES / 64];
} Codes;

/* Counts few elements in one table, and notes their codes. */
static void add_to_table(const float *block, int64_t length, uint32_t *table, Codes *used) {
    for (int64_t i = 0; i < length; i++) {
        const uint32_t code = bits_of(block[i]) >> SHIFT;
        table[code]++;
        used->words[code / 64] |= (uint64_t)1 << code % 64;
    }
}

/* Codes that are looked at together: most have no elements. */
enum { TOGETHER = 16 };

/* Add the counts of codes `from` to `to` up in the first of so many tables, clear the others, and note which are not zero. */
static void collect(uint32_t *tables, int64_t count, int from, int to, Codes *used) {
    for (int first = from / TOGETHER * TOGETHER; first <= to; first += TOGETHER) {
        uint32_t sums[TOGETHER], any = 0;
        memcpy(sums, tables + first, sizeof sums);
        for (int64_t table = 1; table < count; table++)
            for (int i = 0; i < TOGETHER; i++) sums[i] += tables[table * SPAN + first + i];
        for (int i = 0; i < TOGETHER; i++) any |= sums[i];
        if (any == 0) continue;
        memcpy(tables + first, sums, sizeof sums);
        for (int64_t table = 1; table < count; table++) memset(tables + table * SPAN + first, 0, sizeof sums);
        for (int i = 0; i < TOGETHER; i++)
            used->words[first / 64] |= (uint64_t)(sums[i] != 0) << (first + i) % 64;
    }
}

static uint32_t take(uint32_t *table, int code) {
    uint32_t count = table[code];
    table[code] = 0;
    return count;
}

static void add_entry(Rows *rows, int bucket, uint32_t count) {
    if (count == 0) return;
    rows->buckets[rows->entries] = (int16_t)bucket;
    rows->counts[rows->entries++] = count;
}

static int bucket_of(float value) {
    int magnitude = (int)((bits_of(value) & 0x7fffffffu) >> SHIFT);
    return value < 0 ? -magnitude : magnitude;
}

/* Turn the first table, in which the codes in `used` are counted, into entries, from the smallest bucket to the largest, and
 * clear it. The larger a negative code, the smaller its bucket. */
static void add_entries(Rows *rows, Codes *used) {
    uint32_t *table = rows->tables;
    const uint32_t zeros = take(table, 0) + take(table, SIGN);
    used->words[0] &= ~(uint64_t)1;
    used->words[SIGN / 64] &= ~(uint64_t)1;
    for (int word = CODES / 64 - 1; word >= SIGN / 64; word--)
        for (uint64_t left = used->words[word]; left != 0;) {
            const int bit = 63 - __builtin_clzll(left), code = word * 64 + bit;
            left &= ~((uint64_t)1 << bit);
            add_entry(rows, SIGN - code, take(table, code));
        }
    add_entry(rows, 0, zeros);
    for (int word = 0; word < SIGN / 64; word++)
        for (uint64_t left = used->words[word]; left != 0; left &= left - 1) {
            const int code = word * 64 + __builtin_ctzll(left);
            add_entry(rows, code, take(table, code));
        }
}

/* Turn `tables` of the tables, those in use, into entries, and clear them. */
static void add_histogram(Rows *rows, const Moments *moments, int64_t tables) {
    const int from = bucket_of(moments->least), to = bucket_of(moments->most);
    Codes used = {{0}};
    collect(rows->tables, tables, 0, to > 0 ? to : 0, &used);
    collect(rows->tables, tables, SIGN, from < 0 ? SIGN - from : SIGN, &used);
    add_entries(rows, &used);
}

static float bounded(double value) {
    return (float)(value > LARGEST ? LARGEST : value < -LARGEST ? -LARGEST : value);
}

static void add_statistics(Rows *rows, int64_t count, const NonFinite *found, const Moments *moments) {
    float *row = rows->statistics + rows->rows * STATISTICS;
    const double sampled = (double)moments->sampled, mean_distance = moments->sum / sampled;
    const double variance = moments->squares / sampled - mean_distance * mean_distance;
    const double shift = moments->shift, mean_square = moments->squares / sampled + shift * (2 * mean_distance + shift);
    const int64_t finite = count - found->nan - found->positive - found->negative;
    row[COUNT] = (float)count;
    row[SAMPLED] = (float)moments->sampled;
    row[NANS] = (float)found->nan;
    row[POSITIVE_INFINITIES] = (float)found->positive;
    row[NEGATIVE_INFINITIES] = (float)found->negative;
    row[ZEROS] = (float)moments->zeros;
    for (int i = MIN; i < STATISTICS; i++) row[i] = NAN;
    if (moments->sampled == 0) return;
    row[MIN] = moments->least;
    row[MAX] = moments->most;
    row[MEAN] = bounded(moments->shift + mean_distance);
    row[ABSOLUTE_MEAN] = bounded(moments->absolute / sampled);
    row[STD] = bounded(sqrt(variance > 0 ? variance : 0));
    row[L2_NORM] = bounded(sqrt((mean_square > 0 ? mean_square : 0) * (double)finite));
}

/* One block of a tensor's elements: its sums, which do not depend on other blocks. */
typedef struct {
    int64_t length;                 /* finite ones among its sampled elements */
    float first;                    /* of these */
    NonFinite sampled, everywhere;  /* among its sampled elements; among all that its part of the tensor has */
    uint64_t hashes;                /* of all these */
    Parts parts;
} Piece;

/* Sum up `length` elements of a block, whose finite ones are moved to its beginning. Without `shift`, it is their first. */
static void sum_piece(float *block, int64_t length, double divisor, const float *shift, Piece *piece) {
    const Elements floats = {(const char *)block, FLOAT32, length, 0, 1, length};
    if (any_non_finite(&floats, 0, length)) length = take_out_non_finite(block, length, &piece->sampled);
    piece->length = length;
    if (length == 0) return;
    if (divisor != 1.0)
        for (int64_t i = 0; i < length; i++) block[i] = from_double(block[i] / divisor);
    piece->first = block[0];
    piece->parts = sum_up(block, length, shift == NULL ? block[0] : *shift);
}

/* A row that is being made of blocks, in order. */
typedef struct {
    Moments moments;
    NonFinite sampled, everywhere;
    uint64_t hashes;
    int64_t tables; /* those in use */
    int is_scanned; /* not all codes that are counted are in `used`, so the tables are searched */
    Codes used;
} Row;

static void add_non_finite(NonFinite *found, const NonFinite *more) {
    found->nan += more->nan;
    found->positive += more->positive;
    found->negative += more->negative;
}

static void add_piece(Row *row, const Piece *piece) {
    add_non_finite(&row->sampled, &piece->sampled);
    add_non_finite(&row->everywhere, &piece->everywhere);
    row->hashes += piece->hashes;
    if (piece->length == 0) return;
    if (row->moments.sampled == 0) row->moments.shift = piece->first;
    add_parts(&row->moments, &piece->parts, piece->length);
}

/* Several tables are in use from a block of FEW elements on. */
static int64_t tables_for(int64_t length) { return length >= FEW ? TABLES : 1; }

/* Take a piece, which is of `block`, into the row that is being made. */
static void take_in(Rows *rows, const float *block, const Piece *piece, Row *row) {
    add_piece(row, piece);
    if (rows->without_histograms || piece->length == 0) return;
    if (piece->length < FEW) {
        add_to_table(block, piece->length, rows->tables, &row->used);
    } else {
        add_to_tables(block, piece->length, rows->tables);
        row->is_scanned = 1;
    }
    if (row->tables < tables_for(piece->length)) row->tables = tables_for(piece->length);
}

/* From what the elements of the next block are measured: the first of the row; NULL if there was none. */
static const float *shift_of(const Row *row, float *shift) {
    *shift = (float)row->moments.shift;
    return row->moments.sampled > 0 ? shift : NULL;
}

/* Take a block of numbers into the row that is being made. */
static void feed(Rows *rows, float *block, int64_t length, double divisor, Row *row) {
    float shift;
    Piece piece = {0};
    sum_piece(block, length, divisor, shift_of(row, &shift), &piece);
    take_in(rows, block, &piece, row);
}

static void end_row(Rows *rows, int64_t count, const NonFinite *found, Row *row, uint64_t fingerprint) {
    rows->fingerprints[rows->rows] = fingerprint;
    if (row->moments.sampled > 0 && !rows->without_histograms) {
        if (row->is_scanned) add_histogram(rows, &row->moments, row->tables);
        else add_entries(rows, &row->used);
    }
    add_statistics(rows, count, found, &row->moments);
    rows->ends[rows->rows++] = (uint32_t)rows->entries;
}

static int has_room(const Rows *rows, int64_t length) {
    int64_t most = 2 * LAST_BUCKET + 1;
    return rows->rows < rows->most_rows && rows->entries + (length < most ? length : most) <= rows->most_entries;
}

/* Look at block number `number` of the sampled elements, and at all elements of the tensor up to the next block: together,
 * so that what is sampled is still in the processor's cache. */
static void look_at_block(const Elements *elements, int64_t number, double divisor, const float *shift, float *block,
                          Piece *piece) {
    const int64_t at = number * BLOCK, left = elements->length - at, size = left < BLOCK ? left : BLOCK;
    const int64_t end = left > BLOCK ? (at + BLOCK) * elements->stride : elements->count;
    memset(piece, 0, sizeof *piece);
    piece->hashes = look_through(elements, at * elements->stride, end, elements->stride > 1 ? &piece->everywhere : NULL);
    gather(elements, at, size, block);
    sum_piece(block, size, divisor, shift, piece);
}

/* The arithmetic of the C standard, until the caller's is put back. The caller's may flush subnormals to zero
 * (torch.set_flush_denormal, or a library built with -ffast-math), and then floats compare in another way than their
 * bits do, by which the tables are filled. */
#ifdef __x86_64__
typedef uint32_t Arithmetic; /* the only register that matters here; fenv.h takes all, in a third of a small row's time */
enum { PLAIN = 0x1f80 };

/* The compiler may not move what reads or writes memory over these. */
#define BARRIER() __asm__ volatile("" ::: "memory")

static inline Arithmetic in_plain_arithmetic(void) {
    const Arithmetic callers = _mm_getcsr();
    _mm_setcsr(PLAIN);
    BARRIER();
    return callers;
}

static inline void put_back(const Arithmetic *callers) {
    BARRIER();
    _mm_setcsr(*callers);
}
#else
typedef fenv_t Arithmetic;

static Arithmetic in_plain_arithmetic(void) {
    Arithmetic callers;
    fegetenv(&callers);
    fesetenv(FE_DFL_ENV);
    return callers;
}

static void put_back(const Arithmetic *callers) { fesetenv(callers); }
#endif

/* How OpenMP runs a function in several threads, of which the caller's is one: GOMP_parallel of the library that torch
 * computes with, so that no thread is used that torch does not use itself. NULL: it has none. */
typedef void (*Parallel)(void (*work)(void *), void *task, unsigned threads, unsigned flags);
static Parallel parallel;

void torchgraph_set_parallel(Parallel found) { parallel = found; }

/* Blocks that are looked at by several threads before they are added up, and the size of a tensor for which that pays. */
enum { AT_A_TIME = 64, LARGE = 1 << 16 };

/* OpenMP waits for all threads of a team. Where another process has the core of one, that takes a time slice; so the
 * caller's thread then goes on without them, for longer each time. In seconds; in tensors. */
#define LATE 2e-4
enum { LEAST_ALONE = 32, MOST_ALONE = 4096 };

static double seconds_now(void) {
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Note how long the caller's thread has waited for others. */
static void note_wait(Rows *rows, double seconds) {
    if (seconds > LATE) {
        rows->alone = LEAST_ALONE + rows->more_alone;
        rows->more_alone = 2 * rows->alone < MOST_ALONE ? 2 * rows->alone - LEAST_ALONE : MOST_ALONE - LEAST_ALONE;
    } else if (rows->more_alone > 0) {
        rows->more_alone--;
    }
}

/* Whether several threads look at the next large tensor. */
static int is_shared(Rows *rows, const Elements *elements) {
    if (parallel == NULL || rows->threads < 2 || elements->count < LARGE) return 0;
    if (rows->alone == 0) return 1;
    rows->alone--;
    return 0;
}

/* Pieces of work that several threads share. Each takes the next one that nobody has taken. */
typedef struct {
    int64_t count, taken;
    const int *caller; /* the address of the errno of its thread */
    double done;       /* when there was no piece left for it */
} Pieces;

static int64_t next(int64_t *number) { return __atomic_fetch_add(number, 1, __ATOMIC_RELAXED); }

/* The number of the piece that the calling thread has to do next; -1 if there is none left. */
static int64_t next_piece(Pieces *pieces) {
    const int64_t number = next(&pieces->taken);
    if (number < pieces->count) return number;
    if (pieces->caller == &errno) pieces->done = seconds_now();
    return -1;
}

/* Have several threads do `count` pieces of a task, which begins with its `Pieces`. */
static void share(Rows *rows, void (*work)(void *), Pieces *pieces, int64_t count) {
    pieces->count = count;
    pieces->taken = 0;
    pieces->caller = &errno;
    pieces->done = seconds_now();
    parallel(work, pieces, (unsigned)rows->threads, 0);
    note_wait(rows, seconds_now() - pieces->done);
}

/* Some of a tensor's blocks. */
typedef struct {
    Pieces shared;
    const Rows *rows;
    const Elements *elements;
    double divisor;
    float shift;
    int64_t first, threads;
    Piece pieces[AT_A_TIME];
} Blocks;

static void look_at_blocks(void *task) {
    Blocks *blocks = task;
    const int64_t thread = next(&blocks->threads);
    if (thread >= blocks->rows->threads) return;
    uint32_t *tables = blocks->rows->tables + thread * TABLES * SPAN;
    const Arithmetic callers = in_plain_arithmetic();
    float block[BLOCK];
    for (int64_t i = next_piece(&blocks->shared); i >= 0; i = next_piece(&blocks->shared)) {
        Piece *piece = &blocks->pieces[i];
        look_at_block(blocks->elements, blocks->first + i, blocks->divisor, &blocks->shift, block, piece);
        if (!blocks->rows->without_histograms && piece->length > 0) add_to_tables(block, piece->length, tables);
    }
    put_back(&callers);
}

/* The first sampled element, from which distances are taken; returns 0 if it is not finite, and another one is to be. */
static int begins_finite(const Elements *elements, double divisor, float *first) {
    gather(elements, 0, 1, first);
    if (!is_finite(*first)) return 0;
    if (divisor != 1.0) *first = from_double(*first / divisor);
    return 1;
}

/* Take in the sampled elements; count what is not finite among all, and add the hashes of all up. The sums of a block are
 * the same whichever thread takes them, and are added up in the order of the blocks. */
static void feed_all(Rows *rows, const Elements *elements, double divisor, Row *row) {
    const int64_t blocks = (elements->length + BLOCK - 1) / BLOCK;
    const int by_several = is_shared(rows, elements);
    int64_t number = 0;
    float block[BLOCK], shift = 0;
    int is_known = by_several && begins_finite(elements, divisor, &shift);
    for (; number < blocks && !(by_several && is_known); number++) {
        Piece piece;
        look_at_block(elements, number, divisor, shift_of(row, &shift), block, &piece);
        take_in(rows, block, &piece, row);
        is_known = shift_of(row, &shift) != NULL;
    }
    if (number == blocks) return;
    Blocks task;
    task.rows = rows, task.elements = elements, task.divisor = divisor, task.shift = shift;
    row->tables = rows->threads * TABLES;
    row->is_scanned = 1;
    for (; number < blocks; number += task.shared.count) {
        task.first = number, task.threads = 0;
        share(rows, look_at_blocks, &task.shared, blocks - number < AT_A_TIME ? blocks - number : AT_A_TIME);
        for (int64_t i = 0; i < task.shared.count; i++) add_piece(row, &task.pieces[i]);
    }
}

static uint64_t fingerprint_of(uint64_t hashes, uint64_t extent) { return hashes << 2 | extent; }

/* Each of the following adds one row. It returns 0, having done nothing, when there is no room. */

/* Of `length` elements out of `count`, from number `first`, `stride` apart; what is not finite is counted among all. */
int torchgraph_add_row(Rows *rows, const char *data, int64_t type, int64_t count, int64_t first, int64_t stride,
                       int64_t length, double divisor) {
    const Elements elements = {data, type, count, first, stride, length};
    Row row = {0};
    if (!has_room(rows, length)) return 0;
    const Arithmetic callers = in_plain_arithmetic();
    feed_all(rows, &elements, divisor, &row);
    end_row(rows, count, stride > 1 ? &row.everywhere : &row.sampled, &row, fingerprint_of(row.hashes, OF_ALL));
    put_back(&callers);
    return 1;
}

/* Of a sample of a tensor of `count` elements, of which so many are not finite. Its fingerprint is of the sample. */
int torchgraph_add_sample(Rows *rows, const char *sample, int64_t type, int64_t length, double divisor, int64_t count,
                          int64_t nan, int64_t positive, int64_t negative) {
    const Elements elements = {sample, type, length, 0, 1, length};
    const NonFinite everywhere = {nan, positive, negative};
    Row row = {0};
    if (!has_room(rows, length)) return 0;
    const Arithmetic callers = in_plain_arithmetic();
    feed_all(rows, &elements, divisor, &row);
    end_row(rows, count, &everywhere, &row, fingerprint_of(row.hashes, OF_SAMPLE));
    put_back(&callers);
    return 1;
}

/* Sums that `quick_squares` takes beside each other. */
enum { SUMS = 4 * LANES };

/* The sum of squares of a block, in single precision: of few enough addends to lose nothing that a float shows. */
static float quick_squares(const float *block, int64_t length) {
    float total[SUMS] = {0};
    int64_t i = 0;
    for (; i + SUMS <= length; i += SUMS)
        for (int lane = 0; lane < SUMS; lane++) total[lane] += block[i + lane] * block[i + lane];
    for (; i < length; i++) total[0] += block[i] * block[i];
    for (int lane = 1; lane < SUMS; lane++) total[0] += total[lane];
    return total[0];
}

/* Small pieces that are taken together: each addition of one waits for the one before, and not for those of others. */
enum { BESIDE = 8, SMALL = 256 };

/* What `quick_squares` gives for each of `BESIDE` pieces, which lie one after the other. */
static void many_quick_squares(const float *pieces, int64_t length, float *totals) {
    float all[SUMS][BESIDE] = {{0}};
    const int64_t even = length / SUMS * SUMS;
    for (int piece = 0; piece < BESIDE; piece++) {
        float sums[SUMS] = {0};
        const float *block = pieces + piece * length;
        for (int64_t i = 0; i < even; i += SUMS)
            for (int lane = 0; lane < SUMS; lane++) sums[lane] += block[i + lane] * block[i + lane];
        for (int lane = 0; lane < SUMS && even > 0; lane++) all[lane][piece] = sums[lane];
    }
    for (int piece = 0; piece < BESIDE; piece++) totals[piece] = all[0][piece];
    for (int64_t i = even; i < length; i++)
        for (int piece = 0; piece < BESIDE; piece++) totals[piece] += pieces[piece * length + i] * pieces[piece * length + i];
    for (int lane = 1; lane < SUMS && even > 0; lane++)
        for (int piece = 0; piece < BESIDE; piece++) totals[piece] += all[lane][piece];
}

static double squares(const float *block, int64_t length) {
    double total[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= length; i += LANES)
        for (int lane = 0; lane < LANES; lane++) total[lane] += (double)block[i + lane] * block[i + lane];
    for (; i < length; i++) total[0] += (double)block[i] * block[i];
    for (int lane = 1; lane < LANES; lane++) total[0] += total[lane];
    return total[0];
}

/* The sum of squares of a piece, of which `quick` is what the sum in single precision gives. */
static double sum_of_squares(float quick, const float *piece, int64_t length) {
    return quick > 1e-25f && quick < 1e37f ? quick : squares(piece, length); /* neither lost nor overflown */
}

static float l2_norm(const Elements *elements, int64_t start, int64_t length, uint64_t *hashes) {
    double total = 0;
    float block[BLOCK];
    for (int64_t at = 0; at < length; at += BLOCK) {
        int64_t size = length - at < BLOCK ? length - at : BLOCK;
        const float *piece = block;
        if (elements->type == FLOAT32) piece = (const float *)elements->data + start + at;
        else gather(elements, start + at, size, block);
        *hashes += look_through(elements, start + at, start + at + size, NULL);
        total += sum_of_squares(quick_squares(piece, size), piece, size);
    }
    return from_double(sqrt(total));
}

/* The norms of `count` pieces of `size` elements, the first of which is element number `start`. */
static void l2_norms(const Elements *elements, int64_t start, int64_t size, int64_t count, float *norms, uint64_t *hashes) {
    int64_t i = 0;
    if (elements->type == FLOAT32 && size <= SMALL)
        for (; i + BESIDE <= count; i += BESIDE) {
            const float *pieces = (const float *)elements->data + start + i * size;
            float totals[BESIDE];
            *hashes += look_through(elements, start + i * size, start + (i + BESIDE) * size, NULL);
            many_quick_squares(pieces, size, totals);
            for (int piece = 0; piece < BESIDE; piece++)
                norms[i + piece] = from_double(sqrt(sum_of_squares(totals[piece], pieces + piece * size, size)));
        }
    for (; i < count; i++) norms[i] = l2_norm(elements, start + i * size, size, hashes);
}

/* The norms of some samples of `size` elements. */
typedef struct {
    Pieces shared;
    const Elements *elements;
    int64_t first, size;
    float *norms;
    uint64_t hashes;
} Norms;

static void take_norms(void *task) {
    Norms *norms = task;
    uint64_t hashes = 0;
    const Arithmetic callers = in_plain_arithmetic();
    for (int64_t i = next_piece(&norms->shared); i >= 0; i = next_piece(&norms->shared))
        norms->norms[i] = l2_norm(norms->elements, (norms->first + i) * norms->size, norms->size, &hashes);
    __atomic_fetch_add(&norms->hashes, hashes, __ATOMIC_RELAXED);
    put_back(&callers);
}

/* Of the l2 norms of `samples` pieces of `size` elements each, which lie one after the other. Its fingerprint is of those
 * elements. */
int torchgraph_add_norms(Rows *rows, const char *data, int64_t type, int64_t samples, int64_t size, double divisor) {
    const Elements elements = {data, type, samples * size, 0, 1, samples * size};
    Row row = {0};
    float block[BLOCK];
    if (!has_room(rows, samples)) return 0;
    const Arithmetic callers = in_plain_arithmetic();
    for (int64_t at = 0; at < samples; at += BLOCK) {
        int64_t norms = samples - at < BLOCK ? samples - at : BLOCK;
        Norms task = {.elements = &elements, .first = at, .size = size, .norms = block};
        if (norms > 1 && is_shared(rows, &elements)) share(rows, take_norms, &task.shared, norms);
        else l2_norms(&elements, at * size, size, norms, block, &task.hashes);
        row.hashes += task.hashes;
        feed(rows, block, norms, divisor, &row);
    }
    end_row(rows, samples, &row.sampled, &row, fingerprint_of(row.hashes, OF_ALL));
    put_back(&callers);
    return 1;
}

/* `Left` in on_gpu.h: what a GPU has left of a tensor in one of several pieces of memory, which are on the host now. */
typedef struct {
    int64_t kind, memory, at, count, length, parts;
    double divisor;
} Left;

enum { VALUES, SQUARES };

/* The row of values, of which how many are NaN, infinite and minus infinite, the sum of the hashes, and a sample were left. */
static int add_values_left(Rows *rows, const Left *left, const char *from) {
    uint64_t totals[4];
    memcpy(totals, from, sizeof totals);
    if (!torchgraph_add_sample(rows, from + sizeof totals, FLOAT32, left->length, left->divisor, left->count,
                               (int64_t)totals[0], (int64_t)totals[1], (int64_t)totals[2]))
        return 0;
    rows->fingerprints[rows->rows - 1] = fingerprint_of(totals[3], OF_ALL);
    return 1;
}

/* The row of norms, of which sums of squares were left, `[length, parts]`. */
static int add_squares_left(Rows *rows, const Left *left, const char *from) {
    float *norms = malloc((size_t)left->length * sizeof *norms);
    if (norms == NULL) return 0;
    for (int64_t at = 0; at < left->length; at++) {
        double sum = 0, part;
        for (int64_t i = 0; i < left->parts; i++, from += sizeof part) {
            memcpy(&part, from, sizeof part);
            sum += part;
        }
        norms[at] = from_double(sqrt(sum) / left->divisor);
    }
    int is_added = torchgraph_add_row(rows, (const char *)norms, FLOAT32, left->length, 0, 1, left->length, 1.0);
    free(norms);
    return is_added;
}

/* Adds the rows of what was left, from the `at`-th on down to the first one. Returns which one is next: of another kind, or one for
 * which there is no room; -1 if none is. */
int64_t torchgraph_add_left(Rows *rows, const Left *all, int64_t at, const char *const *memories) {
    for (; at >= 0; at--) {
        const Left *left = &all[at];
        if (left->kind > SQUARES) break;
        const char *from = memories[left->memory] + left->at;
        if (!(left->kind == VALUES ? add_values_left(rows, left, from) : add_squares_left(rows, left, from))) break;
    }
    return at;
}

/* The fingerprint of `count` elements of `size` bytes. */
uint64_t torchgraph_fingerprint(const char *data, int64_t size, int64_t count) {
    return fingerprint_of(sum_of_hashes(data, size, count), OF_ALL);
}

/* Tensors that are kept: their chosen samples, and statistics of each neuron over the whole batch. */

/* Neurons that are added up beside each other: so many that a processor sees what of each sample it will read. */
enum { NEURONS = 1024 };

/* A tensor of [outer, batch, inner] elements, in order. */
typedef struct {
    const char *data;
    int64_t type, outer, batch, inner;
} Samples;

/* Sums for some neurons next to each other. The first sample is taken out, for the reason given at Moments. */
typedef struct {
    double shift[NEURONS], sum[NEURONS], squares[NEURONS], largest[NEURONS];
} Neurons;

/* The same for elements that a float holds. `largest` has the bits of magnitudes: in their order NaN is above all. */
typedef struct {
    float shift[NEURONS];
    uint32_t largest[NEURONS];
    double sum[NEURONS], squares[NEURONS];
} FloatNeurons;

/* Samples that are added at a time, so that the sums are read and written once for all of them. */
enum { AT_ONCE = 8 };

/* Bits of the least and the largest magnitude, 2^-38 and 2^60, for which `add_eight` is exact enough: the squares of
 * differences between numbers whose largest is in between are neither infinite nor, where they count, too small for a float. */
#define LEAST_AT_ONCE 0x2c800000u
#define LARGEST_AT_ONCE 0x5d800000u

/* No difference from a shift up to this overflows. */
#define LARGEST_SHIFT 1e30f

#define WIDEN(TYPE, TO, CONVERT)                                                         \
    do {                                                                                 \
        const TYPE *from = (const TYPE *)samples->data + start;                          \
        for (int64_t i = 0; i < length; i++) row[i] = (TO)CONVERT(from[i]);              \
    } while (0)

static int is_wide(int64_t type) { return type == FLOAT64 || type == INT32 || type == INT64; }

static void widen(const Samples *samples, int64_t start, int64_t length, double *row) {
    switch (samples->type) {
    case FLOAT64: WIDEN(double, double, +); break;
    case INT32: WIDEN(int32_t, double, +); break;
    default: WIDEN(int64_t, double, +); break;
    }
}

/* The elements from number `start`, where they are or, if they are not floats, in `row`. */
static const float *as_floats(const Samples *samples, int64_t start, int64_t length, float *row) {
    switch (samples->type) {
    case FLOAT32: return (const float *)samples->data + start;
    case FLOAT16: WIDEN(uint16_t, float, from_half); break;
    case BFLOAT16: WIDEN(uint16_t, float, from_bfloat16); break;
    case INT8: WIDEN(int8_t, float, +); break;
    case INT16: WIDEN(int16_t, float, +); break;
    default: WIDEN(uint8_t, float, +); break;
    }
    return row;
}

static void begin_neurons(Neurons *neurons, const double *row, int64_t length) {
    for (int64_t i = 0; i < length; i++) {
        neurons->shift[i] = fabs(row[i]) <= LARGEST_DOUBLE ? row[i] : 0; /* or the mean of an infinity would be NaN */
        neurons->sum[i] = neurons->squares[i] = neurons->largest[i] = 0;
    }
}

static void begin_floats(FloatNeurons *neurons, const float *row, int64_t length) {
    for (int64_t i = 0; i < length; i++) {
        neurons->shift[i] = fabsf(row[i]) <= LARGEST_SHIFT ? row[i] : 0;
        neurons->sum[i] = neurons->squares[i] = 0;
        neurons->largest[i] = 0;
    }
}

static void add_sample(Neurons *restrict neurons, const double *restrict row, int64_t length) {
    for (int64_t i = 0; i < length; i++) {
        const double value = row[i], distance = value - neurons->shift[i], magnitude = fabs(value);
        const double known = neurons->largest[i];
        neurons->sum[i] += distance;
        neurons->squares[i] += distance * distance;
        neurons->largest[i] = known > magnitude || known != known ? known : magnitude; /* NaN stays */
    }
}

static inline uint32_t magnitude_bits(const float *row, int64_t at) { return ((const uint32_t *)row)[at] & 0x7fffffff; }

static inline uint32_t larger(uint32_t one, uint32_t other) { return one > other ? one : other; }

static inline float square(float value) { return value * value; }

static void add_floats(FloatNeurons *restrict neurons, const float *restrict row, int64_t length) {
    for (int64_t i = 0; i < length; i++) {
        const double distance = row[i] - neurons->shift[i];
        neurons->sum[i] += distance;
        neurons->squares[i] += distance * distance;
        neurons->largest[i] = larger(neurons->largest[i], magnitude_bits(row, i));
    }
}

/* Sums and differences of two, of two such sums, and of two of those: the squares of the differences are the spread within
 * the eight, in single precision since nothing of them cancels; their sum is a distance from the shift, as that of one sample. */
static void add_eight(FloatNeurons *restrict neurons, const float *const rows[AT_ONCE], int64_t length) {
    const float *restrict row0 = rows[0], *restrict row1 = rows[1], *restrict row2 = rows[2], *restrict row3 = rows[3];
    const float *restrict row4 = rows[4], *restrict row5 = rows[5], *restrict row6 = rows[6], *restrict row7 = rows[7];
#pragma clang loop vectorize_width(8) /* else as many as there are doubles in a vector */
    for (int64_t i = 0; i < length; i++) {
        const float shift = neurons->shift[i];
        const float a = row0[i] - shift, b = row1[i] - shift, c = row2[i] - shift, d = row3[i] - shift;
        const float e = row4[i] - shift, f = row5[i] - shift, g = row6[i] - shift, h = row7[i] - shift;
        const float of_pairs = (square(a - b) + square(c - d)) + (square(e - f) + square(g - h));
        const float ab = a + b, cd = c + d, ef = e + f, gh = g + h;
        const float of_fours = square(ab - cd) + square(ef - gh);
        const float first = ab + cd, second = ef + gh;
        const float within = 0.5f * of_pairs + (0.25f * of_fours + 0.125f * square(first - second));
        const double sum = first + second;
        neurons->sum[i] += sum;
        neurons->squares[i] += within + 0.125 * (sum * sum);
        const uint32_t of_first = larger(larger(magnitude_bits(row0, i), magnitude_bits(row1, i)),
                                         larger(magnitude_bits(row2, i), magnitude_bits(row3, i)));
        const uint32_t of_second = larger(larger(magnitude_bits(row4, i), magnitude_bits(row5, i)),
                                          larger(magnitude_bits(row6, i), magnitude_bits(row7, i)));
        neurons->largest[i] = larger(neurons->largest[i], larger(of_first, of_second));
    }
}

/* Adds all samples of `length` neurons up, the first of which is element number `start`, `at_once` samples at a time. */
static void add_batch(FloatNeurons *neurons, const Samples *samples, int64_t start, int64_t length, int64_t at_once) {
    float memory[AT_ONCE][NEURONS];
    const float *rows[AT_ONCE];
    for (int64_t b = 0; b < samples->batch; b += at_once) {
        const int64_t left = samples->batch - b, count = left < at_once ? left : at_once;
        for (int64_t i = 0; i < count; i++)
            rows[i] = as_floats(samples, start + (b + i) * samples->inner, length, memory[i]);
        if (b == 0) begin_floats(neurons, rows[0], length);
        if (count == AT_ONCE) add_eight(neurons, rows, length);
        else for (int64_t i = 0; i < count; i++) add_floats(neurons, rows[i], length);
    }
}

/* Whether squares of single precision were enough for `length` of these. Zeros have none. */
static int is_in_range(const FloatNeurons *neurons, int64_t first, int64_t length) {
    int is_out = 0;
    for (int64_t i = first; i < first + length; i++) {
        const uint32_t largest = neurons->largest[i];
        is_out |= (largest != 0) & (largest - LEAST_AT_ONCE > LARGEST_AT_ONCE - LEAST_AT_ONCE);
    }
    return !is_out;
}

static double deviation(double sum, double squares, int64_t batch) {
    const double mean = sum / (double)batch, variance = squares / (double)batch - mean * mean;
    return sqrt(variance < 0 ? 0 : variance);
}

/* Statistics of `length` neurons from number `at` of those with the same `outer` index. Returns whether all are finite. */
static int measure_wide(const Samples *samples, int64_t outer, int64_t at, int64_t length, double *statistics) {
    const int64_t batch = samples->batch, all = samples->outer * samples->inner, to = outer * samples->inner + at;
    Neurons neurons;
    double row[NEURONS];
    for (int64_t b = 0; b < batch; b++) {
        widen(samples, (outer * batch + b) * samples->inner + at, length, row);
        if (b == 0) begin_neurons(&neurons, row, length);
        add_sample(&neurons, row, length);
    }
    int are_finite = 1;
    for (int64_t i = 0; i < length; i++) {
        statistics[to + i] = neurons.shift[i] + neurons.sum[i] / (double)batch;
        statistics[all + to + i] = deviation(neurons.sum[i], neurons.squares[i], batch);
        statistics[2 * all + to + i] = neurons.largest[i];
        are_finite &= neurons.largest[i] <= LARGEST_DOUBLE;
    }
    return are_finite;
}

/* The same, of neurons that are added up already, from number `first` of them on, which is number `at` of those. */
static int put_floats(const FloatNeurons *neurons, const Samples *samples, int64_t to, int64_t first, int64_t length,
                      float *statistics) {
    const int64_t batch = samples->batch, all = samples->outer * samples->inner;
    float *means = statistics + to, *deviations = means + all;
    uint32_t *magnitudes = (uint32_t *)(deviations + all), largest = 0;
    for (int64_t i = 0; i < length; i++) {
        const int64_t one = first + i;
        means[i] = (float)(neurons->shift[one] + neurons->sum[one] / (double)batch);
        deviations[i] = (float)deviation(neurons->sum[one], neurons->squares[one], batch);
        magnitudes[i] = neurons->largest[one];
        largest = larger(largest, neurons->largest[one]);
    }
    return largest < INFINITE;
}

/* Neurons of which one is out of range are added up again, one sample at a time: so many beside each other. */
enum { AGAIN = 256 };

static int measure_floats(const Samples *samples, int64_t outer, int64_t at, int64_t length, float *statistics) {
    const int64_t start = outer * samples->batch * samples->inner + at;
    int are_finite = 1;
    FloatNeurons neurons, again;
    add_batch(&neurons, samples, start, length, AT_ONCE);
    for (int64_t first = 0; first < length; first += AGAIN) {
        const int64_t left = length - first, count = left < AGAIN ? left : AGAIN, to = outer * samples->inner + at + first;
        const int is_again = samples->batch >= AT_ONCE && !is_in_range(&neurons, first, count);
        if (is_again) add_batch(&again, samples, start + first, count, 1);
        are_finite &= put_floats(is_again ? &again : &neurons, samples, to, is_again ? 0 : first, count, statistics);
    }
    return are_finite;
}

/* The mean, the standard deviation and the largest magnitude of each neuron over a batch that is not empty, [3, outer *
 * inner], doubles of wide types and floats of others; and the elements of `kept` samples, whose numbers are in `chosen`,
 * [outer, kept, inner]. Returns whether all elements are finite. */
int torchgraph_keep_samples(const char *data, int64_t type, int64_t size, int64_t outer, int64_t batch, int64_t inner,
                     const int64_t *chosen, int64_t kept, char *values, void *statistics) {
    const Samples samples = {data, type, outer, batch, inner};
    const Arithmetic callers = in_plain_arithmetic();
    int are_finite = 1;
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t at = 0; at < inner; at += NEURONS) {
            const int64_t length = inner - at < NEURONS ? inner - at : NEURONS;
            are_finite &= is_wide(type) ? measure_wide(&samples, o, at, length, statistics)
                                        : measure_floats(&samples, o, at, length, statistics);
        }
        for (int64_t i = 0; inner > 0 && i < kept; i++) /* an empty tensor may have no address */
            memcpy(values + (o * kept + i) * inner * size, data + (o * batch + chosen[i]) * inner * size,
                   (size_t)(inner * size));
    }
    put_back(&callers);
    return are_finite;
}
