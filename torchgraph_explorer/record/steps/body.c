/* Makes the body of a frame, as `body.encode_body` and `packing.pack` do, which are the reference. It needs nothing of
 * Python, so the training's thread runs Python meanwhile.
 */

#include <stdint.h>
#include <string.h>

enum { WORD = 4, TAIL_WORDS = 3, LAST_BUCKET = 1019, CHECKED_AT_ONCE = 8 };

/* Tables of the check of zip and PNG files (CRC-32, polynomial 0xEDB88320): for eight bytes at once, since the check of
 * a byte followed by others is the sum of their checks. */
typedef uint32_t Tables[CHECKED_AT_ONCE][256];

static void fill(Tables tables) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t check = byte;
        for (int bit = 0; bit < 8; bit++) check = check & 1 ? check >> 1 ^ 0xEDB88320u : check >> 1;
        tables[0][byte] = check;
    }
    for (int ahead = 1; ahead < CHECKED_AT_ONCE; ahead++)
        for (int byte = 0; byte < 256; byte++) {
            const uint32_t before = tables[ahead - 1][byte];
            tables[ahead][byte] = before >> 8 ^ tables[0][before & 0xFF];
        }
}

static uint32_t checked(Tables tables, uint32_t check, const uint8_t *data, int64_t size) {
    check = ~check;
    for (; size >= CHECKED_AT_ONCE; data += CHECKED_AT_ONCE, size -= CHECKED_AT_ONCE) {
        uint32_t next = 0;
        for (int at = 0; at < WORD; at++) next ^= tables[7 - at][data[at] ^ (check >> 8 * at & 0xFF)];
        for (int at = WORD; at < CHECKED_AT_ONCE; at++) next ^= tables[7 - at][data[at]];
        check = next;
    }
    for (; size > 0; data++, size--) check = check >> 8 ^ tables[0][(check ^ *data) & 0xFF];
    return ~check;
}

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
 * `body` has room for the table and nine bytes an entry. Returns the size of the body; -1 if the offsets descend. */
int64_t torchgraph_encode_body(int64_t rows, int64_t columns, const float *statistics, const uint64_t *fingerprints,
                               const uint32_t *offsets, const int16_t *buckets, const uint32_t *counts, uint8_t *body) {
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
        const uint32_t check = checked(tables, checked(tables, 0, words, row_size - WORD), begun, to - begun);
        memcpy(words + row_size - WORD, &check, sizeof check);
    }
    return to - body;
}
