"""gear_reverb.cuda: what there is, told without a GPU too."""

import subprocess
import sys

import pytest

from gear_reverb import cuda


def test_what_there_is_is_told():
    stats = cuda.stats()
    assert stats["built"] is cuda.is_built()
    assert stats["available"] is cuda.is_available()
    assert stats["why_not"] == cuda.why_not()
    assert cuda.is_available() == (cuda.why_not() == "")
    if cuda.is_available():
        assert cuda.is_built() and stats["gpus"] and stats["driver"] >= (12, 0)


@pytest.mark.skipif(cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_calls_say_why():
    with pytest.raises(RuntimeError) as refused:
        cuda.self_test()
    assert cuda.why_not() in str(refused.value)


@pytest.mark.skipif(not cuda.is_available(), reason="there is no GPU")
@pytest.mark.parametrize("seed", range(3))
def test_kernels_are_like_their_twins(seed):
    assert cuda.self_test(seed=seed) == []


def test_importing_the_package_does_not_start_the_driver():
    code = (
        "import gear_reverb, sys; maps = open('/proc/self/maps').read();sys.exit('libcuda' in maps)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
