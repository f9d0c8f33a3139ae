"""Compares stoker's aims with a result."""

from figures import ratio, samples_per_second, spread, wall_ratio

# This one of torchvision's two participants does the same work: it returns uint8 samples, without
# ToTensor and Normalize.
PIL, MLX, STOCK, TURBOJPEG = "torchvision-pil-u8", "mlx-data", "stock-turbo", "turbojpeg"

# Title, section, our participant, and how many times faster per core than each peer it should be.
RATIOS = (
    ("plain JPEG", "train", "stoker-fast", {PIL: 6.2, MLX: 2.8, STOCK: 2.7, "torchcodec": 4}),
    ("row index", "train", "stoker-row-index", {PIL: 5.6, MLX: 3.1, STOCK: 2.15}),
    ("index of 8 MCUs", "train", "stoker-index-8", {PIL: 8.2, MLX: 3.9, STOCK: 3.6}),
    ("exact", "train", "stoker-exact", {PIL: 5.8, MLX: 1.4, STOCK: 2.5}),
    ("evaluation 256/224", "eval", "stoker-fast", {PIL: 4.9, STOCK: 1.9}),
    ("CIFAR as JPEG", "cifar", "stoker-fast", {PIL: 25, TURBOJPEG: 2}),
    ("plain JPEG, ahead of", "train", "stoker-fast", {"dali": 1, "tf-data": 1, "ffcv": 1, "spdl": 1}),
)
QUALITY = (("mean", 0.3, "MAE to Pillow"), ("worst", 1.2, "MAE, worst image"))
PSNR = 50
RECORDS = 5e6  # samples per second and core
SCALING = 0.97  # times the cores times the decoder's rate on one thread
HEAD = ["what", "measure", "aim", "measured", ""]


def _row(what, measure, sign, aim, value, form="{:.2f}"):
    met = value >= aim if sign == ">=" else value <= aim
    return [what, measure, f"{sign} {aim:g}", form.format(value), "met" if met else "missed"]


def _ratio_rows(result):
    for what, section, ours, peers in RATIOS:
        kept = result["sections"].get(section, {})
        for peer, aim in peers.items():
            if ours in kept and peer in kept:
                yield _row(what, f"x {kept[peer]['title']}", ">=", aim, ratio(kept, peer, ours))


def _quality_rows(result):
    for section in ("train", "eval"):
        participant = result["sections"].get(section, {}).get("stoker-fast")
        if participant and participant["quality"]:
            quality = participant["quality"]
            for key, aim, title in QUALITY:
                yield _row(f"plain JPEG, {section}", title, "<=", aim, quality[key], "{:.3f}")
            if quality["psnr"]:
                yield _row(f"plain JPEG, {section}", "PSNR dB", ">=", PSNR, quality["psnr"], "{:.1f}")


def _scaling_rows(result):
    kept = result["sections"].get("cores", {})
    cores = result["machine"]["cores"]
    for pixels in ("fast", "exact"):
        loader, alone = f"loader-{pixels}", f"stoker-{pixels}, 1 thread"
        one_worker = f"{loader}, 1 thread"
        if loader in kept and alone in kept:
            what = f"Loader, {pixels}, {cores} cores"
            yield _row(what, "images/s, of cores x one thread's", ">=", SCALING,
                       wall_ratio(kept, loader, alone) / cores)
            yield [what, "CPU time, of one thread's", "", f"{ratio(kept, loader, alone):.3f}", ""]
        if loader in kept and one_worker in kept:
            share = wall_ratio(kept, loader, one_worker) / cores
            yield [what, "images/s, of cores x one worker's", "", f"{share:.2f}", ""]


def table(result):
    rows = [*_ratio_rows(result), *_quality_rows(result), *_scaling_rows(result)]
    for participant in result["sections"].get("records", {}).values():
        rate = spread(samples_per_second(participant))["median"]
        rows.append(_row("CIFAR binary, uint8", "million samples/s per core", ">=", RECORDS / 1e6, rate / 1e6))
    return HEAD, rows
