"""Schemes of users: what they must define, what they get, and what is refused."""

from dataclasses import FrozenInstanceError, dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard import comparison, schemes
from steelyard.experiments.simulate_options import SimulateOptions
from steelyard.schemes import Router, Scheme, testing
from tests import plain
from tests.strategies import BINS, SEEDS, UINT64, key_streams


class LeastLoadedRouter(Router):
    """Chooses one message at a time."""

    def choose(self, key_hash, loads):
        """Return the least loaded of the first choices."""
        choices = [self.choice(key_hash, n) for n in range(1, self.scheme.choices + 1)]
        return min(choices, key=lambda b: loads[b])


@dataclass(frozen=True)
class LeastLoaded(Scheme):
    """The least loaded of some choices; with two of them, partial key grouping."""

    choices: int = 2

    name = "least-loaded"

    def router(self, bins, seed=0):
        """Return a router."""
        return LeastLoadedRouter(self, bins, seed)


class FirstRouter(Router):
    """Chooses many messages at once, with numpy."""

    def choose_many(self, hashes, loads, bins):
        """Return the first choices."""
        bins[:] = self.choice(hashes, 1)
        loads += np.bincount(bins, minlength=self.bins)
        return hashes.size


@dataclass(frozen=True)
class First(Scheme):
    """Key grouping."""

    name = "first"

    def router(self, bins, seed=0):
        """Return a router."""
        return FirstRouter(self, bins, seed)


class StickyRouter(Router):
    """Has a state of its own: a number, an array, and what follows from both."""

    remembers = ("_turn", "last")

    def __init__(self, scheme, bins, seed):
        super().__init__(scheme, bins, seed)
        self._turn = 0
        self.last = np.zeros(4, np.int64)
        self.resumed()

    def resumed(self):
        """Derive the sum."""
        self.sum = self._turn + int(self.last.sum())

    def choose(self, key_hash, loads):
        """Return a bin that depends on all messages so far."""
        self._turn = (self._turn + key_hash) % 97
        self.last[self.messages % 4] = self._turn
        self.resumed()
        return self.sum % self.bins


@dataclass(frozen=True)
class Sticky(Scheme):
    """A scheme that depends on everything."""

    name = "sticky"

    def router(self, bins, seed=0):
        """Return a router."""
        return StickyRouter(self, bins, seed)


OWN = [LeastLoaded(), LeastLoaded(choices=5), First(), Sticky()]


@pytest.mark.parametrize("scheme", OWN, ids=repr)
def test_own_schemes_keep_every_promise(scheme):
    """Saving, resuming, batches and loads work without code of the user."""
    testing.check_scheme(scheme)


@pytest.mark.parametrize("check", testing.CHECKS, ids=lambda check: check.__name__)
@given(keys=key_streams(most=60), bins=BINS, seed=SEEDS, cut=st.integers(0, 60))
def test_checks_hold_on_generated_streams(check, keys, bins, seed, cut):
    """Every check also takes streams that a test generates."""
    check(Sticky(), keys, bins, seed, cut)


@given(keys=key_streams(most=100), bins=BINS, seed=SEEDS)
def test_plain_python_routes_like_the_compiled_schemes(keys, bins, seed):
    """The same rule in plain Python and in numpy gives the same bins and loads."""
    for mine, ours in ((LeastLoaded(), "pkg"), (First(), "kg")):
        router, compiled = mine.router(bins, seed), schemes.named(ours).router(bins, seed)
        assert compiled.route_many(keys).tolist() == router.route_many(keys).tolist()
        assert compiled.loads.tolist() == router.loads.tolist()


@given(UINT64, SEEDS, st.integers(1, 1000), st.integers(1, 2**31 - 1))
def test_choices_are_those_of_every_other_scheme(key, seed, number, bins):
    """A key's choices are the same for one hash and for an array of hashes."""
    router = FirstRouter.__new__(FirstRouter)  # without the loads of so large a number of bins
    router.bins, router.mask = bins, np.uint64(plain.seed_mask(seed))
    expected = plain.choice(key, number, bins, seed)
    assert expected == router.choice(key, number)
    assert [expected] == router.choice(np.array([key], np.uint64), number).tolist()


