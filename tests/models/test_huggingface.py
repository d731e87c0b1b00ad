"""Vision models of Hugging Face transformers: tiny ones, made here. The hub is never asked."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from pictures import class_folders, pixels

import rankshot
from rankshot.cli.main import main
from rankshot.gallery import Embedder, FewShotClassifier
from rankshot.models import from_pretrained, huggingface, save_pretrained
from rankshot.models.network import trunk_of
from rankshot.models.saving import without_places
from rankshot.models.shipped import folder_of, full_name, has_name
from rankshot.preprocess import Preprocess
from rankshot.tensors import read_tensors, write_tensors

transformers = pytest.importorskip("transformers", reason="the extra 'transformers' is not installed")

MEAN, DEVIATION = [0.5, 0.4, 0.3], [0.2, 0.25, 0.3]
PROCESSOR = {"size": {"height": 32, "width": 32}, "resample": 3, "do_normalize": True, "image_mean": MEAN,
             "image_std": DEVIATION, "do_rescale": True, "rescale_factor": 1 / 255}  # fmt: skip
TOKENS = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
OF_IMAGES = {**TOKENS, "image_size": 32, "patch_size": 8}
STAGES = {"num_channels": 3, "hidden_sizes": [8, 16], "depths": [1, 1]}
MODELS = {
    "vit": lambda: transformers.ViTForImageClassification(transformers.ViTConfig(**OF_IMAGES)),
    "clip": lambda: transformers.CLIPModel(
        transformers.CLIPConfig(
            text_config={**TOKENS, "vocab_size": 99, "bos_token_id": 0, "eos_token_id": 1},
            vision_config=OF_IMAGES,
            projection_dim=8,
        )
    ),
    "resnet": lambda: transformers.ResNetModel(transformers.ResNetConfig(**STAGES, embedding_size=8, layer_type="basic")),
    "swin": lambda: transformers.SwinModel(
        transformers.SwinConfig(image_size=32, patch_size=4, embed_dim=8, depths=[1, 1], num_heads=[2, 2], window_size=4)
    ),
    "dinov2": lambda: transformers.Dinov2Model(transformers.Dinov2Config(**OF_IMAGES)),
    "convnext": lambda: transformers.ConvNextModel(transformers.ConvNextConfig(**STAGES, num_stages=2)),
    "msn": lambda: transformers.ViTMSNModel(transformers.ViTMSNConfig(**OF_IMAGES)),  # a class token, nothing pooled
}
if "blip_vision_model" in transformers.CONFIG_MAPPING:  # earlier versions do not have it by itself
    MODELS["blip"] = lambda: transformers.BlipModel(
        transformers.BlipConfig(
            text_config={**TOKENS, "vocab_size": 99, "encoder_hidden_size": 16, "bos_token_id": 0, "sep_token_id": 1},
            vision_config=OF_IMAGES,
            projection_dim=8,
        )
    )
DIRECT = {  # what the embedding is to be, of the model itself
    "vit": lambda model, values: model.vit(values).last_hidden_state[:, 0],
    "clip": lambda model, values: model.vision_model(values).pooler_output,
    "blip": lambda model, values: model.vision_model(values).pooler_output,
    "resnet": lambda model, values: model(values).last_hidden_state.mean((2, 3)),
    "swin": lambda model, values: model(values).last_hidden_state.mean(1),
    "dinov2": lambda model, values: model(values).last_hidden_state[:, 0],
    "convnext": lambda model, values: model(values).pooler_output,
    "msn": lambda model, values: model(values).last_hidden_state[:, 0],
}


@pytest.fixture(scope="module")
def models():
    """By name: each with weights that are not those of another one, batch statistics among them."""
    made = {}
    with torch.random.fork_rng(), huggingface.quietly():
        for seed, (name, make) in enumerate(MODELS.items()):
            torch.manual_seed(seed)
            made[name] = make().eval()
            for tensor in made[name].state_dict().values():
                if tensor.is_floating_point():
                    tensor.add_(0.1 * torch.rand_like(tensor))
    return made


@pytest.fixture(scope="module")
def saved(models, tmp_path_factory):
    """A folder of the folders of all of them, to be read; who changes one takes a copy."""
    place = tmp_path_factory.mktemp("saved")
    with huggingface.quietly():
        for name, model in models.items():
            model.save_pretrained(place / name)
            (place / name / "preprocessor_config.json").write_text(json.dumps(PROCESSOR))
    return place


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("RANKSHOT_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def vit(saved, tmp_path):
    return Path(shutil.copytree(saved / "vit", tmp_path / "own"))


def images_and_values():
    """Images as networks of rankshot take them, and what the processor would make of them."""
    images = torch.rand(3, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    mean, deviation = (torch.tensor(numbers).view(-1, 1, 1) for numbers in (MEAN, DEVIATION))
    return images, (images - mean) / deviation


def same(network, model, name):
    images, values = images_and_values()
    with torch.no_grad():
        torch.testing.assert_close(network.eval()(images), DIRECT[name](model, values), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_embeddings_are_those_of_the_model(name, models, saved, tmp_path):
    network = from_pretrained(f"hf:{saved / name}")
    same(network, models[name], name)
    assert network.embedding_dim == 16
    assert network.preprocess == Preprocess(3, 32, 32)
    again = from_pretrained(save_pretrained(network, tmp_path / "again"))
    same(again, models[name], name)
    assert "torchvision" not in sys.modules


@pytest.mark.parametrize("name", MODELS)
def test_all_that_learns_gets_a_gradient(name, saved):
    network = from_pretrained(f"hf:{saved / name}").train()
    images, _ = images_and_values()
    with torch.autocast("cpu", torch.bfloat16):
        embeddings = network(images)
    embeddings.float().square().sum().backward()
    without = {key for key, weight in network.named_parameters() if weight.grad is None}
    assert {key.rpartition(".")[2] for key in without} <= {"mask_token"}
    assert all(weight.grad.isfinite().all() for weight in network.parameters() if weight.grad is not None)
    assert not any("pooler" in key for key in network.state_dict())  # of ViT: its weights were random


def test_converted_once_and_anew_when_it_changes(vit, cache):
    name = f"hf:{vit}"
    folder = folder_of(name)
    assert folder.name == "own"
    assert has_name(folder)
    assert "hf:own" in (folder / "README.md").read_text()
    assert str(vit) not in (folder / "README.md").read_text()
    time = (folder / "model.safetensors").stat().st_mtime_ns
    assert folder_of(name) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == time
    (vit / "preprocessor_config.json").write_text(json.dumps({**PROCESSOR, "do_normalize": False}))
    assert folder_of(name) != folder
    tensors = read_tensors(vit / "model.safetensors")
    from safetensors.torch import save_file

    save_file({key: 2 * tensor for key, tensor in tensors.items()}, vit / "model.safetensors", {"format": "pt"})
    assert len({folder, folder_of(name)} | {*(cache / "weights").glob("*/own")}) == 3


def test_names_for_others(vit, monkeypatch):
    monkeypatch.chdir(vit.parent)
    assert full_name("hf:own") == f"hf:{vit}"
    assert full_name("hf:somebody/model") == "hf:somebody/model"
    config = without_places({"network": {"init": f"hf:{vit}"}, "data": {"name": "/home/me/photos"}})
    assert config == {"network": {"init": "hf:own"}, "data": {"name": "photos"}}
    assert without_places({"init": "hf:somebody/model"}) == {"init": "hf:somebody/model"}


def test_other_sizes(models, saved, tmp_path):
    """Positions are interpolated where the model can, and the model says so where it cannot."""
    images = torch.rand(2, 3, 48, 48)
    for name in ("vit", "dinov2", "resnet"):
        own = shutil.copytree(saved / name, tmp_path / name)
        (own / "preprocessor_config.json").write_text(json.dumps({**PROCESSOR, "size": 48, "do_normalize": False}))
        network = from_pretrained(f"hf:{own}")
        assert network.preprocess.shape == (3, 48, 48)
        model = models[name].vit if name == "vit" else models[name]
        with torch.no_grad():
            direct = model(images, **({"interpolate_pos_encoding": True} if name == "vit" else {})).last_hidden_state
            expected = direct.mean((2, 3)) if name == "resnet" else direct[:, 0]
            torch.testing.assert_close(network(images), expected, atol=1e-6, rtol=1e-5)
    (tmp_path / "vit" / "preprocessor_config.json").write_text(json.dumps({**PROCESSOR, "size": 4}))
    with pytest.raises(ValueError, match=r"the network 'huggingface' cannot take images of 3x4x4 \(channels, height"):
        from_pretrained(f"hf:{tmp_path / 'vit'}")


def test_shards_and_links(models, vit):
    """As large models lie on the hub, and in its cache."""
    tensors = read_tensors(vit / "model.safetensors")
    from safetensors.torch import save_file

    (vit / "model.safetensors").unlink()
    names = sorted(tensors)
    parts = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    blobs = vit.parent / "blobs"
    blobs.mkdir()
    for part, keys in parts.items():
        save_file({key: tensors[key] for key in keys}, blobs / part)
        (vit / part).symlink_to(blobs / part)
    index = {"weight_map": {key: part for part, keys in parts.items() for key in keys}}
    (vit / "model.safetensors.index.json").write_text(json.dumps(index))
    same(from_pretrained(f"hf:{vit}"), models["vit"], "vit")
    index["weight_map"][names[0]] = "../own/a.safetensors"
    (vit / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(FileNotFoundError, match=r"some of the files that model\.safetensors\.index\.json tells of"):
        from_pretrained(f"hf:{vit}")


def test_half_precision_on_the_disk(models, vit):
    with huggingface.quietly():
        transformers.ViTModel.from_pretrained(vit, local_files_only=True).half().save_pretrained(vit)
    network = from_pretrained(f"hf:{vit}")
    assert {weight.dtype for weight in network.parameters()} == {torch.float32}
    images, values = images_and_values()
    with torch.no_grad():
        direct = DIRECT["vit"](models["vit"], values)
        torch.testing.assert_close(network(images), direct, atol=0.05, rtol=0.05)


def photos(place):
    for split, count in (("train", 4), ("val", 2)):
        class_folders(place / "photos" / split, classes=count)
        for path in sorted((place / "photos" / split).iterdir()):
            path.rename(path.with_name(f"{split}-{path.name}"))


def test_from_the_command_line(models, vit, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rankshot.cli.train.EPISODES", 20)
    photos(tmp_path)
    first = "model." + next(name for name, _ in models["vit"].vit.named_modules() if name.endswith(".0"))  # layer
    few = ["--device", "cpu", "--validate-every", "0"]
    begin = ["--init", "hf:own", "--data", "photos", *few, "--frozen", "model.embeddings", first]
    assert main(["train", *begin, "--updates", "1", "--out", "run"]) == 0
    out = capsys.readouterr().out
    assert "images are made ready as hf:own wants them, 32x32 in colour" in out
    assert "before" in out
    network = json.loads((tmp_path / "run" / "config.json").read_text())["network"]
    assert network["init"] == f"hf:{vit}"
    assert network["architecture"]["channel_mean"] == MEAN
    assert "began with the weights of hf:own, whose own terms hold too" in (tmp_path / "run" / "README.md").read_text()
    begun, ended = (trunk_of(from_pretrained(where)) for where in ("hf:own", "run"))
    moved = {key for key, weight in begun.state_dict().items() if not torch.equal(weight, ended.state_dict()[key])}
    assert moved
    assert not any(key.startswith(("model.embeddings", first)) for key in moved)

    shutil.rmtree(vit)  # a run and what is made of it need it no more
    assert main(["train", "--out", "run", "--resume", "--updates", "2"]) == 0
    assert main(["export", "run", "passed-on"]) == 0
    assert main(["classify", "photos/val/val-c0", "--support", "photos/val", "--model", "passed-on"]) == 0


def test_galleries_classifiers_and_exports(saved, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    photos(tmp_path)
    clip = f"hf:{saved / 'clip'}"
    assert main(["classify", "photos/val/val-c0", "--support", "photos/val", "--model", clip]) == 0
    assert "photos/val/val-c0/0.png,val-c" in capsys.readouterr().out
    assert main(["gallery", "add", "gallery", "photos/val", "--model", clip]) == 0
    assert main(["search", "photos/val/val-c1/2.png", "--gallery", "gallery", "-k", "1"]) == 0
    assert "1.0000  photos/val/val-c1/2.png" in capsys.readouterr().out
    assert main(["evaluate", clip, "--data", "photos", "--split", "val", "--episodes", "5"]) == 0
    (report,) = (tmp_path / "runs" / "clip").glob("report-*-val.html")  # of data that it has not learned from
    assert report.is_file()
    taught = FewShotClassifier(clip).fit([pixels(seed) for seed in range(4)], ["a", "a", "b", "b"])
    taught.save_pretrained(tmp_path / "taught")
    opened = FewShotClassifier.from_pretrained(tmp_path / "taught")
    assert opened.predict([pixels(3)]).tolist() == taught.predict([pixels(3)]).tolist()
    vectors = Embedder(clip)([pixels(5)])
    assert torch.equal(torch.from_numpy(vectors), torch.from_numpy(Embedder(rankshot.from_pretrained(clip))([pixels(5)])))


@pytest.mark.skipif(torch.__version__.startswith("2.6."), reason="torch 2.6 cannot export it for any number of images")
def test_exports(saved, tmp_path):
    assert main(["export", f"hf:{saved / 'clip'}", str(tmp_path / "clip.pt2")]) == 0


def changed(folder, name, **settings):
    path = folder / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))


def a_bert(folder):
    with huggingface.quietly():
        transformers.BertModel(transformers.BertConfig(**TOKENS, vocab_size=20_000)).save_pretrained(folder)
    (folder / "preprocessor_config.json").unlink()


def a_pickle(folder):
    torch.save(read_tensors(folder / "model.safetensors", is_ours=False), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def without_a_weight(folder):
    from safetensors.torch import save_file

    tensors = read_tensors(folder / "model.safetensors", is_ours=False)
    del tensors["vit.layernorm.bias"]
    save_file(tensors, folder / "model.safetensors")


def a_masked_one(folder):
    with huggingface.quietly():
        transformers.ViTMAEModel(transformers.ViTMAEConfig(**OF_IMAGES)).save_pretrained(folder)


BAD = {
    "no pixels": (a_bert, "a 'bert' takes no pictures"),
    "no processor": (
        lambda folder: (folder / "preprocessor_config.json").unlink(),
        "has no preprocessor_config.json: save its image processor there",
    ),
    "a pickle": (a_pickle, "as a pickle (pytorch_model.bin) alone, which is not read"),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "there is no model.safetensors in it"),
    "no config": (lambda folder: (folder / "config.json").unlink(), "there is no config.json in it"),
    "a config of ours": (lambda folder: (folder / "config.json").write_text("{}"), "config.json tells no 'model_type'"),
    "unknown": (lambda folder: changed(folder, "config.json", model_type="vot"), "knows no model_type 'vot'"),
    "a hidden size of text": (
        lambda folder: changed(folder, "config.json", hidden_size="wide"),
        "no config of a 'vit' | cannot be made",
    ),
    "wide": (
        lambda folder: changed(folder, "config.json", hidden_size=10**9),
        "hidden_size of the model must be at most 16,384, got 1e+09",
    ),
    "deep": (
        lambda folder: changed(folder, "config.json", num_hidden_layers=10**9),
        "num_hidden_layers of the model must be at most 1,000, got 1e+09",
    ),
    "code": (
        lambda folder: changed(folder, "config.json", auto_map={"AutoModel": "theirs.Model"}),
        "comes with code of its own (auto_map in config.json), which is not run",
    ),
    "code for pictures": (
        lambda folder: changed(folder, "preprocessor_config.json", auto_map={}),
        "(auto_map in preprocessor_config.json), which is not run",
    ),
    "not JSON": (lambda folder: (folder / "config.json").write_text("{"), "config.json is not JSON"),
    "cut short": (lambda folder: os.truncate(folder / "model.safetensors", 5000), "damaged or cut short"),
    "others' weights": (lambda folder: changed(folder, "config.json", hidden_size=32), "its weights are of another model"),
    "too few weights": (without_a_weight, "its weights are of another model: there is no 'layernorm.bias' that fits"),
    "two means": (
        lambda folder: changed(folder, "preprocessor_config.json", image_mean=[0.5, 0.5]),
        "image_mean must have a number for each of 3 channels",
    ),
    "random": (a_masked_one, "gives another embedding of the same picture each time"),
}


@pytest.mark.parametrize("case", BAD)
def test_refused_in_a_sentence(case, vit, cache, capsys, tmp_path):
    spoil, sentence = BAD[case]
    spoil(vit)
    photos = str(class_folders(tmp_path / "photos", classes=2))
    assert main(["classify", f"{photos}/c0", "--support", photos, "--model", f"hf:{vit}"]) == 1
    out, err = capsys.readouterr()
    (told,) = err.splitlines()
    assert any(each in told for each in sentence.split(" | "))  # transformers 5 checks a config, 4 makes the model of it
    assert str(vit) in told
    assert not out
    assert not [path for path in cache.rglob("*") if path.is_file()]


def test_no_such_folder(tmp_path, cache):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nothing"):
        from_pretrained(f"hf:{tmp_path / 'nothing'}")
    with pytest.raises(ValueError, match="hf: must be followed by the name or the folder of a model, got nothing"):
        from_pretrained("hf:")
    assert not cache.exists()


def test_without_its_prefix(vit):
    with pytest.raises(ValueError, match=f"a model of transformers is opened by hf:{vit}"):
        from_pretrained(vit)


def test_by_the_name_of_the_network_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    class_folders(tmp_path / "photos", classes=4)
    assert main(["train", "--data", "photos", "--network", "huggingface", "--out", "run"]) == 1
    assert "its weights tell what it is: --init hf:NAME or hf:FOLDER, without --network" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_folder_from_elsewhere_names_no_code(vit, tmp_path):
    """Whatever its config tells beside the architecture is left aside."""
    folder = Path(shutil.copytree(folder_of(f"hf:{vit}"), tmp_path / "elsewhere"))
    told = json.loads((folder / "config.json").read_text())
    config = json.loads(told["model"]["transformers_config"])
    hostile = {"auto_map": {"AutoModel": "theirs.Model"}, "_attn_implementation": "theirs/kernel", "dtype": "float16",
               "attn_implementation": "theirs/kernel", "quantization_config": {"quant_method": "theirs"}}  # fmt: skip
    told["model"]["transformers_config"] = json.dumps({**config, **hostile})
    (folder / "config.json").write_text(json.dumps(told))
    images, _ = images_and_values()
    assert torch.equal(from_pretrained(folder)(images), from_pretrained(f"hf:{vit}")(images))
    told["model"]["transformers_config"] = json.dumps({**config, "num_hidden_layers": 100, "hidden_size": 16_000})
    (folder / "config.json").write_text(json.dumps(told))
    with pytest.raises(ValueError, match="is of another model"):  # a hundred GiB of weights, which are never made
        from_pretrained(folder)


def test_without_transformers(vit, cache, tmp_path, monkeypatch, capsys):
    folder = folder_of(f"hf:{vit}")
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name, *more: None if name == "transformers" else find(name, *more)
    )
    for model in (f"hf:{vit}", str(folder)):
        assert main(["export", model, str(tmp_path / "new")]) == 1
        assert "needs transformers, which is not here: pip install 'rankshot[transformers]'" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


HUB = """
import sys
from pathlib import Path
import torch
import rankshot
from rankshot.gallery import Embedder
from rankshot.tensors import read_tensors
folder, *names = sys.argv[1:]
print(torch.equal(read_tensors(Path(folder, "expected"))["e"], rankshot.from_pretrained(folder)(torch.ones(1, 3, 32, 32))))
for name in names:
    try:
        print(Embedder(name).dimensions)
    except OSError as error:
        print(error)
print("torchvision" in sys.modules)
"""


@pytest.mark.slow  # processes that import transformers
def test_in_a_process_of_its_own_and_by_a_name_of_the_hub(vit, tmp_path):
    """The name of a model that lies in the hub's cache, and one that does not, with nothing to connect to."""
    folder = save_pretrained(from_pretrained(f"hf:{vit}"), tmp_path / "saved")
    write_tensors(folder / "expected", {"e": from_pretrained(folder)(torch.ones(1, 3, 32, 32))}, {})
    there = tmp_path / "hub" / "models--somebody--small"
    commit = "0123456789" * 4
    shutil.copytree(vit, there / "snapshots" / commit)
    (there / "refs").mkdir()
    (there / "refs" / "main").write_text(commit)
    offline = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(tmp_path / "hub")}
    arguments = [sys.executable, "-c", HUB, str(folder), "hf:somebody/small", "hf:somebody/unknown"]
    done = subprocess.run(arguments, env=offline, check=False, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    is_same, dimensions, sentence, has_torchvision = done.stdout.splitlines()
    assert is_same == "True"
    assert dimensions == "16"
    assert sentence.startswith("there is no folder somebody/unknown here, and the hub does not give it: ")
    assert has_torchvision == "False"
