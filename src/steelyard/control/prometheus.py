"""Serve the newest slot of a stream as Prometheus metrics over HTTP."""

import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from socketserver import ThreadingMixIn
from threading import Thread
from typing import TYPE_CHECKING, Self
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from steelyard.control.history import Slot
from steelyard.hosts import REFUSAL, Hosts
from steelyard.validation import require_whole

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

_WORKER_METRICS = {
    "messages": "Messages in the last slot.",
    "share": "Share of the messages of the last slot.",
    "utilization": "Busy time in the last slot, divided by its length.",
    "virtual_workers": "Virtual workers owned in the last slot.",
    "keys": "Keys with partial states in the last slot.",
    "backlog": "Messages left when the mean worker had none left.",
}
"""The help text of each metric of a worker."""


class MetricsServer:
    """A server of the metrics. By default, only this machine can reach it.

    The server answers requests for the names of this machine and for `names`.

    Args:
        history: Returns the latest slots, in order of time.
        port: The port to listen on; 0 for any free port.
        address: The address to listen on.
        names: Further host names of this machine, such as the name of a proxy.

    >>> from urllib.request import urlopen
    >>> with MetricsServer(lambda: [], port=0) as server:
    ...     text = urlopen(f"http://127.0.0.1:{server.port}/metrics").read().decode()
    >>> "steelyard_slots_total 0.0" in text
    True
    """

    def __init__(
        self,
        history: Callable[[], list[Slot]],
        port: int,
        address: str = "127.0.0.1",
        names: Sequence[str] = (),
    ) -> None:
        require_whole("port", port, least=0, most=65_535)
        hosts = Hosts.of(address, names)
        registry = CollectorRegistry()
        registry.register(_Metrics(history))
        try:
            self._server = _Server(address, port)
        except OSError as error:
            why = error.strerror or error
            raise ValueError(
                f"the metrics server cannot listen on {address}:{port}: {why}"
            ) from error
        self._server.set_app(_guarded(make_wsgi_app(registry), hosts))
        self.port = int(self._server.server_port)
        self._thread = Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Server(ThreadingMixIn, WSGIServer):
    """A server with a thread for each request, on an IPv4 or IPv6 address."""

    daemon_threads = True

    def __init__(self, address: str, port: int) -> None:
        found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self.address_family, _, _, _, place = found[0]
        super().__init__((str(place[0]), port), _Silent)


class _Silent(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """Do not log requests."""


def _guarded(metrics: "WSGIApplication", hosts: Hosts) -> "WSGIApplication":
    """Return an application that answers only requests for known hosts."""

    def answer(environment: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
        if hosts.allow(environment.get("HTTP_HOST")):
            return metrics(environment, start)
        start("403 Forbidden", [("Content-Type", "text/plain; charset=utf-8")])
        return [REFUSAL.encode()]

    return answer


class _Metrics(Collector):
    def __init__(self, history: Callable[[], list[Slot]]) -> None:
        self._history = history

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of the newest slot."""
        slots = self._history()
        number, messages, moves = 0, 0, 0
        if slots:
            number = slots[-1].slot
            messages, moves = slots[-1].messages_so_far, slots[-1].moves_so_far
        yield CounterMetricFamily("steelyard_slots", "Slots so far.", value=number)
        yield CounterMetricFamily("steelyard_messages", "Messages so far.", value=messages)
        yield CounterMetricFamily("steelyard_moves", "Moves of virtual workers.", value=moves)
        if not slots:
            return
        last = slots[-1]
        for name, text in _WORKER_METRICS.items():
            gauge = GaugeMetricFamily(f"steelyard_worker_{name}", text, labels=["worker"])
            for worker in last.workers:
                gauge.add_metric([str(worker.worker)], getattr(worker, name))
            yield gauge
        yield self._states(last)
        yield self._latencies(last)
        text = "Busy time of the busiest worker, divided by the mean busy time, minus one."
        yield GaugeMetricFamily("steelyard_imbalance", text, value=last.imbalance)

    @staticmethod
    def _states(slot: Slot) -> Metric:
        text = "1 for the current state of the worker, 0 for the other states."
        states = GaugeMetricFamily("steelyard_worker_state", text, labels=["worker", "state"])
        for worker in slot.workers:
            for state in ("idle", "normal", "busy", "drained"):
                states.add_metric([str(worker.worker), state], float(worker.state == state))
        return states

    @staticmethod
    def _latencies(slot: Slot) -> Metric:
        text = "Time from the arrival of a message until it is processed."
        latencies = GaugeMetricFamily(
            "steelyard_latency_seconds", text, labels=["worker", "quantile"]
        )
        for worker in slot.workers:
            for quantile, value in (("0.5", worker.p50), ("0.99", worker.p99)):
                if value is not None:
                    latencies.add_metric([str(worker.worker), quantile], value)
        return latencies