# What `choose` and `choose_many` may do wrong, and the check that finds it.


class Forgetful(StickyRouter):
    """Saves only a part of its state."""

    remembers = ("last",)


class Shared(Router):
    """Has state that all routers share."""

    seen = 0

    def choose(self, key_hash, loads):
        """Return a bin that depends on other routers."""
        Shared.seen += 1
        return Shared.seen % self.bins


class ByBatch(Router):
    """Depends on how messages are split into calls."""

    def choose_many(self, hashes, loads, bins):
        """Return bins in turn, from the first one in every call."""
        bins[:] = np.arange(hashes.size) % self.bins
        loads += np.bincount(bins, minlength=self.bins)
        return 0


class Uncounted(Router):
    """Does not count messages."""

    def choose_many(self, hashes, loads, bins):
        """Return the first bin."""
        bins[:] = 0
        return 0


class Signed(Router):
    """Does not route with the hashes that it gets."""

    def route_many(self, hashes):
        """Read signed hashes differently."""
        return super().route_many(np.abs(hashes))

    def choose(self, key_hash, loads):
        """Return a bin by the hash."""
        return key_hash % self.bins


class WithFile(LeastLoadedRouter):
    """Shares a list with its copies."""

    def __deepcopy__(self, memo):
        return self


class OtherSeed(LeastLoadedRouter):
    """Ignores its seed."""

    def __init__(self, scheme, bins, seed):
        super().__init__(scheme, bins, 0)


@dataclass(frozen=True, eq=False)
class Unequal(LeastLoaded):
    """Is equal to itself only."""

    def __eq__(self, other):
        return self is other

    def __hash__(self):
        return 0


@dataclass(frozen=True)
class Made(LeastLoaded):
    """Creates routers of any class."""

    of: type = LeastLoadedRouter

    def router(self, bins, seed=0):
        """Return a router of the class."""
        return self.of(self, bins, seed)


BROKEN = [
    (Unequal(), testing.check_settings, "a copy of it must be equal to it"),
    (Made(of=lambda *_: "x"), testing.check_router, "must return a Router, got str"),
    (Made(of=OtherSeed), testing.check_router, "as settings, got"),
    (Made(of=Shared), testing.check_choices_repeat, "two routers with the same seed must choose"),
    (Made(of=ByBatch), testing.check_batches, "one call for all messages and one for each"),
    (Made(of=Uncounted), testing.check_loads, "but bin 0 has 4 messages and a load of 0"),
    (Made(of=Forgetful), testing.check_resuming, "a router and one that resumed after 2 messages"),
    (Made(of=WithFile), testing.check_copies, "a router and a copy must choose"),
    (Made(of=Signed), testing.check_signed_hashes, "unsigned and signed hashes must choose"),
]


@pytest.mark.parametrize(
    ("scheme", "check", "sentence"), BROKEN, ids=lambda it: getattr(it, "__name__", None)
)
def test_a_broken_promise_is_found(scheme, check, sentence):
    """The check for the promise fails, and so does the check of everything."""
    keys = np.array([3, 2**64 - 5, 2**63 + 1, 12345], np.uint64)
    with pytest.raises(AssertionError, match=sentence):
        check(scheme, keys, 5, 7, 2)
    with pytest.raises(AssertionError):
        testing.check_scheme(scheme)


@pytest.mark.parametrize("chosen", [-1, 4, 1.0, None, True])
def test_a_bin_that_does_not_exist_is_refused(chosen):
    """A negative number would silently count for another bin."""

    class Wrong(Router):
        def choose(self, key_hash, loads):
            return chosen

    sentence = "the bin that choose returns must be a whole number, from 0 to 3, got"
    with pytest.raises(ValueError, match=sentence):
        Wrong(First(), 4, 0).route(1)


