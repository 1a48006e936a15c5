"""Serve the page. Runs and an address enter; a server that can be stopped leaves."""

import asyncio
import ipaddress
import logging
import socket
import threading
from collections.abc import Sequence
from typing import Self

from bokeh.application import Application
from bokeh.application.handlers.function import FunctionHandler
from bokeh.server.server import BaseServer
from bokeh.server.tornado import BokehTornado
from bokeh.server.util import bind_sockets
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop

from steelyard.dashboard.page import Page
from steelyard.dashboard.runs import Run
from steelyard.validation import require_whole

_THIS_MACHINE = ("localhost", "127.0.0.1", "[::1]")


class DashboardServer:
    """Serves the page from a thread of its own until it is closed.

    Only this machine can see it, unless `public` is said as well: there are keys on the page, and
    nobody is asked for a password. Port 0 is any free one; `url` tells.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        port: int = 0,
        address: str = "127.0.0.1",
        *,
        public: bool = False,
        names: Sequence[str] = (),
    ) -> None:
        require_whole("port", port, least=0, most=65_535)
        if not public and not is_loopback(address):
            raise ValueError(
                f"address: {address!r} is not this machine alone, and everybody who reaches it "
                "could see the page; say public if that is what you want"
            )
        try:
            sockets, self.port = bind_sockets(address, port)
        except OSError as error:
            raise ValueError(
                f"port: {address}:{port} cannot be used: {error.strerror or error}"
            ) from error
        self.address = address
        self._runs, self._sockets = tuple(runs), sockets
        self._names = tuple(names)
        self._started = threading.Event()
        self._failed: BaseException | None = None
        self._loop: IOLoop | None = None
        self._thread = threading.Thread(target=self._serve, name="dashboard", daemon=True)
        self._thread.start()
        self._started.wait()
        if self._failed is not None:
            raise self._failed

    @property
    def url(self) -> str:
        """Where a browser finds the page."""
        host = socket.gethostname() if self.address in ("0.0.0.0", "::", "") else self.address  # noqa: S104
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}/"

    def close(self) -> None:
        """Stop serving."""
        if self._loop is not None and self._thread.is_alive():
            self._loop.add_callback(self._loop.stop)
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _serve(self) -> None:
        # A browser that goes away in the middle of a message is no news.
        logging.getLogger("bokeh.server.views.ws").setLevel(logging.ERROR)
        asyncio.set_event_loop(asyncio.new_event_loop())
        loop = IOLoop.current()
        try:
            application = Application(FunctionHandler(lambda doc: Page(self._runs).add_to(doc)))
            tornado = BokehTornado(
                {"/": application},
                extra_websocket_origins=self._origins(),
                use_index=False,
                keep_alive_milliseconds=10_000,
            )
            http = HTTPServer(tornado)
            http.add_sockets(self._sockets)
            server = BaseServer(loop, tornado, http)
            server.start()
        except BaseException as error:  # noqa: BLE001  # raised where the server is made
            self._failed = error
            self._started.set()
            return
        self._loop = loop
        loop.add_callback(self._started.set)
        loop.start()
        server.stop()
        http.stop()
        loop.run_sync(http.close_all_connections)
        loop.close(all_fds=True)

    def _origins(self) -> list[str]:
        """The hosts under which browsers may have found the page: no other site reads along.

        This machine at any port, as it may be the other end of a tunnel.
        """
        named = [f"{host}:*" for host in _THIS_MACHINE]
        here = {self.address, socket.gethostname(), socket.getfqdn(), *self._names}
        return named + [f"{host}:{self.port}" for host in here if host]


def is_loopback(address: str) -> bool:
    """Whether an address is this machine alone.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return address == "localhost" or ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
