"""Ports for servers that a test starts."""

import random
import socket


def free_port():
    """One that is free, and that nobody gets who asks for any: those are above 32,767."""
    while True:
        port = random.SystemRandom().randrange(20_000, 30_000)
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue
