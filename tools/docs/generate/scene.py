"""Four drawn scenes for the gallery: shapes, straight edges and strong colours, by which one sees what a stage does.

Each has three objects (house, tree, balloon) with boxes and outlines. Coordinates are pixels of a picture of SIZE.
"""
import math
from typing import NamedTuple

from PIL import Image, ImageDraw, ImageFilter

SIZE = (320, 240)  # width, height
NAMES = ["house", "tree", "balloon"]
_FINE = 3  # drawn so many times larger, for smooth edges


class Scene(NamedTuple):
    image: Image.Image
    outlines: list[list[tuple[float, float]]]  # by object

    @property
    def boxes(self):
        return [[min(x for x, _ in line), min(y for _, y in line), max(x for x, _ in line), max(y for _, y in line)]
                for line in self.outlines]


class _Look(NamedTuple):
    sky: tuple
    horizon: tuple
    ground: tuple
    wall: tuple
    roof: tuple
    leaves: tuple
    balloon: tuple
    house_x: int
    tree_x: int
    balloon_at: tuple


_LOOKS = [
    _Look((60, 130, 215), (200, 228, 250), (96, 158, 70), (240, 224, 190), (186, 62, 48), (40, 110, 50), (238, 180, 34), 38, 236, (196, 62)),
    _Look((24, 30, 74), (96, 84, 140), (44, 66, 72), (176, 160, 190), (84, 50, 96), (30, 70, 66), (220, 70, 110), 186, 66, (96, 70)),
    _Look((244, 140, 76), (252, 220, 160), (196, 160, 84), (250, 246, 236), (40, 120, 140), (110, 120, 40), (110, 50, 150), 110, 270, (44, 60)),
    _Look((170, 190, 200), (232, 238, 242), (244, 247, 250), (150, 90, 60), (70, 70, 80), (60, 110, 100), (30, 140, 200), 200, 40, (120, 80)),
]


def _ellipse(x, y, across, high, points=24):
    turns = [2 * math.pi * i / points for i in range(points)]
    return [(x + across * math.cos(turn), y + high * math.sin(turn)) for turn in turns]


def scene(number: int) -> Scene:
    """Draws one of the four."""
    look = _LOOKS[number]
    width, height = SIZE
    image = Image.new("RGB", (width * _FINE, height * _FINE))
    draw = ImageDraw.Draw(image)

    def fill(points, colour):
        draw.polygon([(x * _FINE, y * _FINE) for x, y in points], fill=colour)

    def rows(top, bottom, above, below):
        for y in range(int(top * _FINE), int(bottom * _FINE)):
            share = (y / _FINE - top) / (bottom - top)
            draw.line([(0, y), (width * _FINE, y)], fill=tuple(round(a + (b - a) * share) for a, b in zip(above, below)))

    rows(0, 160, look.sky, look.horizon)
    rows(160, height, look.ground, tuple(round(0.6 * each) for each in look.ground))
    hill = tuple(round(0.8 * each) for each in look.ground)
    fill([(x, 166 - 22 * math.sin(x / 52 + number) ** 2) for x in range(0, width + 1, 4)] + [(width, 170), (0, 170)], hill)

    # The balloon, with stripes and a basket.
    x, y = look.balloon_at
    balloon = _ellipse(x, y, 30, 36)
    fill(balloon, look.balloon)
    fill(_ellipse(x, y, 18, 36), (250, 250, 245))
    fill(_ellipse(x, y, 7, 36), look.balloon)
    for side in (-7, 7):
        draw.line([((x + side * 1.8) * _FINE, (y + 29) * _FINE), ((x + side) * _FINE, (y + 48) * _FINE)], fill=(70, 50, 40), width=_FINE)
    fill([(x - 8, y + 46), (x + 8, y + 46), (x + 6, y + 56), (x - 6, y + 56)], (120, 80, 50))
    balloon[6:7] = [(x + 8, y + 46), (x + 6, y + 56), (x - 6, y + 56), (x - 8, y + 46)]

    # The house: wall, roof, door, window, chimney.
    x = look.house_x
    fill([(x + 62, 84), (x + 74, 84), (x + 74, 112), (x + 62, 112)], tuple(round(0.8 * each) for each in look.roof))
    fill([(x, 128), (x + 92, 128), (x + 92, 200), (x, 200)], look.wall)
    fill([(x - 8, 130), (x + 46, 86), (x + 100, 130)], look.roof)
    fill([(x + 14, 152), (x + 36, 152), (x + 36, 200), (x + 14, 200)], (110, 66, 40))
    fill([(x + 52, 148), (x + 80, 148), (x + 80, 174), (x + 52, 174)], (120, 190, 230) if number != 1 else (255, 226, 120))
    for line in ([(x + 66, 148), (x + 66, 174)], [(x + 52, 161), (x + 80, 161)]):
        draw.line([(a * _FINE, b * _FINE) for a, b in line], fill=(250, 250, 250), width=2 * _FINE)
    house = [(x - 8, 130), (x + 46, 86), (x + 62, 99), (x + 62, 84), (x + 74, 84), (x + 74, 109), (x + 100, 130), (x + 92, 130),
             (x + 92, 200), (x, 200), (x, 130)]

    # The tree.
    x = look.tree_x
    fill([(x - 5, 170), (x + 5, 170), (x + 7, 212), (x - 7, 212)], (96, 64, 40))
    tree = [(x, 92), (x + 20, 126), (x + 12, 126), (x + 28, 152), (x + 16, 152), (x + 34, 180), (x + 6, 180), (x + 7, 212), (x - 7, 212),
            (x - 6, 180), (x - 34, 180), (x - 16, 152), (x - 28, 152), (x - 12, 126), (x - 20, 126)]
    fill(tree[:7] + tree[9:], look.leaves)

    # Pebbles: small detail at known places, which blurs and sharpness change.
    for i in range(60):
        a, b = (i * 97) % width, 206 + (i * 53) % 32
        fill(_ellipse(a, b, 1.2 + i % 3, 0.9, 8), (60, 60, 60) if i % 2 else (235, 235, 225))
    return Scene(image.resize(SIZE, Image.Resampling.BOX), [house, tree, balloon])


def lines_of(image: Image.Image) -> Image.Image:
    """The edges of a picture, white on black: a control map."""
    edges = image.convert("L").filter(ImageFilter.FIND_EDGES).point(lambda value: 255 if value > 40 else 0)
    ImageDraw.Draw(edges).rectangle([(0, 0), (edges.width - 1, edges.height - 1)], outline=0)
    return edges.convert("RGB")
