"""The base of every grouping scheme: frozen settings, and a router that holds a source's state.

Hashes of keys enter; numbers of bins leave. A bin is a worker, or a virtual worker whose owner
delegation decides later. A source knows only the load of the messages that it routed itself.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self, overload

import numpy as np
from numpy.typing import NDArray

from steelyard.hashing import MOST_BINS, Hashes, choice_of, seed_mask
from steelyard.validation import require_whole

Bins = NDArray[np.int32]
Loads = NDArray[np.int64]
State = Mapping[str, NDArray[np.generic]]
"""A router's state as named arrays, ready for `numpy.savez`."""


class Router:
    """The state of one source: routes messages by the rule of a scheme.

    The bin of a message depends on the earlier messages, but not on how they were split into
    calls of `route` and `route_many`.

    To write your own, subclass it and define one of two methods: `choose`, which gets one message,
    or `choose_many`, which gets many and can use numpy or compiled code. All other methods work
    for every router. A router has at least the attributes `scheme`, `bins`, `seed` and `mask`, a
    number that combines the seed with a hash: `key_hash ^ mask`.

    >>> class LessLoadedOfTwo(Router):
    ...     def choose(self, key_hash, loads):
    ...         first, second = self.choice(key_hash, 1), self.choice(key_hash, 2)
    ...         return first if loads[first] <= loads[second] else second
    """

    remembers: ClassVar[tuple[str, ...]] = ()
    """The attributes that `save` stores besides the loads: numbers and numpy arrays. All others
    can be derived from them."""

    def __init__(self, scheme: "Scheme", bins: int, seed: int) -> None:
        require_whole("bins", bins, least=1, most=MOST_BINS)
        of_class = type(self)
        if of_class.choose is Router.choose and of_class.choose_many is Router.choose_many:
            raise TypeError(f"{of_class.__name__} must define choose or choose_many")
        self.scheme = scheme
        self.bins = int(bins)
        self.seed = int(seed)
        self.mask = seed_mask(seed)
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
            before = self._messages
            self._probes += self.choose_many(given.view(np.uint64), self._loads, bins)
            self._messages = before + given.size
            if int(bins.view(np.uint32).max()) >= self.bins:  # negative numbers are large here
                raise ValueError(
                    f"{type(self).__name__}.choose_many must fill bins with numbers from 0 to "
                    f"{self.bins - 1:,}, got numbers from {bins.min():,} to {bins.max():,}"
                )
        return bins

    def choose(self, key_hash: int, loads: Loads) -> int:
        """Return the bin of the next message; to be defined, unless `choose_many` is.

        Args:
            key_hash: The hash of the message's key, from 0 to 2**64 - 1.
            loads: The number of messages that each bin has got; the message is counted later.

        Returns:
            A number from 0 to `bins - 1`.
        """
        raise NotImplementedError

    def choose_many(self, hashes: Hashes, loads: Loads, bins: Bins) -> int:
        """Fill `bins` with the bins of the next messages, and add the messages to `loads`.

        By default this calls `choose` for each message. While it runs, `messages` is the number of
        messages before these; for `choose`, the number before this message.

        Args:
            hashes: The hashes of the messages' keys.
            loads: The number of messages that each bin has got; it must be updated.
            bins: The array to fill.

        Returns:
            The number of bins whose load was checked, or another measure of the work.
        """
        for place, key_hash in enumerate(hashes.tolist()):
            chosen = self.choose(key_hash, loads)
            require_whole("the bin that choose returns", chosen, least=0, most=self.bins - 1)
            loads[chosen] += 1
            bins[place] = chosen
            self._messages += 1
        return hashes.size

    @overload
    def choice(self, key_hash: int, number: int) -> int: ...
    @overload
    def choice(self, key_hash: Hashes, number: int) -> Hashes: ...
    def choice(self, key_hash: Any, number: int) -> Any:
        """Return the bin that is the first, second, ... choice of a key, or of each of many keys.

        The sequence of choices of a key is random, the same in all routers with the same seed, and
        as long as needed. Choices may repeat.

        Args:
            key_hash: The hash of a key, or an array of hashes.
            number: The number of the choice, from 1.

        Returns:
            The bin, or an array of bins.
        """
        return choice_of(key_hash ^ int(self.mask), number, self.bins)

    def save(self) -> State:
        """Return a copy of the state, for `Scheme.resume`."""
        saved: dict[str, NDArray[np.generic]] = {
            "scheme": np.array(repr(self.scheme)),
            "bins": np.array(self.bins, np.int64),
            "seed": np.array(self.seed, np.uint64),
            "messages": np.array(self._messages, np.int64),
        }
        for name in ("_loads", *self.remembers):
            value = getattr(self, name)
            if not isinstance(value, int | float | np.generic | np.ndarray):
                raise TypeError(
                    f"remembers: {name!r} of {type(self).__name__} must be a number or a numpy "
                    f"array, got {type(value).__name__}"
                )
            saved[name.removeprefix("_")] = np.array(value)
        return saved

    def _restore(self, saved: State) -> None:
        """Restore a saved state; called on a new router."""
        self._messages = int(saved["messages"])
        for name in ("_loads", *self.remembers):
            value = np.array(saved[name.removeprefix("_")])
            setattr(self, name, value if value.ndim else value.item())
        self.resumed()

    def resumed(self) -> None:
        """Derive other attributes from those that were saved; called on a resumed router."""


class Scheme(ABC):
    """The settings of a grouping scheme: frozen, comparable and picklable.

    To write your own, subclass it as a frozen dataclass, and define `name` and `router`.
    `steelyard.schemes.register` makes it available by its name.

    >>> from dataclasses import dataclass
    >>> class ToTheLast(Router):
    ...     def choose(self, key_hash, loads):
    ...         return self.bins - 1
    >>> @dataclass(frozen=True)
    ... class Last(Scheme):
    ...     name = "last"
    ...     def router(self, bins, seed=0):
    ...         return ToTheLast(self, bins, seed)
    >>> Last().router(bins=4).route(12345)
    3
    """

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
