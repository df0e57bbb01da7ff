import math

import numpy as np
import pytest

from harness.base.errors import PluginError, UsageError
from harness.calls.retry import Patience
from harness.pipeline.embedders import embed_texts, embedding_of, named_embedder

CODE = """
    import numpy as np
    from harness import Embedder, Identity, hookimpl

    class Same(Embedder):
        closed = 0

        def __init__(self, settings):
            self.settings = settings
            self.identity = Identity(kind="same", name="same", details=dict(settings.args))
            self.dimensions = 2

        async def close(self):
            Same.closed += 1

        async def embed(self, texts):
            if "bad" in texts:
                return np.zeros((len(texts), 2))
            return np.array([[0.6, 0.8]] * len(texts))

    @hookimpl
    def register_embedders(register):
        register("same", Same, arguments={"any": "ignored"})
        register("none", lambda settings: None)
"""


@pytest.fixture
def plugin(site):
    site.install("likes", {"likes": "likes"}, {"likes.py": CODE})


@pytest.mark.usefixtures("plugin")
def test_an_embedder_of_another_plugin_has_the_timeouts_of_who_asks_and_is_closed():
    import likes

    assert named_embedder("same:any=thing").identity.details == {"any": "thing"}
    np.testing.assert_allclose(embed_texts("same", ["a", "b"]), [[0.6, 0.8]] * 2)
    assert likes.Same.closed == 1
    with pytest.raises(Exception, match="length 0 for 'bad'"):
        embed_texts("same", ["bad"])
    assert likes.Same.closed == 2, "it is closed after an error too"
    patience = Patience(attempt_timeout=7, start_timeout=90)
    settings = named_embedder("same", patience=patience).settings
    assert (settings.attempt_timeout, settings.start_timeout) == (7, 90)
    assert named_embedder("same").settings.attempt_timeout == Patience().attempt_timeout


@pytest.mark.usefixtures("plugin")
def test_a_kind_that_makes_none_is_the_plugins_fault():
    with pytest.raises(PluginError, match="returned no embedder"):
        named_embedder("none")


def test_an_option_names_an_embedder_or_a_function():
    assert embedding_of("math:sqrt", option="--embedding") is math.sqrt
    assert embedding_of("hashing:dimensions=9", option="--embedding")(["a"]).shape == (1, 9)
    with pytest.raises(UsageError, match="--embedding"):
        embedding_of("hashings", option="--embedding")
