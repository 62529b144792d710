// Docstrings of fornax.Session's methods that are written in C.
#pragma once

static const char kRunDoc[] =
    "run($self, inputs, out=None)\n--\n\n"
    "Runs the model and waits for it; other threads of Python go on.\n\n"
    "inputs: {name: array} with all of the model's inputs, as `session.inputs` lists them. An "
    "array\n"
    "    is one of numpy or of anything that offers DLPack (`__dlpack__`) in the host's memory, "
    "of\n"
    "    the input's dtype; nested lists are taken as well. Its shape is the input's, with any "
    "size\n"
    "    where that has a name; one name stands for one size. Contiguous arrays are not copied "
    "where\n"
    "    the device can use them in place: at an address that is a multiple of 16, from 1 MiB on, "
    "or\n"
    "    from 4 KiB on if the run before had the same array. The session keeps such an array "
    "until\n"
    "    its next run.\n"
    "out: {name: array} to write outputs to, by the same rules; contiguous, of the output's dtype\n"
    "    and shape. Outputs that it does not name are new arrays.\n\n"
    "Returns {name: array} of all outputs, in the model's order: numpy arrays that are the\n"
    "caller's, and the objects of `out` themselves.\n\n"
    "Raises fornax.Error: INVALID_ARGUMENT where a name, dtype or shape is not the model's,\n"
    "UNSUPPORTED for what the compiler does not cover at these sizes, OUT_OF_HOST_MEMORY,\n"
    "OUT_OF_DEVICE_MEMORY, DEVICE_LOST. The session may be used again after each but the last.\n\n"
    "New sizes are compiled first, which may take seconds; KeyboardInterrupt ends the wait for "
    "it.\n"
    "Runs of one session take turns, whatever thread they come from; sessions run at once.";

static const char kStartDoc[] =
    "start($self, inputs, out=None)\n--\n\n"
    "Begins a run as run() does, and returns while it goes on; wait() ends it.\n\n"
    "A session has one run under way at most: until wait() has returned, its other calls raise\n"
    "fornax.Error (INVALID_ARGUMENT), and arrays that are used in place must not be written to.";

static const char kWaitDoc[] =
    "wait($self, timeout=None)\n--\n\n"
    "Ends the run that start() began, and returns what run() would have.\n\n"
    "timeout: seconds; None waits until the run is done. 0 only asks.\n\n"
    "Raises fornax.Error: the run's errors; TIMEOUT if it is not done after the time, and then it\n"
    "goes on and may be waited for again; INVALID_ARGUMENT if no run is under way.";

static const char kResetDoc[] =
    "reset($self)\n--\n\n"
    "The model's states (of recurrent networks and caches) begin anew, and arrays of earlier runs\n"
    "are let go.";

static const char kCloseDoc[] =
    "close($self)\n--\n\n"
    "Frees what the session has on the device; waits for a run under way. Later calls raise\n"
    "fornax.Error. A session that nothing refers to is closed by itself.";

static const char kDeviceDoc[] = "The name of the device that the model runs on.";

static const char kInPlaceDoc[] =
    "The names of inputs and outputs whose arrays the last run used in place, without a copy.";
