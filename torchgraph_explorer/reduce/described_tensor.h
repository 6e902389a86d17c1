/* What an ordinary tensor is and where, by one function of torch. */

#ifndef TORCHGRAPH_DESCRIBED_TENSOR
#define TORCHGRAPH_DESCRIBED_TENSOR

#include "../python_functions.h"

/* What Python gives of tensors, in the order of `row_buffer.PARTS_OF_TENSORS`: two types, and methods. What a file needs besides
 * stands behind it. */
enum { TENSOR, PARAMETER, IS_NEG, STORAGE_OFFSET, UNTYPED_STORAGE, NBYTES, PARTS_OF_TENSORS };

/* `DLTensor` and the table of functions of DLPack 1, by which a tensor says in one call what it is and where. */
typedef struct {
    char *data;
    int32_t device, device_number, dimensions;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t offset;
} Described;

typedef struct {
    uint32_t major, minor;
    void *previous, *others[3];
    int (*describe)(PyObject *tensor, Described *found);
    int (*stream)(int32_t device, int32_t device_number, void **found);
} Exchange;

enum { ON_HOST = 1, ON_GPU = 2 };

/* The tensor that `tensors.c` has described last, and where its elements are: then `kept.c` need not ask whether they are all
 * there. Without a tensor, it was none that both take, or another thread may have run since. */
typedef struct {
    PyObject *tensor;
    const char *data;
    uint64_t offset;
    int64_t count;
} Measured;

/* Elements above which another thread may run Python meanwhile. Letting one costs more than reading fewer. */
enum { MANY = 1 << 15 };

static inline int is_tensor(PyObject *const *part, PyObject *object) {
    PyObject *type = type_of(object);
    return type == NULL ? -1 : type == part[TENSOR] || type == part[PARAMETER];
}

/* Whether all elements are in memory: the storage may have been freed or cut. -1 with an exception. */
static inline int is_in_memory(PyObject *const *part, PyObject *tensor, int64_t count, int64_t size) {
    int64_t offset = number(PyObject_CallFunctionObjArgs(part[STORAGE_OFFSET], tensor, NULL));
    if (offset < 0) return -1;
    PyObject *storage = PyObject_CallFunctionObjArgs(part[UNTYPED_STORAGE], tensor, NULL);
    if (storage == NULL) return -1;
    int64_t bytes = number(PyObject_CallFunctionObjArgs(part[NBYTES], storage, NULL));
    Py_DecRef(storage);
    return bytes < 0 ? -1 : (offset + count) * size <= bytes;
}

/* The type of described elements as in `row_buffer.TYPES`; -1 if it is another one. */
static inline int64_t described_type(const Described *tensor) {
    enum { INT, UINT, FLOAT, BFLOAT = 4, BOOL = 6 };
    if (tensor->lanes != 1) return -1;
    switch (tensor->code) {
    case FLOAT: return tensor->bits == 32 ? 0 : tensor->bits == 64 ? 1 : tensor->bits == 16 ? 2 : -1;
    case BFLOAT: return tensor->bits == 16 ? 3 : -1;
    case INT: return tensor->bits == 8 ? 4 : tensor->bits == 16 ? 5 : tensor->bits == 32 ? 6 : tensor->bits == 64 ? 7 : -1;
    case UINT:
    case BOOL: return tensor->bits == 8 ? 8 : -1;
    default: return -1;
    }
}

/* How many elements a described tensor has, if they are in order in memory; else -1. */
static inline int64_t count_in_order(const Described *tensor) {
    int64_t count = 1;
    for (int at = tensor->dimensions - 1; at >= 0; at--) {
        int64_t size = tensor->shape[at];
        if (size == 0) return 0;
        if (size != 1 && tensor->strides[at] != count) return -1;
        count *= size;
    }
    return count;
}

/* How many elements a described tensor has, if they are next to each other in memory, in whatever order; else -1. */
static inline int64_t count_together(const Described *tensor) {
    int64_t count = 1;
    for (int found = 0, wanted = 0; wanted < tensor->dimensions; wanted++) {
        for (int at = found = 0; at < tensor->dimensions; at++) {
            if (tensor->shape[at] == 0) return 0;
            if (tensor->shape[at] == 1 || tensor->strides[at] != count) continue;
            count *= tensor->shape[at];
            found = 1;
            break;
        }
        if (!found) break;
    }
    int64_t all = 1;
    for (int at = 0; at < tensor->dimensions; at++) all *= tensor->shape[at];
    return all == count ? count : -1;
}

/* Describes a tensor of an ordinary type that is not empty, in the memory of the host or of an Nvidia GPU, where its elements are
 * next to each other; `*is_in_order` says whether they are in order there. Returns 1; 0 for any other one; -1 with an exception. */
static inline int describe_anywhere(const Exchange *exchange, PyObject *const *part, PyObject *tensor, Described *found, int64_t *count,
                                    int *is_in_order) {
    if (exchange->describe(tensor, found) != 0) { /* sparse, nested, quantized or the like */
        PyErr_Clear();
        return 0;
    }
    *count = count_in_order(found);
    *is_in_order = *count >= 0;
    if (!*is_in_order) *count = count_together(found);
    if (!(found->device == ON_GPU || found->device == ON_HOST) || described_type(found) < 0 || *count <= 0 || found->data == NULL) return 0;
    int is_negated = truth(PyObject_CallFunctionObjArgs(part[IS_NEG], tensor, NULL));
    if (is_negated != 0) return is_negated < 0 ? -1 : 0;
    return is_in_memory(part, tensor, *count, found->bits / 8);
}

/* The same, of tensors in host memory and in order there alone. */
static inline int describe(const Exchange *exchange, PyObject *const *part, PyObject *tensor, Described *found, int64_t *count) {
    int is_in_order, is_plain = describe_anywhere(exchange, part, tensor, found, count, &is_in_order);
    return is_plain > 0 && !(is_in_order && found->device == ON_HOST) ? 0 : is_plain;
}

#endif
