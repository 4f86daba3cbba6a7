"""What the carbon bench makes of the trials, without running them."""
import pytest

from bench import sim_carbon
from bench.figures import BenchError


def trials(ratio, oracle, ridge=0.7):
    def row(learner, again, value):
        return {"learner": learner, "decideAgain": again, "ratio": value, "oracleSaving": oracle,
                "saving": value * oracle, "waitHours": 5.0, "jobs": 8736}
    return {("blend", True): row("blend", True, ratio), ("blend", False): row("blend", False, ratio - 0.02),
            ("lag-ridge", False): row("lag-ridge", False, ridge)}


@pytest.mark.parametrize("zones, missed", [
    ({"A": (0.9, 0.3), "B": (0.85, 0.2)}, []),
    ({"A": (0.95, 0.3), "B": (0.59, 0.2)}, ["B: of the oracle's saving", "mean over 2", "least of 2"]),
    ({"A": (0.84, 0.3)}, ["mean over 1"]),
    ({"A": (0.9, 0.3), "flat": (0.1, 0.05)}, []),  # where nothing can be saved nothing is judged
])
def test_the_mean_and_each_zone_are_judged_where_something_can_be_saved(zones, missed):
    figures = sim_carbon.figures({zone: trials(*values) for zone, values in zones.items()})
    found = [figure.what for figure in figures if not figure.met]
    assert len(found) == len(missed) and all(what.startswith(want) for what, want in zip(found, missed)), found


def test_without_any_zone_worth_judging_there_is_no_result():
    with pytest.raises(BenchError, match="no zone whose oracle saves 15 %"):
        sim_carbon.figures({"flat": trials(0.9, 0.05)})


def test_files_are_found_by_zone_and_year(tmp_path):
    for name in ("DE-LU_2023.csv", "DE-LU_2022.csv", "GB_2023.csv", "README.csv"):
        (tmp_path / name).write_text("datetime_utc,ci_direct_g,ci_lca_g_per_kwh\n")
    found = sim_carbon.zones(tmp_path)
    assert [year for year, _ in found["DE-LU"]] == [2022, 2023] and list(found) == ["DE-LU", "GB"]
    assert sim_carbon.value_column(found["GB"][0][1]) == "ci_lca_g_per_kwh"
    with pytest.raises(BenchError, match="no carbon intensities"):
        sim_carbon.zones(tmp_path / "nowhere")
