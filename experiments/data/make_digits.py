"""Writes digits.csv beside this script: the UCI digits as scikit-learn ships them.

Needs scikit-learn (any recent version). Run it in this folder: `python make_digits.py`. The output is the same bytes
whatever the version, since the table has not changed: 1,797 rows, pixels p0..p63 as integers 0 to 16 in row-major order of
the 8 x 8 image, and the class in `label`.
"""

from pathlib import Path

from sklearn.datasets import load_digits


def main():
    digits = load_digits()
    lines = [",".join([*(f"p{i}" for i in range(64)), "label"])]
    for pixels, label in zip(digits.data, digits.target):
        lines.append(",".join(str(int(v)) for v in [*pixels, label]))
    Path(__file__).with_name("digits.csv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
