/* Whether all elements of an ordinary tensor in host memory are finite: in one pass, and without a step of Python. */

#include "described_tensor.h"

static const Exchange *exchange;
static PyObject *part[PARTS_OF_TENSORS];

/* Whether an element has all bits of the exponent set, and is not `allowed`. */
#define DEFINE_SEARCH(NAME, UNSIGNED, EXPONENT)                                                                        \
    static int NAME(const UNSIGNED *elements, int64_t count, UNSIGNED allowed) {                                       \
        enum { PIECE = 4096 };                                                                                         \
        for (int64_t start = 0; start < count; start += PIECE) {                                                       \
            int64_t end = start + PIECE < count ? start + PIECE : count;                                               \
            UNSIGNED found = 0;                                                                                        \
            for (int64_t at = start; at < end; at++) {                                                                 \
                UNSIGNED one = elements[at];                                                                           \
                found |= (UNSIGNED)(((one & (EXPONENT)) == (EXPONENT)) & (one != allowed));                            \
            }                                                                                                          \
            if (found) return 1;                                                                                       \
        }                                                                                                              \
        return 0;                                                                                                      \
    }

DEFINE_SEARCH(has_in_single, uint32_t, 0x7f800000u)
DEFINE_SEARCH(has_in_double, uint64_t, 0x7ff0000000000000u)
DEFINE_SEARCH(has_in_half, uint16_t, 0x7c00u)
DEFINE_SEARCH(has_in_bfloat, uint16_t, 0x7f80u)

/* `allowed` of zero allows none: it is a finite number. */
static int has_nonfinite(const void *data, int64_t type, int64_t count, int may_mask) {
    switch (type) {
    case 0: return has_in_single(data, count, may_mask ? 0xff800000u : 0);
    case 1: return has_in_double(data, count, may_mask ? 0xfff0000000000000u : 0);
    case 2: return has_in_half(data, count, may_mask ? 0xfc00u : 0);
    default: return has_in_bfloat(data, count, may_mask ? 0xff80u : 0);
    }
}

/* Arguments: a tensor, and whether minus infinity is left aside. Returns whether all elements are finite; None for a
 * tensor that is not ordinary, not in host memory, or not of floating point. */
static PyObject *is_finite(PyObject *self, PyObject *const *arguments, ptrdiff_t count) {
    (void)self;
    Described known;
    int64_t elements;
    int may_mask = count == 2 ? PyObject_IsTrue(arguments[1]) : 0;
    int is_plain = may_mask < 0 ? -1 : is_tensor(part, arguments[0]);
    if (is_plain > 0) is_plain = describe(exchange, part, arguments[0], &known, &elements);
    if (is_plain < 0) return NULL;
    int64_t type = is_plain ? described_type(&known) : -1;
    if (type < 0 || type > 3) {
        Py_IncRef(NONE);
        return NONE;
    }
    void *state = elements > MANY ? PyEval_SaveThread() : NULL;
    int found = has_nonfinite(known.data + known.offset, type, elements, may_mask);
    if (state != NULL) PyEval_RestoreThread(state);
    return PyBool_FromLong(!found);
}

static PyMethodDef of_the_module = {"is_finite", is_finite, METH_FASTCALL, NULL};

/* The function. `parts` is `row_buffer.PARTS_OF_TENSORS`, `table` the functions of DLPack. None before torch 2.10. */
PyObject *torchgraph_finite_function(PyObject *parts, void *table) {
    if (take_objects(part, parts, PARTS_OF_TENSORS) < 0) return NULL;
    exchange = table;
    if (exchange == NULL || exchange->major != 1) {
        Py_IncRef(NONE);
        return NONE;
    }
    return PyCFunction_NewEx(&of_the_module, NULL, NULL);
}
