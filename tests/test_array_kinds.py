"""Every array library: the same numbers, in the kind, on the device, of the family that came in."""

import warnings

import numpy as np
import pytest

import recos
from recos import METRICS

LIMITS = {"float64": 1e-12, "float32": 3e-6, "float16": 1e-3, "bfloat16": 8e-3}
ROWS = [[1.0, -2.0, 0.5, 3.0], [2.0, 1.0, -1.0, 0.25], [0.0, 0.0, 0.0, 0.0], [-1.0, -2.0, 1.5, 4.0]]


@pytest.fixture(params=METRICS)
def metric(request):
    return request.param


def some_rows(rng, shape=(9, 14)):
    """Rows that every floating type holds exactly, one of them 0."""
    rows = rng.integers(-16, 17, shape) / 8
    rows[2] = 0
    return rows


def check(xp, result, expected, dtype="float32"):
    assert xp.owns(result), type(result)
    assert xp.dtype_of(result) == dtype
    assert tuple(result.shape) == np.shape(expected)
    if dtype == "bool":
        np.testing.assert_array_equal(xp.numpy(result), expected)
    else:
        limit = LIMITS[dtype]
        np.testing.assert_allclose(xp.numpy(result), expected, rtol=limit, atol=limit)


def float_dtypes(xp):
    if xp.name == "jax":
        return ["float32", "float16", "bfloat16"]
    if xp.name == "torch":
        return ["float64", "float32", "float16", "bfloat16"]
    if xp.name == "array_api_strict":
        return ["float64", "float32"]
    return ["float64", "float32", "float16"]


# The same numbers -----------------------------------------------------------------------------


def test_vector_functions(xp, metric, rng):
    u, v = some_rows(rng), some_rows(rng)
    function = METRICS[metric].function
    for dtype in float_dtypes(xp):
        x, y = xp.array(u, dtype), xp.array(v, dtype)
        check(xp, function(x, y), function(u, v), dtype)
        check(xp, function(x[0, ...], y[0, ...]), function(u[0], v[0]), dtype)
        check(xp, function(x[:, None, :], y), function(u[:, None], v), dtype)
        check(xp, function(x, y, axis=0), function(u, v, axis=0), dtype)


def test_bounds(xp, rng):
    u, v = some_rows(rng), some_rows(rng)
    for dtype in float_dtypes(xp):
        chain = recos.bounds(xp.array(u, dtype), xp.array(v, dtype))
        for link, expected in zip(chain, recos.bounds(u, v), strict=True):
            check(xp, link, expected, dtype)


def test_ordering(xp, rng):
    u, v = rng.integers(0, 3, (2, 40, 5)) / 2
    for dtype in float_dtypes(xp):
        x, y = xp.array(u, dtype), xp.array(v, dtype)
        check(xp, recos.similar(x, y), recos.similar(u, v), "bool")
        check(xp, recos.discordant(x, y), recos.discordant(u, v), "bool")
        for share, expected in zip(recos.concordance(x, y), recos.concordance(u, v), strict=True):
            check(xp, share, expected, dtype)


def test_pairs(xp, metric, rng):
    u, v = some_rows(rng), some_rows(rng, (5, 14))
    for dtype in float_dtypes(xp):
        x, y = xp.array(u, dtype), xp.array(v, dtype)
        table = recos.pairwise(u, v, metric=metric)
        check(xp, recos.pairwise(x, y, metric=metric), table, dtype)
        alone = recos.pairwise(u, metric=metric)
        check(xp, recos.pairwise(x, metric=metric), alone, dtype)
        blocks = list(recos.iter_pairwise(x, y, metric=metric, memory=4096))
        assert len(blocks) > 1
        start = 0
        for block in blocks:
            check(xp, block, table[start : start + block.shape[0]], dtype)
            start += block.shape[0]
        assert start == len(u)
        paired = recos.paired(x[:5, :], y, metric=metric)
        check(xp, paired, recos.paired(u[:5], v, metric=metric), dtype)


