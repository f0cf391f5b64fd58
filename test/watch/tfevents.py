#!/usr/bin/env python3
"""Reads an event file of TensorBoard by its format alone, and prints "tag step value" lines. Exits 1 where it is not one.

The reader shares no code with the writer: sums by a table, protocol buffers field by field."""
import struct
import sys

TABLE = []
for n in range(256):
    for _ in range(8):
        n = (n >> 1) ^ 0x82F63B78 if n & 1 else n >> 1
    TABLE.append(n)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    at = 0
    while at < len(data):
        length, length_sum = struct.unpack_from("<QI", data, at)
        assert masked(data[at:at + 8]) == length_sum, "sum of a length"
        body = data[at + 12:at + 12 + length]
        assert len(body) == length, "a record cut short"
        (body_sum,) = struct.unpack_from("<I", data, at + 12 + length)
        assert masked(body) == body_sum, "sum of a record"
        yield body
        at += 16 + length


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        elif kind == 5:
            value, at = struct.unpack_from("<f", data, at)[0], at + 4
        else:
            assert kind == 2, "wire type %d" % kind
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
        yield key >> 3, value


def main(path):
    assert crc32c(b"123456789") == 0xE3069283
    version = None
    for n, body in enumerate(records(open(path, "rb").read())):
        event = dict(fields(body))
        assert event[1] > 1e9, "a wall time"
        if n == 0:
            version = event[3].decode()
            assert version == "brain.Event:2", version
            continue
        for number, summary in fields(event[5]):
            value = dict(fields(summary))
            print(value[1].decode(), event.get(2, 0), repr(value[2]))
    assert version


main(sys.argv[1])
