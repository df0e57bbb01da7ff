"""One file of Google Drive, which `gdown` fetches; a broken download continues where it stopped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from harness.base.errors import HarnessError
from harness.data.archives import is_archive
from harness.data.download_errors import not_given, refused, unreachable
from harness.data.web_file import ATTEMPTS, TIMEOUT, Watched

if TYPE_CHECKING:
    from harness.contracts.task import DriveSpec


def fetch_drive_file(drive: DriveSpec, part: Path, watch: Watched) -> None:
    """Fetch a whole file as `part`; Unavailable if Google Drive refuses it or cannot be reached.

    A part that an earlier command left is used only if a file that changed since then is found out:
    by its digest, or by the checksums of an archive.
    """
    import gdown
    from requests import HTTPError, RequestException

    if drive.digest is None and not is_archive(drive.name):
        _forget(part)
    left = _size(part)
    try:
        gdown.download(
            id=drive.file, output=str(part), quiet=True, use_cookies=False, resume=True,
            progress=watch, timeout=TIMEOUT, retries=ATTEMPTS,
        )  # fmt: skip
    except gdown.FileURLRetrievalError as error:
        raise not_given(drive.address, str(error.__context__ or error)) from error
    except gdown.DownloadError as error:
        no_answer = isinstance(error.__cause__, RequestException)
        if left and _size(part) == left and not no_answer:  # the server does not go on with it
            _forget(part)
            return fetch_drive_file(drive, part, watch)
        raise unreachable(drive.address, error) from error
    except HTTPError as error:
        status = getattr(error.response, "status_code", 500)
        if status < 500:
            raise refused(drive.address, status) from error
        raise unreachable(drive.address, error) from error
    except RequestException as error:
        raise unreachable(drive.address, error) from error
    except (HarnessError, OSError):
        raise
    except Exception as error:  # a page that the library cannot read
        raise not_given(drive.address, f"{type(error).__name__}: {error}") from error


def _parts(part: Path) -> list[Path]:
    """What is left of a download: the library adds letters of its own to the name."""
    return [path for path in part.parent.glob(f"{part.name}*") if path.is_file()]


def _size(part: Path) -> int:
    return sum(path.stat().st_size for path in _parts(part))


def _forget(part: Path) -> None:
    for path in _parts(part):
        path.unlink()
