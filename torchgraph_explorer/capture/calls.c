/* Does for ordinary calls of modules what `recorded_calls.py`, `path_gradients.py` and `gradient_hooks.py` do, on the same
 * Python objects. Those are the reference: each function here first finds out whether everything is ordinary, and else
 * changes nothing and returns False. Then Python does it, as it does where this is not built.
 */

#include "../python_functions.h"

enum { EQUAL = 2 };

/* In the order in which `native_calls.py` gives them: types and functions, values, and names of attributes. */
enum {
    TENSOR, PARAMETER, HOOK_DICT, CALL, OPEN_CALL, INSIDE, GRADIENT_HOOK,
    CURRENT_BACKWARD, SEQUENCE_NUMBER, MODES, TRANSFORMS, FUNCTION_MODES, GRADIENTS_ON, SERIES_KEY, INFO, PLAIN_INPUTS, PLAIN_OUTPUTS, CREATION, MAKE_STALE, LEAVES_VIEWS,
    WITHOUT_GRADIENT, INPUT, OUTPUT, INPUT_PATH, PARAM, VALUE, GRAD_NORM, GRAD, NOTHING, NO_LEVEL, ARE_VISITED_AGAIN,
    N_IS_VIEW, N_REQUIRES_GRAD, N_GRAD_FN, N_OUTPUT_NR, N_SHAPE, N_DTYPE, N_SEQUENCE_NR, N_NEXT_FUNCTIONS, N_BACKWARD_HOOKS, N_REGISTER_HOOK_DICT, N_REGISTER_HOOK, N_F_BACK, N_IS_SKIPPED, N_FRAME, N_INDEX, N_EDGES, N_WALK, N_INNER, N_FIRST, N_FIRST_NODE, N_CROSSING, N_CHILDREN, N_PLACES, N_GIVEN, N_STARTS, N_ENDS, N_UNCHANGED, N_KEYS, N_SUMMANDS, N_CLOSED, N_TASK, N_HOOKS, N_OWN_PARAMETERS, N_NUMBER, N_PARENT, N_INPUTS, N_OUTPUTS, N_RUN, N_TAKE, N_GRAD, N_DICT_REFERENCE, N_ID, PARTS
};

static PyObject *part[PARTS];

/* References that are released when a function is left; those beyond the first ones are in `more`. */
enum { FIRST_KEPT = 400 };
typedef struct {
    PyObject *first[FIRST_KEPT], **more;
    int count, room;
} Kept;

static void begin_keeping(Kept *all) {
    all->more = NULL;
    all->count = all->room = 0;
}

/* Makes room for one more behind the first ones; 0, or -1 with an exception. */
static int make_room(Kept *all) {
    if (all->count - FIRST_KEPT < all->room) return 0;
    int room = all->room > 0 ? 2 * all->room : FIRST_KEPT;
    PyObject **more = realloc(all->more, (size_t)room * sizeof *more);
    if (more == NULL) return PyErr_NoMemory(), -1;
    all->more = more;
    all->room = room;
    return 0;
}

static PyObject *keep(Kept *all, PyObject *made) {
    if (made == NULL) return NULL;
    if (all->count < FIRST_KEPT) return all->first[all->count++] = made;
    if (make_room(all) < 0) {
        Py_DecRef(made);
        return NULL;
    }
    return all->more[all->count++ - FIRST_KEPT] = made;
}

static void release(Kept *all) {
    while (all->count > FIRST_KEPT) Py_DecRef(all->more[--all->count - FIRST_KEPT]);
    while (all->count > 0) Py_DecRef(all->first[--all->count]);
    free(all->more);
}

static PyObject *keep_unvisited(Kept *all, PyObject *made) { return keep(all, unvisited(made)); }

static PyObject *get(Kept *all, PyObject *object, int name) { return keep(all, PyObject_GetAttr(object, part[name])); }

/* The whole number that `made` is; `*failed` is set if it is none. Takes the reference. */
static int64_t number_of(PyObject *made, int *failed) {
    int64_t found = made == NULL ? -1 : PyLong_AsLongLong(made);
    if (made == NULL || (found == -1 && PyErr_Occurred())) *failed = 1;
    if (made != NULL) Py_DecRef(made);
    return found;
}

/* Numbers of autograd nodes need all 64 bits: an accumulator has the largest one. */
static uint64_t node_number(PyObject *node, int *failed) {
    PyObject *made = PyObject_CallMethodObjArgs(node, part[N_SEQUENCE_NR], NULL);
    uint64_t found = made == NULL ? 0 : PyLong_AsUnsignedLongLong(made);
    if (made == NULL || PyErr_Occurred()) *failed = 1;
    if (made != NULL) Py_DecRef(made);
    return found;
}

static int64_t attribute(PyObject *object, int name, int *failed) {
    return number_of(PyObject_GetAttr(object, part[name]), failed);
}

static int is_exactly(PyObject *object, int type) { return type_of(object) == part[type]; }

/* Whether nothing of the user's or of torch's looks at what is done to tensors, and no backward pass is on. */
static int is_quiet(void) {
    int failed = 0;
    if (number_of(PyObject_CallFunctionObjArgs(part[MODES], NULL), &failed) != 0 || failed) return failed ? -1 : 0;
    PyObject *transform = PyObject_CallFunctionObjArgs(part[TRANSFORMS], NULL);
    if (transform == NULL) return -1;
    Py_DecRef(transform);
    if (transform != NONE) return 0;
    int is_on = truth(PyObject_CallFunctionObjArgs(part[FUNCTION_MODES], NULL));
    return is_on < 0 ? -1 : !is_on;
}

/* What is needed of one step, as `native_calls.py` gives it: the Python objects in which it is recorded. */
enum {
    OPEN, DONE, COUNTS, ROWS, DROPPED, IS_HELD, ACQUIRE, RELEASE, VALUES, HOOKS, HOOKS_OF_OUTPUTS, HOOKS_OF_PATHS, PUT,
    LENGTH, UNMEASURED, MEASURE_PARAMETERS, BEGIN_FACTS, END_FACTS, LOOKED_AT_FIRST, LOOKED_AT_LAST, OBSERVE, ON_PATH,
    LEAVE_EDGES, KEEP_AT_ONCE, KEEP, KNOWN, PAUSE, END_COST, RESUME, OBJECTS
};

/* A call of a module more than so many times is not always recorded: see `call_spread.py`. */
enum { EVERY_CALL_UP_TO = 1024 };

typedef struct {
    PyObject *of[OBJECTS];
    unsigned long thread;
    int64_t most_nodes;
} Step;

static const char *const STEP = "torchgraph_explorer.calls";

static int acquire(Step *step) {
    PyObject *made = PyObject_CallFunctionObjArgs(step->of[ACQUIRE], NULL);
    if (made == NULL) return -1;
    Py_DecRef(made);
    return 0;
}

/* Releases the lock, and leaves an exception as it is. */
static void let_go(PyObject *release_lock) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *made = PyObject_CallFunctionObjArgs(release_lock, NULL);
    if (made != NULL) Py_DecRef(made);
    else PyErr_Clear();
    PyErr_Restore(type, value, traceback);
}

/* A tensor of a call. */
typedef struct {
    PyObject *path, *tensor, *info, *edge; /* without an edge, it requires no gradient */
} Found;

/* The tensors among the arguments or results of a call, each with its place there. Calls with more are left to Python. */
enum { MOST_FOUND = 16 };
typedef struct {
    Found of[MOST_FOUND];
    int count;
} AllFound;

/* Whether gradient comes to a view, and it is not stale: see `path_gradients.is_stale`. 1, 0, or -1 with an exception. */
static int is_fresh_view(Kept *all, PyObject *view) {
    int is_left = truth(PyObject_CallFunctionObjArgs(part[LEAVES_VIEWS], NULL));
    if (is_left != 0) return is_left < 0 ? -1 : 0;
    PyObject *creation = keep(all, PyObject_CallFunctionObjArgs(part[CREATION], view, NULL));
    int is_without = creation == NULL ? -1 : PySequence_Contains(part[WITHOUT_GRADIENT], creation), failed = 0;
    if (is_without != 0) return is_without < 0 ? -1 : 0;
    int64_t before = number_of(PyObject_CallFunctionObjArgs(part[SEQUENCE_NUMBER], NULL), &failed);
    if (failed || get(all, view, N_GRAD_FN) == NULL) return -1;
    int64_t after = number_of(PyObject_CallFunctionObjArgs(part[SEQUENCE_NUMBER], NULL), &failed);
    if (failed || before == after) return failed ? -1 : 1;
    return keep(all, PyObject_CallFunctionObjArgs(part[MAKE_STALE], view, NULL)) == NULL ? -1 : 0; /* asking has used it */
}