def test_above(xp, metric, rng):
    u, v = some_rows(rng), some_rows(rng, (5, 14))
    x, y = xp.array(u, "float32"), xp.array(v, "float32")
    for pair, expected in (((x, y), (u, v)), ((x,), (u,))):
        found = list(recos.above(*pair, threshold=0.2, metric=metric))
        wanted = list(recos.above(*expected, threshold=0.2, metric=metric))
        assert wanted
        assert [hit[:2] for hit in found] == [hit[:2] for hit in wanted]
        scores = [[hit[2] for hit in hits] for hits in (found, wanted)]
        np.testing.assert_allclose(*scores, rtol=0, atol=3e-6)
        assert {type(number) for hit in found for number in hit} == {int, float}


def test_large_inputs(xp, metric, rng):
    u, v = rng.standard_normal((2, 700, 200)).astype(np.float32)
    x, y = xp.array(u, "float32"), xp.array(v, "float32")
    check(xp, METRICS[metric].function(x, y), METRICS[metric].function(u, v))
    table = recos.pairwise(u[:300], v[:300], metric=metric)
    check(xp, recos.pairwise(x[:300, :], y[:300, :], metric=metric), table)


def test_integers_and_bool(xp, metric, x64):
    rows = np.array([[3, 0, 1], [0, 1, 1]])
    expected = METRICS[metric].function(rows, rows[::-1])
    for dtype, result in {
        "int8": "float32",
        "uint8": "float32",
        "int16": "float32",
        "int32": "float64",
        "int64": "float64",
    }.items():
        x, y = xp.array(rows, dtype), xp.array(rows[::-1].copy(), dtype)
        check(xp, METRICS[metric].function(x, y), expected, result)
    flags = rows > 0
    x, y = xp.array(flags), xp.array(flags[::-1].copy())
    check(xp, METRICS[metric].function(x, y), METRICS[metric].function(flags, flags[::-1]))


def test_integers_without_64_bits_in_jax(metric):
    jnp = pytest.importorskip("jax.numpy")
    rows = np.array([[3, 0, 1], [0, 1, 1]], np.int32)
    scores = METRICS[metric].function(jnp.asarray(rows), jnp.asarray(rows[::-1]))
    assert scores.dtype == jnp.float32
    np.testing.assert_allclose(scores, METRICS[metric].function(rows, rows[::-1]), atol=1e-6)


def test_lists_join_the_library_beside_them(xp, x64):
    x = xp.array(ROWS, "float64")
    check(xp, recos.recos(x, ROWS[0]), recos.recos(ROWS, ROWS[0]), "float64")
    check(xp, recos.recos(ROWS[0], x), recos.recos(ROWS[0], ROWS), "float64")


def test_extreme_lengths(xp, metric, rng):
    u, v = rng.standard_normal((2, 8, 30))
    expected = METRICS[metric].function(u, v)
    for exponent in (-30, 30):
        x, y = (xp.array((a * 10.0**exponent).astype(np.float32)) for a in (u, v))
        check(xp, METRICS[metric].function(x, y), expected)
        check(xp, recos.pairwise(x, y, metric=metric), recos.pairwise(u, v, metric=metric))


def test_inputs_are_never_changed(xp, metric):
    x = xp.array(ROWS, "float32")
    METRICS[metric].function(x, x[::-1, :] if xp.name != "torch" else x.flip(0))
    recos.pairwise(x, metric=metric)
    recos.concordance(x, x)
    np.testing.assert_array_equal(xp.numpy(x), ROWS)


# Errors ---------------------------------------------------------------------------------------


def test_first_row_that_is_not_finite_is_named(xp):
    rows = np.ones((6, 3), np.float32)
    rows[4, 1], rows[5, 0] = np.nan, np.inf
    x, ones = xp.array(rows), xp.array(np.ones((6, 3), np.float32))
    for call in (recos.recos, recos.tanimoto, recos.bounds, recos.similar, recos.concordance):
        with pytest.raises(ValueError, match=r"v: expected finite numbers, .* in row 4;"):
            call(ones, x)
    for call in (recos.paired, recos.pairwise, recos.iter_pairwise):
        with pytest.raises(ValueError, match=r"Y: expected finite numbers, .* in row 4;"):
            call(ones, x)
    with pytest.raises(ValueError, match=r"X: expected finite numbers, .* in row 4;"):
        recos.above(x, threshold=0.5)


