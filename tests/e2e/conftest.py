# SPDX-License-Identifier: ISC
"""Fixtures: a gateway for a whole file, or several with options of a test's own."""

import itertools
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

# pylint: disable=wrong-import-position
from clients import ssh  # noqa: E402
from gateway import BUILD, Gateway, finish  # noqa: E402
from providers import PROVIDERS  # noqa: E402

LOG_LINES = 60
# What serves files: on this machine a server of the driver's, or the script that all other drivers use.
LOCAL_BACKENDS = ("native", "script")
numbers = itertools.count()
CHOSEN = tuple(filter(None, os.environ.get("DRIVERS", "").split(",")))


def pytest_configure(config):
    config.addinivalue_line("markers", "core: also run against the programs built with sanitizers")
    config.addinivalue_line("markers", "local_only: about what only the local driver has")
    config.addinivalue_line("markers", "provider_only: about what the local driver has not")
    config.addinivalue_line("markers", "every_driver: in a file about the local driver, runs on all of them")
    config.addinivalue_line("markers", "stress: too long for every run; part of make stress")


def pytest_generate_tests(metafunc):
    """A file that says DRIVERS = ("local", "e2b", "daytona") runs on each of these; others run on local, but for
    their tests marked every_driver. With DRIVERS=e2b,... in the environment all run on these, unless what they
    are about is one driver's own."""
    marked = metafunc.definition.get_closest_marker
    if "backend" in metafunc.fixturenames:
        others = CHOSEN or (tuple(PROVIDERS) if marked("every_driver") else ("local",))
        backends = [*(LOCAL_BACKENDS if "local" in others else ()), *(name for name in others if name != "local")]
        metafunc.parametrize("backend", backends, indirect=True, scope="module")
    if "provider" not in metafunc.fixturenames:
        return
    drivers = getattr(metafunc.module, "DRIVERS", ("local",))
    if marked("local_only"):
        drivers = ("local",)
    elif "local" in drivers and (CHOSEN or marked("every_driver")):
        drivers = CHOSEN or tuple(PROVIDERS)
    if marked("provider_only"):
        drivers = tuple(name for name in drivers if name != "local") or ("e2b",)
    metafunc.parametrize("provider", drivers, indirect=True, scope="module")


def pytest_collection_modifyitems(config, items):
    """Leaves out what is about other drivers than those asked for."""
    parameters = [getattr(item, "callspec", None) and item.callspec.params.get("provider") for item in items]
    others = [item for item, driver in zip(items, parameters) if CHOSEN and driver and driver not in CHOSEN]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in others]


def pytest_sessionstart(session):
    del session
    if not (BUILD / "rwsd").exists():
        pytest.exit(f"{BUILD}/rwsd is not there: build it first", returncode=3)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Shows the end of the logs of the gateways that a failed test used, and keeps their files."""
    del call
    report = (yield).get_result()
    if not report.failed:
        return
    for value in item.funcargs.values():
        for gateway in value if isinstance(value, list) else [value]:
            if isinstance(gateway, Gateway):
                gateway.keep = True
                tail = "\n".join(gateway.lines[-LOG_LINES:])
                title = f"Captured stdout of the gateway in {gateway.directory}"
                report.sections.append((title, tail))


@pytest.fixture(scope="module")
def provider(request):
    """What the sandboxes of the tests come from."""
    started = PROVIDERS[request.param]()
    yield started
    started.stop()


@pytest.fixture(scope="module")
def backend(request):
    """What serves the files of the tests, and what the sandboxes come from."""
    started = PROVIDERS["local" if request.param in LOCAL_BACKENDS else request.param]()
    yield request.param, started
    started.stop()


@pytest.fixture(scope="module")
def gateway(request, provider):
    """One gateway for all tests of a file: with the file's LOGINS, or else the login "sandbox"."""
    started = Gateway(provider=provider, logins=getattr(request.module, "LOGINS", None))
    try:
        yield started.start()
    finally:
        finish(started)


@pytest.fixture
def gateways():
    """The list of the gateways that make_gateway started."""
    started = []
    yield started
    for gateway in started:
        finish(gateway)


@pytest.fixture
def make_gateway(gateways, provider):
    """Makes and starts a gateway: make_gateway(options={...}, logins={...}, arguments=[...])."""

    def make(**arguments):
        gateway = Gateway(provider=provider, **arguments)
        gateways.append(gateway)
        return gateway.start()

    return make


@pytest.fixture
def login():
    """A workspace of the gateway that nothing was done with yet."""
    return f"sandbox+{next(numbers)}"


@pytest.fixture
def warm(gateway, provider, login):
    """One whose sandbox runs, ready for the next command; the requests so far are forgotten."""
    assert ssh(gateway, "true", login=login).returncode == 0
    provider.forget_requests()
    return login


@pytest.fixture
def no_faults_left(gateway, provider):
    """Faults end with their test; the gateway's secrets stay its own."""
    yield
    provider.end_faults()
    assert provider.key not in gateway.log_text()


@pytest.fixture
def nothing_left(provider):
    """No sandbox, fault or request of a test is there in the next one."""
    yield
    provider.reset()
