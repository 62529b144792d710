/* Runs a program of torch.export from C, without Python and torch: loads it, sets the sizes of its
 * inputs once, and runs it several times in the same memory.
 *
 *     cc run_program.c -I FOLDER_OF_THE_HEADER -L FOLDER_OF_THE_LIBRARY -lfornax -o run_program
 *     ./run_program program.fnx RUNS FOLDER [NAME:DIMS=FILE ...]
 *
 * "image:3,1,28,28=image.bin" gives the input `image` these dimensions, and the elements of the
 * file. Inputs that are not named are zeros, with open sizes of 1. Every output is written to
 * FOLDER/NAME.bin. What the model changes (caches, counters) is an input that holds its value
 * before a run, and the output "mutated.NAME" that holds it afterwards: this program hands it on
 * from run to run.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/fornax.h"

enum { kMaxPorts = 64 };

static void Fail(const char* message, const char* about) {
    fprintf(stderr, "run_program: %s %s.\n", message, about);
    exit(1);
}

/* Ends the program with the library's sentence if a call failed. */
static void Check(fornax_status status) {
    if (status != FORNAX_OK) {
        fprintf(stderr, "run_program: %s\n", fornax_error_message());
        exit(1);
    }
}

/* What is given for an input: ":DIMS=FILE" behind its name, or null. */
static const char* GivenFor(const char* name, int argc, char** argv) {
    const size_t length = strlen(name);
    for (int i = 4; i < argc; ++i) {
        if (strncmp(argv[i], name, length) == 0 && argv[i][length] == ':') {
            return argv[i] + length;
        }
    }
    return NULL;
}

/* The dimensions of an input: those that are given, else the program's with 1 for open ones. */
static void SetDims(const fornax_port* port, const char* given, fornax_tensor* tensor) {
    tensor->type = port->type;
    tensor->rank = port->rank;
    for (size_t axis = 0; axis < port->rank; ++axis) {
        tensor->dims[axis] = port->dims[axis] < 0 ? 1 : port->dims[axis];
        if (given != NULL) {
            char* end = NULL;
            tensor->dims[axis] = strtoll(given + 1, &end, 10);
            given = end;
            if (*end != (axis + 1 == port->rank ? '=' : ',')) {
                Fail("These are not as many dimensions as the program has for", port->name);
            }
        }
    }
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

static void WriteFile(const char* folder, const char* name, const fornax_tensor* tensor) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.bin", folder, name);
    FILE* file = fopen(path, "wb");
    if (file == NULL || fwrite(tensor->data, 1, tensor->size_bytes, file) != tensor->size_bytes ||
        fclose(file) != 0) {
        Fail("This file cannot be written:", path);
    }
}

/* The number of the input that an output "mutated.NAME" becomes, or -1. */
static int Successor(const fornax_model* model, const char* output) {
    static const char kPrefix[] = "mutated.";
    if (strncmp(output, kPrefix, strlen(kPrefix)) != 0) {
        return -1;
    }
    for (size_t i = 0; i < fornax_model_input_count(model); ++i) {
        fornax_port port;
        Check(fornax_model_input(model, i, &port));
        if (strcmp(port.name, output + strlen(kPrefix)) == 0) {
            return (int)i;
        }
    }
    return -1;
}

int main(int argc, char** argv) {
    if (argc < 4) {
        fputs("usage: run_program PROGRAM RUNS FOLDER [NAME:DIMS=FILE ...]\n", stderr);
        return 2;
    }
    fornax_model* model = NULL;
    Check(fornax_model_load(argv[1], NULL, &model));
    const size_t input_count = fornax_model_input_count(model);
    const size_t output_count = fornax_model_output_count(model);
    if (input_count > kMaxPorts || output_count > kMaxPorts) {
        Fail("There are too many inputs or outputs in", argv[1]);
    }
    printf("%s on %s\n", argv[1], fornax_model_device(model));

    /* The sizes decide what is compiled; a guard of the program that they break is an error here.
     */
    fornax_session* session = NULL;
    Check(fornax_session_create(model, &session));
    fornax_tensor inputs[kMaxPorts] = {{0}};
    for (size_t i = 0; i < input_count; ++i) {
        fornax_port port;
        Check(fornax_model_input(model, i, &port));
        SetDims(&port, GivenFor(port.name, argc, argv), &inputs[i]);
    }
    Check(fornax_session_set_sizes(session, inputs, input_count));

    /* The memory that runs read: it keeps what is written to it once. */
    for (size_t i = 0; i < input_count; ++i) {
        fornax_port port;
        Check(fornax_model_input(model, i, &port));
        Check(fornax_session_input_memory(session, i, &inputs[i].data, &inputs[i].size_bytes));
        memset(inputs[i].data, 0, inputs[i].size_bytes);
        const char* given = GivenFor(port.name, argc, argv);
        if (given != NULL) {
            ReadFile(strchr(given, '=') + 1, inputs[i].data, inputs[i].size_bytes);
        }
    }

    const int runs = atoi(argv[2]);
    for (int run = 0; run < runs; ++run) {
        Check(fornax_session_run(session));
        for (size_t i = 0; i < output_count; ++i) {
            fornax_port port;
            fornax_tensor output;
            Check(fornax_model_output(model, i, &port));
            Check(fornax_session_output(session, i, &output));
            const int successor = Successor(model, port.name);
            if (run + 1 == runs) {
                WriteFile(argv[3], port.name, &output);
                printf("%s: %s", port.name, fornax_type_name(output.type));
                for (size_t axis = 0; axis < output.rank; ++axis) {
                    printf("%s%" PRId64, axis == 0 ? "[" : ",", output.dims[axis]);
                }
                puts(output.rank == 0 ? "[]" : "]");
            } else if (successor >= 0) {
                memcpy(inputs[successor].data, output.data, output.size_bytes);
            }
        }
    }
    fornax_session_destroy(session);
    fornax_model_destroy(model);
    return 0;
}
