/* The hash of one element's bits, of which `rows.c` on the host and `gpu/kernels.c` on a GPU make fingerprints. */

#ifndef TORCHGRAPH_HASHES
#define TORCHGRAPH_HASHES

#include <stdint.h>

/* The product of the halves of a product is far from linear: equal and opposite changes of two elements, also of small integers,
 * do not cancel. */
#define HASH_OFFSET 0x85ebca77u
#define HASH_FACTOR 0x9e3779b1u
#define LOW_HALF 0xffffffffu

static inline uint64_t hash_shifted(uint64_t bits) {
    const uint64_t product = bits * HASH_FACTOR;
    return ((product & LOW_HALF) * (product >> 32)) ^ product;
}

static inline uint64_t hash32(uint32_t bits) { return hash_shifted(bits ^ HASH_OFFSET); }

static inline uint64_t hash64(uint64_t bits) {
    bits = (bits ^ (bits >> 32)) * 0xd6e8feb86659fd93u;
    bits = (bits ^ (bits >> 32)) * 0xd6e8feb86659fd93u;
    return bits ^ (bits >> 32);
}

#endif
