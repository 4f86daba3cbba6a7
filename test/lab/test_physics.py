import pytest

from lab import curves, physics
from lab.physics import Policy, governor_target, solve

CURVE = curves.CURVES[curves.DEFAULT_CURVE]
LOW, HIGH = 800_000, 3_200_000


def at(khz, demand, package_limits=(None,), wall_limit=None):
    count = len(package_limits)
    policies = [Policy(khz, package, 1 / count) for package in range(count)]
    return solve(CURVE, demand, policies, LOW, HIGH, package_limits, wall_limit)


@pytest.mark.parametrize("percent", range(0, 101, 10))
def test_at_full_frequency_the_draw_is_the_measured_curve(percent):
    assert at(HIGH, percent / 100).wall_watts == pytest.approx(CURVE[percent // 10])


def test_between_the_points_the_curve_is_linear_and_beyond_them_clipped():
    assert curves.watts_at(CURVE, 0.05) == pytest.approx((CURVE[0] + CURVE[1]) / 2)
    assert curves.watts_at(CURVE, 3) == CURVE[10]
    assert curves.watts_at(CURVE, -1) == CURVE[0]


@pytest.mark.parametrize("curve", ["no-such-server", [1] * 10, [5, *range(10)], [-1, *range(10)]])
def test_a_curve_that_is_none_is_refused(curve):
    with pytest.raises(ValueError):
        curves.resolve(curve)


def test_the_same_work_at_a_quarter_of_the_frequency_keeps_cores_busy_four_times_as_long_and_costs_less():
    slow, fast = at(LOW, 0.2), at(HIGH, 0.2)
    assert (fast.busy[0], slow.busy[0]) == (pytest.approx(0.2), pytest.approx(0.8))
    # 122 W idle, 299 W at 80 %: (299 - 122) * (0.4 * 0.25 + 0.6 * 0.25^3) above idle
    assert slow.wall_watts == pytest.approx(122 + 177 * 0.109375)
    assert slow.wall_watts < fast.wall_watts


def test_work_beyond_the_capacity_leaves_no_idle_time():
    assert at(LOW, 0.5).busy == (1.0,)


GOVERNORS = [
    # governor, epp, dynamic powersave, demand, wanted MHz
    ("performance", "", False, 0.0, 3200),
    ("powersave", "", False, 1.0, 800),
    ("powersave", "balance_performance", True, 1.0, 3200),
    ("powersave", "power", True, 0.5, 1600),
    ("powersave", "performance", True, 0.5, 3200),
    ("schedutil", "", False, 0.5, 2000),
    ("schedutil", "", False, 0.01, 800),
    ("ondemand", "", False, 0.9, 3200),
    ("ondemand", "", False, 0.0, 800),
    ("userspace", "", False, 1.0, 1500),
]


@pytest.mark.parametrize("governor, epp, dynamic, demand, mhz", GOVERNORS)
def test_a_governor_asks_for_its_frequency(governor, epp, dynamic, demand, mhz):
    assert governor_target(governor, epp, dynamic, demand, LOW, HIGH, 1_500_000) == mhz * 1000


def test_no_governor_leaves_the_limits():
    assert governor_target("performance", "", False, 1, LOW, 1_200_000, 0) == 1_200_000
    assert governor_target("powersave", "", False, 1, 2_000_000, HIGH, 0) == 2_000_000
    assert governor_target("userspace", "", False, 1, LOW, HIGH, 9_000_000) == HIGH


def test_a_wall_cap_lowers_frequency_just_enough():
    free, capped = at(HIGH, 0.9), at(HIGH, 0.9, wall_limit=250)
    assert free.wall_watts > 250 >= capped.wall_watts
    assert capped.throttled and not free.throttled
    one_step_more = at(capped.khz[0] + physics.STEP_KHZ, 0.9)
    assert one_step_more.wall_watts > 250


def test_a_package_limit_throttles_its_own_package_only():
    solution = at(HIGH, 0.9, package_limits=(60.0, None))
    assert solution.package_watts[0] <= 60 < solution.package_watts[1]
    assert solution.khz[0] < solution.khz[1] == HIGH


def test_an_unreachable_cap_ends_at_the_hardware_minimum():
    assert at(HIGH, 1.0, wall_limit=1.0).khz == (LOW,)


@pytest.mark.parametrize("demand", [0.0, 0.3, 0.7, 1.0])
def test_the_parts_never_exceed_the_whole(demand):
    solution = at(HIGH, demand, package_limits=(None, None))
    inside = sum(solution.package_watts) + sum(solution.dram_watts)
    assert 0 < inside < solution.psys_watts < solution.wall_watts
