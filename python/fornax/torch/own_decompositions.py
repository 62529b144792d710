"""Operators that torch has no decomposition of, in terms of those that Fornax has.

Each function has the signature of its overload. What a tensor holds is never looked at, so the graphs are right for
all values; sizes may be symbols.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional

aten = torch.ops.aten
TABLE = {}


def own(*overloads):
    """Registers a function for overloads, of which this version of torch may lack some."""
    def register(function):
        for name in overloads:
            packet, _, overload = name.partition(".")
            found = getattr(getattr(aten, packet, None), overload or "default", None)
            if found is not None:
                TABLE[found] = function
        return function

    return register


def _dim(dim, x):
    return dim % max(x.dim(), 1)


def _at_least_one(x):
    return x.reshape(1) if x.dim() == 0 else x


def _widest(x):
    return torch.finfo(x.dtype).max if x.dtype.is_floating_point else torch.iinfo(x.dtype).max


# --- Orders ---


def _pick(x, order, place, dim, keepdim):
    """Value and index at a place of the order along an axis."""
    index = order.gather(dim, place)
    value = x.gather(dim, index)
    return (value, index) if keepdim else (value.squeeze(dim), index.squeeze(dim))


@own("kthvalue")
def kthvalue(self, k, dim=-1, keepdim=False):
    if self.dim() == 0:
        return self.clone(), torch.zeros_like(self, dtype=torch.int64)
    values, order = torch.sort(self, dim=dim, stable=True)
    value, index = values.narrow(dim, k - 1, 1), order.narrow(dim, k - 1, 1)
    return (value, index) if keepdim else (value.squeeze(dim), index.squeeze(dim))


def _median(x, dim, keepdim, ignores_nan):
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    dim = _dim(dim, x)
    order = torch.sort(x, dim=dim, stable=True)[1]
    size = x.shape[dim]
    if x.dtype.is_floating_point:
        present = (x == x).sum(dim, keepdim=True)
        if ignores_nan:
            place = (present - 1).clamp(min=0) // 2
        else:
            place = torch.where(present == size, (size - 1) // 2, present)
    else:
        place = torch.full_like(order.narrow(dim, 0, 1), (size - 1) // 2)
    return _pick(x, order, place, dim, keepdim)


@own("median.dim")
def median_dim(self, dim, keepdim=False):
    return _median(self, dim, keepdim, False)


@own("nanmedian.dim")
def nanmedian_dim(self, dim, keepdim=False):
    return _median(self, dim, keepdim, True)


@own("median")
def median(self):
    return _median(self.reshape(-1), 0, False, False)[0]


@own("nanmedian")
def nanmedian(self):
    return _median(self.reshape(-1), 0, False, True)[0]


@own("mode")
def mode(self, dim=-1, keepdim=False):
    if self.dim() == 0:
        return self.clone(), torch.zeros_like(self, dtype=torch.int64)
    x = self.movedim(dim, -1)
    count = (x.unsqueeze(-1) == x.unsqueeze(-2)).sum(-1)
    often = count == count.amax(-1, keepdim=True)
    if x.dtype == torch.bool:
        value = torch.where(often, x.to(torch.uint8), 2).amin(-1, keepdim=True).to(torch.bool)
    else:
        value = torch.where(often, x, _widest(x)).amin(-1, keepdim=True)
    places = torch.arange(x.shape[-1], device=x.device)
    index = torch.where(x == value, places, 0).amax(-1, keepdim=True)
    value, index = value.movedim(-1, dim), index.movedim(-1, dim)
    return (value, index) if keepdim else (value.squeeze(dim), index.squeeze(dim))


@own("logcumsumexp")
def logcumsumexp(self, dim):
    if self.is_complex():
        return NotImplemented
    if self.dim() == 0 or self.numel() == 0:
        return self.clone()
    x = self.movedim(dim, -1)
    greatest = aten.cummax(x, x.dim() - 1)[0]
    finite = torch.where(greatest.isinf(), 0, greatest)
    places = torch.arange(x.shape[-1], device=x.device)
    before = places <= places.unsqueeze(-1)
    terms = torch.where(before, torch.exp(x.unsqueeze(-2) - finite.unsqueeze(-1)), 0)
    return (terms.sum(-1).log() + finite).movedim(-1, dim)


# --- Histograms ---


def _edges(low, high, bins):
    """bins + 1 numbers from low to high, as torch.linspace counts them: from either end."""
    step = (high - low) / bins
    place = torch.arange(bins + 1, dtype=low.dtype, device=low.device)
    return torch.where(place < (bins + 1) // 2, low + step * place, high - step * (bins - place))


def _count(x, edges, weight):
    """How many elements, or what weights, each bin has; the last one has its upper edge too."""
    bins = edges.shape[0] - 1
    x = x.reshape(-1)
    place = torch.searchsorted(edges, x, right=True) - 1
    place = torch.where(x == edges[bins], bins - 1, place)
    inside = (x >= edges[0]) & (x <= edges[bins])
    ones = torch.ones_like(x) if weight is None else weight.reshape(-1).to(x.dtype)
    counts = torch.zeros(bins, dtype=x.dtype, device=x.device)
    return counts.scatter_add(0, place.clamp(0, bins - 1), torch.where(inside, ones, 0))


def _density(counts, edges):
    return counts / (counts.sum() * (edges[1:] - edges[:-1]))


def _range(x, given):
    if given is not None:
        return x.new_full((), given[0]), x.new_full((), given[1])
    if x.numel() == 0:
        return x.new_full((), 0), x.new_full((), 1)
    low, high = x.amin(), x.amax()
    same = low == high
    return torch.where(same, low - 0.5, low), torch.where(same, high + 0.5, high)


@own("histc")
def histc(self, bins=100, min=0, max=0):  # pylint: disable=redefined-builtin
    x = self.reshape(-1)
    if not x.dtype.is_floating_point:
        return NotImplemented
    if min != max:
        low, high = x.new_full((), min), x.new_full((), max)
    elif x.numel() == 0:
        low, high = x.new_full((), min - 1), x.new_full((), max + 1)
    else:  # Equal bounds stand for those of the elements.
        low, high = x.amin(), x.amax()
        low, high = torch.where(low == high, low - 1, low), torch.where(low == high, high + 1, high)
    # Bins come from a division, each step of which is rounded to the type, and not from edges as for torch.histogram.
    inside = (x >= low) & (x <= high)
    place = (torch.where(inside, x, low) - low) * bins / (high - low)
    counts = torch.zeros(bins, dtype=x.dtype, device=x.device)
    return counts.scatter_add(0, place.to(torch.int64).clamp(0, bins - 1), inside.to(x.dtype))


@own("histogram.bin_ct")
def histogram_count(self, bins=100, *, range=None, weight=None, density=False):  # pylint: disable=redefined-builtin
    edges = _edges(*_range(self, range), bins)
    counts = _count(self, edges, weight)
    return _density(counts, edges) if density else counts, edges


@own("histogram.bins_tensor")
def histogram_edges(self, bins, *, weight=None, density=False):
    counts = _count(self, bins, weight)
    return _density(counts, bins) if density else counts, bins.clone()


def _ranges(x, bins, given):
    columns = x.reshape(-1, x.shape[-1])
    for axis, count in enumerate(bins):
        pair = None if given is None else given[2 * axis:2 * axis + 2]
        yield _edges(*_range(columns[:, axis], pair), count)


@own("_histogramdd_bin_edges")
def histogramdd_edges(self, bins, *, range=None, weight=None, density=False):  # pylint: disable=redefined-builtin
    del weight, density
    return list(_ranges(self, bins, range))


def _histogramdd(x, edges, weight, density):
    columns = x.reshape(-1, x.shape[-1])
    place, inside = 0, True
    sizes = [edge.shape[0] - 1 for edge in edges]
    for axis, edge in enumerate(edges):
        column = columns[:, axis]
        own_place = torch.searchsorted(edge, column.contiguous(), right=True) - 1
        own_place = torch.where(column == edge[-1], sizes[axis] - 1, own_place).clamp(0, sizes[axis] - 1)
        place = place * sizes[axis] + own_place
        inside = (column >= edge[0]) & (column <= edge[-1]) & inside
    ones = torch.ones_like(columns[:, 0]) if weight is None else weight.reshape(-1).to(x.dtype)
    counts = torch.zeros(math.prod(sizes), dtype=x.dtype, device=x.device)
    counts = counts.scatter_add(0, place, torch.where(inside, ones, 0)).reshape(sizes)
    if density:
        counts = counts / counts.sum()
        for axis, edge in enumerate(edges):
            width = edge[1:] - edge[:-1]
            counts = counts / width.reshape([-1 if i == axis else 1 for i in range(len(edges))])
    return counts


@own("_histogramdd_from_bin_cts")
def histogramdd_counts(self, bins, *, range=None, weight=None, density=False):  # pylint: disable=redefined-builtin
    return _histogramdd(self, list(_ranges(self, bins, range)), weight, density)


@own("_histogramdd_from_bin_tensors")
def histogramdd_tensors(self, bins, *, weight=None, density=False):
    return _histogramdd(self, bins, weight, density)


# --- Segments and indices ---


def _segments(data, lengths, offsets, axis):
    """Where segments begin and end, and which rows of the data are in them: [..., segments, rows, 1, ...]."""
    if lengths is None:
        begins, ends = offsets[..., :-1], offsets[..., 1:]
    else:
        ends = lengths.cumsum(-1)
        begins = ends - lengths
    places = torch.arange(data.shape[axis], device=data.device)
    member = (begins.unsqueeze(-1) <= places) & (places < ends.unsqueeze(-1))
    return begins, ends, member.reshape(*member.shape, *[1] * (data.dim() - axis - 1))


@own("segment_reduce")
def segment_reduce(data, reduce, *, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None):
    del unsafe
    if indices is not None or axis != (offsets if lengths is None else lengths).dim() - 1:
        return NotImplemented
    begins, ends, member = _segments(data, lengths, offsets, axis)
    x = data.unsqueeze(axis)
    start = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}[reduce]
    neutral = start
    if initial is not None:
        start = initial
    x = torch.where(member, x, neutral)
    along = axis + 1
    if reduce == "prod":
        return x.prod(along) * start
    if reduce == "max":
        return x.amax(along).clamp(min=start)
    if reduce == "min":
        return x.amin(along).clamp(max=start)
    result = x.sum(along) + start
    if reduce == "mean":
        count = (ends - begins).to(data.dtype).reshape(*ends.shape, *[1] * (data.dim() - axis - 1))
        empty = torch.where(count == 0, math.nan if initial is None else initial, 0)
        result = torch.where(count == 0, empty, result / count)
    return result


@own("_segment_reduce_backward")
def segment_reduce_backward(grad, output, data, reduce, *, lengths=None, offsets=None, axis=0, initial=None):
    if axis != (offsets if lengths is None else lengths).dim() - 1 or reduce == "prod":
        return NotImplemented
    del initial
    begins, ends, member = _segments(data, lengths, offsets, axis)
    grad, output = grad.unsqueeze(axis + 1), output.unsqueeze(axis + 1)
    if reduce == "mean":
        count = (ends - begins).to(data.dtype).reshape(*ends.shape, *[1] * (data.dim() - axis))
        grad = grad / count.clamp(min=1)
    elif reduce in ("max", "min"):
        # Elements that are the extreme, or no number, share it.
        x = data.unsqueeze(axis)
        member = member & ((x == output) | torch.isnan(x))
        grad = grad / member.to(data.dtype).sum(axis + 1, keepdim=True).clamp(min=1)
    return torch.where(member, grad, 0.0).sum(axis)


@own("put")
def put(self, index, source, accumulate=False):
    flat = self.reshape(-1)
    places = index.reshape(-1)
    places = torch.where(places < 0, places + flat.shape[0], places)
    return aten.index_put(flat, [places], source.reshape(-1), accumulate).reshape(self.shape)


@own("nonzero_static")
def nonzero_static(self, *, size, fill_value=-1):
    flat = self.reshape(-1) != 0
    # What has no place goes to one behind the others.
    slot = torch.where(flat, (flat.cumsum(0) - 1).clamp(max=size), size)
    positions = torch.arange(flat.shape[0], device=self.device)
    found = torch.full((size + 1,), -1, dtype=torch.int64, device=self.device)
    found = found.scatter(0, slot, torch.where(slot < size, positions, -1))[:size]
    columns, rest = [], found
    for extent in reversed(self.shape):
        columns.append(torch.where(found < 0, fill_value, rest % extent))
        rest = rest // extent
    if not columns:
        return found.new_zeros((size, 0))
    return torch.stack(columns[::-1], 1)


@own("narrow_copy")
def narrow_copy(self, dim, start, length):
    return self.narrow(dim, start, length).clone()


@own("angle")
def angle(self):
    if self.is_complex():
        return NotImplemented
    x = self if self.dtype.is_floating_point else self.to(torch.get_default_dtype())
    return torch.where(torch.isnan(x), x, torch.where(x < 0, math.pi, 0.0).to(x.dtype))


@own("diagonal_scatter")
def diagonal_scatter(self, src, offset=0, dim1=0, dim2=1):
    dim1, dim2 = dim1 % self.dim(), dim2 % self.dim()
    rest = [axis for axis in range(self.dim()) if axis not in (dim1, dim2)]
    order = [dim1, dim2, *rest]
    x = self.permute(order)
    places = torch.arange(src.shape[-1], device=self.device)
    values = src.movedim(-1, 0).to(self.dtype)
    x = aten.index_put(x, [places + max(-offset, 0), places + max(offset, 0)], values)
    return x.permute([order.index(axis) for axis in range(self.dim())])


@own("index_reduce")
def index_reduce(self, dim, index, source, reduce, *, include_self=True):
    x = _at_least_one(self)
    updates = source if source.dim() else source.reshape(1)
    dim = _dim(dim, x)
    index = index.reshape([-1 if axis == dim else 1 for axis in range(x.dim())]).expand_as(updates)
    return aten.scatter_reduce(x, dim, index, updates, reduce, include_self=include_self).reshape(self.shape)


@own("copysign.Tensor")
def copysign(self, other):
    x = self if self.dtype.is_floating_point else self.to(torch.get_default_dtype())
    if isinstance(other, Tensor) and other.dtype.is_floating_point:
        y = other.to(torch.float32) if other.dtype in (torch.float16, torch.bfloat16) else other
        bits = y.view(torch.int64 if y.dtype == torch.float64 else torch.int32)
        negative = bits < 0
    else:
        negative = other < 0
    result = torch.result_type(self, other)
    result = result if result.is_floating_point else torch.get_default_dtype()
    size = x.to(result).abs()
    return torch.where(negative, -size, size)


def _extreme(self, other, extreme):
    """The extreme of two numbers of which one may be missing."""
    result = torch.result_type(self, other)
    a, b = self.to(result), other.to(result)
    if not result.is_floating_point:
        return extreme(a, b)
    return torch.where(torch.isnan(a), b, torch.where(torch.isnan(b), a, extreme(a, b)))


@own("fmax")
def fmax(self, other):
    return _extreme(self, other, torch.maximum)


@own("fmin")
def fmin(self, other):
    return _extreme(self, other, torch.minimum)


@own("hypot")
def hypot(self, other):
    a, b = self.abs(), other.abs()
    greater, less = torch.maximum(a, b), torch.minimum(a, b)
    ratio = less / torch.where(greater == 0, 1.0, greater)
    size = greater * torch.sqrt(1 + ratio * ratio)
    return torch.where(torch.isinf(a) | torch.isinf(b), math.inf, size)


@own("ldexp.Tensor")
def ldexp(self, other):
    if self.is_complex() or other.is_complex():
        return self * torch.pow(2.0, other)
    result = torch.result_type(self, other)
    result = result if result.is_floating_point else torch.get_default_dtype()
    # In two halves, because the power alone may be out of range.
    half = torch.floor(other.to(result) / 2)
    return self.to(result) * torch.exp2(half) * torch.exp2(other.to(result) - half)


# --- Pooling ---


def _bins(size, bins, device):
    """Of each bin the elements [bins, longest] and which of these it has."""
    number = torch.arange(bins, device=device)
    begin = number * size // bins
    end = ((number + 1) * size + bins - 1) // bins
    longest = size if bins == 1 else min(size, -(-size // bins) + 1)
    places = begin.unsqueeze(-1) + torch.arange(longest, device=device)
    return places.clamp(max=size - 1), places < end.unsqueeze(-1)


def _greatest(x, places, inside):
    """Maxima of windows and their positions in planes; places and inside are [.., bins, longest] of each axis."""
    count = len(places)
    planes = x.shape[-count:]
    index, mask, position = [], None, 0
    for axis in range(count):
        shape = []
        for other in range(count):
            shape += list(places[axis].shape[-2:]) if other == axis else [1, 1]
        lead = places[axis].shape[:-2]
        place = places[axis].reshape(*lead, *shape)
        own_mask = inside[axis].reshape(*inside[axis].shape[:-2], *shape)
        index.append(place)
        mask = own_mask if mask is None else mask & own_mask
        position = position * planes[axis] + place
    flat = x.flatten(-count)
    lead = x.shape[:-count]
    if position.dim() == 2 * count:
        windows = flat[..., position]
    else:
        position = position.expand(*lead, *position.shape[len(lead):])
        windows = flat.gather(-1, position.flatten(len(lead))).reshape(position.shape)
    # Bins first, then what is in each.
    order = [*range(len(lead)), *(len(lead) + 2 * axis for axis in range(count)),
             *(len(lead) + 2 * axis + 1 for axis in range(count))]
    position, mask = position.expand(windows.shape), mask.expand(windows.shape)
    windows = torch.where(mask, windows, -math.inf)
    windows, position = windows.permute(order).flatten(-count), position.permute(order).flatten(-count)
    values, at = windows.max(-1)
    return values, position.gather(-1, at.unsqueeze(-1)).squeeze(-1)


@own("adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive_max_pool(self, output_size):
    sizes = self.shape[-len(output_size):]
    if not self.dtype.is_floating_point or 0 in self.shape or 0 in output_size:
        return NotImplemented
    pairs = [_bins(size, bins, self.device) for size, bins in zip(sizes, output_size)]
    return _greatest(self, [pair[0] for pair in pairs], [pair[1] for pair in pairs])


@own("fractional_max_pool2d", "fractional_max_pool3d")
def fractional_max_pool(self, kernel_size, output_size, random_samples):
    count = len(output_size)
    lead = self.shape[:-count]
    places, inside = [], []
    for axis in range(count):
        size, bins, kernel = self.shape[axis - count], output_size[axis], kernel_size[axis]
        # The samples are those of the last axis first in planes.
        sample = random_samples[..., axis if count == 3 else count - 1 - axis].reshape(*lead, 1)
        number = torch.arange(bins, device=self.device)
        alpha = (size - kernel) / (bins - 1) if bins > 1 else 0.0
        begin = ((number + sample) * alpha).to(torch.int64) - (sample * alpha).to(torch.int64)
        begin = torch.where(number == bins - 1, size - kernel, begin)
        place = begin.unsqueeze(-1) + torch.arange(kernel, device=self.device)
        places.append(place)
        inside.append(torch.ones_like(place, dtype=torch.bool))
    return _greatest(self, places, inside)


@own("channel_shuffle")
def channel_shuffle(self, groups):
    return self.unflatten(1, (groups, -1)).transpose(1, 2).flatten(1, 2)


@own("_batch_norm_with_update_functional")
def batch_norm_with_update(input, weight, bias, running_mean, running_var, momentum, eps):  # pylint: disable=redefined-builtin
    output, mean, deviation, new_mean, new_var = aten._native_batch_norm_legit_functional(
        input, weight, bias, running_mean, running_var, True, momentum, eps)
    return output, mean, deviation, input.new_empty((0,), dtype=torch.uint8), new_mean, new_var


__all__ = ["TABLE", "own"]
