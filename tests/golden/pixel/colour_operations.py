"""The operations of decode/pixel on colours, as Pillow and torchvision do them, and draws of their numbers.

Without torchvision (Pillow alone) the functions that it would call are called directly.
"""
import numpy
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

try:
    import torch
    import torchvision
    from torchvision.transforms import functional as torchvision_functional

    torch.set_num_threads(1)
    try:
        from torchvision.transforms.v2 import functional as torchvision_functional
    except ImportError:
        pass
    F = torchvision_functional
except ImportError:
    torch = torchvision = F = None


def hue(image, factor):
    """torchvision's adjust_hue on a PIL image, for a Python without torchvision."""
    h, s, v = image.convert("HSV").split()
    turned = numpy.array(h, dtype=numpy.uint8) + numpy.int32(factor * 255).astype(numpy.uint8)
    return Image.merge("HSV", (Image.fromarray(turned), s, v)).convert("RGB")


def gamma(image, exponent):
    """torchvision's adjust_gamma on a PIL image, for a Python without torchvision."""
    return image.point([int((255 + 1 - 1e-3) * pow(v / 255.0, exponent)) for v in range(256)] * 3)


def only_pillow():
    return {
        "brightness": lambda image, f: ImageEnhance.Brightness(image).enhance(f),
        "contrast": lambda image, f: ImageEnhance.Contrast(image).enhance(f),
        "saturation": lambda image, f: ImageEnhance.Color(image).enhance(f),
        "hue": hue,
        "gamma": gamma,
        "sharpness": lambda image, f: ImageEnhance.Sharpness(image).enhance(f),
        "solarize": ImageOps.solarize,
        "posterize": ImageOps.posterize,
        "grayscale": lambda image: Image.merge("RGB", (image.convert("L"),) * 3),
        "invert": ImageOps.invert,
        "equalize": ImageOps.equalize,
        "autocontrast": ImageOps.autocontrast,
        "pillow_blur": lambda image, radius: image.filter(ImageFilter.GaussianBlur(radius)),
    }


def operations():
    """Returns name -> function(image, *numbers) on PIL images."""
    if F is None:
        return only_pillow()
    return {
        "brightness": F.adjust_brightness,
        "contrast": F.adjust_contrast,
        "saturation": F.adjust_saturation,
        "hue": F.adjust_hue,
        "gamma": F.adjust_gamma,
        "sharpness": F.adjust_sharpness,
        "solarize": F.solarize,
        "posterize": F.posterize,
        "grayscale": lambda image: F.rgb_to_grayscale(image, 3),
        "invert": F.invert,
        "equalize": F.equalize,
        "autocontrast": F.autocontrast,
        "pillow_blur": only_pillow()["pillow_blur"],
        "gaussian_blur": lambda image, kx, ky, sx, sy: F.gaussian_blur(image, [int(kx), int(ky)], [sx, sy]),
    }


def draw_numbers(rng, name, width, height):
    """Returns the numbers of one operation on an image of this size."""
    if name in ("brightness", "contrast", "saturation", "sharpness"):
        return (rng.choice([0.0, 1.0, 2.0]) if rng.randrange(8) == 0 else rng.uniform(0, 2.5),)
    if name == "hue":
        return (rng.choice([-0.5, 0.0, 0.5]) if rng.randrange(8) == 0 else rng.uniform(-0.5, 0.5),)
    if name == "gamma":
        return (rng.choice([0.0, 1.0, 2.2]) if rng.randrange(8) == 0 else rng.uniform(0, 4),)
    if name == "solarize":
        return (float(rng.randrange(257)) if rng.randrange(2) else rng.uniform(0, 256),)
    if name == "posterize":
        return (rng.randint(1, 8),)
    if name == "pillow_blur":
        return (rng.uniform(0, 12) if rng.randrange(8) == 0 else rng.uniform(0.1, 2.0),)
    if name == "gaussian_blur":
        # 23 for SimCLR at 224 px; others are any odd numbers that the image has room for.
        kernel = lambda size: min(23 if rng.randrange(2) else rng.randrange(1, 32, 2), (size - 1) // 2 * 2 + 1)
        return (kernel(width), kernel(height), rng.uniform(0.1, 2.0), rng.uniform(0.1, 2.0))
    return ()


def versions():
    import PIL

    names = [f"Pillow {PIL.__version__}"]
    if F is not None:
        names += [f"torchvision {torchvision.__version__}", f"torch {torch.__version__}"]
        if hasattr(torch.backends, "cpu"):
            names[-1] += f" ({torch.backends.cpu.get_cpu_capability()})"
    return ", ".join(names)
