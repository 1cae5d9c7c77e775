#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The end-to-end tests' oracle against exact fractions (TAP)."""

import ctypes
import os
import sys
from fractions import Fraction

import numpy as np

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
LIB = ctypes.CDLL(os.path.join(TOP, "build/selftests/rack/liboracle.so"))
LIB.tensor_expect.restype = ctypes.c_bool

LANES = 1024
SCALES = (10**8, 1 << 16, 1, 1000003, 2**32 - 1)
KINDS = ("plain", "edge", "wild")


class Tensor(ctypes.Structure):
    """struct tensor"""

    _fields_ = [
        ("seed", ctypes.c_uint64),
        ("workers", ctypes.c_uint32),
        ("scale", ctypes.c_uint32),
        ("is_float", ctypes.c_bool),
        ("values", ctypes.c_int),
    ]


def call(function, *args):
    lanes = np.zeros(LANES, np.uint32)
    pointer = lanes.ctypes.data_as(ctypes.c_void_p)
    return lanes, function(*args, pointer, LANES)


def to_float32(exact):
    """Bits of the nearest float32, ties to even."""
    if exact == 0:
        return 0
    top = Fraction(float(np.finfo(np.float32).max))
    if abs(exact) >= top + Fraction(2) ** 103:
        return 0x7F800000 if exact > 0 else 0xFF800000
    guess = np.float32(float(exact))
    if not np.isfinite(guess):
        guess = np.float32(np.copysign(top, exact))
    near = [
        guess,
        np.nextafter(guess, np.float32(np.inf)),
        np.nextafter(guess, np.float32(-np.inf)),
    ]
    near = [n for n in near if np.isfinite(n)]
    best = min(
        near,
        key=lambda n: (
            abs(Fraction(float(n)) - exact),
            int(n.view(np.uint32)) & 1,
        ),
    )
    bits = int(best.view(np.uint32))
    # what is too small for the least subnormal keeps its sign
    return bits | (0x80000000 if exact < 0 else 0)


def fits(number):
    return -(2**31) <= number < 2**31


def float_sum(bits, scale):
    values = bits.view(np.float32)
    if np.isfinite(values).all():
        # round() of a Fraction is to nearest, ties to even
        scaled = [round(Fraction(float(v)) * scale) for v in values]
        if all(map(fits, scaled)) and fits(sum(scaled)):
            return "fits", to_float32(Fraction(sum(scaled), scale))
        if (bits == 0x80000000).all():
            return "raw", 0x80000000
        return "raw", to_float32(sum(Fraction(float(v)) for v in values))
    plus, minus = np.isposinf(values).any(), np.isneginf(values).any()
    if np.isnan(values).any() or (plus and minus):
        return "nan", 0x7FC00000
    return "inf", 0x7F800000 if plus else 0xFF800000


def compare(workers, scale, values, seen):
    """Return what is wrong, or None."""
    for is_float in (True, False):
        for chunk in (0, 4):
            tensor = Tensor(
                workers + scale, workers, scale, is_float, values
            )
            ref = ctypes.byref(tensor)
            pushed = np.stack(
                [
                    call(LIB.tensor_fill, ref, rank, chunk)[0]
                    for rank in range(workers)
                ]
            )
            got, good = call(LIB.tensor_expect, ref, chunk)
            if not is_float:
                total = pushed.view(np.int32).astype(np.int64).sum(axis=0)
                if good != all(map(fits, total)):
                    return f"chunk {chunk} overflows or not"
                if good and (total.astype(np.uint32) != got).any():
                    return f"chunk {chunk} of integers"
                seen.add("integers" if good else "overflow")
                continue
            for lane in range(LANES):
                kind, want = float_sum(pushed[:, lane], scale)
                seen.add(kind)
                if want != got[lane]:
                    return (
                        f"chunk {chunk} lane {lane}: {got[lane]:#x}, "
                        f"not {want:#x}"
                    )
    return None


def main():
    number = failed = 0
    seen = set()
    print("TAP version 13")
    for workers in (1, 2, 3, 32):
        for values, kind in enumerate(KINDS):
            for scale in SCALES:
                number += 1
                wrong = compare(workers, scale, values, seen)
                failed += wrong is not None
                print(
                    "not ok" if wrong else "ok",
                    f"{number} {workers} workers, {kind}, scale {scale}",
                )
                if wrong:
                    print("#", wrong)
    number += 1
    kinds = {"fits", "raw", "nan", "inf", "integers", "overflow"}
    failed += seen != kinds
    print(
        "ok" if seen == kinds else "not ok", f"{number} all kinds of sums met"
    )
    print(f"1..{number}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    # signalling NaNs are meant
    np.seterr(all="ignore")
    main()
