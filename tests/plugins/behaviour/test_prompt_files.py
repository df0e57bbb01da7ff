"""The fingerprint of built prompts."""

import pytest
from harness_behaviour.building.prompt_files import fingerprint
from harness_behaviour.records import Prompt


def prompt(**given):
    of = {
        "id": "movies/all/3/001", "user": "movies/all/3/001", "setting": "a", "proxy": "all",
        "length": 3, "group": ("25-34", "Male", "clerical/admin"),
        "history": ("Schindler's List (1993)", "À nous la liberté (1931)", "M"),
        "candidates": ("Heat (1995)", "Big (1988)"), "users": 3, "counts": (1, 2),
        "popular": (5, 2), "popular_in_group": (1, 2),
    }  # fmt: skip
    return Prompt(**{**of, **given})


@pytest.mark.parametrize("change", [{"users": 4}, {"counts": (1, 3)}, {"group": ("25-34", "Male")}])
def test_the_fingerprint_is_of_everything_in_a_prompt_and_the_same_everywhere(change):
    usual = fingerprint((prompt(),))
    assert usual == "3c71036af0d1557f4a29a934af2f4528" != fingerprint((prompt(**change),))
