/* Finds the elements of a tensor in memory and hands them to `rows.c`: `sampling.plain_elements` and what follows it in
 * `batch.py`, for ordinary tensors in host memory, at a third of the cost. Those are the reference: what this does not
 * take, they do, and they do everything where this is not built.
 *
 * It needs the functions of Python that it calls, declared here: they are of the stable interface, so one build is for
 * every Python from 3.10 on. Nothing of torch is assumed but the methods of tensors that Python code calls, too.
 */

#include <stddef.h>
#include <stdint.h>

typedef struct object PyObject;
typedef PyObject *(*Function)(PyObject *self, PyObject *const *arguments, ptrdiff_t count);

typedef struct {
    const char *name;
    Function function;
    int flags;
    const char *doc;
} PyMethodDef;

enum { METH_FASTCALL = 0x80 };

extern PyObject *PyCFunction_NewEx(PyMethodDef *, PyObject *, PyObject *);
extern PyObject *PyObject_CallFunctionObjArgs(PyObject *, ...);
extern PyObject *PyObject_GetAttr(PyObject *, PyObject *);
extern PyObject *PyObject_Type(PyObject *);
extern PyObject *PyDict_GetItemWithError(PyObject *, PyObject *);
extern PyObject *PyTuple_GetItem(PyObject *, ptrdiff_t);
extern PyObject *PyTuple_Pack(ptrdiff_t, ...);
extern PyObject *PyBool_FromLong(long);
extern PyObject *PyErr_Occurred(void);
extern long long PyLong_AsLongLong(PyObject *);
extern void *PyLong_AsVoidPtr(PyObject *);
extern double PyFloat_AsDouble(PyObject *);
extern int PyObject_IsTrue(PyObject *);
extern void Py_IncRef(PyObject *);
extern void Py_DecRef(PyObject *);
extern void *PyEval_SaveThread(void);
extern void PyEval_RestoreThread(void *);

typedef int (*AddRow)(void *rows, const char *data, int64_t type, int64_t count, int64_t first, int64_t stride,
                      int64_t length, double divisor);
typedef int (*AddNorms)(void *rows, const char *data, int64_t type, int64_t samples, int64_t size, double divisor);

/* In the order in which `row_buffer.py` gives them: two types, a dictionary, a layout, names of properties, methods. */
enum { TENSOR, PARAMETER, TYPES, STRIDED, ZERO };
enum { DTYPE = 5, LAYOUT, IS_NESTED, IS_CPU, ITEMSIZE };
enum { IS_CONTIGUOUS = 10, IS_NEG, NUMEL, DATA_PTR, STORAGE_OFFSET, UNTYPED_STORAGE, NBYTES, DIM, SIZE, PARTS };

static PyObject *part[PARTS];
static AddRow add_row;
static AddNorms add_norms;

/* Elements above which another thread may run Python meanwhile. Letting one costs more than reading fewer. */
enum { MANY = 1 << 15 };

typedef struct {
    const char *data;
    int64_t type, count;
} Elements;

/* The number that `made` is, or -1 with an exception. Takes the reference. */
static int64_t number(PyObject *made) {
    if (made == NULL) return -1;
    int64_t found = PyLong_AsLongLong(made);
    Py_DecRef(made);
    return found;
}

static int64_t asked(PyObject *tensor, int method) {
    return number(PyObject_CallFunctionObjArgs(part[method], tensor, NULL));
}

/* Whether `made` is true; -1 with an exception. Takes the reference. */
static int truth(PyObject *made) {
    if (made == NULL) return -1;
    int found = PyObject_IsTrue(made);
    Py_DecRef(made);
    return found;
}

static int is_type(PyObject *tensor) {
    PyObject *type = PyObject_Type(tensor);
    if (type == NULL) return -1;
    Py_DecRef(type); /* the tensor has it */
    return type == part[TENSOR] || type == part[PARAMETER];
}

static int is_strided(PyObject *tensor) {
    PyObject *layout = PyObject_GetAttr(tensor, part[LAYOUT]);
    if (layout == NULL) return -1;
    Py_DecRef(layout);
    return layout == part[STRIDED];
}

/* The type of the elements as in `row_buffer.TYPES`; -2 if it is another one, -1 with an exception. */
static int64_t element_type(PyObject *tensor) {
    PyObject *dtype = PyObject_GetAttr(tensor, part[DTYPE]);
    if (dtype == NULL) return -1;
    PyObject *known = PyDict_GetItemWithError(part[TYPES], dtype);
    Py_DecRef(dtype);
    if (known == NULL) return PyErr_Occurred() ? -1 : -2;
    return PyLong_AsLongLong(known);
}

/* Whether all elements are in memory: the storage may have been freed or cut. -1 with an exception. */
static int is_in_memory(PyObject *tensor, int64_t count) {
    int64_t offset = asked(tensor, STORAGE_OFFSET);
    if (offset < 0) return -1;
    int64_t size = number(PyObject_GetAttr(tensor, part[ITEMSIZE]));
    if (size < 0) return -1;
    PyObject *storage = PyObject_CallFunctionObjArgs(part[UNTYPED_STORAGE], tensor, NULL);
    if (storage == NULL) return -1;
    int64_t bytes = asked(storage, NBYTES);
    Py_DecRef(storage);
    return bytes < 0 ? -1 : (offset + count) * size <= bytes;
}

/* As `sampling.plain_elements`, of an ordinary tensor that is in host memory and not empty. Returns 1; 0 for any other
 * tensor; -1 with an exception. */
