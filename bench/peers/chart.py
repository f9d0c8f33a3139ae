"""Draws images per second and core of the train section: chart.py RESULT.json OUTPUT -> OUTPUT.svg, OUTPUT.png.
The background is light, so that the chart can be read on light and dark pages."""

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from figures import micros, spread

OURS, THEIRS, INK, PAPER = "#d1570b", "#8a97a6", "#1f2328", "#ffffff"


def main():
    with open(sys.argv[1]) as file:
        result = json.load(file)
    output = Path(sys.argv[2])
    bars = []
    for name, participant in result["sections"].get("train", {}).items():
        if not name.startswith("loader-"):
            rate = 1e6 / spread(micros(participant))["median"]
            bars.append((rate, participant["title"], result["participants"][name]["ours"]))
    if not bars:
        sys.exit("no train section in the result")
    bars.sort()
    plt.rcParams.update({"font.family": "DejaVu Sans", "font.size": 11, "text.color": INK, "svg.hashsalt": "stoker"})
    figure, axes = plt.subplots(figsize=(9, 0.36 * len(bars) + 1.3), facecolor=PAPER)
    rates, titles, ours = zip(*bars)
    drawn = axes.barh(titles, rates, color=[OURS if o else THEIRS for o in ours], height=0.72)
    axes.bar_label(drawn, [f"{rate:,.0f}" for rate in rates], padding=4, color=INK)
    for label, o in zip(axes.get_yticklabels(), ours):
        label.set_color(INK)
        label.set_fontweight("bold" if o else "normal")
    axes.set_title("ImageNet JPEG to augmented 224 x 224 sample: images per second and core", loc="left", color=INK,
                   fontsize=12, x=-0.02)
    axes.set_xlim(0, max(rates) * 1.1)
    axes.xaxis.set_visible(False)
    axes.tick_params(left=False)
    axes.spines[:].set_visible(False)
    axes.set_facecolor(PAPER)
    machine = result["machine"]
    figure.text(0.01, 0.01, f"{machine['cpu']}, one core, CPU time; {result['settings']['images']} images, "
                f"{machine['date'][:10]}, commit {machine['commit'].split('+')[0]}", fontsize=8, color="#57606a")
    figure.tight_layout(rect=(0, 0.03, 1, 1))
    figure.savefig(output.with_suffix(".png"), dpi=110)
    figure.savefig(output.with_suffix(".svg"), metadata={"Date": None})


if __name__ == "__main__":
    main()
