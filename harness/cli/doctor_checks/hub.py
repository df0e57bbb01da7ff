"""Check of the hub of data sets and weights: is it used, does it answer, is there a token?"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.error import HTTPError, URLError

from harness.contracts.finding import Finding, doubtful, good

ABOUT = "hub"
SECONDS = 5.0
WITHOUT = "HF_HUB_OFFLINE=1 uses the cache at once; --data DIR and a folder of weights need no hub"


def hub() -> Iterator[Finding]:
    """Whether the hub answers or is not used, and whether a token would be sent."""
    from huggingface_hub import get_token

    from harness.data.hub import endpoint, offline_by_setting

    token = "a token is set" if get_token() else "no token is set, so only public files can be read"
    offline = offline_by_setting()
    if offline is not None:
        yield good(ABOUT, f"{offline}: only the cache is used; {token}")
        return
    reason = unreachable(endpoint())
    if reason is None:
        yield good(ABOUT, f"{endpoint()} answers; {token}")
    else:
        yield doubtful(ABOUT, f"{endpoint()} cannot be reached: {reason}; {token}", WITHOUT)


def unreachable(address: str) -> str | None:
    """The error if no server answers at the address; None for any answer of a server."""
    from urllib.request import Request, urlopen

    try:
        with urlopen(Request(address, method="HEAD"), timeout=SECONDS):
            return None
    except HTTPError:
        return None
    except (URLError, OSError) as error:
        return str(getattr(error, "reason", error)) or type(error).__name__