@pytest.mark.parametrize("chosen", [-1, 4])
def test_bins_that_do_not_exist_are_refused(chosen):
    """Also where many messages are chosen at once."""

    class Wrong(Router):
        def choose_many(self, hashes, loads, bins):
            bins[:] = chosen
            return 0

    with pytest.raises(ValueError, match=r"Wrong.choose_many must fill bins with numbers from 0 t"):
        Wrong(First(), 4, 0).route_many(np.arange(3))


def test_a_router_without_a_choice_is_refused():
    """One of the two methods must be defined."""
    with pytest.raises(TypeError, match="Router must define choose or choose_many"):
        Router(First(), 4, 0)


def test_a_state_that_cannot_be_saved_is_refused():
    """The sentence names the attribute."""

    class Wrong(FirstRouter):
        remembers = ("seen",)
        seen = ()

    with pytest.raises(TypeError, match="'seen' of Wrong must be a number or a numpy array, got t"):
        Wrong(First(), 4, 0).save()


# Names.


def test_a_registered_scheme_is_known_by_its_name():
    """`named` and `names`, the comparison and the simulator know it."""
    assert schemes.register(LeastLoaded) is LeastLoaded
    assert schemes.names()[-1] == "least-loaded"
    assert schemes.named("least-loaded", choices=4) == LeastLoaded(4)
    compared = comparison.compare(skew=1.0, workers=5, messages=500, keys=50)
    by_name = {result.scheme: result for result in compared}
    assert by_name["least-loaded"].imbalance == by_name["pkg"].imbalance
    given = {"fraction": 0.001, "slots": 1, "scheme": "least-loaded"}
    assert SimulateOptions.of(given).grouping.grouping().scheme == LeastLoaded()


def test_a_module_may_be_loaded_twice():
    """The class that was registered last is used."""
    schemes.register(LeastLoaded)
    again = dataclass(frozen=True)(type("LeastLoaded", (LeastLoaded,), {"choices": 3}))
    again.__module__ = LeastLoaded.__module__
    schemes.register(again)
    assert type(schemes.named("least-loaded")) is again


def defined(**attributes):
    """Return a class of schemes with these attributes."""
    return type("Mine", (First,), {"__annotations__": {}, **attributes})


def frozen(**attributes):
    """Return a class of schemes that is a frozen dataclass."""
    return dataclass(frozen=True)(defined(**attributes))


@pytest.mark.parametrize(
    ("made", "error", "sentence"),
    [
        (First, TypeError, r"takes a subclass of .*\.Scheme, got First"),
        (lambda: int, TypeError, r"takes a subclass of .*\.Scheme, got <class 'int'>"),
        (lambda: Scheme, TypeError, r"Scheme must define router\(bins, seed\)"),
        (lambda: defined(name="mine"), TypeError, "Mine must be a frozen dataclass"),
        (
            lambda: frozen(name="mine", x=field(), __annotations__={"x": int}),
            TypeError,
            "the setting 'x' of Mine needs a default value",
        ),
        (lambda: frozen(name="My scheme"), ValueError, "such as name = 'mine', got 'My scheme'"),
        (lambda: frozen(name=None), ValueError, "Mine needs a name of lower-case letters"),
        (lambda: frozen(name="porc"), ValueError, "the name 'porc' of Mine is taken"),
        (lambda: frozen(name="cg"), ValueError, "the name 'cg' of Mine is taken"),
    ],
)
def test_a_class_that_breaks_the_contract_is_refused(made, error, sentence):
    """One sentence names the class and what it lacks."""
    with pytest.raises(error, match=f"register:? ?.*{sentence}"):
        schemes.register(made())
    assert len(schemes.names()) == 10


def test_settings_are_frozen():
    """A scheme can be a key of a dictionary."""
    with pytest.raises(FrozenInstanceError):
        LeastLoaded().choices = 3
