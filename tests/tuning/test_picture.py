"""The page about a search says what the database holds, and holds hostile names as text."""

import re
from types import SimpleNamespace

from slipway.tuning.database import TrialRow
from slipway.tuning.picture import curve_of, search_page
from slipway.tuning.space import Candidate


def row(score, kind="", verified=False, error=""):
    seconds = () if kind else (score,)
    return TrialRow(Candidate("tile", (("rows", 4),)), score, seconds, kind, error, verified)


TRIALS = [
    row(1.0, verified=True),
    row(float("inf"), "run", error="RPCError: <the board> caught fire"),
    row(0.4),  # fast, and never held against the reference
    row(0.7, verified=True),
    row(float("inf"), "build", error="too many rows"),
    row(0.8, verified=True),
]


class Task(SimpleNamespace):
    def __str__(self):
        return "nn.dense"


class Known:
    def trials(self, task, device):
        assert device == "pi"
        return TRIALS if task.name == "good" else []


def test_only_what_was_verified_brings_the_curve_down():
    assert curve_of(TRIALS).best == (1.0, 1.0, 1.0, 0.7, 0.7, 0.7)


def test_the_page_tells_trials_failures_and_the_winner():
    tasks = [
        Task(name="good", key="a", layers=["<script>x</script>"]),
        Task(name="idle", key="b", layers=[]),
    ]
    why = {"a": "Its limit is arithmetic & <its> tile 4 by 3."}
    page = search_page(tasks, Known(), "pi", "Tuning m.onnx", why)
    assert "<summary>Why</summary><p>Its limit is arithmetic &amp; &lt;its&gt; tile 4 by 3." in page
    assert page.count("<summary>") == 1
    assert "<script" not in page
    assert "6 trials; 1 failed (build); 1 failed (run); the best takes 0.70" in page
    assert "The first failure: RPCError: &lt;the board&gt; caught fire" in page
    assert "Nothing was tried" in page
    assert page.count('class="bad"') == 2
    (points,) = re.findall(r'points="([^"]*)"', page)
    heights = [float(point.split(",")[1]) for point in points.split()]
    assert len(heights) == len(TRIALS)
    assert heights == sorted(heights)  # downwards is faster
    assert not re.search(r'(src|href)="', page)
