"""Project API server of the arduino template, and of the projects made from it."""

import pathlib

from slipway.micro.library_projects import ArduinoHandler
from slipway.micro.project_api import server

if __name__ == "__main__":
    server.main(ArduinoHandler(pathlib.Path(__file__).parent.resolve()))
