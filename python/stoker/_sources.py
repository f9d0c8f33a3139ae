"""Makes the sources of samples."""

from __future__ import annotations

import os
import warnings
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from stoker import _core
from stoker._annotations import with_annotations
from stoker._arguments import SPLITS, choose, height_and_width, numbered, whole, yes_or_no
from stoker._huggingface import check_column, objects_of, open_dataset, values_of
from stoker._paths import (
    absolute,
    check_files,
    check_one_part,
    check_path,
    find_blobs,
    raise_missing,
)
from stoker._recipe import made
from stoker._store import Store, is_address, options_for
from stoker._targets import with_targets
from stoker._views import with_pictures

LabelFn = Callable[[str, int], int]
Path = str | os.PathLike[str]


class Fields(NamedTuple):
    """Which fields of shards and lists have the image, the label and the targets. As SourceOptions
    in C++ has them: '' is the usual field.
    """

    image: str = ""
    label: str = ""
    targets: tuple[str, ...] = ()
    objects: str = ""
    objects_from: str = ""
    label_image_from: str = ""
    pictures_from: tuple[str, ...] = ()


def folder(
    path: Path,
    split: str | None = None,
    label_fn: LabelFn | None = None,
    *,
    store: Store | None = None,
) -> _core.Source:
    """An image folder, path/CLASS/**/FILE, like torchvision's ImageFolder: the same samples and
    labels in the same order.

    split: 'train' or 'test' look for a folder of that meaning in `path` (train; test, val,
    validation); 'val' and 'validation' mean 'test'; 'all' takes both. Needed only where `path`
    holds such folders.
    label_fn(name, label): see relabel().
    path may be an address in a store, 's3://bucket/prefix', whose objects are the files; store says
    how to reach it.

    Files that are left out (GIF and other formats that are not read, pictures in no class folder),
    and pictures to which a link gives a second label, are counted and named in Source.notes; each
    of these also raises a UserWarning.

    FileNotFoundError, NotADirectoryError: `path`. ValueError: it holds train and test folders, and
    split does not say which. RuntimeError: there are no class folders or no images in it, or it
    cannot be read.
    """
    return _opened("folder", path, split, label_fn, store=store)


def cifar(
    path: Path, split: str, label_fn: LabelFn | None = None, *, store: Store | None = None
) -> _core.Source:
    """CIFAR-10 or CIFAR-100 in their binary layout (data_batch_1.bin ..., train.bin ...), or a
    folder that contains the archive's folder; CIFAR-100's labels are the fine ones. split: 'train',
    'test' or 'all'. Raises what folder() raises; also RuntimeError for files that are not complete.
    """
    return _opened("cifar", path, split, label_fn, store=store)


def open(  # noqa: A001 - stoker.open, like the C++ open_source
    path: Path | Sequence[Path],
    split: str | None = None,
    label_fn: LabelFn | None = None,
    *,
    image_from: str | None = None,
    label_from: str | None = None,
    targets_from: Sequence[str] = (),
    objects: Path | None = None,
    objects_from: str | None = None,
    label_image_from: str | None = None,
    pictures_from: Mapping[str, Path] | None = None,
    store: Store | None = None,
    wait: bool = True,
) -> _core.Source:
    """Opens what is at `path`: an image folder, CIFAR's binary files, tar, Parquet, TFRecord or MDS
    shards, or a list of files; see folder(), cifar(), tar() and csv(). image_from, label_from,
    targets_from: for shards and lists; of an image folder 'txt:text' is the text file beside each
        image (cat/1.txt of cat/1.jpg). wait: see tar().

    objects: what lies on the pictures, which moves with the pixels (see with_annotations()):
        a JSON file as COCO's; or a folder of Pascal VOC's XML files, of YOLO's text files, or of
        label images (PNG). A picture has its annotations by its name. A folder may then have its
        pictures in any folders; the samples are those that the annotations name, in their order,
        and no picture has a label of its own.

        coco = stoker.open("coco/train2017", objects="coco/annotations/instances_train2017.json")

    objects_from, label_image_from: the same in the records of shards; see tar(), parquet(),
        tfrecord() and mds().
    pictures_from: further pictures of each sample, by name: of shards and lists the field that has
        them, as image_from names it; of a folder another folder, whose files have the same names
        but for their extensions. Then a folder may have its pictures in any folders, and no
        picture has a label of its own; shards and lists are asked for none without label_from. See
        with_pictures().

        pairs = stoker.open("coco-{000..063}.tar", pictures_from={"control": "control.png"})
        facades = stoker.open("facades/photos", pictures_from={"labels": "facades/labels"})
    """
    fields = _fields_of(
        image_from, label_from, targets_from, objects_from, label_image_from, pictures_from
    )
    if objects is not None:
        fields = fields._replace(objects=os.path.abspath(os.fspath(objects)))
    return _opened("open", path, split, label_fn, fields, store, wait)


