"""Serve the page. Runs and an address enter; a server leaves."""

import asyncio
import logging
import socket
import threading
from collections.abc import Sequence
from typing import Any, Self

from bokeh.application import Application
from bokeh.application.handlers.function import FunctionHandler
from bokeh.server.server import BaseServer
from bokeh.server.tornado import BokehTornado
from bokeh.server.util import bind_sockets
from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPHeaders, HTTPServerRequest
from tornado.ioloop import IOLoop
from tornado.web import OutputTransform, RequestHandler

from steelyard.dashboard.page import Page
from steelyard.dashboard.runs import ShownRun
from steelyard.hosts import REFUSAL, Hosts, is_loopback
from steelyard.validation import require_whole

_OTHER_PAGE = "Only a page of this server can open its websocket.\n"
_NOT_FOUND = "There is no such page.\n"
_HEADERS = {
    "Content-Security-Policy": "frame-ancestors 'none'",
    "X-Frame-Options": "DENY",  # the same, for old browsers
    "X-Content-Type-Options": "nosniff",
}
_QUIET = ("bokeh.server.views.ws", "tornado.access", "tornado.general")
"""Loggers of closed connections and of requests for unknown pages, which are no errors here."""


class DashboardServer:
    """Serves the page in its own thread until it is closed.

    The page shows keys and there is no authentication. So the address must be a loopback address
    unless `public` is true.

    Args:
        runs: The runs on the page.
        port: The port; 0: any free port, which `url` contains.
        address: The address to listen on.
        public: Whether other machines may reach the address.
        names: More host names under which browsers may open the page.
    """

    def __init__(
        self,
        runs: Sequence[ShownRun],
        port: int = 0,
        address: str = "127.0.0.1",
        *,
        public: bool = False,
        names: Sequence[str] = (),
    ) -> None:
        require_whole("port", port, least=0, most=65_535)
        if not public and not is_loopback(address):
            raise ValueError(
                f"address: other machines may reach {address!r}, and the page has no "
                "authentication; pass --public (public=True) to allow this"
            )
        self._hosts = Hosts.of(address, names)
        try:
            sockets, self.port = bind_sockets(address, port)
        except OSError as error:
            raise ValueError(
                f"the dashboard cannot listen on {address}:{port}: {error.strerror or error}; "
                "use another port or address"
            ) from error
        self.address = address
        self._runs, self._sockets = tuple(runs), sockets
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
        """The URL of the page."""
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
        for name in _QUIET:
            logging.getLogger(name).setLevel(logging.ERROR)
        asyncio.set_event_loop(asyncio.new_event_loop())
        loop = IOLoop.current()
        try:
            application = Application(FunctionHandler(lambda doc: Page(self._runs).add_to(doc)))
            tornado = _Guarded(self._hosts, application)
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


class _Guarded(BokehTornado):
    """Serves the page, its scripts and its websocket under the allowed host names only."""

    def __init__(self, hosts: Hosts, application: Application) -> None:
        super().__init__(
            {"/": application},
            # `find_handler` checks the origin of a websocket: Bokeh's own check accepts every page
            # whose origin is the host of the request.
            extra_websocket_origins=["*"],
            use_index=False,
            keep_alive_milliseconds=10_000,
            transforms=[_WithHeaders],
        )
        self._hosts = hosts

    def find_handler(self, request: HTTPServerRequest, **more: Any) -> Any:
        """Return the handler of a request; every request is checked here first."""
        refused = self._refused(request)
        if refused is None:
            return super().find_handler(request, **more)
        status, sentence = refused
        settings = {"status": status, "sentence": sentence}
        return self.get_handler_delegate(request, _Refusal, settings)

    def _refused(self, request: HTTPServerRequest) -> tuple[int, str] | None:
        host, path = request.headers.get("Host"), request.path
        if not self._hosts.allow(host):
            return 403, REFUSAL
        if path == "/ws" and not self._hosts.allow_page(request.headers.get("Origin"), host):
            return 403, _OTHER_PAGE
        # Bokeh also serves a script that embeds the page into other sites.
        if path not in ("/", "/ws") and not path.startswith("/static/"):
            return 404, _NOT_FOUND
        return None


class _Refusal(RequestHandler):
    """Answers every request with a status and a sentence."""

    def initialize(self, status: int, sentence: str) -> None:
        self._answer = status, sentence

    def prepare(self) -> None:
        status, sentence = self._answer
        self.set_status(status)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(sentence)


class _WithHeaders(OutputTransform):
    """Adds headers to every answer that forbid frames and content sniffing."""

    def transform_first_chunk(
        self, status_code: int, headers: HTTPHeaders, chunk: bytes, finishing: bool
    ) -> tuple[int, HTTPHeaders, bytes]:
        headers.update(_HEADERS)
        return status_code, headers, chunk
