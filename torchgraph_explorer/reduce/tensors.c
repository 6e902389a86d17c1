/* Finds the elements of a tensor in memory and hands them to `rows.c`, or has the GPU read them where they are in its memory:
 * `sampling.plain_elements` and what follows it in `batch.py`, for ordinary tensors, at a third of the cost. Those are the reference: what this does not
 * take, they do, and they do everything where this is not built.
 *
 * Nothing of torch is assumed but DLPack's functions and the methods of tensors that Python code calls, too.
 */

#include <math.h>

#include "on_gpu.h"
#include "units.h"

typedef int (*AddRow)(void *rows, const char *data, int64_t type, int64_t count, int64_t first, int64_t stride,
                      int64_t length, double divisor);
typedef int (*AddNorms)(void *rows, const char *data, int64_t type, int64_t samples, int64_t size, double divisor);

/* Behind the parts of tensors, as `row_buffer.py` gives them: a dictionary, a layout, names of properties, methods. */
enum { TYPES = PARTS_OF_TENSORS, STRIDED, ZERO };
enum { DTYPE = ZERO + 1, LAYOUT, IS_NESTED, IS_CPU, ITEMSIZE, VERSION };
enum { IS_CONTIGUOUS = VERSION + 1, NUMEL, DATA_PTR, DIM, SIZE, PARTS };

static const Exchange *exchange; /* NULL before torch 2.10 */

static Measured measured;

static PyObject *part[PARTS];
static AddRow add_row;
static AddNorms add_norms;

/* `samples` is the size of the first dimension; 0 if the elements of its indices are mixed in memory. `gpu` is the number of the
 * GPU in whose memory they are, -1 if they are in the host's. */
typedef struct {
    const char *data;
    int64_t type, size, count, samples;
    int32_t gpu;
    int is_in_order;
} Elements;

