/* The functions of Python that our libraries call. They are declared here, in place of `Python.h`, and are of the stable
 * interface: so one build is for every Python from 3.10 on.
 */

#ifndef TORCHGRAPH_PYTHON_FUNCTIONS
#define TORCHGRAPH_PYTHON_FUNCTIONS

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct object PyObject;
typedef PyObject *(*Function)(PyObject *self, PyObject *const *arguments, ptrdiff_t count);

typedef struct {
    const char *name;
    Function function;
    int flags;
    const char *doc;
} PyMethodDef;

enum { METH_FASTCALL = 0x80 };

extern PyObject *PyBool_FromLong(long);
extern PyObject *PyCFunction_NewEx(PyMethodDef *, PyObject *, PyObject *);
extern void *PyCapsule_GetPointer(PyObject *, const char *);
extern PyObject *PyCapsule_New(void *, const char *, void (*)(PyObject *));
extern int PyDict_Contains(PyObject *, PyObject *);
extern int PyDict_DelItem(PyObject *, PyObject *);
extern PyObject *PyDict_GetItemWithError(PyObject *, PyObject *);
extern PyObject *PyDict_New(void);
extern int PyDict_Next(PyObject *, ptrdiff_t *, PyObject **, PyObject **);
extern int PyDict_SetItem(PyObject *, PyObject *, PyObject *);
extern ptrdiff_t PyDict_Size(PyObject *);
extern void PyErr_Clear(void);
extern void PyErr_Fetch(PyObject **, PyObject **, PyObject **);
extern PyObject *PyErr_NoMemory(void);
extern PyObject *PyErr_Occurred(void);
extern void PyErr_Restore(PyObject *, PyObject *, PyObject *);
extern PyObject *PyEval_GetFrame(void);
extern void PyEval_RestoreThread(void *);
extern void *PyEval_SaveThread(void);
extern double PyFloat_AsDouble(PyObject *);
extern int PyList_Append(PyObject *, PyObject *);
extern PyObject *PyList_GetItem(PyObject *, ptrdiff_t);
extern PyObject *PyList_New(ptrdiff_t);
extern int PyList_SetItem(PyObject *, ptrdiff_t, PyObject *);
extern int PyList_SetSlice(PyObject *, ptrdiff_t, ptrdiff_t, PyObject *);
extern ptrdiff_t PyList_Size(PyObject *);
extern long long PyLong_AsLongLong(PyObject *);
extern unsigned long long PyLong_AsUnsignedLongLong(PyObject *);
extern void *PyLong_AsVoidPtr(PyObject *);
extern PyObject *PyLong_FromLongLong(long long);
extern PyObject *PyLong_FromVoidPtr(void *);
extern PyObject *PyObject_CallFunctionObjArgs(PyObject *, ...);
extern PyObject *PyObject_CallMethodObjArgs(PyObject *, PyObject *, ...);
extern PyObject *PyObject_GetAttr(PyObject *, PyObject *);
extern void PyObject_GC_UnTrack(void *);
extern int PyObject_IsTrue(PyObject *);
extern int PyObject_RichCompareBool(PyObject *, PyObject *, int);
extern int PyObject_SetAttr(PyObject *, PyObject *, PyObject *);
extern int PyObject_SetItem(PyObject *, PyObject *, PyObject *);
extern PyObject *PyObject_Type(PyObject *);
extern PyObject *PySequence_Concat(PyObject *, PyObject *);
extern int PySequence_Contains(PyObject *, PyObject *);
extern int PySet_Add(PyObject *, PyObject *);
extern PyObject *PySet_New(PyObject *);
extern unsigned long PyThread_get_thread_ident(void);
extern PyObject *PyTuple_GetItem(PyObject *, ptrdiff_t);
extern PyObject *PyTuple_New(ptrdiff_t);
extern PyObject *PyTuple_Pack(ptrdiff_t, ...);
extern int PyTuple_SetItem(PyObject *, ptrdiff_t, PyObject *);
extern ptrdiff_t PyTuple_Size(PyObject *);
extern PyObject *PyWeakref_NewRef(PyObject *, PyObject *);
extern void Py_DecRef(PyObject *);
extern void Py_IncRef(PyObject *);
extern PyObject _Py_NoneStruct;
extern PyObject _Py_TrueStruct;

#define NONE (&_Py_NoneStruct)

/* The number that `made` is, or -1 with an exception. Takes the reference. */
static inline int64_t number(PyObject *made) {
    if (made == NULL) return -1;
    int64_t found = PyLong_AsLongLong(made);
    Py_DecRef(made);
    return found;
}

/* Whether `made` is true; -1 with an exception. Takes the reference. */
static inline int truth(PyObject *made) {
    if (made == NULL) return -1;
    int found = PyObject_IsTrue(made);
    Py_DecRef(made);
    return found;
}

/* Takes an object of ours from those that the garbage collector visits. It must hold plain values alone, or end with the step and
 * be in no cycle then.
 * The collector visits everything there is when objects that outlived some visits are a quarter of it: without this, at every
 * 16th logged step of 400 modules. NULL stays NULL. */
static inline PyObject *unvisited(PyObject *made) {
    if (made != NULL) PyObject_GC_UnTrack(made);
    return made;
}

/* The type of `object`, a borrowed reference. */
static inline PyObject *type_of(PyObject *object) {
    PyObject *type = PyObject_Type(object);
    if (type != NULL) Py_DecRef(type); /* the object has it */
    return type;
}

/* Takes the first `count` of the objects in the tuple `given`, with references; 0, or -1 with an exception. Those that were
 * taken before are there then, and NULL behind them, if `into` was empty. */
static inline int take_objects(PyObject **into, PyObject *given, int count) {
    for (int at = 0; at < count; at++) {
        if ((into[at] = PyTuple_GetItem(given, at)) == NULL) return -1;
        Py_IncRef(into[at]);
    }
    return 0;
}

/* A list of the functions that `methods` describes, each with `self`, which may be NULL. NULL with an exception. */
static inline PyObject *list_of_functions(PyMethodDef *methods, int count, PyObject *self) {
    PyObject *all = PyList_New(0);
    for (int at = 0; all != NULL && at < count; at++) {
        PyObject *made = PyCFunction_NewEx(&methods[at], self, NULL);
        if (made == NULL || PyList_Append(all, made) < 0) {
            Py_DecRef(all);
            all = NULL;
        }
        if (made != NULL) Py_DecRef(made);
    }
    return all;
}

#endif
