"""Machine code in batches and at points: blocks, threads, pieces, and code from the disk."""

from __future__ import annotations

import math
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import difflab as dl
from difflab.errors import MissingDependencyError, UnsupportedError
from difflab.execute import choice
from difflab.execute.lower.schedule import ScalarProgram
from difflab.execute.targets.llvm import engine, libraries, target, writer
from difflab.execute.targets.llvm.target import NativeTarget
from difflab.lower import records

pytest.importorskip("llvmlite", reason="llvmlite is not installed")

SEED = "ln(x1) + x1*x2 - sin(x2)"


def seed() -> dl.Function:
    return dl.value_and_gradient(dl.parse(SEED))


def native(f: dl.Function, threads: int = 1) -> NativeTarget:
    return NativeTarget(ScalarProgram.of(f), f.input_shapes, threads)


def chain(length: int) -> dl.Function:
    """Return a program as long as wished, whose late values read early ones."""
    lines = ["v0 = x*y", "v1 = cos(x)"]
    lines += [f"v{k} = sin(v{k - 1}) + v{k // 2}*y/{k}" for k in range(2, length)]
    return dl.value_and_gradient(dl.parse("\n".join([*lines, f"v{length - 1}"])))


def same(found: Any, expected: Any) -> None:
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_array_equal(left, right)


def points(count: int) -> list[NDArray[np.float64]]:
    rng = np.random.default_rng(3)
    return [rng.uniform(0.5, 3, count), rng.uniform(-3, 3, count)]


def test_a_points_value_depends_on_nothing_but_the_point() -> None:
    run = native(seed())
    a, b = points(200)
    whole = run([a, b], (200,))
    for count in (1, 2, run.machine.width, run.machine.width + 1, 37, 199):
        same(run([a[:count], b[:count]], (count,)), [part[:count] for part in whole])
    same(run([a[::-1], b[::-1]], (200,)), [part[::-1] for part in whole])
    same(
        run([a.reshape(8, 25), b.reshape(8, 25)], (8, 25)),
        [part.reshape(8, 25, *part.shape[1:]) for part in whole],
    )


def test_inputs_lie_as_they_like() -> None:
    run = native(seed())
    a, b = points(100)
    whole = run([a, b], (100,))
    packed = np.stack([a, b], axis=-1)
    spread = np.zeros(300)
    spread[::3] = b
    crooked = np.frombuffer(b"." + b.tobytes(), np.uint8)[1:].view(np.float64)
    assert not crooked.flags.aligned
    for x, y in [(packed[:, 0], packed[:, 1]), (a, spread[::3]), (a, crooked)]:
        same(run([x, y], (100,)), whole)
    same(run([a, 0.75], (100,)), run([a, np.full(100, 0.75)], (100,)))


def test_what_is_copied_to_a_desk_gives_what_is_looked_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a, b = points(240)
    packed = np.stack([a, b], axis=-1)

    def three(w: Any, y: Any) -> Any:
        return np.stack([w[0] * y, np.sin(w[1])]), w[0] < y, w[0] + y

    f = dl.trace(three, np.ones(2), 1.0)
    short = native(f)
    tabled = native(f)
    monkeypatch.setattr(tabled, "short_batch_points", 0)
    monkeypatch.setattr(short, "_fill", None)
    monkeypatch.setattr(tabled, "_copied_batch", None)
    for values, batch in [
        ([packed, a], (240,)),
        ([packed[::-3], b[::3]], (80,)),
        ([packed, 1.5], (240,)),
        ([packed[0], a], (240,)),
        ([packed.reshape(4, 60, 2), b[:60]], (4, 60)),
        ([packed[:8], a[:8]], (8,)),
    ]:
        for left, right in zip(short(values, batch), tabled(values, batch), strict=True):
            assert left.dtype == right.dtype
            np.testing.assert_array_equal(left, right)
            assert left.strides == right.strides
    assert len(short._batch_workspaces) == 1


def test_a_short_batch_is_not_touched_by_what_was_left_of_a_long_one() -> None:
    run = native(seed())
    a, b = points(100)
    first = run([a, b], (100,))
    kept = [part.copy() for part in first]
    with np.errstate(all="raise"):
        same(run([a[:3], b[:3]], (3,)), [part[:3] for part in kept])
    run([np.full(100, np.nan), b], (100,))
    same(run([a[:3], b[:3]], (3,)), [part[:3] for part in kept])
    same(first, kept)


def test_each_user_thread_has_its_own_workspace() -> None:
    run = native(seed())
    inputs = [points(300 + k) for k in range(4)]
    expected = [run(values, (300 + k,)) for k, values in enumerate(inputs)]
    wrong: list[int] = []

    def work(k: int) -> None:
        for _ in range(200):
            found = run(inputs[k], (300 + k,))
            if not all(map(np.array_equal, found, expected[k])):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert 1 <= len(run._batch_workspaces) <= 4


