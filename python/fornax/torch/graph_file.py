"""The file of an FX graph: what compiler/frontends/torch/fx_graph.fbs says, with header and weights.

It needs neither torch nor numpy, so that tools can write graphs without them.
"""

import struct
import zlib

from . import flat

MAGIC = b"FNXTORCH"
VERSION = 1
ALIGNMENT = 64
HEADER = struct.Struct("<8sIIQQQ24x")
NO_VALUE = 0xFFFFFFFF

# As fornax_type numbers them.
ELEMENTS = {
    "bool": 0, "int8": 3, "int16": 4, "int32": 5, "int64": 6, "uint8": 9, "uint16": 10, "uint32": 11, "uint64": 12,
    "float8_e4m3fn": 14, "float8_e4m3fnuz": 15, "float8_e5m2": 16, "float8_e5m2fnuz": 17, "float8_e8m0fnu": 18,
    "float16": 19, "bfloat16": 20, "float32": 21, "float64": 22,
}
# SizeKind and ArgumentKind of graph_file.h, and graph::Relation.
SIZE_CONSTANT, SIZE_SYMBOL, SIZE_ADD, SIZE_MUL, SIZE_FLOORDIV, SIZE_MOD, SIZE_MIN, SIZE_MAX = range(8)
ARG_NONE, ARG_VALUE, ARG_SIZE, ARG_FLOAT, ARG_BOOL, ARG_TEXT, ARG_TYPE, ARG_LIST = range(8)
RELATION_EQ, RELATION_NE, RELATION_LT, RELATION_LE = range(4)

SIZE = flat.Struct("Size", "<qIIB7x", ("value", "a", "b", "kind"))
SYMBOL = flat.Table("Symbol", [("name", "string"), ("hint", "long"), ("low", "long"), ("high", "long")])
GUARD = flat.Table("Guard", [("relation", "ubyte"), ("a", "uint"), ("b", "uint")])
VALUE = flat.Table("Value", [("name", "string"), ("element", "ubyte"), ("dims", ["uint"])])
WEIGHT = flat.Table("Weight", [("value", "uint"), ("offset", "ulong"), ("size", "ulong"), ("file", "string")])
PORT = flat.Table("Port", [("name", "string"), ("value", "uint")])
MUTATION = flat.Table("Mutation", [("input", "uint"), ("value", "uint"), ("in_place", "ubyte")])
ARGUMENT = flat.Table("Argument")
ARGUMENT.fields = [("name", "string"), ("kind", "ubyte"), ("index", "uint"), ("number", "double"), ("text", "string"),
                   ("items", [ARGUMENT])]
NODE = flat.Table("Node", [("target", "string"), ("name", "string"), ("line", "string"), ("arguments", [ARGUMENT]),
                           ("results", ["uint"])])
PROGRAM = flat.Table("Program", [
    ("producer", "string"), ("sizes", [SIZE]), ("symbols", [SYMBOL]), ("guards", [GUARD]), ("values", [VALUE]),
    ("weights", [WEIGHT]), ("inputs", [PORT]), ("outputs", [PORT]), ("mutations", [MUTATION]), ("nodes", [NODE])])


class Program:
    """A graph that is being written. Values, sizes and symbols are named by the numbers that the functions return."""

    def __init__(self, producer):
        self.fields = {"producer": producer, "sizes": [], "symbols": [], "guards": [], "values": [], "weights": [],
                       "inputs": [], "outputs": [], "mutations": [], "nodes": []}
        self._sizes = {}
        self._symbols = {}
        self.weights = []  # bytes-like, in order
        self._weight_bytes = 0

    # --- Sizes ---

    def symbol(self, name, hint, low, high):
        if name not in self._symbols:
            self._symbols[name] = len(self.fields["symbols"])
            self.fields["symbols"].append({"name": name, "hint": hint, "low": low, "high": high})
        return self._size(SIZE_SYMBOL, a=self._symbols[name])

    def constant(self, value):
        return self._size(SIZE_CONSTANT, value=value)

    def operation(self, kind, a, b):
        return self._size(kind, a=a, b=b)

    def _size(self, kind, value=0, a=0, b=0):
        key = (kind, value, a, b)
        if key not in self._sizes:
            self._sizes[key] = len(self.fields["sizes"])
            self.fields["sizes"].append({"value": value, "a": a, "b": b, "kind": kind})
        return self._sizes[key]

    def guard(self, relation, a, b):
        self.fields["guards"].append({"relation": relation, "a": a, "b": b})

    # --- Values ---

    def value(self, name, element, dims):
        """`element` is the name of a dtype, `dims` are numbers of sizes."""
        self.fields["values"].append({"name": name, "element": ELEMENTS[element], "dims": list(dims)})
        return len(self.fields["values"]) - 1

    def input(self, name, value):
        self.fields["inputs"].append({"name": name, "value": value})
        return len(self.fields["inputs"]) - 1

    def output(self, name, value):
        self.fields["outputs"].append({"name": name, "value": value})

    def mutation(self, number, value, in_place=False):
        """The input holds the value after a run: in the input's own memory, or as an output."""
        self.fields["mutations"].append({"input": number, "value": value, "in_place": int(in_place)})

    def weight(self, value, data):
        """`data` is bytes-like, and is kept until the file is written."""
        data = memoryview(data).cast("B")
        self.fields["weights"].append({"value": value, "offset": self._weight_bytes, "size": len(data)})
        self.weights.append(data)
        self._weight_bytes += len(data) + -len(data) % ALIGNMENT

    def node(self, target, name, line, arguments, results):
        self.fields["nodes"].append({"target": target, "name": name, "line": line, "arguments": arguments,
                                     "results": results})
        return len(self.fields["nodes"]) - 1

    # --- The file ---

    def structure(self):
        """The file less header and weights."""
        return flat.Writer().write(PROGRAM, self.fields)

    def parts(self):
        """The file in pieces, to be written one after the other."""
        return parts_of(self.structure(), self.weights)

    def to_bytes(self):
        return b"".join(self.parts())


PARTS_BEFORE_WEIGHTS = 3  # of parts_of()


def parts_of(structure, weights):
    """The pieces of a file with this structure and these weights, which are bytes-like and in the structure's order."""
    offset = HEADER.size + len(structure)
    offset += -offset % ALIGNMENT
    weights = [memoryview(data).cast("B") for data in weights]
    weights_bytes = sum(len(data) + -len(data) % ALIGNMENT for data in weights)
    yield HEADER.pack(MAGIC, VERSION, zlib.crc32(structure), len(structure), offset, weights_bytes)
    yield structure
    yield bytes(offset - HEADER.size - len(structure))
    for data in weights:
        yield data
        yield bytes(-len(data) % ALIGNMENT)


def argument(name, kind, index=0, number=0.0, text=None, items=None):
    return {"name": name, "kind": kind, "index": index, "number": number, "text": text, "items": items}
