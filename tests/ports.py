"""Ports for servers that a test starts."""

import random
import socket


def free_port():
    """Return a free port below the range from which the system assigns ports (32,768 and up)."""
    while True:
        port = random.SystemRandom().randrange(20_000, 30_000)
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue
