"""Zip archives for tests: ordinary and dangerous ones."""

import io
import zipfile
from collections.abc import Mapping


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    """Pack files as upload-artifact does."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


def with_entry(name: str, content: bytes = b"x", *, mode: int = 0o100644, flags: int = 0) -> bytes:
    """Pack a good file, and one whose name, mode or flags are as given."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("good.txt", "good")
        info = zipfile.ZipInfo(name.replace("\0", "~"))
        info.external_attr = mode << 16
        archive.writestr(info, content)
        archive.infolist()[-1].flag_bits |= flags
    return packed.getvalue().replace(name.replace("\0", "~").encode(), name.encode())
