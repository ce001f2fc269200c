"""``python -m slipway.exec.query_rpc_tracker``: what a tracker has, and who waits for what."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from slipway.errors import SlipwayError
from slipway.rpc.addresses import tracker_of_environment
from slipway.rpc.tracker_client import connect_tracker


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tracker's summary."""
    parser = argparse.ArgumentParser(
        prog="python -m slipway.exec.query_rpc_tracker",
        description="Print a tracker's devices and queues.",
    )
    parser.add_argument("--host", help="default: TVM_TRACKER_HOST, else 127.0.0.1")
    parser.add_argument("--port", type=int, help="default: TVM_TRACKER_PORT, else 9190")
    arguments = parser.parse_args(argv)
    try:
        host, port = tracker_of_environment(arguments.host, arguments.port)
        with connect_tracker(host, port) as tracker:
            print(f"Tracker address {host}:{port}\n")
            print(tracker.text_summary())
    except SlipwayError as error:
        print(f"query_rpc_tracker: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