def tar(
    paths: Path | Sequence[Path],
    *,
    split: str | None = None,
    image_from: str | None = None,
    label_from: str | None = None,
    targets_from: Sequence[str] = (),
    objects_from: str | None = None,
    label_image_from: str | None = None,
    pictures_from: Mapping[str, Path] | None = None,
    label_fn: LabelFn | None = None,
    store: Store | None = None,
    wait: bool = True,
) -> _core.Source:
    """Tar shards as WebDataset has them: files that follow each other and whose names are equal up
    to the first dot are a sample.

    paths: a file, a folder of shards, a glob ('train-*.tar') or braces ('train-{000..127}.tar'); or
        a sequence of files. The samples are those of the shards in their order, by name; in a
        sequence, its own. They may be in a store: 's3://bucket/train-*.tar', or
        'https://host/train-{000..127}.tar', whose server has no lists.
    store: how to reach a store; see Store.
    split: 'train' or 'test' take the shards in a folder of that meaning (train; test, val,
        validation), or those whose names begin with such a word; 'all' takes both. Needed only
        where `paths` holds several parts.
    image_from: the extension of images; default jpg, jpeg, png, webp, bmp, tif, tiff,
        ppm, pgm, avif, gif, jp2, pbm.
    label_from: 'cls', 'txt', 'json:FIELD', 'folder' or 'none'; default 'cls' if the first sample
        has one, else 'folder'. Texts become classes, sorted; numbers are labels, with the names in
        classes.txt beside the shards if it is there.
    targets_from: what the samples have besides the label (batch.targets): 'json:FIELD', a number,
        or an array of one shape in all samples, in the sample's .json; 'npy' or 'NAME.npy', an
        array of NumPy. A target is named by its field. Its type is that of the first sample, or
        what stands behind the field: 'json:age:float32', ':int64', ':int32', ':uint8', ':float16'
        or ':bfloat16'. With [] behind the type each sample has a list of its own length:
        'json:tokens:int32[]', 'tokens.npy:int64[]'. ':text' is a text (UTF-8) or a list of texts:
        'json:captions:text', 'txt:text', or any other extension. A tensor of a .safetensors member
        is 'NAME.safetensors:TENSOR', named by the tensor. A sample without values there is a
        bad sample; see Loader(texts=) and Batch.texts.
    objects_from: the objects on each picture, which move with the pixels (see with_annotations()):
        'json', 'NAME.json' or 'json:FIELD', the sample's JSON or a field of it. That is a list of
        objects with COCO's fields (bbox; category_id, or category and label, which may be texts;
        id, area, iscrowd, segmentation, keypoints), an object that has such a list in annotations
        or objects, or one with a list for each field. Boxes are COCO's; a suffix says otherwise:
        'json:xyxy', ':cxcywh'. What does not fit makes a bad sample.
    label_image_from: the extension of PNGs with a class for each pixel, as 'png' or 'seg.png'.
    pictures_from: further pictures of each sample, by name: their extensions, as {'control':
        'control.png'}. A key without one is a bad sample; see with_pictures().
        With objects, label images or pictures, labels are asked for only by label_from.
    label_fn(name, label): see relabel().

    The shards are read once, and an index of their samples is kept in the cache directory until one
    of them changes. What is left out is counted in Source.notes, with a UserWarning. Ctrl-C ends
    the reading at once.

    wait: False returns while the index of shards in a store is being made for the first time. A
        Loader with shuffle=False begins with the samples that are known; its batches are those of
        the complete list. Whatever needs the list waits for it: a Loader that shuffles (it warns),
        len(), state_dict(), the labels of all samples. Errors in later shards come from these.
        There are no warnings of what is left out: see Source.notes.

    FileNotFoundError: `paths`. ValueError: they hold something else, or several parts and no split.
    RuntimeError: what is wrong with the content of a file, with path and offset. StoreError: what
    is wrong with a store, or the right to read it.
    """
    fields = _fields_of(
        image_from, label_from, targets_from, objects_from, label_image_from, pictures_from
    )
    return _opened("tar", paths, split, label_fn, fields, store, wait)


