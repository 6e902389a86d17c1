/* Copies the tensors that are kept, where they are ordinary ones in host memory: `step_tensors.StepTensors.take`, at a
 * tenth of its cost. That is the reference: what this does not take, it does, and it does everything where this is not
 * built, or where torch is older than 2.10.
 */

#include "described_tensor.h"

#include <string.h>

/* `torchgraph_keep_samples` of `rows.c`. */
typedef int (*Keep)(const char *data, int64_t type, int64_t size, int64_t outer, int64_t batch, int64_t inner,
                    const int64_t *chosen, int64_t kept, char *values, void *statistics);

/* Behind the parts of tensors, as `kept.py` gives them: names of properties. */
enum { DTYPE = PARTS_OF_TENSORS, SHAPE, VERSION, PARTS };

/* `_Place` in `room.py`: a piece of memory, what is used of it, how much may still be kept, and whether a copy was put in
 * place of another one. */
typedef struct {
    char *address;
    int64_t size, used, left, has_replaced;
} Memory;

/* As in `kept.py`. */
enum { IS_KEPT = 1, IS_WHOLE = 2, COMES_AGAIN = 4, IS_GRADIENT = 8 };

/* Arguments of `keep` for statistics that are left to the writer's thread, since all samples are kept: of the copies. `piece` has
 * the memory that both are in. */
typedef struct {
    int64_t type, size, outer, batch, inner;
    char *values, *statistics;
    PyObject *piece;
} Later;

/* What `StepTensors` has: dictionaries, a list with the array that `memory` is of, and what owns that. */
typedef struct {
    Memory *memory;
    int64_t dim;
    int is_flagged, is_measured;
    PyObject *plans, *latest, *taken, *unnamed, *numbers, *pieces, *room;
    Later *later;
    int64_t count, most; /* how many are left, and what there is memory for */
} Step;

enum { FIRST_LATER = 64 };

enum { OBJECTS = 7 };

static const Exchange *exchange;
static PyObject *part[PARTS];
static Keep keep;
static const Measured *measured;

static const char *const STEP = "torchgraph_explorer.kept";

static int is_wide(int64_t type) { return type == 1 || type == 6 || type == 7; }

/* What is copied. `owner` has the numbers of the samples; NULL for all of the tensor. */
typedef struct {
    int64_t outer, batch, inner, kept, statistics, size;
    const int64_t *chosen;
    PyObject *owner;
} Layout;

/* What of the tensor is copied: all of it, or the samples that `numbers` has for its batch. Returns 1; 0 if they are not
 * known; -1 with an exception. */
static int lay_out(const Step *step, const Described *tensor, int64_t count, int is_whole, Layout *layout) {
    const int64_t width = tensor->bits / 8, dimensions = tensor->dimensions;
    const int64_t dim = step->dim < 0 ? step->dim + dimensions : step->dim;
    if (is_whole || dim < 0 || dim >= dimensions) {
        *layout = (Layout){.batch = 1, .inner = count, .size = count * width};
        return 1;
    }
    *layout = (Layout){.outer = 1, .batch = tensor->shape[dim], .inner = 1};
    for (int64_t at = 0; at < dim; at++) layout->outer *= tensor->shape[at];
    for (int64_t at = dim + 1; at < dimensions; at++) layout->inner *= tensor->shape[at];
    PyObject *batch = PyLong_FromLongLong(layout->batch);
    if (batch == NULL) return -1;
    PyObject *known = PyDict_GetItemWithError(step->numbers, batch);
    Py_DecRef(batch);
    if (known == NULL) return PyErr_Occurred() ? -1 : 0;
    layout->owner = known;
    layout->chosen = PyLong_AsVoidPtr(PyTuple_GetItem(known, 1));
    layout->kept = PyLong_AsLongLong(PyTuple_GetItem(known, 2));
    if (PyErr_Occurred()) return -1;
    const int64_t neurons = layout->outer * layout->inner;
    layout->statistics = 3 * neurons * (is_wide(described_type(tensor)) ? 8 : 4);
    layout->size = layout->statistics + neurons * layout->kept * width;
    return 1;
}

