"""A bad setting raises an error that names the setting, the value and the allowed range."""

import numpy as np
import pytest

from steelyard import schemes


@pytest.mark.parametrize(
    ("name", "settings", "sentence"),
    [
        ("porc", {"epsilon": 0}, "epsilon must be a number above 0 and at most 10, got 0"),
        ("ch", {"epsilon": 10.5}, "epsilon must be a number above 0 and at most 10, got 10.5"),
        ("porc", {"epsilon": float("nan")}, "epsilon must be .* above 0 and at most 10, got nan"),
        ("porc", {"epsilon": "0.1"}, "epsilon must be a number .*, got '0.1'"),
        ("porc-graded", {"grades": 1}, "grades must be a whole number, from 2 to 64, got 1"),
        ("porc-graded", {"half_life": 0}, "half_life must be a whole number, at least 1, got 0"),
        ("porc-graded", {"slack": -1}, "slack must be a number at least 0 and at most .*, got -1"),
        (
            "porc-graded",
            {"slack": 1e19},
            "slack must be .* at most 9,007,199,254,740,992, got 1e.19",
        ),
        ("porc-graded", {"heavy_share": 2}, "heavy_share must be .* at most 1, got 2"),
        ("dchoices", {"head_share": 0}, "head_share must be .* above 0 and at most 1, got 0"),
        ("dchoices", {"tolerance": 0}, "tolerance must be .* above 0 and at most 1, got 0"),
        ("dchoices", {"refresh": 1.5}, "refresh must be a whole number, at least 1, got 1.5"),
        ("kg", {"epsilon": 1}, "kg has no setting 'epsilon'; it has: none"),
        ("porc", {"eps": 1}, "porc has no setting 'eps'; it has: epsilon"),
        (
            "robin",
            {},
            "no scheme is named 'robin'; the schemes are: kg, sg, pkg, salting,",
        ),
    ],
)
def test_bad_settings_are_refused(name, settings, sentence):
    """The error message names the given value and the allowed values."""
    with pytest.raises(ValueError, match=sentence):
        schemes.named(name, **settings)


@pytest.mark.parametrize("bins", [0, -1, 1.0, True, 2**31])
def test_bad_numbers_of_bins_are_refused(bins):
    """The number of bins is a whole number that fits 32 bits."""
    with pytest.raises(ValueError, match="bins must be a whole number, from 1 to 2,147,483,647"):
        schemes.named("kg").router(bins)


def test_a_bad_seed_is_refused():
    """A seed is a whole number that fits 64 bits."""
    with pytest.raises(ValueError, match="seed must be a whole number, from 0 to"):
        schemes.named("kg").router(3, seed=-1)


@pytest.mark.parametrize("keys", [np.zeros(3), np.zeros((2, 2), np.uint64), ["a"]])
def test_bad_hashes_are_refused(keys):
    """Only one-dimensional arrays of 64-bit hashes are routed."""
    with pytest.raises(TypeError, match="needs a one-dimensional array of 64-bit hashes"):
        schemes.named("kg").router(3).route_many(keys)


def test_a_state_of_another_scheme_is_refused():
    """A state resumes only the scheme that saved it."""
    saved = schemes.named("porc").router(3).save()
    with pytest.raises(ValueError, match=r"saved by RandomChoices\(.* and cannot resume KeyGro"):
        schemes.named("kg").resume(saved)
    with pytest.raises(ValueError, match=r"cannot resume RandomChoices\(epsilon=0.5\)"):
        schemes.named("porc", epsilon=0.5).resume(saved)
    with pytest.raises(ValueError, match="saved by something else"):
        schemes.named("porc").resume({})


def test_numpy_integers_are_accepted():
    """Bins and seeds may be elements of numpy arrays."""
    keys = np.arange(1000, dtype=np.uint64)
    for name in schemes.names():
        routed = schemes.named(name).router(np.uint8(200), np.int64(3)).route_many(keys)
        assert routed.tolist() == schemes.named(name).router(200, 3).route_many(keys).tolist()
