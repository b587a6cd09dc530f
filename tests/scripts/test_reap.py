# SPDX-License-Identifier: ISC
"""core/scripts/reap.sh: what nobody keeps any more is ended, and nothing else."""

import subprocess

import pytest

import shells


def start_time(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return file.read().rpartition(")")[2].split()[19]


@pytest.fixture(name="begin")
def begin_fixture():
    """Starts commands that lead sessions of their own; what is left of them goes with the test."""
    started = []

    def begin(script):
        process = subprocess.Popen(
            ["sh", "-c", f"{script}; echo ready; sleep 600 & wait; wait"],
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdout.readline() == b"ready\n"
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def reap(shell, directory, *words, grace=0):
    assert shells.run(shell, "reap", [grace, *words], directory)[0] == 0


def test_commands_are_ended_with_all_their_group(shell, tmp_path, begin):
    first, second = begin(":"), begin("trap '' HUP TERM")
    reap(shell, tmp_path, first.pid, start_time(first.pid), second.pid, start_time(second.pid))
    # The pipe ends with the last process that holds it.
    assert (first.communicate(timeout=20)[0], second.communicate(timeout=20)[0]) == (b"", b"")
    assert (first.returncode, second.returncode) == (-1, -9)


def test_one_that_ends_by_itself_has_its_time(shell, tmp_path, begin):
    command = begin("trap '' HUP; trap 'echo bye; exit 3' TERM")
    # Until it is waited for it still counts.
    reaper = shells.start(shell, "reap", [20, command.pid, start_time(command.pid)], tmp_path)
    assert command.communicate(timeout=20)[0] == b"bye\n"
    assert command.returncode == 3
    reaper.communicate(timeout=20)


def test_a_number_that_another_process_has_now_is_left_alone(shell, tmp_path, begin):
    other = begin(":")
    reap(shell, tmp_path, other.pid, int(start_time(other.pid)) - 1, 2**22 - 1, 77)
    assert other.poll() is None
