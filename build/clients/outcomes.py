"""Runs tests by pytest and prints the outcome of each. Usage: outcomes.py pytest FILE..."""

import sys

import pytest


class Outcomes:
    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.outcome != "passed":
            print("%s %s" % (report.nodeid.split("::", 1)[-1], report.outcome))


pytest.main(["-p", "no:cacheprovider", "-q", "--no-header", "--tb=line", *sys.argv[2:]], plugins=[Outcomes()])