def test_a_short_call_allocates_its_results_only() -> None:
    fast = dl.compile(seed(), "native", threads=1)
    values = points(2000)
    size = sum(result.nbytes for result in fast(*values))
    tracemalloc.start()
    try:
        fast(*values)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert size <= peak < size + 4096


def test_blocks_and_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = points(20_011)
    expected = native(seed())([a, b], (20_011,))
    monkeypatch.setattr(target, "BLOCK", 100)
    monkeypatch.setattr(target, "STAGED_BYTES", 1000)
    monkeypatch.setattr(target, "WORTH_THREADS", 1)
    strided = np.stack([a, b], axis=-1)
    for threads in (1, 3):
        run = native(seed(), threads)
        same(run([a, b], (20_011,)), expected)
        same(run([strided[:, 0], strided[:, 1]], (20_011,)), expected)


def test_one_target_serves_threads_of_the_users() -> None:
    run = native(chain(1500), 2)
    inputs = [points(100 + k) for k in range(4)]
    expected = [run(values, (100 + k,)) for k, values in enumerate(inputs)]
    found: dict[int, Any] = {}

    def work(k: int) -> None:
        for _ in range(20):
            found[k] = run(inputs[k], (100 + k,))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(4):
        same(found[k], expected[k])


def test_long_programs_come_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    f = chain(400)
    whole = native(f)
    monkeypatch.setattr(writer, "PIECE", 100)
    pieces = native(f)
    assert pieces.source.count("define internal void @piece") > 10
    values = points(50)
    same(pieces(values, (50,)), whole(values, (50,)))
    point = np.array([0.3, 0.7])
    same(pieces.point(point), whole.point(point))
    value, slope = pieces.point(point)
    expected = f(0.3, 0.7)
    assert value == pytest.approx(expected[0], rel=1e-13)
    np.testing.assert_allclose(slope, expected[1], rtol=1e-12)


@pytest.mark.parametrize("window", [7, 50, 8_000])
def test_calls_that_depend_on_one_another_come_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    monkeypatch.setattr(writer, "WINDOW", window)
    monkeypatch.setattr(writer, "LEAST", 0)
    monkeypatch.setattr(writer, "PIECE", 5)
    if window == 50:  # columns only, and several modules
        monkeypatch.setattr(writer, "MOST_PIECES", 3)
        monkeypatch.setattr(records, "_SMALL", 8)
        monkeypatch.setattr(records, "_CHUNK", 3)
    rng = np.random.default_rng(5)
    lines = [f"v{k} = x[{k}]" for k in range(10)]
    for k in range(10, 150):
        a, b = rng.integers(max(0, k - 40), k, 2)
        forms = f"sin(v{a}) + v{b}", f"exp(-v{a}*v{b})", f"tanh(v{a})*x[{k % 10}]", f"atan(v{b})"
        lines.append(f"v{k} = {forms[k % 4]}")
    outputs = ", ".join(f"v{k}" for k in range(5, 150, 3))
    f = dl.parse("\n".join(["x: [10]", *lines, f"[{outputs}]"]))
    run = native(f)
    groups = list(run.writer(1).groups)
    assert (max(map(len, groups)) > 1) == bool(run.machine.letter)
    x = rng.uniform(-1, 1, 10)
    np.testing.assert_allclose(run.point(x), f(x), rtol=1e-13)


def test_few_points_of_a_long_program_are_taken_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    f = dl.value_and_gradient(dl.parse("x*exp(y)"))
    values = points(target.FEW)
    expected = native(f)(values, (target.FEW,))
    monkeypatch.setattr(target, "SMALL", 0)
    long = native(f)
    for count in (0, 1, target.FEW - 1):
        found = long([part[:count] for part in values], (count,))
        for left, right in zip(found, expected, strict=True):
            assert left.shape == (count, *right.shape[1:])
            np.testing.assert_allclose(left, right[:count], rtol=1e-15)
    assert "_batch" not in vars(long)
    same(long(values, (target.FEW,)), expected)
    assert "_batch" in vars(long)


def test_truth_values_pass_between_pieces_and_come_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "PIECE", 2)
    f = dl.parse("a = x < y; b = sin(x)*y + cos(y); c = x*y > 1\n[where(a, b, x), where(c, b, y)]")
    tests = dl.parse("(x < y) + 0*x"), dl.parse("x < y"), dl.parse("[x < 2, y < x]"), f
    a, b = points(40)
    for function in tests:
        run = native(function)
        expected = function(a, b)
        outputs = expected if isinstance(expected, tuple) else (expected,)
        single = run.point(np.array([a[0], b[0]]))
        for found, one, right in zip(run([a, b], (40,)), single, outputs, strict=True):
            assert found.dtype == right.dtype
            assert type(one) is type(right[0].item())
            np.testing.assert_allclose(found, right, rtol=1e-15)
            assert one == pytest.approx(right[0], rel=1e-15)


