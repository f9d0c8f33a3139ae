"""The participants: their names, in the order of the table, and where each runs. To add one, add a
line here, a file beside this one (peer.py) or a Method (native/method.h), and a line in
requirements/."""

from dataclasses import dataclass

ALL = ("train", "eval", "cifar")
IMAGES = ("train", "eval")


@dataclass(frozen=True)
class Participant:
    name: str
    title: str
    program: str  # a module beside peer.py (and a class in it), a method of peers_native, or the Loader's pixels
    environment: str  # of requirements/; "native" or "loader": C++ of this repository
    modes: tuple = IMAGES
    ours: bool = False


def _native(name, title, modes=IMAGES, ours=False):
    return Participant(name, title, name, "native", modes, ours)


PARTICIPANTS = (
    _native("stoker-fast", "stoker fast", ALL, ours=True),
    _native("stoker-row-index", "stoker fast, row index", IMAGES, ours=True),
    _native("stoker-index-8", "stoker fast, index of 8 MCUs", IMAGES, ours=True),
    _native("stoker-exact", "stoker exact", ALL, ours=True),
    _native("stoker-exact-row-index", "stoker exact, row index", IMAGES, ours=True),
    _native("stoker-exact-index-8", "stoker exact, index of 8 MCUs", IMAGES, ours=True),
    Participant("loader-fast", "stoker Loader, fast, from files", "fast", "loader", ("train",), ours=True),
    Participant("loader-exact", "stoker Loader, exact, from files", "exact", "loader", ("train",), ours=True),
    _native("stock-turbo", "libjpeg-turbo, every trick", ALL),
    _native("naive", "libjpeg-turbo, naive"),
    _native("turbojpeg", "TurboJPEG API", ("cifar",)),
    Participant("pillow", "Pillow", "pillow_plain", "light", ALL),
    Participant("torchvision-pil", "Pillow + torchvision, float", "torchvision_peers:Pil", "torch", ALL),
    Participant("torchvision-pil-u8", "Pillow + torchvision, uint8", "torchvision_peers:PilBytes", "torch", ALL),
    Participant("torchvision-v2", "torchvision decode_jpeg + v2", "torchvision_peers:V2", "torch", ALL),
    Participant("torchcodec", "torchcodec decode_jpeg + v2", "torchcodec_jpeg", "torch", ALL),
    Participant("litdata", "LitData, from its chunks", "litdata_chunks", "torch", ("train",)),
    Participant("albumentationsx", "AlbumentationsX, OpenCV", "albumentations_x", "torch"),
    Participant("opencv", "OpenCV", "opencv", "light", ALL),
    Participant("grain", "Grain + OpenCV", "grain_records", "light"),
    Participant("jpegli", "jpegli + OpenCV", "jpegli_opencv", "light", ALL),
    Participant("kornia-rs", "kornia-rs, libjpeg-turbo", "kornia_images", "light"),
    Participant("zune-jpeg", "kornia-rs, zune-jpeg", "kornia_images:Zune", "light"),
    Participant("tf-data", "tf.data", "tfdata", "tensorflow"),
    Participant("tf-data-aa", "tf.data, antialiased", "tfdata:Antialiased", "tensorflow"),
    Participant("dali", "NVIDIA DALI, CPU", "dali", "dali"),
    Participant("dali-dynamic", "NVIDIA DALI, dynamic mode, CPU", "dali_dynamic", "dali"),
    Participant("ffcv", "FFCV", "ffcv_loader", "ffcv", ("train",)),
    Participant("spdl", "SPDL", "spdl_io", "light"),
    Participant("mlx-data", "mlx-data", "mlx_data", "light", ("train",)),
)
