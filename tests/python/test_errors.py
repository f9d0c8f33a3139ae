"""Bad input: one clear exception each, with the path and the numbers."""

from __future__ import annotations

import errno
import pickle
import sys
import types

import numpy as np
import pytest

import stoker
from stoker import augment
from conftest import damaged_folder, jpeg, picture


def test_a_path_that_is_not_there(tmp_path):
    for opener in (stoker.folder, stoker.open, lambda p: stoker.cifar(p, "train")):
        with pytest.raises(FileNotFoundError) as caught:
            opener(tmp_path / "nowhere")
        assert caught.value.errno == errno.ENOENT
        assert caught.value.filename == str(tmp_path / "nowhere")
    file = tmp_path / "file"
    file.write_bytes(b"x")
    with pytest.raises(NotADirectoryError, match="file"):
        stoker.folder(file)


def test_folders_with_nothing_in_them(tmp_path):
    with pytest.raises(RuntimeError, match=f"{tmp_path}: no class folders .* it is empty"):
        stoker.folder(tmp_path)
    (tmp_path / "cat.jpg").write_bytes(b"")
    for opener in (stoker.folder, stoker.open):
        with pytest.raises(RuntimeError, match=rf"{tmp_path}: no class .*1 entries: cat\.jpg"):
            opener(tmp_path)
    (tmp_path / "cat").mkdir()
    for opener in (stoker.folder, stoker.open):
        with pytest.raises(RuntimeError, match=f"{tmp_path}: no images"):
            opener(tmp_path)
    with pytest.raises(RuntimeError, match=str(tmp_path)):
        stoker.cifar(tmp_path, "train")


def test_training_and_test_images_are_not_mixed_by_default(tmp_path):
    for part in ("train", "val"):
        (tmp_path / part / "cat").mkdir(parents=True)
        (tmp_path / part / "cat" / "1.jpg").write_bytes(jpeg(picture(1)))
    for opener in (stoker.folder, stoker.open):
        with pytest.raises(ValueError, match="holds train, val: say split="):
            opener(tmp_path)
    assert len(stoker.folder(tmp_path, split="train")) == 1
    assert len(stoker.folder(tmp_path, split="all")) == 2
    (tmp_path / "train" / "test_batch.bin").write_bytes(b"\0" * 3073)
    with pytest.raises(ValueError, match="CIFAR"):
        stoker.open(tmp_path / "train")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size is 0, must be 1 to"),
        ({"batch_size": "8"}, "batch_size is '8'"),
        ({"batch_size": 2**40}, "batch_size is 1099511627776"),
        ({"size": 0}, "size is 0"),
        ({"size": (8, 8, 3)}, r"size is \(8, 8, 3\)"),
        ({"seed": -1}, "seed is -1"),
        ({"workers": 5000}, "^workers is 5000, must be"),
        ({"workers": -1}, "^workers is -1, must be 0 to 1024, or None: one per core"),
        ({"workers": -7}, "^workers is -7, must be 0"),
        ({"io_threads": -1}, "^io_threads is -1"),
        ({"ring_depth": 0}, "^ring_depth is 0"),
        ({"max_bad": "few"}, "max_bad is 'few', must be a number"),
        ({"epochs": "two"}, "epochs is 'two', must be a number"),
        (
            {"augment": stoker.resize_center_crop(8), "size": 16},
            "resize_center_crop: short is 8, must be 0 or",
        ),
        (
            {"augment": "random_resized_crop(8)", "size": 16},
            "^augment: rows of 16x16 pixels, but 'random_resized_crop.8.' ends with images of 8x8",
        ),
        ({"size": 40000}, "^augment: rows of 40000x40000 pixels"),
        ({"leases": 0}, "leases is 0"),
        ({"leases": 4, "ring_depth": 3}, "leases is 4, must be 1 to 3"),
        ({"device": "gpu"}, "gpu"),
        ({"device": "cpu:x"}, "cpu:x"),
        ({"dtype": "int8"}, "dtype is 'int8', must be one of 'uint8', 'float32'"),
        ({"layout": "CHWN"}, "layout is 'CHWN'"),
        ({"layout": "NCHW"}, "channels_last"),
        ({"mean": (0, 0, 0)}, "mean and std are for dtype"),
        ({"dtype": "float32", "std": (1, 0, 1)}, "std is .* must be positive"),
        ({"dtype": "float32", "mean": (1, 2)}, "mean is .* a number or three"),
        ({"dtype": "float32", "mean": "grey"}, "mean is 'grey'"),
        ({"dtype": "float32", "mean": (123.7, 116.3, 103.5)}, "mean is .* pixels / 255"),
        ({"dtype": "float32", "std": (58.4, 57.1, 57.4)}, "std is .* pixels / 255"),
        ({"last_batch": "keep"}, "last_batch is 'keep', must be one of 'pad', 'drop', 'wrap'"),
        (
            {"batch_size": 101, "last_batch": "drop"},
            'batch_size is 101, and an epoch has 100 samples: .*last_batch="pad"',
        ),
        (
            {"batch_size": 51, "last_batch": "drop", "rank": 0, "world": 2, "seed": 1},
            "batch_size is 51 on each of 2 ranks",
        ),
        ({"rank": 2, "world": 2}, "rank is 2 of a world of 2"),
        ({"rank": "0", "world": 2}, "rank is '0' of a world of 2"),
        ({"rank": 1}, "give both or neither"),
        ({"epochs": 0}, "epochs is 0"),
        ({"max_bad": -1}, "max_bad is -1"),
        ({"on_bad": "ignore"}, "on_bad is 'ignore'"),
        ({"pixels": "good"}, "pixels is 'good'"),
        ({"exif": "maybe"}, "exif is 'maybe'"),
        ({"max_pixels": 0}, "max_pixels is 0"),
    ],
)
def test_arguments_out_of_range(source, options, message):
    with pytest.raises(ValueError, match=message):
        stoker.Loader(source, **options)


