"""Project API server of the bare-metal template, and of the projects made from it."""

import pathlib

from slipway.micro.baremetal import BaremetalHandler
from slipway.micro.project_api import server

if __name__ == "__main__":
    server.main(BaremetalHandler(pathlib.Path(__file__).parent.resolve()))