def test_complex_numbers_are_refused(xp):
    x = xp.array([1.0, 2.0], "complex64")
    with pytest.raises(TypeError, match=r"u: expected real numbers .*complex64"):
        recos.recos(x, x)


def test_numpy_arrays_are_not_mixed_with_others(xp, metric):
    if xp.name == "numpy":
        other = pytest.importorskip("array_api_strict").asarray(ROWS)
    else:
        other = xp.array(ROWS, "float32")
    message = r"expected arrays of one array kind, got .* and .*; convert one"
    for pair in ((np.array(ROWS), other), (other, np.array(ROWS))):
        with pytest.raises(TypeError, match=message):
            METRICS[metric].function(*pair)
        with pytest.raises(TypeError, match=message):
            recos.pairwise(*pair, metric=metric)


def test_two_libraries_are_not_mixed():
    torch, jnp = pytest.importorskip("torch"), pytest.importorskip("jax.numpy")
    with pytest.raises(TypeError, match="one array kind, got jax and torch"):
        recos.cos(torch.ones(3), jnp.ones(3))


def test_two_devices_are_not_mixed():
    torch = pytest.importorskip("torch")
    with pytest.raises(ValueError, match="one device, got cpu and meta"):
        recos.cos(torch.ones(3), torch.ones(3, device="meta"))


def test_only_numpy_results_are_written_in_place():
    torch = pytest.importorskip("torch")
    x = torch.tensor(ROWS)
    with pytest.raises(ValueError, match="out: expected None, since only NumPy results"):
        recos.pairwise(x, out=np.empty((4, 4), np.float32))


@pytest.mark.gpu
def test_device_is_kept_beside_a_list():
    torch = pytest.importorskip("torch")
    x = torch.tensor(ROWS, device="cuda")
    assert recos.cos(x, ROWS[0]).device == x.device


@pytest.mark.gpu
def test_second_device_is_kept(rng):
    torch = pytest.importorskip("torch")
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two CUDA devices")
    u, v = rng.standard_normal((2, 6, 5))
    x, y = (torch.tensor(a, device="cuda:1") for a in (u, v))
    for result in (recos.recos(x, y), recos.pairwise(x, y), recos.similar(x, y)):
        assert str(result.device) == "cuda:1"
    np.testing.assert_allclose(recos.recos(x, y).cpu(), recos.recos(u, v), atol=1e-12)


def test_dlpack_of_another_library_gives_numpy_results():
    torch = pytest.importorskip("torch")

    class Plain:
        def __init__(self, x):
            self.x = x

        def __dlpack_device__(self):
            return self.x.__dlpack_device__()

        def __dlpack__(self, **options):
            return self.x.__dlpack__(**options)

    result = recos.recos(Plain(torch.tensor(ROWS)), ROWS[0])
    assert isinstance(result, np.ndarray)
    np.testing.assert_allclose(result, recos.recos(ROWS, ROWS[0]), atol=1e-6)


# PyTorch: gradients ---------------------------------------------------------------------------


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def smooth_rows(torch, shape, seed=5):
    """Rows with no ties and no dot product near 0: every similarity is smooth around them."""
    generator = torch.Generator().manual_seed(seed)
    return (0.3 + torch.rand(shape, generator=generator, dtype=torch.float64)).requires_grad_()


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("d", [1, 4])
def test_torch_gradients_are_those_of_finite_differences(torch, metric, d, sign):
    u, v = smooth_rows(torch, (3, d)), smooth_rows(torch, (3, d), seed=6)
    function = METRICS[metric].function
    calls = [
        lambda x, y: function(x, sign * y),
        lambda x, y: recos.paired(x, sign * y, metric=metric),
        lambda x, y: recos.pairwise(x, sign * y, metric=metric),
        lambda x, y: torch.concat(list(recos.iter_pairwise(x, sign * y, metric=metric))),
    ]
    for call in calls:
        result = call(u, v)
        assert result.requires_grad
        np.testing.assert_allclose(
            result.detach(), call(u.detach(), v.detach()), rtol=0, atol=1e-14
        )
        assert torch.autograd.gradcheck(call, (u, v))


