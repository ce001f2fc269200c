"""Project API server of the CMSIS-Pack template, and of the projects made from it."""

import pathlib

from slipway.micro.exports.projects import CmsisPackHandler
from slipway.micro.project_api import server

if __name__ == "__main__":
    server.main(CmsisPackHandler(pathlib.Path(__file__).parent.resolve()))
