/* Makes the table and the blocks of kept tensors, as `blocks.encode_in_python` does, which is the reference. It needs nothing
 * of Python, so the training's thread runs Python meanwhile.
 */

#include "../crc32.h"

#include <string.h>

enum { WORDS = 3 };

/* As in `blocks.py`. */
enum { FEW_BYTES = 512, LOOKED_AT = 1 << 10, RUNS = 16 };

static int64_t count_zeros(const uint8_t *data, int64_t size) {
    int64_t zeros = 0;
    for (int64_t at = 0; at < size; at++) zeros += data[at] == 0;
    return zeros;
}

/* Whether a quarter of the bytes are zero, as far as a sample of them shows. */
static int has_zeros(const uint8_t *data, int64_t size) {
    if (size < FEW_BYTES) return 0;
    if (size <= LOOKED_AT) return 4 * count_zeros(data, size) >= size;
    int64_t zeros = 0;
    for (int run = 0; run < RUNS; run++) zeros += count_zeros(data + run * (size / RUNS), LOOKED_AT / RUNS);
    return 4 * zeros >= LOOKED_AT;
}

/* Notes which blocks are to be compressed. */
void torchgraph_find_zeros(int64_t blocks, const uint8_t *const *addresses, const int64_t *sizes, uint8_t *are_found) {
    for (int64_t at = 0; at < blocks; at++) are_found[at] = (uint8_t)has_zeros(addresses[at], sizes[at]);
}

/* Writes the rows of the table, of which `numbers` has the numbers of their blocks, or -1; and behind it the blocks. `body` has
 * room for both, and `table` for a row of each block. */
void torchgraph_encode_blocks(int64_t rows, const int64_t *numbers, int64_t blocks, const uint8_t *const *addresses,
                              const int64_t *sizes, uint32_t *table, uint8_t *body) {
    Tables tables;
    fill(tables);
    uint8_t *const first = body + rows * WORDS * (int64_t)sizeof *table, *to = first;
    for (int64_t at = 0; at < blocks; at++, table += WORDS) {
        table[0] = (uint32_t)(to - first), table[1] = (uint32_t)sizes[at];
        const uint32_t begun = checked(tables, 0, (const uint8_t *)table, 2 * (int64_t)sizeof *table);
        table[2] = checked(tables, begun, addresses[at], sizes[at]);
        if (sizes[at] > 0) memcpy(to, addresses[at], (size_t)sizes[at]);
        to += sizes[at];
    }
    table -= blocks * WORDS;
    const size_t row_size = WORDS * sizeof *table;
    for (int64_t row = 0; row < rows; row++, body += row_size) {
        if (numbers[row] < 0) memset(body, 0, row_size);
        else memcpy(body, table + numbers[row] * WORDS, row_size);
    }
}