def test_outputs_that_are_inputs_or_constants() -> None:
    run = native(dl.jacobian(dl.parse("w: [2]; [w[1], 3*w[0], w[0]*w[1]]")))
    expected = [[0.0, 1.0], [3.0, 0.0], [5.0, 2.0]]
    assert run.point(np.array([2.0, 5.0]))[0].tolist() == expected
    assert run([np.array([[2.0, 5.0]] * 3)], (3,))[0].tolist() == [expected] * 3
    assert native(dl.parse("2*pi"))([], ()) == [2 * math.pi]


def test_a_call_allocates_its_results_and_a_block_only() -> None:
    fast = dl.compile(seed(), "native", threads=1, packed=True)
    at = np.full((500_000, 2), 2.0)
    size = sum(result.nbytes for result in fast(at))
    tracemalloc.start()
    try:
        fast(at)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert size <= peak < size + 2 * target.STAGED_BYTES


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_is_heard_between_blocks(
    monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    monkeypatch.setattr(target, "BLOCK", 100)
    monkeypatch.setattr(target, "WORTH_THREADS", 1)
    run = native(seed(), threads)
    entry, _ = run._batch
    calls: list[int] = []
    real = entry.run

    def interrupted(*args: int) -> None:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        real(*args)

    monkeypatch.setattr(entry, "run", interrupted)
    values = points(100_000)
    with pytest.raises(KeyboardInterrupt):
        run(values, (100_000,))
    assert len(calls) < 3 + 10 * threads
    monkeypatch.setattr(entry, "run", real)
    same(run(values, (100_000,)), native(seed())(values, (100_000,)))


@pytest.fixture
def compilations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Keep code in a folder of the test's; list what is compiled."""
    monkeypatch.setenv("DIFFLAB_CACHE", str(tmp_path / "kept"))
    done: list[str] = []
    write = engine.write_entry

    def noted(name: str, code: bytes) -> None:
        done.append(name)
        write(name, code)

    monkeypatch.setattr(engine, "write_entry", noted)
    return done


def test_code_is_compiled_once_and_found_again(compilations: list[str], tmp_path: Path) -> None:
    values = points(10)
    expected = native(seed())(values, (10,))
    assert len(compilations) == 1
    same(native(seed())(values, (10,)), expected)
    assert len(compilations) == 1
    native(dl.parse(SEED))(values, (10,))
    assert len(compilations) == len(set(compilations)) == 2
    for path in (tmp_path / "kept").iterdir():
        path.write_bytes(path.read_bytes()[:-20])
    same(native(seed())(values, (10,)), expected)
    assert len(compilations) == 3
    assert compilations[2] == compilations[0]


def test_another_processor_has_other_code(compilations: list[str]) -> None:
    f = dl.parse("x*y + 1")
    program = ScalarProgram.of(f)
    plain = libraries.Host("x86-64", "", 2, "")
    if not libraries.host().letter:
        pytest.skip("this processor does not run x86-64's code")
    for machine in (plain, libraries.Host("x86-64", "+sse4.1", 2, ""), plain):
        found = NativeTarget(program, f.input_shapes, 1, machine)([np.ones(4), np.ones(4)], (4,))
        assert found[0].tolist() == [2.0] * 4
    assert len(compilations) == 2


def test_auto_takes_machine_code_where_it_pays() -> None:
    few = dl.compile(dl.parse("exp(x)*y"))
    assert few.reason.startswith("python up to 32 points, since its 2 operations")
    assert few.reason.endswith(f"; numpy for more; native from {choice.WORTH_COMPILING // 2}")
    assert [few._choice.of(n) for n in (1, 32, 33, 179, 180)] == [
        *("python", "python", "numpy", "numpy", "native")
    ]
    # Nine operations, of which the logarithm's guarded derivative is three.
    fast = dl.compile(seed())
    assert fast.reason.startswith("python up to 32 points, since its 9 operations")
    assert fast.reason.endswith("; native for more")
    assert [fast._choice.of(n) for n in (1, 32, 33)] == ["python", "python", "native"]
    longer = dl.compile(chain(60))
    assert longer.reason.startswith(f"python up to {choice.FEWEST_COMPILED - 1} points, since its")
    assert [longer._choice.of(n) for n in (1, 7, 8)] == ["python", "python", "native"]


def test_auto_decides_by_the_points_alone() -> None:
    fast = dl.compile(seed())
    values = points(40)
    first = fast(*values)
    taken = [fast._choice.of(n) for n in range(100)]
    for count in (1, 20, 40, 5000):
        fast(*points(count))
    assert [fast._choice.of(n) for n in range(100)] == taken
    same(fast(*values), first)
    same(dl.compile(seed())(*values), first)


def test_operations_are_lowered_for_machine_code_when_a_batch_needs_it() -> None:
    fast = dl.compile(dl.parse(" + ".join(f"sin({k}*x)" for k in range(1, 31))))
    x, factors = np.linspace(0.1, 1.0, 20), np.arange(1, 31)
    assert fast(0.5) == pytest.approx(np.sin(0.5 * factors).sum(), rel=1e-14)
    assert "code" not in vars(fast._native)
    np.testing.assert_allclose(fast(x), np.sin(np.outer(x, factors)).sum(1), rtol=1e-13)
    assert "code" in vars(fast._native)


def test_auto_compiles_many_operations_for_a_point() -> None:
    long = dl.compile(chain(choice.MANY_OPERATIONS // 5), packed=True)
    assert long.reason.startswith("native: its")
    value, slope = long([0.3, 0.7])
    expected = long.function(0.3, 0.7)
    assert value == pytest.approx(expected[0], rel=1e-12)
    np.testing.assert_allclose(slope, expected[1], rtol=1e-10)


def test_what_has_no_machine_code_is_numpys() -> None:
    large = dl.compile(dl.trace(lambda x: np.sort(np.sin(x)), np.ones(30_000)), "native")
    assert large.reason.startswith("numpy: 'sin' computes with arrays, and it takes more than")
    assert large.reason.endswith("'argsort' has no machine code for arrays")
    assert np.all(large(np.zeros(30_000)) == 0.0)
    arrays = dl.compile(dl.parse("x: [3]; sort(x)"), "native")
    assert arrays.reason.startswith("numpy: 'argsort' computes with arrays")
    single = dl.compile(dl.parse("x: [3]; logsumexp(x)"), "native")
    assert single.reason.startswith(
        "native for one point, as requested; numpy for batches: 'logsum"
    )
    assert single([0.0, 0.0, 0.0]) == pytest.approx(math.log(3.0), rel=1e-15)
    np.testing.assert_allclose(single(np.zeros((2, 3))), [math.log(3.0)] * 2, rtol=1e-15)
    rows = dl.compile(dl.gradient(dl.parse("digamma(x)")), "native")
    assert rows.reason == "numpy: 'polygamma' has no machine code"
    assert rows(1.0)[0] == pytest.approx(math.pi**2 / 6, rel=1e-14)
    assert "'polygamma' has no machine code" in dl.compile(rows.function).reason


def test_small_arrays_are_taken_apart() -> None:
    f = dl.value_and_grad(dl.parse("W: [2, 3]; x: [3]; sum(tanh(W @ x)^2)"), argnums=(0, 1))
    rng = np.random.default_rng(8)
    fast = dl.compile(f, "native")
    assert fast.reason == "native: as requested"
    longer = dl.trace(lambda x: np.sum(np.sin(x)), np.ones(1500))
    assert dl.compile(longer, "native").reason == "native: as requested"
    assert "native" not in dl.compile(longer).reason
    auto = dl.compile(f)
    least = auto._choice.native_from
    assert f"native from {least} points, with " in auto.reason
    assert "fmul" in fast.source
    assert "fmul" not in auto.source
    for batch in [(), (5,), (2, 9)]:
        values = rng.normal(size=(*batch, 2, 3)), rng.normal(size=(*batch, 3))
        found, expected = fast(*values), f(*values)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-14)
        for left, right in zip(found[1], expected[1], strict=True):
            assert left.shape == right.shape
            np.testing.assert_allclose(left, right, rtol=1e-13, atol=1e-15)


def test_without_llvmlite_everything_else_works(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (libraries, choice):
        monkeypatch.setattr(module, "installed", lambda name: False)
    monkeypatch.setattr("difflab.core.optional.installed", lambda name: False)
    libraries.llvm.cache_clear()
    with pytest.raises(MissingDependencyError, match=r"pip install 'difflab\[native\]'"):
        dl.compile(seed(), "native")
    fast = dl.compile(seed())
    assert fast.reason.endswith("machine code needs llvmlite: pip install 'difflab[native]'")
    a, b = points(1000)
    np.testing.assert_allclose(fast(a, b)[1][:, 1], a - np.cos(b), rtol=1e-12, atol=1e-14)


def test_a_library_without_a_function_is_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "address", lambda name: 0)
    with pytest.raises(UnsupportedError, match=r"no library of this machine has '.*sin'"):
        native(dl.parse("sin(x)"))([np.ones(3)], (3,))


def test_code_says_what_it_calls_and_is_well_formed() -> None:
    module = libraries.llvm().parse_assembly(native(seed()).source)
    module.verify()
    defined = {function.name for function in module.functions if not function.is_declaration}
    assert defined == {"run"}
    assert engine.WELL >= target.SMALL