def test_torch_gradients_of_one_collection_with_itself(torch, metric):
    x = smooth_rows(torch, (2, 3))
    y = smooth_rows(torch, (2, 3), seed=6)
    whole = torch.concat([x, -y])
    assert torch.autograd.gradcheck(
        lambda x: recos.pairwise(x, metric=metric).tril(-1), (whole.detach().requires_grad_(),)
    )


def test_torch_second_derivatives(torch, metric):
    u, v = smooth_rows(torch, (2, 4)), smooth_rows(torch, (2, 4), seed=6)
    assert torch.autograd.gradgradcheck(METRICS[metric].function, (u, v))


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
def test_torch_forward_mode(torch, metric):
    u, v = smooth_rows(torch, (2, 4)), smooth_rows(torch, (2, 4), seed=6)
    assert torch.autograd.gradcheck(METRICS[metric].function, (u, v), check_forward_ad=True)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(u.detach(), torch.ones_like(u))
        along = torch.autograd.forward_ad.unpack_dual(METRICS[metric].function(dual, v.detach()))
    u, v = u.detach(), v.detach()
    step = 1e-6
    slope = (METRICS[metric].function(u + step, v) - METRICS[metric].function(u - step, v)) / 2e-6
    np.testing.assert_allclose(along.tangent, slope, atol=1e-8)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_torch_gradients_stay_finite_at_zero_vectors(torch, metric, dtype):
    rows = torch.tensor(ROWS, dtype=getattr(torch, dtype))
    zeros = torch.zeros_like(rows)
    ones_against = torch.tensor([[1.0, -1.0, 1.0, -1.0]] * 4, dtype=rows.dtype)
    for first, second in ((rows, zeros), (zeros, zeros), (ones_against, torch.ones_like(rows))):
        for call in (METRICS[metric].function, lambda x, y: recos.pairwise(x, y, metric=metric)):
            u, v = (x.clone().requires_grad_() for x in (first, second))
            result = call(u, v)
            assert not result.detach().any()
            result.sum().backward()
            for x in (u, v):
                assert x.grad.dtype == rows.dtype
                assert x.grad.isfinite().all()


def test_torch_gradient_of_bounds(torch):
    u, v = smooth_rows(torch, (2, 4)), smooth_rows(torch, (2, 4), seed=6)
    assert torch.autograd.gradcheck(lambda x, y: tuple(recos.bounds(x, y)), (u, v))


def test_torch_gradient_of_a_scale_invariant_score_is_orthogonal_to_the_vector(torch, metric):
    u, v = smooth_rows(torch, (6, 9)), smooth_rows(torch, (6, 9), seed=6)
    METRICS[metric].function(u, v).sum().backward()
    along = (u.grad * u).sum(-1).detach()
    assert bool((abs(along) < 1e-14).all()) == METRICS[metric].scale_invariant


def test_torch_optimiser_reaches_the_best_score(torch):
    generator = torch.Generator().manual_seed(3)
    u = torch.randn(12, generator=generator, dtype=torch.float64).requires_grad_()
    v = torch.randn(12, generator=generator, dtype=torch.float64)
    before = float(recos.cos(u.detach(), v))
    optimiser = torch.optim.SGD([u], lr=1.0)
    for _ in range(100):
        optimiser.zero_grad()
        (-recos.cos(u, v)).backward()
        optimiser.step()
    assert before < 0.9
    assert float(recos.cos(u.detach(), v)) > 0.999


def test_torch_gradients_are_not_followed_where_they_are_off(torch, metric):
    u = torch.tensor(ROWS, requires_grad=True)
    for context in (torch.no_grad, torch.inference_mode):
        with context():
            for result in (METRICS[metric].function(u, u), recos.pairwise(u, metric=metric)):
                assert not result.requires_grad
                assert result.grad_fn is None
    assert METRICS[metric].function(u, u).requires_grad
    assert not recos.similar(u, u).requires_grad