def parquet(
    paths: Path | Sequence[Path],
    *,
    split: str | None = None,
    image_from: str | None = None,
    label_from: str | None = None,
    targets_from: Sequence[str] = (),
    objects_from: str | None = None,
    label_image_from: str | None = None,
    pictures_from: Mapping[str, Path] | None = None,
    label_fn: LabelFn | None = None,
    store: Store | None = None,
) -> _core.Source:
    """Parquet files with an image per row, as the Hugging Face Hub has them. No package is needed
    to read them.

    image_from: a column of binary values, or a struct with `bytes`; default image, img, jpg, jpeg,
        png, webp, picture or pixels, else the only struct with `bytes`.
    label_from: a column of integers or text, or 'none'; default label, labels, class, fine_label or
        cls. The names of classes are those of the library `datasets`, if it wrote the file.
    targets_from: columns of numbers, or of lists of one shape; see tar().
    objects_from: a column of structs of lists, or of lists of structs, with bbox and category, and
        perhaps id, area and iscrowd, as huggingface() takes them; or columns of lists, as
        'boxes=bbox,labels=category'. A suffix says what boxes are; see tar(). Null and empty lists
        are no objects. Classes have the names of a ClassLabel, and pictures the numbers of a column
        image_id.
    label_image_from: a column as for image_from.
    pictures_from: columns, by the pictures' names.

    Everything else as in tar().
    """
    fields = _fields_of(
        image_from, label_from, targets_from, objects_from, label_image_from, pictures_from
    )
    return _opened("parquet", paths, split, label_fn, fields, store)


def tfrecord(
    paths: Path | Sequence[Path],
    *,
    split: str | None = None,
    image_from: str | None = None,
    label_from: str | None = None,
    targets_from: Sequence[str] = (),
    objects_from: str | None = None,
    label_image_from: str | None = None,
    pictures_from: Mapping[str, Path] | None = None,
    label_fn: LabelFn | None = None,
    store: Store | None = None,
) -> _core.Source:
    """TFRecord files of tf.train.Example messages. TensorFlow is not needed to read them.

    image_from: a key; default image/encoded, else image_raw, else image.
    label_from: a key of an integer or a text, or 'none'; default image/class/label, else label.
        Integers are labels as they are: ImageNet's files of the TensorFlow scripts count from 1, so
        that class 0 has no samples; relabel(source, lambda name, label: label - 1,
        source.classes[1:]) counts from 0.
    targets_from: keys of integers or floats, as many in every sample; see tar().
    objects_from: the beginning of the keys of objects, 'image/object': bbox/xmin, ymin, xmax and
        ymax, which are shares of image/width and image/height; class/label, or else class/text;
        and perhaps area, is_crowd and mask (PNGs). Pictures have the number in image/source_id.
    label_image_from: a key, as 'image/segmentation/class/encoded'.
    pictures_from: keys, by the pictures' names.

    Everything else as in tar().
    """
    fields = _fields_of(
        image_from, label_from, targets_from, objects_from, label_image_from, pictures_from
    )
    return _opened("tfrecord", paths, split, label_fn, fields, store)


def mds(
    paths: Path | Sequence[Path],
    *,
    split: str | None = None,
    image_from: str | None = None,
    label_from: str | None = None,
    targets_from: Sequence[str] = (),
    objects_from: str | None = None,
    label_image_from: str | None = None,
    pictures_from: Mapping[str, Path] | None = None,
    label_fn: LabelFn | None = None,
    store: Store | None = None,
) -> _core.Source:
    """Shards of MosaicML Streaming: a folder with index.json, or its .mds files.

    image_from: a column with the bytes of files; default image, jpg, jpeg, png, img or x.
    label_from: a column of integers or text, or 'none'; default label, labels, class, target or y.
    targets_from: columns of numbers, or of arrays of fixed shape; see tar().
    objects_from: a column of JSON (json, str), as in tar(), or columns of arrays (ndarray), as
        'boxes,labels' or 'boxes=corners,labels=kinds:xyxy'; ids, area and iscrowd may be among
        them.
    label_image_from: a column as for image_from.
    pictures_from: columns, by the pictures' names.

    Everything else as in tar().
    """
    fields = _fields_of(
        image_from, label_from, targets_from, objects_from, label_image_from, pictures_from
    )
    return _opened("mds", paths, split, label_fn, fields, store)


