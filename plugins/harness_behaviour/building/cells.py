"""All cells of a domain: each proxy with each length of history, as prompts, and Table 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from harness.contracts.published import PublishedTables
from harness_behaviour.building.draws import Cell, draw, set_of, sizes, without_history
from harness_behaviour.building.prompt_files import Built, CellCount
from harness_behaviour.records import CANDIDATES, LENGTHS, PROXIES, Prompt

if TYPE_CHECKING:
    from harness_behaviour.building.draws import Bits, Drawn
    from harness_behaviour.building.log import Log
    from harness_behaviour.records import Domain, Proxy, Recipe, Setting

Counts = Mapping[tuple["Proxy", int], int]

TABLES = PublishedTables("harness_behaviour")
DOMAINS: dict[str, Domain] = {"Movie": "movies", "Music": "music"}
NAMES: dict[str, Proxy] = {
    "No Proxy": "none", "Age": "age", "Gender": "gender", "Occupation": "occupation",
    "All": "all", "Country": "country", "Continent": "continent",
    "Gen & Conti": "gender_continent",
}  # fmt: skip
"""The paper's names of domains and proxies → ours."""


def table1(domain: Domain) -> Counts:
    """The paper's number of prompts by proxy and length of history; a cell without is left out."""
    return {
        (NAMES[row["setting"].removesuffix(" (Def)")], row["history"]): row["prompts"]
        for row in TABLES.read("table1").dicts()
        if DOMAINS[row["domain"]] == domain
    }


def build_cells(log: Log, recipe: Recipe, published: Counts) -> Built:
    """The prompts of a log. `published` are the numbers of Table 1 by proxy and length."""
    weights = sizes(log.had.bits).tolist() if recipe.draws == "popularity" else None
    cells = dict(_cells(log, recipe, published, weights))
    drawn = [one for cell in cells.values() for one in cell.found]
    needed = {item for one in drawn for item in (*one.history, *one.candidates)}
    titles = log.titles(sorted(needed))
    prompts = [one for of, cell in cells.items() for one in _prompts(log, *of, cell.found, titles)]
    counted = tuple(_counted(log, *of, cell, published.get(of, 0)) for of, cell in cells.items())
    outside = sum(cell.short_of_outside for cell in counted)
    notes = {
        **log.notes,
        f"prompts with fewer than {CANDIDATES // 2} candidates that nobody has": outside,
        "cells with fewer prompts than the paper's Table 1": sum(
            cell.found < cell.published for cell in counted
        ),
    }
    return Built(recipe=recipe, prompts=tuple(prompts), cells=counted, notes=notes)


def _cells(
    log: Log, recipe: Recipe, published: Counts, weights: Sequence[int] | None
) -> Iterator[tuple[tuple[Proxy, int], Cell]]:
    drawable = log.had.inventory if weights is None else sum(one > 0 for one in weights)
    for proxy in PROXIES[recipe.domain]:
        groups = [set_of(one.users, of_users=log.had.users) for one in log.groups[proxy]]
        for length in LENGTHS:
            seed = recipe.seed, recipe.domain, proxy, length
            if length == 0:
                yield (proxy, length), without_history(log.had, groups, seed=seed)
                continue
            most = recipe.kept if length <= drawable else 0
            if recipe.table1:
                most = min(most, published.get((proxy, length), 0))
            cell = draw(
                log.had, groups, length, most=most, tries=recipe.tries, seed=seed, weights=weights
            )
            yield (proxy, length), cell


def setting_of(proxy: Proxy, length: int) -> Setting:
    """What prompts of a cell show."""
    if length:
        return "b" if proxy == "none" else "a"
    return "none" if proxy == "none" else "c"


def _prompts(
    log: Log, proxy: Proxy, length: int, drawn: Sequence[Drawn], titles: Mapping[int, str]
) -> Iterator[Prompt]:
    groups = [(one.values, set_of(one.users, of_users=log.had.users)) for one in log.groups[proxy]]
    for number, one in enumerate(drawn, 1):
        values, members = groups[one.group]
        having: Bits = log.had.bits[list(one.candidates)]
        name = f"{log.domain}/{proxy}/{length}/{number:03}"
        yield Prompt(
            id=name,
            user=name,
            setting=setting_of(proxy, length),
            proxy=proxy,
            length=length,
            group=values,
            history=tuple(titles[item] for item in one.history),
            candidates=tuple(titles[item] for item in one.candidates),
            users=one.users,
            counts=one.counts,
            popular=tuple(sizes(having).tolist()),
            popular_in_group=tuple(sizes(having & members).tolist()),
        )


def _counted(log: Log, proxy: Proxy, length: int, cell: Cell, published: int) -> CellCount:
    users = [one.users for one in cell.found]
    quartiles = np.quantile(users, (0.25, 0.5, 0.75)).tolist() if users else ()
    return CellCount(
        proxy=proxy,
        length=length,
        groups=len(log.groups[proxy]),
        found=len(cell.found),
        tried=cell.tried,
        published=published,
        short_of_outside=sum(one.outside < CANDIDATES // 2 for one in cell.found),
        users=tuple(quartiles),
    )
