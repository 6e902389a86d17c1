/* Makes the body of a frame, as `body.encode_body` and `packing.pack` do, which are the reference, and checks one, as
 * `body.sound_in_python` does. It needs nothing of Python, so the training's thread runs Python meanwhile.
 */

#include "../crc32.h"

#include <string.h>

enum { WORD = 4, TAIL_WORDS = 3, LAST_BUCKET = 1019 };

/* Writes a token, seven bits to a byte. Returns where the next one goes. */
static uint8_t *put(uint8_t *to, uint32_t token) {
    for (; token >= 0x80; token >>= 7) *to++ = (uint8_t)(token | 0x80);
    *to++ = (uint8_t)token;
    return to;
}

/* Writes a histogram with these entries. Returns where the next one goes. */
static uint8_t *pack(uint8_t *to, const int16_t *buckets, const uint32_t *counts, uint32_t entries) {
    int32_t expected = -LAST_BUCKET;
    for (uint32_t at = 0; at < entries; at++) {
        if (buckets[at] > expected) {
            *to++ = 0;
            to = put(to, (uint32_t)(buckets[at] - expected));
        }
        to = put(to, counts[at]);
        expected = buckets[at] + 1;
    }
    return to;
}

/* `statistics` are `[rows, columns]`; `fingerprints` are `[rows]`, or NULL. The histograms are as in Python's `Histograms`.
 * `body` has room for the table and nine bytes an entry. `head_check` is as for `envelope.row_check`. Returns the size of the body; -1 if the offsets descend. */
int64_t torchgraph_encode_body(int64_t rows, int64_t columns, const float *statistics, const uint64_t *fingerprints,
                               const uint32_t *offsets, const int16_t *buckets, const uint32_t *counts, uint8_t *body,
                               uint32_t head_check) {
    Tables tables;
    fill(tables);
    const int64_t known = columns * WORD, with_fingerprint = known + (fingerprints == NULL ? 0 : 2 * WORD);
    const int64_t row_size = with_fingerprint + TAIL_WORDS * WORD;
    uint8_t *const packed = body + rows * row_size, *to = packed;
    for (int64_t row = 0; row < rows; row++) {
        if (offsets[row] > offsets[row + 1]) return -1;
        uint8_t *const words = body + row * row_size, *const begun = to;
        to = pack(to, buckets + offsets[row], counts + offsets[row], offsets[row + 1] - offsets[row]);
        const uint32_t place[2] = {(uint32_t)(begun - packed), (uint32_t)(to - begun)};
        memcpy(words, statistics + row * columns, (size_t)known);
        if (fingerprints != NULL) memcpy(words + known, fingerprints + row, 2 * WORD);
        memcpy(words + with_fingerprint, place, sizeof place);
        const uint32_t content = checked(tables, checked(tables, 0, words, row_size - WORD), begun, to - begun);
        const uint32_t check = content ^ (head_check + (uint32_t)row);
        memcpy(words + row_size - WORD, &check, sizeof check);
    }
    return to - body;
}

/* Writes to `sound` whether each of `rows` rows of the body has the right check: 1 or 0. The body has `size` bytes, among
 * them the whole table, and a histogram at most `longest`. Checks depend on `head_check` if `is_bound`. */
void torchgraph_check_rows(int64_t rows, int64_t row_size, const uint8_t *body, int64_t size, int64_t longest,
                           int64_t is_bound, uint32_t head_check, uint8_t *sound) {
    Tables tables;
    fill(tables);
    const int64_t packed = rows * row_size;
    for (int64_t row = 0; row < rows; row++) {
        const uint8_t *const words = body + row * row_size;
        uint32_t tail[TAIL_WORDS];
        memcpy(tail, words + row_size - (int64_t)sizeof tail, sizeof tail);
        const int64_t begin = packed + tail[0], length = tail[1];
        sound[row] = 0;
        if (length > longest || begin + length > size) continue;
        const uint32_t check = checked(tables, 0, words, row_size - WORD);
        const uint32_t bound = is_bound ? head_check + (uint32_t)row : 0;
        sound[row] = (checked(tables, check, body + begin, length) ^ bound) == tail[2];
    }
}
