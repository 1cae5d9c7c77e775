# SPDX-License-Identifier: GPL-2.0
"""How sizes are shown."""


def size(n):
    return f"{n >> 20} MiB" if n >> 20 else f"{n / 1024:g} KiB"
