"""Which figures go where in the pages."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rankshot.reproduce.claims import ahead_of_others, alphas, differences, fewer_episodes, learning_speed, turned
from rankshot.reproduce.photographs.tables import (
    birds,
    deep_in_short,
    deep_trials,
    fine_tuning_in_short,
    heads,
    of_fine_tuning,
)
from rankshot.reproduce.studies import STUDIED
from rankshot.reproduce.study_tables import (
    batches_table,
    decay_table,
    gap_table,
    longer_table,
    objectives_table,
    signs_table,
)
from rankshot.reproduce.system_settings import SYSTEMS, settings_table
from rankshot.reproduce.tables import NORM, advantage_table, alpha_table, trials_table

from ..places import RESULTS, ROOT
from .centring import centring
from .defaults import defaults
from .lengths import factors, lengths
from .own_images import data, gallery, ready, rejection, rejection_trials
from .photographs import embedding, fine_tuned, photographs
from .ranking import headlines, large_batches, micro_batches, objectives, tables
from .ranking_transformer import ranking_transformer
from .scale import embedding_on_paper, memory_on_paper, milvus, searching_on_paper
from .serving import serving
from .systems import (
    cost_of_adaptation,
    cost_of_loops,
    cost_of_systems,
    few_queries,
    of_systems,
    options_of_systems,
    paper,
    paper_in_short,
)
from .training import compiled, heap, images_on, importing, quickstart, speed, training
from .versions import versions

SECTION = re.compile(r"<!-- (\w+): from here -->\n.*?<!-- \1: to here -->", re.DOTALL)

NONE_YET = "Not measured yet."
AGAINST_PAIRS = (("map-dlm", "siamese"), ("map-ssvm", "siamese"), ("map-dlm", "map-ssvm"))

STUDIES: dict[str, Callable[[Path, str], str | None]] = {
    "objectives": objectives_table,
    "signs": signs_table,
    "batches": batches_table,
    **{system: partial(settings_table, system) for system in SYSTEMS},
}


def of_study(table: Callable[[Path, str], str | None], name: str) -> str:
    return table(ROOT / "results", name) or NONE_YET


SECTIONS: dict[str, Callable[[], str]] = {
    "paper": paper,
    "paper_in_short": paper_in_short,
    "claim_differences_omniglot": lambda: differences(ROOT / "results", "omniglot", AGAINST_PAIRS),
    "claim_differences_mini_imagenet": lambda: differences(ROOT / "results", "mini-imagenet", AGAINST_PAIRS),
    "claim_differences_cub": lambda: differences(ROOT / "results", "cub", AGAINST_PAIRS),
    "claim_systems_omniglot": lambda: ahead_of_others(ROOT / "results", "omniglot"),
    "claim_systems_mini_imagenet": lambda: ahead_of_others(ROOT / "results", "mini-imagenet"),
    "claim_episodes": lambda: fewer_episodes(ROOT / "results"),
    "claim_turned": lambda: turned(ROOT / "results"),
    "claim_speed_omniglot": lambda: learning_speed(ROOT / "results", "omniglot"),
    "claim_speed_mini_imagenet": lambda: learning_speed(ROOT / "results", "mini-imagenet"),
    "claim_batches": lambda: advantage_table(ROOT / "results") or NONE_YET,
    "claim_alpha": lambda: alpha_table(ROOT / "results", NORM) or NONE_YET,
    "claim_alphas": lambda: alphas(ROOT / "results"),
    "claim_gap": lambda: gap_table(ROOT / "results") or NONE_YET,
    **{
        f"study_{study}_{name.replace('-', '_')}": partial(of_study, table, name)
        for name in STUDIED
        for study, table in STUDIES.items()
    },
    "longer": lambda: longer_table(ROOT / "results") or NONE_YET,
    "centring": centring,
    "decay": lambda: decay_table(ROOT / "results") or NONE_YET,
    "systems_options": options_of_systems,
    "systems_omniglot": lambda: of_systems("omniglot"),
    "systems_mini_imagenet": lambda: of_systems("mini-imagenet"),
    "systems_maml_lengths": lambda: lengths("maml"),
    "systems_meta_lstm_lengths": lambda: lengths("meta-lstm"),
    "systems_prototypical_factors": factors,
    "systems_few_queries": few_queries,
    "systems_cost": cost_of_systems,
    "systems_adaptation": cost_of_adaptation,
    "systems_loops": cost_of_loops,
    "ready": ready,
    "speed": speed,
    "trials_omniglot": lambda: trials_table(ROOT / "results", "omniglot"),
    "trials_mini_imagenet": lambda: trials_table(ROOT / "results", "mini-imagenet"),
    "trials_glyphs": lambda: trials_table(ROOT / "results", "glyphs"),
    "trials_cub": lambda: trials_table(ROOT / "results", "cub"),
    "data": data,
    "gallery": gallery,
    "rejection": rejection,
    "rejection_trials": rejection_trials,
    "photographs": photographs,
    "embedding": embedding,
    "objectives": objectives,
    "ranking_transformer": ranking_transformer,
    "fine_tuned": fine_tuned,
    "defaults": defaults,
    "deep_trials": lambda: deep_trials(ROOT / "results"),
    "deep_in_short": lambda: deep_in_short(ROOT / "results"),
    "deep_heads": lambda: heads(ROOT / "results"),
    "fine_tuning_in_short": lambda: fine_tuning_in_short(ROOT / "results"),
    "birds": lambda: birds(ROOT / "results"),
    "fine_tuning_cub": lambda: of_fine_tuning(ROOT / "results", "cub"),
    "fine_tuning_grocery": lambda: of_fine_tuning(ROOT / "results", "grocery"),
    "serving": serving,
    "headlines": lambda: headlines(json.loads(RESULTS.read_text())),
    "ranking": lambda: tables(json.loads(RESULTS.read_text())),
    "large_batches": large_batches,
    "micro_batches": micro_batches,
    "training": training,
    "images_on": images_on,
    "compiled": compiled,
    "heap": heap,
    "importing": importing,
    "quickstart": quickstart,
    "milvus": milvus,
    "versions": versions,
    "embedding_on_paper": embedding_on_paper,
    "memory_on_paper": memory_on_paper,
    "searching_on_paper": searching_on_paper,
}
PAGES = [
    ROOT / "README.md",
    *(
        ROOT / "docs" / f"{name}.md"
        for name in (
            "adapting",
            "benchmarks",
            "campaigns",
            "experiments",
            "networks",
            "measured",
            "paper",
            "scale",
            "start",
            "systems",
        )
    ),
]


def filled(page: Path) -> str:
    """The text of a page with its figures replaced by the last ones measured."""

    def fresh(match: re.Match[str]) -> str:
        name = match.group(1)
        return f"<!-- {name}: from here -->\n\n{SECTIONS[name]()}\n\n<!-- {name}: to here -->"

    return SECTION.sub(fresh, page.read_text())
