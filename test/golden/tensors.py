"""Safetensors files, read and written with numpy alone: a length, a JSON header, the data."""
import json
import struct

import numpy as np

TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4"}


def load(path):
    """The tensors by name; bf16 as float32, which holds it exactly."""
    with open(path, "rb") as f:
        data = f.read()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8:start]).items():
        if name == "__metadata__":
            continue
        first, last = (start + at for at in entry["data_offsets"])
        if entry["dtype"] == "BF16":
            flat = (np.frombuffer(data[first:last], "<u2").astype("<u4") << 16).view("<f4")
        else:
            flat = np.frombuffer(data[first:last], TYPES[entry["dtype"]])
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


def save(tensors, path, metadata=None):
    """Writes arrays of the types above; `metadata` maps strings to strings. The data begin at a multiple of 8."""
    names = {np.dtype(code): name for name, code in TYPES.items()}
    header, at = {"__metadata__": metadata or {"format": "pt"}}, 0
    for name, value in tensors.items():
        end = at + value.nbytes
        header[name] = {"dtype": names[value.dtype], "shape": list(value.shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for value in tensors.values():
            f.write(np.ascontiguousarray(value).tobytes())
