#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The first packets of ATP that pass a device, for Wireshark.

usage: capture.py DEVICE FILE.pcap COUNT
"""

import socket
import struct
import sys
import time

ETH_P_ALL = 3
SO_RCVBUFFORCE = 33
ETHERNET = 1
PORT = 4797


def is_atp(frame):
    """IPv4 and UDP, to the port"""
    return (frame[12:14] == b"\x08\x00" and frame[23] == socket.IPPROTO_UDP
            and struct.unpack_from("!H", frame, 36)[0] == PORT)


def main():
    device, path, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                         socket.htons(ETH_P_ALL))
    sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
    sock.bind((device, ETH_P_ALL))
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535,
                               ETHERNET))
        for _ in range(count):
            while True:
                frame = sock.recv(65536)
                if is_atp(frame):
                    break
            seconds, rest = divmod(time.time_ns(), 10**9)
            file.write(struct.pack("<IIII", seconds, rest // 1000, len(frame),
                                   len(frame)))
            file.write(frame)


if __name__ == "__main__":
    main()
