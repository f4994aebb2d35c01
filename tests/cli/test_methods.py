"""``methods`` and ``doctor``: what is here, what is missing, and the command that adds it."""

import re

from difflab.methods.plugged import Description


def test_every_method_of_the_contract_is_listed(difflab):
    result = difflab("methods")
    assert result.code == 0
    listed = re.findall(r"^([a-z-]+) +(symbolic|numeric|automatic) ", result.out, re.M)
    assert listed == [
        ("symbolic", "symbolic"),
        ("finite-forward", "numeric"),
        ("finite-central", "numeric"),
        ("richardson", "numeric"),
        ("complex-step", "numeric"),
        ("forward", "automatic"),
        ("reverse", "automatic"),
        ("exact", "automatic"),
        ("jax", "automatic"),
        ("torch", "automatic"),
        ("autograd", "automatic"),
        ("casadi", "automatic"),
        ("symengine", "symbolic"),
        ("numdifftools", "numeric"),
        ("pytensor", "automatic"),
        ("tensorflow", "automatic"),
        ("torch-compile", "automatic"),
        ("tinygrad", "automatic"),
        ("symforce", "symbolic"),
        ("jacobi", "numeric"),
        ("enzyme-ad", "automatic"),
        ("jax-jet", "automatic"),
        ("jax-folx", "automatic"),
        ("advect", "automatic"),
        ("heyoka", "automatic"),
        ("symb-anafis", "symbolic"),
        ("warp", "automatic"),
        ("taichi", "automatic"),
        ("tvm", "automatic"),
        ("onnxruntime", "automatic"),
    ]
    assert all(len(line) <= 80 for line in result.out.splitlines())


def test_a_missing_method_says_why(difflab, monkeypatch):
    row = Description("other\x1b[1m", "automatic", (1,), "fast", "pip install 'other[x]'")
    monkeypatch.setattr("difflab.methods.registry.describe", lambda: [row])
    result = difflab("methods")
    assert "pip install 'other[x]'" in result.out
    assert "other\\x1b[1m" in result.out


def test_doctor_names_what_is_missing_and_the_command(difflab, monkeypatch):
    monkeypatch.setattr(
        "difflab.methods.process.loading.faults", lambda names: dict.fromkeys(names, "missing")
    )
    result = difflab("doctor")
    assert result.code == 0
    assert re.search(r"^llvmlite +missing .*pip install 'difflab\[native\]'$", result.out, re.M)
    assert re.search(r"^cupy +missing .*pip install 'difflab\[gpu\]'$", result.out, re.M)
    assert re.search(r"^numpy +\d", result.out, re.M)
    assert all(len(line) <= 80 for line in result.out.splitlines())


def test_doctor_shows_versions_of_what_is_there(difflab, monkeypatch):
    monkeypatch.setattr("difflab.methods.process.loading.faults", lambda names: {})
    brought = {"jax": ["jax"], "cupy": ["cupy-cuda13x"]}
    monkeypatch.setattr("importlib.metadata.packages_distributions", lambda: brought)
    versions = {"jax": "9.8.7", "cupy-cuda13x": "14.2.0"}
    monkeypatch.setattr("importlib.metadata.version", lambda name: versions.get(name, "1.0"))
    result = difflab("doctor")
    assert re.search(r"^jax +9\.8\.7 +a method of compare; bench peers$", result.out, re.M)
    assert re.search(r"^cupy +14\.2\.0 ", result.out, re.M)
    assert "pip install" not in result.out


def test_doctor_breaks_no_package_to_add_another(difflab, monkeypatch):
    absent = {"symforce": "missing", "llvmlite": "missing"}
    monkeypatch.setattr("difflab.methods.process.loading.faults", lambda names: absent)
    monkeypatch.setattr("difflab.core.optional._distributed", lambda name: name == "symengine")
    result = difflab("doctor")
    assert "pip install 'difflab[native]'" in result.out
    assert "difflab[symforce]" not in result.out
    assert "symforce cannot be used beside symengine" in result.out


def test_doctor_tells_broken_from_missing(difflab, monkeypatch):
    wrong = {"llvmlite": "broken: OSError: no libLLVM.so", "cupy": "missing"}
    monkeypatch.setattr("difflab.methods.process.loading.faults", lambda names: wrong)
    result = difflab("doctor")
    assert re.search(r"^llvmlite +broken ", result.out, re.M)
    assert "\nllvmlite is broken: OSError: no libLLVM.so\n" in result.out
    assert "\n  repair it with: pip install --force-reinstall llvmlite\n" in result.out
    assert all(len(line) <= 80 for line in result.out.splitlines())
