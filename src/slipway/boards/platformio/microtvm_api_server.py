"""Project API server of the PlatformIO template, and of the projects made from it."""

import pathlib

from slipway.micro.exports.projects import PlatformIOHandler
from slipway.micro.project_api import server

if __name__ == "__main__":
    server.main(PlatformIOHandler(pathlib.Path(__file__).parent.resolve()))
