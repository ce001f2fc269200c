"""What is said about a farm: one picture for the page, the commands and the metrics."""

from __future__ import annotations

from typing import Any

from slipway.rpc.farm.devices import ASSIGNED, BUSY, FREE, OFFLINE, FarmDevice
from slipway.rpc.farm.journal import Sample
from slipway.rpc.farm.state import Farm

DRAINED = "drained"  # free, and not handed out
_MAX_WAITING = 200  # shown one by one; all are counted


def devices_of(farm: Farm) -> list[dict[str, Any]]:
    """Return every device, offline ones too, in the order of their first registration.

    Times are Unix seconds.  A lease is a secret and not in it; `session` is its public name.
    A device that has not changed is the same object as the last time; do not change it.
    """
    every = [*farm.devices.values(), *farm.offline.values()]
    return [_device(device) for device in sorted(every, key=lambda device: device.number)]


def _device(device: FarmDevice) -> dict[str, Any]:
    if device.view is None:
        device.view = _shown(device)
    return device.view


def _shown(device: FarmDevice) -> dict[str, Any]:
    return {
        "id": device.number,
        "key": device.key,
        "address": device.address,
        "port": device.port,
        "state": _state(device),
        "drained": device.is_drained,
        "session": device.session,
        "holder": device.holder,
        "since": round(device.since, 3),
        "sessions": device.sessions,
        "failures": device.failures,
        "last_error": device.last_error,
        "description": device.description,
        "note": device.remarks.note,
        "tags": list(device.remarks.tags),
        "reserved_for": device.remarks.reserved_for,
        "reserved_until": round(device.remarks.reserved_until, 3),
    }


def _state(device: FarmDevice) -> str:
    return DRAINED if device.state == FREE and device.is_drained else device.state


def kinds_of(farm: Farm) -> dict[str, dict[str, int]]:
    """Return for each kind how many devices are in each state, and how many requests wait."""
    kinds: dict[str, dict[str, int]] = {}

    def kind(key: str) -> dict[str, int]:
        names = (FREE, ASSIGNED, BUSY, DRAINED, OFFLINE, "waiting")
        return kinds.setdefault(key, dict.fromkeys(names, 0))

    for device in (*farm.devices.values(), *farm.offline.values()):
        kind(device.key)[_state(device)] += 1
    for key, requests in farm.waiting.items():
        kind(key)["waiting"] += len(requests)
    return dict(sorted(kinds.items()))


def snapshot(farm: Farm) -> dict[str, Any]:
    """Return everything that may be shown of a farm, as JSON values; times are Unix seconds."""
    journal, now = farm.journal, farm.clock.now()
    queue = sorted(
        (request for queue in farm.waiting.values() for request in queue),
        key=lambda request: (-request.priority, request.number),
    )
    return {
        "started": round(journal.started, 3),
        "now": round(now, 3),
        "devices": devices_of(farm),
        "kinds": kinds_of(farm),
        "waiting": len(queue),
        "queue": [
            {
                "id": request.number,
                "key": request.key,
                "priority": request.priority,
                "holder": request.holder,
                "since": round(request.since, 3),
            }
            for request in queue[:_MAX_WAITING]
        ],
        "totals": {
            "requests": _by_result(journal.requests),
            "sessions": _by_result(journal.sessions),
            "registrations": _by_result(journal.registrations),
            "refused_peers": journal.refused_peers,
        },
        "jobs": [
            {
                "at": round(job.at, 3),
                "length_s": job.length_s,
                "kind": job.kind,
                "device": job.device,
                "session": job.session,
                "who": job.who,
                "result": job.result,
                "text": job.words,
            }
            for job in reversed(journal.jobs)
        ],
        "errors": [
            {
                "at": round(trouble.at, 3),
                "kind": trouble.kind,
                "device": trouble.device,
                "session": trouble.session,
                "text": trouble.text,
            }
            for trouble in reversed(journal.troubles)
        ],
    }


def history(farm: Farm) -> list[list[float]]:
    """Return the chart's points: Unix time, devices, busy ones, waiting, sessions finished."""
    return [sample_values(sample) for sample in farm.journal.samples]


def sample_values(sample: Sample) -> list[float]:
    """Return one point of `history`."""
    return [round(sample.at, 1), sample.total, sample.busy, sample.waiting, sample.finished]


def take_sample(farm: Farm) -> None:
    """Add a point to the history."""
    busy = sum(device.state in (ASSIGNED, BUSY) for device in farm.devices.values())
    waiting = sum(len(queue) for queue in farm.waiting.values())
    farm.journal.sample(len(farm.devices), busy, waiting)


def classic_summary(farm: Farm) -> dict[str, Any]:
    """Return classic TVM's summary, and the whole picture as ``farm``."""
    now = farm.clock.now()
    servers = [
        {
            "key": f"server:{device.key}",
            "addr": [device.address, device.port],
            "state": _state(device),
            "holder": device.holder,
            "since_s": round(now - device.since, 1),
            "description": device.description,
        }
        for device in farm.devices.values()
    ]
    queues = {}
    for key, kind in kinds_of(farm).items():
        total = kind[FREE] + kind[ASSIGNED] + kind[BUSY] + kind[DRAINED]
        if total or kind["waiting"] or kind[OFFLINE]:  # of a kind that was here, none is free
            queues[key] = {"free": kind[FREE], "total": total, "pending": kind["waiting"]}
    return {"server_info": servers, "queue_info": queues, "farm": snapshot(farm)}


def why_not(farm: Farm, key: str) -> str:
    """Return why nobody got a device of kind `key`."""
    devices = [device for device in farm.devices.values() if device.key == key]
    if not devices:
        known = ", ".join(sorted({device.key for device in farm.devices.values()})) or "none at all"
        return f"no such device is registered (registered: {known})"
    now, no_session = farm.clock.now(), " (handed out; no session began)"
    texts = [
        f"{d.address}:{d.port} since {now - d.since:.0f} s{no_session * (d.state == ASSIGNED)}"
        for d in devices
        if d.holder
    ]
    drained = sum(device.is_drained for device in devices)
    kept = dict.fromkeys(d.remarks.reservation for d in devices if d.remarks.is_reserved)
    text = f"{len(devices)} registered, in use: {', '.join(texts) or 'none'}"
    text += f", reserved for: {', '.join(kept)}" if kept else ""
    return f"{text}, taken out of service: {drained}" if drained else text


def _by_result(counts: dict[tuple[str, str], int]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for (_, result), count in counts.items():
        totals[result] = totals.get(result, 0) + count
    return totals