def test_torch_parameters_are_tensors(torch, metric):
    layer = torch.nn.Linear(4, 4, bias=False)
    result = METRICS[metric].function(layer.weight, torch.tensor(ROWS))
    result.sum().backward()
    assert layer.weight.grad.isfinite().all()


def test_torch_non_finite_rows_are_named_where_gradients_are_followed(torch):
    x = torch.tensor(ROWS)
    bad = x.clone()
    bad[3, 1] = float("nan")
    bad.requires_grad_()
    for call in (recos.recos, recos.paired, recos.pairwise, recos.iter_pairwise):
        with pytest.raises(ValueError, match=r"[vY]: expected finite numbers, .* in row 3;"):
            call(x, bad)


# PyTorch: functions of functions --------------------------------------------------------------


def test_torch_vmap(torch, metric):
    u, v = (smooth_rows(torch, (4, 5), seed=seed).detach() for seed in (5, 6))
    expected = METRICS[metric].function(u, v)
    got = torch.func.vmap(METRICS[metric].function)(u, v)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-14)
    got = torch.func.vmap(METRICS[metric].function, in_dims=(0, None))(u, v[0])
    np.testing.assert_allclose(got, METRICS[metric].function(u, v[0]), rtol=0, atol=1e-14)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
def test_torch_functional_gradients(torch, metric):
    u, v = (smooth_rows(torch, (4, 5), seed=seed).detach() for seed in (5, 6))
    per_row = torch.func.vmap(torch.func.grad(METRICS[metric].function))(u, v)
    tracked = u.clone().requires_grad_()
    METRICS[metric].function(tracked, v).sum().backward()
    np.testing.assert_allclose(per_row, tracked.grad, rtol=0, atol=1e-14)
    jacobian = torch.func.jacrev(lambda x: recos.pairwise(x, v, metric=metric))(u)
    assert jacobian.shape == (4, 4, 4, 5)
    forward = torch.func.jacfwd(lambda x: recos.pairwise(x, v, metric=metric))(u)
    np.testing.assert_allclose(jacobian, forward, rtol=0, atol=1e-13)


def test_torch_strides_and_views(torch, metric):
    base = torch.arange(48, dtype=torch.float32).reshape(6, 8).sin()
    plain = base.numpy()
    function = METRICS[metric].function
    for view in (lambda x: x.T, lambda x: x[::2, 1::3], lambda x: x[1][None]):
        expected = function(view(plain).copy(), view(plain)[0].copy())
        np.testing.assert_allclose(function(view(base), view(base)[0]), expected, rtol=0, atol=1e-6)
    expanded = base[:1].expand(5, 8)
    np.testing.assert_allclose(function(expanded, base[:5]), function(plain[:1], plain[:5]), 1e-6)


# JAX ------------------------------------------------------------------------------------------


@pytest.fixture
def jax(x64):
    return pytest.importorskip("jax")


def smooth_numbers(shape, seed=5):
    return 0.3 + np.random.default_rng(seed).random(shape)


def test_jax_keeps_64_bits_where_they_are_on(jax, metric, rng):
    u, v = some_rows(rng), some_rows(rng)
    scores = METRICS[metric].function(jax.numpy.asarray(u), jax.numpy.asarray(v))
    assert isinstance(scores, jax.Array)
    assert scores.dtype == "float64"
    np.testing.assert_allclose(scores, METRICS[metric].function(u, v), rtol=0, atol=1e-14)


def test_jax_jit(jax, metric, rng):
    u, v = some_rows(rng), some_rows(rng)
    x, y = jax.numpy.asarray(u), jax.numpy.asarray(v)
    pairs = {
        "vectors": METRICS[metric].function,
        "pairwise": lambda x, y: recos.pairwise(x, y, metric=metric),
        "paired": lambda x, y: recos.paired(x, y, metric=metric),
    }
    for name, call in pairs.items():
        got = jax.jit(call)(x, y)
        np.testing.assert_allclose(got, call(u, v), rtol=0, atol=1e-13, err_msg=name)