/* Finds what is needed of `tensor`. Returns 1; 0 if it is no ordinary one; -1 with an exception. A stale view is none. */
static int find(Kept *all, PyObject *tensor, PyObject *path, Found *found) {
    if (!is_exactly(tensor, TENSOR)) return 0;
    PyObject *shape = get(all, tensor, N_SHAPE), *dtype = get(all, tensor, N_DTYPE);
    PyObject *requires = get(all, tensor, N_REQUIRES_GRAD);
    if (shape == NULL || dtype == NULL || requires == NULL) return PyErr_Clear(), 0; /* a nested one has no shape */
    found->path = path;
    found->tensor = tensor;
    found->edge = NULL;
    if (requires == &_Py_TrueStruct) {
        int is_view = truth(PyObject_CallMethodObjArgs(tensor, part[N_IS_VIEW], NULL));
        if (is_view != 0 && (is_view < 0 || (is_view = is_fresh_view(all, tensor)) <= 0)) return is_view;
        PyObject *node = get(all, tensor, N_GRAD_FN), *at = get(all, tensor, N_OUTPUT_NR);
        if (node == NULL || at == NULL) return -1;
        if (node == NONE) return 0;
        if ((found->edge = keep_unvisited(all, PyTuple_Pack(2, node, at))) == NULL) return -1;
    }
    found->info = keep(all, PyObject_CallFunctionObjArgs(part[INFO], path, shape, dtype, requires, NULL));
    return found->info == NULL ? -1 : 1;
}

/* As `find`, of all tensors in `listed`: a list of pairs of a path and a tensor, or None where Python has to look. Takes the
 * reference to `listed`. */
static int find_listed(Kept *all, PyObject *listed, AllFound *found) {
    found->count = 0;
    if (keep(all, listed) == NULL) return -1;
    if (listed == NONE || PyList_Size(listed) > MOST_FOUND) return 0;
    while (found->count < PyList_Size(listed)) {
        PyObject *pair = PyList_GetItem(listed, found->count);
        int is_fit = find(all, PyTuple_GetItem(pair, 1), PyTuple_GetItem(pair, 0), &found->of[found->count]);
        if (is_fit <= 0) return is_fit;
        found->count++;
    }
    return 1;
}

/* As `find`, of all tensors that a module is called with. */
static int find_inputs(Kept *all, PyObject *args, PyObject *kwargs, AllFound *found) {
    if (PyTuple_Size(args) != 1 || PyDict_Size(kwargs) != 0 || !is_exactly(PyTuple_GetItem(args, 0), TENSOR))
        return find_listed(all, PyObject_CallFunctionObjArgs(part[PLAIN_INPUTS], args, kwargs, NULL), found);
    found->count = 1;
    return find(all, PyTuple_GetItem(args, 0), part[INPUT_PATH], found->of);
}

/* As `find`, of all tensors that a module has returned. */
static int find_outputs(Kept *all, PyObject *output, AllFound *found) {
    if (!is_exactly(output, TENSOR))
        return find_listed(all, PyObject_CallFunctionObjArgs(part[PLAIN_OUTPUTS], output, NULL), found);
    found->count = 1;
    return find(all, output, part[OUTPUT], found->of);
}

/* What is known of each, in a tuple. */
static PyObject *infos_of(Kept *all, const AllFound *found) {
    PyObject *made = keep_unvisited(all, PyTuple_New(found->count));
    for (int at = 0; made != NULL && at < found->count; at++) {
        Py_IncRef(found->of[at].info);
        PyTuple_SetItem(made, at, found->of[at].info);
    }
    return made;
}

/* Whether `outer` is `frame` or among its callers; -1 with an exception. */
static int is_caller(Kept *all, PyObject *outer, PyObject *frame) {
    for (int depth = 0; depth < 64 && frame != NONE; depth++) {
        if (frame == outer) return 1;
        if ((frame = get(all, frame, N_F_BACK)) == NULL) return -1;
    }
    return 0;
}

/* The frame of torch, which has called the Python function that this one is called by. */
static PyObject *users_frame(Kept *all) {
    PyObject *frame = PyEval_GetFrame();
    if (frame == NULL || (frame = get(all, frame, N_F_BACK)) == NULL) return NULL;
    return frame == NONE ? NULL : frame;
}

/* Whether the autograd graph is still so short that it may be looked at. `*next` is the number that the next node of this
 * thread will get, a borrowed reference. -1 with an exception. */
static int is_short(Step *step, Kept *all, PyObject **next) {
    int failed = 0;
    if ((*next = keep(all, PyObject_CallFunctionObjArgs(part[SEQUENCE_NUMBER], NULL))) == NULL) return -1;
    int64_t number = PyLong_AsLongLong(*next), first = attribute(step->of[LENGTH], N_FIRST_NODE, &failed);
    return failed || (number == -1 && PyErr_Occurred()) ? -1 : number - first <= step->most_nodes;
}

/* Whether the call is one of the step's, and an ordinary one. Returns 1, 0, or -1 with an exception. */
static int is_ordinary(Step *step, PyObject *name) {
    int is_dropped = PySequence_Contains(step->of[DROPPED], name);
    if (is_dropped != 0) return is_dropped < 0 ? -1 : 0;
    int failed = 0;
    if (number_of(PyObject_CallFunctionObjArgs(part[CURRENT_BACKWARD], NULL), &failed) != -1) return 0;
    return failed ? -1 : is_quiet();
}

static PyObject *key_of(Kept *all, PyObject *name, PyObject *number, int role, PyObject *path, int kind) {
    return keep(all, PyObject_CallFunctionObjArgs(part[SERIES_KEY], name, number, part[role], path, part[kind], NULL));
}

/* What is known of a call from earlier steps: the keys of its series, and the `Call` as it began and as it ended. A list of
 * these, None where nothing is known. */
enum { IN, IN_GRADIENT, OUT, OUT_GRADIENT, BEGUN, ENDED, KNOWN_PARTS };

/* Appends one in which nothing is known; 0, or -1 with an exception. */
static int append_unknown(PyObject *calls) {
    PyObject *made = unvisited(PyList_New(KNOWN_PARTS));
    if (made == NULL) return -1;
    for (int at = 0; at < KNOWN_PARTS; at++) {
        Py_IncRef(NONE);
        PyList_SetItem(made, at, NONE);
    }
    int failed = PyList_Append(calls, made);
    Py_DecRef(made);
    return failed;
}

/* What is known of call `number` of module `name`, a borrowed reference. */
static PyObject *known_of(Step *step, Kept *all, PyObject *name, int64_t number) {
    PyObject *calls = PyDict_GetItemWithError(step->of[KNOWN], name);
    if (calls == NULL) {
        if (PyErr_Occurred() || (calls = keep_unvisited(all, PyList_New(0))) == NULL) return NULL;
        if (PyDict_SetItem(step->of[KNOWN], name, calls) < 0) return NULL;
    }
    while (PyList_Size(calls) <= number)
        if (append_unknown(calls) < 0) return NULL;
    return PyList_GetItem(calls, number);
}

/* Notes `found`, a borrowed reference, and returns it. */
static PyObject *note_known(PyObject *known, int at, PyObject *found) {
    if (found == NULL) return NULL;
    Py_IncRef(found);
    return PyList_SetItem(known, at, found) < 0 ? NULL : found;
}

/* The key of a series of a call. `at` says which one; that of the call's only tensor is known from earlier steps. */
static PyObject *key_at(Kept *all, PyObject *known, int at, PyObject *name, PyObject *number, PyObject *path) {
    const int is_input = at == IN || at == IN_GRADIENT, kind = at == IN || at == OUT ? VALUE : GRAD_NORM;
    const int is_only = path == part[is_input ? INPUT_PATH : OUTPUT];
    PyObject *key = is_only ? PyList_GetItem(known, at) : NONE;
    if (key != NONE) return key;
    key = key_of(all, name, number, is_input ? INPUT : OUTPUT, path, kind);
    return is_only ? note_known(known, at, key) : key;
}