static int plain_elements(PyObject *tensor, Elements *found) {
    int is_plain = is_type(tensor);
    if (is_plain <= 0) return is_plain;
    found->type = element_type(tensor);
    if (found->type < 0) return found->type == -2 ? 0 : -1;
    if ((is_plain = is_strided(tensor)) <= 0) return is_plain;
    int is_nested = truth(PyObject_GetAttr(tensor, part[IS_NESTED]));
    if (is_nested != 0) return is_nested < 0 ? -1 : 0;
    if ((is_plain = truth(PyObject_CallFunctionObjArgs(part[IS_CONTIGUOUS], tensor, NULL))) <= 0) return is_plain;
    int is_negated = truth(PyObject_CallFunctionObjArgs(part[IS_NEG], tensor, NULL));
    if (is_negated != 0) return is_negated < 0 ? -1 : 0;
    if ((is_plain = truth(PyObject_GetAttr(tensor, part[IS_CPU]))) <= 0) return is_plain;
    found->count = asked(tensor, NUMEL);
    if (found->count <= 0) return found->count < 0 ? -1 : 0;
    PyObject *address = PyObject_CallFunctionObjArgs(part[DATA_PTR], tensor, NULL);
    if (address == NULL) return -1;
    found->data = PyLong_AsVoidPtr(address);
    Py_DecRef(address);
    if (found->data == NULL) return PyErr_Occurred() ? -1 : 0;
    return is_in_memory(tensor, found->count);
}

/* Arguments: the address of a `Rows`, a tensor, how many elements are sampled at most (-1: all), a function from count
 * and step to `Sampler.positions`, the step, and the divisor. Returns whether a row was added. */
static PyObject *add_values(PyObject *self, PyObject *const *arguments, ptrdiff_t count) {
    (void)self, (void)count;
    Elements elements;
    int is_plain = plain_elements(arguments[1], &elements);
    if (is_plain < 0) return NULL;
    if (is_plain == 0) return PyBool_FromLong(0);
    void *rows = PyLong_AsVoidPtr(arguments[0]);
    int64_t most = PyLong_AsLongLong(arguments[2]), first = 0, stride = 1, length = elements.count;
    double divisor = PyFloat_AsDouble(arguments[5]);
    if (most >= 0 && elements.count > most) {
        PyObject *numel = PyObject_CallFunctionObjArgs(part[NUMEL], arguments[1], NULL);
        if (numel == NULL) return NULL;
        PyObject *positions = PyObject_CallFunctionObjArgs(arguments[3], numel, arguments[4], NULL);
        Py_DecRef(numel);
        if (positions == NULL) return NULL;
        first = PyLong_AsLongLong(PyTuple_GetItem(positions, 0));
        stride = PyLong_AsLongLong(PyTuple_GetItem(positions, 1));
        length = PyLong_AsLongLong(PyTuple_GetItem(positions, 2));
        Py_DecRef(positions);
    }
    if (PyErr_Occurred()) return NULL;
    void *state = elements.count > MANY ? PyEval_SaveThread() : NULL;
    int is_added = add_row(rows, elements.data, elements.type, elements.count, first, stride, length, divisor);
    if (state != NULL) PyEval_RestoreThread(state);
    return PyBool_FromLong(is_added);
}

/* Arguments: the address of a `Rows`, a tensor, and the divisor. Adds the row of the l2 norms of the indices of the first
 * dimension, and returns whether it was added. */
static PyObject *add_norms_of(PyObject *self, PyObject *const *arguments, ptrdiff_t count) {
    (void)self, (void)count;
    Elements elements;
    int is_plain = plain_elements(arguments[1], &elements);
    if (is_plain < 0) return NULL;
    if (is_plain == 0) return PyBool_FromLong(0);
    void *rows = PyLong_AsVoidPtr(arguments[0]);
    double divisor = PyFloat_AsDouble(arguments[2]);
    int64_t dimensions = asked(arguments[1], DIM), samples = 1;
    if (dimensions > 0) samples = number(PyObject_CallFunctionObjArgs(part[SIZE], arguments[1], part[ZERO], NULL));
    if (PyErr_Occurred()) return NULL;
    void *state = elements.count > MANY ? PyEval_SaveThread() : NULL;
    int is_added = add_norms(rows, elements.data, elements.type, samples, elements.count / samples, divisor);
    if (state != NULL) PyEval_RestoreThread(state);
    return PyBool_FromLong(is_added);
}

static PyMethodDef methods[] = {
    {"add_values", add_values, METH_FASTCALL, NULL},
    {"add_norms", add_norms_of, METH_FASTCALL, NULL},
};

/* The two functions, as Python calls them. `parts` is a tuple as listed above; the addresses are of `rows.c`. */
PyObject *torchgraph_tensor_functions(PyObject *parts, void *row_function, void *norms_function) {
    for (int i = 0; i < PARTS; i++) {
        part[i] = PyTuple_GetItem(parts, i);
        if (part[i] == NULL) return NULL;
        Py_IncRef(part[i]);
    }
    add_row = (AddRow)row_function;
    add_norms = (AddNorms)norms_function;
    PyObject *values = PyCFunction_NewEx(&methods[0], NULL, NULL), *norms = PyCFunction_NewEx(&methods[1], NULL, NULL);
    if (values == NULL || norms == NULL) return NULL;
    PyObject *both = PyTuple_Pack(2, values, norms);
    Py_DecRef(values), Py_DecRef(norms);
    return both;
}