def test_jax_jit_of_ordering_and_bounds(jax, rng):
    u, v = rng.integers(0, 3, (2, 30, 6)) / 2
    x, y = jax.numpy.asarray(u), jax.numpy.asarray(v)
    for call in (recos.similar, recos.discordant):
        np.testing.assert_array_equal(jax.jit(call)(x, y), call(u, v))
    for call in (recos.concordance, recos.bounds):
        np.testing.assert_allclose(jax.jit(call)(x, y), call(u, v), rtol=0, atol=1e-13)


def test_jax_without_64_bits():
    jax = pytest.importorskip("jax")
    x = jax.numpy.asarray(ROWS)
    assert x.dtype == "float32"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for metric in METRICS.values():
            got = jax.jit(metric.function)(x, x[::-1])
            expected = metric.function(np.array(ROWS), np.array(ROWS[::-1]))
            np.testing.assert_allclose(got, expected, rtol=0, atol=1e-6)
        shares = jax.jit(recos.concordance)(x, x[::-1])
    expected = recos.concordance(np.array(ROWS), np.array(ROWS[::-1]))
    np.testing.assert_allclose(shares, expected, rtol=0, atol=1e-6)


def test_jax_gradients_are_those_of_finite_differences(jax, metric):
    from jax.test_util import check_grads

    u, v = (jax.numpy.asarray(smooth_numbers((3, 5), seed)) for seed in (5, 6))
    v = v * jax.numpy.asarray([[1.0], [-1.0], [1.0]])  # both branches
    near = {"order": 1, "atol": 1e-6, "rtol": 1e-6}
    check_grads(jax.jit(METRICS[metric].function), (u, v), modes=("fwd", "rev"), **near)
    of_pairs = jax.jit(lambda x, y: recos.pairwise(x, y, metric=metric))
    check_grads(of_pairs, (u, v), modes=("rev",), **near)


def test_jax_and_torch_have_the_same_gradients(jax, metric):
    torch = pytest.importorskip("torch")
    u, v = (smooth_numbers((3, 6), seed) for seed in (5, 6))
    gradient = jax.jit(jax.grad(lambda x: METRICS[metric].function(x, v.tolist()).sum()))
    by_jax = gradient(jax.numpy.asarray(u))
    tracked = torch.tensor(u, requires_grad=True)
    METRICS[metric].function(tracked, torch.tensor(v)).sum().backward()
    np.testing.assert_allclose(by_jax, tracked.grad, rtol=0, atol=1e-14)


def test_jax_gradients_stay_finite_at_zero_vectors(jax, metric):
    rows = jax.numpy.asarray(ROWS)
    zeros = jax.numpy.zeros_like(rows)
    alternating = zeros + jax.numpy.asarray([1.0, -1.0, 1.0, -1.0])
    for call in (METRICS[metric].function, lambda x, y: recos.pairwise(x, y, metric=metric)):
        total = jax.jit(jax.value_and_grad(lambda x, y, f=call: f(x, y).sum(), argnums=(0, 1)))
        for pair in ((rows, zeros), (zeros, zeros), (alternating, zeros + 1)):
            score, gradients = total(*pair)
            assert score == 0
            assert all(jax.numpy.isfinite(gradient).all() for gradient in gradients)


def test_jax_vmap(jax, metric):
    u, v = (smooth_numbers((4, 5), seed) for seed in (5, 6))
    x, y = jax.numpy.asarray(u), jax.numpy.asarray(v)
    function = METRICS[metric].function
    np.testing.assert_allclose(
        jax.jit(jax.vmap(function))(x, y), function(u, v), rtol=0, atol=1e-14
    )
    per_row = jax.jit(jax.vmap(jax.grad(function), in_axes=(0, None)))(x, y[0])
    whole = jax.jit(jax.grad(lambda x: function(x, y[0]).sum()))(x)
    np.testing.assert_allclose(per_row, whole, rtol=0, atol=1e-14)