/* The `Call` that is known, if it is the same one; else a new one. A borrowed reference. */
static PyObject *call_of(Kept *all, PyObject *known, int at, PyObject *name, PyObject *number, PyObject *parent,
                         PyObject *inputs, PyObject *outputs) {
    PyObject *before = PyList_GetItem(known, at);
    if (before == NULL) return NULL;
    if (before != NONE) {
        PyObject *had = get(all, before, N_PARENT), *in = get(all, before, N_INPUTS), *out = get(all, before, N_OUTPUTS);
        if (had == NULL || in == NULL || out == NULL) return NULL;
        int is_same = PyObject_RichCompareBool(had, parent, EQUAL);
        if (is_same < 0) return NULL;
        is_same = is_same && PyTuple_Size(in) == PyTuple_Size(inputs) && PyTuple_Size(out) == PyTuple_Size(outputs);
        for (ptrdiff_t i = 0; is_same && i < PyTuple_Size(in); i++)
            is_same = PyTuple_GetItem(in, i) == PyTuple_GetItem(inputs, i);
        for (ptrdiff_t i = 0; is_same && i < PyTuple_Size(out); i++)
            is_same = PyTuple_GetItem(out, i) == PyTuple_GetItem(outputs, i);
        if (is_same) return before;
    }
    PyObject *made = PyObject_CallFunctionObjArgs(part[CALL], name, number, parent, inputs, outputs, NULL);
    return note_known(known, at, keep(all, made));
}

/* Has a tensor kept whole: by `at_once`, or, where that is None or cannot, by `in_full`, where that is not None. 0, or -1 with
 * an exception. */
static int keep_whole(PyObject *at_once, PyObject *in_full, PyObject *key, PyObject *tensor) {
    if (in_full == NONE) return 0;
    int is_kept = at_once == NONE ? 0 : truth(PyObject_CallFunctionObjArgs(at_once, key, tensor, NULL));
    if (is_kept > 0) return 0;
    if (is_kept < 0) PyErr_Clear(); /* Python tries it, too, and says why it fails */
    PyObject *done = PyObject_CallFunctionObjArgs(in_full, key, tensor, NULL);
    if (done == NULL) return -1;
    Py_DecRef(done);
    return 0;
}

/* Measures `found`, of call `opened`, and has it kept; 0, or -1 with an exception. */
static int observe(Step *step, Kept *all, PyObject *opened, PyObject *key, int role, const Found *found) {
    PyObject *row = keep(all, PyObject_CallFunctionObjArgs(step->of[VALUES], found->tensor, NULL));
    if (row == NULL) return -1;
    if (row != NONE) {
        if (PyDict_SetItem(step->of[ROWS], key, row) < 0) return -1;
        return keep_whole(step->of[KEEP_AT_ONCE], step->of[KEEP], key, found->tensor);
    }
    PyObject *done = PyObject_CallFunctionObjArgs(step->of[OBSERVE], opened, part[role], found->info, found->tensor, NULL);
    return keep(all, done) == NULL ? -1 : 0;
}

/* As `observe`, of all tensors among the arguments or results of the call. */
static int observe_all(Step *step, Kept *all, PyObject *opened, PyObject *known, int at, PyObject *name, PyObject *number,
                       const AllFound *found) {
    for (int i = 0; i < found->count; i++) {
        PyObject *key = key_at(all, known, at, name, number, found->of[i].path);
        if (key == NULL || observe(step, all, opened, key, at == IN ? INPUT : OUTPUT, &found->of[i]) < 0) return -1;
    }
    return 0;
}

/* Tells `act`, of a `StepFactsRecorder`, of a call whose module it looks at; 0, or -1 with an exception. */
static int tell_facts(Step *step, Kept *all, int act, PyObject *name, PyObject *number, const AllFound *found) {
    int is_looked_at = PySequence_Contains(step->of[act == BEGIN_FACTS ? LOOKED_AT_FIRST : LOOKED_AT_LAST], name);
    if (is_looked_at <= 0) return is_looked_at;
    PyObject *described = keep(all, PyList_New(0));
    for (int i = 0; described != NULL && i < found->count; i++) {
        PyObject *one = keep(all, PyTuple_Pack(2, found->of[i].info, found->of[i].tensor));
        if (one == NULL || PyList_Append(described, one) < 0) return -1;
    }
    if (described == NULL) return -1;
    return keep(all, PyObject_CallFunctionObjArgs(step->of[act], name, number, described, NULL)) == NULL ? -1 : 0;
}

/* As `Parameters.measure_values`; 0, or -1 with an exception. */
static int measure_parameters(Step *step, Kept *all, PyObject *name) {
    PyObject *module = PyDict_GetItemWithError(step->of[UNMEASURED], name);
    if (module == NULL) return PyErr_Occurred() ? -1 : 0;
    PyObject *parameters = get(all, module, N_OWN_PARAMETERS), *path, *parameter;
    if (parameters == NULL) return -1;
    ptrdiff_t at = 0;
    int is_ordinary_one = PyDict_Size(parameters) >= 0; /* that of a scripted module is no dictionary */
    if (!is_ordinary_one) PyErr_Clear();
    while (is_ordinary_one && PyDict_Next(parameters, &at, &path, &parameter)) {
        if (parameter == NONE) continue;
        Py_IncRef(path), Py_IncRef(parameter); /* another thread may run, and put another one in its place */
        if (keep(all, path) == NULL || keep(all, parameter) == NULL) return -1;
        PyObject *key = NULL, *row = is_exactly(parameter, PARAMETER)
            ? keep(all, PyObject_CallFunctionObjArgs(step->of[VALUES], parameter, NULL)) : NONE;
        if (row == NULL) return -1;
        if (row == NONE) is_ordinary_one = 0;
        else if ((key = key_of(all, name, NONE, PARAM, path, VALUE)) == NULL || PyDict_SetItem(step->of[ROWS], key, row) < 0
                 || keep_whole(step->of[KEEP_AT_ONCE], step->of[KEEP], key, parameter) < 0)
            return -1;
    }
    if (is_ordinary_one) return PyDict_DelItem(step->of[UNMEASURED], name);
    PyObject *done = PyObject_CallFunctionObjArgs(step->of[MEASURE_PARAMETERS], name, NULL);
    return keep(all, done) == NULL ? -1 : 0;
}

/* As `InsideGradients.take`; 0, or -1 with an exception. */
static int take_inside(Kept *all, PyObject *inside, PyObject *index, PyObject *edge, PyObject *path) {
    PyObject *places = get(all, inside, N_PLACES), *given = get(all, inside, N_GIVEN);
    PyObject *place = places == NULL ? NULL : PyDict_GetItemWithError(places, edge);
    if (given == NULL || (place == NULL && PyErr_Occurred())) return -1;
    int is_given = PyDict_Contains(given, index);
    if (place == NULL || is_given != 0) {
        if (is_given < 0) return -1;
        return keep(all, PyObject_CallMethodObjArgs(inside, part[N_TAKE], index, edge, path, NULL)) == NULL ? -1 : 0;
    }
    PyObject *one = keep_unvisited(all, PyTuple_Pack(3, place, edge, path)), *list = keep(all, PyList_New(0));
    return one == NULL || list == NULL || PyList_Append(list, one) < 0 ? -1 : PyDict_SetItem(given, index, list);
}

/* As `EdgeSeries.enter`, of a call with these `edges`; 0, or -1 with an exception. */
static int enter_edges(Kept *all, PyObject *outer, PyObject *index, PyObject *edges) {
    PyObject *inside = get(all, outer, N_INNER), *edge, *paths;
    if (inside == NULL) return -1;
    if (inside == NONE) {
        PyObject *walk = get(all, outer, N_WALK), *first = walk == NULL ? NULL : get(all, walk, N_FIRST);
        PyObject *around = get(all, outer, N_EDGES);
        if (first == NULL || around == NULL) return -1;
        inside = keep(all, PyObject_CallFunctionObjArgs(part[INSIDE], first, around, NULL));
        if (inside == NULL || PyObject_SetAttr(outer, part[N_INNER], inside) < 0) return -1;
    }
    ptrdiff_t position = 0;
    while (PyDict_Next(edges, &position, &edge, &paths))
        if (take_inside(all, inside, index, edge, PyList_GetItem(paths, 0)) < 0) return -1;
    return 0;
}

