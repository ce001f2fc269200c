"""``python -m slipway.driver.tvmc``: classic TVM's commands compile, run, tune and micro."""

import sys

from slipway.driver.tvmc.commands import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
