"""Sizes are judged before memory is taken; where memory ends, that is what is said."""

import resource

import numpy as np
import pytest

import difflab as dl
from difflab.core import system
from difflab.errors import ResourceError

GIB = 1 << 30
BILLION = "x: [1000000000]; "


@pytest.mark.parametrize(
    "arguments",
    [
        ("compare", BILLION + "sum(x)", "--no-timing"),
        ("compare", "x: [1000000]; x*x", "--no-timing"),
        ("trace", BILLION + "sum(x)"),
        ("derive", BILLION + "sum(x*x)", "--order", "2"),
        ("derive", BILLION + "x*2"),
        ("derive", BILLION + "sum(x*x)", "--sparsity"),
        ("graph", BILLION + "sum(x*x)", "--passes"),
        ("bench", "accuracy", BILLION + "sum(x)"),
        ("bench", "peers", BILLION + "sum(x)"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_size(arguments, capsys, monkeypatch, tmp_path):
    from difflab.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(system, "available_memory", lambda: 4 * GIB)
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    said = capsys.readouterr().err
    assert ended.value.code == 2, said
    assert "of memory, and 4 GiB are free" in said


def test_it_is_refused_before_memory_is_taken(command):
    """With an eighth of what one copy of the point takes, and no MemoryError on the way."""
    limits = [(resource.RLIMIT_AS, GIB)]
    result = command("compare", BILLION + "sum(x)", "--no-timing", limits=limits)
    assert result.code == 2
    assert not result.blamed
    assert "GiB of memory, and" in result.err


@pytest.mark.parametrize(
    "transform", [dl.jacobian, dl.sparse_jacobian], ids=["jacobian", "sparse_jacobian"]
)
def test_transforms_refuse_it_too(transform, monkeypatch):
    monkeypatch.setattr(system, "available_memory", lambda: 4 * GIB)
    with pytest.raises(ResourceError, match=r"GiB|PiB"):
        transform(dl.parse(BILLION + "x*2"))


def test_a_limit_of_the_process_counts(monkeypatch):
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    before = system.available_memory()
    resource.setrlimit(resource.RLIMIT_AS, (64 * GIB if hard < 0 else hard, hard))
    try:
        assert system.available_memory() <= 64 * GIB
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    assert before is None or before > 0


def test_a_machine_that_does_not_say_what_is_free_refuses_nothing(monkeypatch):
    monkeypatch.setattr(system, "available_memory", lambda: None)
    system.require_memory(10**18, "anything")


def announcing(path, shape, kind="<f8", data=b""):
    with path.open("wb") as file:
        np.lib.format.write_array_header_2_0(
            file, {"descr": kind, "fortran_order": False, "shape": shape}
        )
        file.write(data)


@pytest.mark.parametrize("shape", [(10**13,), (2**62, 2**62), (10**13, 0), (4,)])
def test_an_array_file_that_announces_more_than_it_holds(shape, tmp_path, command, capsys):
    from difflab.cli.options import parse_point
    from difflab.errors import InputError

    announcing(tmp_path / "x.npy", shape, data=bytes(24))
    if 0 in shape:
        with pytest.raises(InputError):
            dl.compare("x: [3]; sum(x)", parse_point([f"x=@{tmp_path}/x.npy"]), timing=False)
        return
    with pytest.raises(InputError, match=r"its header announces .* of data, but 24 bytes follow"):
        parse_point([f"x=@{tmp_path}/x.npy"])


def test_an_array_file_that_is_too_large(tmp_path, monkeypatch):
    """The file is as long as it says, as a sparse file can be, and memory is not."""
    from difflab.cli.options import parse_point
    from difflab.errors import InputError

    announcing(tmp_path / "x.npy", (1 << 30,))
    with (tmp_path / "x.npy").open("ab") as file:
        file.truncate(file.tell() + (8 << 30))
    monkeypatch.setattr(system, "available_memory", lambda: GIB)
    with pytest.raises(InputError, match=r"takes 16 GiB of memory, and 1 GiB are free"):
        parse_point([f"x=@{tmp_path}/x.npy"])


@pytest.mark.parametrize("mebibytes", [200, 500])
def test_with_little_memory_it_works_or_says_so(command, mebibytes):
    limits = [(resource.RLIMIT_AS, mebibytes << 20)]
    result = command("derive", "x: [200]; sum(x*x)^2", "--of", "hessian", limits=limits)
    assert result.code in (0, 1, 2), result.err
    assert result.code == 0 or "memory" in result.err or "thread" in result.err
