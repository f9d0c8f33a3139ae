"""FFCV: writes photos/train as one file of its own, and reads a shuffled epoch of it."""

import numpy
from ffcv.fields import IntField, RGBImageField
from ffcv.fields.basics import IntDecoder
from ffcv.fields.rgb_image import RandomResizedCropRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, Squeeze, ToTensor, ToTorchImage
from ffcv.writer import DatasetWriter
from torchvision.datasets import ImageFolder

fields = {"image": RGBImageField(write_mode="jpg", jpeg_quality=90), "label": IntField()}
DatasetWriter("photos.beton", fields, num_workers=1).from_indexed_dataset(ImageFolder("photos/train"))

mean, std = numpy.array([0.485, 0.456, 0.406]), numpy.array([0.229, 0.224, 0.225])
image = [RandomResizedCropRGBImageDecoder((64, 64)), RandomHorizontalFlip()]
image += [NormalizeImage(255 * mean, 255 * std, numpy.float32), ToTensor(), ToTorchImage()]
loader = Loader(
    "photos.beton",
    batch_size=16,
    num_workers=2,
    order=OrderOption.RANDOM,
    drop_last=False,
    seed=1,
    pipelines={"image": image, "label": [IntDecoder(), ToTensor(), Squeeze()]},
)
taken = []
for images, labels in loader:
    taken += labels.tolist()
print("samples", len(taken))
print("labels", sorted(taken))
