"""The options of `rankshot train`: those of its parts, of one method and of one network; clear of torchrun's."""

import re
import typing

import pytest
from torch import nn
from torch.distributed.run import get_args_parser

from rankshot import losses, models
from rankshot.cli.main import main
from rankshot.cli.train_options import CALLED, GROUPS, Options, options_for
from rankshot.methods import METHODS
from rankshot.training import TrainConfig
from rankshot.training.config import CHOICES, PLACES


def names(config):
    """Every option of a run, without dashes at the front."""
    made = options_for(config)
    hints = typing.get_type_hints(made, include_extras=True)
    groups = [typing.get_type_hints(typing.get_args(hints[group])[0]) for group in GROUPS]
    own = [name for name in typing.get_type_hints(Options) if name not in GROUPS]
    return {CALLED.get(name, name.replace("_", "-")) for name in (*own, *(each for group in groups for each in group))}


@pytest.mark.parametrize("method", sorted(METHODS))
def test_clear_of_the_launcher_s(method):
    """The parser of torch's launcher takes any beginning of one of its options for that option, also behind the script."""
    theirs = [option for action in get_args_parser()._actions for option in action.option_strings]
    assert "--run-path" in theirs
    ours = names(TrainConfig.of(method=method))
    assert {"out", "updates", "method"} <= ours
    assert {each for each in ours if any(option.startswith(f"--{each}") for option in theirs)} == set()
    assert any(option.startswith("--run") for option in theirs)  # which is why the folder is --out


@pytest.mark.parametrize("method", sorted(METHODS))
def test_a_method_has_its_own_settings_and_no_others(method):
    found = names(TrainConfig.of(method=method))
    everybody = {name.replace("_", "-") for name in (*PLACES, *CHOICES, "filters", *typing.get_type_hints(Options))}
    assert found - everybody == {CALLED.get(name, name.replace("_", "-")) for name in METHODS[method].types}


def shown(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--help"])
    assert ended.value.code == 0
    return " ".join(capsys.readouterr().out.replace("│", " ").split())


def test_help(capsys):
    told = shown(capsys, "train", "--method", "nca")
    assert "--temperature FLOAT Of nca: how soft the choice of a neighbour is. (default: 0.1)" in told
    assert "--alpha" not in told
    for name, part in METHODS.items():
        assert f"{name}: {part.summary.rstrip('.')}." in told
    told = shown(capsys, "train", "--method", "maml", "--preset", "mini-imagenet")
    assert "--steps INT Of maml: of gradient descent on a task while it learns. (default: 5)" in told
    assert "--filters INT Of conv4: channels of each of its four blocks. (default: 32)" in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--method nca --alpha 3", "method 'nca' has no setting 'alpha': that is a setting of 'map-ssvm', 'map-dlm'"),
        ("--method nca --tasks 3", "method 'nca' has no setting 'tasks': that is a setting of 'maml', 'memory'"),
        ("--method nca --no-shared", "method 'nca' has no setting 'shared': that is a setting of 'memory'"),
        ("--epochs 5", "there is no option --epochs: training is counted in batches, by --updates"),
        ("--lr=0.1", "there is no option --lr: it is called --learning-rate here"),
        ("--method ncaa", "unknown method 'ncaa': did you mean 'nca'?"),
        ("--network conv5", "unknown network 'conv5': did you mean 'conv4'?"),
        ("--momentum 0.9", "the optimiser adam has no setting 'momentum': that is a setting of 'sgd'"),
        ("--preset omniglot-20-way", "map-dlm has no preset 'omniglot-20-way': .*; it is one of maml"),
        ("--frozen 9", "frozen: the network has no layer '9': there is '0', '1', '2', '3', '4'"),
        ("--size 20", "glyphs has no option 'size'"),
        ("--config newer.json", "newer.json: its format 4 is newer than this version of rankshot"),
        ("--load none.py", "there is no file none.py"),
        ("--patience 3 --validate-every 0", "patience counts validations, and there are none"),
    ],
)
def test_sentences(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "newer.json").write_text('{"format": 4}')
    assert main(["train", "--out", "run", *arguments.split()]) == 1
    told = capsys.readouterr().err
    assert told.startswith("rankshot: ")
    assert len(told.splitlines()) == 1
    assert re.search(message, told), told
    assert not (tmp_path / "run").exists()


def test_old_names_work_on_as_aliases(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = "--filters 4 --updates 2 --validate-every 0 --batch-classes 4 --batch-size 16 --device cpu".split()
    assert main(["train", "--run", "one", *small]) == 0
    assert main(["train", "--out", "one", "--resume", "--updates", "3"]) == 0
    assert main(["train", "--run", "one", "--resume", "--updates", "4"]) == 0
    for name in ("--sign", "--update-sign"):
        assert main(["train", "--out", name.strip("-"), name, "-1", *small]) == 0
        assert TrainConfig.from_json(tmp_path / name.strip("-") / "config.json").method.settings["sign"] == -1


def test_only_embedding_networks_can_be_chosen(capsys, tmp_path):
    @models.register("by-any-name")
    def by_any_name(pictures):
        """For pictures, whatever its argument is called."""

    @models.register("around")
    def around(trunk: nn.Module):
        """Not for pictures."""

    for name in ("maml", "around"):
        assert main(["train", "--network", name, "--out", str(tmp_path / "run")]) == 1
        told = capsys.readouterr().err
        assert told.startswith(f"rankshot: the network {name!r} is built around an embedding network")
        assert (
            "an embedding network is 'by-any-name', 'conv4', 'conv4-strided', 'conv4-tensorflow', 'efficientnet-lite0', "
            in told
        )
        assert told.endswith("'resnet12'\n")
    assert main(["train", "--network", "foo", "--out", str(tmp_path / "run")]) == 1
    told = capsys.readouterr().err
    assert "unknown network 'foo': there is 'by-any-name', 'conv4', " in told
    assert "maml" not in told
    told = shown(capsys, "train")
    assert "by-any-name: For pictures, whatever its argument is called." in told
    assert "Not for pictures." not in told


def test_a_setting_of_two_values(capsys, tmp_path):
    @losses.register("between")
    def between(embeddings, labels, *, bounds: tuple[int, float] = (0, 0.5)):
        """Within bounds.

        Args:
            bounds: of the loss.
        """
        return embeddings.square().mean().clamp(*bounds)

    assert "--bounds INT FLOAT Of between: of the loss. (default: 0 0.5)" in shown(capsys, "train", "--method", "between")
    few = ["--updates", "1", "--validate-every", "0", "--device", "cpu", "--out", str(tmp_path / "run")]
    assert main(["train", "--method", "between", "--bounds", "1", "2", *few]) == 0
    assert TrainConfig.from_json(tmp_path / "run" / "config.json").method.settings == {"bounds": (1, 2.0)}
