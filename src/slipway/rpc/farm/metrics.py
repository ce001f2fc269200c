"""A farm's figures in Prometheus' text format, for ``/metrics``."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from slipway.rpc.farm.journal import Durations
from slipway.rpc.farm.state import Farm
from slipway.rpc.farm.view import kinds_of
from slipway.version import VERSION

CONTENT_TYPE = CONTENT_TYPE_LATEST


class _FarmCollector(Collector):
    """Reads the farm when asked; nothing is counted twice."""

    def __init__(self, farm: Farm) -> None:
        self._farm = farm

    def collect(self) -> Iterator[Any]:
        farm, journal = self._farm, self._farm.journal
        info = InfoMetricFamily("slipway_tracker", "The tracker's program.")
        info.add_metric([], {"version": VERSION})
        yield info
        devices = GaugeMetricFamily(
            "slipway_devices", "Devices of a kind in a state.", labels=["key", "state"]
        )
        queue = GaugeMetricFamily(
            "slipway_queue_length", "Requests that wait for a device of a kind.", labels=["key"]
        )
        waiting_elsewhere = 0
        for key, kind in kinds_of(farm).items():
            waiting = kind.pop("waiting")
            if not any(kind.values()):
                waiting_elsewhere += waiting  # names that clients made up are not labels
                continue
            queue.add_metric([key], waiting)
            for state, count in kind.items():
                devices.add_metric([key, state], count)
        queue.add_metric([""], waiting_elsewhere)
        yield devices
        yield queue
        yield _counter(
            "slipway_requests",
            "Requests for a device that have ended: granted, timeout, withdrawn.",
            journal.requests,
        )
        yield _counter(
            "slipway_sessions",
            "Sessions that have ended: ok, failed, kicked, lost with their device.",
            journal.sessions,
        )
        yield _counter(
            "slipway_registrations",
            "Devices that registered for the first time, were lost, returned.",
            journal.registrations,
        )
        refused = CounterMetricFamily("slipway_refused_peers", "Peers that were turned away.")
        refused.add_metric([], journal.refused_peers)
        yield refused
        yield _histogram(
            "slipway_request_wait_seconds", "From a request to its device.", journal.waits
        )
        yield _histogram(
            "slipway_session_seconds", "How long sessions held a device.", journal.lengths
        )


def metrics_text(farm: Farm) -> bytes:
    """Return everything, with the tracker's own memory, processor time and descriptors."""
    registry = CollectorRegistry()
    registry.register(_FarmCollector(farm))
    ProcessCollector(registry=registry)
    return bytes(generate_latest(registry))


def _counter(name: str, text: str, counts: Counter[tuple[str, str]]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=["key", "result"])
    for (key, result), count in sorted(counts.items()):
        family.add_metric([key, result], count)
    return family


def _histogram(name: str, text: str, durations: Durations) -> HistogramMetricFamily:
    sums = itertools.accumulate(durations.counts)
    bounds = [*(str(bound) for bound in durations.bounds), "+Inf"]
    family = HistogramMetricFamily(name, text)
    family.add_metric([], list(zip(bounds, sums, strict=True)), durations.total_s)
    return family
