"""Writes the structures of small FX graphs of many operators to a folder, to begin fuzzing with.

    python3 fuzz_seeds.py FOLDER

A line of GRAPHS is a graph of one node: its overload, arguments as in Python, and its results. "f2x3" is a tensor of
floats of these sizes, "i" of i64, "b" of bools; sizes may be symbols. Arguments that are tensors are inputs.
"""
import importlib
import pathlib
import re
import sys
import types

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The modules without the package, which needs torch.
_package = types.ModuleType("fornax_torch")
_package.__path__ = [str(ROOT / "python/fornax/torch")]
sys.modules["fornax_torch"] = _package
graph_file = importlib.import_module("fornax_torch.graph_file")
flat = importlib.import_module("fornax_torch.flat")

ELEMENTS = {"f": "float32", "d": "float64", "h": "float16", "i": "int64", "j": "int32", "b": "bool", "u": "uint8"}
TENSOR = re.compile(r"([fdhijbu])((?:\d+|n)(?:x(?:\d+|n))*)?$")

GRAPHS = """
add.Tensor self=f2x3 other=f3 alpha=1 -> f2x3
add.Tensor self=fnx3 other=f3 alpha=2.5 -> fnx3
mul.Tensor self=i4 other=3 -> i4
div.Tensor_mode self=f4 other=f4 rounding_mode='floor' -> f4
pow.Tensor_Scalar self=f4 exponent=1.5 -> f4
eq.Scalar self=f4 other=1 -> b4
where.self condition=b4 self=f4 other=f4 -> f4
clamp.default self=f4 min=0 max=1.5 -> f4
exp.default self=h4 -> h4
_to_copy.default self=f4 -> i4
gelu.default self=f2x3 approximate='tanh' -> f2x3
elu.default self=f4 alpha=1 scale=1 input_scale=1 -> f4
full.default size=[2,3] fill_value=1.5 -> f2x3
arange.start_step start=0 end=5 step=1 -> i5
view.default self=f2x6 size=[3,4] -> f3x4
expand.default self=f1x3 size=[2,3] -> f2x3
permute.default self=f2x3x4 dims=[2,0,1] -> f4x2x3
slice.Tensor self=f8x3 dim=0 start=1 end=7 step=2 -> f3x3
slice_scatter.default self=f8x3 src=f3x3 dim=0 start=1 end=7 step=2 -> f8x3
select.int self=f2x3 dim=1 index=-1 -> f2
split_with_sizes.default self=f5x2 split_sizes=[2,3] dim=0 -> f2x2 f3x2
cat.default tensors=[f2x3,f1x3] dim=0 -> f3x3
stack.default tensors=[f2,f2] dim=1 -> f2x2
repeat.default self=f2x3 repeats=[2,2,1] -> f2x4x3
flip.default self=f2x3 dims=[1] -> f2x3
roll.default self=f5 shifts=[2] dims=[0] -> f5
diagonal.default self=f3x4 offset=1 dim1=0 dim2=1 -> f3
as_strided.default self=f12 size=[3,2] stride=[4,1] storage_offset=1 -> f3x2
unfold.default self=f8 dimension=0 size=3 step=2 -> f3x3
sum.dim_IntList self=f2x3 dim=[1] keepdim=False -> f2
mean.dim self=fnx3 dim=[1] keepdim=True -> fnx1
amax.default self=f2x3 dim=[0] keepdim=False -> f3
max.dim self=f2x3 dim=1 keepdim=False -> f2 i2
argmax.default self=f2x3 dim=1 keepdim=False -> i2
any.dim self=b2x3 dim=1 keepdim=False -> b2
var.correction self=f2x3 dim=[1] correction=1 keepdim=False -> f2
cumsum.default self=f2x5 dim=1 -> f2x5
sort.default self=f2x5 dim=1 descending=True -> f2x5 i2x5
topk.default self=f2x5 k=2 dim=1 largest=True sorted=True -> f2x2 i2x2
gather.default self=f3x4 dim=1 index=i3x2 sparse_grad=False -> f3x2
index.Tensor self=f3x4x5 indices=[None,i2,i2] -> f3x2
index_put.default self=f3x4 indices=[i2] values=f2x4 accumulate=True -> f3x4
index_put.default self=f3x4 indices=[b3x4] values=f accumulate=False -> f3x4
index_select.default self=f3x4 dim=1 index=i2 -> f3x2
embedding.default weight=f8x4 indices=i2x3 -> f2x3x4
scatter.src self=f3x4 dim=1 index=i3x2 src=f3x2 -> f3x4
scatter_reduce.two self=f3x4 dim=1 index=i3x2 src=f3x2 reduce='mean' include_self=False -> f3x4
masked_scatter.default self=f6 mask=b6 source=f6 -> f6
_softmax.default self=f2x5 dim=-1 half_to_float=False -> f2x5
_log_softmax.default self=fnx5 dim=1 half_to_float=False -> fnx5
native_layer_norm.default input=f2x8 normalized_shape=[8] weight=f8 bias=f8 eps=0.00001 -> f2x8 f2x1 f2x1
native_group_norm.default input=f2x4x3 weight=f4 bias=f4 N=2 C=4 HxW=3 group=2 eps=0.00001 -> f2x4x3 f2x2 f2x2
_native_batch_norm_legit_no_training.default input=f2x3x4 weight=f3 bias=f3 running_mean=f3 running_var=f3 momentum=0.1 eps=0.00001 -> f2x3x4
_native_batch_norm_legit_functional.default input=f2x3x4 weight=f3 bias=f3 running_mean=f3 running_var=f3 training=True momentum=0.1 eps=0.00001 -> f2x3x4 f3 f3 f3 f3
addmm.default self=f4 mat1=f2x3 mat2=f3x4 beta=1 alpha=1 -> f2x4
bmm.default self=f2x3x4 mat2=f2x4x5 -> f2x3x5
scaled_dot_product_attention.default query=f1x2x4x8 key=f1x2x4x8 value=f1x2x4x8 attn_mask=None dropout_p=0.0 is_causal=True scale=None -> f1x2x4x8
_cdist_forward.default x1=f3x4 x2=f2x4 p=2.0 compute_mode=None -> f3x2
convolution.default input=f1x4x6x6 weight=f8x2x3x3 bias=f8 stride=[2,2] padding=[1,1] dilation=[1,1] transposed=False output_padding=[0,0] groups=2 -> f1x8x3x3
convolution.default input=f1x4x3x3 weight=f4x2x3x3 bias=None stride=[2,2] padding=[1,1] dilation=[1,1] transposed=True output_padding=[1,1] groups=1 -> f1x2x6x6
convolution_backward.default grad_output=f1x8x3x3 input=f1x4x6x6 weight=f8x2x3x3 bias_sizes=[8] stride=[2,2] padding=[1,1] dilation=[1,1] transposed=False output_padding=[0,0] groups=2 output_mask=[True,True,True] -> f1x4x6x6 f8x2x3x3 f8
max_pool2d_with_indices.default self=f1x2x6x6 kernel_size=[3,3] stride=[2,2] padding=[1,1] dilation=[1,1] ceil_mode=False -> f1x2x3x3 i1x2x3x3
avg_pool2d.default self=f1x2x6x6 kernel_size=[2,2] stride=[2,2] padding=[0,0] ceil_mode=True count_include_pad=True divisor_override=None -> f1x2x3x3
_adaptive_avg_pool2d.default self=f1x2x5x6 output_size=[2,3] -> f1x2x2x3
col2im.default self=f1x8x9 output_size=[4,4] kernel_size=[2,2] dilation=[1,1] padding=[0,0] stride=[1,1] -> f1x2x4x4
constant_pad_nd.default self=f2x3 pad=[1,-1] value=0.5 -> f2x3
reflection_pad2d.default self=f1x4x4 padding=[1,1,1,1] -> f1x6x6
upsample_nearest2d.vec input=f1x2x3x3 output_size=[6,6] scale_factors=None -> f1x2x6x6
upsample_bilinear2d.vec input=f1x2x3x3 output_size=[5,5] align_corners=False scale_factors=None -> f1x2x5x5
grid_sampler_2d.default input=f1x2x4x4 grid=f1x3x3x2 interpolation_mode=0 padding_mode=0 align_corners=False -> f1x2x3x3
linalg_lu_factor_ex.default A=f2x3x4 pivot=True check_errors=False -> f2x3x4 j2x3 j2
linalg_lu_solve.default LU=f3x3 pivots=j3 B=f3x2 left=True adjoint=False -> f3x2
linalg_solve_triangular.default self=f3x3 B=f3x2 upper=True left=True unitriangular=False -> f3x2
linalg_cholesky_ex.default self=f3x3 upper=False check_errors=False -> f3x3 j
linalg_qr.default A=f4x3 mode='reduced' -> f4x3 f3x3
ormqr.default self=f4x3 input2=f3 input3=f4x2 left=True transpose=True -> f4x2
_linalg_eigh.default A=f3x3 UPLO='L' compute_v=True -> f3 f3x3
_linalg_svd.default A=f3x4 full_matrices=True compute_uv=True driver=None -> f3x3 f3 f4x4
fornax.dft.default x=f2x8x2 dim=1 length=8 kind=1 -> f2x5x2
fornax.complex_linalg_lu_factor_ex.default A=f2x3x4x2 pivot=True check_errors=False -> f2x3x4x2 j2x3 j2
fornax.complex_linalg_lu_solve.default LU=f3x3x2 pivots=j3 B=f3x2x2 left=True adjoint=True -> f3x2x2
fornax.complex_linalg_qr.default A=f4x3x2 mode='reduced' -> f4x3x2 f3x3x2
fornax.complex_linalg_eigh.default A=f3x3x2 UPLO='L' compute_v=True -> f3 f3x3x2
fornax.complex_linalg_svd.default A=f3x4x2 full_matrices=True compute_uv=True driver=None -> f3x3x2 f3 f4x4x2
cummax.default self=f2x5 dim=1 -> f2x5 i2x5
embedding_dense_backward.default grad_output=f2x3 indices=i2 num_weights=5 padding_idx=-1 scale_grad_by_freq=False -> f5x3
"""


