/* Makes the table and the blocks of kept tensors, as `blocks.encode_in_python` does, which is the reference. It needs nothing
 * of Python, so the training's thread runs Python meanwhile.
 */

#include "../crc32.h"

#include <string.h>

enum { WORDS = 3 };

/* As in `blocks.py`. */
enum { FEW_BYTES = 64, LOOKED_AT = 1 << 10, RUNS = 16, LONGEST_WORD = 8, LEAST_SAVED = 8 };

/* For words of one size: how many of them are not zero; and these, written at `to`, with a bit for each word in `bits`. A word is
 * written before it is known to be left out, so up to one more is written than is kept. */
#define DEFINE(word_type)                                                                                               \
    static int64_t kept_##word_type(const uint8_t *data, int64_t count) {                                               \
        int64_t kept = 0;                                                                                               \
        for (int64_t at = 0; at < count; at++) {                                                                        \
            word_type word;                                                                                             \
            memcpy(&word, data + at * (int64_t)sizeof word, sizeof word);                                               \
            kept += word != 0;                                                                                          \
        }                                                                                                               \
        return kept;                                                                                                    \
    }                                                                                                                   \
                                                                                                                        \
    static uint8_t *pack_##word_type(const uint8_t *data, int64_t count, uint8_t *bits, uint8_t *to) {                  \
        for (int64_t at = 0; at < count; bits++) {                                                                      \
            unsigned byte = 0;                                                                                          \
            for (int bit = 0; bit < 8 && at < count; bit++, at++) {                                                     \
                word_type word;                                                                                         \
                memcpy(&word, data + at * (int64_t)sizeof word, sizeof word);                                           \
                memcpy(to, &word, sizeof word);                                                                         \
                const unsigned is_kept = word != 0;                                                                     \
                byte |= is_kept << bit;                                                                                 \
                to += is_kept * sizeof word;                                                                            \
            }                                                                                                           \
            *bits = (uint8_t)byte;                                                                                      \
        }                                                                                                               \
        return to;                                                                                                      \
    }

DEFINE(uint8_t)
DEFINE(uint16_t)
DEFINE(uint32_t)
DEFINE(uint64_t)

static int64_t count_kept(int word, const uint8_t *data, int64_t count) {
    switch (word) {
    case 8: return kept_uint64_t(data, count);
    case 4: return kept_uint32_t(data, count);
    case 2: return kept_uint16_t(data, count);
    default: return kept_uint8_t(data, count);
    }
}

/* The size of the words with which `data` is packed best, as far as a sample of it shows; 0 if it is not packed. */
static int word_size(const uint8_t *data, int64_t size) {
    uint8_t sample[LOOKED_AT];
    if (size < FEW_BYTES) return 0;
    if (size > LOOKED_AT) {
        const int64_t spacing = size / RUNS / LONGEST_WORD * LONGEST_WORD, run = LOOKED_AT / RUNS;
        for (int64_t at = 0; at < RUNS; at++) memcpy(sample + at * run, data + at * spacing, (size_t)run);
        data = sample, size = LOOKED_AT;
    }
    int best = 0;
    int64_t saved = 8 * size / LEAST_SAVED; /* bits */
    for (int word = LONGEST_WORD; word > 0; word /= 2) {
        const int64_t count = size / word, bits = 8 * word * (count - count_kept(word, data, count)) - count;
        if (bits > saved) best = word, saved = bits;
    }
    return best;
}

/* Notes of each block the size of the words with which it is packed, 0 for none, and the size it has then. */
void torchgraph_plan_blocks(int64_t blocks, const uint8_t *const *addresses, const int64_t *sizes, int64_t *packed_sizes,
                            uint8_t *words) {
    for (int64_t at = 0; at < blocks; at++) {
        const int64_t size = sizes[at];
        const int word = word_size(addresses[at], size);
        packed_sizes[at] = size, words[at] = 0;
        if (word == 0) continue;
        const int64_t count = size / word;
        const int64_t packed = 1 + (count + 7) / 8 + count_kept(word, addresses[at], count) * word + size % word;
        if (packed < size) packed_sizes[at] = packed, words[at] = (uint8_t)word;
    }
}

static void pack(int word, const uint8_t *data, int64_t size, uint8_t *to) {
    const int64_t count = size / word;
    *to++ = (uint8_t)word;
    uint8_t *const bits = to;
    to += (count + 7) / 8;
    switch (word) {
    case 8: to = pack_uint64_t(data, count, bits, to); break;
    case 4: to = pack_uint32_t(data, count, bits, to); break;
    case 2: to = pack_uint16_t(data, count, bits, to); break;
    default: to = pack_uint8_t(data, count, bits, to);
    }
    memcpy(to, data + count * word, (size_t)(size % word));
}

/* Writes the rows of the table, of which `numbers` has the numbers of their blocks, or -1; and behind it the blocks. `body` has
 * room for both and for one word more, and `table` for a row of each block. `head_check` is as for `envelope.row_check`. */
void torchgraph_encode_blocks(int64_t rows, const int64_t *numbers, int64_t blocks, const uint8_t *const *addresses,
                              const int64_t *sizes, const int64_t *packed_sizes, const uint8_t *words, uint32_t *table,
                              uint8_t *body, uint32_t head_check) {
    Tables tables;
    fill(tables);
    uint8_t *const first = body + rows * WORDS * (int64_t)sizeof *table, *to = first;
    for (int64_t at = 0; at < blocks; at++, table += WORDS) {
        table[0] = (uint32_t)(to - first), table[1] = (uint32_t)packed_sizes[at];
        if (words[at] > 0) pack(words[at], addresses[at], sizes[at], to);
        else if (sizes[at] > 0) memcpy(to, addresses[at], (size_t)sizes[at]);
        const uint32_t begun = checked(tables, 0, (const uint8_t *)table, 2 * (int64_t)sizeof *table);
        table[2] = checked(tables, begun, to, packed_sizes[at]);
        to += packed_sizes[at];
    }
    table -= blocks * WORDS;
    const size_t row_size = WORDS * sizeof *table;
    for (int64_t row = 0; row < rows; row++, body += row_size) {
        if (numbers[row] < 0) {
            memset(body, 0, row_size);
            continue;
        }
        const uint32_t *const words = table + numbers[row] * WORDS, check = words[2] ^ (head_check + (uint32_t)row);
        memcpy(body, words, row_size - sizeof check);
        memcpy(body + row_size - sizeof check, &check, sizeof check);
    }
}
