"""The test on times, on simulated runs with the noise of real machines."""

import numpy as np
import pytest

from difflab.lab.diff.sides import LEVEL, spread, time_change


def simulated(random, factor=1.0, busy=0.2, blocks=10, rounds=15):
    """Return the blocks of one run of a call that takes `factor` microseconds.

    Noise as seen on a shared machine: the clock frequency differs by 5 % from run to run and
    drifts within one; the places in memory shift a process by 0.4 % and a block by 0.6 %; a
    neighbour on the core doubles the time of the call and slows the yardstick by 1.7, for some
    rounds on end; every sample is prolonged by 1 % on average, and one of 30 by a multiple.
    """
    speed, process = np.exp(random.normal(0, [0.05, 0.004]))
    count = blocks * rounds
    turns = np.append(True, random.random(count - 1) < 0.15)  # the neighbour comes or goes
    shared = (random.random(count) < busy)[np.maximum.accumulate(np.where(turns, range(count), 0))]
    drift = speed * (1 + 0.01 * np.sin(np.arange(count) / 20))
    longer = 1 + random.exponential(0.012, (2, count))
    longer[0] *= 1 + np.where(random.random(count) < 1 / 30, random.exponential(1, count), 0)
    layout = np.repeat(np.exp(random.normal(0, 0.006, blocks)), rounds)
    call = factor * 1e-6 * process * layout * drift * np.where(shared, 2.0, 1.0) * longer[0]
    yard = 17e-6 * drift * np.where(shared, 1.7, 1.0) * longer[1]
    parts = (part.reshape(blocks, -1).tolist() for part in (call, yard))
    return list(zip(*parts, strict=True))


@pytest.mark.parametrize("busy", [0.0, 0.2])
def test_equal_code_gives_no_alarm_and_five_per_cent_is_found(busy):
    """With a level shared among 20 records, as in a small study."""
    random = np.random.default_rng(7)
    level, runs = LEVEL / 20, 200
    equal = [
        time_change(simulated(random, busy=busy), simulated(random, busy=busy)) for _ in range(runs)
    ]
    alarms = sum(change is not None and change.slower() < level for change in equal)
    assert alarms <= 1  # under 1 % of the runs, of which 200 are seen
    found = [
        time_change(simulated(random, busy=busy), simulated(random, 1.05, busy=busy))
        for _ in range(100)
    ]
    assert sum(change is not None and change.slower() < level for change in found) >= 85
    ratios = [change.ratio for change in found if change is not None]
    assert np.median(ratios) == pytest.approx(1.05, abs=0.005)


def test_the_level_of_one_test_is_kept_at_the_margin():
    """At a true slowdown of exactly 2 %, the largest that is no alarm, the p-value is uniform."""
    random = np.random.default_rng(8)
    found = []
    for _ in range(600):
        old = [([np.exp(e)] * 3, [1.0] * 3) for e in random.normal(0, 0.01, 10)]
        new = [([1.02 * np.exp(e)] * 3, [1.0] * 3) for e in random.normal(0, 0.01, 10)]
        found.append(time_change(old, new).slower())
    for level in (0.01, 0.05, 0.5):
        assert np.mean(np.array(found) < level) == pytest.approx(level, abs=0.05)


def test_a_run_on_a_disturbed_machine_is_not_compared():
    """Each round of the second run shares its core: its ratio is another, and says nothing."""
    random = np.random.default_rng(9)
    assert time_change(simulated(random, busy=0.0), simulated(random, busy=1.0)) is None


def test_without_a_yardstick_only_large_changes_are_seen():
    random = np.random.default_rng(10)

    def run(factor):
        return [((factor * (1 + random.exponential(0.02, 15))).tolist(), [])]

    assert time_change(run(1.0), run(1.15)).slower() > LEVEL
    assert time_change(run(1.0), run(1.6)).slower() < LEVEL
    assert time_change(run(1.6), run(1.0)).faster() < LEVEL


def test_a_family_of_noisy_records_gives_no_alarm():
    """One run of 24 records is 6 % slower or faster at random, as on an overloaded machine."""
    random = np.random.default_rng(11)
    alarms = 0
    for _ in range(30):
        factors = np.exp(random.normal(0, 0.06, 24))
        changes = [time_change(simulated(random), simulated(random, f)) for f in factors]
        known = [change for change in changes if change is not None]
        noise = spread(known)
        alarms += any(change.slower(noise) < LEVEL / len(known) for change in known)
    assert alarms == 0


def disturbed(random, scatter, factor=1.0):
    """Return the blocks of a run whose rounds scatter, as do runs, by half as much.

    Measured in 33 runs of 12 records on a machine with three and nine times as many processes as
    cores: rounds scatter by 5 to 25 %, and runs by 0.1 to 0.8 of that, where equal code was called.
    """
    run = random.normal(0, scatter / 2)
    calls = factor * np.exp(run + random.normal(0, scatter, (10, 15)))
    return [(call, [1.0] * 15) for call in calls.tolist()]


def test_a_factor_common_to_a_run_gives_no_alarm():
    """Without the variance between runs, most comparisons of two such runs have an alarm."""
    random = np.random.default_rng(13)
    alarms, found, repeats = 0, 0, 100
    for _ in range(repeats):
        scatters = random.uniform(0.05, 0.25, 12)
        runs = [[disturbed(random, s) for s in scatters] for _ in range(2)]
        changes = [time_change(*pair) for pair in zip(*runs, strict=True)]
        alarms += min(change.slower(spread(changes)) for change in changes) < LEVEL / 12
        slow = time_change(disturbed(random, 0.05), disturbed(random, 0.05, 1.4))
        found += slow.slower() < LEVEL / 12
    assert alarms < 0.01 * repeats
    assert found > 0.9 * repeats  # what the noise allows


def test_a_few_slow_records_among_many_are_found():
    random = np.random.default_rng(12)
    factors = [1.05] * 3 + [1.0] * 17
    pairs = [(simulated(random, busy=0), simulated(random, f, busy=0)) for f in factors]
    changes = [time_change(*pair) for pair in pairs]
    noise = spread(changes)
    assert [change.slower(noise) < LEVEL / 20 for change in changes] == [f > 1 for f in factors]
