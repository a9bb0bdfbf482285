"""Fits a logistic regression to a small sample with wrong labels and scores it on fresh rows. Standard library only."""

import argparse
import json
import math
import random

FEATURES = 20
TRAIN_ROWS = 30
TEST_ROWS = 2000
STEPS = 300
RATE = 2.0
WRONG_LABELS = 0.2


def rows(generator, count, truth):
    """Rows of Gaussian features with a label that depends on the first features only, and noisily."""
    made = []
    for _ in range(count):
        x = [generator.gauss(0, 1) for _ in range(FEATURES)]
        score = sum(w * v for w, v in zip(truth, x))
        made.append((x, 1 if generator.random() < 1 / (1 + math.exp(-score)) else 0))
    return made


def predict(weights, x):
    score = sum(w * v for w, v in zip(weights, x))
    return 1 / (1 + math.exp(-max(-30, min(30, score))))


def train(data, decay):
    weights = [0.0] * FEATURES
    for _ in range(STEPS):
        slope = [decay * w for w in weights]
        for x, y in data:
            error = (predict(weights, x) - y) / len(data)
            for i, v in enumerate(x):
                slope[i] += error * v
        weights = [w - RATE * s for w, s in zip(weights, slope)]
    return weights


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--wd", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()

    generator = random.Random(options.seed)
    truth = [2.0, -2.0, 1.4] + [0.0] * (FEATURES - 3)
    sample = rows(generator, TRAIN_ROWS, truth)
    sample = [(x, 1 - y if generator.random() < WRONG_LABELS else y) for x, y in sample]
    fresh = rows(generator, TEST_ROWS, truth)
    weights = train(sample, options.wd)
    right = sum((predict(weights, x) > 0.5) == (y == 1) for x, y in fresh)
    loss = -sum(math.log(p if y else 1 - p) for x, y in fresh for p in [predict(weights, x)]) / len(fresh)
    with open(options.out, "w") as file:
        json.dump({"accuracy": right / len(fresh), "loss": loss}, file)
    print(f"accuracy {right / len(fresh):.3f}, loss {loss:.3f}")


main()