def test_jax_constant_beside_what_is_traced(jax, metric):
    u, v = (smooth_numbers((4, 5), seed) for seed in (5, 6))
    x, y = jax.numpy.asarray(u), jax.numpy.asarray(v)
    function = METRICS[metric].function
    expected = function(u, v)
    for call, argument in (
        (lambda x: function(x, y), x),
        (lambda y: function(x, y), y),
        (lambda x: function(x, v.tolist()), x),
    ):
        total = jax.jit(jax.value_and_grad(lambda a, f=call: (f(a)).sum()))
        score, gradient = total(argument)
        assert score == pytest.approx(expected.sum(), abs=1e-13)
        assert jax.numpy.isfinite(gradient).all()


def test_jax_passes_nan_through_where_values_cannot_be_looked_at(jax):
    x = jax.numpy.asarray([[1.0, np.nan], [1.0, 2.0]])
    scores = jax.jit(recos.recos)(x, x)
    assert np.isnan(scores[0])
    assert scores[1] == 1


@pytest.mark.parametrize("function", ["recos", "paired", "pairwise"])
def test_the_sign_is_right_beside_a_constant_row_also_with_gradients(function):
    """u·v and u↑·v↓ are sums that cancel but for rounding: they are summed in float64."""
    torch = pytest.importorskip("torch")
    v = torch.randn(40, 1000, generator=torch.Generator().manual_seed(1))
    v = v - v.mean(axis=1, keepdims=True)
    u = torch.ones(40, 1000, requires_grad=True)
    scores = getattr(recos, function)(u, v)
    exact = getattr(recos, function)(u.detach().numpy(), v.numpy())
    np.testing.assert_allclose(scores.detach().numpy(), exact, atol=1e-5)
    scores.sum().backward()
    assert torch.isfinite(u.grad).all()


@pytest.mark.parametrize("metric", ["decos", "tanimoto"])
def test_gradients_are_finite_where_lengths_are_far_apart(metric):
    torch = pytest.importorskip("torch")
    u = torch.tensor([1e20, 2e20], requires_grad=True)
    score = METRICS[metric].function(u, torch.tensor([2e-20, 1e-20]))
    score.backward()
    assert abs(score.item()) < 1e-15
    assert torch.isfinite(u.grad).all()


def test_forward_derivatives_keep_their_dtype():
    torch = pytest.importorskip("torch")
    x, y, t = torch.rand(3, 5, generator=torch.Generator().manual_seed(0))
    for metric in METRICS.values():
        _, tangent = torch.func.jvp(lambda a, f=metric.function: f(a, y), (x,), (t,))
        assert tangent.dtype == torch.float32


def test_nothing_compared_with_something_has_no_rows_on_any_library():
    torch = pytest.importorskip("torch")
    X, Y = torch.zeros(0, 3, requires_grad=True), torch.ones(4, 3)
    assert recos.pairwise(X, Y).shape == (0, 4)
    assert recos.pairwise(Y.requires_grad_(), X).shape == (4, 0)


def test_lists_take_the_floating_dtype_of_arrays_beside_them():
    torch = pytest.importorskip("torch")
    assert recos.recos(np.ones(3, np.float32), [1.0, 2.0, 3.0]).dtype == np.float32
    assert recos.recos(np.ones(3, np.int32), [0.5, 2.0, 3.0]).dtype == np.float64
    assert recos.recos(torch.ones(3, dtype=torch.float64), [1.0, 2.0, 3.0]).dtype == torch.float64
    assert not recos.similar(torch.tensor([1.0, 2.0], dtype=torch.float64), [1 + 1e-9, 1.0])


@pytest.mark.parametrize("n", [1, 12, 40])
def test_other_libraries_prepare_columns_within_memory(n):
    xp = pytest.importorskip("array_api_strict")
    X, Y = np.random.default_rng(0).standard_normal((2, 60, 7))
    X = X[:n]
    small = 4 * 2 * 8 * 60  # bytes: some columns at a time
    blocks = list(recos.iter_pairwise(xp.asarray(X), xp.asarray(Y), memory=small))
    scores = np.concatenate([np.asarray(block) for block in blocks])
    np.testing.assert_allclose(scores, recos.pairwise(X, Y), atol=1e-13)