class Graph:
    def __init__(self):
        self.program = graph_file.Program("seed")

    def tensor(self, text, is_input):
        kind, dims = TENSOR.match(text).groups()
        sizes = [self.program.symbol("n", 2, 1, 64) if dim == "n" else self.program.constant(int(dim))
                 for dim in (dims or "").split("x") if dim]
        name = f"v{len(self.program.fields['values'])}"
        value = self.program.value(name, ELEMENTS[kind], sizes)
        if is_input:
            self.program.input(name, value)
        return value

    def argument(self, name, text):
        make = graph_file.argument
        if text == "None":
            return make(name, graph_file.ARG_NONE)
        if text in ("True", "False"):
            return make(name, graph_file.ARG_BOOL, int(text == "True"))
        if text.startswith("["):
            items = [self.argument(None, item) for item in text[1:-1].split(",") if item]
            return make(name, graph_file.ARG_LIST, items=items)
        if text.startswith("'"):
            return make(name, graph_file.ARG_TEXT, text=text[1:-1])
        if TENSOR.match(text):
            return make(name, graph_file.ARG_VALUE, self.tensor(text, True))
        if "." in text:
            return make(name, graph_file.ARG_FLOAT, number=float(text))
        return make(name, graph_file.ARG_SIZE, self.program.constant(int(text)))


def structure(line):
    graph = Graph()
    words, _, results = line.partition(" -> ")
    target, *given = words.split()
    arguments = [graph.argument(*word.split("=", 1)) for word in given]
    values = [graph.tensor(word, False) for word in results.split()]
    graph.program.node(target if target.startswith("fornax.") else "aten." + target, target, "seed.py:1", arguments, values)
    for i, value in enumerate(values):
        graph.program.output(f"out{i}", value)
    return flat.Writer().write(graph_file.PROGRAM, graph.program.fields)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for i, line in enumerate(GRAPHS.strip().splitlines()):
        (folder / f"{i:03}_{line.split('.')[0]}").write_bytes(structure(line))


if __name__ == "__main__":
    main()
