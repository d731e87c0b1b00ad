"""Shared by all tests: one thread a worker, that keeps its memory; the devices there are; a place for nobody's own data."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import torch
from processes import python

import rankshot.reproduce.job  # which registers a loss
from rankshot import data
from rankshot.cli.main import main
from rankshot.methods import METHODS
from rankshot.registry import REGISTRIES
from rankshot.training.keep_memory import keep_freed_memory

list(METHODS)  # what the package registers is there before any test
keep_freed_memory()
torch.set_num_threads(1)
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"  # its handlers close what a forked child of a test still needs
os.environ["OMP_NUM_THREADS"] = "1"  # of the processes that tests start, too


LONG = (  # half a minute and more
    "test_every_block",
    "test_quickstart_in_short",
    "test_it_installs_into_a_clean_environment_and_works",
    "test_more_than_twice_chance[maml]",
    "test_more_than_twice_chance[meta-lstm]",
    "test_killed_five_times_it_ends_with_the_same_weights",
    "test_omniglot_end_to_end",
    "test_stopped_by_ctrl_c_it_goes_on_where_it_was",
    "test_all_of_it_on_a_milvus_server",
    "test_the_rehearsal_in_small",
    "test_500_hostile_images",
    "test_a_resnet_of_one_s_own_through_every_command",
    "test_killed_and_resumed",
)


# Who asks for one of these takes long, whatever it does: a browser, a Milvus server, a campaign in a process of its own.
# What starts torchrun or runs a notebook is to have such a fixture too.
SLOW = {"browser", "milvus_server", "campaign", "torchrun", "notebook"}


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items):
    """The longest first, so that at the end no worker waits for another."""
    for item in items:
        if SLOW & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: (item.name not in LONG, item.get_closest_marker("slow") is None))


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device here")
    return request.param


@pytest.fixture(scope="session", autouse=True)
def data_root(tmp_path_factory):
    """Prepared data is shared by all workers, and never that of the person who runs the tests."""
    base = tmp_path_factory.getbasetemp()
    root = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "prepared"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RANKSHOT_DATA", str(root))
        yield root


@pytest.fixture(autouse=True)
def known_parts():
    """What a test registers is forgotten after it."""
    before = [(registry, registry.snapshot()) for registry in REGISTRIES]
    yield
    for registry, parts in before:
        registry.restore(parts)


@pytest.fixture(scope="session")
def drawn(data_root):
    """The folder of `glyphs`, to be copied to where another root has it: to draw it takes many seconds. No root itself."""
    return data.prepared("glyphs", data_root)


@pytest.fixture(scope="session")
def rankshot(drawn):
    """The command line as a process, which finds `glyphs` drawn: rankshot("train", …) -> arguments for subprocess."""
    return lambda *arguments: [sys.executable, "-m", "rankshot", *map(str, arguments)]


@pytest.fixture(scope="session")
def shared():
    """The real data sets, as their users have them; tests that need them are skipped where they are not."""
    folder = Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"the real data sets are not here ({folder})")
    return folder


@pytest.fixture(scope="session")
def trained(tmp_path_factory, drawn):
    """A run for tests of commands to read; who changes it takes a copy."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    few = "--filters 8 --batch-classes 4 --batch-size 32 --updates 4 --validation-episodes 5 --device cpu"
    assert main(["train", "--run", str(folder), *few.split()]) == 0
    return folder


@pytest.fixture(scope="session")
def campaign():
    """campaign("-m", "campaigns.fuzz", …): a campaign, or a script that plants faults for one, as a process."""
    return python


@pytest.fixture
def small_disk():
    """small_disk("500k") -> a folder that is a file system of its own, of that size; skips where it cannot be mounted."""
    mounted = []

    def mount(size):
        # Not below pytest's own folder: should this process be killed, what stays mounted is in nobody's way.
        disk = Path(tempfile.mkdtemp(prefix="rankshot-disk-"))
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk]
        if subprocess.run(command, check=False, capture_output=True).returncode:
            disk.rmdir()
            pytest.skip("a file system can only be mounted by root")
        mounted.append(disk)
        return disk

    yield mount
    for disk in mounted:
        subprocess.run(["umount", "--lazy", disk], check=True)
        disk.rmdir()