/* Notes at which paths gradient is delivered to which edges; 0, or -1 with an exception. */
static int note_edges(Kept *all, PyObject *edges, const AllFound *given) {
    for (int at = 0; at < given->count; at++) {
        const Found *one = &given->of[at];
        if (one->edge == NULL) continue;
        PyObject *paths = PyDict_GetItemWithError(edges, one->edge);
        if (paths == NULL) {
            if (PyErr_Occurred() || (paths = keep(all, PyList_New(0))) == NULL) return -1;
            if (PyDict_SetItem(edges, one->edge, paths) < 0) return -1;
        }
        if (PyList_Append(paths, one->path) < 0) return -1;
    }
    return 0;
}

/* As `ForwardRecorder.is_ours` and `enter`. Returns 1; 0 if Python has to do it; -1 with an exception. */
static int enter(Step *step, Kept *all, PyObject *name, PyObject *args, PyObject *kwargs) {
    ptrdiff_t depth = PyList_Size(step->of[OPEN]);
    if (depth < 1) return 0;
    int is_fit = is_ordinary(step, name);
    if (is_fit <= 0) return is_fit;
    PyObject *outer = PyList_GetItem(step->of[OPEN], depth - 1), *frame = users_frame(all);
    if (frame == NULL) return PyErr_Occurred() ? -1 : 0;
    Py_IncRef(outer);
    keep(all, outer);
    int is_skipped = truth(PyObject_GetAttr(outer, part[N_IS_SKIPPED]));
    if (is_skipped != 0) return is_skipped < 0 ? -1 : 0;
    PyObject *outer_frame = get(all, outer, N_FRAME), *known = PyDict_GetItemWithError(step->of[COUNTS], name);
    if (outer_frame == NULL || (known == NULL && PyErr_Occurred())) return -1;
    if ((is_fit = is_caller(all, outer_frame, frame)) <= 0) return is_fit;
    int64_t before = known == NULL ? -1 : PyLong_AsLongLong(known);
    PyObject *next;
    if (before + 1 >= EVERY_CALL_UP_TO || (is_fit = is_short(step, all, &next)) <= 0) return is_fit < 0 ? -1 : 0;
    AllFound given;
    if ((is_fit = find_inputs(all, args, kwargs, &given)) <= 0) return is_fit;

    PyObject *number = keep(all, PyLong_FromLongLong(before + 1)), *parent = get(all, outer, N_INDEX);
    PyObject *index = keep(all, PyLong_FromLongLong(PyList_Size(step->of[DONE])));
    if (number == NULL || parent == NULL || index == NULL || PyDict_SetItem(step->of[COUNTS], name, number) < 0) return -1;
    PyObject *opened = keep(all, PyObject_CallFunctionObjArgs(part[OPEN_CALL], index, name, number, frame, next, NULL));
    PyObject *edges = opened == NULL ? NULL : get(all, opened, N_EDGES);
    if (edges == NULL || note_edges(all, edges, &given) < 0) return -1;
    PyObject *known_call = known_of(step, all, name, before + 1), *inputs = infos_of(all, &given);
    if (known_call == NULL || inputs == NULL) return -1;
    PyObject *call = call_of(all, known_call, BEGUN, name, number, parent, inputs, part[NOTHING]);
    if (call == NULL || PyList_Append(step->of[DONE], call) < 0) return -1;
    if (enter_edges(all, outer, index, edges) < 0 || PyList_Append(step->of[OPEN], opened) < 0) return -1;
    if (observe_all(step, all, opened, known_call, IN, name, number, &given) < 0) return -1;
    if (tell_facts(step, all, BEGIN_FACTS, name, number, &given) < 0) return -1;
    return measure_parameters(step, all, name) < 0 ? -1 : 1;
}

/* Adds a series to what a `GradientHook` reads; 0, or -1 with an exception. */
static int add_key(Kept *all, PyObject *hook, PyObject *key) {
    PyObject *keys = get(all, hook, N_KEYS), *one = keep_unvisited(all, PyTuple_Pack(1, key));
    if (keys == NULL || one == NULL) return -1;
    PyObject *more = PyTuple_Size(keys) == 0 ? one : keep(all, PySequence_Concat(keys, one));
    return more == NULL ? -1 : PyObject_SetAttr(hook, part[N_KEYS], more);
}

/* The number of the next hook in the dictionary of a tensor: torch counts those of others from 0 on. */
static int64_t next_hook = -1;

/* Notes a hook that is to be removed: a weak reference to the dictionary it is in, and the key there. */
static int note_put(Step *step, PyObject *hooks, PyObject *key) {
    return PyList_Append(step->of[PUT], hooks) < 0 ? -1 : PyList_Append(step->of[PUT], key);
}

/* Takes a dictionary of hooks, in which ours is alone, from those that the garbage collector visits: a step of very many calls
 * makes so many that the collector searches everything. When the user adds a hook, Python has the collector visit it again; where
 * it does not, from 3.14 on, the dictionary is left as it is. */
static void leave_unvisited(PyObject *hooks) {
    if (part[ARE_VISITED_AGAIN] == &_Py_TrueStruct) unvisited(hooks);
}

/* As `Tensor.register_hook`, with a weak reference to the dictionary and the number in it in place of a handle. */
static int put_on(Step *step, Kept *all, const Found *found, PyObject *hook) {
    PyObject *hooks = get(all, found->tensor, N_BACKWARD_HOOKS);
    if (hooks == NULL) return -1;
    const int is_ours = hooks == NONE;
    if (is_ours) {
        hooks = keep(all, PyObject_CallFunctionObjArgs(part[HOOK_DICT], NULL));
        if (hooks == NULL || PyObject_SetAttr(found->tensor, part[N_BACKWARD_HOOKS], hooks) < 0) return -1;
        PyObject *node = PyTuple_GetItem(found->edge, 0);
        PyObject *done = PyObject_CallMethodObjArgs(node, part[N_REGISTER_HOOK_DICT], found->tensor, NULL);
        if (keep(all, done) == NULL) return -1;
    }
    PyObject *number = keep(all, PyLong_FromLongLong(next_hook--)), *reference = keep_unvisited(all, PyWeakref_NewRef(hooks, NULL));
    if (number == NULL || reference == NULL || note_put(step, reference, number) < 0) return -1;
    if (PyObject_SetItem(hooks, number, hook) < 0) return -1;
    if (is_ours) leave_unvisited(hooks);
    return 0;
}

/* As `GradientHooks.on_tensor`. Returns the hook, a borrowed reference. */
static PyObject *hook_output(Step *step, Kept *all, const Found *found, PyObject *key) {
    PyObject *hook = PyDict_GetItemWithError(step->of[HOOKS_OF_OUTPUTS], found->edge);
    if (hook == NULL) {
        if (PyErr_Occurred()) return NULL;
        hook = keep_unvisited(all, PyObject_CallFunctionObjArgs(part[GRADIENT_HOOK], step->of[HOOKS], part[NO_LEVEL], NULL));
        if (hook == NULL || PyDict_SetItem(step->of[HOOKS_OF_OUTPUTS], found->edge, hook) < 0) return NULL;
        if (put_on(step, all, found, hook) < 0) return NULL;
    }
    return add_key(all, hook, key) < 0 ? NULL : hook;
}

