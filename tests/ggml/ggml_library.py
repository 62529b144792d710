"""ggml as a C library by ctypes: what the tests of our backend use of its public functions."""

import ctypes
from ctypes import POINTER, c_bool, c_char_p, c_float, c_int, c_int64, c_size_t, c_void_p
from pathlib import Path

import numpy as np

F32, F16, Q4_0, Q8_0, I8, I16, I32, I64, BF16 = 0, 1, 2, 8, 24, 25, 26, 27, 30
# bf16 by its bits.
NUMPY = {F32: np.float32, F16: np.float16, BF16: np.uint16, I8: np.int8, I16: np.int16, I32: np.int32, I64: np.int64}


class TypeTraits(ctypes.Structure):
    """The beginning of what ggml tells of a type."""
    _fields_ = [("name", c_char_p), ("elements", c_int64), ("interleave", c_int64), ("bytes", c_size_t),
                ("is_quantised", c_bool), ("to_float", ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_int64))]


class InitParams(ctypes.Structure):
    _fields_ = [("mem_size", c_size_t), ("mem_buffer", c_void_p), ("no_alloc", c_bool)]


class DeviceProperties(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("description", c_char_p), ("memory_free", c_size_t), ("memory_total", c_size_t),
                ("type", c_int), ("device_id", c_char_p), ("async", c_bool), ("host_buffer", c_bool),
                ("buffer_from_host_ptr", c_bool), ("events", c_bool), ("mmap_support", c_bool)]


SIGNATURES = {
    **{f"ggml_{name}": (c_void_p, [c_void_p] * 2) for name in (
        "abs argmax cos dup elu exp gelu log neg relu sigmoid silu sin soft_max sqr sqrt sum_rows tanh").split()},
    **{f"ggml_{name}": (c_void_p, [c_void_p] * 3) for name in "count_equal cross_entropy_loss div mul sub".split()},
    "ggml_cast": (c_void_p, [c_void_p, c_void_p, c_int]),
    "ggml_clamp": (c_void_p, [c_void_p, c_void_p, c_float, c_float]),
    "ggml_conv_2d": (c_void_p, [c_void_p] * 3 + [c_int] * 6),
    "ggml_norm": (c_void_p, [c_void_p, c_void_p, c_float]),
    "ggml_reshape_2d": (c_void_p, [c_void_p, c_void_p, c_int64, c_int64]),
    "ggml_rms_norm": (c_void_p, [c_void_p, c_void_p, c_float]),
    "ggml_rope_ext": (c_void_p, [c_void_p] * 4 + [c_int] * 3 + [c_float] * 6),
    "ggml_backend_buffer_clear": (None, [c_void_p, ctypes.c_uint8]),
    "ggml_backend_buffer_get_size": (c_size_t, [c_void_p]),
    "ggml_backend_buft_alloc_buffer": (c_void_p, [c_void_p, c_size_t]),
    "ggml_backend_buft_get_alignment": (c_size_t, [c_void_p]),
    "ggml_backend_buft_get_max_size": (c_size_t, [c_void_p]),
    "ggml_backend_buft_get_alloc_size": (c_size_t, [c_void_p, c_void_p]),
    "ggml_backend_buft_is_host": (c_bool, [c_void_p]),
    "ggml_backend_dev_buffer_type": (c_void_p, [c_void_p]),
    "ggml_version": (c_char_p, []),
    "ggml_init": (c_void_p, [InitParams]),
    "ggml_free": (None, [c_void_p]),
    "ggml_new_tensor": (c_void_p, [c_void_p, c_int, c_int, POINTER(c_int64)]),
    "ggml_view_2d": (c_void_p, [c_void_p, c_void_p, c_int64, c_int64, c_size_t, c_size_t]),
    "ggml_set_name": (c_void_p, [c_void_p, c_char_p]),
    "ggml_view_3d": (c_void_p, [c_void_p, c_void_p] + [c_int64] * 3 + [c_size_t] * 3),
    "ggml_permute": (c_void_p, [c_void_p, c_void_p] + [c_int] * 4),
    "ggml_soft_max_ext": (c_void_p, [c_void_p] * 3 + [c_float] * 2),
    "ggml_flash_attn_ext": (c_void_p, [c_void_p] * 5 + [c_float] * 3),
    "ggml_nbytes": (c_size_t, [c_void_p]),
    "ggml_set_rows": (c_void_p, [c_void_p] * 4),
    "ggml_mul_mat": (c_void_p, [c_void_p] * 3),
    "ggml_add": (c_void_p, [c_void_p] * 3),
    "ggml_add_inplace": (c_void_p, [c_void_p] * 3),
    "ggml_scale": (c_void_p, [c_void_p, c_void_p, c_float]),
    "ggml_transpose": (c_void_p, [c_void_p] * 2),
    "ggml_cont": (c_void_p, [c_void_p] * 2),
    "ggml_cpy": (c_void_p, [c_void_p] * 3),
    "ggml_get_rows": (c_void_p, [c_void_p] * 3),
    "ggml_opt_step_adamw": (c_void_p, [c_void_p] * 6),
    "ggml_get_type_traits": (POINTER(TypeTraits), [c_int]),
    "ggml_set_param": (None, [c_void_p]),
    "ggml_backend_tensor_set_async": (None, [c_void_p, c_void_p, c_void_p, c_size_t, c_size_t]),
    "ggml_backend_tensor_get_async": (None, [c_void_p, c_void_p, c_void_p, c_size_t, c_size_t]),
    "ggml_backend_tensor_copy_async": (None, [c_void_p] * 4),
    "ggml_backend_tensor_copy": (None, [c_void_p] * 2),
    "ggml_backend_synchronize": (None, [c_void_p]),
    "ggml_backend_event_new": (c_void_p, [c_void_p]),
    "ggml_backend_event_free": (None, [c_void_p]),
    "ggml_backend_event_record": (None, [c_void_p] * 2),
    "ggml_backend_event_wait": (None, [c_void_p] * 2),
    "ggml_backend_event_synchronize": (None, [c_void_p]),
    "ggml_new_graph": (c_void_p, [c_void_p]),
    "ggml_build_forward_expand": (None, [c_void_p] * 2),
    "ggml_backend_load": (c_void_p, [c_char_p]),
    "ggml_backend_reg_name": (c_char_p, [c_void_p]),
    "ggml_backend_reg_dev_count": (c_size_t, [c_void_p]),
    "ggml_backend_reg_dev_get": (c_void_p, [c_void_p, c_size_t]),
    "ggml_backend_dev_name": (c_char_p, [c_void_p]),
    "ggml_backend_dev_description": (c_char_p, [c_void_p]),
    "ggml_backend_dev_memory": (None, [c_void_p, POINTER(c_size_t), POINTER(c_size_t)]),
    "ggml_backend_dev_get_props": (None, [c_void_p, POINTER(DeviceProperties)]),
    "ggml_backend_dev_type": (c_int, [c_void_p]),
    "ggml_backend_dev_init": (c_void_p, [c_void_p, c_char_p]),
    "ggml_backend_dev_buffer_from_host_ptr": (c_void_p, [c_void_p, c_void_p, c_size_t, c_size_t]),
    "ggml_backend_dev_supports_op": (c_bool, [c_void_p] * 2),
    "ggml_backend_free": (None, [c_void_p]),
    "ggml_backend_name": (c_char_p, [c_void_p]),
    "ggml_backend_alloc_ctx_tensors": (c_void_p, [c_void_p] * 2),
    "ggml_backend_buffer_free": (None, [c_void_p]),
    "ggml_backend_buffer_set_usage": (None, [c_void_p, c_int]),
    "ggml_backend_buffer_is_host": (c_bool, [c_void_p]),
    "ggml_backend_buffer_get_base": (c_void_p, [c_void_p]),
    "ggml_backend_tensor_alloc": (c_int, [c_void_p] * 3),
    "ggml_backend_tensor_set": (None, [c_void_p, c_void_p, c_size_t, c_size_t]),
    "ggml_backend_tensor_get": (None, [c_void_p, c_void_p, c_size_t, c_size_t]),
    "ggml_backend_tensor_memset": (None, [c_void_p, ctypes.c_uint8, c_size_t, c_size_t]),
    "ggml_backend_graph_compute": (c_int, [c_void_p] * 2),
    "ggml_backend_init_by_type": (c_void_p, [c_int, c_char_p]),
    "ggml_backend_sched_new": (c_void_p, [POINTER(c_void_p), c_void_p, c_int, c_size_t, c_bool, c_bool]),
    "ggml_backend_sched_free": (None, [c_void_p]),
    "ggml_backend_sched_graph_compute": (c_int, [c_void_p] * 2),
    "ggml_backend_sched_alloc_graph": (c_bool, [c_void_p] * 2),
    "ggml_backend_sched_reset": (None, [c_void_p]),
    "ggml_backend_graph_plan_create": (c_void_p, [c_void_p] * 2),
    "ggml_backend_graph_plan_compute": (c_int, [c_void_p] * 2),
    "ggml_backend_graph_plan_free": (None, [c_void_p] * 2),
}


