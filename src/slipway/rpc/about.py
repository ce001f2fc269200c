"""What a device says of itself: its processor, memory, clock, and how warm it is."""

from __future__ import annotations

import time

from slipway.rpc.client import RPCSession


def about_of(session: RPCSession) -> dict[str, str]:
    """Return what the device says of itself by name; {} for an older or a smaller server.

    `clock` becomes `clock_ahead_s`: how far it is before this machine's, without half the way.
    """
    try:
        query = session.get_function("slipway.about")
    except AttributeError:
        return {}
    start, before = time.perf_counter(), time.time()
    lines = str(query()).splitlines()
    half_way = (time.perf_counter() - start) / 2
    about = dict(line.split(" ", 1) for line in lines if " " in line)
    if "clock" in about:
        about["clock_ahead_s"] = str(float(about.pop("clock")) - before - half_way)
    return about
