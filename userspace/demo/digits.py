#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Put scikit-learn's handwritten digits where NumPy alone can read them.

usage: digits.py FILE.npz

They are 1,797 real images of 8 x 8 pixels that ship with python3-sklearn.
Importing scikit-learn takes long in an emulated machine, so it is done once,
outside.
"""

import sys

import numpy
from sklearn.datasets import load_digits

digits = load_digits()
numpy.savez(
    sys.argv[1],
    images=digits.data.astype(numpy.float32) / 16,
    labels=digits.target.astype(numpy.int64),
)
print(f"{len(digits.target)} images of scikit-learn's digits")
