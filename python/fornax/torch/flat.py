"""Writes FlatBuffers: tables whose layouts are lists of fields, from dictionaries.

The package would need `flatbuffers` for this alone, so it does without. What is written is read back by the
library, which proves every field.
"""

import struct

# Scalars by the names of the schema language: format, bytes.
SCALARS = {"ubyte": ("<B", 1), "uint": ("<I", 4), "long": ("<q", 8), "ulong": ("<Q", 8), "double": ("<d", 8)}


class Struct:
    """A fixed layout: a struct.Struct and the names of its fields in order."""

    def __init__(self, name, code, fields):
        self.name = name
        self.packer = struct.Struct(code)
        self.fields = fields


class Table:
    """Fields in the schema's order: (name, kind). A kind is a scalar's name, "string", a Table, or a list of one of
    these or of a Struct."""

    def __init__(self, name, fields=()):
        self.name = name
        self.fields = list(fields)


class Writer:
    def __init__(self):
        self.bytes = bytearray(4)

    def write(self, table, values):
        """The bytes of a buffer with this root."""
        self._patch(0, self._table(table, values))
        return bytes(self.bytes)

    def _align(self, alignment, behind=0):
        """Pads so that what begins `behind` bytes from here is aligned."""
        self.bytes.extend(bytes(-(len(self.bytes) + behind) % alignment))

    def _patch(self, place, target):
        struct.pack_into("<I", self.bytes, place, target - place)

    def _table(self, table, values):
        fields = []  # (bytes, number, kind, value)
        for number, (name, kind) in enumerate(table.fields):
            value = values.get(name)
            if value is None or (isinstance(kind, str) and kind in SCALARS and value == 0):
                continue
            size = SCALARS[kind][1] if isinstance(kind, str) and kind in SCALARS else 4
            fields.append((size, number, kind, value))
        fields.sort(key=lambda field: -field[0])
        count = max((number for _, number, _, _ in fields), default=-1) + 1
        entries = [0] * count
        offset = 4
        for size, number, _, _ in fields:
            entries[number] = offset
            offset += size
        # The table begins 4 bytes before a multiple of 8, so that fields of 8 bytes, which are first, are aligned.
        vtable_bytes = 4 + 2 * count
        self._align(8, vtable_bytes + 4)
        self.bytes += struct.pack(f"<HH{count}H", vtable_bytes, offset, *entries)
        start = len(self.bytes)
        self.bytes += struct.pack("<i", vtable_bytes)
        children = []
        for _, _, kind, value in fields:
            if isinstance(kind, str) and kind in SCALARS:
                self.bytes += struct.pack(SCALARS[kind][0], value)
            else:
                children.append((len(self.bytes), kind, value))
                self.bytes += bytes(4)
        for place, kind, value in children:
            self._patch(place, self._child(kind, value))
        return start

    def _child(self, kind, value):
        if kind == "string":
            return self._string(value)
        if isinstance(kind, Table):
            return self._table(kind, value)
        return self._vector(kind[0], value)

    def _string(self, text):
        data = text.encode("utf-8", "replace")
        self._align(4)
        start = len(self.bytes)
        self.bytes += struct.pack("<I", len(data)) + data + b"\0"
        return start

    def _vector(self, element, values):
        if isinstance(element, Struct):
            self._align(8, 4)
            start = len(self.bytes)
            self.bytes += struct.pack("<I", len(values))
            for value in values:
                self.bytes += element.packer.pack(*(value[field] for field in element.fields))
            return start
        if isinstance(element, str) and element in SCALARS:
            code, size = SCALARS[element]
            self._align(max(size, 4), 4)
            start = len(self.bytes)
            self.bytes += struct.pack("<I", len(values)) + struct.pack(f"<{len(values)}{code[1]}", *values)
            return start
        self._align(4)
        start = len(self.bytes)
        self.bytes += struct.pack("<I", len(values)) + bytes(4 * len(values))
        for i, value in enumerate(values):
            self._patch(start + 4 + 4 * i, self._child(element, value))
        return start