/* As `GradientHooks.on_path`; 0, or -1 with an exception. */
static int hook_path(Step *step, Kept *all, PyObject *consumers, PyObject *key) {
    if (PyList_Size(consumers) != 1)
        return keep(all, PyObject_CallFunctionObjArgs(step->of[ON_PATH], consumers, key, NULL)) == NULL ? -1 : 0;
    PyObject *consumer = PyList_GetItem(consumers, 0), *hook = PyDict_GetItemWithError(step->of[HOOKS_OF_PATHS], consumer);
    if (hook == NULL) {
        if (PyErr_Occurred()) return -1;
        PyObject *node = PyTuple_GetItem(consumer, 0), *slot = PyTuple_GetItem(consumer, 1);
        hook = keep_unvisited(all, PyObject_CallFunctionObjArgs(part[GRADIENT_HOOK], step->of[HOOKS], part[NO_LEVEL], slot, NULL));
        if (hook == NULL || PyDict_SetItem(step->of[HOOKS_OF_PATHS], consumer, hook) < 0) return -1;
        PyObject *handle = keep(all, PyObject_CallMethodObjArgs(node, part[N_REGISTER_HOOK], hook, NULL));
        PyObject *reference = handle == NULL ? NULL : get(all, handle, N_DICT_REFERENCE);
        PyObject *number = reference == NULL ? NULL : get(all, handle, N_ID);
        if (number == NULL || note_put(step, unvisited(reference), number) < 0) return -1;
        PyObject *hooks = keep(all, PyObject_CallFunctionObjArgs(reference, NULL));
        if (hooks == NULL) return -1;
        if (PyDict_Size(hooks) == 1) leave_unvisited(hooks);
    }
    return add_key(all, hook, key);
}

/* An edge that leads out of a call: with the node and the position of the summand, or with consumers that are known. */
typedef struct {
    PyObject *edge, *node, *consumers;
    int slot;
} Crossing;

/* Calls with more are left to Python. Nodes that were seen are looked for one after the other. */
enum { MOST_NODES = 512, MOST_CROSSINGS = 512 };
static const uint64_t ACCUMULATOR = UINT64_MAX;

typedef struct {
    Kept *all;
    PyObject *todo[MOST_NODES], *seen[MOST_NODES];
    Crossing crossings[MOST_CROSSINGS];
    int todos, seens, crossed;
    PyObject *inputs, *children; /* without children, NONE */
    uint64_t first;
} Walking;

static int push(Walking *walk, PyObject *node) {
    if (walk->todos == MOST_NODES) return 0;
    walk->todo[walk->todos++] = node;
    return 1;
}

static int cross(Walking *walk, Crossing found) {
    if (walk->crossed == MOST_CROSSINGS) return 0;
    walk->crossings[walk->crossed++] = found;
    return 1;
}

/* Whether `edge` is an input of the call, or leads to a node that is older. `*number` is then or else that of the node. */
static int leads_out(Walking *walk, PyObject *edge, uint64_t *number) {
    int is_input = PyDict_Contains(walk->inputs, edge), failed = 0;
    if (is_input != 0) return is_input;
    *number = node_number(PyTuple_GetItem(edge, 0), &failed);
    return failed ? -1 : *number < walk->first;
}

/* As `Walk._through`. The three functions return 1; 0 if there are too many nodes; -1 with an exception. */
static int through(Walking *walk, PyObject *children) {
    for (ptrdiff_t at = 0; at < PyList_Size(children); at++) {
        PyObject *crossing = get(walk->all, PyList_GetItem(children, at), N_CROSSING), *edge, *consumers;
        if (crossing == NULL) return -1;
        ptrdiff_t position = 0;
        while (PyDict_Next(crossing, &position, &edge, &consumers)) {
            uint64_t number;
            int is_out = leads_out(walk, edge, &number);
            if (is_out < 0) return -1;
            if (!(is_out ? cross(walk, (Crossing){edge, NULL, consumers, 0}) : push(walk, PyTuple_GetItem(edge, 0)))) return 0;
        }
    }
    return 1;
}

static int visit(Walking *walk, PyObject *node) {
    PyObject *edges = get(walk->all, node, N_NEXT_FUNCTIONS);
    if (edges == NULL) return -1;
    for (int slot = 0; slot < (int)PyTuple_Size(edges); slot++) {
        PyObject *edge = PyTuple_GetItem(edges, slot), *source = PyTuple_GetItem(edge, 0);
        if (source == NONE) continue;
        uint64_t number;
        int is_out = leads_out(walk, edge, &number), is_known = 0;
        if (is_out < 0) return -1;
        if (is_out) {
            if (!cross(walk, (Crossing){edge, node, NULL, slot})) return 0;
            continue;
        }
        if (number == ACCUMULATOR && walk->children != NONE) is_known = PyDict_Contains(walk->children, source);
        if (is_known < 0) return -1;
        if ((number != ACCUMULATOR || is_known) && !push(walk, source)) return 0; /* nothing leads on from an accumulator */
    }
    return 1;
}

static int walk_back(Walking *walk) {
    while (walk->todos > 0) {
        PyObject *node = walk->todo[--walk->todos];
        int is_seen = 0, failed = 0;
        for (int at = 0; at < walk->seens; at++) is_seen |= walk->seen[at] == node;
        uint64_t number = is_seen ? 0 : node_number(node, &failed);
        if (failed) return -1;
        if (is_seen || number < walk->first) continue;
        if (walk->seens == MOST_NODES) return 0;
        walk->seen[walk->seens++] = node;
        PyObject *children = walk->children == NONE ? NULL : PyDict_GetItemWithError(walk->children, node);
        if (children == NULL && PyErr_Occurred()) return -1;
        int is_done = children != NULL ? through(walk, children) : visit(walk, node);
        if (is_done <= 0) return is_done;
    }
    return 1;
}

/* Adds what was found to the `crossing` of a `Walk`; 0, or -1 with an exception. */
static int note_crossing(Kept *all, PyObject *crossing, const Crossing *found) {
    PyObject *known = PyDict_GetItemWithError(crossing, found->edge);
    if (known == NULL) {
        if (PyErr_Occurred() || (known = keep(all, PyList_New(0))) == NULL) return -1;
        if (PyDict_SetItem(crossing, found->edge, known) < 0) return -1;
    }
    if (found->consumers == NULL) {
        PyObject *slot = keep(all, PyLong_FromLongLong(found->slot));
        PyObject *consumer = slot == NULL ? NULL : keep_unvisited(all, PyTuple_Pack(2, found->node, slot));
        return consumer == NULL ? -1 : PyList_Append(known, consumer);
    }
    ptrdiff_t had = PyList_Size(known);
    for (ptrdiff_t at = 0; at < PyList_Size(found->consumers); at++) {
        PyObject *consumer = PyList_GetItem(found->consumers, at);
        int is_there = had > 0 ? PySequence_Contains(known, consumer) : 0;
        if (is_there < 0 || (!is_there && PyList_Append(known, consumer) < 0)) return -1;
    }
    return 0;
}

/* The edges of those that require a gradient, in a list. */
static PyObject *edges_of(Kept *all, const AllFound *found) {
    PyObject *edges = keep(all, PyList_New(0));
    for (int at = 0; edges != NULL && at < found->count; at++)
        if (found->of[at].edge != NULL && PyList_Append(edges, found->of[at].edge) < 0) return NULL;
    return edges;
}

/* As `Walk.run`; 0, or -1 with an exception. */
static int run_walk(Kept *all, PyObject *walk, PyObject *inputs, const AllFound *outputs) {
    int failed = 0, is_done = 1;
    Walking walking; /* its arrays are large, and need no zeros */
    walking.all = all, walking.inputs = inputs, walking.children = get(all, walk, N_CHILDREN);
    walking.todos = walking.seens = walking.crossed = 0;
    PyObject *crossing = get(all, walk, N_CROSSING);
    walking.first = (uint64_t)attribute(walk, N_FIRST, &failed);
    if (failed || crossing == NULL || walking.children == NULL) return -1;
    for (int at = 0; at < outputs->count; at++) {
        PyObject *edge = outputs->of[at].edge;
        int is_input = edge == NULL ? 1 : PyDict_Contains(inputs, edge);
        if (is_input < 0) return -1;
        if (!is_input) push(&walking, PyTuple_GetItem(edge, 0));
    }
    if (walking.todos > 0) is_done = walk_back(&walking);
    if (is_done < 0) return -1;
    if (is_done == 0) {
        PyObject *edges = edges_of(all, outputs);
        if (edges == NULL) return -1;
        return keep(all, PyObject_CallMethodObjArgs(walk, part[N_RUN], inputs, edges, NULL)) == NULL ? -1 : 0;
    }
    for (int at = 0; at < walking.crossed; at++)
        if (note_crossing(all, crossing, &walking.crossings[at]) < 0) return -1;
    return PyObject_SetAttr(walk, part[N_CHILDREN], NONE);
}

