"""Project API server of the zephyr template, and of the projects made from it."""

import pathlib

from slipway.micro.library_projects import ZephyrHandler
from slipway.micro.project_api import server

if __name__ == "__main__":
    server.main(ZephyrHandler(pathlib.Path(__file__).parent.resolve()))
