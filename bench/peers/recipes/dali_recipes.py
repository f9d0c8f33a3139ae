"""DALI's CPU operators, for run: one thread, batches of 25 files.

One crop is decoded alone (decoders.image_random_crop); views are crops of one decoding. fn.color_twist changes brightness, contrast,
saturation and hue in one go, which is less work than four operations that round in between, in a random order.
"""
import numpy
import nvidia.dali as dali
from nvidia.dali import fn, types
from nvidia.dali.auto_aug import rand_augment

BATCH = 25
GLOBAL_SCALE, LOCAL_SCALE = (0.4, 1.0), (0.05, 0.4)


def _coin(probability):
    return fn.random.coin_flip(probability=probability, dtype=types.BOOL)


def _around(center, strength):
    return fn.random.uniform(range=(center - strength, center + strength))


def _flip(images):
    return fn.flip(images, horizontal=fn.random.coin_flip())


def _blur(images, kernel, probability):
    if _coin(probability):
        images = fn.gaussian_blur(images, window_size=kernel, sigma=fn.random.uniform(range=(0.1, 2.0)))
    return images


def _jitter(images, brightness, contrast, saturation, hue):
    if _coin(0.8):
        images = fn.color_twist(images, brightness=_around(1, brightness), contrast=_around(1, contrast),
                                saturation=_around(1, saturation), hue=_around(0, 360 * hue))
    if _coin(0.2):
        images = fn.saturation(images, saturation=0.0)
    return images


def _solarize(images):
    if _coin(0.2):
        above = fn.cast(images >= 128, dtype=types.UINT8)
        images = fn.cast_like(images * (1 - above) + (255 - images) * above, images)
    return images


def _crop(images, size, scale, cubic=True):
    how = types.INTERP_CUBIC if cubic else types.INTERP_LINEAR
    return _flip(fn.random_resized_crop(images, size=(size, size), random_area=scale, interp_type=how))


@dali.pipeline_def(enable_conditionals=True)
def _pipeline(source, recipe):
    files = fn.external_source(source=source, dtype=types.UINT8)
    if recipe in ("crop", "randaugment"):
        images = fn.decoders.image_random_crop(files, random_area=(0.08, 1.0), random_aspect_ratio=(3 / 4, 4 / 3))
        images = _flip(fn.resize(images, size=(224, 224), interp_type=types.INTERP_LINEAR))
        if recipe == "randaugment":
            images = rand_augment.rand_augment(images, n=2, m=9, fill_value=0)
        return images
    images = fn.decoders.image(files)
    if recipe == "simclr":
        rows = []
        for _ in range(2):
            row = _jitter(_crop(images, 224, (0.08, 1.0), cubic=False), 0.8, 0.8, 0.8, 0.2)
            rows.append(_solarize(_blur(row, 23, 0.5)))
        return tuple(rows)
    if recipe in ("dino_crops", "dino"):
        wide = [_crop(images, 224, GLOBAL_SCALE) for _ in range(2)]
        narrow = [_crop(images, 96, LOCAL_SCALE) for _ in range(8)]
        if recipe == "dino":
            wide = [_jitter(row, 0.4, 0.4, 0.2, 0.1) for row in wide]
            wide = [_blur(wide[0], 9, 1.0), _solarize(_blur(wide[1], 9, 0.1))]
            narrow = [_blur(_jitter(row, 0.4, 0.4, 0.2, 0.1), 9, 0.5) for row in narrow]
        return tuple(wide + narrow)
    images = fn.resize(images, resize_shorter=256, interp_type=types.INTERP_LINEAR)
    return fn.crop(images, crop=(224, 224))


class Dali:
    title = "DALI, CPU"
    version = f"DALI {dali.__version__}"

    def rows(self, recipe):
        if recipe in ("augmix", "detector"):
            return None
        pending = []
        pipeline = None

        def run(files):
            nonlocal pipeline
            if pipeline is None:
                pipeline = _pipeline(lambda: pending.pop(), recipe, batch_size=BATCH, num_threads=1, device_id=None,
                                     prefetch_queue_depth=1, exec_async=False, exec_pipelined=False)
                pipeline.build()
            arrays = [numpy.frombuffer(data, numpy.uint8) for data in files]
            pending.extend(arrays[first : first + BATCH] for first in range(0, len(arrays), BATCH))
            for _ in range(len(pending)):
                pipeline.run()

        return run
