"""Annotations that come with the items of stoker.dataset()."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stoker import _core
from stoker._annotations import BOX_FORMATS, ENTRIES, ROTATED, Info, Where, picture_of
from stoker._arguments import choose

_OF_OBJECTS = ("labels", "ids", "area", "iscrowd", "keypoints", "masks")


@dataclass(frozen=True)
class ItemAnnotations:
    """The entries that every item has. Worker processes get a pickle of it."""

    entries: tuple[str, ...]
    info: Info
    box_format: str
    root: str  # what paths are relative to

    @staticmethod
    def of(
        entries: Sequence[str],
        class_names: Sequence[str],
        keypoint_names: Sequence[str],
        box_format: str,
        root: str,
    ) -> ItemAnnotations:
        """TypeError, ValueError: entries that cannot be, or not together."""
        if isinstance(entries, str) or not all(isinstance(each, str) for each in entries):
            raise TypeError(f"annotations is {entries!r}, must be names as ('boxes', 'labels')")
        choose("box_format", box_format, BOX_FORMATS)
        _check_entries(entries)
        if ("keypoints" in entries) != bool(keypoint_names):
            raise ValueError(
                f"keypoint_names has {len(keypoint_names)} names, and annotations is {entries!r}: "
                "keypoints need a name for each, and nothing else does"
            )
        info = Info(
            objects="boxes" in entries,
            rotated="boxes" in entries and box_format in ROTATED,
            masks="masks" in entries,
            keypoints=len(keypoint_names),
            label_bytes=1 if "label_image" in entries else 0,
            class_names=list(class_names),
            keypoint_names=list(keypoint_names),
        )
        return ItemAnnotations(tuple(entries), info, box_format, root)

    def packed(self, row: Any, index: int) -> bytes:
        """Returns the bytes of an item's annotations, from which the source reads them. TypeError,
        ValueError: what does not fit.
        """
        where = "gives annotations"
        picture = picture_of(row, self.box_format, Where("", index, self.root, where))
        if row.keys() != set(self.entries):
            there = ", ".join(map(repr, row)) or "none"
            wanted = ", ".join(map(repr, self.entries))
            raise ValueError(f"{where}: the entries are {there}, must be {wanted}")
        if picture.objects and picture.points != self.info.keypoints:
            raise ValueError(
                f"{where}: {picture.points} keypoints of each object, must be "
                f"{self.info.keypoints}, as keypoint_names"
            )
        return _core.picture_bytes(self.info.core(), picture.tuple())


def _check_entries(entries: Sequence[str]) -> None:
    for entry in entries:
        if entry not in ENTRIES:
            raise ValueError(f"annotations has {entry!r}; there are {', '.join(ENTRIES)}")
        if entry in _OF_OBJECTS and "boxes" not in entries:
            raise ValueError(f"annotations is {entries!r}: {entry!r} is nothing without 'boxes'")
    if "boxes" in entries and "labels" not in entries:
        raise ValueError(f"annotations is {entries!r}: there are boxes and no labels")
    if "boxes" not in entries and "label_image" not in entries:
        raise ValueError(f"annotations is {entries!r}, must have 'boxes' or 'label_image'")
