"""Serves the bytes of a file to one client, slowly and in odd pieces, and ends the connection as requested.

server.py FILE BYTES END prints the port that it listens on. The server sends the first third of BYTES, waits for a line on its
standard input, and sends the rest of BYTES. END is the end of the connection:
  close   closes it in order
  reset   resets it
  kill    kills this process
"""

import os
import random
import signal
import socket
import struct
import sys
import time


def send_slowly(client, data, pieces):
    position = 0
    while position < len(data):
        size = pieces.choice([1, 2, 3, 5, 7, 11, 13, 17, 61, 127, 251])
        client.sendall(data[position : position + size])
        position += size
        time.sleep(0.001)


def main():
    path, count, end = sys.argv[1:]
    with open(path, "rb") as file:
        data = file.read(int(count))
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    client, _ = listener.accept()
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    pieces = random.Random(20261121)
    third = len(data) // 3
    send_slowly(client, data[:third], pieces)
    sys.stdin.readline()
    send_slowly(client, data[third:], pieces)
    if end == "reset":
        # The reset would discard bytes that are not yet sent, before the client sees them.
        time.sleep(0.2)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    elif end == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    client.close()


main()