/* The first of these tensors whose gradient is delivered to `edge`; -1 if there is none, -2 with an exception. */
static int at_edge(const AllFound *found, PyObject *edge) {
    for (int at = 0; at < found->count; at++) {
        int is_same = found->of[at].edge == NULL ? 0 : PyObject_RichCompareBool(edge, found->of[at].edge, EQUAL);
        if (is_same != 0) return is_same < 0 ? -2 : at;
    }
    return -1;
}

/* As `RecordedCalls._hook_inputs` before the walk is added to that of the outer call; 0, or -1 with an exception. The call returned
 * `made`, on which `hooks` are. */
static int hook_inputs(Step *step, Kept *all, PyObject *opened, PyObject *known, PyObject *name, PyObject *number,
                       PyObject *const *hooks, const AllFound *made) {
    PyObject *edges = get(all, opened, N_EDGES), *walk = get(all, opened, N_WALK), *edge, *paths;
    if (edges == NULL || walk == NULL || run_walk(all, walk, edges, made) < 0) return -1;
    PyObject *crossing = get(all, walk, N_CROSSING);
    if (crossing == NULL) return -1;
    ptrdiff_t position = 0;
    while (PyDict_Next(edges, &position, &edge, &paths)) {
        PyObject *consumers = PyDict_GetItemWithError(crossing, edge);
        if (consumers == NULL && PyErr_Occurred()) return -1;
        int returned = consumers == NULL ? at_edge(made, edge) : -1;
        if (returned < -1) return -1;
        for (ptrdiff_t at = 0; (consumers != NULL || returned >= 0) && at < PyList_Size(paths); at++) {
            PyObject *key = key_at(all, known, IN_GRADIENT, name, number, PyList_GetItem(paths, at));
            if (key == NULL) return -1;
            if ((consumers != NULL ? hook_path(step, all, consumers, key) : add_key(all, hooks[returned], key)) < 0) return -1;
        }
    }
    return 0;
}

/* As `Walk.add_child`; 0, or -1 with an exception. */
static int add_child(Kept *all, PyObject *outer, PyObject *opened, PyObject *made) {
    int failed = 0;
    PyObject *walk = get(all, opened, N_WALK), *around = get(all, outer, N_WALK), *node = PyTuple_GetItem(made, 0);
    if (walk == NULL || around == NULL) return -1;
    uint64_t first = (uint64_t)attribute(walk, N_FIRST, &failed), number = node_number(node, &failed);
    if (failed) return -1;
    if (number < first) return 0;
    PyObject *children = get(all, around, N_CHILDREN);
    if (children == NONE) {
        children = keep(all, PyDict_New());
        if (children == NULL || PyObject_SetAttr(around, part[N_CHILDREN], children) < 0) return -1;
    }
    PyObject *known = children == NULL ? NULL : PyDict_GetItemWithError(children, node);
    if (known == NULL) {
        if (PyErr_Occurred() || (known = keep(all, PyList_New(0))) == NULL) return -1;
        if (PyDict_SetItem(children, node, known) < 0) return -1;
    }
    return PyList_Append(known, walk);
}

/* As `InsideGradients.give`; 0, or -1 with an exception. */
static int give_inside(Kept *all, PyObject *inside, PyObject *index, PyObject *made) {
    PyObject *places = get(all, inside, N_PLACES), *given = get(all, inside, N_GIVEN);
    PyObject *taken = given == NULL ? NULL : PyDict_GetItemWithError(given, index);
    if (places == NULL || given == NULL || (taken == NULL && PyErr_Occurred())) return -1;
    for (ptrdiff_t at = 0; taken != NULL && at < PyList_Size(taken); at++) {
        PyObject *one = PyList_GetItem(taken, at);
        int is_same = PyObject_RichCompareBool(PyTuple_GetItem(one, 1), made, EQUAL);
        if (is_same < 0) return -1;
        if (!is_same || PyTuple_GetItem(one, 0) == NONE) continue;
        PyObject *unchanged = get(all, inside, N_UNCHANGED);
        PyObject *edges = unchanged == NULL ? NULL : PyDict_GetItemWithError(unchanged, index);
        if (edges == NULL) {
            if (unchanged == NULL || PyErr_Occurred() || (edges = keep(all, PySet_New(NULL))) == NULL) return -1;
            if (PyDict_SetItem(unchanged, index, edges) < 0) return -1;
        }
        if (PySet_Add(edges, made) < 0) return -1;
    }
    return PyDict_SetItem(places, made, index);
}

/* As `EdgeSeries.leave`, of a call that made none, before node `next`; 0, or -1 with an exception. */
static int leave_edges(Kept *all, PyObject *outer, PyObject *opened, PyObject *index, const AllFound *made, PyObject *next) {
    PyObject *inside = get(all, outer, N_INNER), *walk = get(all, opened, N_WALK);
    if (inside == NULL || walk == NULL) return -1;
    if (inside == NONE) return 0;
    PyObject *starts = get(all, inside, N_STARTS), *ends = get(all, inside, N_ENDS), *first = get(all, walk, N_FIRST);
    if (starts == NULL || ends == NULL || first == NULL) return -1;
    for (int at = 0; at < made->count; at++)
        if (made->of[at].edge != NULL && give_inside(all, inside, index, made->of[at].edge) < 0) return -1;
    PyObject *end = keep_unvisited(all, PyTuple_Pack(2, next, index));
    return end == NULL || PyList_Append(starts, first) < 0 ? -1 : PyList_Append(ends, end);
}

/* As `EdgeSeries.leave`, of a call that made some; 0, or -1 with an exception. */
static int leave_edges_in_python(Step *step, Kept *all, PyObject *outer, PyObject *opened, const AllFound *made) {
    PyObject *given = keep(all, PyList_New(0));
    for (int at = 0; given != NULL && at < made->count; at++) {
        const Found *one = &made->of[at];
        if (one->edge == NULL) continue;
        PyObject *found = keep(all, PyTuple_Pack(3, one->path, one->tensor, one->edge));
        if (found == NULL || PyList_Append(given, found) < 0) return -1;
    }
    if (given == NULL) return -1;
    return keep(all, PyObject_CallFunctionObjArgs(step->of[LEAVE_EDGES], outer, opened, given, NULL)) == NULL ? -1 : 0;
}

