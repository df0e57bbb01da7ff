"""Plugins as `harness new-plugin` writes them, installed on a made-up site, some with one fault."""

import pytest

from harness.cli.scaffold import SIMPLE, files_of
from harness.testing import NotConforming, check_plugin


class Faulty:
    """Installs the scaffold's plugin with texts replaced, and gives what the checks find."""

    def __init__(self, site):
        self._site = site

    def install(self, form, changes=(), more=()):
        files = dict(files_of("acme-films", "acme_films", form))
        for path, old, new in changes:
            name = f"acme_films/{path}"
            assert old in files[name], f"{old!r} stands no more in {name}"
            files[name] = files[name].replace(old, new)
        files |= {f"acme_films/{path}": text for path, text in dict(more).items()}
        self._site.install("acme-films", {"acme_films": "acme_films.plugin"}, files)

    def findings(self, *changes, form=SIMPLE, more=(), **asked):
        """What is found, each as its check and its whole text."""
        self.install(form, changes, more)
        try:
            check_plugin("acme_films", **asked)
        except NotConforming as error:
            return [(finding.check, str(finding)) for finding in error.findings]
        return []


@pytest.fixture
def faulty(site):
    return Faulty(site)
