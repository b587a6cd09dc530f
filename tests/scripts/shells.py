# SPDX-License-Identifier: ISC
"""Running the scripts of core/scripts as a driver does: `sh -c TEXT NAME ARGUMENTS`, in every shell
that a sandbox may have."""

import os
import pathlib
import shutil
import subprocess

TOP = pathlib.Path(__file__).resolve().parents[2]
TIMEOUT = 60

SHELLS = {
    "dash": ["dash"],
    "bash": ["bash", "--posix"],
    "busybox": ["busybox", "sh"],
}


def program(shell):
    """The shell's argv, by its path: a test may take PATH away."""
    return [shutil.which(SHELLS[shell][0]), *SHELLS[shell][1:]]


def text(name):
    """The script as core/embed.sh ships it: without its comments."""
    lines = (TOP / "core" / "scripts" / f"{name}.sh").read_text().splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith("#") and line)


def directory_of(shell, directory):
    """A directory whose only program is `sh`: this shell. It goes in front of PATH, for what the
    scripts start with `sh -c` themselves."""
    path = pathlib.Path(directory) / f"shell-{shell}"
    path.mkdir(exist_ok=True)
    program = path / "sh"
    if not program.exists():
        program.symlink_to(shutil.which(SHELLS[shell][0]))
    return path


def start(shell, name, arguments, directory, **options):
    environment = {
        "PATH": f"{directory_of(shell, directory)}:{os.environ['PATH']}",
        "HOME": str(directory),
    }
    environment.update(options.pop("environment", {}))
    return subprocess.Popen(
        [*program(shell), "-c", text(name), name, *map(str, arguments)],
        env=environment,
        stdin=options.pop("stdin", subprocess.PIPE),
        stdout=options.pop("stdout", subprocess.PIPE),
        stderr=options.pop("stderr", subprocess.PIPE),
        **options,
    )


def run(shell, name, arguments, directory, data=b"", **options):
    process = start(shell, name, arguments, directory, **options)
    stdout, stderr = process.communicate(data, timeout=TIMEOUT)
    return process.returncode, stdout, stderr
