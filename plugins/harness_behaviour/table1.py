"""The paper's Table 1: how many prompts it has of each proxy and length of history."""

from __future__ import annotations

from collections.abc import Mapping

from harness.contracts.published import PublishedTables
from harness_behaviour.records import Domain, Proxy

TABLES = PublishedTables("harness_behaviour")

DEFAULT = " (Def)"
"""What the paper adds to the name of a proxy where prompts show no history."""

DOMAINS: dict[str, Domain] = {"Movie": "movies", "Music": "music"}
NAMES: dict[str, Proxy] = {
    "No Proxy": "none",
    "Age": "age",
    "Gender": "gender",
    "Occupation": "occupation",
    "All": "all",
    "Country": "country",
    "Continent": "continent",
    "Gen & Conti": "gender_continent",
}
"""The paper's names of domains and proxies → ours."""


def counts(domain: Domain) -> Mapping[tuple[Proxy, int], int]:
    """The number of prompts by proxy and length of history; a cell without prompts is left out."""
    return {
        (NAMES[row["setting"].removesuffix(DEFAULT)], row["history"]): row["prompts"]
        for row in TABLES.read("table1").dicts()
        if DOMAINS[row["domain"]] == domain
    }
