"""gear_reverb lives in one process with TensorFlow, dm-reverb, PyTorch and JAX, in any order.

Each case is a fresh process that imports some of them in one order and then uses every one of them;
gear_reverb writes and samples over gRPC in both directions, and beside dm-reverb also with it.
There are two environments, for TensorFlow 2.15 (which dm-reverb needs) excludes the newest one;
scripts/make_import_envs.sh makes them, and what they lack is skipped with a word why.

A covering set of 15 orders runs: every order of every three of the libraries occurs, and
gear_reverb at every place. With `GEAR_REVERB_ALL_ORDERS=1` all 144 run, of 5 to 10 s each.
"""

import concurrent.futures
import itertools
import os
import pathlib
import subprocess

import pytest

pytestmark = pytest.mark.slow  # They have a suite, and environments, of their own.

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROBE = pathlib.Path(__file__).with_name("import_order_probe.py")
PROCESS_SECONDS = 150
# Each process is busy on more than one core while it imports.
PROCESSES_AT_ONCE = 2
ALL = os.environ.get("GEAR_REVERB_ALL_ORDERS") == "1"

OURS = "gear_reverb"
ENVIRONMENTS = {
    ".venv-compat": ["tensorflow", "reverb", "torch", "jax", OURS],
    ".venv-newest": ["tensorflow", "torch", "jax", OURS],
}


def orders_of_three(order):
    return set(itertools.combinations(order, 3))


def covering(libraries):
    """Orders in which all orders of any three occur, and ours at every place; greedily few."""
    every = list(itertools.permutations(libraries))
    missing = set(itertools.permutations(libraries, 3))
    places = set(range(len(libraries)))
    chosen = []
    while missing or places:
        best = max(
            every,
            key=lambda order: len(missing & orders_of_three(order)) + (order.index(OURS) in places),
        )
        chosen.append(best)
        missing -= orders_of_three(best)
        places.discard(best.index(OURS))
    return chosen


def orders(libraries):
    return list(itertools.permutations(libraries)) if ALL else covering(libraries)


def python_of(environment):
    return ROOT / environment / "bin" / "python"


CASES = [
    (name, order)
    for name, libraries in ENVIRONMENTS.items()
    if python_of(name).exists()
    for order in orders(libraries)
]


@pytest.mark.parametrize("libraries", ENVIRONMENTS.values(), ids=list(ENVIRONMENTS))
def test_the_covering_set_covers(libraries):
    chosen = covering(libraries)
    assert all(sorted(order) == sorted(libraries) for order in chosen)
    covered = set().union(*map(orders_of_three, chosen))
    assert covered == set(itertools.permutations(libraries, 3))
    assert {order.index(OURS) for order in chosen} == set(range(len(libraries)))


def find_missing(environment):
    """The libraries that the environment lacks."""
    code = (
        "import importlib.util as u, sys; print(*[m for m in sys.argv[1:] if not u.find_spec(m)])"
    )
    command = [python_of(environment), "-c", code, *ENVIRONMENTS[environment]]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()


def run_probe(environment, modules):
    return subprocess.run(
        [python_of(environment), "-X", "faulthandler", PROBE, *modules],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "TF_CPP_MIN_LOG_LEVEL": "2",
            "CUDA_VISIBLE_DEVICES": "",
            "JAX_PLATFORMS": "cpu",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PROCESS_SECONDS,
    )


@pytest.fixture(scope="module")
def runs(request):
    """The selected cases' outcomes to be, as futures: they run while earlier ones are looked at."""
    selected = [
        (item.callspec.params["environment"], item.callspec.params["order"])
        for item in request.session.items
        if item.path == request.path and "order" in getattr(item, "fixturenames", ())
    ]
    missing = {name: find_missing(name) for name in {name for name, _ in selected}}
    with concurrent.futures.ThreadPoolExecutor(PROCESSES_AT_ONCE) as pool:
        outcomes = {}  # By what really runs: libraries that are missing make cases equal.
        for environment, order in selected:
            lacking = missing[environment]
            if OURS not in lacking:
                present = tuple(module for module in order if module not in lacking)
                if (environment, present) not in outcomes:
                    future = pool.submit(run_probe, environment, present)
                    outcomes[environment, present] = future
        yield missing, outcomes
        for future in outcomes.values():
            future.cancel()


# Long enough for a case that waits until the ones before it are through.
@pytest.mark.timeout(4 * PROCESS_SECONDS)
@pytest.mark.parametrize(
    "environment,order", CASES, ids=[f"{name}-{'-'.join(order)}" for name, order in CASES]
)
def test_every_library_works(runs, environment, order):
    missing, outcomes = runs
    lacking = missing[environment]
    assert OURS not in lacking
    present = tuple(module for module in order if module not in lacking)
    result = outcomes[environment, present].result()
    assert result.returncode == 0, f"status {result.returncode}\n{result.stdout[-8000:]}"
    expected = [f"used {module}" for module in present]
    assert [line for line in result.stdout.splitlines() if line in expected] == expected


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_the_environment_has_every_library(environment):
    if not python_of(environment).exists():
        pytest.skip(f"{environment} is not there; scripts/make_import_envs.sh makes it")
    if missing := find_missing(environment):
        pytest.skip(f"{environment} lacks {', '.join(missing)}: its orders run without")
