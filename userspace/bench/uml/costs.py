# SPDX-License-Identifier: GPL-2.0
"""What a measurement in User-mode Linux says of the hosts.

The bed's clock tells what the whole bed computed; what ports and cards took is known
by the ticks of their threads, and the rest are the hosts.
"""


def per_gb(own, machine, ports, cards, speed):
    """Seconds per GB, by name of the sample.

    own, machine: of the bed, and of the machine for it; ports, cards: by ticks; all of
    them per GB.  speed: bytes per second.  Ticks go by the clock, which also runs
    while others have the machine's CPU, so they count as much as the bed had of it.
    """
    share = min(1, (own + machine) * speed / 1e9)
    return {
        "cpu": own + machine, "own": own, "switch": ports * share,
        "cards": cards * share, "hosts": own - (ports + cards) * share,
    }
