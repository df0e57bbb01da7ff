"""Which extra brings a package that is not installed."""

import pytest

from harness.registry.missing_packages import hint_for, install_hint

OURS = "user-understanding-harness"


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("sklearn.cluster", "analysis"),
        ("faiss", "cpu"),  # and not gpu, which brings a package of another name
        ("sentence_transformers.util", "embed"),
        ("rouge_score", "texts"),  # and not dev, which brings more
    ],
)
def test_the_smallest_extra_with_a_package(module, extra):
    assert install_hint(module, OURS) == f"pip install '{OURS}[{extra}]'"


@pytest.mark.parametrize(
    ("module", "where"), [("matplotlib.axes", OURS), ("attic", OURS), ("numpy", "attic")]
)
def test_no_extra_brings_what_is_always_there_or_unknown(module, where):
    assert install_hint(module, where) is None


def test_a_plugins_own_extra_comes_before_the_harnesss(site):
    site.install("acme", {}, {}, extras={"topics": "scikit-learn"})
    absent = ModuleNotFoundError("No module named 'sklearn'", name="sklearn")
    assert hint_for(absent, "acme") == "pip install 'acme[topics]'"
    assert hint_for(absent, "nobody") == f"pip install '{OURS}[analysis]'"
    assert hint_for(ValueError("another failure"), "acme") is None