def test_augmentations_out_of_range(source):
    for made, message in (
        (lambda: stoker.random_resized_crop(scale=(0.5, 0.2)), r"scale is \(0.5, 0.2\), must be"),
        (lambda: stoker.random_resized_crop(filter="cubic"), "filter is 'cubic', must be one of"),
        (lambda: augment.random_crop(padding=16, mode="reflect"), "16 pixels of padding with mode"),
        (lambda: stoker.cutout(17), "cutout: size is 17, must be inside the image of 16 x 16"),
        (lambda: stoker.cutout(4, value=300), "value is 300, must be 0 to 255"),
        (lambda: stoker.cutout("4"), "size is '4', must be a whole number"),
        (lambda: stoker.color_jitter(hue=0.7), "hue is 0.7, must be -0.5 to 0.5"),
        (lambda: stoker.color_jitter(hue="red"), "hue is 'red', must be a number, or two"),
        (lambda: stoker.color_jitter(hue=float("nan")), "hue is 'nan', must be a number"),
        (lambda: augment.rotate((1, 2, 3)), "degrees is .1, 2, 3., must be a number, or two"),
        (lambda: augment.mix(), "mixup is 0, must be above 0, or cutmix must be"),
        (lambda: augment.mix(1) | stoker.flip(), "mix must be the last stage"),
        (lambda: augment.random_apply("it's"), "random_apply: stages must be stages"),
        (
            lambda: augment.views(stoker.flip(), stoker.flip()) | stoker.flip(),
            "views must stand alone",
        ),
        (lambda: "random_resized_crop(", "column 21 of"),
        (lambda: "no_such_stage", "there is no stage no_such_stage; there are random_resized_crop"),
    ):
        with pytest.raises(ValueError, match=message):
            stoker.Loader(source, augment=made())


def test_things_of_another_kind(source):
    with pytest.raises(TypeError, match="augment is 3, must be stages of stoker.augment"):
        stoker.Loader(source, augment=3)
    with pytest.raises(TypeError):
        stoker.flip() | "flip"
    with pytest.raises(TypeError, match="source is '/data'"):
        stoker.Loader("/data")
    with pytest.raises(IndexError, match="sample 100 of 100"):
        source.name(100)
    with pytest.raises(ValueError, match="3 labels for 100 samples"):
        stoker.relabel(source, [1, 2, 3])
    with stoker.Loader(source) as loader, pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(loader)


def test_nothing_of_the_inside_is_shown(source):
    # Not "make(): incompatible function arguments. The following argument types are supported".
    with pytest.raises(TypeError, match="device is 3, must be a name .* or a torch.device"):
        stoker.Loader(source, batch_size=4, size=8, device=3)
    with pytest.raises(TypeError, match="metadata is 5, must be a function"):
        stoker.Loader(source, batch_size=4, size=8, metadata=5)
    for crop in ((0, 0, 1), (0, 0, 1.5, 1), 4):
        with pytest.raises(ValueError, match="crop is .*, must be \\(x, y, width, height\\)"):
            stoker.crop_resize(picture(1), crop, 8)
        with pytest.raises(ValueError, match="crop is"):
            stoker.decode(jpeg(picture(1)), crop=crop)
    for image in (None, picture(1)):  # PIL's image has no buffer
        with pytest.raises(TypeError, match="image is of <class .*numpy.asarray"):
            stoker.resize(image, 8)
    with pytest.raises(TypeError, match="source is 5, must be made by"):
        stoker.index(5)
    with pytest.raises(ValueError, match="path is None: the source has no image files"):
        stoker.index(stoker.synthetic(3))


