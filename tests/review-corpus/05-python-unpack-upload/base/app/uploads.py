"""Takes archives from users apart."""

import tarfile
from pathlib import Path

MAX_MEMBERS = 2_000
MAX_BYTES = 200 * 1024 * 1024


class Refused(Exception):
    """The archive is not one we take."""


def unpack(archive, folder):
    """Unpacks into the folder and returns the files, sorted."""
    folder = Path(folder).resolve()
    written = []
    with tarfile.open(archive) as tar:
        members = tar.getmembers()
        if len(members) > MAX_MEMBERS:
            raise Refused(f"{len(members)} members are too many")
        if sum(member.size for member in members) > MAX_BYTES:
            raise Refused("the archive is too large")
        for member in members:
            if not member.isfile():
                continue
            target = (folder / member.name).resolve()
            if folder not in target.parents:
                raise Refused(f"{member.name} leads out of the folder")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(tar.extractfile(member).read())
            written.append(target)
    return sorted(written)
