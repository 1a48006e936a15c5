"""Check that a scheme keeps the promises of every scheme, for the tests of your own schemes.

A scheme enters; an AssertionError with one sentence leaves if it breaks a promise.
"""

import copy
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from steelyard.hashing import Hashes, mix64
from steelyard.schemes.base import Bins, Router, Scheme

Check = Callable[[Scheme, Hashes, int, int, int], None]
"""A function of a scheme, the hashes of a stream, a number of bins, a seed, and a place in the
stream. `CHECKS` contains all of them, for tests that generate streams themselves."""


def check_scheme(scheme: Scheme) -> None:
    """Run all checks on streams without messages, of one key, of different keys, and skewed ones.

    Raises:
        AssertionError: The scheme breaks a promise.

    >>> from steelyard.schemes import RandomChoices
    >>> check_scheme(RandomChoices(epsilon=0.1))
    """
    streams = [np.arange(0), np.zeros(200), np.arange(200), _skewed(300)]
    for stream in streams:
        hashes = mix64(stream.astype(np.uint64))
        for bins in (1, 2, 7, 100):
            for check in CHECKS:
                check(scheme, hashes, bins, bins % 3, hashes.size // 3)


def _skewed(messages: int) -> NDArray[np.float64]:
    """Return the keys of a skewed stream: key k of about 30 has a share of 1 / k."""
    return np.floor(30 ** np.random.default_rng(0).random(messages))


def check_settings(scheme: Scheme, keys: Hashes, bins: int, seed: int, cut: int) -> None:
    """Copies of a scheme are equal, with the same hash and text: `Scheme.resume` compares them."""
    copied = copy.deepcopy(scheme)
    _require(scheme, copied == scheme, "a copy of it must be equal to it")
    _require(scheme, hash(copied) == hash(scheme), "a copy of it must have the same hash")
    _require(scheme, repr(copied) == repr(scheme), "a copy of it must have the same repr")


def check_router(scheme: Scheme, keys: Hashes, bins: int, seed: int, cut: int) -> None:
    """A router has the settings that it was made with."""
    router = scheme.router(bins, seed)
    is_router = isinstance(router, Router)
    _require(scheme, is_router, f"router must return a Router, got {type(router).__name__}")
    given, found = (scheme, bins, seed), (router.scheme, router.bins, router.seed)
    _require(scheme, given == found, f"its router must have {given} as settings, got {found}")


def check_choices_repeat(scheme: Scheme, keys: Hashes, bins: int, seed: int, cut: int) -> None:
    """Two routers with the same seed make the same choices: a retry must repeat them."""
    _require_equal(
        scheme,
        _routed(scheme, keys, bins, seed),
        _routed(scheme, keys, bins, seed),
        "two routers with the same seed",
    )


def check_batches(scheme: Scheme, keys: Hashes, bins: int, seed: int, cut: int) -> None:
    """Messages have the same bins one by one, in two batches, and in one."""
    together = _routed(scheme, keys, bins, seed)
    single, batches = scheme.router(bins, seed), scheme.router(bins, seed)
    one_by_one = np.array([single.route(int(key)) for key in keys], np.int32)
    _require_equal(scheme, together, one_by_one, "one call for all messages and one for each")
    two = np.concatenate([batches.route_many(keys[:cut]), batches.route_many(keys[cut:])])
    _require_equal(scheme, together, two, "one call and two calls")


def check_loads(scheme: Scheme, keys: Hashes, bins: int, seed: int, cut: int) -> None:
    """The loads of a router count its messages."""
    router = scheme.router(bins, seed)
    counts = np.bincount(router.route_many(keys), minlength=bins)
    for place in np.flatnonzero(counts != router.loads)[:1].tolist():
        found = f"bin {place} has {counts[place]} messages and a load of {router.loads[place]}"
        raise AssertionError(f"{scheme!r}: its loads must count its messages, but {found}")
    sentence = f"it must count {keys.size} messages, got {router.messages}"
    _require(scheme, keys.size == router.messages, sentence)


def check_resuming(scheme: Scheme, keys: Hashes, bins: int, seed: int, cut: int) -> None:
    """A router that resumes from a saved state continues as if it had not stopped."""
    straight, stopped = scheme.router(bins, seed), scheme.router(bins, seed)
    expected = straight.route_many(keys)[cut:]
    stopped.route_many(keys[:cut])
    saved = stopped.save()
    stopped.route_many(keys[cut:])  # later messages must not change the saved state
    resumed = scheme.resume(saved)
    _require_equal(
        scheme,
        expected,
        resumed.route_many(keys[cut:]),
        f"a router and one that resumed after {cut} messages",
    )
    _require(
        scheme,
        straight.loads.tolist() == resumed.loads.tolist(),
        "a router that resumed must have the same loads",
    )


def check_copies(scheme: Scheme, keys: Hashes, bins: int, seed: int, cut: int) -> None:
    """A copy of a router continues like the router, and shares no state with it."""
    router = scheme.router(bins, seed)
    router.route_many(keys[:cut])
    copied = copy.deepcopy(router)
    _require_equal(
        scheme, router.route_many(keys[cut:]), copied.route_many(keys[cut:]), "a router and a copy"
    )


def check_signed_hashes(scheme: Scheme, keys: Hashes, bins: int, seed: int, cut: int) -> None:
    """Spark's signed hashes have the same bins as unsigned ones."""
    signed = scheme.router(bins, seed).route_many(keys.view(np.int64))
    _require_equal(scheme, _routed(scheme, keys, bins, seed), signed, "unsigned and signed hashes")


CHECKS: tuple[Check, ...] = (
    check_settings,
    check_router,
    check_choices_repeat,
    check_batches,
    check_loads,
    check_resuming,
    check_copies,
    check_signed_hashes,
)


def _routed(scheme: Scheme, keys: Hashes, bins: int, seed: int) -> Bins:
    return scheme.router(bins, seed).route_many(keys)


def _require(scheme: Scheme, holds: bool, sentence: str) -> None:
    if not holds:
        raise AssertionError(f"{scheme!r}: {sentence}")


def _require_equal(scheme: Scheme, one: Bins, other: Bins, compared: str) -> None:
    """Refuse other bins; the sentence names the first message that has another."""
    differ = np.flatnonzero(one != other)
    if differ.size:
        first = int(differ[0])
        raise AssertionError(
            f"{scheme!r}: {compared} must choose the same bins, but message {first} of {one.size} "
            f"has bins {one[first]} and {other[first]}"
        )
