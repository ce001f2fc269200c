"""What LiteRT needs before it takes a file of TensorFlow Lite Micro."""

import struct


def without_bias_axes(data):
    """Reset the axis of quantised tensors of one axis, where it means nothing, but LiteRT cares."""
    b = bytearray(data)

    def u32(p):
        return struct.unpack_from("<I", b, p)[0]

    def field(table, number):
        vtable = table - struct.unpack_from("<i", b, table)[0]
        slot = 4 + 2 * number
        size = struct.unpack_from("<H", b, vtable)[0]
        offset = struct.unpack_from("<H", b, vtable + slot)[0] if slot < size else 0
        return table + offset if offset else None

    def elements(p):
        p += u32(p)
        return [p + 4 + 4 * i for i in range(u32(p))]

    for graph in elements(field(u32(0), 2)):
        for element in elements(field(graph + u32(graph), 0)):
            tensor = element + u32(element)
            quantization, shape = field(tensor, 4), field(tensor, 0)
            if quantization is None:
                continue
            axis = field(quantization + u32(quantization), 6)
            rank = len(elements(shape)) if shape else 0
            if axis is not None and struct.unpack_from("<i", b, axis)[0] >= max(rank, 1):
                struct.pack_into("<i", b, axis, 0)
    return bytes(b)