def test_labels_are_whole_numbers(pictures):
    for label in (0.9, 1.0, "1", None):
        with pytest.raises(TypeError, match=f"label of sample 0 is {label!r}, must be an int"):
            stoker.folder(pictures, label_fn=lambda name, old, label=label: label)
        with pytest.raises(TypeError, match=f"label of sample 0 is {label!r}"):
            stoker.relabel(stoker.synthetic(3), [label] * 3)
    with pytest.raises(ValueError, match="label of sample 0 is 4294967296, must fit in 32 bits"):
        stoker.relabel(stoker.synthetic(3), [2**32] * 3)
    assert stoker.relabel(stoker.synthetic(2), np.array([-100, 5])).labels() == [-100, 5]


def test_yes_or_no_is_true_or_false(source):
    for options in ({"shuffle": "no"}, {"copy": 2}):
        with pytest.raises(TypeError, match="must be True or False"):
            stoker.Loader(source, **options)


def test_the_host_by_any_of_its_names(source):
    names = ["cpu", "cpu:0", "cpu:1"]
    torch = sys.modules.get("torch")
    names += [] if torch is None else [torch.device("cpu")]
    for device in names:
        with stoker.Loader(source, device=device) as loader:
            assert next(iter(loader)).images.device == "cpu"
    with pytest.raises((RuntimeError, ValueError), match="cuda:0"):
        stoker.Loader(source, device="cuda")
    with pytest.raises(ValueError, match="samples is 0"):
        stoker.synthetic(0)


def test_cuda_is_pytorchs_current_device(source, monkeypatch):
    cuda = types.SimpleNamespace(is_available=lambda: True, current_device=lambda: 3)
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=cuda))
    with pytest.raises((RuntimeError, ValueError), match="cuda:3"):
        stoker.Loader(source, device="cuda")


def test_one_number_stands_for_all_channels(source):
    def first(**options: object) -> bytes:
        with stoker.Loader(source, dtype="float32", shuffle=False, **options) as loader:
            return np.asarray(next(iter(loader)).images).tobytes()

    assert first(mean=0.5, std=0.25) == first(mean=(0.5,) * 3, std=(0.25,) * 3) != first()


def test_sizes_and_crops_may_be_numpy_s():
    pixels = np.asarray(picture(1))
    small = stoker.crop_resize(pixels, np.array([0, 0, 4, 5]), (np.int64(3), 2))
    assert small.shape == (3, 2, 3)


def test_a_gpu_that_is_not_there(source, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert stoker.devices()[0] == "cpu:0"
    if stoker.devices() != ["cpu:0"]:
        pytest.skip("the driver was started before")
    assert stoker.why_no_cuda() != ""
    with pytest.raises(RuntimeError) as caught:
        stoker.Loader(source, device="cuda:0")
    assert stoker.why_no_cuda() in str(caught.value)


def test_a_host_array_asked_for_on_a_gpu(source):
    with stoker.Loader(source) as loader:
        images = next(iter(loader)).images
        assert images.__dlpack_device__() == (1, 0)
        with pytest.raises(BufferError, match=r"on cpu; .*device \(2, 0\)"):
            images.__dlpack__(dl_device=(2, 0))
        with pytest.raises(ValueError, match="stream=7"):
            images.__dlpack__(stream=7)


@pytest.fixture
def damaged(tmp_path):
    """Makes 20 pictures, of which 3 cannot be decoded."""
    damaged_folder(tmp_path / "data", 20, (4, 9, 17))
    return tmp_path


def test_corrupt_files_get_weight_0_and_a_line_each(damaged):
    quarantine = damaged / "bad.jsonl"
    with stoker.Loader(
        stoker.folder(damaged / "data"),
        batch_size=10,
        size=32,
        shuffle=False,
        max_bad=3,
        quarantine=quarantine,
    ) as loader:
        weights = np.concatenate([np.asarray(batch.weights).copy() for batch in loader])
        assert np.flatnonzero(weights == 0).tolist() == [4, 9, 17]
        assert loader.stats()["bad_samples"] == 3
    text = quarantine.read_text()
    assert text.count("\n") == 3
    assert "cat/004.jpg" in text and "truncated" in text


def test_too_many_corrupt_files_end_the_feed_with_their_names(damaged):
    source = stoker.folder(damaged / "data")
    for options in ({"max_bad": 2}, {"on_bad": "fail"}):
        with stoker.Loader(source, batch_size=5, size=32, shuffle=False, **options) as loader:
            with pytest.raises(stoker.FeedError, match=r"cat/\d+.jpg"):
                for _ in loader:
                    pass
            with pytest.raises(stoker.FeedError, match=r"cat/\d+.jpg"):
                for _ in loader:
                    pass
    assert issubclass(stoker.FeedError, RuntimeError)


def test_a_quarantine_file_that_cannot_be_written(damaged):
    with pytest.raises(RuntimeError, match="nowhere/bad.jsonl"):
        stoker.Loader(stoker.folder(damaged / "data"), quarantine=damaged / "nowhere/bad.jsonl")


def test_an_index_that_cannot_be_kept_is_made_anew_each_time(damaged, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/no/such/place")
    assert len(stoker.folder(damaged / "data")) == 20
