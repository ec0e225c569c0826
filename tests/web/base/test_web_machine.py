"""What a process may use, of files as the kernel writes them; the folders are those of real containers."""

import os

import pytest

from nutbeam.web.base.machine import usable_cores, usable_memory

HERE = len(os.sched_getaffinity(0))
GIB = 1 << 30
# Files by path, below the root.
CONTAINER_2 = {
    "proc/self/cgroup": "0::/",
    "sys/fs/cgroup/cpu.max": "{quota} 100000",
    "sys/fs/cgroup/memory.max": "2147483648",
}
SERVICE_2 = {  # systemd: the quota is that of a slice around it
    "proc/self/cgroup": "0::/crawl.slice/crawl.service",
    "sys/fs/cgroup/crawl.slice/cpu.max": "{quota} 100000",
    "sys/fs/cgroup/crawl.slice/crawl.service/cpu.max": "max 100000",
    "sys/fs/cgroup/crawl.slice/memory.max": "max",
    "sys/fs/cgroup/crawl.slice/crawl.service/memory.max": "2147483648",
}
CONTAINER_1 = {  # the path is that of the host, and not there
    "proc/self/cgroup": "5:memory:/docker/0a1b\n4:cpu,cpuacct:/docker/0a1b\n1:name=systemd:/docker/0a1b",
    "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "{quota}",
    "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000",
    "sys/fs/cgroup/memory/memory.limit_in_bytes": "2147483648",
}
HOST_1 = {
    "proc/self/cgroup": "5:memory:/user\n4:cpu:/user\n0::/",
    "sys/fs/cgroup/cpu/user/cpu.cfs_quota_us": "{quota}",
    "sys/fs/cgroup/cpu/user/cpu.cfs_period_us": "100000",
    "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
    "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
    "sys/fs/cgroup/memory/user/memory.limit_in_bytes": "2147483648",
    "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
}
KINDS = {
    "container 2": CONTAINER_2, "service 2": SERVICE_2, "container 1": CONTAINER_1, "host 1": HOST_1,
}  # fmt: skip


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Makes the root of a machine of 16 cores and 64 GiB; returns it."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))

    def make(files, quota=""):
        for name, text in {"proc/meminfo": f"MemTotal: {64 * GIB >> 10} kB\n", **files}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.format(quota=quota) + "\n")
        return tmp_path

    return make


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("quota", "cores"), [(100_000, 1), (150_000, 2), (50_000, 1)])
def test_a_quota_limits_the_cores(machine, kind, quota, cores):
    assert usable_cores(machine(KINDS[kind], quota)) == cores


@pytest.mark.parametrize("kind", KINDS)
def test_a_limit_limits_the_memory(machine, kind):
    assert usable_memory(machine(KINDS[kind], 100_000)) == 2 * GIB


@pytest.mark.parametrize(("kind", "none"), [("container 2", "max"), ("container 1", "-1")])
def test_no_quota_leaves_all_cores(machine, kind, none):
    assert usable_cores(machine(KINDS[kind], none)) == 16


def test_without_cgroups_the_machine_counts(machine):
    root = machine({})
    assert (usable_cores(root), usable_memory(root)) == (16, 64 * GIB)
    assert usable_memory(root / "nothing") is None


def test_this_machine_has_something():
    assert 1 <= usable_cores() <= HERE
    assert usable_memory() > 100 << 20
