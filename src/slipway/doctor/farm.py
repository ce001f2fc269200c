"""A kind of device of a tracker: the tracker, its devices of that kind, and one of them."""

from __future__ import annotations

from slipway.doctor.device import TIMEOUT_S, examine_session, refusal
from slipway.doctor.finding import Findings, ok, wrong
from slipway.errors import RPCConnectionError, RPCError, RPCTimeoutError, did_you_mean
from slipway.rpc.tracker_client import connect_tracker

STATES = ("free", "busy", "assigned", "drained", "offline", "waiting")


def examine_kind(
    key: str, host: str, port: int, token: str | None = None, wait_s: float | None = None
) -> Findings:
    """Yield what there is to say of devices of kind `key` of the tracker at an address."""
    where = f"{host}:{port}"
    try:
        tracker = connect_tracker(host, port, token=token)
    except RPCError as error:
        if error.failure:
            yield refusal(error)
        else:
            reason = str(error).partition(". ")[0]
            yield wrong("tracker", reason, f"start it there: slipway rpc-tracker --port {port}")
        return
    with tracker:
        kinds = tracker.summary()["farm"]["kinds"]
        yield ok("tracker", f"{where} knows {len(kinds)} kinds of device")
        counts = kinds.get(key)
        if counts is None or not any(counts[s] for s in STATES if s != "waiting"):
            known = ", ".join(sorted(kinds)) or "none at all"
            yield wrong(
                "kind",
                f"no device of kind {key!r} is or was here; there are {known}."
                f"{did_you_mean(key, kinds)}",
                f"start one: ./slipway-server --tracker {where} --key {key}",
            )
            return
        text = ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])
        usable = counts["free"] + counts["busy"] + counts["assigned"]
        if not usable:
            yield wrong(
                "devices", text, "resume the drained ones on the tracker's page, and look after "
                "those that are offline"
            )  # fmt: skip
            return
        yield ok("devices", text)
        try:
            session = tracker.request(
                key, timeout=TIMEOUT_S if wait_s is None else wait_s, max_retry=1
            )
        except RPCTimeoutError as error:
            yield wrong("session", str(error), "wait, or see on the page who holds the devices")
            return
        except RPCConnectionError as error:
            is_there = isinstance(error.__cause__, RPCTimeoutError)
            yield wrong(
                "address",
                str(error),
                "it is there and does not answer in time: try again when the machine that it is on "
                "has less to do, look into its log, or start it again"
                if is_there
                else "the device calls the tracker, and clients call the address that it gives: "
                "start it with --custom-addr and one that reaches it from here, open its port in "
                "the firewall, or let it call out only, through `slipway rpc-proxy`",
            )
            return
        except RPCError as error:
            yield refusal(error)
            return
        with session:
            yield from examine_session(session, f"a device {key!r} of {where}")