def csv(
    paths: Path | Sequence[Path],
    *,
    split: str | None = None,
    image_from: str | None = None,
    label_from: str | None = None,
    targets_from: Sequence[str] = (),
    pictures_from: Mapping[str, Path] | None = None,
    label_fn: LabelFn | None = None,
    store: Store | None = None,
) -> _core.Source:
    """A list of image files and labels, in the order of the list: CSV (.csv), TSV (.tsv) or JSON
    lines (.jsonl, .ndjson). Paths are relative to the list's folder.

    image_from: the column of paths; default path, file, file_name, filename, filepath, image or
        image_path. Without a header it is the first column.
    label_from: the column of labels, integers or text, or 'none'; default label, labels, class,
        class_name, category, target or y. Without a header it is the second column.
    targets_from: columns of numbers, of several with spaces or semicolons between them, or of
        arrays in JSON; see tar().
    pictures_from: columns of paths, by the pictures' names.

    Everything else as in tar().
    """
    fields = _fields_of(image_from, label_from, targets_from, pictures_from=pictures_from)
    return _opened("csv", paths, split, label_fn, fields, store)


def files(
    paths: Sequence[Path],
    labels: Sequence[int] | Sequence[str],
    *,
    classes: Sequence[str] | None = None,
    root: Path = "",
) -> _core.Source:
    """Image files in the order given.

    paths: relative to `root`, and that to the current folder of the time of this call. A file that
        is missing is a bad sample, as everywhere.
    labels: an int for each path, or a text that names its class; the texts, sorted, are the
        classes.
    classes: the names of classes 0, 1, ..., if labels are ints; default: the numbers.

    FileNotFoundError: `root`. ValueError: no paths, not as many labels as paths, a label that is
    negative or has no class. TypeError: paths or labels of another kind.
    """
    if isinstance(paths, (str, bytes, os.PathLike)):
        raise TypeError(f"paths is {paths!r}, must be a sequence of paths")
    names = [os.fsencode(path) for path in paths]
    numbers, class_names = numbered(labels, classes)
    return _listed_files(names, array("i", numbers), class_names, absolute(os.fspath(root)))


def memory(
    images: Sequence[Any],
    labels: Sequence[int] | Sequence[str],
    *,
    classes: Sequence[str] | None = None,
) -> _core.Source:
    """Encoded images (the bytes of JPEG, PNG, ... files) in memory, in the order given. A sample's
    name is '#17'. They are read where they are, without the interpreter lock.

    images: bytes, and memoryviews of bytes, are kept and not copied; everything else with the
        buffer protocol (bytearray, NumPy's arrays) is copied here, because it could change.
    labels, classes: as in files().

    A pickle holds the images. ValueError, TypeError: as in files().
    """
    if isinstance(images, (str, bytes, bytearray, memoryview)):
        raise TypeError(f"images is of {type(images)}, must be a sequence of encoded images")
    kept = [_kept(image, i) for i, image in enumerate(images)]
    numbers, class_names = numbered(labels, classes)
    return _listed_images(kept, array("i", numbers), class_names)