static int64_t asked(PyObject *tensor, int method) {
    return number(PyObject_CallFunctionObjArgs(part[method], tensor, NULL));
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

/* As `plain_elements` below, of a tensor of an ordinary type. */
static int described_elements(PyObject *tensor, Elements *found) {
    Described known;
    int is_plain = describe_anywhere(exchange, part, tensor, &known, &found->count, &found->is_in_order);
    measured.tensor = NULL;
    if (is_plain <= 0) return is_plain;
    found->gpu = known.device == ON_GPU ? known.device_number : -1;
    if (found->count <= MANY && found->gpu < 0 && found->is_in_order) measured = (Measured){tensor, known.data, known.offset, found->count};
    found->type = described_type(&known);
    found->size = known.bits / 8;
    found->data = known.data + known.offset;
    found->samples = known.dimensions > 0 ? known.shape[0] : 1;
    if (found->samples > 1 && known.strides[0] != found->count / found->samples) found->samples = 0;
    return 1;
}

/* As `described_elements`, by asking a method of the tensor for each fact. */
static int asked_elements(PyObject *tensor, Elements *found) {
    found->type = element_type(tensor);
    if (found->type < 0) return found->type == -2 ? 0 : -1;
    int is_plain = is_strided(tensor);
    if (is_plain <= 0) return is_plain;
    int is_nested = truth(PyObject_GetAttr(tensor, part[IS_NESTED]));
    if (is_nested != 0) return is_nested < 0 ? -1 : 0;
    if ((is_plain = truth(PyObject_CallFunctionObjArgs(part[IS_CONTIGUOUS], tensor, NULL))) <= 0) return is_plain;
    int is_negated = truth(PyObject_CallFunctionObjArgs(part[IS_NEG], tensor, NULL));
    if (is_negated != 0) return is_negated < 0 ? -1 : 0;
    if ((is_plain = truth(PyObject_GetAttr(tensor, part[IS_CPU]))) <= 0) return is_plain;
    found->count = asked(tensor, NUMEL);
    if (found->count <= 0) return found->count < 0 ? -1 : 0;
    PyObject *address = PyObject_CallFunctionObjArgs(part[DATA_PTR], tensor, NULL);
    if (address == NULL) { /* a batch of them under vmap has no memory of its own */
        PyErr_Clear();
        return 0;
    }
    found->data = PyLong_AsVoidPtr(address);
    Py_DecRef(address);
    if (found->data == NULL) return PyErr_Occurred() ? -1 : 0;
    found->samples = 1;
    found->is_in_order = 1;
    int64_t dimensions = asked(tensor, DIM);
    if (dimensions > 0) found->samples = number(PyObject_CallFunctionObjArgs(part[SIZE], tensor, part[ZERO], NULL));
    if (dimensions < 0 || found->samples < 0) return -1;
    found->size = number(PyObject_GetAttr(tensor, part[ITEMSIZE]));
    return found->size < 0 ? -1 : is_in_memory(part, tensor, found->count, found->size);
}

/* As `sampling.plain_elements`, of an ordinary tensor that is in the memory of the host or a GPU, in whatever order, and not empty.
 * Returns 1; 0 for any other tensor; -1 with an exception. */
static int elements_anywhere(PyObject *tensor, Elements *found) {
    int is_plain = is_tensor(part, tensor);
    if (is_plain <= 0) return is_plain;
    found->gpu = -1;
    return exchange != NULL ? described_elements(tensor, found) : asked_elements(tensor, found);
}

/* As `elements_anywhere`, but 0 also for tensors that are not in host memory, or not in order there. */
static int plain_elements(PyObject *tensor, Elements *found) {
    int is_plain = elements_anywhere(tensor, found);
    return is_plain > 0 && !(found->is_in_order && found->gpu < 0) ? 0 : is_plain;
}

/* As in `rows.c`, and in `row_buffer.py`. */
typedef struct {
    void *memory[6];
    int64_t most_rows, most_entries, rows, entries;
} Rows;

/* `_Place` in `row_buffer.py`: where rows are put now, how many are in memory that is full, whether this one is. */
typedef struct {
    Rows *rows;
    int64_t before, is_full;
} Place;

/* What is sampled, and where its rows are put: those of tensors in host memory, and what a GPU leaves of the others. */
typedef struct {
    Place *place;
    int64_t most;
    PyObject *positions, *step;
    Gpu *gpu;
} Sampling;

/* The sample of `count` elements; 0, or -1 with an exception. */
static int sample_of(const Sampling *sampling, int64_t count, int64_t sample[3]) {
    sample[0] = 0, sample[1] = 1, sample[2] = count;
    if (sampling->most < 0 || count <= sampling->most) return 0;
    PyObject *elements = PyLong_FromLongLong(count);
    if (elements == NULL) return -1;
    PyObject *positions = PyObject_CallFunctionObjArgs(sampling->positions, elements, sampling->step, NULL);
    Py_DecRef(elements);
    if (positions == NULL) return -1;
    for (int at = 0; at < 3; at++) sample[at] = PyLong_AsLongLong(PyTuple_GetItem(positions, at));
    Py_DecRef(positions);
    return PyErr_Occurred() ? -1 : 0;
}

/* The number of the row that was added; -1 if there was no room. */
static int64_t added(Place *place, int is_added) {
    place->is_full = !is_added;
    return is_added ? place->before + place->rows->rows - 1 : -1;
}

/* Rows of tensors on a GPU are numbered from here on; to Python they are -1, -2, ... */
static const int64_t ON_GPUS = (int64_t)1 << 40;

/* As `add_tensor`, of elements in a GPU's memory. */
static int64_t add_on_gpu(const Sampling *sampling, const Elements *elements, int is_norms, double divisor) {
    if (sampling->gpu == NULL) return -1;
    enum { TYPES_OF_FLOATS = 4 };
    int64_t sample[3], rows = 0;
    if (is_norms) {
        if (elements->samples > 0 && elements->type < TYPES_OF_FLOATS)
            rows = norms_on_gpu(sampling->gpu, exchange, elements->gpu, elements->data, elements->type, elements->size,
                                elements->count, elements->samples, divisor);
    } else {
        if (sample_of(sampling, elements->count, sample) < 0) return -2;
        rows = values_on_gpu(sampling->gpu, exchange, elements->gpu, elements->data, elements->type, elements->size,
                             elements->count, sample, divisor);
    }
    return rows > 0 ? ON_GPUS + rows : -1;
}

/* Adds the row of values, or of the l2 norms of the indices of the first dimension, of an ordinary tensor. Returns its
 * number; -1 for any other tensor or without room; -2 with an exception. */
static int64_t add_tensor(const Sampling *sampling, PyObject *tensor, int is_norms, double divisor) {
    Elements elements;
    int64_t sample[3];
    int is_plain = elements_anywhere(tensor, &elements);
    if (is_plain <= 0) return is_plain - 1;
    if (elements.gpu >= 0) return add_on_gpu(sampling, &elements, is_norms, divisor);
    if (is_norms && elements.samples == 0) return -1;
    if (!is_norms && sample_of(sampling, elements.count, sample) < 0) return -2;
    void *state = elements.count > MANY ? PyEval_SaveThread() : NULL;
    Place *place = sampling->place;
    int is_added = is_norms ? add_norms(place->rows, elements.data, elements.type, elements.samples,
                                        elements.count / elements.samples, divisor)
                            : add_row(place->rows, elements.data, elements.type, elements.count, sample[0], sample[1],
                                      sample[2], divisor);
    if (state != NULL) PyEval_RestoreThread(state);
    return added(place, is_added);
}

/* The row of each tensor, by its address, with its version then: as `batch.RowsByTensor`. */
typedef struct {
    PyObject *tensor, *reference;
    int64_t version, row;
} Known;

typedef struct {
    Known *entries;
    size_t size, used;
} Table;

static Known *place_of(const Table *table, PyObject *tensor) {
    size_t at = ((uintptr_t)tensor >> 4) * 0x9E3779B97F4A7C15u >> 16;
    for (;; at++) {
        Known *known = &table->entries[at & (table->size - 1)];
        if (known->tensor == NULL || known->tensor == tensor) return known;
    }
}

enum { FIRST_SIZE = 1 << 9 };

/* Makes sure that there is room for one more; 0, or -1 with an exception. */
static int reserve(Table *table) {
    if (2 * (table->used + 1) < table->size) return 0;
    Table larger = {NULL, table->size ? 2 * table->size : FIRST_SIZE, table->used};
    larger.entries = calloc(larger.size, sizeof(Known));
    if (larger.entries == NULL) return PyErr_NoMemory(), -1;
    for (size_t at = 0; at < table->size; at++)
        if (table->entries[at].tensor != NULL) *place_of(&larger, table->entries[at].tensor) = table->entries[at];
    free(table->entries);
    *table = larger;
    return 0;
}

static void empty(Table *table) {
    for (size_t at = 0; at < table->size; at++)
        if (table->entries[at].tensor != NULL) Py_DecRef(table->entries[at].reference);
    free(table->entries);
    *table = (Table){NULL, 0, 0};
}

/* Whether `known` is of `tensor` itself, not of one that was at its address before; -1 with an exception. */
static int is_of(const Known *known, PyObject *tensor) {
    PyObject *alive = PyObject_CallFunctionObjArgs(known->reference, NULL);
    if (alive == NULL) return -1;
    Py_DecRef(alive); /* if it is the tensor, the caller has it */
    return alive == tensor;
}

/* Notes the row of a tensor; 0, or -1 with an exception. */
static int note(Table *table, PyObject *tensor, int64_t version, int64_t row) {
    PyObject *reference = unvisited(PyWeakref_NewRef(tensor, NULL));
    if (reference == NULL || reserve(table) < 0) {
        if (reference != NULL) Py_DecRef(reference);
        return -1;
    }
    Known *known = place_of(table, tensor);
    if (known->tensor != NULL) Py_DecRef(known->reference);
    else table->used++;
    *known = (Known){tensor, reference, version, row};
    return 0;
}

/* The measuring of one `batch.Batch`. Gradients are divided by `scale`. */
typedef struct {
    Sampling sampling;
    double scale;
    Table values, norms;
} Step;

/* As `batch.Batch._once`. Returns as `add_tensor`. */
static int64_t add_once(Step *step, PyObject *tensor, int is_norms) {
    Table *table = is_norms ? &step->norms : &step->values;
    double divisor = is_norms ? step->scale : 1.0;
    measured.tensor = NULL;
    int64_t version = number(PyObject_GetAttr(tensor, part[VERSION]));
    if (version < 0) { /* made in inference mode, where torch does not count writes */
        PyErr_Clear();
        return add_tensor(&step->sampling, tensor, is_norms, divisor);
    }
    if (table->used > 0) {
        const Known *known = place_of(table, tensor);
        int is_known = known->tensor != NULL && known->version == version ? is_of(known, tensor) : 0;
        if (is_known != 0) return is_known < 0 ? -2 : known->row;
    }
    int64_t row = add_tensor(&step->sampling, tensor, is_norms, divisor);
    return row >= 0 && note(table, tensor, version, row) < 0 ? -2 : row;
}

static const char *const STEP = "torchgraph_explorer.step";

static PyObject *row_or_none(int64_t row) {
    if (row == -2) return NULL;
    if (row >= 0) return PyLong_FromLongLong(row > ON_GPUS ? ON_GPUS - row : row);
    Py_IncRef(NONE);
    return NONE;
}

static int is_one_tensor(PyObject *const *arguments, ptrdiff_t count) {
    return count == 1 && is_tensor(part, arguments[0]) == 1;
}

/* Argument: a tensor. Returns the row of its values; None if it is no ordinary tensor, or there is no room. */
static PyObject *once_values(PyObject *self, PyObject *const *arguments, ptrdiff_t count) {
    Step *step = PyCapsule_GetPointer(self, STEP);
    if (step == NULL) return NULL;
    return row_or_none(is_one_tensor(arguments, count) ? add_once(step, arguments[0], 0) : -1);
}

/* Argument: a tensor. Returns the row of its norms; None if it is no ordinary tensor, or there is no room. */
static PyObject *once_norms(PyObject *self, PyObject *const *arguments, ptrdiff_t count) {
    Step *step = PyCapsule_GetPointer(self, STEP);
    if (step == NULL) return NULL;
    return row_or_none(is_one_tensor(arguments, count) ? add_once(step, arguments[0], 1) : -1);
}

/* Arguments: a tensor, and the divisor. Returns the row of its values, whether it has one or not. */
static PyObject *again_values(PyObject *self, PyObject *const *arguments, ptrdiff_t count) {
    Step *step = PyCapsule_GetPointer(self, STEP);
    if (step == NULL) return NULL;
    if (count != 2 || is_tensor(part, arguments[0]) != 1) return row_or_none(-1);
    double divisor = PyFloat_AsDouble(arguments[1]);
    return row_or_none(PyErr_Occurred() ? -2 : add_tensor(&step->sampling, arguments[0], 0, divisor));
}

/* Argument: a gradient as the backward pass left it. Returns as `once_values`, of the gradient without the loss scale. */
static PyObject *gradients_of(PyObject *self, PyObject *const *arguments, ptrdiff_t count) {
    Step *step = PyCapsule_GetPointer(self, STEP);
    if (step == NULL) return NULL;
    if (!is_one_tensor(arguments, count)) return row_or_none(-1);
    int is_scaled = step->scale != 1.0;
    return row_or_none(is_scaled ? add_tensor(&step->sampling, arguments[0], 0, step->scale) : add_once(step, arguments[0], 0));
}

/* Argument: floats. Adds a row for each; returns the number of the first one. None if they are not ordinary, or there is not
 * room for all. */
static PyObject *rows_of_numbers(PyObject *self, PyObject *const *arguments, ptrdiff_t count) {
    Step *step = PyCapsule_GetPointer(self, STEP);
    Elements numbers;
    if (step == NULL) return NULL;
    int is_plain = count == 1 ? plain_elements(arguments[0], &numbers) : 0;
    if (is_plain <= 0 || numbers.type != 0) return row_or_none(is_plain < 0 ? -2 : -1);
    Place *place = step->sampling.place;
    Rows *rows = place->rows;
    int64_t before = rows->rows, entries = rows->entries;
    for (int64_t at = 0; at < numbers.count; at++)
        if (added(place, add_row(rows, numbers.data + at * sizeof(float), 0, 1, 0, 1, 1, 1.0)) < 0) {
            rows->rows = before, rows->entries = entries;
            return row_or_none(-1);
        }
    return row_or_none(place->before + before);
}

/* Adds the row of floats; its number, -1 without room, -2 with an exception. */
static int64_t add_floats(const Sampling *sampling, const float *floats, int64_t count) {
    int64_t sample[3];
    if (sample_of(sampling, count, sample) < 0) return -2;
    Place *place = sampling->place;
    return added(place, add_row(place->rows, (const char *)floats, 0, count, sample[0], sample[1], sample[2], 1.0));
}

/* Adds the rows of the largest magnitudes of units, and of how far their values are apart; none of them, if there is no room
 * for both. Returns as `add_floats`, the number of the first one. */
static int64_t add_units(const Sampling *sampling, const Output *output, float *peaks, int is_new) {
    float *high = malloc(2 * (size_t)output->units * sizeof *high), *low = high + output->units;
    if (high == NULL) return PyErr_NoMemory(), -2;
    find_extremes(output, high, low);
    add_extremes(output->units, high, low, peaks, is_new);
    Rows *rows = sampling->place->rows;
    int64_t before = rows->rows, entries = rows->entries, first = add_floats(sampling, peaks, output->units);
    int64_t second = first < 0 ? first : add_floats(sampling, low, output->units);
    free(high);
    if (second >= 0) return first;
    if (rows == sampling->place->rows) rows->rows = before, rows->entries = entries;
    return second;
}

/* Arguments: an output, whether its units are along the second dimension and not the last one, their largest magnitudes so far,
 * and whether there are none yet. Returns the rows of both; None if it is no ordinary tensor, or there is no room. */
static PyObject *units_of(PyObject *self, PyObject *const *arguments, ptrdiff_t count) {
    Step *step = PyCapsule_GetPointer(self, STEP);
    if (step == NULL) return NULL;
    if (exchange == NULL || count != 4 || is_tensor(part, arguments[0]) != 1) return row_or_none(-1);
    int is_second = PyObject_IsTrue(arguments[1]), is_new = PyObject_IsTrue(arguments[3]), is_plain;
    if (is_second < 0 || is_new < 0) return NULL;
    Described tensor;
    Elements peaks;
    Output output;
    int64_t elements;
    if ((is_plain = describe(exchange, part, arguments[0], &tensor, &elements)) <= 0) return row_or_none(is_plain - 1);
    if (!output_of(&tensor, is_second, &output)) return row_or_none(-1);
    if ((is_plain = plain_elements(arguments[2], &peaks)) <= 0) return row_or_none(is_plain - 1);
    if (peaks.type != 0 || peaks.count != output.units) return row_or_none(-1);
    int64_t row = add_units(&step->sampling, &output, (float *)peaks.data, is_new);
    if (row < 0) return row_or_none(row);
    PyObject *first = PyLong_FromLongLong(row), *second = PyLong_FromLongLong(row + 1);
    PyObject *both = first == NULL || second == NULL ? NULL : PyTuple_Pack(2, first, second);
    if (first != NULL) Py_DecRef(first);
    if (second != NULL) Py_DecRef(second);
    return both;
}

static void free_step(Step *step) {
    empty(&step->values);
    empty(&step->norms);
    Py_DecRef(step->sampling.positions);
    Py_DecRef(step->sampling.step);
    free(step);
}

static void release(PyObject *capsule) {
    Step *step = PyCapsule_GetPointer(capsule, STEP);
    if (step != NULL) free_step(step);
}

/* A sample of a parameter, as in `capture/sampled_updates.py`. */
enum { RUNS = 64, RUN_LENGTH = 16 };

static int64_t size_of_sample(int64_t count) { return count < RUNS * RUN_LENGTH ? count : RUNS * RUN_LENGTH; }

/* One run of a sample: neighbouring elements of a parameter, and where they are in the sample. */
typedef void (*OfRun)(const float *values, float *sample, int64_t count, void *sums);

static void of_each_run(const Elements *elements, float *sample, OfRun act, void *sums) {
    const float *values = (const float *)elements->data;
    if (elements->count <= RUNS * RUN_LENGTH) {
        act(values, sample, elements->count, sums);
        return;
    }
    int64_t step = (elements->count - RUN_LENGTH) / (RUNS - 1);
    step -= step % 2 == 0; /* an even one may be a multiple of a row's length */
    for (int run = 0; run < RUNS; run++) act(values + run * step, sample + run * RUN_LENGTH, RUN_LENGTH, sums);
}

static void copy_run(const float *values, float *sample, int64_t count, void *sums) {
    (void)sums;
    memcpy(sample, values, (size_t)count * sizeof *sample);
}

/* Sums of squares, in parts, so that several are added at once: of how far the elements were moved, and of what they were. */
enum { LANES = 8 };
typedef struct {
    double moved[LANES], size[LANES];
} Squares;

static void compare_run(const float *values, float *sample, int64_t count, void *sums) {
    Squares *squares = sums;
    int64_t whole = count - count % LANES;
    for (int64_t at = 0; at < whole; at += LANES)
        for (int lane = 0; lane < LANES; lane++) {
            const double before = sample[at + lane], by = values[at + lane] - before;
            squares->moved[lane] += by * by;
            squares->size[lane] += before * before;
        }
    for (int64_t at = whole; at < count; at++) {
        const double before = sample[at], by = values[at] - before;
        squares->moved[at - whole] += by * by;
        squares->size[at - whole] += before * before;
    }
}

/* How far a parameter was moved since its sample was copied, as a share of what it was; 0 if that is zero. */
static float update_of(const Elements *elements, float *sample) {
    Squares squares = {{0}, {0}};
    of_each_run(elements, sample, compare_run, &squares);
    double moved = 0, size = 0;
    for (int lane = 0; lane < LANES; lane++) moved += squares.moved[lane], size += squares.size[lane];
    return size == 0 ? 0 : (float)(sqrt(moved) / sqrt(size));
}

/* Whether `tensor` is of floats that are in order in host memory; -1 with an exception. */
static int are_floats(PyObject *tensor, Elements *found) {
    int is_plain = tensor == NULL ? -1 : plain_elements(tensor, found);
    return is_plain > 0 ? found->type == 0 : is_plain;
}

/* Appends `made`; 0, or -1 with an exception. Takes the reference. */
static int append(PyObject *list, PyObject *made) {
    if (made == NULL) return -1;
    int failed = PyList_Append(list, made);
    Py_DecRef(made);
    return failed;
}

/* Copies the samples of `parameters`, and appends how many elements that is of each, and where the parameter is in memory. Returns 1;
 * 0 if one is not of floats that are in order in host memory; -1 with an exception. */
static int copy_all(PyObject *parameters, const Elements *room, PyObject *sizes, PyObject *places) {
    int64_t begin = 0;
    for (ptrdiff_t at = 0; at < PyList_Size(parameters); at++) {
        Elements elements;
        int is_fit = are_floats(PyList_GetItem(parameters, at), &elements);
        if (is_fit <= 0) return is_fit;
        int64_t size = size_of_sample(elements.count);
        if (begin + size > room->count) return 0;
        of_each_run(&elements, (float *)room->data + begin, copy_run, NULL);
        if (append(sizes, PyLong_FromLongLong(size)) < 0 || append(places, PyLong_FromVoidPtr((void *)elements.data)) < 0) return -1;
        begin += size;
    }
    return 1;
}

/* Arguments: parameters, in a list; and where their samples are put, floats, one sample behind the other. Returns how many elements
 * that is of each, and where each parameter is in memory, in two lists; None if one is not of floats that are in order in host memory. */
static PyObject *copy_samples(PyObject *self, PyObject *const *arguments, ptrdiff_t count) {
    (void)self;
    Elements room;
    int is_fit = count == 2 ? are_floats(arguments[1], &room) : 0;
    PyObject *sizes = is_fit > 0 ? PyList_New(0) : NULL, *places = sizes == NULL ? NULL : PyList_New(0), *both = NULL;
    if (places != NULL && copy_all(arguments[0], &room, sizes, places) > 0) both = PyTuple_Pack(2, sizes, places);
    if (sizes != NULL) Py_DecRef(sizes);
    if (places != NULL) Py_DecRef(places);
    return both != NULL ? both : row_or_none(PyErr_Occurred() ? -2 : -1);
}

/* Arguments: parameters; how many elements of each are sampled, and the samples from before, as the function above gives them; and
 * where is put how far each was moved since, floats. Returns where each parameter is in memory; 0 for one that is not as it was. */
static PyObject *compare_samples(PyObject *self, PyObject *const *arguments, ptrdiff_t count) {
    (void)self;
    Elements before, updates, elements;
    int is_fit = count == 4 ? are_floats(arguments[2], &before) : 0;
    if (is_fit > 0) is_fit = are_floats(arguments[3], &updates);
    PyObject *places = is_fit < 0 ? NULL : PyList_New(0);
    int64_t begin = 0;
    for (ptrdiff_t at = 0; places != NULL && is_fit > 0 && at < updates.count; at++) {
        PyObject *known = PyList_GetItem(arguments[1], at);
        int64_t size = known == NULL ? -1 : PyLong_AsLongLong(known);
        int is_there = size < 0 ? -1 : are_floats(PyList_GetItem(arguments[0], at), &elements);
        if (is_there > 0) is_there = size_of_sample(elements.count) == size && begin + size <= before.count;
        if (is_there > 0) ((float *)updates.data)[at] = update_of(&elements, (float *)before.data + begin);
        begin += size;
        if (is_there < 0 || append(places, PyLong_FromVoidPtr(is_there ? (void *)elements.data : NULL)) < 0) {
            Py_DecRef(places);
            places = NULL;
        }
    }
    return places;
}

/* No arguments. Tensors that were measured are not known any more. */
static PyObject *forget(PyObject *self, PyObject *const *arguments, ptrdiff_t count) {
    (void)arguments, (void)count;
    Step *step = PyCapsule_GetPointer(self, STEP);
    if (step == NULL) return NULL;
    empty(&step->values);
    empty(&step->norms);
    return row_or_none(-1);
}

enum { OF_A_STEP = 9 };

static PyMethodDef of_a_step[OF_A_STEP] = {
    {"values", once_values, METH_FASTCALL, NULL},
    {"norms", once_norms, METH_FASTCALL, NULL},
    {"values_again", again_values, METH_FASTCALL, NULL},
    {"gradients", gradients_of, METH_FASTCALL, NULL},
    {"numbers", rows_of_numbers, METH_FASTCALL, NULL},
    {"units", units_of, METH_FASTCALL, NULL},
    {"samples", copy_samples, METH_FASTCALL, NULL},
    {"updates", compare_samples, METH_FASTCALL, NULL},
    {"forget", forget, METH_FASTCALL, NULL},
};

/* Arguments: the address of a `Place`, how many elements are sampled at most (-1: all), a function from count and step to
 * `Sampler.positions`, the step, what gradients are divided by, and the address of a `Gpu`. Returns the functions for one step. */
static PyObject *begin(PyObject *self, PyObject *const *arguments, ptrdiff_t count) {
    (void)self;
    Step *step = count == 6 ? calloc(1, sizeof *step) : NULL;
    if (step == NULL) return PyErr_NoMemory();
    step->sampling = (Sampling){PyLong_AsVoidPtr(arguments[0]), PyLong_AsLongLong(arguments[1]), arguments[2], arguments[3],
                                PyLong_AsVoidPtr(arguments[5])};
    step->scale = PyFloat_AsDouble(arguments[4]);
    Py_IncRef(arguments[2]), Py_IncRef(arguments[3]);
    PyObject *capsule = PyErr_Occurred() ? NULL : PyCapsule_New(step, STEP, release);
    if (capsule == NULL) return free_step(step), NULL;
    PyObject *all = list_of_functions(of_a_step, OF_A_STEP, capsule);
    Py_DecRef(capsule);
    return all;
}

/* What `kept.c` reads. */
void *torchgraph_measured(void) { return &measured; }

static PyMethodDef of_the_module[] = {{"begin", begin, METH_FASTCALL, NULL}};

/* The function `begin`. `parts` is a tuple as listed above, `table` that of DLPack or NULL; the addresses are of functions
 * in `rows.c`. */
PyObject *torchgraph_tensor_functions(PyObject *parts, void *table, void *row_function, void *norms_function) {
    if (take_objects(part, parts, PARTS) < 0) return NULL;
    exchange = table;
    if (exchange != NULL && exchange->major != 1) exchange = NULL;
    add_row = (AddRow)row_function;
    add_norms = (AddNorms)norms_function;
    return PyCFunction_NewEx(&of_the_module[0], NULL, NULL);
}
