"""User behaviour prediction asked in batches: the whole benchmark is one file."""

import re

import msgspec
from builders.behaviour import a_prompt
from harness_behaviour.building import prompt_files
from harness_behaviour.building.cells import setting_of, table1
from harness_behaviour.records import Recipe

TASKS = [f"behaviour_{domain}_{setting}" for domain in ("movies", "music") for setting in "abc"]


def write_prompts(domain, folder):
    """Writes made-up prompts, as many in each cell as the paper's Table 1 has."""
    prompts = []
    for (proxy, length), number in table1(domain).items():
        value = {"setting": setting_of(proxy, length), "proxy": proxy, "length": length}
        for place in range(1, number + 1):
            one = a_prompt(id=f"{domain}/{proxy}/{length}/{place:03}", **value)
            titles = one.id, *one.candidates[1:]  # prompts of one text would be one question
            prompts.append(msgspec.structs.replace(one, user=one.id, candidates=titles))
    built = prompt_files.Built(
        recipe=Recipe(domain=domain), prompts=tuple(prompts), cells=(), notes={}
    )
    prompt_files.write(folder, built, {}, option="--out")
    return len(prompts)


def test_the_whole_benchmark_of_the_paper_is_one_file_whose_price_is_told_before(harness):
    numbers = {
        f"behaviour_{domain}": write_prompts(domain, harness.folder / domain)
        for domain in ("movies", "music")
    }
    assert numbers == {"behaviour_movies": 5_096, "behaviour_music": 4_924}
    prices = harness.folder / "prices.toml"
    prices.write_text('[prices."openai:m"]\ninput = 2.5\noutput = 10\n', "utf-8")
    words = [
        "--model", "openai", "--model_args", "base_url=http://127.0.0.1:9/v1,model=m",
        "--tasks", "behaviour", "--data", f"behaviour_movies={harness.folder / 'movies'}",
        "--data", f"behaviour_music={harness.folder / 'music'}",
    ]  # fmt: skip
    told = harness.here(*words, "--dry_run", "--prices", str(prices)).ok().out
    assert "in total ~10,020 calls (10,020 to 10,020)" in told
    assert re.search(r"in total at most [\d.]+ USD", told)
    written = harness.here(*words, "--limit", "3", "--json", "--write_requests", "asked").ok()
    assert written.json["requests"] == {"asked/requests-1.jsonl": 3 * len(TASKS)}
