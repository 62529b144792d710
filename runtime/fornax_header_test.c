/* fornax.h is C: this file has to compile, and fornax_test.cpp calls it. */
#include "runtime/fornax.h"

int FornaxTestRunFromC(const void* model_bytes, size_t size_bytes, float* value);

/* Replaces the value by what the model makes of it; the status. */
int FornaxTestRunFromC(const void* model_bytes, size_t size_bytes, float* value) {
    fornax_model* model = NULL;
    fornax_session* session = NULL;
    fornax_tensor in = {FORNAX_F32, 1, {1}, value, sizeof *value, NULL};
    fornax_tensor out = {FORNAX_F32, 0, {0}, value, sizeof *value, NULL};
    fornax_status status = fornax_model_load_bytes(model_bytes, size_bytes, NULL, &model);
    if (status == FORNAX_OK) {
        status = fornax_session_create(model, &session);
    }
    if (status == FORNAX_OK) {
        status = fornax_run(session, &in, 1, &out, 1);
    }
    fornax_session_destroy(session);
    fornax_model_destroy(model);
    return (int)status;
}
