"""Builds the image and runs programs in it, with whatever tool works on this machine.

`GEAR_REVERB_IMAGE=TOOL:NAME` tests an image that is there already. Where only buildah works, the
base is made with debootstrap, as root.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

import pytest

# Calls to a server that is gone end with an error after so many seconds.
os.environ.setdefault("GEAR_REVERB_CONNECT_TIMEOUT", "2")

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD_SECONDS = 3600
STOP_SECONDS = 30


def call(*command, **options):
    result = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, cwd=ROOT, **options
    )
    assert result.returncode == 0, f"{command}: {result.stdout[-3000:]}{result.stderr[-3000:]}"
    return result.stdout


def descendants(pid):
    """Processes below `pid`; their own descendants come after them."""
    parents = {}
    for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # It has just ended.
            fields = status.read_text().rpartition(")")[2].split()
            parents.setdefault(int(fields[1]), []).append(int(status.parent.name))
    found, level = [], [pid]
    while level:
        level = [child for parent in level for child in parents.get(parent, [])]
        found += level
    return found


class BuildahImage:
    """An image in buildah's store. Containers have the machine's network."""

    def __init__(self, name):
        self.name = name
        os.environ.setdefault("BUILDAH_ISOLATION", "chroot")
        os.environ.setdefault("STORAGE_DRIVER", "vfs")
        self.config = json.loads(call("buildah", "inspect", "--type", "image", name))["Docker"][
            "config"
        ]
        self._container = call("buildah", "from", name).split()[-1]

    def close(self):
        call("buildah", "rm", self._container)

    def start(self, *command, env=(), volumes=()):
        options = [f"--env={name}={value}" for name, value in dict(env).items()]
        options += [f"--volume={volume}" for volume in volumes]
        return BuildahProgram(["buildah", "run", *options, self._container, "--", *command])


class BuildahProgram:
    def __init__(self, command):
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    @property
    def _innermost(self):
        """buildah's own processes pass no signals on, so the program gets them directly."""
        deadline = time.monotonic() + STOP_SECONDS
        while time.monotonic() < deadline:
            for pid in descendants(self._process.pid):
                with contextlib.suppress(OSError):
                    words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                    if words[0] and b"buildah" not in words[0]:
                        return pid
            time.sleep(0.1)
        raise TimeoutError("buildah started nothing")

    def uid(self):
        status = pathlib.Path(f"/proc/{self._innermost}/status").read_text()
        return int(status.partition("Uid:")[2].split()[0])

    def terminate(self):
        os.kill(self._innermost, signal.SIGTERM)

    def wait(self, seconds=STOP_SECONDS):
        """Exit status and output."""
        output, _ = self._process.communicate(timeout=seconds)
        return self._process.returncode, output

    def kill(self):
        if self._process.poll() is None:
            for pid in [*reversed(descendants(self._process.pid)), self._process.pid]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._process.communicate(timeout=STOP_SECONDS)


class DockerImage:
    """An image of docker or podman."""

    def __init__(self, tool, name):
        self.name, self._tool = name, tool
        self.config = json.loads(call(tool, "image", "inspect", name))[0]["Config"]

    def close(self):
        pass

    def start(self, *command, env=(), volumes=()):
        options = [f"--env={name}={value}" for name, value in dict(env).items()]
        options += [f"--volume={volume}" for volume in volumes]
        options += ["--entrypoint", command[0], "--network=host", "--detach"]
        return DockerProgram(
            self._tool, call(self._tool, "run", *options, self.name, *command[1:]).strip()
        )


class DockerProgram:
    def __init__(self, tool, container):
        self._tool, self._container = tool, container

    def uid(self):
        return int(call(self._tool, "exec", self._container, "id", "-u"))

    def terminate(self):
        call(self._tool, "kill", "--signal=TERM", self._container)

    def wait(self, seconds=STOP_SECONDS):
        status = call(self._tool, "wait", self._container, timeout=seconds)
        logs = subprocess.run(
            [self._tool, "logs", self._container],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        ).stdout  # fmt: skip
        return int(status), logs

    def kill(self):
        subprocess.run([self._tool, "rm", "--force", self._container], capture_output=True)


def build():
    """The tool that built the image, and its name."""
    if given := os.environ.get("GEAR_REVERB_IMAGE"):
        return given.split(":", 1)
    command = ["scripts/build_image.sh", "--tag", "gear-reverb-test", "--cuda", "--extras", "demo"]
    registry = any(
        shutil.which(tool) and not subprocess.run([tool, "info"], capture_output=True).returncode
        for tool in ("docker", "podman")
    )
    if not registry:
        command.append("--bootstrap")
    result = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=BUILD_SECONDS
    )
    if result.returncode == 3:
        pytest.skip(result.stderr.strip().splitlines()[-1])
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-5000:]
    return result.stdout.split()[-2:]


@pytest.fixture(scope="session")
def image():
    tool, name = build()
    image = BuildahImage(name) if tool == "buildah" else DockerImage(tool, name)
    yield image
    image.close()


@pytest.fixture
def start(image):
    """`image.start`; what still runs at the end of the test is killed."""
    programs = []

    def start(*command, **options):
        programs.append(image.start(*command, **options))
        return programs[-1]

    yield start
    for program in programs:
        program.kill()


@pytest.fixture
def port():
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]
