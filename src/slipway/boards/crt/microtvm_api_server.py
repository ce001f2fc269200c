"""Project API server of the crt template, and of the projects made from it."""

import pathlib

from slipway.micro.host_project import CrtHandler
from slipway.micro.project_api import server

if __name__ == "__main__":
    server.main(CrtHandler(pathlib.Path(__file__).parent.resolve()))