/* Copies; returns whether everything is finite, as far as that is seen. */
static int copy(const Described *tensor, int64_t count, const Layout *layout, char *to) {
    const char *from = tensor->data + tensor->offset;
    int is_finite = 1;
    void *state = count > MANY ? PyEval_SaveThread() : NULL;
    if (layout->owner == NULL) {
        if (layout->size > 0) memcpy(to, from, (size_t)layout->size); /* an empty tensor may have no address */
    } else is_finite = keep(from, described_type(tensor), tensor->bits / 8, layout->outer, layout->batch, layout->inner,
                          layout->chosen, layout->kept, to + layout->statistics, to);
    if (state != NULL) PyEval_RestoreThread(state);
    return is_finite;
}

/* Makes room for one more that is left for later; NULL without memory. */
static Later *next_later(Step *step) {
    if (step->count == step->most) {
        const int64_t most = step->most > 0 ? 2 * step->most : FIRST_LATER;
        Later *more = realloc(step->later, (size_t)most * sizeof *more);
        if (more == NULL) return NULL;
        step->later = more;
        step->most = most;
    }
    return &step->later[step->count];
}

/* Copies a batch of which all samples are kept, and leaves the statistics for later. Returns whether it did. */
static int copy_all(Step *step, const Described *tensor, int64_t count, const Layout *layout, PyObject *piece, char *to) {
    Later *later = layout->owner != NULL && layout->kept == layout->batch ? next_later(step) : NULL;
    if (later == NULL) return 0;
    char *values = to + layout->statistics;
    const int64_t width = tensor->bits / 8;
    *later = (Later){described_type(tensor), width, layout->outer, layout->batch, layout->inner, values, to, piece};
    Py_IncRef(piece);
    step->count++;
    void *state = count > MANY ? PyEval_SaveThread() : NULL;
    memcpy(values, tensor->data + tensor->offset, (size_t)(count * width));
    if (state != NULL) PyEval_RestoreThread(state);
    return 1;
}

/* Forgets what is left for later. */
static void drop_later(Step *step) {
    for (int64_t at = 0; at < step->count; at++) Py_DecRef(step->later[at].piece);
    free(step->later);
    step->later = NULL;
    step->count = step->most = 0;
}

/* No arguments. Makes the statistics that were left for later; for one thread, after the last `take`. */
static PyObject *measure(PyObject *self, PyObject *const *arguments, ptrdiff_t count) {
    (void)arguments, (void)count;
    Step *step = PyCapsule_GetPointer(self, STEP);
    if (step == NULL) return NULL;
    void *state = PyEval_SaveThread();
    for (int64_t at = 0; at < step->count; at++) {
        const Later *one = &step->later[at];
        keep(one->values, one->type, one->size, one->outer, one->batch, one->inner, NULL, 0, NULL, one->statistics);
    }
    PyEval_RestoreThread(state);
    drop_later(step);
    Py_IncRef(NONE);
    return NONE;
}

/* The tuple of a copy, `step_tensors.Placed`: the array it is in, where it begins, dtype, shape and samples. */
static PyObject *placed(PyObject *piece, int64_t start, PyObject *tensor, const Layout *layout) {
    PyObject *first = PyLong_FromLongLong(start), *dtype = PyObject_GetAttr(tensor, part[DTYPE]);
    PyObject *shape = unvisited(PyObject_GetAttr(tensor, part[SHAPE])), *made = NULL; /* torch makes one when it is asked */
    PyObject *samples = layout->owner == NULL ? NONE : PyTuple_GetItem(layout->owner, 0);
    if (samples != NULL && first != NULL && dtype != NULL && shape != NULL)
        made = unvisited(PyTuple_Pack(5, piece, first, dtype, shape, samples));
    if (first != NULL) Py_DecRef(first);
    if (dtype != NULL) Py_DecRef(dtype);
    if (shape != NULL) Py_DecRef(shape);
    return made;
}

/* Notes a copy as that of the series `key`; 0, or -1 with an exception. */
static int note(const Step *step, PyObject *key, int64_t plan, PyObject *copied) {
    const ptrdiff_t before = PyDict_Size(step->taken);
    if (PyDict_SetItem(step->taken, key, copied) < 0) return -1;
    if (PyDict_Size(step->taken) == before) step->memory->has_replaced = 1;
    return plan & IS_GRADIENT ? PyDict_SetItem(step->unnamed, key, NONE) : 0;
}