def huggingface(
    dataset: Any,
    *,
    image_from: str | None = None,
    label_from: str | None = None,
    targets_from: Sequence[str] = (),
    objects_from: str | None = None,
    label_image_from: str | None = None,
    pictures_from: Mapping[str, str] | None = None,
    box_format: str = "xywh",
) -> _core.Source:
    """A datasets.Dataset with a column of type Image, in the order of the data set after shuffle(),
    select(), filter() and so on. The encoded images are read where the library `datasets` has them
    (in memory or in mapped files), without PIL and the interpreter lock. Formats and transforms
    (with_format(), set_transform()) play no part. A sample's name is '#17'.

    image_from: the column; default: the one of type Image; of several the first of image, img, jpg,
        jpeg, png, webp, picture and pixels.
    label_from: a column of integers (with names, if it is a ClassLabel) or of text, or 'none';
        default label, labels, class, fine_label, cls, else the only ClassLabel.
    targets_from: columns of numbers, of lists of one shape, or of texts, for batch.targets: as
        with_targets() takes them, so they are copied; ':int32[]' behind a column of lists of
        different lengths. A text that is null is a bad sample.
    objects_from: a column of the objects on each picture, 'objects' for example, which move with
        the pixels (see with_annotations()): bbox and category, as fields of lists or a list of
        objects, and perhaps id, area and iscrowd. Also taken are boxes; label, labels,
        category_id and categories; ids and bbox_id; is_crowd. Other fields play no part. They are
        copied. Classes have the names of a ClassLabel, and pictures the numbers of a column
        image_id.
    label_image_from: a column of type Image whose PNGs have a class for each pixel.
    pictures_from: columns of type Image, by the names of the pictures (see with_pictures()).
    box_format: that of the boxes; 'xywh' is COCO's.
    With objects, label images or pictures, a column of labels is asked for only by label_from.

    An image that is stored as a path alone is that file. A pickle holds the pickled data set.

    TypeError: an IterableDataset, a DatasetDict, or something else. ValueError: there is no such
    column, an image or a label is null (with the row), or a label is negative; objects, as in
    with_annotations().
    """
    fields = _fields_of(image_from, label_from, targets_from)
    asked = {"objects_from": objects_from, "label_image_from": label_image_from}
    carried = {each: _field(each, name) for each, name in asked.items() if name is not None}
    for each, name in (pictures_from or {}).items():
        carried[f"pictures_from[{each!r}]"] = _field(f"pictures_from[{each!r}]", name)
    for each, name in carried.items():
        check_column(dataset, f"{each} is", name)
    root = os.getcwd()
    labels = "none" if carried and label_from is None else label_from
    source = _from_dataset(dataset, image_from, labels, root)
    if fields.targets:
        source = with_targets(source, {name: values_of(dataset, name) for name in fields.targets})
    if objects_from is not None:
        rows, names = objects_of(dataset, objects_from)
        source = with_annotations(source, rows, class_names=names, box_format=box_format)
    if label_image_from is not None:
        images = _from_dataset(dataset, label_image_from, "none", root)
        source = _with_label_images(source, images)
    if pictures_from:
        others = {
            each: _from_dataset(dataset, name, "none", root)
            for each, name in pictures_from.items()
        }
        source = with_pictures(source, others)
    return source


def synthetic(
    samples: int, size: int | tuple[int, int] = 224, classes: int = 10, seed: int = 0
) -> _core.Source:
    """Synthetic images without a disk: a pattern per class and noise per sample. For tests, and to
    see how fast a trainer is without its data.
    """
    height, width = height_and_width("size", size)
    for field, value in (("samples", samples), ("classes", classes)):
        if not isinstance(value, int) or not 1 <= value < 1 << 31:
            raise ValueError(f"{field} is {value!r}, must be a whole number of at least 1")
    return _synthetic(samples, height, width, classes, seed)


def relabel(
    source: _core.Source,
    labels: LabelFn | Sequence[int],
    classes: Sequence[str] | None = None,
) -> _core.Source:
    """Returns the source with other labels: a sequence of one int per sample id, or a function of
    (name, label), called once per sample, here: no Python runs when pixels are read.

    classes: the names by label, if they change, too. They are not compared with the labels: one
        beyond them, or -1 for "none", stays as it is.

    ValueError: not as many labels as samples, or one that does not fit in 32 bits. TypeError: one
    that is not an int, 0.9 for example.
    """
    if callable(labels):
        labels = [labels(source.name(i), source.label(i)) for i in range(len(source))]
    names = source.classes if classes is None else classes
    return _relabelled(source, [whole(label, i) for i, label in enumerate(labels)], list(names))


# The functions below make a source from what a pickle of it holds.


def _relabelled(source: _core.Source, labels: Sequence[int], classes: list[str]) -> _core.Source:
    _core.wait_for(source)  # without the interpreter lock
    return made(
        _core.relabel(source, list(labels), classes),
        _relabelled,
        lambda result: (source, array("i", result.labels()), classes),
        shows=[source],
    )


def _synthetic(*arguments: int) -> _core.Source:
    return made(_core.synthetic(*arguments), _synthetic, lambda _: arguments)


def _from_dataset(
    dataset: Any, image_from: str | None, label_from: str | None, root: str
) -> _core.Source:
    return made(
        open_dataset(dataset, image_from, label_from, root),
        _from_dataset,
        # A transform may be a function that cannot be pickled.
        lambda _: (dataset.with_format(None), image_from, label_from, root),
    )


def _with_label_images(source: _core.Source, images: _core.Source) -> _core.Source:
    return made(
        _core.with_label_images(source, images),
        _with_label_images,
        lambda _: (source, images),
        shows=(source,),
    )


def _listed_files(
    paths: list[bytes], labels: Sequence[int], classes: list[str], root: str
) -> _core.Source:
    if not os.path.isdir(root):
        raise_missing(root)
    return made(
        _core.list_files(paths, list(labels), classes, root),
        _listed_files,
        lambda result: (paths, array("i", result.labels()), classes, root),
    )


