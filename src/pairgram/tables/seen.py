"""What is known of files without reading them, by which a later pass notices other ones."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Self

from pairgram._support.checks import ArgumentError
from pairgram._support.files import shown

# What file systems call the size of a file, and what changes whenever the file does.
SIZE = "size"
MARKS = (SIZE, "mtime", "LastModified", "last_modified", "updated", "generation", "ETag", "etag")


@dataclass(frozen=True, eq=False)
class SeenFiles:
    """Files, and what their file system says of them.

    Attributes
    ----------
    paths : tuple of str
    filesystem : pyarrow.fs.FileSystem or None
        None for files on this machine.
    marks : tuple of mapping of str
        For every file, the values of `MARKS` that its file system knows. A file that is missing
        has none.
    united : tuple of SeenFiles
        More files, which may be in other file systems.
    """

    paths: tuple[str, ...]
    filesystem: Any
    marks: tuple[Mapping[str, Any], ...]
    united: tuple[SeenFiles, ...] = ()

    @classmethod
    def of(cls, paths: Sequence[str], filesystem: Any = None) -> Self:
        """Return what is known of files now."""
        return cls(tuple(paths), filesystem, tuple(_marks(paths, filesystem)))

    @classmethod
    def of_dataset(cls, dataset: Any) -> Self:
        """Return what is known now of the files of a pyarrow dataset, and of those that it unites.

        A dataset of rows in memory has no files.
        """
        own = cls.of(getattr(dataset, "files", ()), getattr(dataset, "filesystem", None))
        return replace(own, united=tuple(map(cls.of_dataset, getattr(dataset, "children", ()))))

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Within this context, the files are read, which must be the same at its end.

        Of a file that has changed, this is the error, whatever else went wrong in reading it.

        Raises
        ------
        ValueError
            If a file has changed. The message names it.
        """
        try:
            yield
        except Exception as error:
            found = None
            with suppress(OSError):
                found = self._changed()
            if found is not None:
                raise found from error
            raise
        found = self._changed()
        if found is not None:
            raise found

    def _changed(self) -> ValueError | None:
        now = _marks(self.paths, self.filesystem)
        for path, before, after in zip(self.paths, self.marks, now, strict=True):
            if not after and before:
                return changed(f"{shown(path)} is no more")
            # A file system may say more of a file at one time than at another.
            known = [mark for mark in MARKS if mark in before and mark in after]
            other = [mark for mark in known if before[mark] != after[mark]]
            if SIZE in other:
                return changed(f"{shown(path)} had {before[SIZE]} bytes, and has {after[SIZE]}")
            if other:
                return changed(f"{shown(path)} was written once more")
        found = (files._changed() for files in self.united)
        return next((error for error in found if error is not None), None)


NO_FILES = SeenFiles((), None, ())


def changed(what: str) -> ArgumentError:
    """Return the error for a source whose rows are not those that an earlier pass read."""
    return ArgumentError(None, "", f" changed while it was read: {what}", place="the table")


def _marks(paths: Sequence[str], filesystem: Any) -> Iterator[dict[str, Any]]:
    """Yield the marks of files."""
    if filesystem is None:
        for path in paths:
            try:
                found = os.stat(path)
            except FileNotFoundError:
                yield {}
            else:
                yield {SIZE: found.st_size, "mtime": found.st_mtime_ns}
        return
    own: Any = getattr(getattr(filesystem, "handler", None), "fs", None)
    if hasattr(own, "invalidate_cache"):  # one of fsspec, which knows more than it tells pyarrow
        for path in paths:
            own.invalidate_cache(path)
            try:
                info = own.info(path)
            except FileNotFoundError:
                yield {}
            else:
                yield {mark: info[mark] for mark in MARKS if info.get(mark) is not None}
        return
    for info in filesystem.get_file_info(list(paths)):
        marks = {SIZE: info.size, "mtime": info.mtime_ns}
        yield {mark: value for mark, value in marks.items() if value is not None}