/* Notes the copy of a tensor whose memory was written to `version` times; 0, or -1 with an exception. */
static int remember(const Step *step, PyObject *tensor, PyObject *address, PyObject *version, PyObject *copied) {
    PyObject *reference = unvisited(PyWeakref_NewRef(tensor, NULL));
    PyObject *entry = reference == NULL ? NULL : unvisited(PyTuple_Pack(3, reference, version, copied));
    int is_noted = entry == NULL ? -1 : PyDict_SetItem(step->latest, address, entry);
    if (reference != NULL) Py_DecRef(reference);
    if (entry != NULL) Py_DecRef(entry);
    return is_noted;
}

/* The copy of `tensor` that is there already, borrowed; NULL without one, or with an exception. */
static PyObject *known_copy(const Step *step, PyObject *tensor, PyObject *address, PyObject *version) {
    PyObject *entry = PyDict_GetItemWithError(step->latest, address);
    if (entry == NULL) return NULL;
    PyObject *then = PyTuple_GetItem(entry, 1);
    if (then == NULL || then == NONE || PyLong_AsLongLong(then) != PyLong_AsLongLong(version)) return NULL;
    PyObject *alive = PyObject_CallFunctionObjArgs(PyTuple_GetItem(entry, 0), NULL);
    if (alive == NULL) return NULL;
    Py_DecRef(alive); /* if it is the tensor, the caller has it */
    return alive == tensor ? PyTuple_GetItem(entry, 2) : NULL;
}

/* As `describe`. What `tensors.c` has found out is not asked again of a tensor that has its elements where they were. */
static int describe_once(const Step *step, PyObject *tensor, Described *found, int64_t *count) {
    if (step->is_measured && measured->tensor == tensor && exchange->describe(tensor, found) == 0) {
        *count = count_in_order(found);
        if (found->data == measured->data && found->offset == measured->offset && *count == measured->count) return 1;
    }
    int is_ordinary = is_tensor(part, tensor);
    return is_ordinary <= 0 ? is_ordinary : describe(exchange, part, tensor, found, count);
}

/* Copies `tensor` and notes the copy; `version` is NULL if its like does not come again. Returns 1; 0 if that is left to
 * Python; -1 with an exception. */
static int take_new(Step *step, PyObject *key, PyObject *tensor, int64_t plan, PyObject *address, PyObject *version) {
    Described described;
    Layout layout;
    int64_t count;
    Memory *memory = step->memory;
    int is_taken = describe_once(step, tensor, &described, &count);
    if (is_taken <= 0) return is_taken;
    if ((is_taken = lay_out(step, &described, count, plan & IS_WHOLE, &layout)) <= 0) return is_taken;
    if (layout.size > memory->left || layout.size > memory->size - memory->used) return 0;
    PyObject *piece = PyList_GetItem(step->pieces, 0), *owner = layout.owner, *copied = NULL;
    if (piece == NULL) return -1;
    const int64_t start = memory->used;
    char *to = memory->address + start;
    memory->used += layout.size + (-layout.size & 7); /* before another thread may run */
    memory->left -= layout.size;
    Py_IncRef(piece);
    if (owner != NULL) Py_IncRef(owner);
    const int is_finite = copy_all(step, &described, count, &layout, piece, to) || copy(&described, count, &layout, to);
    const int is_odd = !is_finite && step->is_flagged && owner != NULL && layout.kept < layout.batch;
    if (is_odd) memory->left += layout.size;
    else copied = placed(piece, start, tensor, &layout);
    Py_DecRef(piece);
    if (owner != NULL) Py_DecRef(owner);
    if (is_odd) return 0; /* Python looks for the samples that are not finite */
    if (copied == NULL) return -1;
    is_taken = note(step, key, plan, copied);
    if (is_taken == 0 && version != NULL) is_taken = remember(step, tensor, address, version, copied);
    Py_DecRef(copied);
    return is_taken == 0 ? 1 : -1;
}

/* As `take_new`, unless the tensor was copied before and was not written to since. */
static int take_once(Step *step, PyObject *key, PyObject *tensor, int64_t plan) {
    PyObject *version = PyObject_GetAttr(tensor, part[VERSION]);
    if (version == NULL) { /* made in inference mode, where torch does not count writes */
        PyErr_Clear();
        return take_new(step, key, tensor, plan, NULL, NULL);
    }
    PyObject *address = PyLong_FromVoidPtr(tensor);
    PyObject *copied = address == NULL ? NULL : known_copy(step, tensor, address, version);
    int is_taken = -1;
    if (copied != NULL) is_taken = note(step, key, plan, copied) == 0 ? 1 : -1;
    else if (!PyErr_Occurred()) is_taken = take_new(step, key, tensor, plan, address, version);
    if (address != NULL) Py_DecRef(address);
    Py_DecRef(version);
    return is_taken;
}

