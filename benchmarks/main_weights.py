"""Learns the weights of the main content from labelled pages, and writes web/html/main_weights.toml.

``python benchmarks/main_weights.py [--write]`` first says how good weights are on pages of sites that they were not learnt
from: five times, on a fifth of the sites each. It needs Go, which downloads the pages, and Debian's
documentation (``labelled_pages.py``). A page whose blocks are all known counts as half of one of which three phrases
and three others are.
"""

import pathlib
import sys
import zlib
from collections import defaultdict

import numpy as np
from labelled_pages import BlocksPage, block_texts, labelled_pages
from numpy.typing import NDArray

from nutbeam.web.html.block_features import block_features
from nutbeam.web.html.containers import ContainerMarks
from nutbeam.web.html.main_content import main_blocks

FEATURES = {
    "length": 13, "links": 5, "links_before": 6, "links_after": 6, "links_around": 5, "kind": 13,
    "kind_before": 13, "kind_after": 13, "ends": 3, "distance": 5, "after": 6, "share_1": 7,
    "share_2": 7, "share_3": 7,
}  # fmt: skip
TAGS = (
    "nav aside header footer main article form figure ul ol table section dl dd details blockquote td th "
    "li fieldset address"
)
WORDS = (
    "related commentlist comment comments footer navigation nav menu image sidebar author teaser item "
    "widget bar social share info entry text hentry body document tag tags meta header newsletter"
)
FILE = pathlib.Path(__file__).parents[1] / "web" / "html" / "main_weights.toml"
_BLOCKS_OF_A_PAGE = 60
_WEIGHT_OF_A_PAGE = 3
_PENALTY = 10.0
_FOLDS = 5
Array = NDArray[np.float64]


def matrix(page: BlocksPage, marks: ContainerMarks, words: int) -> Array:
    """Returns a row for each block, with a one for each feature that it has."""
    features = block_features(page.blocks)
    columns = [np.eye(size)[features[name]] for name, size in FEATURES.items()]
    of_containers = marks.of(page.page.containers)
    bits = [[mark >> number & 1 for number in range(words)] for mark in of_containers]
    return np.concatenate((*columns, np.array(bits, float)[page.blocks.containers]), axis=1)


def learn(rows: Array, labels: Array, weights: Array) -> Array:
    """Returns the weights of a logistic regression (the bias is the last), by Newton's method."""
    rows = np.concatenate((rows, np.ones((len(rows), 1))), axis=1)
    penalty = np.full(rows.shape[1], _PENALTY)
    penalty[-1] = 1e-6
    solution = np.zeros(rows.shape[1])
    for _ in range(12):
        chances = 1 / (1 + np.exp(-(rows @ solution)))
        gradient = rows.T @ (weights * (chances - labels)) + penalty * solution
        curvature = (rows * (weights * chances * (1 - chances))[:, None]).T @ rows
        solution -= np.linalg.solve(curvature + np.diag(penalty), gradient)
    return solution


def main() -> None:
    """Prints how good they are, and writes them if wanted."""
    pages = list(labelled_pages())
    names = [*(f"<{tag}>" for tag in TAGS.split()), *WORDS.split()]
    marks = ContainerMarks(names)
    rows, labels, weights, folds = [], [], [], []
    rng = np.random.default_rng(1)
    for page in pages:
        known = np.flatnonzero(np.array(page.labels) >= 0)
        weight = 1.0
        if page.kind != "articles" and len(known):
            weight = _WEIGHT_OF_A_PAGE / len(known)
            chosen = min(len(known), _BLOCKS_OF_A_PAGE)
            weight *= len(known) / chosen
            known = rng.choice(known, chosen, replace=False)
        rows.append(matrix(page, marks, len(names))[known])
        labels.append(np.array(page.labels)[known])
        weights.append(np.full(len(known), weight))
        folds.append(np.full(len(known), zlib.crc32(page.site.encode()) % _FOLDS))
    table = [np.concatenate(each) for each in (rows, labels, weights, folds)]
    _judge(pages, marks, len(names), *table)
    if "--write" in sys.argv[1:]:
        _write(learn(*table[:3]), names)


def _judge(
    pages: list[BlocksPage], marks: ContainerMarks, words: int, *table: NDArray[np.generic]
) -> None:
    rows, labels, weights, folds = table
    by_fold = [
        learn(*(each[folds != fold] for each in (rows, labels, weights))) for fold in range(_FOLDS)
    ]
    scores = defaultdict[str, list[float]](list)
    counts = np.zeros(3)
    for page in pages:
        solution = by_fold[zlib.crc32(page.site.encode()) % _FOLDS]
        sums = matrix(page, marks, words) @ solution[:-1] + solution[-1]
        chars = page.blocks.ends - page.blocks.starts
        is_main = main_blocks(1 / (1 + np.exp(-sums)), chars, page.blocks.pages)
        known = np.array(page.labels)
        if page.kind == "articles":
            lines = block_texts(page.page, page.blocks)
            text = "\n".join(line for line, main in zip(lines, is_main, strict=True) if main)
            right = sum(phrase in text for phrase in page.phrases)
            wrong = sum(phrase in text for phrase in page.others)
            counts += (right, wrong, len(page.phrases) - right)
        else:
            right, wrong, missed = (
                chars[part].sum()
                for part in (
                    is_main & (known == 1),
                    is_main & (known == 0),
                    ~is_main & (known == 1),
                )
            )
            scores[page.kind].append(2 * right / max(1, 2 * right + wrong + missed))
    right, wrong, missed = counts
    print(f"articles: F {2 * right / (2 * right + wrong + missed):.3f} of phrases")
    for kind, values in scores.items():
        print(f"{kind}: F {np.mean(values):.3f} of characters, mean of {len(values)} pages")


def _write(solution: Array, names: list[str]) -> None:
    lines = [
        "# Written by benchmarks/main_weights.py: how much each feature of a block (block_features.py), and each",
        "# word of an element around it (containers.py), speaks for main content, as log odds.",
        f"bias = {solution[-1]:.2f}",
        "",
        "[features]",
    ]
    at = 0
    for name, size in FEATURES.items():
        lines.append(f"{name} = [{', '.join(f'{w:.2f}' for w in solution[at : at + size])}]")
        at += size
    lines += ["", "[words]"]
    lines += [f'"{name}" = {w:.2f}' for name, w in zip(names, solution[at:], strict=False)]
    FILE.write_text("\n".join(lines).replace("-0.00", "0.00") + "\n", "utf-8")


if __name__ == "__main__":
    main()