/* As `ForwardRecorder.is_ours` and `leave`. Returns 1; 0 if Python has to do it; -1 with an exception. */
static int leave(Step *step, Kept *all, PyObject *name, PyObject *output) {
    ptrdiff_t depth = PyList_Size(step->of[OPEN]);
    if (depth < 2) return 0;
    int is_fit = is_ordinary(step, name);
    if (is_fit <= 0) return is_fit;
    PyObject *opened = PyList_GetItem(step->of[OPEN], depth - 1), *outer = PyList_GetItem(step->of[OPEN], depth - 2);
    Py_IncRef(opened), Py_IncRef(outer);
    keep(all, opened), keep(all, outer);
    PyObject *frame = users_frame(all), *begun_by = get(all, opened, N_FRAME);
    if (frame == NULL || begun_by == NULL || PyErr_Occurred()) return PyErr_Occurred() ? -1 : 0;
    if (frame != begun_by) return 0;
    int is_skipped = truth(PyObject_GetAttr(opened, part[N_IS_SKIPPED]));
    if (is_skipped != 0) return is_skipped < 0 ? -1 : 0;
    PyObject *next;
    if ((is_fit = is_short(step, all, &next)) <= 0) return is_fit;
    AllFound found;
    if ((is_fit = find_outputs(all, output, &found)) <= 0) return is_fit;

    PyObject *index = get(all, opened, N_INDEX), *number = get(all, opened, N_NUMBER), *inner = get(all, opened, N_INNER);
    if (index == NULL || number == NULL || inner == NULL) return -1;
    PyObject *begun = PyList_GetItem(step->of[DONE], PyLong_AsLongLong(index));
    PyObject *parent = begun == NULL ? NULL : get(all, begun, N_PARENT), *inputs = parent == NULL ? NULL : get(all, begun, N_INPUTS);
    PyObject *outputs = infos_of(all, &found), *known = known_of(step, all, name, PyLong_AsLongLong(number));
    if (inputs == NULL || outputs == NULL || known == NULL) return -1;
    if (PyList_SetSlice(step->of[OPEN], depth - 1, depth, NULL) < 0) return -1;
    if (step->of[END_COST] != NONE) {
        PyObject *ended = PyObject_CallFunctionObjArgs(step->of[END_COST], index, NULL);
        if (keep(all, ended) == NULL) return -1;
    }
    PyObject *call = call_of(all, known, ENDED, name, number, parent, inputs, outputs);
    if (call == NULL) return -1;
    Py_IncRef(call);
    if (PyList_SetItem(step->of[DONE], PyLong_AsLongLong(index), call) < 0) return -1;
    if (observe_all(step, all, opened, known, OUT, name, number, &found) < 0) return -1;
    if (tell_facts(step, all, END_FACTS, name, number, &found) < 0) return -1;
    PyObject *hooks[MOST_FOUND];
    for (int at = 0; at < found.count; at++) {
        if (found.of[at].edge == NULL) continue;
        PyObject *key = key_at(all, known, OUT_GRADIENT, name, number, found.of[at].path);
        if (key == NULL || (hooks[at] = hook_output(step, all, &found.of[at], key)) == NULL) return -1;
    }
    if (hook_inputs(step, all, opened, known, name, number, hooks, &found) < 0) return -1;
    for (int at = 0; at < found.count; at++)
        if (found.of[at].edge != NULL && add_child(all, outer, opened, found.of[at].edge) < 0) return -1;
    const int is_plain = inner == NONE;
    if ((is_plain ? leave_edges(all, outer, opened, index, &found, next) : leave_edges_in_python(step, all, outer, opened, &found)) < 0)
        return -1;
    return 1;
}

static PyObject *result(int is_done) { return is_done < 0 ? NULL : PyBool_FromLong(is_done); }

/* Tells `CallCosts` that recording begins; 0, or -1 with an exception. */
static int pause_costs(Step *step) {
    if (step->of[PAUSE] == NONE) return 0;
    PyObject *made = PyObject_CallFunctionObjArgs(step->of[PAUSE], NULL);
    if (made == NULL) return -1;
    Py_DecRef(made);
    return 0;
}

/* Tells it that recording is over. Returns `is_done`; -1 with an exception, which replaces an earlier one as in Python. */
static int resume_costs(Step *step, int is_done) {
    if (step->of[RESUME] == NONE) return is_done;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *made = PyObject_CallFunctionObjArgs(step->of[RESUME], step->of[OPEN], NULL);
    if (made != NULL) {
        Py_DecRef(made);
        PyErr_Restore(type, value, traceback);
        return is_done;
    }
    Py_DecRef(type), Py_DecRef(value), Py_DecRef(traceback);
    return -1;
}

/* Whether the lock is held already: our work was interrupted, as by a signal's handler, and the call is not recorded.
 * -1 with an exception. */
static int is_interruption(Step *step) { return truth(PyObject_CallFunctionObjArgs(step->of[IS_HELD], NULL)); }

/* Arguments: the module's name, and what it is called with. Returns whether nothing is left to be done. */
static PyObject *enter_call(PyObject *self, PyObject *const *arguments, ptrdiff_t count) {
    Step *step = PyCapsule_GetPointer(self, STEP);
    if (step == NULL) return NULL;
    if (count != 3 || PyThread_get_thread_ident() != step->thread) return PyBool_FromLong(0);
    const int is_passed = is_interruption(step);
    if (is_passed != 0) return result(is_passed);
    if (pause_costs(step) < 0 || acquire(step) < 0) return NULL;
    Kept all;
    begin_keeping(&all);
    int is_done = enter(step, &all, arguments[0], arguments[1], arguments[2]);
    release(&all);
    let_go(step->of[RELEASE]);
    return result(resume_costs(step, is_done));
}

/* Arguments: the module's name, and what it has returned. Returns whether nothing is left to be done. */
static PyObject *leave_call(PyObject *self, PyObject *const *arguments, ptrdiff_t count) {
    Step *step = PyCapsule_GetPointer(self, STEP);
    if (step == NULL) return NULL;
    if (count != 2 || PyThread_get_thread_ident() != step->thread) return PyBool_FromLong(0);
    const int is_passed = is_interruption(step);
    if (is_passed != 0) return result(is_passed);
    if (pause_costs(step) < 0 || acquire(step) < 0) return NULL;
    Kept all;
    begin_keeping(&all);
    int is_done = leave(step, &all, arguments[0], arguments[1]);
    release(&all);
    let_go(step->of[RELEASE]);
    return result(resume_costs(step, is_done));
}

static void free_step(PyObject *capsule) {
    Step *step = PyCapsule_GetPointer(capsule, STEP);
    if (step == NULL) return;
    for (int at = 0; at < OBJECTS; at++) Py_DecRef(step->of[at]);
    free(step);
}

/* What is needed to read gradients. */
enum { G_ACQUIRE, G_RELEASE, G_NORMS, G_ROWS, G_KEEP_AT_ONCE, G_KEEP, G_OBJECTS };

typedef struct {
    PyObject *of[G_OBJECTS];
} Reading;

static const char *const READING = "torchgraph_explorer.gradients";

/* As `GradientHooks.arrive`. Returns 1; 0 if Python has to do it; -1 with an exception. */
static int arrive(Reading *reading, Kept *all, PyObject *hook, PyObject *gradient) {
    PyObject *hooks = get(all, hook, N_HOOKS), *keys = get(all, hook, N_KEYS);
    if (hooks == NULL || keys == NULL) return -1;
    int is_closed = truth(PyObject_GetAttr(hooks, part[N_CLOSED])), failed = 0;
    if (is_closed != 0) return is_closed;
    int64_t on = number_of(PyObject_CallFunctionObjArgs(part[CURRENT_BACKWARD], NULL), &failed);
    int64_t begun = attribute(hooks, N_TASK, &failed), summands = attribute(hook, N_SUMMANDS, &failed);
    if (failed) return -1;
    if (on != begun || summands != 1) return 0;
    if (PyTuple_Size(keys) == 0) return 1;
    int is_on = truth(PyObject_CallFunctionObjArgs(part[GRADIENTS_ON], NULL)), is_fit = is_on != 0 ? 0 : is_quiet();
    if (is_on < 0 || is_fit <= 0) return is_on < 0 ? -1 : is_fit;
    PyObject *row = keep(all, PyObject_CallFunctionObjArgs(reading->of[G_NORMS], gradient, NULL));
    if (row == NULL || row == NONE) return row == NULL ? -1 : 0;
    for (ptrdiff_t at = 0; at < PyTuple_Size(keys); at++) {
        PyObject *key = PyTuple_GetItem(keys, at);
        if (PyDict_SetItem(reading->of[G_ROWS], key, row) < 0) return -1;
        if (keep_whole(reading->of[G_KEEP_AT_ONCE], reading->of[G_KEEP], key, gradient) < 0) return -1;
    }
    return 1;
}

/* Arguments: a `GradientHook`, and the gradient that has come to it. Returns whether it was read. */
static PyObject *read_gradient(PyObject *self, PyObject *const *arguments, ptrdiff_t count) {
    Reading *reading = PyCapsule_GetPointer(self, READING);
    if (reading == NULL) return NULL;
    if (count != 2 || !is_exactly(arguments[1], TENSOR)) return PyBool_FromLong(0);
    PyObject *acquired = PyObject_CallFunctionObjArgs(reading->of[G_ACQUIRE], NULL);
    if (acquired == NULL) return NULL;
    Py_DecRef(acquired);
    Kept all;
    begin_keeping(&all);
    int is_done = arrive(reading, &all, arguments[0], arguments[1]);
    release(&all);
    let_go(reading->of[G_RELEASE]);
    return result(is_done);
}

static void free_reading(PyObject *capsule) {
    Reading *reading = PyCapsule_GetPointer(capsule, READING);
    if (reading == NULL) return;
    for (int at = 0; at < G_OBJECTS; at++) Py_DecRef(reading->of[at]);
    free(reading);
}

