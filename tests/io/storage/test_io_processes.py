import os
import subprocess
import sys

import pytest
from waiting import wait_until

from nutbeam.io.storage.processes import is_dead, same_clock, this_process

CODE = """
import json
from nutbeam.io.storage.processes import this_process
print(json.dumps(this_process()), flush=True)
input()
"""


def other_process():
    """Returns a process that lives until its input is closed, and how it describes itself."""
    import json

    command = [sys.executable, "-P", "-c", CODE]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    return child, json.loads(child.stdout.readline())


def test_this_process_lives():
    me = this_process()
    assert me["pid"] == os.getpid()
    assert not is_dead(me)
    assert same_clock(me)


def test_another_process_lives_until_it_dies():
    child, process = other_process()
    try:
        assert process["pid"] == child.pid
        assert same_clock(process)
        assert not is_dead(process)
        child.kill()
        wait_until(lambda: is_dead(process))  # a zombie as yet
    finally:
        child.kill()
        child.communicate()
    assert is_dead(process)


def test_a_process_of_the_same_number_is_another_one():
    assert is_dead({**this_process(), "start": 1})


@pytest.mark.parametrize("name", ["boot", "pids"])
def test_processes_elsewhere_are_never_judged_dead(name):
    child, process = other_process()
    child.communicate()
    assert is_dead(process)
    assert not is_dead({**process, name: "another"})
    assert not is_dead({key: value for key, value in process.items() if key != name})


def test_a_process_of_another_boot_has_another_clock():
    me = this_process()
    assert not same_clock({**me, "boot": "another"})
    assert not same_clock({**me, "clock": "another"})
    assert not same_clock({})
