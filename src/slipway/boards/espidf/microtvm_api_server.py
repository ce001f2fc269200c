"""Project API server of the ESP-IDF template, and of the projects made from it."""

import pathlib

from slipway.micro.exports.projects import EspIdfHandler
from slipway.micro.project_api import server

if __name__ == "__main__":
    server.main(EspIdfHandler(pathlib.Path(__file__).parent.resolve()))