def _listed_images(
    images: list[bytes | memoryview], labels: Sequence[int], classes: list[str]
) -> _core.Source:
    return made(
        _core.list_images(images, list(labels), classes),
        _listed_images,
        lambda result: ([bytes(each) for each in images], array("i", result.labels()), classes),
    )


def _found(
    kind: str,
    path: str | list[str],
    split: str,
    fields: Fields,
    store: Store | None,
    wait: bool = True,
) -> _core.Source:
    """`kind`: the name of a function above."""
    there = absolute(path)
    return made(
        _at(kind, path, split, fields, store, wait),
        _found,
        lambda _: (kind, there, split, fields, store),
    )


def _at(
    kind: str,
    path: str | list[str],
    split: str,
    fields: Fields,
    store: Store | None,
    wait: bool,
) -> _core.Source:
    options = options_for(path, store)
    if isinstance(path, str) and kind == "folder":
        return _core.folder(path, SPLITS[split], options)
    if isinstance(path, str) and kind == "cifar":
        return _core.cifar(path, SPLITS[split], options)
    if isinstance(path, str) and kind == "open" and (os.path.isdir(path) or is_address(path)):
        return _core.open(path, SPLITS[split], *fields, options, wait)
    return _core.open_blobs(find_blobs(kind, path, split, options), *fields, options, wait)


# Checks of the functions at the top.


def _opened(
    kind: str,
    paths: Path | Sequence[Path],
    split: str | None,
    label_fn: LabelFn | None,
    fields: Fields = Fields(),
    store: Store | None = None,
    wait: bool = True,
) -> _core.Source:
    if not yes_or_no("wait", wait) and label_fn is not None:
        raise ValueError("wait is False, but label_fn= needs the labels of all samples")
    part = "all" if split is None else split
    choose("split", part, SPLITS)
    path: str | list[str]
    if isinstance(paths, (str, bytes, os.PathLike)) or kind in ("folder", "cifar"):
        path = _core.local_path(os.fsdecode(paths))  # type: ignore[arg-type]
        name = _core.shown_path(path)
        check_path(kind, path)
        if split is None:
            check_one_part(kind, path, options_for(path, store))
    else:
        path = [_core.local_path(os.fsdecode(each)) for each in paths]
        name = check_files(path, split)
    source = _found(kind, path, part, fields, store, wait)
    for note in source.notes if wait else ():
        warnings.warn(f"{name}: {note}", stacklevel=3)
    return source if label_fn is None else relabel(source, label_fn)


def _kept(image: Any, place: int) -> bytes | memoryview:
    if type(image) is bytes:
        return image
    try:
        view = memoryview(image)
    except TypeError:
        raise TypeError(
            f"image {place} is of {type(image)}, must be bytes, or have the buffer protocol"
        ) from None
    if type(view.obj) is bytes and view.c_contiguous:
        return view.cast("B")  # a view of our own, which nobody releases
    return view.tobytes()


def _fields_of(
    image_from: object,
    label_from: object,
    targets_from: Sequence[str],
    objects_from: object = None,
    label_image_from: object = None,
    pictures_from: Mapping[str, Path] | None = None,
) -> Fields:
    """TypeError: one that is no text."""
    if isinstance(targets_from, str) or not isinstance(targets_from, Sequence):
        raise TypeError(f"targets_from is {targets_from!r}, must be a sequence of texts")
    targets = tuple(_field(f"targets_from[{i}]", each) for i, each in enumerate(targets_from))
    return Fields(
        _field_or_none("image_from", image_from),
        _field_or_none("label_from", label_from),
        targets,
        objects_from=_field_or_none("objects_from", objects_from),
        label_image_from=_field_or_none("label_image_from", label_image_from),
        pictures_from=_pictures_from(pictures_from),
    )


def _pictures_from(fields_by_name: Mapping[str, Path] | None) -> tuple[str, ...]:
    if fields_by_name is not None and not isinstance(fields_by_name, Mapping):
        raise TypeError(f"pictures_from is {fields_by_name!r}, must be a dict of fields by name")
    fields = []
    for name, value in (fields_by_name or {}).items():
        path = os.fspath(value) if isinstance(value, os.PathLike) else value
        field = _field(f"pictures_from[{name!r}]", path)
        # A pickle of the source may be read in another folder.
        fields.append(f"{name}={os.path.abspath(field) if os.path.isdir(field) else field}")
    return tuple(fields)


def _field_or_none(field: str, value: object) -> str:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{field} is {value!r}, must be a text or None")
    return value or ""


def _field(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{field} is {value!r}, must be a text")
    return value
