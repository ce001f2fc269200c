"""``python -m slipway``: the same as the ``slipway`` command."""

from slipway.cli.main import main

main()
