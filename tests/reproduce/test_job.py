"""One run from nothing to its json, and what is done with a json that is there."""

import json
from dataclasses import replace

import pytest
from small import small

from rankshot import data, fewshot
from rankshot.models import from_pretrained
from rankshot.reproduce import job
from rankshot.reproduce.job import Questions, Run, perform, result_of, run_in
from rankshot.reproduce.repeat import compared, other_seeds
from rankshot.training import train

ASKED = Questions(ways=(3,), shots=(1, 2), episodes=10)


@pytest.fixture(scope="module", autouse=True)
def _few_episodes():
    """Hundreds tell recipes apart, which is not what is tested."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job, "VALIDATION", Questions(episodes=20, seed=1000))
        yield


@pytest.fixture(scope="module")
def done(tmp_path_factory, data_root):
    folder = tmp_path_factory.mktemp("job")
    run = Run("small/paper/map-dlm/0", small(updates=12, validation_ways=(3,)), ASKED)
    return run, folder, perform(run, folder / "run", folder / "results")


def test_the_record(done):
    run, folder, record = done
    assert json.loads((folder / "results" / "small/paper/map-dlm/0.json").read_text()) == record
    assert result_of(run, folder / "results") == record
    assert record["config"]["run"]["updates"] == 12
    assert (record["config"]["data"]["root"], record["config"]["run"]["device"]) == (None, "auto")
    assert [point["update"] for point in record["curve"]] == [8, 12]
    assert record["kept_update"] in (8, 12)
    assert record["updates_per_second"] > 0
    assert record["side_by_side"] == 1
    tasks = ["1-shot 3-way", "2-shot 3-way", "retrieval 3-way"]
    assert {norm: list(found) for norm, found in record["test"].items()} == {"running": tasks, "batch": tasks}
    assert list(record["validation"]["running"]) == ["1-shot 3-way", "retrieval 3-way"]


def test_it_says_what_the_kept_network_does(done):
    _, folder, record = done
    images = data.load("glyphs", "test")
    for norm in ("running", "batch"):
        results = fewshot.evaluate(
            from_pretrained(folder / "run"), images, fewshot.tasks_for(images, (3,), (1, 2)), 10, seed=0, batch_norm=norm
        )
        assert fewshot.summary(results) == record["test"][norm]


def test_a_trial_is_not_asked_about_test_classes(tmp_path):
    run = Run("trials/small", small(updates=4, validation_ways=(3,)), None)
    record = perform(run, tmp_path / "run", tmp_path / "results")
    assert record["test"] is None
    assert record["validation"] is not None
    assert record["test_by_class_mean"] is None
    quick = replace(run, name="trials/quick", validation_norms=())
    assert perform(quick, tmp_path / "quick", tmp_path / "results")["validation"] is None
    by_one = replace(run, name="trials/by-one", validation_norms=("running",))
    assert list(perform(by_one, tmp_path / "by-one", tmp_path / "results")["validation"]) == ["running"]
    assert run_in(tmp_path / "results/trials/by-one.json").validation_norms == ("running",)


def test_batch_statistics_may_have_fewer_episodes(done, tmp_path):
    run, folder, record = done
    asked = replace(ASKED, batch_episodes=5)
    again = perform(replace(run, questions=asked), folder / "run", tmp_path)
    assert again["test"]["running"] == record["test"]["running"]
    images = data.load("glyphs", "test")
    tasks = fewshot.tasks_for(images, (3,), (1, 2))
    fewer = fewshot.evaluate(from_pretrained(folder / "run"), images, tasks, 5, seed=0, batch_norm="batch")
    assert again["test"]["batch"] == fewshot.summary(fewer)
    assert run_in(tmp_path / f"{run.name}.json").questions == asked
    nothing = perform(replace(run, questions=replace(ASKED, batch_episodes=0)), folder / "run", tmp_path)
    assert nothing["test"] == {"running": record["test"]["running"]}


def test_batch_statistics_may_have_fewer_episodes_of_what_answers_by_itself(done):
    """So a figure has the number of episodes that the record tells."""
    run, folder, _ = done
    model = fewshot.EmbeddingAnswerer(from_pretrained(folder / "run"))
    found = job.on_test(model, replace(run, questions=replace(ASKED, batch_episodes=5)))
    images = data.load("glyphs", "test")
    for norm, episodes in (("running", 10), ("batch", 5)):
        tasks = fewshot.tasks_for(images, (3,), (1, 2))[:2]
        assert found[norm] == fewshot.summary(fewshot.evaluate(model, images, tasks, episodes, seed=0))


def test_retrieval_may_be_judged_by_several_metrics(done, tmp_path):
    run, folder, record = done
    assert "retrieval_metrics" not in record
    asked = replace(ASKED, retrieval_metrics=("ap", "precision@2"))
    again = perform(replace(run, questions=asked), folder / "run", tmp_path)
    assert list(again["retrieval_metrics"]) == ["ap", "precision@2"]
    assert again["retrieval_metrics_episodes"] == 1000  # and not as many as its other figures
    assert "retrieval_metrics_episodes" not in record
    images = data.load("glyphs", "test")
    (mean_ap,) = fewshot.evaluate(from_pretrained(folder / "run"), images, fewshot.tasks_for(images, (3,), (1,))[-1:], 1000)
    assert again["retrieval_metrics"]["ap"]["mean"] == pytest.approx(mean_ap.mean, rel=1e-5)
    path = tmp_path / f"{run.name}.json"
    assert run_in(path).questions == asked
    path.write_text(json.dumps({**again, "questions": {**again["questions"], "retrieval_metrics": "ap"}}))
    with pytest.raises(ValueError, match="'retrieval_metrics' of its questions must be a list of names"):
        run_in(path)


def test_some_tasks_of_all(done, tmp_path):
    """A run that was asked all of them is done; one that was asked some is not, where all are asked."""
    run, folder, record = done
    some = ("1-shot 3-way", "retrieval 3-way")
    fewer = replace(run, questions=replace(ASKED, tasks=some))
    again = perform(fewer, folder / "run", tmp_path)
    assert again["test"] == {norm: {task: found[task] for task in some} for norm, found in record["test"].items()}
    assert list(again["test_by_class_mean"]) == ["1-shot 3-way"]
    path = tmp_path / f"{run.name}.json"
    assert run_in(path).questions == fewer.questions
    assert result_of(fewer, folder / "results") == record
    assert result_of(fewer, tmp_path) == again
    with pytest.raises(ValueError, match=r"other settings \(questions\)"):
        result_of(run, tmp_path)
    more = replace(fewer.questions, episodes=20)
    assert result_of(replace(run, questions=more), folder / "results") is None
    assert result_of(replace(run, questions=more), tmp_path) is None
    one = replace(run, questions=replace(ASKED, tasks=some[1:]))
    assert result_of(one, tmp_path) == again
    with pytest.raises(ValueError, match=r"other settings \(questions\)"):
        result_of(replace(run, questions=replace(ASKED, tasks=("2-shot 3-way",))), tmp_path)
    assert result_of(replace(one, questions=replace(one.questions, episodes=20)), tmp_path) is None
    path.write_text(json.dumps({**again, "questions": {**again["questions"], "tasks": "1-shot 3-way"}}))
    with pytest.raises(ValueError, match="'tasks' of its questions must be a list of names"):
        run_in(path)


def test_tasks_that_there_are_not(tmp_path):
    """Are complained of before a run learns anything."""
    run = Run("small", small(updates=2, validate_every=0), replace(ASKED, tasks=("1-shot 4-way",)))
    with pytest.raises(
        ValueError, match="there is no task '1-shot 4-way' among '1-shot 3-way', '2-shot 3-way', 'retrieval"
    ):
        perform(run, tmp_path / "run", tmp_path)
    assert not (tmp_path / "run").exists()
    for none in ((), "1-shot 3-way"):
        with pytest.raises(ValueError, match=r"tasks must be names such as \('1-shot 5-way',\), or None"):
            replace(ASKED, tasks=none)


@pytest.mark.parametrize("episodes", [True, -3, 0, "7", None])
def test_a_number_of_episodes_that_is_none(done, tmp_path, episodes):
    run, _, record = done
    path = tmp_path / f"{run.name}.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({**record, "questions": {**record["questions"], "episodes": episodes}}))
    with pytest.raises(ValueError, match=r"other settings \(questions\)"):
        result_of(run, tmp_path)


def test_the_class_mean_is_asked_too(done):
    _, folder, record = done
    images = data.load("glyphs", "test")
    tasks = fewshot.tasks_for(images, (3,), (1, 2))[:2]
    found = fewshot.evaluate(from_pretrained(folder / "run"), images, tasks, 10, seed=0, rule="prototype")
    assert record["test_by_class_mean"] == fewshot.summary(found)


def test_without_validation_classes(tmp_path):
    run = Run("row", small(updates=4, split="trainval", validate_every=0), ASKED)
    record = perform(run, tmp_path / "run", tmp_path / "results")
    assert (record["curve"], record["validation"], record["kept_update"]) == ([], None, 4)


def test_a_record_of_other_settings_is_not_taken(done):
    run, folder, _ = done
    other = replace(run, config=run.config.changed(alpha=3.0))
    with pytest.raises(ValueError, match=r"0.json was made with other settings \(alpha\): to run it anew, move away"):
        result_of(other, folder / "results")
    with pytest.raises(ValueError, match=r"other settings \(questions\)"):
        result_of(replace(run, questions=Questions(episodes=7)), folder / "results")
    assert result_of(replace(run, name="small/paper/map-dlm/1"), folder / "results") is None


def test_what_was_asked_fewer_episodes_is_to_be_asked_again(done):
    run, folder, _ = done
    for more in ({}, {"batch_episodes": 5}, {"seed": 1}):
        asked = replace(ASKED, episodes=20, **more)
        assert result_of(replace(run, questions=asked), folder / "results") is None
    for other in ({"ways": (4,)}, {"shots": (1,)}, {"retrieval_metrics": ("ap",)}, {"batch_episodes": 5, "ways": (4,)}):
        asked = replace(ASKED, episodes=20, **other)
        with pytest.raises(ValueError, match=r"other settings \(questions\)"):
            result_of(replace(run, questions=asked), folder / "results")


@pytest.mark.parametrize(
    ("schedule", "cut_from", "updates", "is_done"),
    [
        ("constant", 40, 12, True),
        ("step", 40, 12, True),
        ("constant", None, 12, False),
        ("constant", 50, 12, False),  # it was to have another length
        ("constant", 40, 60, False),  # and this one is longer
        ("cosine", 40, 12, False),
    ],
)
def test_a_run_that_was_stopped_early_is_done_if_it_says_so(done, tmp_path, schedule, cut_from, updates, is_done):
    run, _, record = done
    planned = replace(run, config=run.config.changed(schedule=schedule, updates=40))
    content = {**record, "config": planned.config.changed(updates=updates).to_json()}
    path = tmp_path / f"{run.name}.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(content if cut_from is None else {**content, "cut_from": cut_from}))
    if is_done:
        assert result_of(planned, tmp_path)["config"]["run"]["updates"] == updates
        more = replace(planned, questions=replace(ASKED, episodes=20))
        assert result_of(more, tmp_path) is None
        planned = replace(planned, config=planned.config.changed(alpha=3.0))
    with pytest.raises(ValueError, match=rf"other settings \({'alpha' if is_done else 'updates'}\)"):
        result_of(planned, tmp_path)


def test_an_option_that_was_not_there_yet_counts_as_its_default(done, tmp_path):
    run, _, record = done
    path = tmp_path / f"{run.name}.json"
    path.parent.mkdir(parents=True)
    method = {name: each for name, each in record["config"]["method"].items() if name != "smoothing"}
    older = {**record, "config": {**record["config"], "method": method}}
    path.write_text(json.dumps(older))
    assert result_of(run, tmp_path) is not None


def test_weights_keep_who_made_them(tmp_path, monkeypatch):
    """A json that is made anew from weights that are there says which code made the weights."""
    run = Run("row", small(updates=4, split="trainval", validate_every=0), ASKED)
    monkeypatch.setenv("COMMIT", "first")
    once = perform(run, tmp_path / "run", tmp_path / "results")
    (tmp_path / "results" / "row.json").unlink()
    monkeypatch.setenv("COMMIT", "second")
    again = perform(run, tmp_path / "run", tmp_path / "results")
    assert again.pop("measured_by") == {"commit": "second", "hardware": once["hardware"], "date": again["date"]}
    assert again == once
    assert once["commit"] == "first"
    with monkeypatch.context() as moved:
        moved.setenv("COMMIT", "first")
        moved.setattr("rankshot.reproduce.job.hardware", lambda: "another")
        elsewhere = perform(run, tmp_path / "run", tmp_path / "elsewhere")
    assert elsewhere["measured_by"]["hardware"] == "another"
    assert elsewhere["hardware"] == once["hardware"]

    train(run.config.changed(updates=2), tmp_path / "parts")
    (tmp_path / "parts" / "made.json").write_text(json.dumps([{"commit": "first"}]))
    parts = perform(run, tmp_path / "parts", tmp_path / "other")
    assert parts["commit"] == "second"
    assert [each["commit"] for each in parts["made_in_parts"]] == ["first", "second"]


def test_a_broken_neighbour_is_no_seed(done, tmp_path):
    *_, record = done
    (tmp_path / "0.json").write_text(json.dumps(record))
    (tmp_path / "1.json").write_text("not JSON")
    (tmp_path / "2.json").write_text(json.dumps({**record, "test": {"running": 3}}))
    assert other_seeds(tmp_path / "0.json", record, "test") == []


def test_again(done):
    run, folder, record = done
    path = folder / "results" / f"{run.name}.json"
    found = run_in(path)
    assert found == replace(run, config=run.config.changed(device="auto"))
    told = compared(path, replace(found, config=run.config), folder / "again")
    assert "1-shot 3-way" in told
    line = next(line for line in told.splitlines() if line.startswith("batch    retrieval 3-way"))
    once = 100 * record["test"]["batch"]["retrieval 3-way"]["mean"]
    assert line.split()[3:6] == [f"{once:.2f}", f"{once:.2f}", "+0.00"]  # a CPU repeats itself exactly


def test_only_other_seeds_are_compared(done, tmp_path):
    run, _, record = done
    beside = {
        "0": record,
        "siamese": {**record, "config": {**record["config"], "method": {"name": "siamese"}}},
        "x": {"y": 1},
    }
    beside["1"] = {**record, "config": {**record["config"], "run": {**record["config"]["run"], "seed": 1}}}
    for name, content in beside.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    assert "deviation over 2 seeds" in compared(tmp_path / "0.json", run, tmp_path / "again").splitlines()[0]
    (tmp_path / "0.json").write_text(json.dumps({"config": record["config"], "test": None}))
    with pytest.raises(ValueError, match=r"0\.json holds no result to compare with"):
        compared(tmp_path / "0.json", run, tmp_path / "again")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "no record of a run"),
        ("[]", "must be an object"),
        ("x", "JSON"),
        ('{"config": {"noise": 0.1}}', "has no setting 'noise'"),
    ],
)
def test_files_that_are_no_records(content, message, tmp_path):
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(ValueError, match=message):
        run_in(tmp_path / "a.json")
