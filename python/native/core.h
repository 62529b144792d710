// The extension module fornax._core: Python objects over fornax.h, in CPython's limited API, so
// that one file serves Python 3.9 and later. Module-wide state, and what the files share.
#pragma once

#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x03090000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/fornax.h"

// Hidden from other libraries; the module exports its initialisation only.

// --- Module state (module.c) ---------------------------------------------------------------------

enum { kTypeCount = FORNAX_STRING + 1 };

// What fornax/__init__.py hands over by configure(). Strong references that stay until the process
// ends.
typedef struct CoreState {
    PyObject* error;             // fornax.Error(message, status)
    PyTypeObject* ndarray;       // numpy.ndarray
    PyObject* empty;             // numpy.empty
    PyObject* dtypes;            // a tuple: the numpy dtype of each fornax_type
    PyObject* types;             // {dtype: fornax_type}, of those that numpy itself does not know
    PyObject* prepare;           // (object, dtype) -> a C-contiguous array in native byte order
    PyObject* prepare_strings;   // object -> (shape, [bytes, ...])
    PyObject* strings_to_array;  // (shape, [bytes, ...]) -> array of str
} CoreState;
extern CoreState core;

// Changes in a child process of fork, whose parent's sessions are of no use to it.
extern unsigned core_generation;

// Sets fornax.Error; returns null.
PyObject* RaiseError(fornax_status status, const char* format, ...)
    __attribute__((format(printf, 2, 3)));
// The same with what the library said of this thread's last failed call.
PyObject* RaiseStatus(fornax_status status);

// --- Arrays (arrays.c) ---------------------------------------------------------------------------

// The memory of an array of the caller.
typedef struct Array {
    fornax_tensor tensor;
    PyObject* owner;  // keeps the memory; a new reference
    bool writable;
    char** strings;  // of FORNAX_STRING, with the pointers to them in one allocation
} Array;

// Reads `object` without a copy where it is an array of numpy or offers DLPack, is contiguous and
// in native byte order; else what numpy makes of it. Raw bits (uint16 for bf16, uint8 for types of
// 8 bits and less) pass for the type that is expected. `name` is for messages. -1 with an
// exception.
int ReadArray(PyObject* object, fornax_type expected, const char* name, Array* array);
// The same of memory to be written to, where nothing may be copied.
int ReadOutputArray(PyObject* object, fornax_type expected, const char* name, Array* array);
void ReleaseArray(Array* array);

// Tensors of a type that AddTensorType() was told of: their memory is read by the functions of
// DLPack's exchange interface, without a capsule each. Others are read as ReadArray() and
// ReadOutputArray() do. An input that is not contiguous is replaced by a copy, as torch makes it.
int ReadTensor(PyObject* object, fornax_type expected, const char* name, Array* array);
int ReadOutputTensor(PyObject* object, fornax_type expected, const char* name, Array* array);
// add_tensor_type(type, capsule of __dlpack_c_exchange_api__): whether its version is known.
PyObject* AddTensorType(PyObject* module, PyObject* args);

// A new array of numpy, and where its elements are.
PyObject* NewArray(fornax_type type, PyObject* shape, void** data);
// The strings of an output as an array.
PyObject* NewStrings(const fornax_tensor* tensor);
PyObject* ShapeOf(const int64_t* dims, size_t rank);
// "f32[2,5]" in a buffer of the caller.
enum { kTypeTextBytes = 512 };
const char* TypeText(fornax_type type, const int64_t* dims, size_t rank, char* text);

// --- Tasks (task.c) ------------------------------------------------------------------------------

// Work of the library that takes long, in a thread of its own, so that Ctrl-C ends the wait for it.
typedef struct Task Task;
struct Task {
    fornax_status (*work)(Task* task);
    // After the work of a task that nobody waits for any more, without the GIL: frees its result.
    void (*abandon)(Task* task);
    void* argument;
    void* result;
    PyObject* keep;  // what has to live while the work goes on; a new reference, or null
    // The outcome.
    fornax_status status;
    char message[4096];
};
// Runs the work. 0, or with an exception -1: it failed, kTaskAbandoned: a signal came, and the work
// goes on with the argument. The task is copied, and its keep released when the work is done.
enum { kTaskAbandoned = -2 };
int RunTask(Task* task);
int CountAbandonedTasks(void);
// Waits until no abandoned work goes on. Interruptible: -1.
int WaitForTasks(void);
// In a child process: no thread of the parent's is there.
void ForgetTasks(void);

// --- Sessions ------------------------------------------------------------------------------------

typedef struct SharedModel {
    int references;  // under the GIL
    fornax_model* model;
    PyObject* pieces;  // of its file, which the library reads where they are, or null
} SharedModel;

typedef struct Input {
    PyObject* name;
    char* text;  // the same in UTF-8, for messages
    fornax_type type;
    // The number of dims, which are the sizes that the caller set.
    size_t rank;
    int64_t dims[FORNAX_MAX_RANK];
    bool decides;       // its value does
    uint8_t* value;     // then what it was
    void* memory;       // the library's, or null if not asked for yet
    const void* given;  // where the last run's was
    const void* bound;  // where it is read in place, or null
    PyObject* owner;    // of `bound`
} Input;

typedef struct Output {
    PyObject* name;
    char* text;
    fornax_type type;
    const void* given;
    const void* bound;
    PyObject* owner;
    PyObject* shape;  // of the last result, to be used again
    size_t rank;
    int64_t dims[FORNAX_MAX_RANK];
    PyObject* array;  // `out` of the run under way
    bool varies;      // its size depends on values
    // What the last run gave, while sizes and bindings stay and it does not vary.
    bool is_known;
    fornax_tensor known;
} Output;

// A state of the model that lies in memory of the caller.
typedef struct State {
    PyObject* name;
    char* text;
    fornax_type type;
    const void* bound;
    PyObject* owner;  // of `bound`
} State;

enum { kKnownSizes = 8 };

typedef struct Session {
    PyObject_HEAD SharedModel* shared;
    fornax_session* session;
    PyThread_type_lock lock;
    unsigned long holder;  // the thread that has the lock, or 0
    unsigned generation;
    size_t input_count;
    size_t output_count;
    Input* inputs;
    Output* outputs;
    size_t state_count;
    State* states;
    bool knows_outputs;
    bool has_strings;
    bool has_sizes;
    bool is_running;
    uint64_t known[kKnownSizes];  // hashes of sizes that were set
    size_t next_known;
} Session;

extern PyTypeObject* session_type;
int AddSessionType(PyObject* module);

// The session's lock, waiting for another thread without the GIL. -1 with an exception where it is
// closed, of a parent process, or this thread has the lock already.
int LockSession(Session* self);
void UnlockSession(Session* self);
// Fills the outputs' names and types. Needs a plan; the lock is held.
int LearnOutputs(Session* self);

// session_run.c
PyObject* SessionRun(PyObject* self, PyObject* args, PyObject* kwargs);
PyObject* SessionCall(PyObject* self, PyObject* args, PyObject* kwargs);
PyObject* SessionStart(PyObject* self, PyObject* args, PyObject* kwargs);
PyObject* SessionWait(PyObject* self, PyObject* args, PyObject* kwargs);
PyObject* SessionProfile(PyObject* self, PyObject* args, PyObject* kwargs);
// _run_tensors(inputs, outputs, states, profile)
PyObject* SessionRunTensors(PyObject* self, PyObject* args);

// session_states.c
// _set_states([(name, fornax_type), ...]), before the first run.
PyObject* SessionSetStates(PyObject* self, PyObject* args);
// Binds the states to these arrays, whose owners are kept as long. With the lock held.
int BindStates(Session* self, Array* arrays);
void UnbindStates(Session* self);
void FreeStates(Session* self);

// arguments.c: as many arrays as the model has inputs or outputs, to be released also after an
// error. -1 with an exception.
// {name: array}.
int ReadInputs(Session* self, PyObject* inputs, Array* arrays);
int ReadPositional(Session* self, PyObject* args, Array* arrays);
// {name: array to write to}, or None. Arrays of outputs that are not named stay zeros.
int ReadOutputs(Session* self, PyObject* out, Array* arrays);
// Lists of tensors: all inputs, all outputs, all states.
int ReadTensors(Session* self, PyObject* list, Array* arrays);
int ReadOutputTensors(Session* self, PyObject* list, Array* arrays);
int ReadStates(Session* self, PyObject* list, Array* arrays);
void ReleaseArrays(Array* arrays, size_t count);

// session_bind.c, with the lock held.
// Sets the sizes of the inputs if they changed. 0, -1, or kTaskAbandoned: then the lock is the
// task's.
int SetSizes(Session* self, const Array* arrays);
// Makes inputs and outputs ready, and calls `run` without the GIL.
int Prepare(Session* self, Array* inputs, Array* outputs, fornax_status (*run)(fornax_session*));
// Whether the arrays of `out` have the outputs' shapes. Before the run only where that is known.
int CheckOutputs(Session* self, const Array* arrays, bool after_run);
// What the last run gave: a library's tensor, or null with an exception.
const fornax_tensor* OutputOf(Session* self, size_t index);
void ForgetOutputs(Session* self);
// Ends all bindings and lets go of the arrays.
void UnbindAll(Session* self);