class Ggml:
    """The functions above as attributes, and a few helpers. Tensors are pointers."""

    def __init__(self, folder: Path):
        base = ctypes.CDLL(str(folder / "libggml-base.so"), mode=ctypes.RTLD_GLOBAL)
        registry = ctypes.CDLL(str(next(folder.glob("libggml.v*.so"))), mode=ctypes.RTLD_GLOBAL)
        for name, (result, arguments) in SIGNATURES.items():
            function = getattr(base if hasattr(base, name) else registry, name)
            function.restype, function.argtypes = result, arguments
            setattr(self, name.removeprefix("ggml_"), function)

    def context(self):
        return self.init(InitParams(1 << 22, None, True))

    def tensor(self, context, kind, *sizes):
        """Sizes in ggml's order, the innermost first."""
        return self.new_tensor(context, kind, len(sizes), (c_int64 * len(sizes))(*sizes))

    def set(self, tensor, array):
        array = np.ascontiguousarray(array)
        assert array.nbytes == self.nbytes(tensor), (array.nbytes, self.nbytes(tensor))
        self.backend_tensor_set(tensor, array.ctypes.data, 0, array.nbytes)

    def get(self, tensor, kind, shape):
        array = np.empty(shape, NUMPY[kind])
        assert array.nbytes == self.nbytes(tensor)
        self.backend_tensor_get(tensor, array.ctypes.data, 0, array.nbytes)
        return array

    def graph(self, context, *tensors):
        graph = self.new_graph(context)
        for tensor in tensors:
            self.build_forward_expand(graph, tensor)
        return graph
