"""A device that becomes slower while it is measured, and what it says of itself."""

import platform
import shutil
import subprocess

import pytest

from slipway.cli.tune import print_report
from slipway.rpc.about import about_of
from slipway.rpc.local import PopenSession
from slipway.toolchain import native
from slipway.tuning.drift import RESTS, Condition, DriftWatch

HOT = Condition(84.0, 1000.0, 1800.0)
COOLER = Condition(78.0, 1000.0, 1800.0)


def watch(conditions):
    """Return a watch of a device that answers so, and the seconds of its rests."""
    rested = []
    return DriftWatch(lambda: conditions.pop(0), rested.append), rested


def test_a_steady_device_is_not_asked():
    found, rested = watch([])
    for seconds in (1.0, 1.1, 0.9, 1.12):
        found.note(seconds)
    assert (found.drift, found.most, found.said) == (pytest.approx(1.12 / 0.9),) * 2 + ("",)
    assert not rested


def test_one_that_is_hot_rests_until_it_has_cooled_down():
    found, rested = watch([HOT, HOT, COOLER])
    found.note(1.0)
    found.note(1.6)
    assert found.said == "84 C, 1000 of 1800 MHz"
    assert len(rested) == 2
    found.note(1.0)  # as at first
    assert (found.drift, found.most) == (1.0, 1.6)


def test_rests_have_an_end():
    found, rested = watch([HOT] * 9)
    found.note(1.0)
    found.note(2.0)
    assert len(rested) == RESTS


@pytest.mark.parametrize(
    "condition",
    [
        Condition(),
        Condition(84.0, 1800.0, 1800.0),
        Condition(None, 1000.0, 1800.0),
        Condition(84.0),
    ],
)
def test_one_that_others_use_does_not_rest(condition):
    """Rest cools a device down; it does not end other programs."""
    found, rested = watch([condition])
    found.note(1.0)
    found.note(2.0)
    assert not rested


def test_what_a_device_says_may_be_anything():
    about = {"temperature_c": "warm", "clock_mhz": "nan", "clock_limit_mhz": "1800"}
    assert Condition.of(about) == Condition(None, None, 1800.0)
    assert str(Condition.of({"temperature_c": "54.2"})) == "54 C"
    assert not Condition.of({}).is_throttled


def test_the_report_says_it(capsys):
    line = {
        "layer": "a", "operator": "nn.dense", "calls": 1, "default_seconds": 1e-6, "score": 1.0,
        "trials": 8, "errors": {}, "drift": 1.1, "condition": "",
    }  # fmt: skip
    print_report([line])
    assert "as slow as" not in capsys.readouterr().out
    print_report([line, {**line, "drift": 1.6, "condition": "84 C, 1000 of 1800 MHz"}])
    said = " ".join(capsys.readouterr().out.split())
    assert "up to 1.60 times as slow as at its fastest (84 C, 1000 of 1800 MHz)" in said


FILES = {
    "class/thermal/thermal_zone0/temp": "41200",
    "class/thermal/thermal_zone1/temp": "61950",
    "devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": "1000000",
    "devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq": "1800000",
}


def test_a_device_tells_its_heat_and_clock(tmp_path):
    """Its server under another /sys, as a Raspberry Pi has it."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    inside = ["unshare", "-rm", "sh", "-c", 'mount --bind "$0" /sys && exec "$@"', str(tmp_path)]
    if shutil.which("unshare") is None or subprocess.run([*inside, "true"], check=False).returncode:
        pytest.skip("mounting over /sys needs user namespaces")
    server = str(native.build_device_server(f"{platform.machine()}-linux-gnu"))
    with PopenSession([*inside, server, "--stdio"]) as remote:
        assert Condition.of(about_of(remote)) == Condition(61.9, 1000.0, 1800.0)
