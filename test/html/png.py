#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads screenshots, with only the standard library:

  png.py --brightness FILE   prints the mean brightness, 0 (black) to 255
  png.py --shrink FROM TO    writes the picture with at most 256 colours"""
import struct
import sys
import zlib


def read(path):
    """Width, height, and the bytes of red, green and blue of all pixels. Only 8 bits per channel, not interlaced."""
    with open(path, "rb") as f:
        data = f.read()
    at, packed, head = 8, b"", None
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        head = struct.unpack(">IIBBBBB", data[at + 8:at + 8 + size]) if kind == b"IHDR" else head
        packed += data[at + 8:at + 8 + size] if kind == b"IDAT" else b""
        at += size + 12
    width, height, depth, color, _, _, interlace = head
    if depth != 8 or color not in (2, 6) or interlace:
        sys.exit(f"{path}: not a kind of PNG that this program reads")
    n = 3 if color == 2 else 4
    raw, out, before = zlib.decompress(packed), bytearray(), bytearray(width * n)
    for y in range(height):
        kind, line = raw[y * (width * n + 1)], bytearray(raw[y * (width * n + 1) + 1:(y + 1) * (width * n + 1)])
        for i in range(len(line)):
            a, b, c = line[i - n] if i >= n else 0, before[i], before[i - n] if i >= n else 0
            if kind == 4:
                p = a + b - c
                line[i] = line[i] + min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2] & 255
            elif kind:
                line[i] = line[i] + (a, b, (a + b) // 2)[kind - 1] & 255
        before = line
        out += line if n == 3 else b"".join(bytes(line[i:i + 3]) for i in range(0, len(line), 4))
    return width, height, bytes(out)


def shrink(width, height, pixels):
    """The PNG with a palette: the colours of the picture, rounded until there are at most 256."""
    for step in (1, 4, 8, 16, 32, 64):
        table = bytes(min(255, (v + step // 2) // step * step) if step > 1 else v for v in range(256))
        rounded = pixels.translate(table)
        colors = sorted({rounded[i:i + 3] for i in range(0, len(rounded), 3)})
        if len(colors) <= 256:
            break
    index = {c: i for i, c in enumerate(colors)}
    lines = b"".join(b"\0" + bytes(index[rounded[i:i + 3]] for i in range(y * width * 3, (y + 1) * width * 3, 3)) for y in range(height))

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)) + chunk(b"PLTE", b"".join(colors)) +
            chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b""))


def main(arguments):
    if arguments[:1] == ["--brightness"] and len(arguments) == 2:
        pixels = read(arguments[1])[2]
        print(sum(pixels) // len(pixels))
    elif arguments[:1] == ["--shrink"] and len(arguments) == 3:
        with open(arguments[2], "wb") as f:
            f.write(shrink(*read(arguments[1])))
    else:
        sys.exit(__doc__)


main(sys.argv[1:])
