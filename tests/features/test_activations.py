"""The elementwise activations against mpmath: error in ulp, special values, position, dtype."""

import zlib

import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st

from axes import every
from pairgram import _core

DTYPES = [np.float32, np.float64]
EXACT = {
    "exp": mpmath.exp,
    "gaussian": lambda x: mpmath.exp(-x),
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "tanh": mpmath.tanh,
    "cos": mpmath.cos,
    "sin": mpmath.sin,
    "relu": lambda x: max(x, mpmath.mpf(0)),
    "hardlim": lambda x: mpmath.mpf(x >= 0),
}
ULP = {"exp": 1.125, "gaussian": 1.125, "sigmoid": 2.5, "tanh": 2.75, "relu": 0, "hardlim": 0}
PERIODIC = ["cos", "sin"]
# CRC-32 of the results for float32 and float64; compilers and instruction sets agree on them.
CHECKSUMS = {
    "exp": (0x155ADA61, 0xE5CF900F),
    "gaussian": (0xAA110467, 0x81F9C014),
    "sigmoid": (0xE5BD6EA9, 0xA4AB34A1),
    "tanh": (0x0A70A351, 0xBC4F4A6E),
    "cos": (0x1BDF1192, 0xA4529F5D),
    "sin": (0x911C5A60, 0xE0E8A88F),
    "relu": (0x9FBB4C54, 0x758823C0),
    "hardlim": (0xDE49CD4B, 0xC082922C),
}
# Below these, sigmoid is 0: exp(-x) overflows.
SIGMOID_ZERO = {dtype: -np.log(float(np.finfo(dtype).max)) for dtype in DTYPES}


def apply(name, values):
    out = np.array(values, order="C")
    assert _core.apply_activation(name, out) is None
    return out


def exact(name, values):
    """The exact values as unevaluated sums of two float64."""
    with mpmath.workdps(60):
        pairs = []
        for value in values:
            y = EXACT[name](mpmath.mpf(float(value)))
            high = float(y)
            pairs.append((high, float(y - high) if np.isfinite(high) else 0.0))
    return np.array(pairs).reshape(-1, 2).T


def error(name, values):
    """Results, distance from the exact values, and the spacing of the dtype there."""
    results = apply(name, values)
    high, low = exact(name, values)
    largest = float(np.finfo(values.dtype).max)
    last = np.nextafter(np.finfo(values.dtype).max, values.dtype.type(0))  # spacing(max) overflows
    spacing = np.spacing(np.minimum(np.abs(high), float(last)).astype(values.dtype))
    inside = np.abs(high) <= largest
    np.testing.assert_array_equal(results[~inside], np.sign(high[~inside]) * np.inf)
    distance = np.abs(results[inside].astype(np.float64) - high[inside] - low[inside])
    return results[inside], distance, spacing[inside].astype(np.float64)


def neighbours(values, dtype):
    """The values as the dtype has them, and up to two steps to either side."""
    values = np.asarray(values).astype(dtype)
    out = [values]
    for towards in (-np.inf, np.inf):
        step = values
        for _ in range(2):
            step = np.nextafter(step, dtype(towards))
            out.append(step)
    return np.concatenate(out)


def drawn(dtype, reach, seed=0):
    """Uniform in ±reach and in ±3, and of uniform exponent down to the subnormals."""
    rng = np.random.default_rng(seed)
    smallest = np.finfo(dtype).minexp - np.finfo(dtype).nmant
    exponents = rng.uniform(smallest, np.log2(reach), 1000)
    exponents[:500] = rng.uniform(-12, np.log2(reach), 500)
    signs = rng.choice([-1.0, 1.0], 1000)
    return np.concatenate(
        [rng.uniform(-reach, reach, 1500), rng.uniform(-3, 3, 1500), signs * np.exp2(exponents)]
    ).astype(dtype)


def edges(dtype):
    """Around the ends of exp, and the changes of k in exp(r + k ln 2)."""
    info = np.finfo(dtype)
    first, last = info.minexp - info.nmant - 1, info.maxexp
    powers = np.concatenate([np.arange(first, last + 1, 97), [first, info.minexp, -2, -1, 0, 1, 2]])
    halves = np.concatenate([powers, powers + 0.5, [last]]) * np.log(2)
    return neighbours(np.concatenate([halves, -halves, halves / 2, -halves / 2]), dtype)


@every(dtype=DTYPES, name=ULP)
def test_error_is_within_the_stated_ulp(name, dtype):
    reach = -np.log(2) * (np.finfo(dtype).minexp - np.finfo(dtype).nmant - 3)
    values = np.concatenate([drawn(dtype, reach), edges(dtype)])
    if name == "sigmoid":
        values = values[values >= SIGMOID_ZERO[dtype]]
    _, distance, spacing = error(name, values)
    assert (distance / spacing).max() <= ULP[name]


@given(st.sampled_from(list(ULP)), st.floats(allow_nan=False))
def test_error_is_within_the_stated_ulp_for_any_float64(name, value):
    if name == "sigmoid" and value < SIGMOID_ZERO[np.float64]:
        assert apply(name, np.array([value])) == 0
    elif np.isfinite(value):
        _, distance, spacing = error(name, np.array([value]))
        assert np.all(distance <= ULP[name] * spacing)


def turns(dtype):
    """Multiples of π/4 and their neighbours, up to the end of the reduced range."""
    rng = np.random.default_rng(1)
    k = np.concatenate([np.arange(200), rng.integers(0, int(2**24 / np.pi * 4), 800)])
    values = neighbours(k * np.pi / 4, dtype)
    return np.concatenate([values, -values])