/* Whether everything is done that `StepTensors.take` does with a tensor, which `tensors.c` has measured just now or not. */
static PyObject *take_one(PyObject *self, PyObject *const *arguments, ptrdiff_t count, int is_measured) {
    Step *step = PyCapsule_GetPointer(self, STEP);
    if (step == NULL || count != 2) return NULL;
    step->is_measured = is_measured;
    PyObject *known = PyDict_GetItemWithError(step->plans, arguments[0]);
    if (known == NULL) return PyErr_Occurred() ? NULL : PyBool_FromLong(0);
    const int64_t plan = PyLong_AsLongLong(known);
    if (!(plan & IS_KEPT)) return PyBool_FromLong(1);
    const int is_taken = plan & COMES_AGAIN ? take_once(step, arguments[0], arguments[1], plan)
                                            : take_new(step, arguments[0], arguments[1], plan, NULL, NULL);
    return is_taken < 0 ? NULL : PyBool_FromLong(is_taken);
}

/* Arguments: the key of a series, and its tensor. */
static PyObject *take(PyObject *self, PyObject *const *arguments, ptrdiff_t count) {
    return take_one(self, arguments, count, 0);
}

/* As `take`, right after `tensors.c` was asked to measure that tensor. */
static PyObject *take_measured(PyObject *self, PyObject *const *arguments, ptrdiff_t count) {
    return take_one(self, arguments, count, 1);
}

static PyObject **objects(Step *step) { return &step->plans; }

static void free_step(Step *step) {
    drop_later(step);
    for (int at = 0; at < OBJECTS; at++) Py_DecRef(objects(step)[at]);
    free(step);
}

static void release(PyObject *capsule) {
    Step *step = PyCapsule_GetPointer(capsule, STEP);
    if (step != NULL) free_step(step);
}

enum { OF_A_STEP = 3 };

static PyMethodDef of_a_step[OF_A_STEP] = {
    {"take", take, METH_FASTCALL, NULL},
    {"take_measured", take_measured, METH_FASTCALL, NULL},
    {"measure", measure, METH_FASTCALL, NULL},
};

/* Arguments: the address of a `Memory`, the dimension of samples, whether odd samples are looked for, and the objects of
 * `Step`. Returns `take`, `take_measured` and `measure` for one step. */
static PyObject *begin(PyObject *self, PyObject *const *arguments, ptrdiff_t count) {
    (void)self;
    Step *step = count == 3 + OBJECTS ? calloc(1, sizeof *step) : NULL;
    if (step == NULL) return PyErr_NoMemory();
    step->memory = PyLong_AsVoidPtr(arguments[0]);
    step->dim = PyLong_AsLongLong(arguments[1]);
    step->is_flagged = PyObject_IsTrue(arguments[2]);
    for (int at = 0; at < OBJECTS; at++) {
        objects(step)[at] = arguments[3 + at];
        Py_IncRef(arguments[3 + at]);
    }
    PyObject *capsule = PyErr_Occurred() ? NULL : PyCapsule_New(step, STEP, release);
    if (capsule == NULL) return free_step(step), NULL;
    PyObject *made = list_of_functions(of_a_step, OF_A_STEP, capsule);
    Py_DecRef(capsule);
    return made;
}

static PyMethodDef of_the_module = {"begin", begin, METH_FASTCALL, NULL};

/* The function `begin`. `parts` is a tuple as listed above, `table` that of DLPack, `function` that of `rows.c`, `last` a
 * `Measured`. */
PyObject *torchgraph_kept_functions(PyObject *parts, void *table, void *function, void *last) {
    if (take_objects(part, parts, PARTS) < 0) return NULL;
    exchange = table;
    keep = (Keep)function;
    measured = last;
    if (exchange == NULL || exchange->major != 1) {
        Py_IncRef(NONE);
        return NONE;
    }
    return PyCFunction_NewEx(&of_the_module, NULL, NULL);
}
