"""What the GPU check runs on."""

import importlib.metadata
import os
import pathlib
import platform
import subprocess
import sys
from typing import Any

LINK = "pcie.link.gen.current,pcie.link.gen.max,pcie.link.width.current,pcie.link.width.max"
STATE = "name,driver_version,pstate,clocks.sm,clocks.max.sm,clocks.mem,power.limit,temperature.gpu"


def describe() -> dict[str, Any]:
    packages = importlib.metadata.packages_distributions()
    distributions = [
        d for name in ("numpy", "torch", "jax", "cupy") for d in packages.get(name, [])
    ]
    prefixes = ("GEAR_REVERB_", "CUDA_", "XLA_")
    return {
        "python": sys.version,
        "versions": {name: importlib.metadata.version(name) for name in distributions},
        "environment": {k: v for k, v in os.environ.items() if k.startswith(prefixes)},
        "kernel": platform.platform(),
        "cpu": _line("/proc/cpuinfo", "model name"),
        "cpus": len(os.sched_getaffinity(0)),
        "memory": _line("/proc/meminfo", "MemTotal"),
        "huge pages": _line("/sys/kernel/mm/transparent_hugepage/shmem_enabled"),
        "driver": _line("/proc/driver/nvidia/version"),
        "gpus": gpus(),
        "nvidia-smi": _nvidia_smi("-q", "-d", "CLOCK,PERFORMANCE,ECC"),
    }


def gpus() -> list[str]:
    """Links, clocks and temperatures as they are now: an idle GPU's link and clocks are slow."""
    return _nvidia_smi(f"--query-gpu={LINK},{STATE}", "--format=csv")


def _line(path: str, start: str = "") -> str:
    """The first line of a file that begins so; "" without one."""
    try:
        lines = pathlib.Path(path).read_text().splitlines()
    except OSError:
        return ""
    return next((line for line in lines if line.startswith(start)), "")


def _nvidia_smi(*arguments: str) -> list[str]:
    command = ["nvidia-smi", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        return [str(error)]
    return (done.stdout + done.stderr).splitlines()
