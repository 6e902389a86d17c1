/* The check of zip and PNG files (CRC-32, polynomial 0xEDB88320), as `zlib.crc32`. */

#include <stdint.h>

enum { CHECKED_AT_ONCE = 16 };

/* For so many bytes at once, since the check of a byte followed by others is the sum of their checks. */
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

/* The check of `size` bytes that follow others with the check `check`, which is 0 for none. */
static uint32_t checked(Tables tables, uint32_t check, const uint8_t *data, int64_t size) {
    check = ~check;
    for (; size >= CHECKED_AT_ONCE; data += CHECKED_AT_ONCE, size -= CHECKED_AT_ONCE) {
        uint32_t next = 0;
        for (int at = 0; at < 4; at++) next ^= tables[CHECKED_AT_ONCE - 1 - at][data[at] ^ (check >> 8 * at & 0xFF)];
        for (int at = 4; at < CHECKED_AT_ONCE; at++) next ^= tables[CHECKED_AT_ONCE - 1 - at][data[at]];
        check = next;
    }
    for (; size > 0; data++, size--) check = check >> 8 ^ tables[0][(check ^ *data) & 0xFF];
    return ~check;
}