@every(dtype=DTYPES, name=PERIODIC)
def test_cos_and_sin_are_within_two_ulp_of_one(name, dtype):
    limit = neighbours([2.0**24], dtype)
    beyond = drawn(dtype, 1e30)
    values = np.concatenate([drawn(dtype, 2.0**24), turns(dtype), limit, -limit, beyond])
    results, distance, _ = error(name, values)
    assert distance.max() <= 2 * np.finfo(dtype).eps
    assert np.abs(results).max() == 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_sin_keeps_its_relative_accuracy_up_to_half_pi(dtype):
    values = drawn(dtype, np.pi / 2)
    _, distance, spacing = error("sin", values[np.abs(values) <= np.pi / 2])
    assert (distance / spacing).max() <= 2.25


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("name", "at", "expected"),
    [
        ("exp", [0.0, -0.0, np.inf, -np.inf, 1e5, -1e5], [1, 1, np.inf, 0, np.inf, 0]),
        ("gaussian", [0.0, -0.0, np.inf, -np.inf, 1e5, -1e5], [1, 1, 0, np.inf, 0, np.inf]),
        ("sigmoid", [0.0, -0.0, np.inf, -np.inf, 1e5, -1e5, 1e-30], [0.5, 0.5, 1, 0, 1, 0, 0.5]),
        ("tanh", [0.0, -0.0, np.inf, -np.inf, 30, -30, -1e5], [0.0, -0.0, 1, -1, 1, -1, -1]),
        ("cos", [0.0, -0.0, np.inf, -np.inf, 1e-30], [1, 1, np.nan, np.nan, 1]),
        ("sin", [0.0, -0.0, np.inf, -np.inf], [0.0, -0.0, np.nan, np.nan]),
        ("relu", [0.0, -0.0, np.inf, -np.inf, -3, 3], [0, 0, np.inf, 0, 0, 3]),
        ("hardlim", [0.0, -0.0, np.inf, -np.inf, -1e-30, 1e-30], [1, 1, 1, 0, 0, 1]),
    ],
)
def test_special_values(name, at, expected, dtype):
    results = apply(name, np.array([*at, np.nan], dtype))
    expected = np.array([*expected, np.nan], dtype)
    np.testing.assert_array_equal(results, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(results[numbers]), np.signbit(expected[numbers]))


@every(dtype=DTYPES, name=["tanh", "sin"])
def test_tiny_values_pass_unchanged(name, dtype):
    tiny = np.finfo(dtype).smallest_subnormal
    values = np.array([1e-20, -1e-20, tiny, -tiny, 3 * tiny, np.finfo(dtype).tiny], dtype)
    np.testing.assert_array_equal(apply(name, values), values)


def test_negative_tail_of_sigmoid():
    np.testing.assert_allclose(
        apply("sigmoid", np.array([-30.0, -300.0, -700.0])),
        [9.357622968839299e-14, 5.148200222412013e-131, 9.85967654375977e-305],
        rtol=5e-16,
    )


@every(dtype=DTYPES, name=EXACT)
def test_a_result_depends_on_neither_position_nor_length_nor_neighbours(name, dtype):
    rng = np.random.default_rng(2)
    values = rng.normal(scale=10, size=3000).astype(dtype)
    results = apply(name, values)
    for n in [*range(18), 1023, 1024, 1025]:
        for start in (0, 1, 3, 8):
            padded = values.copy()
            assert _core.apply_activation(name, padded[start : start + n]) is None
            np.testing.assert_array_equal(padded[start : start + n], results[start : start + n])
            padded[start : start + n] = values[start : start + n]
            np.testing.assert_array_equal(padded, values)
    mixed = values.copy()
    mixed[::7] = rng.choice([1e30, np.inf, np.nan], size=len(mixed[::7]))
    others = np.arange(len(values)) % 7 != 0
    np.testing.assert_array_equal(apply(name, mixed)[others], results[others])


@every(dtype=DTYPES, name=EXACT)
def test_a_result_is_the_same_beside_infinities(name, dtype):
    values = np.sort(np.concatenate([drawn(dtype, 800), drawn(dtype, 60), edges(dtype)]))
    beside = np.full(2 * len(values), np.inf, dtype)
    beside[::2] = values
    np.testing.assert_array_equal(apply(name, beside)[::2], apply(name, values))


@every(dtype=DTYPES, name=EXACT)
def test_every_nan_stays_nan(name, dtype):
    integers = f"u{dtype().itemsize}"
    bits = np.full(4096, np.nan, dtype).view(integers) + np.arange(4096, dtype=integers)
    assert np.isnan(apply(name, bits.view(dtype))).all()


@every(dtype=DTYPES, name=EXACT)
def test_every_machine_gives_the_same_bits(name, dtype):
    grid = np.arange(-(2**15), 2**15) * 0.0007
    values = np.concatenate([grid, grid * 30, grid * 2.0**19]).astype(dtype)
    bits = apply(name, values).view(f"u{values.itemsize}").astype(f"<u{values.itemsize}")
    assert zlib.crc32(bits.tobytes()) == CHECKSUMS[name][dtype is np.float64]


def test_values_of_any_shape():
    values = np.arange(-12.0, 12).reshape(2, 3, 4)
    np.testing.assert_array_equal(apply("relu", values), np.maximum(values, 0))
    assert apply("relu", np.array(-1.0)) == 0
    assert apply("cos", np.empty((0, 3))).shape == (0, 3)
