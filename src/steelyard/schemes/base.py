"""The base of every grouping scheme: frozen settings, and a router that holds a source's state.

Hashes of keys enter; numbers of bins leave. A bin is a worker, or a virtual worker whose owner
delegation decides later. A source knows only the load of the messages that it routed itself.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from steelyard.hashing import MOST_BINS, Hashes, seed_mask
from steelyard.validation import require_whole

Bins = NDArray[np.int32]
Loads = NDArray[np.int64]
State = Mapping[str, NDArray[np.generic]]
"""A router's state as named arrays, ready for `numpy.savez`."""


class Router(ABC):
    """The state of one source: routes messages by the rule of a scheme.

    The bin of a message depends on the earlier messages, but not on how they were split into
    calls of `route` and `route_many`.
    """

    _remembers: ClassVar[tuple[str, ...]] = ("_loads",)
    """The attributes that `save` stores; all others can be derived from them."""

    def __init__(self, scheme: "Scheme", bins: int, seed: int) -> None:
        require_whole("bins", bins, least=1, most=MOST_BINS)
        self.scheme = scheme
        self.bins = int(bins)
        self.seed = int(seed)
        self._mask = seed_mask(seed)
        self._loads: Loads = np.zeros(bins, np.int64)
        self._messages = 0
        self._probes = 0

    @property
    def loads(self) -> Loads:
        """A copy of the number of messages that each bin got from this router."""
        return self._loads.copy()

    @property
    def messages(self) -> int:
        """The number of messages routed so far."""
        return self._messages

    @property
    def probes(self) -> int:
        """The number of bins whose load this router has checked: a measure of its work."""
        return self._probes

    def route(self, key_hash: int) -> int:
        """Return the bin of one message, given the hash of its key."""
        return int(self.route_many(np.array([int(key_hash) & (2**64 - 1)], np.uint64))[0])

    def route_many(self, hashes: Hashes | NDArray[np.int64]) -> Bins:
        """Return the bins of many messages, the same as calls of `route` in this order."""
        given = np.ascontiguousarray(hashes)
        if given.ndim != 1 or given.dtype not in (np.uint64, np.int64):
            raise TypeError(
                "route_many needs a one-dimensional array of 64-bit hashes, such as hash_keys "
                f"returns, got {given.ndim} dimension(s) of {given.dtype}"
            )
        bins = np.empty(given.size, np.int32)
        if given.size:
            self._probes += self._route(given.view(np.uint64), bins)
            self._messages += given.size
        return bins

    @abstractmethod
    def _route(self, hashes: Hashes, bins: Bins) -> int:
        """Fill `bins`, add the messages to the loads, return the number of bins checked."""

    def save(self) -> State:
        """Return a copy of the state, for `Scheme.resume`."""
        saved: dict[str, NDArray[np.generic]] = {
            "scheme": np.array(repr(self.scheme)),
            "bins": np.array(self.bins, np.int64),
            "seed": np.array(self.seed, np.uint64),
            "messages": np.array(self._messages, np.int64),
        }
        for name in self._remembers:
            saved[name.removeprefix("_")] = np.array(getattr(self, name))
        return saved

    def _restore(self, saved: State) -> None:
        """Restore a saved state; called on a new router."""
        self._messages = int(saved["messages"])
        for name in self._remembers:
            value = np.array(saved[name.removeprefix("_")])
            setattr(self, name, value if value.ndim else value.item())


class Scheme(ABC):
    """The settings of a grouping scheme: frozen, comparable and picklable."""

    name: ClassVar[str]
    """The name of the scheme for `steelyard.schemes.named`."""

    @abstractmethod
    def router(self, bins: int, seed: int = 0) -> Router:
        """Create a router over `bins` bins; routers with the same seed make the same choices."""

    def resume(self, saved: State) -> Router:
        """Create a router in exactly the state that `Router.save` returned."""
        owner = str(saved["scheme"]) if "scheme" in saved else "something else"
        if owner != repr(self):
            raise ValueError(f"the state was saved by {owner} and cannot resume {self!r}")
        router = self.router(int(saved["bins"]), int(saved["seed"]))
        router._restore(saved)
        return router

    @classmethod
    def of(cls, **settings: object) -> Self:
        """Create the scheme with these settings; raise a ValueError that names an unknown one."""
        known = list(getattr(cls, "__dataclass_fields__", {}))
        for setting in settings:
            if setting not in known:
                allowed = ", ".join(known) or "none"
                raise ValueError(f"{cls.name} has no setting {setting!r}; it has: {allowed}")
        return cls(**settings)
