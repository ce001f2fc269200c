"""Damaged files: changed bytes of anything, changed fields of ONNX models."""

import contextlib
import copy
import random

INTERESTING = (0, 1, 2, 3, 7, 8, 127, 128, 255, 256, 65535, 2**31 - 1, 2**31, 2**40, 2**62,
               2**63 - 1, -1, -2, -8, -128, -(2**31), -(2**63))  # fmt: skip


def mutate_bytes(data, rng):
    """Change, insert, remove, repeat or cut bytes, or overwrite aligned little-endian integers."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 8, 16))):
        if not data:
            break
        position = rng.randrange(len(data))
        match rng.randrange(8):
            case 0:
                data[position] = rng.randrange(256)
            case 1:
                data[position] ^= 1 << rng.randrange(8)
            case 2:
                del data[position : position + rng.randrange(1, 20)]
            case 3:
                data[position:position] = bytes(
                    rng.randrange(256) for _ in range(rng.randrange(1, 10))
                )
            case 4:
                width = rng.choice((2, 4, 4, 8))
                position -= position % width
                value = rng.choice(INTERESTING) % (1 << (8 * width))
                data[position : position + width] = value.to_bytes(width, "little")
            case 5:
                other = rng.randrange(len(data))
                length = rng.randrange(1, 32)
                data[position : position + length] = data[other : other + length]
            case 6:
                width = rng.choice((1, 2, 4))
                value = int.from_bytes(data[position : position + width], "little")
                value = (value + rng.choice((-4, -1, 1, 4, 16))) % (1 << (8 * width))
                data[position : position + width] = value.to_bytes(width, "little")
            case _:
                if rng.random() < 0.2:
                    del data[position:]
    return bytes(data)


def _messages(message, depth=0):
    """Yield a protobuf message and those inside it."""
    yield message
    if depth > 12:
        return
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for inner in value if hasattr(value, "add") else [value]:
            yield from _messages(inner, depth + 1)


def _other_value(field, old, names, rng):
    if field.cpp_type == field.CPPTYPE_STRING:
        new = rng.choice([*names, "", "NOTSET", "Add", "Loop", "../../etc/passwd"])
        return new.encode() if isinstance(old, bytes) else new
    if field.cpp_type in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        return rng.choice((0.0, -1.0, 1e30, float("nan"), float("inf"), 0.5, -0.0))
    if field.cpp_type == field.CPPTYPE_ENUM:
        return rng.choice([v.number for v in field.enum_type.values])
    low, high = -(2**63), 2**63 - 1
    if field.cpp_type in (field.CPPTYPE_INT32, field.CPPTYPE_UINT32):
        low, high = -(2**31), 2**31 - 1
    new = rng.choice((*INTERESTING, *(old + d for d in (-1, 1, 2, -2)), rng.randrange(1, 40)))
    return min(max(new, low), high)


def mutate_fields(data, rng):
    """Change fields of an ONNX model: sizes, codes, names, attributes, order and count of parts."""
    import onnx

    model = onnx.ModelProto()
    model.ParseFromString(data)
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        messages = [m for m in _messages(model) if m.ListFields()]
        message = rng.choice(messages)
        names = [n for node in model.graph.node for n in (*node.input, *node.output, node.op_type)]
        names += [i.name for i in model.graph.input]
        field, value = rng.choice(message.ListFields())
        repeated = hasattr(value, "extend")
        action = rng.randrange(8)
        try:
            if action == 0:
                message.ClearField(field.name)
            elif repeated and action in (1, 2) and len(value):
                del value[rng.randrange(len(value))]
            elif repeated and action in (3, 4) and len(value):
                value.append(value[rng.randrange(len(value))])
            elif repeated and field.message_type is None and len(value):
                position = rng.randrange(len(value))
                value[position] = _other_value(field, value[position], names, rng)
            elif repeated and len(value) > 1:
                parts = list(value)
                rng.shuffle(parts)
                copies = [type(p).FromString(p.SerializeToString()) for p in parts]
                del value[:]
                value.extend(copies)
            elif not repeated and field.message_type is None:
                if isinstance(value, bytes) and action > 4:
                    setattr(message, field.name, mutate_bytes(value, rng))
                else:
                    setattr(message, field.name, _other_value(field, value, names, rng))
        except (TypeError, ValueError, UnicodeDecodeError):
            continue
    return model.SerializeToString()


def mutated(kind, corpus, seed, number):
    """Return (seed file's name, bytes) of case `number`."""
    rng = random.Random(f"{kind} {seed} {number}")
    name, data = rng.choice(corpus)
    if kind == "onnx" and rng.random() < 0.6:
        return name, mutate_fields(data, rng)
    return name, mutate_bytes(data, rng)


def _fields(value, found, parent=None, key=None):
    """Gather (container, key) of every value inside a JSON document."""
    stack = [(parent, key, value)]
    while stack:
        parent, key, value = stack.pop()
        if parent is not None:
            found.append((parent, key))
        if isinstance(value, dict):
            stack.extend((value, k, v) for k, v in value.items())
        elif isinstance(value, list):
            stack.extend((value, k, v) for k, v in enumerate(value))
    return found


def _other_json(old, texts, rng):
    if isinstance(old, bool):
        return rng.choice((not old, None, 1))
    if isinstance(old, int) and rng.random() < 0.8:
        return rng.choice((*INTERESTING, *(old + d for d in (-1, 1, 2)), rng.randrange(1, 40)))
    if isinstance(old, float) and rng.random() < 0.8:
        return rng.choice((0.0, -1.0, 1e300, float("nan"), float("inf"), 10**400))
    if isinstance(old, str) and rng.random() < 0.8:
        if rng.random() < 0.3:
            return mutate_bytes(old.encode(), rng).decode(errors="replace")
        return rng.choice((*texts, "", "x" * 5000, "../../x", "\x00", "9**9**9"))
    deep = []
    for _ in range(900 if rng.random() < 0.2 else 3):
        deep = [deep]
    return rng.choice((None, True, 0, -1, 1.5, "x", [], {}, [old], {"a": old}, deep))


def mutate_json(document, rng):
    """Change values inside a JSON document: another one, one of another kind, none, or two."""
    document = copy.deepcopy(document)
    with contextlib.suppress(RecursionError):  # no copy of what this nests too deeply
        _change_json(document, rng)
    return document


def _change_json(document, rng):
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        fields = _fields(document, [])
        if not fields:
            break
        parent, key = rng.choice(fields)
        texts = [p[k] for p, k in fields if isinstance(p[k], str)][:200]
        action = rng.randrange(8)
        if action == 0:
            del parent[key]
        elif action == 1 and isinstance(parent, list):
            parent.insert(key, copy.deepcopy(parent[key]))
        elif action == 2 and isinstance(parent, list):
            rng.shuffle(parent)
        elif action == 3:
            other, field = rng.choice(fields)
            parent[key] = copy.deepcopy(other[field])
        else:
            parent[key] = _other_json(parent[key], texts, rng)