/* What is needed to measure the gradients of parameters. */
enum { P_ROWS, P_MEASURE, P_KEEP_AT_ONCE, P_KEEP, P_TAKE, P_TAKE_ALL, P_OBJECTS };

typedef struct {
    PyObject *of[P_OBJECTS];
} Gradients;

static const char *const GRADIENTS = "torchgraph_explorer.parameters";

/* As `Parameters.measure_gradients`, of one parameter; 0, or -1 with an exception. */
static int measure_gradient(Gradients *these, Kept *all, PyObject *name, PyObject *path, PyObject *parameter) {
    PyObject *row = NONE, *gradient = NONE;
    if (is_exactly(parameter, PARAMETER)) {
        gradient = get(all, parameter, N_GRAD);
        if (gradient == NULL || gradient == NONE) return gradient == NULL ? -1 : 0;
        if (is_exactly(gradient, TENSOR)) row = keep(all, PyObject_CallFunctionObjArgs(these->of[P_MEASURE], gradient, NULL));
    }
    if (row == NULL) return -1;
    if (row == NONE)
        return keep(all, PyObject_CallFunctionObjArgs(these->of[P_TAKE], name, path, parameter, NULL)) == NULL ? -1 : 0;
    PyObject *key = key_of(all, name, NONE, PARAM, path, GRAD);
    if (key == NULL || PyDict_SetItem(these->of[P_ROWS], key, row) < 0) return -1;
    return keep_whole(these->of[P_KEEP_AT_ONCE], these->of[P_KEEP], key, gradient);
}

/* As `measure_gradient`, of a module's own parameters. The references are held since Python code may run and replace them. */
static int measure_gradients_of(Gradients *these, Kept *all, PyObject *name, PyObject *module) {
    PyObject *parameters = get(all, module, N_OWN_PARAMETERS), *path, *parameter;
    if (parameters == NULL) return -1;
    if (PyDict_Size(parameters) < 0) { /* that of a scripted module is no dictionary */
        PyErr_Clear();
        return keep(all, PyObject_CallFunctionObjArgs(these->of[P_TAKE_ALL], name, module, NULL)) == NULL ? -1 : 0;
    }
    ptrdiff_t at = 0;
    while (PyDict_Next(parameters, &at, &path, &parameter)) {
        if (parameter == NONE) continue;
        Py_IncRef(path), Py_IncRef(parameter);
        if (keep(all, path) == NULL) return Py_DecRef(parameter), -1;
        if (keep(all, parameter) == NULL || measure_gradient(these, all, name, path, parameter) < 0) return -1;
    }
    return 0;
}

/* Argument: modules by name. Returns whether the gradients of their own parameters were measured. */
static PyObject *measure_gradients(PyObject *self, PyObject *const *arguments, ptrdiff_t count) {
    Gradients *these = PyCapsule_GetPointer(self, GRADIENTS);
    if (these == NULL) return NULL;
    int is_fit = count == 1 ? is_quiet() : 0;
    if (is_fit <= 0) return result(is_fit);
    PyObject *name, *module;
    ptrdiff_t at = 0;
    while (is_fit > 0 && PyDict_Next(arguments[0], &at, &name, &module)) {
        Kept all;
        begin_keeping(&all);
        Py_IncRef(module), Py_IncRef(name);
        if (measure_gradients_of(these, &all, name, module) < 0) is_fit = -1;
        Py_DecRef(module), Py_DecRef(name);
        release(&all);
    }
    return result(is_fit);
}

static void free_gradients(PyObject *capsule) {
    Gradients *these = PyCapsule_GetPointer(capsule, GRADIENTS);
    if (these == NULL) return;
    for (int at = 0; at < P_OBJECTS; at++) Py_DecRef(these->of[at]);
    free(these);
}

static PyMethodDef methods[] = {
    {"enter", enter_call, METH_FASTCALL, NULL},
    {"leave", leave_call, METH_FASTCALL, NULL},
    {"read", read_gradient, METH_FASTCALL, NULL},
    {"measure_gradients", measure_gradients, METH_FASTCALL, NULL},
};

/* Arguments: a tuple of the objects of a step, and the most autograd nodes that are looked at. Returns `enter` and
 * `leave` for this thread. */
static PyObject *functions_of_calls(PyObject *self, PyObject *const *arguments, ptrdiff_t count) {
    (void)self, (void)count;
    Step *step = calloc(1, sizeof *step);
    PyObject *capsule = step == NULL ? PyErr_NoMemory() : PyCapsule_New(step, STEP, free_step), *both = NULL;
    if (capsule == NULL) return free(step), NULL;
    step->thread = PyThread_get_thread_ident();
    step->most_nodes = PyLong_AsLongLong(arguments[1]);
    if (!PyErr_Occurred() && take_objects(step->of, arguments[0], OBJECTS) == 0) both = list_of_functions(methods, 2, capsule);
    Py_DecRef(capsule); /* which frees the step, where no function holds it */
    return both;
}

/* Argument: a tuple of what is needed to read gradients. Returns `read`. */
static PyObject *function_of_gradients(PyObject *self, PyObject *const *arguments, ptrdiff_t count) {
    (void)self, (void)count;
    Reading *reading = calloc(1, sizeof *reading);
    PyObject *capsule = reading == NULL ? PyErr_NoMemory() : PyCapsule_New(reading, READING, free_reading), *made = NULL;
    if (capsule == NULL) return free(reading), NULL;
    if (take_objects(reading->of, arguments[0], G_OBJECTS) == 0) made = PyCFunction_NewEx(&methods[2], capsule, NULL);
    Py_DecRef(capsule);
    return made;
}

/* Argument: a tuple of what is needed to measure the gradients of parameters. Returns `measure_gradients`. */
static PyObject *function_of_parameters(PyObject *self, PyObject *const *arguments, ptrdiff_t count) {
    (void)self, (void)count;
    Gradients *these = calloc(1, sizeof *these);
    PyObject *capsule = these == NULL ? PyErr_NoMemory() : PyCapsule_New(these, GRADIENTS, free_gradients), *made = NULL;
    if (capsule == NULL) return free(these), NULL;
    if (take_objects(these->of, arguments[0], P_OBJECTS) == 0) made = PyCFunction_NewEx(&methods[3], capsule, NULL);
    Py_DecRef(capsule);
    return made;
}

enum { MAKERS = 3 };

static PyMethodDef makers[MAKERS] = {
    {"calls", functions_of_calls, METH_FASTCALL, NULL},
    {"gradients", function_of_gradients, METH_FASTCALL, NULL},
    {"parameters", function_of_parameters, METH_FASTCALL, NULL},
};

/* Whether `outer` is being executed in the thread with the identifier `thread`; `innermost` gives the innermost frames of all
 * threads, as `sys._current_frames` does, and `f_back` is a name. As `call_stack.is_caller`, but no other thread can go on
 * meanwhile: where one of these frames ends while it is held, what torch.compile has made of it may lead anywhere.
 */
PyObject *torchgraph_is_running(PyObject *innermost, PyObject *thread, PyObject *outer, PyObject *f_back) {
    PyObject *frames = PyObject_CallFunctionObjArgs(innermost, NULL);
    if (frames == NULL) return NULL;
    PyObject *frame = PyDict_GetItemWithError(frames, thread);
    if (frame != NULL) Py_IncRef(frame);
    Py_DecRef(frames);
    while (frame != NULL && frame != outer && frame != NONE) {
        PyObject *caller = PyObject_GetAttr(frame, f_back);
        Py_DecRef(frame);
        frame = caller;
    }
    if (frame == NULL) return PyErr_Occurred() ? NULL : PyBool_FromLong(0);
    const int is_running = frame == outer;
    Py_DecRef(frame);
    return PyBool_FromLong(is_running);
}

/* The functions that make the others, in a list. `parts` is a tuple as listed above. */
PyObject *torchgraph_calls(PyObject *parts) {
    if (PyTuple_Size(parts) != PARTS || take_objects(part, parts, PARTS) < 0) return PyErr_NoMemory();
    return list_of_functions(makers, MAKERS, NULL);
}
