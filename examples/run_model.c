/* Runs a network from C: loads it, fills its inputs, runs it, and prints what comes out.
 *
 *     cc run_model.c -I FOLDER_OF_THE_HEADER -L FOLDER_OF_THE_LIBRARY -lfornax -o run_model
 *     ./run_model model.onnx [name=file ...]
 *
 * A file holds an input's elements as they are in memory; an input without one is of zeros. Open
 * sizes are 1. The Vulkan loader finds the device by VK_DRIVER_FILES, or `fornax exec --
 * ./run_model ...`.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/fornax.h"

/* Ends the program with the library's sentence if a call failed. */
static void Check(fornax_status status) {
    if (status != FORNAX_OK) {
        fprintf(stderr, "run_model: %s\n", fornax_error_message());
        exit(1);
    }
}

static void Fail(const char* message, const char* about) {
    fprintf(stderr, "run_model: %s %s.\n", message, about);
    exit(1);
}

static size_t Count(const fornax_tensor* tensor) {
    size_t count = 1;
    for (size_t axis = 0; axis < tensor->rank; ++axis) {
        count *= (size_t)tensor->dims[axis];
    }
    return count;
}

/* The file that is given for an input, or null. */
static const char* FileOf(const char* name, int argc, char** argv) {
    const size_t length = strlen(name);
    for (int i = 2; i < argc; ++i) {
        if (strncmp(argv[i], name, length) == 0 && argv[i][length] == '=') {
            return argv[i] + length + 1;
        }
    }
    return NULL;
}

static void ReadFile(const char* path, void* data, size_t size_bytes) {
    FILE* file = fopen(path, "rb");
    if (file == NULL) {
        Fail("This file cannot be opened:", path);
    }
    if (fread(data, 1, size_bytes, file) != size_bytes || fgetc(file) != EOF) {
        Fail("This file does not have as many bytes as the input:", path);
    }
    fclose(file);
}

static void PrintShape(const char* name, const fornax_tensor* tensor) {
    printf("%s: %s[", name, fornax_type_name(tensor->type));
    for (size_t axis = 0; axis < tensor->rank; ++axis) {
        printf("%s%" PRId64, axis == 0 ? "" : ",", tensor->dims[axis]);
    }
    printf("]");
}

static void PrintValues(const fornax_tensor* tensor) {
    const size_t count = Count(tensor);
    for (size_t i = 0; i < count && i < 10; ++i) {
        if (tensor->type == FORNAX_F32) {
            printf(" %.9g", (double)((const float*)tensor->data)[i]);
        } else if (tensor->type == FORNAX_I64) {
            printf(" %" PRId64, ((const int64_t*)tensor->data)[i]);
        }
    }
    printf(count > 10 ? " ...\n" : "\n");
}

int main(int argc, char** argv) {
    if (argc < 2) {
        fputs("usage: run_model MODEL [NAME=FILE ...]\n", stderr);
        return 2;
    }
    /* A model without options: compiled for the first sizes that it is run with. */
    fornax_model* model = NULL;
    Check(fornax_model_load(argv[1], NULL, &model));
    printf("%s on %s\n", argv[1], fornax_model_device(model));

    const size_t input_count = fornax_model_input_count(model);
    fornax_tensor* inputs = calloc(input_count + 1, sizeof *inputs);
    if (inputs == NULL) {
        Fail("There is no memory for", "the inputs");
    }
    for (size_t i = 0; i < input_count; ++i) {
        fornax_port port;
        Check(fornax_model_input(model, i, &port));
        fornax_tensor* input = &inputs[i];
        input->type = port.type;
        input->rank = port.rank;
        for (size_t axis = 0; axis < port.rank; ++axis) {
            input->dims[axis] = port.dims[axis] < 0 ? 1 : port.dims[axis];
        }
        input->size_bytes = Count(input) * fornax_type_bytes(input->type);
        input->data = calloc(1, input->size_bytes + 1);
        if (input->data == NULL) {
            Fail("There is no memory for", port.name);
        }
        const char* file = FileOf(port.name, argc, argv);
        if (file != NULL) {
            ReadFile(file, input->data, input->size_bytes);
        }
        PrintShape(port.name, input);
        printf(" from %s\n", file == NULL ? "zeros" : file);
    }

    /* A session has states and memory of its own; it runs any number of times. */
    fornax_session* session = NULL;
    Check(fornax_session_create(model, &session));
    const size_t output_count = fornax_model_output_count(model);
    /* All zeros: the library allocates what it returns. */
    fornax_tensor* outputs = calloc(output_count + 1, sizeof *outputs);
    if (outputs == NULL) {
        Fail("There is no memory for", "the outputs");
    }
    Check(fornax_run(session, inputs, input_count, outputs, output_count));
    for (size_t i = 0; i < output_count; ++i) {
        fornax_port port;
        Check(fornax_model_output(model, i, &port));
        PrintShape(port.name, &outputs[i]);
        PrintValues(&outputs[i]);
        fornax_tensor_release(&outputs[i]);
    }

    for (size_t i = 0; i < input_count; ++i) {
        free(inputs[i].data);
    }
    free(inputs);
    free(outputs);
    fornax_session_destroy(session);
    fornax_model_destroy(model);
    return 0;
}
