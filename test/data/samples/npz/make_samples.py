#!/usr/bin/env python3
"""Writes the samples beside this file with numpy: what users' files look like. test_npz.c says what they hold."""
import io
import os
import zipfile

import numpy as np
from numpy.lib import format as npy

here = os.path.dirname(os.path.abspath(__file__))


def path(name):
    return os.path.join(here, name)


x = np.arange(24, dtype=np.float32).reshape(4, 3, 2) / 4
y = np.array([0, 1, 2, 1], dtype=np.int64)
arrays = {
    "x": x,
    "y": y,
    "big": x.astype(">f8"),
    "half": x.astype(np.float16),
    "flag": y > 0,
    "frame": np.asfortranarray(x[:, :, 0]),
    "cube": np.asfortranarray(x),
    "one": np.float64(2.5),
    "none": np.zeros((0, 5), np.float32),
    "names": np.array(["open", "h\u00f6he", "\u7d42\u5024"]),
    "raw": np.array([b"EURUSD", b"XAU"]),
    "when": np.array(["2024-01-02T03:04:05", "2024-01-02T03:05:05"], dtype="datetime64[s]"),
    "meta": np.array({"pair": "EURUSD"}, dtype=object),
    "wave": np.array([1 + 2j]),
}
np.savez(path("stored.npz"), **arrays)
np.savez_compressed(path("deflated.npz"), **arrays)
np.savez(path("empty.npz"))

rates = np.zeros(3, dtype=[("time", "<i8"), ("open", "<f8"), ("close", "<f8"), ("tick_volume", "<u8"),
                           ("spread", "<i4"), ("real_volume", "<u8")])
rates["time"] = 1704164400 + 300 * np.arange(3)
rates["close"] = [1.5, 2.5, 3.5]
rates["spread"] = [7, 8, 9]
np.save(path("rates.npy"), rates)

for version in ((2, 0), (3, 0)):
    with open(path("version%d.npy" % version[0]), "wb") as f:
        npy.write_array(f, y, version=version)

# What a pipe gives: sizes and CRC-32 behind the data.
class Pipe(io.RawIOBase):
    def __init__(self, file):
        self.file = file

    def writable(self):
        return True

    def write(self, data):
        return self.file.write(data)

    def seekable(self):
        return False


with open(path("piped.npz"), "wb") as f, zipfile.ZipFile(Pipe(f), "w", zipfile.ZIP_DEFLATED) as z:
    with z.open("x.npy", "w", force_zip64=True) as member:
        npy.write_array(member, x)
    z.writestr("readme.txt", "not an array")
