"""Project API server of the cmake template, and of the projects made from it."""

import pathlib

from slipway.micro.library_projects import CMakeHandler
from slipway.micro.project_api import server

if __name__ == "__main__":
    server.main(CMakeHandler(pathlib.Path(__file__).parent.resolve()))
